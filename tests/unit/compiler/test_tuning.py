"""Measured variants of matrix products: their list, their times, and the choice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
import tcgen.emit
from support import hand_modules as hand
from support.command_line import invoke
from support.marks import slow, slow_where
from support.messages import mentions, says
from tcgen.compiler import timings
from tcgen.compiler.driver import Compilation, compile_system
from tcgen.compiler.timings import cached_times, fastest_variant, time_variants
from tcgen.compiler.tuning import tune_products
from tcgen.errors import ArgumentError, BuildError
from tcgen.frontend.einsum import LabelPattern, einsum_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import run_module
from tcgen.ir.expr import Access, Subscript
from tcgen.ir.loops import BandVar, Gemm, Loop, LoopVar, Module, PackingScheme
from tcgen.ir.pretty.loops import format_variant
from tcgen.ir.system import System
from tcgen.ir.tensor import Packing, Role, Storage
from tcgen.lower.cpu.product_variants import ProductBenchmark, product_benchmark, variants_of
from tcgen.lower.layout import CpuContext
from tcgen.options import Options
from tcgen.runtime.cpu.blas import set_threads
from tcgen.runtime.program import Program
from tcgen.thresholds import CpuThresholds

LABELS = {
    "in C order": "ab,bc->ac",
    "other axes between": "deba,ce->dcba",
    "rows transposed": "aebd,ce->dcba",
    "columns transposed": "dabe,ec->dcba",
    "both packed": "aged,cbfg->fedcba",
    "batch": "xaeb,xec->xcba",
}


@pytest.fixture(autouse=True)
def _times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds the times that another one has measured."""
    monkeypatch.setattr(timings, "_folder", lambda: tmp_path / "times")


def system_of(labels: str) -> tuple[System, list[str]]:
    """Equations of an einsum, and a letter for each of their spaces."""
    inputs, output = labels.split("->")
    letters = sorted(set(inputs) - {","})
    at = {c: n for n, c in enumerate(letters)}
    operands = tuple(tuple(at[c] for c in text) for text in inputs.split(","))
    return einsum_system(LabelPattern(operands, tuple(at[c] for c in output)), None), letters


def compiled(labels: str, extents: Mapping[str, int], **options: Any) -> Compilation:
    system, letters = system_of(labels)
    planning = {s.name: extents[c] for s, c in zip(system.spaces, letters, strict=True)}
    return compile_system(system, Options(extents=tuple(sorted(planning.items())), **options))


def product_of(module: Module) -> Gemm:
    (stmt,) = module.kernels[0].body
    assert isinstance(stmt, Gemm)
    return stmt


def buffers_of(module: Module) -> dict[str, Any]:
    return {b.name: b for b in module.buffers}


def variants(module: Module, extents: dict[str, int]) -> tuple[Gemm, ...]:
    """Every variant of the only product of a module."""
    return variants_of(product_of(module), CpuContext(buffers_of(module), extents, CpuThresholds()))


def benchmark(
    variants: tuple[Gemm, ...], module: Module, extents: dict[str, int]
) -> ProductBenchmark:
    """The program that measures variants of a product of a module."""
    return product_benchmark(variants, CpuContext(buffers_of(module), extents, CpuThresholds()))


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["float64", *slow("float32", "complex128")])
@pytest.mark.parametrize("name", slow_where(lambda name: name == "both packed", LABELS))
def test_all_variants_compute_the_same(name: str, dtype: str) -> None:
    """One program with a result for each variant, at planning extents, odd ones and ones."""
    labels = LABELS[name]
    extents = {c: 5 + n for n, c in enumerate(sorted(set(labels) - set(",->")))}
    made = compiled(labels, extents, dtype=dtype)
    product = product_of(made.module)
    candidates = variants(made.module, dict(made.plan.extents))
    assert candidates[0] == product
    assert len(candidates) >= (2 if dtype == "complex128" else 5)
    assert (None in [w.scheme for w in candidates]) == (labels == "ab,bc->ac")
    if dtype == "complex128":
        assert not any(w.scheme and w.scheme.stage for w in candidates)

    out = next(t for t in made.module.tensors if t.role is Role.OUTPUT)
    inputs = tuple(t for t in made.module.tensors if t.is_input)
    results = [replace(out, name=f"r{n}") for n in range(len(candidates))]
    bodies = [
        (replace(w, out=replace(w.out, buffer=r.name)),)
        for w, r in zip(candidates, results, strict=True)
    ]
    module = replace(
        hand.module("variants", (*inputs, *results), *bodies, dtype=dtype),
        spaces=made.module.spaces,
    )
    module.verify()
    program = Program(tcgen.emit.emit_artifact(module, target="cpu"))
    random = np.random.default_rng(1)
    for shift in (0, 8, None):
        now = {c: 1 if shift is None else n + shift for c, n in extents.items()}
        shapes = [[now[c] for c in text] for text in labels.split("->")[0].split(",")]
        operands = [(random.random(shape) - 0.5).astype(dtype) for shape in shapes]
        if dtype == "complex128":
            operands = [x * (1 - 2j) for x in operands]
        expected = np.einsum(labels, *operands, optimize=True)
        found = program(**{t.name: x for t, x in zip(inputs, operands, strict=True)})
        tolerance = 1e-4 if dtype == "float32" else 1e-12
        for name in (r.name for r in results):
            np.testing.assert_allclose(found[name], expected, rtol=tolerance, atol=tolerance)


def fused_product() -> tuple[Module, Gemm]:
    """A product inside a loop and a tile loop, of a slice, a tile and a triangle of rows.

    ``r[p,a,x] += v[j,p,x,c] * t[c,a]``, x of a tile by 4 of V, p a packed pair i >= k of O.
    """
    O, V, P = hand.O, hand.V, hand.P
    pair = Storage(packed=(Packing(1),))
    v = hand.tensor("v", O, O, O, V, P, storage=pair)
    t = hand.tensor("t", P, O)
    r = hand.tensor("s", O, O, V, O, role=Role.OUTPUT, storage=Storage(packed=(Packing(0),)))
    rows = (BandVar("i", O), BandVar("k", O, below="i"))
    x = BandVar("x", V, base="xt", tile=4)
    c = BandVar("c", V)
    part = Subscript("c", offset=(O,))
    product = Gemm(
        hand.at("s", "i", "k", "x", "a"),
        hand.at("v", "j", "i", "k", "x", part),
        Access("t", (part, Subscript("a"))),
        (),
        (*rows, x),
        (BandVar("a", O),),
        (c,),
        accumulate=True,
        scheme=PackingScheme(),
    )
    loops = Loop(LoopVar("xt", V, 4), (Loop(LoopVar("j", O), (product,)),))
    return hand.module("fused", (v, t, r), (hand_zero(r.name), loops)), product


def hand_zero(name: str) -> Any:
    from tcgen.ir.loops import Zero

    return Zero(name)


def test_a_product_alone_is_walked_with_the_strides_that_it_has_inside_loops() -> None:
    module, product = fused_product()
    extents = {"o": 5, "v": 7}
    made = benchmark((product,), module, extents)
    one = made.module
    one.verify()
    sizes = dict(made.extents)
    buffers = buffers_of(one)

    def lengths(name: str) -> list[int]:
        return [sum(sizes[s.name] for s in a.space.bases) for a in buffers[name].axes]

    # j is one element of an axis of 5; x a tile of 4, of an axis of 7; c 7 of 12 elements.
    assert lengths("left") == [5, 5, 5, 7, 12]
    assert lengths("right") == [7, 5]
    assert lengths("target") == [5, 5, 7, 5]
    random = np.random.default_rng(0)
    inputs = {
        "left": random.random((5, 15, 7, 12)),
        "right": random.random((7, 5)),
        "times0": np.zeros(3),
    }
    start = random.random((15, 7, 5))
    wanted = start.copy()
    wanted[:, :4] += 3 * np.einsum("pxc,ca->pxa", inputs["left"][0, :, :4, :7], inputs["right"])
    whole = {**sizes, "n0": 3}
    found = run_module(one, inputs, whole, out={"target": start.copy()})["target"]
    np.testing.assert_allclose(found, wanted)
    program = Program(tcgen.emit.emit_artifact(one, target="cpu", planning_extents=made.extents))
    np.testing.assert_allclose(
        program(**inputs, out={"target": start.copy()})["target"], wanted, rtol=1e-13
    )


def test_equal_products_of_two_programs_are_equal_modules() -> None:
    texts = set()
    for labels, names in (("ab,bc->ac", "abc"), ("pq,qr->pr", "pqr")):
        made = compiled(labels, {c: 40 + n for n, c in enumerate(names)})
        candidates = variants(made.module, dict(made.plan.extents))
        found = benchmark(candidates, made.module, dict(made.plan.extents))
        texts.add((found.module.pretty(), found.extents))
    assert len(texts) == 1


def test_what_is_too_large_to_be_timed_is_made_shorter_where_runs_stay_as_they_are() -> None:
    extents = dict(zip("abcdefg", (24, 16, 16, 24, 16, 16, 240), strict=True))
    made = compiled("aged,cbfg->fedcba", extents)
    candidates = variants(made.module, dict(made.plan.extents))
    found = benchmark(candidates, made.module, dict(made.plan.extents))
    found.module.verify()
    sizes = sorted(n for name, n in found.extents if name.startswith("s"))
    assert np.prod(sizes, dtype=float) * 2 <= 4e9
    assert sizes.count(24) == 2  # a and d, of stride 1
    assert 240 in sizes or 120 in sizes


def fake_clock(fast: Callable[[str], bool], calls: list[str]) -> timings.Timer:
    """A clock by which some variants take half as long as the others."""

    def clock(call: Callable[[], object], variant: str) -> float:
        calls.append(variant)
        call()
        return 0.5 if fast(variant) else 1.0

    return clock


def by_blas(variant: str) -> bool:
    return variant == "the BLAS"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Variants in the order of calls, timed by a clock for which the BLAS is twice as fast."""
    calls: list[str] = []
    monkeypatch.setattr(timings, "_clocked", fake_clock(by_blas, calls))
    return calls


def test_variants_run_in_turn_and_slow_ones_drop_out() -> None:
    made = compiled("ab,bc->ac", {"a": 40, "b": 30, "c": 50})
    candidates = variants(made.module, dict(made.plan.extents))
    assert candidates[0].scheme is None
    found = benchmark(candidates, made.module, dict(made.plan.extents))
    calls: list[str] = []
    both = ("rows of left, packs left, right", "rows of right, packs right, left")
    rounds = time_variants(found, fake_clock(lambda variant: variant in both, calls))
    full = [len(r) == 9 for r in rounds]
    fast = [variant in both for variant in found.variants]
    assert sum(fast) == 2
    assert full == [n == 0 or quick for n, quick in enumerate(fast)]
    assert rounds[0] == [1.0] * 9
    assert fastest_variant(rounds) == fast.index(True)
    # Two calls of each first; then the others only once those that are left have had their turn.
    turns = calls[2 * len(candidates) :]
    assert len(turns) == 9 * sum(full)
    assert all(turns[n] != turns[n + 1] for n in range(len(turns) - 1))
    again = time_variants(found, fake_clock(by_blas, []))
    assert again == rounds  # kept: nothing is measured
    for path in cached_times():
        path.write_text('{"the BLAS": [1.0]}')
    assert (
        fastest_variant(time_variants(found, fake_clock(by_blas, []))) == 0
    )  # damaged: measured anew
    try:
        set_threads(1)
        time_variants(found, fake_clock(by_blas, []))
    finally:
        set_threads(None)
    assert len(cached_times()) == 2  # one for each number of threads


def test_another_variant_must_be_clearly_faster() -> None:
    given = [1.0, 4.0, 1.0, 2.0]
    assert fastest_variant([given, [0.96, 3.84, 0.96, 1.9]]) == 0
    assert fastest_variant([given, [0.9, 3.6, 0.9, 9.0]]) == 0  # not in every fourth round
    assert fastest_variant([given, [0.9, 3.6, 0.9, 1.8], [0.8, 3.0, 0.8, 1.6]]) == 2
    assert fastest_variant([given, [0.1, 0.1]]) == 0  # dropped out


def test_tuning_takes_what_is_faster_and_says_so(measured: list[str], tmp_path: Path) -> None:
    extents = {"a": 3000, "b": 24, "c": 40}
    plain = compiled("ab,bc->ac", extents)
    assert product_of(plain.module).scheme is not None
    made = compiled("ab,bc->ac", extents, tune=True)
    assert product_of(made.module).scheme is None
    (choice,) = made.choices
    assert choice.taken == "the BLAS" != choice.model
    assert dict(choice.seconds)["the BLAS"] < dict(choice.seconds)[choice.model]
    comments = " ".join(made.artifact.text("kernels.c").replace(" * ", " ").split())
    assert f"measured: {choice.product} by the BLAS".replace(" * ", " ") in comments
    assert f"the BLAS (the model: {choice.model})" in made.artifact.text("report.html")
    assert "the BLAS: not rows of x1" in made.artifact.text("explain.txt")
    report = json.loads(made.artifact.text("report.json"))
    assert report["reproducible"] is False
    assert report["tuning"] == [choice.row(times=False)]
    assert "tuned" in dict(made.seconds)
    count = len(measured)
    assert compiled("ab,bc->ac", extents, tune=True).artifact == made.artifact
    assert len(measured) == count
    # Without it nothing is different, whatever was measured.
    assert compiled("ab,bc->ac", extents).artifact == plain.artifact
    assert "tuning" not in json.loads(plain.artifact.text("report.json"))
    x, y = np.random.default_rng(0).random((2, 300, 300))
    found = Program(made.artifact)(x0=x, x1=y)["y"]
    np.testing.assert_allclose(found, x @ y, rtol=1e-12)


def test_a_promise_of_memory_is_kept(measured: list[str]) -> None:
    """The kernel would pack; where memory is promised only the BLAS is left, and not measured."""
    extents = {"a": 40, "b": 50, "c": 60}
    for more in ({"memory_limit": 40 * 60 * 8}, {"objective": "peak"}):
        made = compiled("ab,bc->ac", extents, tune=True, **more)
        assert made.choices == ()
        assert product_of(made.module).scheme is None
    assert measured == []


SPEC = """
space o = 6
space v = 9
index i j k : o
index a b c : v
input f[v,v], g[o,o], t[o,v]
output r
r[i,a] = f[a,c]*t[i,c] - t[k,a]*g[k,i] + t[i,a]
"""


SQUARE = """
space o = 9
index i j k : o
input x[o,o]
output y
y[i,j] = x[i,k]*x[k,j]
"""


def test_variants_of_a_square_have_names_of_their_own() -> None:
    module = compile_system(read_spec(SQUARE), Options()).module
    candidates = variants(module, {"o": 9})
    assert len(candidates) > 5
    assert len({format_variant(variant) for variant in candidates}) == len(candidates)


@pytest.mark.slow
def test_equations_with_several_products(measured: list[str]) -> None:
    program = tcgen.compile(SPEC, tune=True)
    rows = program.report["tuning"]
    assert [r["taken"] for r in rows] == ["the BLAS"] * 2
    random = np.random.default_rng(0)
    f, g, t = random.random((9, 9)), random.random((6, 6)), random.random((6, 9))
    np.testing.assert_allclose(program(f=f, g=g, t=t)["r"], t @ f.T - g.T @ t + t, rtol=1e-12)


def test_products_inside_tiles_are_tuned_where_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    module, _ = fused_product()
    monkeypatch.setattr(timings, "_clocked", fake_clock(lambda variant: "staged" in variant, []))
    options = Options(extents=(("o", 5), ("v", 7)))
    made = tune_products(module, options)
    tuned = made.module
    tuned.verify()
    assert [c.product for c in made.choices] == ["s[i,k,x,a] += v[j,i,k,x,c+N_o] * t[c+N_o,a]"]
    assert made.choices[0].taken == "rows of v, packs v staged"
    random = np.random.default_rng(0)
    inputs = {"v": random.random((5, 15, 7, 12)), "t": random.random((12, 5))}
    expected = run_module(module, inputs, {"o": 5, "v": 7})["s"]
    found = run_module(tuned, inputs, {"o": 5, "v": 7})["s"]
    np.testing.assert_allclose(found, expected)
    program = Program(tcgen.emit.emit_artifact(tuned, target="cpu"))
    np.testing.assert_allclose(program(**inputs)["s"], expected, rtol=1e-12)


def test_the_command_line(measured: list[str], tmp_path: Path) -> None:
    spec = tmp_path / "r.spec"
    spec.write_text(SPEC)
    folder = tmp_path / "folder"
    report = json.loads(invoke("compile", spec, "--tune", "-o", folder, "--json").stdout)
    assert report["reproducible"] is False
    assert [set(row) for row in report["tuning"]] == [
        {"kernel", "product", "model", "taken", "seconds"}
    ] * 2
    kept = json.loads(invoke("report", folder, "--json").stdout)
    assert [row["taken"] for row in kept["tuning"]] == ["the BLAS"] * 2
    assert "seconds" not in kept["tuning"][0]
    assert "Matrix products, as measured" in invoke("report", folder).stdout
    assert "by the BLAS: as the model says" in invoke("explain", folder).stdout
    run = invoke("run", spec, "--tune", "--check", "--json")
    assert run.exit_code == 0
    assert json.loads(run.stdout)["reproducible"] is False
    info = json.loads(invoke("cache", "info", "--json").stdout)
    assert info["times"] == len(cached_times()) > 0
    refused = invoke("run", folder, "--tune")
    assert refused.exit_code == 2
    assert says(refused.stderr, "--tune nothing")
    cleared = invoke("cache", "clear").stdout
    assert f"and {info['times']} times" in cleared
    assert cached_times() == ()


def test_targets_without_variants_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ArgumentError, match=mentions("target numpy")):
        tcgen.compile("ij,jk->ik", extents={"i": 2, "j": 2, "k": 2}, target="numpy", tune=True)
    spec = tmp_path / "r.spec"
    spec.write_text(SPEC)
    assert invoke("compile", spec, "--target", "numpy", "--tune").exit_code == 2
    monkeypatch.setenv("TCGEN_CC", "/no/such/compiler")
    with pytest.raises(BuildError, match=mentions("C compiler")):
        tcgen.compile(SPEC, tune=True)
    refused = invoke("compile", spec, "--tune")
    assert refused.exit_code == 3
    assert says(refused.stderr, "C compiler")


@pytest.mark.slow
def test_einsum_is_tuned_where_the_environment_says_so(
    measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TUNE", "1")
    random = np.random.default_rng(0)
    # Extents are part of the key of measured times.
    for n in (33, 34, 33):
        x, y = random.random((n, 20)), random.random((20, 30))
        np.testing.assert_allclose(tcgen.einsum("ij,jk->ik", x, y), x @ y, rtol=1e-12)
    assert len(cached_times()) == 2
    monkeypatch.setenv("TCGEN_EINSUM_TUNE", "yes")
    with pytest.raises(ArgumentError, match=mentions("TCGEN_EINSUM_TUNE='yes' 0 1")):
        tcgen.einsum("ij,jk->ik", np.ones((9, 9)), np.ones((9, 9)))


@pytest.mark.slow
def test_this_machine_s_clock() -> None:
    """Times of real calls are positive, and the choice is one of the variants."""
    made = compiled("ab,bc->ac", {"a": 40, "b": 30, "c": 50}, tune=True)
    (choice,) = made.choices
    times = dict(choice.seconds)
    assert choice.taken in times
    assert all(0 < t < 10 for t in times.values())
