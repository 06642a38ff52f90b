"""Calls of a program that share what their extents settle, and calls that do not."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from support.messages import mentions
from tcgen.errors import ArgumentError, DtypeError, ExtentError, ReadOnlyError, ShapeError
from tcgen.runtime import execution
from tcgen.runtime.cpu import backend as cpu
from tcgen.runtime.host_device import address
from tcgen.runtime.program import Program

SPEC = """
space o = 3
space v = 4
index i j k : o
index a b : v
input x[o,v] constant, y[v,o]
output r, s
g[i,j] = x[i,a]*y[a,j]
r[i,k] = g[i,j]*g[j,k]
s[a,b] = y[a,i]*x[i,b]
"""
DTYPES = ("float64", "float32", "complex128")


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    yield
    tcgen.set_threads(None)


def compiled(target: str, dtype: str = "float64", **options: Any) -> Program:
    return tcgen.compile(SPEC, target=target, dtype=dtype, **options)


def expected(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    g = x @ y
    return {"r": g @ g, "s": y @ x}


def values(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray[Any, Any]:
    """Small whole numbers, which no order of additions rounds."""
    random = np.random.default_rng(seed)
    made = random.integers(-3, 4, shape).astype(dtype)
    return made + made * 1j if dtype == "complex128" else made


def laid_out(array: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
    if layout == "F":
        return np.asfortranarray(array)
    if layout == "reversed":
        return np.ascontiguousarray(array[::-1])[::-1]
    if layout == "misaligned":
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
        raw[...] = array
        return raw
    if layout == "read-only":
        array = array.copy()
        array.flags.writeable = False
    return array


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", ["numpy", "cpu"])
def test_calls_of_any_extents_threads_and_layouts(target: str, dtype: str) -> None:
    program = compiled(target, dtype)
    bound: dict[tuple[int, int], Any] = {}

    @cases(60)
    @given(
        o=st.integers(0, 4),
        v=st.integers(0, 4),
        threads=st.sampled_from((1, 2, 3, None)),
        layouts=st.lists(
            st.sampled_from(("C", "F", "reversed", "misaligned", "read-only")),
            min_size=2,
            max_size=2,
        ),
        given_out=st.sampled_from(("", "r", "rs", "overlapping", "transposed")),
    )
    def check(o: int, v: int, threads: int | None, layouts: list[str], given_out: str) -> None:
        tcgen.set_threads(threads)
        x, y = (
            laid_out(values((o, v), dtype, o), layouts[0]),
            laid_out(values((v, o), dtype, v), layouts[1]),
        )
        wanted = expected(x, y)
        shapes = {"r": (o, o), "s": (v, v)}
        out = {n: np.full(shapes[n], 7, dtype) for n in given_out if n in shapes}
        if given_out == "transposed":
            out = {"s": np.full((v, v), 7, dtype).T}
        if given_out == "overlapping" and o == v and y.flags.writeable and x.flags.writeable:
            out = {"r": y}
        found = program(x=x, y=y, out=out)
        assert found is out
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array)
        if "r" in found and found["r"] is y:
            return
        if (o, v) not in bound:
            bound[o, v] = (x.copy(), program.bind(x=x.copy()))
        constant, step = bound[o, v]
        for name, array in expected(constant, y).items():
            np.testing.assert_array_equal(step(y=y)[name], array)

    check()


def test_what_calls_share_is_worked_out_once_and_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(execution, "_MAX_CACHED", 4)
    program = compiled("numpy")
    run = program._execution

    def setting(o: int, v: int) -> Any:
        sources = {"x": np.ones((o, v)), "y": np.ones((v, o))}
        return run.layout(run.extents(sources))

    first = setting(2, 3)
    assert setting(2, 3) is first
    assert setting(3, 2) is not first
    for n in range(1, 7):
        setting(n, n)
    assert setting(2, 3) is not first
    assert run._layouts.cache_info().currsize == run._extents.cache_info().currsize == 4
    with pytest.raises(TypeError):
        first.extents["o"] = 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.threads = 2


def test_threads_are_asked_for_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled("cpu")
    arrays = {"x": np.ones((3, 4)), "y": np.ones((4, 3))}
    program(**arrays)
    used: list[int] = []
    run = cpu.CpuBackend.run

    def noted(self: cpu.CpuBackend, buffers: Any, fetch: Any) -> None:
        used.append(buffers.layout.threads)
        run(self, buffers, fetch)

    monkeypatch.setattr(cpu.CpuBackend, "run", noted)
    for count in (1, 3, 2, 3, 1):
        tcgen.set_threads(count)
        program(**arrays)
    monkeypatch.setattr(cpu._Process, "single", True)  # a fork of a process that ran threads
    program(**arrays)
    assert used == [1, 3, 2, 3, 1, 1]


def test_threads_of_different_extents_at_the_same_time() -> None:
    program = compiled("cpu")
    wrong: list[int] = []

    def work(n: int) -> None:
        for turn in range(30):
            o, v = 1 + (n + turn) % 4, 1 + turn % 3
            x, y = values((o, v), "float64", n), values((v, o), "float64", turn)
            out = {"s": np.empty((v, v))}
            found = program(x=x, y=y, out=out)
            if not all((found[k] == a).all() for k, a in expected(x, y).items()):
                wrong.append(n)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.parametrize("target", ["numpy", "cpu"])
def test_what_is_wrong_is_wrong_each_time(target: str) -> None:
    program = compiled(target)
    x, y = np.ones((3, 4)), np.ones((4, 3))
    locked = np.zeros((3, 3))
    locked.flags.writeable = False
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"x": x}, ArgumentError, "missing y"),
        ({"x": x, "y": y, "z": y}, ArgumentError, "unknown z"),
        ({"x": x, "z": y}, ArgumentError, "missing y unknown z"),
        ({"x": x.astype("f4"), "y": y}, DtypeError, "x float64 float32"),
        ({"x": x.astype(">f8"), "y": y}, DtypeError, "x float64 >f8"),
        ({"x": x[None], "y": y}, ShapeError, "2 axes 3"),
        ({"x": x, "y": x}, ExtentError, "space extent"),
        ({"x": x, "y": y, "out": {"q": x}}, ArgumentError, "out q output"),
        ({"x": x, "y": y, "out": [x]}, ArgumentError, "out dict"),
        ({"x": x, "y": y, "out": {"r": x}}, ShapeError, "shape (3, 3)"),
        ({"x": x, "y": y, "out": {"r": locked}}, ReadOnlyError, "read-only"),
        ({"x": np.ma.masked_array(x), "y": y}, ArgumentError, "x masked"),
    ]
    for arguments, error, said in cases * 2:
        with pytest.raises(error, match=mentions(said)):
            program(**arguments)
        np.testing.assert_array_equal(program(x=x, y=y)["r"], expected(x, y)["r"])
    with pytest.raises(ArgumentError, match=mentions("name program(x=..., y=...)")):
        program(x, y)


@pytest.mark.parametrize(
    "array",
    [
        np.ones((2, 3)),
        np.ones((4, 6))[1:3, 2:5],
        np.ones(3)[::-1],
        np.broadcast_to(np.ones(1), (4, 4)),
        np.zeros(9, np.uint8)[1:],
        np.ma.masked_array(np.ones(2)),
        np.array(1.0),
        np.empty((0, 3)),
    ],
)
def test_address(array: np.ndarray[Any, Any]) -> None:
    assert address(array) == array.__array_interface__["data"][0]
    array.flags.writeable = False
    assert address(array) == array.__array_interface__["data"][0]
