"""Caches of a process that threads share: compiled programs, and other results by key.

Einsum calls and lazy arrays compile a program for each form of work and store it here, in memory.
``plan_cache`` stores plans on disk, and the runtime compiled objects.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from ..artifact.folder import Artifact
from ..runtime.fork_safe_lock import Lock

V = TypeVar("V")

KEYS_PER_PROGRAM = 16  # largest number of keys of a cache, for each program that it may hold


class LeastRecentlyUsed(Generic[V]):
    """Values by key; adding more than ``most()`` drops those that were least recently used."""

    def __init__(self, most: Callable[[], int]) -> None:
        self.most = most
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable, default: Any = None) -> V | Any:
        """The value of a key, which counts as used; the default if there is none."""
        value = self._values.get(key, default)
        if value is not default:
            with suppress(KeyError):  # dropped meanwhile by another thread
                self._values.move_to_end(key)
        return value

    def add(self, key: Hashable, value: V) -> None:
        """Store a value."""
        with self._lock:
            self._insert(key, value)

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()

    def _insert(self, key: Hashable, value: V) -> None:
        self._values[key] = value
        while self._is_full():
            self._values.popitem(last=False)

    def _is_full(self) -> bool:
        return len(self._values) > self.most()


class _Program(Protocol):
    @property
    def artifact(self) -> Artifact:
        """The artifact of the program."""


P = TypeVar("P", bound=_Program)


class ProgramCache(LeastRecentlyUsed[P]):
    """Programs by key, at most ``most()``; keys whose artifacts compute the same share one.

    ``start`` makes a program from an artifact; ``compiled`` counts the programs that were started,
    dropped ones included.
    """

    def __init__(self, start: Callable[[Artifact], P], most: Callable[[], int]) -> None:
        super().__init__(most)
        self.start = start
        self.compiled = 0

    def program(self, key: Hashable, compile_artifact: Callable[[], Artifact]) -> P:
        """The program of a key, compiled if there is none."""
        program: P | None = self.get(key)
        if program is not None:
            return program
        artifact = compile_artifact()
        with self._lock:
            same = (p for p in self._values.values() if _compute_the_same(p.artifact, artifact))
            program = next(same, None)
            if program is None:
                self.compiled += 1
                program = self.start(artifact)
            self._insert(key, program)
        return program

    def count(self) -> int:
        """Number of programs in the cache."""
        with self._lock:
            return self._count()

    def _count(self) -> int:
        return len({id(program) for program in self._values.values()})

    def _is_full(self) -> bool:
        most = self.most()
        return self._count() > most or len(self._values) > KEYS_PER_PROGRAM * most


def _compute_the_same(one: Artifact, other: Artifact) -> bool:
    """True for artifacts that compute the same at any extents."""
    if one.files != other.files:
        return False
    return replace(one.manifest, planning_extents=other.manifest.planning_extents) == other.manifest
