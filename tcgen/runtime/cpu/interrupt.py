"""Make long kernel calls interruptible by Ctrl-C.

Python runs no signal handler while the main thread runs C. So a long call runs on a thread of its
own, and the main thread waits for it in Python. If a handler raises (that of Ctrl-C raises
KeyboardInterrupt), a flag is set which the loops of generated code poll; they end, and the
exception goes on to the caller. Calls from other threads run in place: handlers never run there.
"""

from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from ...artifact.manifest import array_bytes
from ..call.layout import CallLayout
from ..part_work import longest_seconds

# Predicted seconds of a long call. Handing a call over takes 20 microseconds, and the prediction
# may be 100 times too small before Ctrl-C takes longer than half a second.
MIN_SECONDS = 0.003
# Bytes of the arrays of a long constant phase, whose time is not predicted.
MIN_BYTES = 1 << 20

NOT_INTERRUPTED = ctypes.c_int(0)  # flag of short calls


@dataclass(slots=True)
class _Task:
    """A call of a library function, and the lock that is released at its end."""

    function: Any
    arguments: tuple[Any, ...]
    done: Any
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
            task.function(*task.arguments)
        except BaseException as error:  # the caller raises it
            task.error = error
        task.done.release()
        del task  # its arrays belong to the caller


def _task(function: Any, arguments: tuple[Any, ...]) -> _Task:
    done = threading.Lock()
    done.acquire()
    return _Task(function, arguments, done)


def is_long(layout: CallLayout, phase: str) -> bool:
    """True if a phase may take so long that a user wants to interrupt it."""
    manifest = layout.manifest
    if phase == "constant":
        kernels = [k for k in manifest.kernels if manifest.is_constant(k.live)]
        used = {name for k in kernels for name in (*k.reads, *k.writes)}
        buffers = (b for b in manifest.buffers if b.name in used)
        return sum(array_bytes(b, manifest, layout.extents) for b in buffers) > MIN_BYTES
    return longest_seconds(manifest, layout.extents) > MIN_SECONDS


def on_main_thread() -> bool:
    """True on the thread that runs handlers of signals."""
    return threading.current_thread() is threading.main_thread()


def run_interruptible(function: Any, arguments: tuple[Any, ...], stop: ctypes.c_int) -> None:
    """Call a function of a library on the thread for long calls; for the main thread.

    The function returns nothing, and its loops poll the flag ``stop``, which is 0.

    Raises:
        KeyboardInterrupt: or another exception of a signal handler; the function has ended then,
            and its results are incomplete.
    """
    task = _task(function, arguments)
    try:
        _Runner.hand_over(task)
        task.done.acquire()
    except BaseException:
        stop.value = 1
        _wait_for_all()
        raise
    if task.error is not None:
        raise task.error


def _wait_for_all() -> None:
    """Wait until the thread is idle, whatever signal handlers raise.

    A task that was handed over may or may not be known to its caller, so a later one is waited for.
    """
    last = _task(lambda: None, ())
    handed = False
    while True:
        try:
            if not handed:
                _Runner.hand_over(last)
                handed = True
            last.done.acquire()
        except BaseException:  # a second Ctrl-C: the first one is raised
            continue
        return
