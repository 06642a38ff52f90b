"""Products of complex numbers, conjugated or real: no pass over memory, no product too many."""

from __future__ import annotations

import shutil
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

import tcgen
from support import cuda_compile, sass
from support import hand_modules as hand
from support.complex_products import PRIMES, random_products
from support.cuda_device import DEVICES, PtxDevice, device_named
from support.gpu_programs import compare
from support.marks import slow
from support.messages import mentions
from tcgen.artifact.kernel_abi import NARROW_INTEGERS
from tcgen.compiler.driver import compile_system
from tcgen.emit import emit_artifact
from tcgen.errors import VerifyError
from tcgen.frontend.spec.reader import read_spec
from tcgen.hardware import CUTENSOR
from tcgen.interp import evaluate_system
from tcgen.ir.expr import Call, Expr, Prod
from tcgen.ir.loops import Assign, BandVar, Module
from tcgen.ir.thread_mapping import Library, Tiles
from tcgen.lower.gpu.bind import bind_gpu
from tcgen.lower.gpu.contraction_variants import variant_benchmark, variants_of
from tcgen.lower.layout import GpuContext
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import random_arrays
from tcgen.thresholds import Thresholds
from tcgen.thresholds.gpu import GpuThresholds

pytestmark = [
    pytest.mark.few(2),
    pytest.mark.default_thresholds,
    pytest.mark.skipif(shutil.which("g++") is None, reason="no C compiler: the emulator needs g++"),
]
LARGE = {"o": 10, "v": 40}
SMALL = {"o": 3, "v": 3}  # no product pays by tiles
SEEDS = [*range(4), *slow(*range(4, 40))]


@pytest.fixture(autouse=True, params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = device_named(request.param)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)
    return found


def check(text: str, planned: dict[str, int], kernels: int) -> None:
    """The values at extents of 0, 1 and primes, by at most so many kernels."""
    system = read_spec(text)
    options = Options(
        extents=tuple(planned.items()),
        target="cuda",
        dtype="complex128",
        library=False,
        thresholds=Thresholds(),
    )
    program = Program(compile_system(system, options).artifact)
    assert len(program.manifest.kernels) <= kernels
    assert [b.name for b in program.manifest.buffers if b.place == "arena"] == []
    for o, v in ((0, 5), (3, 0), (1, 1), *PRIMES):
        extents = {"o": o, "v": v}
        inputs = random_arrays(system, extents, dtype="complex128", seed=o + v)
        expected = evaluate_system(system, inputs, extents, dtype="complex128")
        for name, values in program(**inputs).items():
            np.testing.assert_allclose(values, expected[name], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_products_by_tiles(seed: int) -> None:
    """One kernel conjugates, multiplies and adds all terms."""
    check(random_products(Random(seed)), LARGE, kernels=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_products_by_threads(seed: int) -> None:
    """One kernel for each term."""
    check(random_products(Random(seed)), SMALL, kernels=2)


@pytest.mark.slow
@pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING)
@pytest.mark.parametrize("arch", [90, 80])
@pytest.mark.parametrize("seed", [*range(2), *slow(*range(2, 12))])
def test_their_ptx(seed: int, arch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: PtxDevice(arch))
    check(random_products(Random(seed)), LARGE, kernels=1)


def product(first: Expr, second: Expr, *, real: str = "") -> Module:
    """``r[i,j] = first*second`` of t[i,a] and u[a,j], of which one may be real."""
    i, j, a = (BandVar(n, s) for n, s in zip("ija", (hand.O, hand.O, hand.V), strict=True))
    return hand.module(
        "product",
        (
            hand.tensor("t", hand.O, hand.V, real=real == "t"),
            hand.tensor("u", hand.V, hand.O, real=real == "u"),
            hand.output("r", hand.O, hand.O),
        ),
        (Assign(hand.at("r", "i", "j"), Prod((first, second)), Fraction(3, 2), band=(i, j, a)),),
        dtype="complex128",
    )


T, U = hand.at("t", "i", "a"), hand.at("u", "a", "j")
PRODUCTS = {
    "neither": product(T, U),
    "the first": product(Call("conj", T), U),
    "the second": product(T, Call("conj", U)),
    "both": product(Call("conj", T), Call("conj", U)),
    "the first, by a real one": product(Call("conj", T), U, real="u"),
    "the second, by a real one": product(T, Call("conj", U), real="t"),
    "a real one": product(Call("conj", T), U, real="t"),
}


@pytest.mark.parametrize("tensor_cores", [True, False])
@pytest.mark.parametrize("name", PRODUCTS)
def test_conjugated_and_real_factors(name: str, tensor_cores: bool) -> None:
    """Of the tensor cores, and of multiply-adds, which compute other types."""
    module = PRODUCTS[name]
    (kernel,) = bind_gpu(module, LARGE).kernels
    assert isinstance(kernel.mapping, Tiles)
    mapping = replace(kernel.mapping, tensor_cores=tensor_cores)
    bound = replace(bind_gpu(module, LARGE), kernels=(replace(kernel, mapping=mapping),))
    bound.verify()
    program = Program(emit_artifact(bound, target="cuda", planning_extents=tuple(LARGE.items())))
    called = "tc_multiply_by_warps" if tensor_cores else "tc_multiply_by_threads"
    assert f"{called}<16" in program.source
    for o, v in ((0, 5), (3, 0), (1, 1), *PRIMES, (19, 4)):
        compare(module, bound, program, {"o": o, "v": v})


@pytest.mark.slow
@pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING)
@pytest.mark.skipif(not sass.can_read(), reason=sass.MISSING)
@pytest.mark.parametrize("name", PRODUCTS)
def test_what_the_tensor_cores_multiply(name: str) -> None:
    """Four real products or two for one of complex numbers; their signs take no instruction."""
    loops = {}
    for other in (name, "neither"):
        bound = bind_gpu(PRODUCTS[other], {"o": 2000, "v": 2000})
        text = emit_artifact(bound, target="cuda", planning_extents=()).text("kernels.cu")
        cubin = cuda_compile.compiled(f"{NARROW_INTEGERS}\n{text}", 90, "cubin")
        (machine_code,) = sass.kernels_of(cubin).values()
        assert machine_code.stack == 0
        loops[other] = machine_code.main_loop()
    (kernel,), found, plain = bound.kernels, loops[name], loops["neither"]
    assert isinstance(kernel.mapping, Tiles)
    assert found is not None
    assert plain is not None
    each_m, each_n = kernel.mapping.per_thread
    whole = 4 * each_m // 2 * each_n // 2 * kernel.mapping.tile_k // 8
    assert plain.products == whole
    if "real" in name:
        assert found.products == whole // 2
    else:
        assert (found.products, found.path) == (plain.products, plain.path)


def test_factors_of_tiles_are_elements() -> None:
    bound = bind_gpu(PRODUCTS["both"], LARGE)
    (kernel,) = bound.kernels
    (stmt,) = kernel.body
    assert isinstance(stmt, Assign)
    for wrong in (Call("abs", T), Call("conj", Call("conj", T)), Prod((T, T))):
        changed = replace(stmt, expr=Prod((wrong, U)))
        with pytest.raises(VerifyError, match=mentions("product elements arrays")):
            replace(bound, kernels=(replace(kernel, body=(changed,)),)).verify()


SQUARE = """
space p
index i j k : p
input t[p,p], w[p,p]{kind}
output r
r[i,j] = t[i,k]*w[k,j]
"""


@pytest.mark.parametrize(("kind", "products"), [("", 1), (" real", 0)])
def test_generated_tiles_multiply_real_factors(kind: str, products: int) -> None:
    """They do half of the work of the library, which would convert the factor."""
    program = tcgen.compile(
        SQUARE.format(kind=kind), extents={"p": 4096}, target="cuda", dtype="complex128"
    )
    assert len(program.report["library"]) == products


@pytest.mark.parametrize("name", PRODUCTS)
def test_libraries_do_not_conjugate(name: str) -> None:
    """Tuning measures a conjugated product by tiles alone, and one with a real factor, too."""
    bound = bind_gpu(PRODUCTS[name], LARGE)
    (kernel,), buffers = bound.kernels, {b.name: b for b in bound.buffers}
    context = GpuContext(buffers, LARGE, GpuThresholds())
    found = variants_of(kernel, context, (Library(), Library(CUTENSOR)))
    assert any(isinstance(v, Library) for v in found) == (name == "neither")
    benchmark = variant_benchmark(kernel, found, context)
    benchmark.module.verify()
    assert len(benchmark.module.kernels) == len(found)
