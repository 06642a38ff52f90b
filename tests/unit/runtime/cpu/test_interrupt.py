"""Ctrl-C ends a call that would take minutes; short calls and other threads run as before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import tcgen
from tcgen.runtime.cpu import interrupt
from tcgen.runtime.cpu.backend import CpuBackend

# Each takes minutes at the extents below, and little memory.
CONTRACTION = """
space o = 60
space v = 120
index i j : o
index a b c d : v
input t[o,o,v,v], w[v,v]
output r[o,o,v,v]
x[a,b,c,d] = w[a,b]*w[c,d]*w[a,c]
r[i,j,a,b] = x[a,b,c,d]*t[i,j,c,d]
"""
MATRICES = """
space o = 3000
index i j k : o
input t[o,o]
output r[o,o]
"""
LOOPS = """
space v = 160
index a b c d e : v
input x[v,v]
output r
r = x[a,b]*x[b,c]*x[c,d]*x[d,e]*x[e,a]/(x[a,c] + x[b,d] + x[c,e] + x[d,a])
"""
RUN = textwrap.dedent("""
    import signal
    import sys
    import numpy as np
    import tcgen

    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    program = tcgen.compile(sys.argv[1])
    extents = dict(program.manifest.planning_extents)
    inputs = [t for t in program.manifest.tensors if t.role == "input"]
    arrays = {t.name: np.ones([extents[s.name] for s in t.spaces]) for t in inputs}
    program._execution.backend.build()
    out = {}
    try:
        print("begins", flush=True)
        program(**arrays, out=out)
        print("finished")
    except KeyboardInterrupt:
        print("ended", sorted(out))
        small = {name: np.ones([3] * a.ndim) for name, a in arrays.items()}
        print("then", sorted(program(**small)))
""")


def many_matrices() -> str:
    """A chain of products of large matrices, of which only the last one is an output."""
    names = [f"r{n}" for n in range(60)]
    lines = [f"{b}[i,j] = {a}[i,k]*{a}[k,j]" for a, b in zip(["t", *names], names, strict=False)]
    return MATRICES + "\n".join([*lines, f"r[i,j] = {names[-1]}[i,j]"]) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LOOPS, id="loops"),
        pytest.param(CONTRACTION, id="contraction", marks=pytest.mark.slow),
        pytest.param(None, id="matrices", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_ends_a_call(text: str | None, tmp_path: Path) -> None:
    spec = tmp_path / "long.spec"
    spec.write_text(many_matrices() if text is None else text)
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(spec)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        threading.Timer(0.5, process.send_signal, [signal.SIGINT]).start()
        printed, _ = process.communicate(timeout=600)
    assert printed.splitlines() == ["ended []", "then ['r']"]
    assert process.returncode == 0


@pytest.fixture
def every_call_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "MIN_SECONDS", -1.0)
    monkeypatch.setattr(interrupt, "MIN_BYTES", -1)


def product(n: int = 40) -> tuple[tcgen.Program, npt.NDArray[np.float64]]:
    """A program that squares a matrix, and a matrix."""
    text = "space o\nindex i j k : o\ninput x[o,o]\noutput y[o,o]\ny[i,j] = x[i,k]*x[k,j]\n"
    program = tcgen.compile(tcgen.read_spec(text), extents={"o": n})
    return program, np.random.default_rng(n).random((n, n))


@pytest.mark.usefixtures("every_call_is_long")
def test_long_calls_run_on_one_thread_of_their_own() -> None:
    program, x = product()
    before = threading.active_count()
    for _ in range(3):
        np.testing.assert_allclose(program(x=x)["y"], x @ x)
    names = [t.name for t in threading.enumerate()]
    assert names.count("tcgen kernels") == 1
    assert threading.active_count() <= before + 1


@pytest.mark.usefixtures("every_call_is_long")
def test_other_threads_run_their_calls_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    program, x = product()
    program(x=x)
    monkeypatch.setattr(
        "tcgen.runtime.cpu.backend.run_interruptible", lambda *_: pytest.fail("handed over")
    )
    found: list[npt.NDArray[np.float64]] = []
    thread = threading.Thread(target=lambda: found.append(program(x=x)["y"]))
    thread.start()
    thread.join()
    np.testing.assert_allclose(found[0], x @ x)


@pytest.mark.usefixtures("every_call_is_long")
def test_a_handler_that_does_not_raise_changes_nothing() -> None:
    """A handler may only note a signal; the call goes on and is complete."""
    program, x = product(1500)
    program(x=x)
    noted: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: noted.append(number))
    try:
        timer = threading.Timer(0.02, os.kill, [os.getpid(), signal.SIGUSR1])
        timer.start()
        result = program(x=x)["y"]
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert noted == [signal.SIGUSR1]
    np.testing.assert_allclose(result, x @ x)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.usefixtures("every_call_is_long")
def test_a_forked_process_has_a_thread_of_its_own() -> None:
    program, x = product()
    program(x=x)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.allclose(program(x=x)["y"], x @ x) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_short_calls_are_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    program, x = product(4)
    monkeypatch.setattr(
        "tcgen.runtime.cpu.backend.run_interruptible", lambda *_: pytest.fail("handed over")
    )
    np.testing.assert_allclose(program(x=x)["y"], x @ x)
    backend = program._execution.backend
    assert isinstance(backend, CpuBackend)
    large = program._execution.layout({"o": 5000})
    assert interrupt.is_long(large, "volatile")
