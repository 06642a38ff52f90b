"""The fallback of staged contractions: compiled when a call needs it, whoever calls it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tcgen
from support import hand_modules as hand
from support.messages import mentions
from tcgen.emit import emit_artifact
from tcgen.errors import BuildError
from tcgen.ir.loops import BandVar, Gemm, Loop, LoopVar, PackingScheme
from tcgen.ir.tensor import Role
from tcgen.runtime.cpu import backend as cpu
from tcgen.runtime.cpu.blas import set_threads
from tcgen.runtime.cpu.build import Source
from tcgen.runtime.program import Program

FITS, DEEP = 20, 401  # summed points that a stage holds, and more than it does


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many libraries have been asked for at each time."""
    asked: list[int] = []
    build = cpu.build_libraries

    def counted(sources: Sequence[Source], *more: Any) -> Any:
        asked.append(len(sources))
        return build(sources, *more)

    monkeypatch.setattr(cpu, "build_libraries", counted)
    return asked


def staged() -> Program:
    """``y[c,b,a] = x0[a,e,b] * x1[c,e]`` with more rows than columns: tiles are transposed."""
    program = tcgen.compile("aeb,ce->cba", extents={"a": 90, "b": 90, "c": 24, "e": 24})
    assert program.artifact.has("contract_fallback_float64.c")
    assert not program.artifact.has("contract_blocks_float64.c")
    return program


def check(program: Program, summed: int, rows: int = 9) -> None:
    """Into an output at the start of a cache line: its address decides how it is stored."""
    random = np.random.default_rng(0)
    x, y = random.random((rows, summed, 10)), random.random((5, summed))
    memory = np.empty(50 * rows + 8)
    out = memory[-memory.ctypes.data % 64 // 8 :][: 50 * rows].reshape(5, 10, rows)
    program(x0=x, x1=y, out={"y": out})
    np.testing.assert_allclose(out, np.einsum("aeb,ce->cba", x, y), rtol=1e-12)


@pytest.mark.default_thresholds
def test_the_fallback_is_built_when_it_is_called(built: list[int]) -> None:
    program = staged()
    check(program, FITS)
    first = list(built)
    check(program, FITS)
    assert built == first
    check(program, DEEP)
    assert built == [*first, 3]  # and the micro-kernels, which are there already
    check(program, DEEP)
    check(program, FITS)
    assert built == [*first, 3]


@pytest.mark.default_thresholds
def test_build_leaves_nothing_for_later(built: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    program = staged()
    program.build()
    count = len(built)
    monkeypatch.setenv("TCGEN_CC", "/no/such/compiler")
    check(program, DEEP)
    check(program, FITS)
    check(program, FITS, rows=16)
    assert len(built) == count


@pytest.mark.default_thresholds
def test_programs_that_call_blocks_anyway_have_no_fallback() -> None:
    spec = """
    space a = 90
    space c = 24
    index p q r : a
    index i j : c
    input x[a,c,a], z[c,c], w[a,c,a]
    output y, v
    y[i,q,p] = x[p,j,q]*z[i,j]
    v[p,q] = w[p,j,r]*x[r,j,q]
    """
    artifact = tcgen.compile(spec, objective="none").artifact
    assert artifact.has("contract_staged_float64.c")
    assert artifact.has("contract_blocks_float64.c")
    assert not artifact.has("contract_fallback_float64.c")


@pytest.mark.default_thresholds
def test_what_cannot_be_built_is_an_error_of_that_call(monkeypatch: pytest.MonkeyPatch) -> None:
    program = staged()
    check(program, FITS)
    with monkeypatch.context() as context:
        context.setenv("TCGEN_CC", "/no/such/compiler")
        check(program, FITS)
        with pytest.raises(BuildError, match=mentions("C compiler")):
            check(program, DEEP)
    check(program, DEEP)


def in_a_parallel_loop() -> Program:
    """``s[x,v,o] = t[x,o,c] * u[v,c]`` for each x at once, staged."""
    O, V, P = hand.O, hand.V, hand.P
    t, u = hand.tensor("t", V, O, P), hand.tensor("u", O, P)
    out = hand.tensor("s", V, O, O, role=Role.OUTPUT)
    product = Gemm(
        hand.at("s", "x", "v", "i"),
        hand.at("u", "v", "c"),
        hand.at("t", "x", "i", "c"),
        (),
        (BandVar("v", O),),
        (BandVar("i", O),),
        (BandVar("c", P),),
        scheme=PackingScheme(pack_b=False, stage=True),
    )
    module = hand.module("many", (t, u, out), (Loop(LoopVar("x", V), (product,), parallel=True),))
    return Program(emit_artifact(module, target="cpu"))


def check_many(program: Program, v: int, o: int) -> None:
    random = np.random.default_rng(1)
    t, u = random.random((v, o, o + v)), random.random((o, o + v))
    np.testing.assert_allclose(program(t=t, u=u)["s"], np.einsum("xic,vc->xvi", t, u), rtol=1e-12)


def test_threads_of_a_parallel_loop_call_it(
    built: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = in_a_parallel_loop()
    set_threads(3)
    try:
        check_many(program, 5, 30)
        count = len(built)
        with monkeypatch.context() as context:
            context.setenv("TCGEN_CC", "/no/such/compiler")
            with pytest.raises(BuildError, match=mentions("C compiler")):
                check_many(program, 7, DEEP)
        check_many(program, 7, DEEP)
        assert len(built) == count + 2  # in vain, and once for all threads
    finally:
        set_threads(None)


@pytest.mark.default_thresholds
def test_calls_from_several_threads_build_it_once(
    built: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = staged()
    check(program, FITS)
    count = len(built)
    build = cpu._fallback

    def slowly(*given: Any) -> int:
        time.sleep(0.1)  # so that the others arrive meanwhile
        return build(*given)

    monkeypatch.setattr(cpu, "_fallback", slowly)
    program = staged()
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(check, program, DEEP, 3 + n) for n in range(8)]:
            done.result()
    assert len(built) == count + 2  # the new program, and its fallback
