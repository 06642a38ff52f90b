"""Nests that single threads compute: no barrier, and the values of the equations."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tcgen
from support import hand_modules as hand
from support.cuda_device import DEVICES, device_named
from support.gpu_programs import compare, on_gpu
from support.messages import mentions
from tcgen.errors import VerifyError
from tcgen.ir.expr import Prod
from tcgen.ir.loops import Assign, BandVar, Loop, LoopVar, Module, Zero
from tcgen.ir.thread_mapping import Nest, ThreadNest
from tcgen.thresholds.gpu import GpuThresholds

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
)


SHORT = GpuThresholds(few_elements=10**6, long_sum=20)  # with these, its sums are too long


@pytest.fixture(autouse=True, params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = device_named(request.param)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)
    return found


def chain(length: int) -> str:
    """y = f(f(...f(x)...)), each f of two terms."""
    names = ["x", *(f"t{n}" for n in range(1, length)), "y"]
    steps = (
        f"{new}[i,a] = exp(-1*{old}[i,a]*{old}[i,a]) + {old}[i,a]/(1 + {old}[i,a]*{old}[i,a])"
        for old, new in pairwise(names)
    )
    head = ["space o", "space v", "index i : o", "index a : v", "input x[o,v]", "output y"]
    return "\n".join([*head, *steps, ""])


@pytest.mark.few(1)
@pytest.mark.default_thresholds
@pytest.mark.parametrize("objective", ["kernels", "memory", "peak"])
def test_a_chain_is_one_kernel_without_a_barrier(objective: str) -> None:
    program = tcgen.compile(
        chain(4), extents={"o": 30, "v": 700}, target="cuda", objective=objective
    )
    assert program.report["launches"] == len(program.manifest.kernels) == 1
    assert program.report["memory"]["peak_bytes"] == 30 * 700 * 8  # of the result
    (kernel,) = program.artifact.text("kernels.cu").split("/* kernel ")[1:]
    assert "__syncthreads" not in kernel
    assert "__shared__" not in kernel
    for shape in ((3, 7), (1, 1), (0, 4), (5, 130)):
        x = y = np.random.default_rng(1).uniform(-1, 1, shape)
        for _ in range(4):
            y = np.exp(-y * y) + y / (1 + y * y)
        np.testing.assert_allclose(program(x=x)["y"], y, rtol=1e-12)


def triangle_with_sums(dtype: str) -> Module:
    """y[i,j] += (sum_a x[i,a] x[j,a])**2 for j <= i, and a sum whose loop is in the thread."""
    i, j = LoopVar("i", hand.O), LoopVar("j", hand.O, below="i")
    a, band = LoopVar("a", hand.V), BandVar("b", hand.V)
    pair = Prod((hand.at("x", "i", "b"), hand.at("x", "j", "b")))
    body = (
        Zero("n"),
        Assign(hand.at("n"), pair, accumulate=True, band=(band,)),
        Zero("m"),
        Loop(
            a,
            (
                Assign(hand.at("s"), Prod((hand.at("n"), hand.at("x", "i", "a")))),
                Assign(hand.at("m"), hand.at("s"), coeff=hand.Fraction(-3, 2), accumulate=True),
            ),
        ),
        Assign(hand.at("y", "i", "j"), Prod((hand.at("n"), hand.at("m"))), accumulate=True),
    )
    return hand.module(
        "triangle_sums",
        (hand.tensor("x", hand.O, hand.V), hand.output("y", hand.O, hand.O, accumulate=True)),
        (Loop(i, (Loop(j, body),)),),
        buffers=tuple(hand.local(n, place="register") for n in "nms"),
        dtype=dtype,
    )


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_a_triangle_with_sums_in_the_thread(dtype: str) -> None:
    module = triangle_with_sums(dtype)
    bound, program = on_gpu(module, {"o": 200, "v": 30})
    assert isinstance(bound.kernels[0].mapping, ThreadNest)
    for extents in ({"o": 5, "v": 7}, {"o": 1, "v": 1}, {"o": 17, "v": 0}, {"o": 0, "v": 2}):
        compare(module, bound, program, extents)


def test_few_points_with_long_sums_are_for_blocks() -> None:
    bound, _ = on_gpu(triangle_with_sums("float64"), {"o": 200, "v": 30}, SHORT)
    assert isinstance(bound.kernels[0].mapping, Nest)


def test_what_threads_cannot_compute_is_refused() -> None:
    bound, _ = on_gpu(triangle_with_sums("float64"), {"o": 200, "v": 30})
    (kernel,) = bound.kernels
    (outer,) = kernel.body
    assert isinstance(outer, Loop)
    (inner,) = outer.body
    assert isinstance(inner, Loop)

    def refused(match: str, body: tuple[Any, ...], **changes: Any) -> None:
        wrong = replace(kernel, body=body)
        with pytest.raises(VerifyError, match=mentions(match)):
            replace(bound, kernels=(wrong,), **changes).verify()

    refused("threads one nest parallel", (replace(outer, parallel=False),))
    row = Assign(
        hand.at("y", "i", "b"),
        hand.at("x", "i", "b"),
        band=(BandVar("b", hand.V),),
        accumulate=True,
    )
    serial = replace(inner, parallel=False)
    refused("thread more than one element y", (replace(outer, body=(replace(row),)),))
    refused("thread zeroes y register", (replace(outer, body=(Zero("y"), serial)),))
    (*_, last) = inner.body
    used = (replace(outer, body=(replace(inner, body=(last,)),)),)
    buffers = tuple(replace(b, place="private") if b.name == "n" else b for b in bound.buffers)
    refused("private register", used, buffers=buffers)
    with pytest.raises(VerifyError, match=mentions("33 warps")):
        replace(bound, kernels=(replace(kernel, mapping=ThreadNest(33)),)).verify()
