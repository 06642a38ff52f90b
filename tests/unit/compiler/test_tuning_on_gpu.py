"""Contractions are computed in the variant that is fastest, here on a device with chosen times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.command_line import invoke
from support.cuda_device import EmulatedDevice
from support.marks import slow
from support.messages import mentions, says
from tcgen.compiler import timings
from tcgen.compiler.driver import Compilation, compile_system, read_system
from tcgen.compiler.timings import cached_times
from tcgen.errors import ArgumentError, UnavailableError
from tcgen.frontend.einsum import subscripts_system
from tcgen.interp import evaluate_system
from tcgen.ir.thread_mapping import Library, Tiles
from tcgen.lower.gpu.contraction_variants import extent_class
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import assert_same_values, random_arrays, split_starts
from tcgen.thresholds import GpuThresholds, Thresholds

# Benchmarks of a few numbers, so that the emulator is done soon.
SMALL = Thresholds(gpu=GpuThresholds(benchmark_flops=2**14, benchmark_elements=2**10))


class Clock:
    """Chosen times: a variant takes a second, or half of one if its name has one of some words."""

    def __init__(self) -> None:
        self.fast: tuple[str, ...] = ()
        self.runs = True
        self.calls: list[str] = []

    def __call__(self, call: Any, variant: str) -> float:
        if self.runs and variant not in self.calls:
            call()  # once is enough to see that it runs
        self.calls.append(variant)
        return 0.5 if any(word in variant for word in self.fast) else 1.0


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of a device with chosen times; nothing was measured before."""
    made = Clock()
    monkeypatch.setattr(timings, "_folder", lambda: tmp_path / "times")
    monkeypatch.setattr(timings, "_clocked", made)
    for module in ("tcgen.compiler.tuning", "tcgen.runtime.gpu.backend"):
        monkeypatch.setattr(f"{module}.open_device", EmulatedDevice)
    return made


def made(subscripts: str, extents: dict[str, int], **options: Any) -> Compilation:
    options = {"target": "cuda", "tune": True, "thresholds": SMALL, **options}
    chosen = Options(extents=tuple(sorted(extents.items())), **options)
    return compile_system(subscripts_system(subscripts), chosen)


def check(compilation: Compilation, subscripts: str, extents: dict[str, int]) -> None:
    random = np.random.default_rng(0)
    x, y = (
        random.standard_normal([extents[c] for c in text])
        for text in subscripts.partition("->")[0].split(",")
    )
    found = Program(compilation.artifact)(x0=x, x1=y)["y"]
    np.testing.assert_allclose(found, np.einsum(subscripts, x, y), rtol=1e-11, atol=1e-11)


EXTENTS = {"a": 60, "b": 70, "c": 50}


@pytest.mark.slow
def test_the_fastest_of_three_tilings_and_the_library_is_taken(clock: Clock) -> None:
    plain = made("ab,bc->ac", EXTENTS, tune=False)
    same = made("ab,bc->ac", EXTENTS)
    (choice,) = same.choices
    variants = dict(choice.seconds)
    assert len(variants) == 5
    assert sum(variant.startswith("tiles of ") for variant in variants) == 3
    assert {"cuBLAS", "cuTENSOR"} <= set(variants)
    assert choice.taken == choice.model == next(iter(variants))
    assert same.module.kernels[0].mapping == plain.module.kernels[0].mapping
    for word in [*variants][2:]:
        clock.fast = (word,)
        for path in cached_times():
            path.unlink()
        other = made("ab,bc->ac", EXTENTS)
        assert other.choices[0].taken == word
        (kernel,) = other.module.kernels
        mapping = kernel.mapping
        assert isinstance(mapping, Library) == (word in ("cuBLAS", "cuTENSOR"))
        if isinstance(mapping, Tiles):
            assert f"tiles of {mapping.tile_m} x {mapping.tile_n}" in word
        assert f"measured: {choice.product} by {word}" in kernel.comment[-1]
        other.module.verify()
        check(other, "ab,bc->ac", {"a": 7, "b": 9, "c": 11})
    report = json.loads(other.artifact.text("report.json"))
    assert report["reproducible"] is False
    assert report["tuning"] == [other.choices[0].row(times=False)]


def test_times_are_kept_by_device_libraries_and_class_of_extents(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.runs = False
    monkeypatch.setattr(EmulatedDevice, "module", lambda *_: None)
    gpu = GpuThresholds(benchmark_flops=2**40, benchmark_elements=2**20)
    options = {"thresholds": Thresholds(gpu=gpu)}
    extents = {"a": 200, "b": 70, "c": 50}
    made("ab,bc->ac", extents, **options)
    count = len(clock.calls)
    assert count
    made("ab,bc->ac", extents | {"a": 204}, **options)
    made("ij,jk->ik", {"i": 200, "j": 70, "k": 50}, **options)  # the same one by other names
    assert len(clock.calls) == count
    made("ab,bc->ac", extents | {"b": 71}, **options)  # rows are no longer aligned
    assert len(clock.calls) == 2 * count
    monkeypatch.setattr(EmulatedDevice, "describe", lambda _: "another GPU")
    made("ab,bc->ac", extents, **options)
    assert len(clock.calls) == 3 * count
    for number, library in enumerate(("cuBLAS", "cuTENSOR"), 4):
        versions = {library: "another version"}
        monkeypatch.setattr(EmulatedDevice, "load_library", lambda _, n, v=versions: v.get(n, n))
        made("ab,bc->ac", extents, **options)
        assert len(clock.calls) == number * count
        assert len(cached_times()) == number


def test_classes_of_extents() -> None:
    assert all(extent_class(n) == n for n in range(1, 16))
    for n in range(1, 3000):
        coarse = extent_class(n)
        assert coarse <= n < coarse * 1.15 + 1
        assert coarse % 4 == n % 4
        assert extent_class(coarse) == coarse


@pytest.mark.slow
def test_products_of_the_library_may_become_tiles(clock: Clock) -> None:
    clock.fast = ("tiles",)
    eager = GpuThresholds(
        launch_bytes=0, library_percent=100, tensor_percent=1, blocked_percent=1, tile_percent=1,
        benchmark_flops=2**14, benchmark_elements=2**10,
    )  # fmt: skip
    extents = {"d": 9, "f": 8, "a": 10, "e": 7, "c": 11, "b": 12}
    options = {"thresholds": Thresholds(gpu=eager)}
    plain = made("dfae,cebf->dcba", extents, tune=False, **options)
    assert any(isinstance(k.mapping, Library) for k in plain.module.kernels)
    tuned = made("dfae,cebf->dcba", extents, **options)
    assert [c.model for c in tuned.choices] == ["cuBLAS"]
    assert not any(isinstance(k.mapping, Library) for k in tuned.module.kernels)
    assert len(tuned.module.kernels) == len(plain.module.kernels)
    check(tuned, "dfae,cebf->dcba", dict(zip("dfaecb", (3, 4, 5, 6, 7, 8), strict=True)))
    generated = made("dfae,cebf->dcba", extents, library=False, **options)
    assert not {"cuBLAS", "cuTENSOR"} & {
        variant for c in generated.choices for variant in dict(c.seconds)
    }


def test_contractions_go_to_cutensor_where_it_is_installed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any layout, inside loops of the host, and not where another statement shares the tile."""
    clock.fast, clock.runs = ("cuTENSOR",), False
    monkeypatch.setattr(EmulatedDevice, "module", lambda *_: None)
    extents = {"a": 20, "b": 12, "c": 14, "d": 18, "e": 10}
    tuned = made("aebd,ce->dcba", extents)
    assert [c.taken for c in tuned.choices] == ["cuTENSOR"]
    (row,) = tuned.artifact.json("report.json")["library"]
    assert row["library"] == "cuTENSOR"
    assert "cuTENSOR: y[d,c,b,a]" in tuned.artifact.text("kernels.cu")
    tuned.module.verify()
    for lengths in ((2, 3, 4, 5, 6), (1, 1, 1, 1, 1), (3, 2, 0, 2, 3), (3, 2, 2, 2, 0)):
        check(tuned, "aebd,ce->dcba", dict(zip("abcde", lengths, strict=True)))

    def missing(_: Any, name: str) -> str:
        if name == "cuTENSOR":
            raise UnavailableError("it is not installed")
        return name

    monkeypatch.setattr(EmulatedDevice, "load_library", missing)
    for path in cached_times():
        path.unlink()
    without = made("aebd,ce->dcba", extents)
    assert all("cuTENSOR" not in dict(c.seconds) for c in without.choices)
    with pytest.raises(UnavailableError, match="not installed"):
        Program(tuned.artifact).build()


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [("mp2_df", {}), *slow(("df_ladder", {"objective": "time", "memory_limit": 6 * 2**20}))],
)
def test_specs_equal_the_interpreter(case: tuple[str, dict[str, Any]], clock: Clock) -> None:
    """With epilogues, several terms, and host loops over tiles."""
    name, options = case
    clock.fast = ("x 32", "x 48", "x 80", "cuTENSOR")
    system = read_system(tcgen.spec_path(name))
    bases = [s.name for s in system.spaces if not s.parts]
    planned = tuple(sorted((n, {"o": 20, "v": 40}.get(n, 90)) for n in bases))
    asked = Options(extents=planned, target="cuda", tune=True, thresholds=SMALL, **options)
    compilation = compile_system(system, asked)
    compilation.module.verify()
    assert compilation.choices
    extents = {n: {"o": 3, "v": 5}.get(n, 7) for n in bases}
    inputs, starts = split_starts(system, random_arrays(system, extents, seed=1))
    expected = evaluate_system(system, inputs, extents, out=starts)
    out = {n: np.array(a) for n, a in starts.items()}
    assert_same_values(Program(compilation.artifact)(**inputs, out=out), expected, rtol=1e-10)


def test_a_promise_of_memory_is_kept(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits of sums take scratch, and variants that take more than the model's are left out."""
    clock.runs = False
    monkeypatch.setattr(EmulatedDevice, "module", lambda *_: None)
    extents = {"a": 300, "b": 1000, "c": 300}

    def peak(compilation: Compilation) -> int:
        return Program(compilation.artifact).peak_bytes(extents)

    def tuned(**options: Any) -> Compilation:
        for path in cached_times():
            path.unlink()
        return made("ab,bc->ac", extents, library=False, **options)

    usual = peak(tuned(tune=False))
    larger = 0
    for variant in dict(tuned().choices[0].seconds):
        clock.fast = (variant,)
        larger += peak(tuned()) > usual
        assert peak(tuned(memory_limit=2**40)) <= usual
    assert larger


def test_without_a_gpu_tuning_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=mentions("CuPy")):
        tcgen.compile("ij,jk->ik", extents=dict.fromkeys("ijk", 2), target="cuda", tune=True)
    spec = tmp_path / "r.spec"
    spec.write_text("space o = 9\nindex i j : o\ninput x[o,o]\noutput y\ny[i,j] = x[i,j]\n")
    refused = invoke("compile", spec, "--target", "cuda", "--tune")
    assert refused.exit_code == 3
    assert says(refused.stderr, "CuPy")
    with pytest.raises(ArgumentError, match=mentions("target numpy cuda")):
        tcgen.compile("ij,jk->ik", extents=dict.fromkeys("ijk", 2), target="numpy", tune=True)
