"""Nests in one kernel whose blocks multiply tiles: products inside loops, arrays of a block."""

from __future__ import annotations

import shutil
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from support import hand_modules as hand
from support.cuda_device import DEVICES, device_named
from support.gpu_programs import compare, on_gpu
from support.marks import slow
from support.messages import mentions
from tcgen.errors import VerifyError
from tcgen.ir.expr import Prod, Subscript
from tcgen.ir.loops import Assign, Axis, BandVar, Loop, LoopVar, Module
from tcgen.ir.thread_mapping import Nest

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
)


@pytest.fixture(autouse=True, params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = device_named(request.param)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)
    return found


def two_products(tile: int, dtype: str = "float64") -> Module:
    """r[i,d] += sum_a (2 sum_c x[i,c] y[a,c] + x[i,a]) z[d,a], by tiles of i and a."""
    i0, a0 = LoopVar("i0", hand.O, tile), LoopVar("a0", hand.V, tile)
    i, a = BandVar("i", hand.O, "i0", tile), BandVar("a", hand.V, "a0", tile)
    c, d = BandVar("c", hand.V), BandVar("d", hand.V)
    w = hand.at("w", Subscript("i", "i0"), Subscript("a", "a0"))
    body = (
        Assign(
            w, Prod((hand.at("x", "i", "c"), hand.at("y", "a", "c"))), Fraction(2), band=(i, a, c)
        ),
        Assign(w, hand.at("x", "i", "a"), accumulate=True, band=(i, a)),
        Assign(
            hand.at("r", "i", "d"),
            Prod((w, hand.at("z", "d", "a"))),
            accumulate=True,
            band=(i, d, a),
        ),
    )
    return hand.module(
        "two_products",
        (
            *(hand.tensor(n, *s) for n, s in (("x", (hand.O, hand.V)), ("y", (hand.V, hand.V)))),
            hand.tensor("z", hand.V, hand.V),
            hand.output("r", hand.O, hand.V, accumulate=True),
        ),
        (Loop(i0, (Loop(a0, body),)),),
        buffers=(hand.local("w", Axis(hand.O, tile), Axis(hand.V, tile)),),
        dtype=dtype,
    )


def added_up(tile: int, dtype: str = "float64") -> Module:
    """e and s[c] summed over all tiles of i and a: elements that all iterations add to."""
    i0, a0 = LoopVar("i0", hand.O, tile), LoopVar("a0", hand.V, tile, None)
    i, a = BandVar("i", hand.O, "i0", tile), BandVar("a", hand.V, "a0", tile)
    c, k = BandVar("c", hand.V), BandVar("k", hand.V)
    w = hand.at("w", Subscript("i", "i0"), Subscript("a", "a0"))
    body = (
        Assign(w, Prod((hand.at("x", "i", "k"), hand.at("y", "a", "k"))), band=(i, a, k)),
        Assign(hand.at("e"), Prod((w, hand.at("x", "i", "a"))), accumulate=True, band=(i, a)),
        Assign(
            hand.at("s", "c"), Prod((w, hand.at("y", "a", "c"))), accumulate=True, band=(c, i, a)
        ),
    )
    return hand.module(
        "added_up",
        (
            *(hand.tensor(n, *s) for n, s in (("x", (hand.O, hand.V)), ("y", (hand.V, hand.V)))),
            hand.output("e", accumulate=True),
            hand.output("s", hand.V, accumulate=True),
        ),
        (Loop(i0, (Loop(a0, body),)),),
        buffers=(hand.local("w", Axis(hand.O, tile), Axis(hand.V, tile)),),
        dtype=dtype,
    )


PLANNED = {"o": 5000, "v": 90}


@pytest.mark.parametrize("dtype", ["float64", *slow("float32", "complex128")])
def test_a_block_multiplies_the_tiles_of_its_nest(dtype: str) -> None:
    module = two_products(32, dtype)
    bound, program = on_gpu(module, PLANNED)
    (kernel,) = bound.kernels
    assert isinstance(kernel.mapping, Nest)
    assert [tiles is not None for tiles in kernel.mapping.products] == [True, False, True]
    for extents in ({"o": 5, "v": 7}, {"o": 33, "v": 40}, {"o": 1, "v": 1}, {"o": 0, "v": 2}):
        compare(module, bound, program, extents)


@pytest.mark.parametrize("dtype", ["float64", *slow("float32", "complex128")])
def test_blocks_add_up_copies_of_what_all_iterations_add_to(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = added_up(16, dtype)
    bound, program = on_gpu(module, PLANNED)
    (kernel,) = bound.kernels
    assert isinstance(kernel.mapping, Nest)
    assert kernel.mapping.summed == ("e", "s")
    for extents in ({"o": 5, "v": 7}, {"o": 40, "v": 33}, {"o": 0, "v": 2}):
        compare(module, bound, program, extents)
    # Beside copies, scratch holds private arrays that shared memory does not.
    for name in ("memory", "gpu.backend"):
        monkeypatch.setattr(f"tcgen.runtime.{name}.SHARED_BYTES", 64)
        monkeypatch.setattr(f"tcgen.runtime.{name}.SPILLED_BLOCKS", 2)
    _, program = on_gpu(module, PLANNED)
    compare(module, bound, program, {"o": 40, "v": 33})


@pytest.mark.parametrize(
    ("match", "changes"),
    [
        ("parallel e", {"summed": ("s",)}),
        ("copies only add", {"summed": ("e", "s", "w")}),
        ("one entry statements", {"products": (None,)}),
        ("splits threads", {"threads": 256}),
    ],
)
def test_what_blocks_cannot_compute_is_refused(match: str, changes: dict[str, Any]) -> None:
    bound, _ = on_gpu(added_up(16), PLANNED)
    (kernel,) = bound.kernels
    assert isinstance(kernel.mapping, Nest)
    wrong = replace(kernel, mapping=replace(kernel.mapping, **changes))
    with pytest.raises(VerifyError, match=mentions(match)):
        replace(bound, kernels=(wrong,)).verify()
