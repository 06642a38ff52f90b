"""A cache on disk of formula sequences, fusion plans, and what is made from them.

Searches take seconds, and a program that runs every day would repeat them every day. The result of
a stage depends only on its input, the options, and the code of tcgen and of the solvers; a hash of
these is the name of its file. Searches stop after deterministic work, so a cached result equals a
new one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from ..cache_files import cache_folder, list_files, read_text, write_text
from ..environment import keeps_plans
from ..errors import TcgenError
from ..options import Options
from ..resources import shipped_files
from .documents import decode, encode

T = TypeVar("T")

_PACKAGE = Path(__file__).parents[1]
_SOLVERS = ("opt_einsum", "ortools")
_MIN_SECONDS = 0.05  # results that take less are not written to disk


def cached(
    stage: str, given: object, options: Options | None, kind: type[T], make: Callable[[], T]
) -> T:
    """The result of ``make``, or the one that it gave before for the same input and options.

    ``stage`` names the result, and ``given`` is what it is made from. Options are part of the key:
    reset those that the stage does not read. Errors of ``make`` are not cached.
    """
    if not keeps_plans():
        return make()
    path = _folder() / f"{stage}-{_key(given, options)}.json"
    try:
        return decode(read_text(path), kind)
    except (OSError, ValueError, TcgenError):
        pass  # a missing or damaged file is searched again and overwritten
    start = time.perf_counter()
    result = make()
    if time.perf_counter() - start > _MIN_SECONDS:
        write_text(path, encode(result))
    return result


def cached_plans() -> tuple[Path, ...]:
    """The files of the cache; an UnavailableError if their folder cannot be read."""
    return list_files(_folder(), ".json")


def _folder() -> Path:
    return cache_folder("plans")


def _key(given: object, options: Options | None) -> str:
    parts = (_code(), repr(options), encode(given))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def _code() -> str:
    """A hash of this package's text, templates and specs, and the solvers' versions."""
    digest = hashlib.sha256()
    for path in (*sorted(_PACKAGE.rglob("*.py")), *shipped_files()):
        digest.update(path.relative_to(_PACKAGE.parent).as_posix().encode())
        digest.update(path.read_bytes())
    return " ".join((digest.hexdigest(), *map(_version, _SOLVERS)))


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  (slow to load)

    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name
