"""Programs for a GPU under the emulator: hand-written modules and plans give what they mean."""

from __future__ import annotations

import shutil
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tcgen
from support import cuda_compile
from support import hand_modules as hand
from support.cuda_device import DEVICES, Compiling, device_named
from support.golden import check_golden, head_and_kernels, not_of_templates
from support.gpu_programs import compare, generated, on_gpu
from support.marks import slow
from support.messages import mentions
from support.parts import check_plan
from tcgen.emit import emit_artifact
from tcgen.errors import (
    VerifyError,
)
from tcgen.interp import evaluate_program
from tcgen.ir.expr import Prod
from tcgen.ir.loops import Assign, BandVar, HostLoop, Loop, LoopVar, Module, Zero
from tcgen.ir.thread_mapping import Nest, Points, Sums, Tiles, Transpose
from tcgen.lower import lower_plan
from tcgen.lower.gpu.bind import bind_gpu
from tcgen.options import Options
from tcgen.records.loops import host_items
from tcgen.runtime.program import Program
from tcgen.thresholds import largest, smallest
from tcgen.thresholds.gpu import GpuThresholds

pytestmark = [
    pytest.mark.few(4),
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
    ),
]
LARGE = {"o": 40, "v": 200}  # planning extents at which tiles and splits are chosen
PLANS = (
    "shared_producer",
    "accumulation",
    "tile_of_three",
    "recomputation",
    "host_loop",
    "triangular_pair",
    "triangular_images",
    "generated_tile",
    "nested_fusion",
)


@pytest.fixture(autouse=True, params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = device_named(request.param)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)
    return found


@pytest.mark.parametrize("dtype", ["float64", *slow("float32"), "complex128"])
@pytest.mark.parametrize("name", hand.ALL)
def test_hand_modules(name: str, dtype: str) -> None:
    if dtype != "float64" and name in ("transpose", "generated", "phases", "joined"):
        pytest.skip("the types are in the other modules")
    module = hand.ALL[name](dtype)
    bound, program = on_gpu(module, dict(hand.EXTENTS))
    compare(module, bound, program, dict(hand.EXTENTS))
    if name != "joined":  # no array shows its extents
        for extents in ({"o": 1, "v": 1}, {"o": 0, "v": 7}, {"o": 5, "v": 0}):
            compare(module, bound, program, extents)


@pytest.mark.parametrize("dtype", [*slow("float64"), "float32", "complex128"])
def test_products_by_tiles(dtype: str) -> None:
    """Planned large, so that tiles and splits are there, and run at small and odd extents."""
    module = generated(hand.gemm(dtype))
    kernels = tuple(k for k in module.kernels if dtype == "float64" or k.name[-1] in "026")
    kept = {k.name for k in kernels}
    host = tuple(x for x in module.host_volatile if x.kernel in kept)
    module = replace(module, kernels=kernels, host_volatile=host)
    outs = {s.out.buffer for k in kernels for s in k.body}
    module = replace(
        module,
        tensors=tuple(t for t in module.tensors if t.is_input or t.name in outs),
        buffers=tuple(
            b for b in module.buffers if b.tensor is None or b.tensor.is_input or b.name in outs
        ),
    )
    bound, program = on_gpu(module, LARGE if dtype == "float32" else {"o": 40, "v": 4000})
    mappings = [k.mapping for k in bound.kernels]
    assert any(isinstance(s, Tiles) and s.splits > 1 for s in mappings)
    assert any(isinstance(s, Tiles) and len(s.terms) > 1 for s in mappings)
    for extents in (
        {"o": 5, "v": 7},
        {"o": 1, "v": 1},
        {"o": 0, "v": 7},
        {"o": 5, "v": 0},
        {"o": 23, "v": 19},
        {"o": 17, "v": 67},
    ):
        compare(module, bound, program, extents)


@pytest.mark.parametrize("end", [smallest, largest])
@pytest.mark.parametrize("name", hand.ALL)
def test_hand_modules_at_the_ends_of_thresholds(name: str, end: Any) -> None:
    module = hand.ALL[name]("float64")
    planned = dict(hand.EXTENTS) if name == "joined" else LARGE  # no array shows its extents
    bound, program = on_gpu(module, planned, end(GpuThresholds()))
    compare(module, bound, program, dict(hand.EXTENTS))


def permuted(dtype: str = "float64") -> Module:
    """r[a,i,b,j] = t[c,j,k,a]*u[i,k,b,c]: no group lies together, all stride-1 variables differ."""
    i, j, k = (BandVar(n, hand.O) for n in "ijk")
    a, b, c = (BandVar(n, hand.V) for n in "abc")
    t, u = (
        hand.tensor("t", hand.V, hand.O, hand.O, hand.V),
        hand.tensor("u", hand.O, hand.O, hand.V, hand.V),
    )
    s = hand.tensor("s", hand.O, hand.V, hand.V)
    out = hand.output("r", hand.V, hand.O, hand.V, hand.O)
    first = Assign(
        hand.at("r", "a", "i", "b", "j"),
        Prod((hand.at("t", "c", "j", "k", "a"), hand.at("u", "i", "k", "b", "c"))),
        coeff=hand.Fraction(-3, 2),
        band=(a, i, b, j, k, c),
    )
    x, y = BandVar("x", hand.V), BandVar("y", hand.O)
    second = Assign(
        hand.at("r", "x", "y", "b", "j"),
        Prod((hand.at("t", "a", "j", "k", "x"), hand.at("u", "y", "k", "b", "a"))),
        accumulate=True,
        band=(x, y, b, j, a, k),
    )
    third = Assign(
        hand.at("r", "a", "i", "b", "j"),
        Prod((hand.at("s", "j", "a", "c"), hand.at("u", "i", "i", "b", "c"))),
        accumulate=True,
        band=(a, i, b, j, c),
    )
    return hand.module("permuted", (t, u, s, out), (first,), (second,), (third,), dtype=dtype)


@pytest.mark.slow
def test_permuted_products_share_a_tile() -> None:
    module = permuted()
    bound, program = on_gpu(module, {"o": 10, "v": 30})
    (kernel,) = bound.kernels
    assert isinstance(kernel.mapping, Tiles)
    assert len(kernel.mapping.terms) == 3
    for extents in ({"o": 3, "v": 5}, {"o": 7, "v": 2}, {"o": 1, "v": 11}):
        compare(module, bound, program, extents)


@pytest.mark.parametrize("tile", [None, 3])
@pytest.mark.parametrize("name", PLANS)
def test_hand_plans(hand_plans: ModuleType, name: str, tile: int | None) -> None:
    plan = hand_plans.retiled(getattr(hand_plans, name)(), tile)
    module = lower_plan(plan, Options(target="cuda"))
    module.verify()
    program = Program(emit_artifact(module, target="cuda", planning_extents=plan.extents))
    spaces = [s.name for s in plan.program.spaces]
    cases = [dict.fromkeys(spaces, n) for n in (0, 1, 3, 4, 9)]
    cases += [{**dict.fromkeys(spaces, 3), space: 7} for space in spaces]
    random = np.random.default_rng(7)
    for extents in cases:
        arrays = {
            t.name: random.random([extents[s.name] for s in t.spaces]) for t in plan.program.inputs
        }
        wanted = evaluate_program(plan.program, arrays, extents)
        found = program(**arrays)
        for out, value in wanted.items():
            np.testing.assert_allclose(
                found[out], value, rtol=1e-12, atol=1e-12, err_msg=str(extents)
            )


@pytest.mark.default_thresholds  # more than one part
@pytest.mark.parametrize(
    "name", ["recomputation", *slow(*(n for n in PLANS if n != "recomputation"))]
)
def test_parts_of_hand_plans_add_up(hand_plans: ModuleType, name: str) -> None:
    plan = getattr(hand_plans, name)()
    module = lower_plan(plan, Options(target="cuda"))
    module.verify()
    program = Program(emit_artifact(module, target="cuda", planning_extents=plan.extents))
    spaces = [s.name for s in plan.program.spaces]
    assert check_plan(program, plan, dict.fromkeys(spaces, 7)) > 1
    check_plan(program, plan, {space: 2 + 3 * n for n, space in enumerate(spaces)})


def test_private_buffers_that_do_not_fit_shared_memory(
    hand_plans: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At run time a nest's private buffers go to scratch, some blocks at a time."""
    plan = hand_plans.tile_of_three()
    module = lower_plan(plan, Options(target="cuda"))
    assert any(isinstance(k.mapping, Nest) for k in module.kernels)
    assert any(b.place == "private" for b in module.buffers)
    for name in ("memory", "gpu.backend"):
        monkeypatch.setattr(f"tcgen.runtime.{name}.SHARED_BYTES", 64)
        monkeypatch.setattr(f"tcgen.runtime.{name}.SPILLED_BLOCKS", 2)
    program = Program(emit_artifact(module, target="cuda", planning_extents=plan.extents))
    random = np.random.default_rng(1)
    extents = {"i": 11, "j": 5, "k": 3, "l": 4}
    arrays = {
        t.name: random.random([extents[s.name] for s in t.spaces]) for t in plan.program.inputs
    }
    np.testing.assert_allclose(program(**arrays)["X"], arrays["A"] @ arrays["B"] @ arrays["C"])


@pytest.mark.slow
@pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING)
@pytest.mark.parametrize("dtype", ["float64", *slow("complex128")])
def test_sums_of_a_nest_share_what_they_add_up_in(dtype: str) -> None:
    """Private buffers may take all shared memory but 2 KiB, however many sums a nest has."""
    a, i = LoopVar("a", hand.V), BandVar("i", hand.O)
    square = Prod((hand.at("x", "i", "a"), hand.at("x", "i", "a")))
    total = Assign(hand.at("n"), square, accumulate=True, band=(i,))
    body = (Zero("n"), *(total for _ in range(40)), Assign(hand.at("y", "a"), hand.at("n")))
    module = hand.module(
        "sums",
        (hand.tensor("x", hand.O, hand.V), hand.output("y", hand.V)),
        (Loop(a, body, parallel=True),),
        buffers=(hand.local("n", place="register"),),
        dtype=dtype,
    )
    bound, program = on_gpu(module, {"o": 100, "v": 400})  # few threads would add up long sums
    assert isinstance(bound.kernels[0].mapping, Nest)
    for arch in Compiling.architectures:
        (use,) = cuda_compile.compile_cuda(program.source, arch)
        assert 0 < use.shared <= 2048
    compare(module, bound, program, {"o": 40, "v": 3})


@pytest.mark.slow
def test_small_results_of_long_sums() -> None:
    """Elements that many blocks add up, in an order that does not depend on who is first."""
    i, a, b = BandVar("i", hand.O), BandVar("a", hand.V), BandVar("b", hand.V)
    module = hand.module(
        "sums",
        (hand.tensor("x", hand.O, hand.V, hand.V), hand.output("e"), hand.output("d", hand.O)),
        (Assign(hand.at("e"), hand.at("x", "i", "a", "b"), band=(i, a, b)),),
        (
            Assign(
                hand.at("d", "i"),
                Prod((hand.at("x", "i", "a", "b"), hand.at("x", "i", "b", "a"))),
                band=(i, a, b),
            ),
        ),
    )
    bound, program = on_gpu(module, {"o": 40, "v": 300})
    mappings = [k.mapping for k in bound.kernels]
    assert all(isinstance(s, Sums) and s.splits > 1 for s in mappings)
    assert [s.along for s in mappings if isinstance(s, Sums)] == [("b", "i"), ("b", "a")]
    for extents in ({"o": 3, "v": 40}, {"o": 5, "v": 1}, {"o": 2, "v": 0}):
        inputs = compare(module, bound, program, extents)
        assert program(**inputs)["e"].tobytes() == program(**inputs)["e"].tobytes()


@pytest.mark.default_thresholds
@pytest.mark.parametrize("shape", [(3, 10, 10), (5, 3, 7), (1, 1, 1), (0, 2, 3)])
def test_lanes_walk_several_short_variables(shape: tuple[int, ...]) -> None:
    planned = {"i": 5000, "a": 10, "b": 10}
    program = tcgen.compile("iab,iab->", extents=planned, target="cuda")
    assert "tc_left_x" in program.artifact.text("kernels.cu")
    x, y = np.random.default_rng(1).random((2, *shape))
    np.testing.assert_allclose(program(x0=x, x1=y)["y"], (x * y).sum(), rtol=1e-12)


@pytest.mark.parametrize(
    ("subscripts", "planned"),
    [("ij->i", {"i": 20000, "j": 100}), ("ij->", {"i": 2, "j": 50})],  # a thread's sum, a block's
)
def test_single_precision_is_added_up_in_double(subscripts: str, planned: dict[str, int]) -> None:
    """Of many equal elements every other way loses some of each; C does the same."""
    program = tcgen.compile(subscripts, extents=planned, target="cuda", dtype="float32")
    x = np.full((2, 100_000), 0.1, np.float32)
    wanted = np.einsum(subscripts, x.astype("float64"))
    np.testing.assert_allclose(program(x0=x)["y"], wanted, rtol=1e-6)


@pytest.mark.default_thresholds
@pytest.mark.parametrize("rows", [3, 7])
@pytest.mark.parametrize("product", ["g[x,m,n]*h[m,m]", "g[x,m,n]*h[m,n]"])
def test_sums_over_the_last_tile_of_a_generated_input(product: str, rows: int) -> None:
    """It has fewer elements than the other tiles, but as long sums, which blocks may share."""
    text = f"""
space r
space o
index x : r
index m n : o
input g[r,o,o] generated
input h[o,o]
output y
y[x] = sum(m,n) {product}
"""
    planned = {"r": rows, "o": 200}
    program = tcgen.compile(text, extents=planned, target="cuda", objective="none")
    tiles = [
        item.var.tile or 1
        for item in host_items(program.manifest.host_volatile)
        if isinstance(item, HostLoop)
    ]
    assert any(rows % tile for tile in tiles), tiles
    random = np.random.default_rng(5)
    g, h = random.standard_normal((rows, 150, 150)), random.standard_normal((150, 150))

    def tile_of_g(out: Any, ranges: tuple[slice, ...]) -> None:
        out[...] = g[ranges]

    expected = np.einsum("xmn,mm->x" if "h[m,m]" in product else "xmn,mn->x", g, h)
    np.testing.assert_allclose(program(g=tile_of_g, h=h)["y"], expected, rtol=1e-11)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_turned_tiles(dtype: str) -> None:
    """Permutations with a factor and a slice; tiles that are partial on either side."""
    i, j, a, b = (
        BandVar(n, s) for n, s in zip("ijab", (hand.O, hand.O, hand.V, hand.V), strict=True)
    )
    p = hand.Subscript("a", offset=(hand.O,))
    module = hand.module(
        "turned",
        (
            hand.tensor("x", hand.O, hand.P, hand.V, hand.O),
            hand.tensor("d", hand.V),
            hand.output("y", hand.V, hand.O, hand.O, hand.V),
            hand.output("z", hand.O, hand.V, accumulate=True),
        ),
        (
            Assign(
                hand.at("y", "a", "j", "i", "b"),
                Prod((hand.at("x", "i", p, "b", "j"), hand.at("d", "b"))),
                coeff=hand.Fraction(-3, 2),
                band=(a, j, i, b),
            ),
        ),
        (
            Assign(
                hand.at("z", "i", "a"),
                hand.at("y", "a", "i", "i", "a"),
                accumulate=True,
                band=(i, a),
            ),
        ),
        dtype=dtype,
    )
    bound, program = on_gpu(module, {"o": 30, "v": 50})
    assert isinstance(bound.kernels[0].mapping, Transpose)
    for extents in ({"o": 3, "v": 5}, {"o": 33, "v": 2}, {"o": 2, "v": 40}, {"o": 1, "v": 1}):
        compare(module, bound, program, extents)
    mapping = bound.kernels[0].mapping

    def refused(match: str, **changes: Any) -> None:
        wrong = replace(bound.kernels[0], mapping=replace(mapping, **changes))
        with pytest.raises(VerifyError, match=mentions(match)):
            replace(bound, kernels=(wrong, *bound.kernels[1:])).verify()

    refused("operand", source=hand.at("d", "a"))
    refused("variables", row="b")
    refused("divide", threads=64 + 32, tile=64)


def test_the_largest_operand_of_another_order_is_transposed() -> None:
    """What does not hold the column is read once by all threads, whatever it runs along."""
    i, j, a = (BandVar(n, s) for n, s in zip("ija", (hand.O, hand.O, hand.V), strict=True))
    small, large = hand.at("w", "a", "i"), hand.at("x", "a", "j", "i")
    module = hand.module(
        "across",
        (
            hand.tensor("d", hand.O),
            hand.tensor("w", hand.V, hand.O),
            hand.tensor("x", hand.V, hand.O, hand.O),
            hand.output("y", hand.O, hand.O, hand.V),
            hand.output("z", hand.O, hand.O, hand.V),
        ),
        (
            Assign(
                hand.at("y", "i", "j", "a"),
                Prod((hand.at("d", "i"), small, large)),
                band=(i, j, a),
            ),
        ),
        (Assign(hand.at("z", "i", "j", "a"), hand.at("d", "i"), band=(i, j, a)),),
    )
    bound, program = on_gpu(module, {"o": 30, "v": 50})
    mapping = bound.kernels[0].mapping
    assert isinstance(mapping, Transpose)
    assert mapping.source == large
    assert isinstance(bound.kernels[1].mapping, Points)
    compare(module, bound, program, {"o": 9, "v": 5})


def test_shares_are_checked() -> None:
    bound = bind_gpu(permuted(), {"o": 10, "v": 30})
    (kernel,) = bound.kernels
    mapping = kernel.mapping
    assert isinstance(mapping, Tiles)

    def refused(match: str, **changes: Any) -> None:
        wrong = replace(kernel, mapping=replace(mapping, **changes))
        with pytest.raises(VerifyError, match=mentions(match)):
            replace(bound, kernels=(wrong,)).verify()

    refused("warps", threads_m=5)
    refused("divide", m=(replace(mapping.m[0], tile=12),))
    refused("stages", stages=1)
    refused("variables target", batch=("i",))
    refused("factor", m=mapping.n, n=mapping.m)
    refused("term product", terms=())
    refused("epilogue elements", terms=mapping.terms[:1])
    refused(
        "statement sums",
        terms=(replace(mapping.terms[0], k=("k",)), *mapping.terms[1:]),
    )
    with pytest.raises(VerifyError, match=mentions("one statement loops")):
        replace(bound, kernels=(replace(kernel, mapping=Points(128)),)).verify()
    with pytest.raises(VerifyError, match=mentions("GPU")):
        emit_artifact(permuted(), target="cuda")


def test_groups_of_elements_are_checked() -> None:
    """Only arrays that are walked in step may be read in groups, 16 bytes of each."""
    bound = bind_gpu(generated(hand.ALL["energy"]()), {"o": 10, "v": 30})
    kernels = {k.mapping: k for k in bound.kernels if isinstance(k.mapping, Points)}
    in_step, other = kernels[Points(256, 2)], kernels[Points(256)]
    for kernel, lanes in ((in_step, 4), (other, 2)):
        wrong = replace(kernel, mapping=Points(256, lanes))
        with pytest.raises(VerifyError, match=mentions("step 16 bytes")):
            replace(bound, kernels=(wrong,)).verify()


@pytest.mark.parametrize("name", ["energy", "tiles", "triangle", "permuted"])
def test_golden_text(name: str) -> None:
    module = permuted() if name == "permuted" else hand.ALL[name]()
    bound = bind_gpu(generated(module), {"o": 10, "v": 30})
    head, kernels = head_and_kernels(emit_artifact(bound, target="cuda").text("kernels.cu"))
    assert not_of_templates(head, "cuda") == []
    check_golden(f"emit/{name}.cu", kernels)
