"""Formula sequences and plans found before, kept on disk.

A method's equations are searched for seconds, and a program that is run every day would search them
every day. What a stage makes depends on what it is given, on the options and on the code of tcgen
and the solvers alone, so that is the key of its file. Searches stop on deterministic work: what is
taken from the cache is what would be found again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from ..atomic_file import keep_text
from ..environment import cache_dir, keeps_plans
from ..errors import TcgenError
from ..options import Options
from .serialize import decode, encode

T = TypeVar("T")

_PACKAGE = Path(__file__).parents[1]
_SOLVERS = ("opt_einsum", "ortools")
_WORTH = 0.2  # seconds of a search that are worth a file


def kept(stage: str, given: object, options: Options, kind: type[T], make: Callable[[], T]) -> T:
    """What ``make`` builds, or what it built before for the same input and options.

    Args:
        stage: ``program`` or ``plan``.
        given: the level that the stage reads.
        options: all of them count as different; reset those that the stage does not read.
        kind: class of the result.
        make: the search; what it raises is raised and not kept.
    """
    if not keeps_plans():
        return make()
    path = _folder() / f"{stage}-{_key(given, options)}.json"
    try:
        return decode(path.read_text(encoding="utf-8"), kind)
    except (OSError, ValueError, TcgenError):
        pass  # not there, or damaged: found anew, and written over
    start = time.perf_counter()
    found = make()
    if time.perf_counter() - start > _WORTH:
        keep_text(path, encode(found))
    return found


def plans_kept() -> tuple[Path, ...]:
    """The files of the cache."""
    return tuple(p for p in _folder().glob("*.json") if p.is_file())


def _folder() -> Path:
    return cache_dir() / "plans"


def _key(given: object, options: Options) -> str:
    parts = (_code(), repr(options), encode(given))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def _code() -> str:
    """What tells apart versions of the planner: the text of this package, the solvers' versions."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return " ".join((digest.hexdigest(), *map(_version, _SOLVERS)))


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  (slow to load)

    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name
