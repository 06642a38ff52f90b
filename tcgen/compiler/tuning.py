"""Replace each product's predicted variant by the fastest measured on this machine or its GPU.

Reads and makes a module (level 4). Lowering lists the variants, ``timings`` measures them. On a CPU
they are packing schemes and the BLAS. On a GPU they are the three tilings with the least estimates,
cuBLAS if the layouts allow it, and cuTENSOR if it is installed. Each product is benchmarked by
itself: its arrays are in the caches or not as the preceding call left them, and no other step of
the program runs. On a GPU, extents stand for a class of extents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from statistics import median
from typing import Any, TypeAlias

from ..errors import UnavailableError
from ..hardware import CUBLAS, CUTENSOR
from ..ir.loop_analysis import statements
from ..ir.loops import Gemm, Kernel, Loop, Module, Stmt
from ..ir.pretty.loops import format_product, format_variant
from ..ir.thread_mapping import Library
from ..lower.cpu import product_variants
from ..lower.cpu.product_variants import ProductBenchmark, product_benchmark
from ..lower.gpu import contraction_variants
from ..lower.gpu.contraction_variants import Variant, product_of, variant_benchmark, with_variant
from ..lower.layout import CpuContext, GpuContext
from ..options import Options
from ..runtime.device_protocol import Gpu
from ..runtime.gpu.cupy_device import open_device
from .limits import planned_use
from .timings import fastest_variant, time_variants


@dataclass(frozen=True, slots=True)
class Choice:
    """The variant that was chosen for one product.

    ``model`` is the choice of the cost model, ``taken`` that of the measurement; ``seconds`` has
    the median time of each variant that was measured in all rounds.
    """

    kernel: str
    product: str
    model: str
    taken: str
    seconds: tuple[tuple[str, float], ...]

    def row(self, *, times: bool) -> dict[str, Any]:
        """The choice as plain data; without times, equal choices give equal rows."""
        row = {name: getattr(self, name) for name in ("kernel", "product", "model", "taken")}
        return {**row, "seconds": dict(self.seconds)} if times else row


@dataclass(frozen=True, slots=True)
class Tuned:
    """A module with the fastest variants, and the choice for each product that has several."""

    module: Module
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class _CpuProduct:
    """A matrix product; ``number`` counts those of the module in program order."""

    kernel_name: str
    number: int
    product: Gemm
    context: CpuContext

    def text(self) -> str:
        return format_product(self.product)

    def variants(self) -> tuple[Gemm, ...]:
        """All variants, the predicted one first."""
        return product_variants.variants_of(self.product, self.context)

    def benchmark(self, variants: tuple[Any, ...]) -> ProductBenchmark:
        return product_benchmark(variants, self.context)

    def put(self, module: Module, variant: Any) -> Module:
        """The module with a variant in the product's place."""
        counter = count()

        def replaced(stmt: Stmt) -> Stmt:
            if isinstance(stmt, Loop):
                return replace(stmt, body=tuple(map(replaced, stmt.body)))
            return variant if isinstance(stmt, Gemm) and next(counter) == self.number else stmt

        kernels = [replace(k, body=tuple(map(replaced, k.body))) for k in module.kernels]
        return replace(module, kernels=tuple(kernels))


@dataclass(frozen=True, slots=True)
class _GpuProduct:
    """The contraction of a kernel; ``number`` is the kernel's in the module."""

    kernel: Kernel
    number: int
    libraries: tuple[Library, ...]
    context: GpuContext

    @property
    def kernel_name(self) -> str:
        return self.kernel.name

    def text(self) -> str:
        return format_product(product_of(self.kernel, self.context))

    def variants(self) -> tuple[Variant, ...]:
        """All variants, the predicted one first; none if the kernel is not a contraction."""
        return contraction_variants.variants_of(self.kernel, self.context, self.libraries)

    def benchmark(self, variants: tuple[Any, ...]) -> ProductBenchmark:
        return variant_benchmark(self.kernel, variants, self.context)

    def put(self, module: Module, variant: Any) -> Module:
        """The module with a variant in the kernel's place."""
        kernels = list(module.kernels)
        kernels[self.number] = with_variant(self.kernel, variant, self.context)
        return replace(module, kernels=tuple(kernels))


_Product: TypeAlias = _CpuProduct | _GpuProduct


def tune_products(
    module: Module, options: Options, progress: Callable[[str], None] = lambda _: None
) -> Tuned:
    """Benchmark the variants of each product, and choose the fastest.

    Another variant replaces that of the model only if it is at least 5 % faster. If a memory limit
    or the objective bounds memory, variants that need more are left out. The module is bound to the
    options' target. ``progress`` is called with a line about each product before it is measured.
    """
    bounded = options.memory_limit is not None or options.objective in ("memory", "peak")
    peak = planned_use(module, options).peak if bounded else None
    products = _products(module, options)
    choices = []
    for number, product in enumerate(products):
        variants = _within(peak, product, module, options)
        if len(variants) < 2:
            continue
        text = product.text()
        progress(f"measuring product {number + 1} of {len(products)}: {text}")
        rounds = time_variants(product.benchmark(variants))
        fastest = fastest_variant(rounds)
        names = [_name(variant) for variant in variants]
        seconds = tuple(
            (name, median(times))
            for name, times in zip(names, rounds, strict=True)
            if len(times) == len(rounds[0])
        )
        choices.append(Choice(product.kernel_name, text, names[0], names[fastest], seconds))
        if fastest:
            module = product.put(module, variants[fastest])
    return Tuned(_with_comments(module, choices), tuple(choices))


def _products(module: Module, options: Options) -> Sequence[_Product]:
    """The products of a module, in program order."""
    buffers, extents = {b.name: b for b in module.buffers}, options.extent_of
    if options.target == "cuda":
        libraries = _libraries(open_device(), options)
        on_gpu = GpuContext(buffers, extents, options.thresholds.gpu)
        return [_GpuProduct(k, n, libraries, on_gpu) for n, k in enumerate(module.kernels)]
    on_cpu = CpuContext(buffers, extents, options.thresholds.cpu)
    inside = ((k.name, stmt) for k in module.kernels for stmt, _ in statements(k.body))
    gemms = [(name, stmt) for name, stmt in inside if isinstance(stmt, Gemm)]
    return [_CpuProduct(name, n, gemm, on_cpu) for n, (name, gemm) in enumerate(gemms)]


def _libraries(device: Gpu, options: Options) -> tuple[Library, ...]:
    """cuBLAS, and cuTENSOR if it is installed; none if the options exclude libraries."""
    if not options.library:
        return ()
    try:
        device.load_library(CUTENSOR)
    except UnavailableError:
        return (Library(CUBLAS),)
    return Library(CUBLAS), Library(CUTENSOR)


def _within(
    peak: int | None, product: _Product, module: Module, options: Options
) -> tuple[Any, ...]:
    """The predicted variant, and the others whose calls need at most ``peak`` bytes."""
    variants = product.variants()
    if peak is None or len(variants) < 2:
        return variants
    first, *others = variants
    fitting = (v for v in others if planned_use(product.put(module, v), options).peak <= peak)
    return first, *fitting


def _name(variant: Gemm | Variant) -> str:
    return format_variant(variant) if isinstance(variant, Gemm) else str(variant)


def _with_comments(module: Module, choices: Sequence[Choice]) -> Module:
    """The module whose kernels name the measured variants in a comment of the generated code."""
    by_kernel: dict[str, list[str]] = {k.name: [] for k in module.kernels}
    for choice in choices:
        by_kernel[choice.kernel].append(f"measured: {choice.product} by {choice.taken}")
    kernels = (replace(k, comment=(*k.comment, *by_kernel[k.name])) for k in module.kernels)
    return replace(module, kernels=tuple(kernels))
