"""Locks that are open in a forked process, and values that are made once.

A thread of the parent may hold a lock at the moment of a fork. It does not exist in the child, so
nobody would release the lock there, and the next thread that asks for it would wait forever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakSet

Value = TypeVar("Value")


class Lock:
    """A ``threading.Lock`` for data that are consistent between any two steps of its holder."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self.renew()
        _locks.add(self)

    def renew(self) -> None:
        """Forget the holder."""
        self._lock = threading.Lock()

    def acquire(self, *, blocking: bool = True) -> bool:
        """Take the lock; without ``blocking``, False where another thread has it."""
        return self._lock.acquire(blocking)

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_locks: WeakSet[Lock] = WeakSet()


def _renew_all() -> None:
    """Called in the child, which has one thread."""
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


class Once(Generic[Value]):
    """A value that ``make`` returns at the first request; ``value`` is None before that."""

    __slots__ = ("_lock", "_make", "value")

    def __init__(self, make: Callable[[], Value]) -> None:
        self.value: Value | None = None
        self._make = make
        self._lock = Lock()

    def get(self) -> Value:
        """The value; raises what ``make`` raises, and then the next call tries again."""
        if self.value is None:
            with self._lock:
                if self.value is None:
                    self.value = self._make()
        return self.value
