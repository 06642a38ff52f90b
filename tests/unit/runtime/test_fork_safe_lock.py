"""A process that was forked while another thread of its parent was inside tcgen."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcgen
from tcgen.contraction import programs as einsum_kernels
from tcgen.lazy_arrays import compile as evaluation
from tcgen.runtime import host_device as allocation
from tcgen.runtime.fork_safe_lock import Lock

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
_A = np.arange(400_000.0).reshape(400, 1000)  # a result of more than 1 MiB comes from the pool


def _einsum() -> Any:
    return tcgen.einsum("ij,kj->ik", _A, _A)


def _lazy() -> Any:
    return np.asarray(np.sqrt(tcgen.lazy(_A)) * 2)


def _code_in_child(work: Callable[[], Any]) -> int:
    """Exit status of a child that does the work: 0, or else what went wrong, 14 for the alarm."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(600)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)  # never on to the tests that follow
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize(
    ("lock", "work"),
    [
        (einsum_kernels.PROGRAMS._lock, _einsum),
        (evaluation.PROGRAMS._lock, _lazy),
        (allocation._pool._lock, _einsum),
    ],
)
def test_a_lock_that_a_thread_held_is_open_in_the_child(
    lock: Lock, work: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    work()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert _code_in_child(work) == 0
    finally:
        done.set()
        thread.join()
    work()  # the lock of the parent is as it was
