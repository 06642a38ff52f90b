"""Replaces the modelled variant of each matrix product by the one that is fastest on this CPU.

Reads and makes a module (level 4). Lowering lists the variants, ``timings`` measures them. Each
product is benchmarked by itself at the planning extents; its arrays are in the caches or not as the
preceding product left them, and no other step of the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from ..ir.loops import Gemm, Kernel, Loop, Module, Stmt
from ..ir.pretty.loops import format_product, format_variant
from ..lower.cpu.product_variants import product_benchmark, variants_of
from ..options import Options
from .memory_limit import planned_use
from .timings import fastest_variant, time_variants


@dataclass(frozen=True, slots=True)
class Choice:
    """The variant that was chosen for one product.

    Attributes:
        kernel: name of the kernel that holds the product.
        product: the product as text.
        model: the variant that the cost model had chosen.
        taken: the variant that was chosen by measurement.
        seconds: median time of each variant that was measured in all rounds.
    """

    kernel: str
    product: str
    model: str
    taken: str
    seconds: tuple[tuple[str, float], ...]

    def row(self, *, times: bool) -> dict[str, Any]:
        """The choice as plain data; without times, equal choices give equal rows."""
        row: dict[str, Any] = {
            "kernel": self.kernel,
            "product": self.product,
            "model": self.model,
            "taken": self.taken,
        }
        return {**row, "seconds": dict(self.seconds)} if times else row


@dataclass(frozen=True, slots=True)
class Tuned:
    """A module with the fastest variants, and the choice for each product that has several."""

    module: Module
    choices: tuple[Choice, ...]


def tune(
    module: Module, options: Options, progress: Callable[[str], None] = lambda _: None
) -> Tuned:
    """Benchmark the variants of each matrix product, and choose the fastest.

    A variant replaces that of the model only if it is at least 5 % faster. Where a memory limit or
    the objective bounds memory, variants that need more are left out.

    Args:
        module: bound to the CPU.
        options: extents, memory limit, objective and thresholds are used.
        progress: called with a line about each product before it is measured.

    Raises:
        BuildError: there is no C compiler, or it failed.
    """
    bounded = options.memory_limit is not None or options.objective in ("memory", "peak")
    peak = planned_use(module, options).peak if bounded else None
    products = [(k.name, p) for k in module.kernels for p in _products(k.body)]
    choices = []
    for number, (kernel, product) in enumerate(products):
        progress(f"measuring product {number + 1} of {len(products)}: {format_product(product)}")
        buffers = {b.name: b for b in module.buffers}
        variants = [
            variant
            for variant in variants_of(product, buffers, options.extent_of, options.thresholds.cpu)
            if peak is None
            or variant == product
            or planned_use(_with(module, number, variant), options).peak <= peak
        ]
        if len(variants) == 1:
            continue
        rounds = time_variants(
            product_benchmark(variants, buffers, options.extent_of, options.thresholds.cpu)
        )
        taken = variants[fastest_variant(rounds)]
        seconds = tuple(
            (format_variant(variant), median(times))
            for variant, times in zip(variants, rounds, strict=True)
            if len(times) == len(rounds[0])
        )
        texts = (format_product(product), format_variant(product), format_variant(taken))
        choices.append(Choice(kernel, *texts, seconds))
        module = _with(module, number, taken)
    return Tuned(with_comments(module, choices), tuple(choices))


def _products(body: tuple[Stmt, ...]) -> Iterator[Gemm]:
    """The matrix products in program order."""
    for stmt in body:
        if isinstance(stmt, Loop):
            yield from _products(stmt.body)
        elif isinstance(stmt, Gemm):
            yield stmt


def _with(module: Module, number: int, variant: Gemm) -> Module:
    """The module with the product of that number replaced."""
    count = -1

    def replaced(stmt: Stmt) -> Stmt:
        nonlocal count
        if isinstance(stmt, Loop):
            return replace(stmt, body=tuple(map(replaced, stmt.body)))
        count += isinstance(stmt, Gemm)
        return variant if isinstance(stmt, Gemm) and count == number else stmt

    kernels = [replace(k, body=tuple(map(replaced, k.body))) for k in module.kernels]
    return replace(module, kernels=tuple(kernels))


def with_comments(module: Module, choices: Sequence[Choice]) -> Module:
    """The module whose kernels name the measured variants in a comment of the generated code."""

    def commented(kernel: Kernel) -> Kernel:
        lines = [f"measured: {c.product} by {c.taken}" for c in choices if c.kernel == kernel.name]
        return replace(kernel, comment=(*kernel.comment, *lines))

    return replace(module, kernels=tuple(map(commented, module.kernels)))
