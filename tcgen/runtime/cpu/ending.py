"""Long calls of generated code that Ctrl-C ends.

While the main thread runs C, Python's handlers of signals wait. So a long call runs on a thread of
its own, and the main thread waits for it in Python. Where a handler raises (that of Ctrl-C raises
KeyboardInterrupt), the number that the loops of generated code ask for is set, they end, and the
exception goes on to the caller. Calls from other threads run where they are: Python runs no handler
there.
"""

from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from ...artifact.manifest import Manifest, array_bytes
from ..call.layout import CallLayout
from ..part_work import longest_seconds

# Seconds from which a call is long: to hand it over takes 20 microseconds, and the prediction may
# be 100 times too small before Ctrl-C takes longer than half a second.
LONG = 0.003
# Bytes of arrays from which the constant phase is taken to be long; its time is not predicted.
LARGE = 1 << 20

NEVER = ctypes.c_int(0)  # what short calls ask for


@dataclass(slots=True)
class _Task:
    """A call of a function of a library, and the lock that is released when it has ended."""

    function: Any
    given: tuple[Any, ...]
    ended: Any
    error: BaseException | None = None


class _Runner:
    """The thread that runs long calls of the main thread, one after the other.

    It is one thread for all calls, since OpenMP has a team of threads for each caller.
    """

    queue: SimpleQueue[_Task] | None = None

    @classmethod
    def hand_over(cls, task: _Task) -> None:
        """Run a task after those that were handed over before."""
        if cls.queue is None:
            cls.queue = SimpleQueue()
            threading.Thread(
                target=_run_tasks, args=(cls.queue,), name="tcgen kernels", daemon=True
            ).start()
        cls.queue.put(task)

    @classmethod
    def forked(cls) -> None:
        """Called in the child, which has no such thread."""
        cls.queue = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Runner.forked)


def _run_tasks(queue: SimpleQueue[_Task]) -> None:
    while True:
        task = queue.get()
        try:
            task.function(*task.given)
        except BaseException as error:  # the caller raises it
            task.error = error
        task.ended.release()
        del task  # its arrays belong to the caller


def _task(function: Any, given: tuple[Any, ...]) -> _Task:
    ended = threading.Lock()
    ended.acquire()
    return _Task(function, given, ended)


def is_long(layout: CallLayout, phase: str) -> bool:
    """True if a phase of a call may take so long that a user wants to end it."""
    manifest = layout.manifest
    if phase == "constant":
        return _constant_bytes(manifest, layout) > LARGE
    return longest_seconds(manifest, layout.extents) > LONG


def _constant_bytes(manifest: Manifest, layout: CallLayout) -> int:
    """Bytes of the arrays of the constant phase."""
    kernels = [k for k in manifest.kernels if manifest.is_constant(k.live)]
    used = {name for k in kernels for name in (*k.reads, *k.writes)}
    return sum(array_bytes(b, manifest, layout.extents) for b in manifest.buffers if b.name in used)


def on_main_thread() -> bool:
    """True on the thread that runs handlers of signals."""
    return threading.current_thread() is threading.main_thread()


def run_until_ended(function: Any, given: tuple[Any, ...], stop: ctypes.c_int) -> None:
    """Call a function of a library on the thread for long calls; for the main thread.

    Args:
        function: of a library, that returns nothing.
        given: its arguments.
        stop: the number for which the loops of the function ask, 0.

    Raises:
        KeyboardInterrupt: or what else a handler of a signal raises; the function has ended then,
            and what it wrote is not a result.
    """
    task = _task(function, given)
    try:
        _Runner.hand_over(task)
        task.ended.acquire()
    except BaseException:
        stop.value = 1
        _wait_for_all()
        raise
    if task.error is not None:
        raise task.error


def _wait_for_all() -> None:
    """Wait until the thread has nothing left to do, whatever the handlers of signals raise.

    A task that was handed over may or may not be known to its caller, so a later one is waited for.
    """
    last = _task(_nothing, ())
    handed = False
    while True:
        try:
            if not handed:
                _Runner.hand_over(last)
                handed = True
            last.ended.acquire()
        except BaseException:  # a second Ctrl-C: the first one is raised
            continue
        return


def _nothing() -> None:
    """Run when all tasks before have ended."""
