"""Locks that a forked process finds open.

A thread of the parent may hold a lock at the moment of a fork. That thread is not in the child, so
nobody would release the lock there, and the next one who asks for it would wait forever.
"""

from __future__ import annotations

import os
import threading
from weakref import WeakSet


class Lock:
    """A ``threading.Lock`` for data that are whole between any two steps of who holds it."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self.renew()
        _locks.add(self)

    def renew(self) -> None:
        """Forget who holds it."""
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
