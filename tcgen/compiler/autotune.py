"""Ways to compute matrix products that were measured on this machine, in place of the model's.

Reads and makes a module (level 4). Which ways there are, lowering says; how long they take,
``way_times``. Each product is measured by itself at the planning extents, with the arrays that it
finds warm or cold as a call leaves them; what is around it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from ..ir.loops import Gemm, Kernel, Loop, Module, Stmt
from ..ir.pretty.loops import format_product, format_way
from ..lower.cpu.product_benchmark import product_benchmark
from ..lower.cpu.product_variants import variants_of
from ..options import Options
from .memory_limit import planned_use
from .timings import fastest_way, time_ways


@dataclass(frozen=True, slots=True)
class Choice:
    """The way that measurement took for a product.

    Attributes:
        kernel: in which it is.
        product: as text.
        model: the way that the model would have taken.
        taken: the way that was taken.
        seconds: medians of every way that was measured to the end.
    """

    kernel: str
    product: str
    model: str
    taken: str
    seconds: tuple[tuple[str, float], ...]

    def row(self, *, times: bool) -> dict[str, Any]:
        """As plain data; without times it is the same whenever the same way is taken."""
        found: dict[str, Any] = {
            "kernel": self.kernel,
            "product": self.product,
            "model": self.model,
            "taken": self.taken,
        }
        return {**found, "seconds": dict(self.seconds)} if times else found


def tune(
    module: Module,
    options: Options,
    choices: list[Choice],
    progress: Callable[[str], None] = lambda _: None,
) -> Module:
    """The module with the ways to compute its products that are fastest here.

    A way is another than the model's only where it is 5 % faster or more. Where a memory limit or
    the objective promises memory, ways that would take more are left out.

    Args:
        module: bound to the CPU.
        options: extents, memory limit and objective are used.
        choices: what was chosen is put there, for each product that has several ways.
        progress: is told which product is measured.

    Raises:
        BuildError: there is no C compiler, or it failed.
    """
    promised = options.memory_limit is not None or options.objective in ("memory", "peak")
    peak = planned_use(module, options).peak if promised else None
    found = [(k.name, p) for k in module.kernels for p in _products(k.body)]
    for number, (kernel, product) in enumerate(found):
        progress(f"measuring product {number + 1} of {len(found)}: {format_product(product)}")
        buffers = {b.name: b for b in module.buffers}
        ways = [
            way
            for way in variants_of(product, buffers, options.extent_of, options.thresholds.cpu)
            if peak is None
            or way == product
            or planned_use(_with(module, number, way), options).peak <= peak
        ]
        if len(ways) == 1:
            continue
        rounds = time_ways(
            product_benchmark(ways, buffers, options.extent_of, options.thresholds.cpu)
        )
        taken = ways[fastest_way(rounds)]
        seconds = tuple(
            (format_way(w), median(r))
            for w, r in zip(ways, rounds, strict=True)
            if len(r) == len(rounds[0])
        )
        texts = (format_product(product), format_way(product), format_way(taken))
        choices.append(Choice(kernel, *texts, seconds))
        module = _with(module, number, taken)
    return _noted(module, choices)


def _products(body: tuple[Stmt, ...]) -> Iterator[Gemm]:
    """Matrix products, in the order of the text."""
    for stmt in body:
        if isinstance(stmt, Loop):
            yield from _products(stmt.body)
        elif isinstance(stmt, Gemm):
            yield stmt


def _with(module: Module, number: int, way: Gemm) -> Module:
    """The module with another way to compute the product of that number."""
    count = -1

    def changed(stmt: Stmt) -> Stmt:
        nonlocal count
        if isinstance(stmt, Loop):
            return replace(stmt, body=tuple(map(changed, stmt.body)))
        count += isinstance(stmt, Gemm)
        return way if isinstance(stmt, Gemm) and count == number else stmt

    kernels = [replace(k, body=tuple(map(changed, k.body))) for k in module.kernels]
    return replace(module, kernels=tuple(kernels))


def _noted(module: Module, choices: list[Choice]) -> Module:
    """The module whose kernels say, above the generated code, what was measured."""

    def noted(kernel: Kernel) -> Kernel:
        lines = [f"measured: {c.product} by {c.taken}" for c in choices if c.kernel == kernel.name]
        return replace(kernel, comment=(*kernel.comment, *lines))

    return replace(module, kernels=tuple(map(noted, module.kernels)))
