"""Replaces the modelled way of each contraction by the one that is fastest on the GPU that is here.

Reads and makes a module (level 4) that is bound to a GPU. ``contraction_variants`` lists the ways:
the three tilings of least estimate, cuBLAS where layouts allow it, and cuTENSOR where it is
installed. ``timings`` measures them. Each contraction is benchmarked by itself, without the other
terms and the epilogue of its kernel, at extents that stand for a class; what was measured is kept
by GPU and class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median

from ..errors import UnavailableError
from ..hardware import CUBLAS, CUTENSOR
from ..ir.loops import Kernel, Module
from ..ir.pretty.loops import format_product
from ..ir.thread_mapping import Library
from ..lower.gpu.contraction_variants import (
    Variant,
    product_of,
    variant_benchmark,
    variants_of,
    with_variant,
)
from ..options import Options
from ..runtime.device_protocol import Gpu
from ..runtime.gpu.cupy_device import open_device
from .autotune import Choice, Tuned, with_comments
from .memory_limit import planned_use
from .timings import fastest_variant, time_variants


def tune_on_gpu(
    module: Module, options: Options, progress: Callable[[str], None] = lambda _: None
) -> Tuned:
    """Benchmark the ways of each contraction, and choose the fastest.

    Another one replaces that of the model only if it is at least 5 % faster. Where a memory limit
    or the objective bounds memory, ways that need more are left out.

    Args:
        module: bound to a GPU.
        options: extents, memory limit, objective, ``library`` and thresholds are used.
        progress: called with a line about each contraction before it is measured.

    Raises:
        BuildError: the GPU's compiler failed.
        UnavailableError: there is no GPU, or no CuPy.
    """
    device = open_device()
    bounded = options.memory_limit is not None or options.objective in ("memory", "peak")
    peak = planned_use(module, options).peak if bounded else None
    libraries = _libraries(device) if options.library else ()
    thresholds = options.thresholds.gpu
    choices = []
    for number, kernel in enumerate(module.kernels):
        buffers = {b.name: b for b in module.buffers}
        given = (buffers, options.extent_of, thresholds)
        variants: list[Variant] = [
            way
            for place, way in enumerate(variants_of(kernel, *given, libraries))
            if peak is None
            or place == 0
            or planned_use(_with(module, number, with_variant(kernel, way, *given)), options).peak
            <= peak
        ]
        if len(variants) < 2:
            continue
        product = format_product(product_of(kernel, buffers, options.extent_of))
        progress(f"measuring kernel {number + 1} of {len(module.kernels)}: {product}")
        rounds = time_variants(variant_benchmark(kernel, tuple(variants), *given))
        taken = variants[fastest_variant(rounds)]
        seconds = tuple(
            (str(way), median(times))
            for way, times in zip(variants, rounds, strict=True)
            if len(times) == len(rounds[0])
        )
        choices.append(Choice(kernel.name, product, str(variants[0]), str(taken), seconds))
        if taken != variants[0]:
            module = _with(module, number, with_variant(kernel, taken, *given))
    return Tuned(with_comments(module, choices), tuple(choices))


def _libraries(device: Gpu) -> tuple[Library, ...]:
    """cuBLAS, and cuTENSOR where it is installed."""
    try:
        device.load_library(CUTENSOR)
    except UnavailableError:
        return (Library(CUBLAS),)
    return Library(CUBLAS), Library(CUTENSOR)


def _with(module: Module, number: int, kernel: Kernel) -> Module:
    """The module with the kernel of that number replaced."""
    kernels = (*module.kernels[:number], kernel, *module.kernels[number + 1 :])
    return replace(module, kernels=kernels)
