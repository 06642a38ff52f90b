"""The time model: names of machines, products on them, and sources of the constants."""

from __future__ import annotations

import re
from dataclasses import fields
from fractions import Fraction

import pytest

import tcgen
from support.messages import mentions
from tcgen.dtypes import FLOAT64
from tcgen.options import Options
from tcgen.thresholds.time_model import (
    GPUS,
    CpuRates,
    GpuRates,
    Machine,
    ProductSize,
    default_machine,
    parse_machine,
    tile_cycles,
)


def slowness(machine: Machine, *sizes: int, dtype: str = "float64") -> Fraction:
    return Fraction(*machine.slowness(*sizes, dtype=dtype))


def test_a_name_then_constants_that_differ() -> None:
    assert parse_machine("H200") == GPUS["h200"]
    assert parse_machine("a100, call=3").call == 3
    assert parse_machine("a100,call=3").fma == GPUS["a100"].fma
    assert parse_machine("call=3", GPUS["h100"]).multiprocessors == 132
    for text in ("h300", "call=3,h100", "h100,speed=1", ""):
        with pytest.raises(tcgen.ArgumentError, match=mentions("machine h100 a100 flops")):
            parse_machine(text)


def test_a_gpu_is_planned_for_as_one() -> None:
    assert Options(target="cuda").constants == GPUS["h100"] == default_machine("cuda")
    assert Options(target="cpu").constants == Machine() == default_machine("numpy")
    limited = Options(target="cuda", objective="memory", machine="call=1")
    assert (limited.constants.call, limited.constants.bandwidth) == (1, GPUS["h100"].bandwidth)
    # A byte takes as long as the flops of four cores of a processor, or of the whole GPU.
    assert Options(target="cpu").byte_weight == 10
    assert Options(target="cpu", machine="bandwidth=1e10").byte_weight == 20
    assert Options(target="cuda", machine="flops=6e13").byte_weight == 20
    assert Options(byte_weight=3).byte_weight == 3


def test_products_on_a_processor() -> None:
    assert slowness(Machine(), 5, 2, 2, 4) == 8
    assert slowness(Machine(), 1, 10**6, 10**6, 10**6) < Fraction(100002, 100000)


def test_products_on_a_gpu() -> None:
    gpu = GPUS["h100"]
    large = slowness(gpu, 1, 2**14, 2**14, 2**12)
    assert 1 < large < Fraction(14, 10)  # cuBLAS reaches 0.84 of the flops
    # The tensor cores have fragments of 16 x 8 x 8 of double precision.
    assert slowness(gpu, 1, 2**14, 2**14, 2**12, dtype="float32") == 2 * large
    for real, products in enumerate((4, 2, 1)):  # factors of a complex product that are real
        wide = gpu.slowness(1, 2**14, 2**14, 2**12, dtype="complex128", real=real)
        assert Fraction(*wide) == products * large
    assert slowness(gpu, 1, 2**14, 7, 2**12) > 2 * slowness(gpu, 1, 2**14, 16, 2**12) > 2 * large
    # One tile keeps one multiprocessor busy, or as many as share its sum.
    alone, shared = slowness(gpu, 1, 128, 128, 64), slowness(gpu, 1, 128, 128, 2**13)
    assert alone > 2 * shared > 2 * large
    assert slowness(gpu, 132, 128, 128, 256) < 2 * large  # a batch fills it
    wave, more = (slowness(gpu, n, 128, 128, 2**12) * n for n in (132, 133))
    assert wave < more


@pytest.mark.parametrize("sizes", [(1, 300, 40, 64), (7, 130, 129, 50), (1, 20, 3000, 600)])
@pytest.mark.parametrize("parts", [2, 3, 10])
@pytest.mark.parametrize("axis", range(4))
def test_tiles_save_no_flops(sizes: tuple[int, ...], parts: int, axis: int) -> None:
    """The bound of the objective ``time`` is the time of whole steps."""
    tile = list(sizes)
    tile[axis] = -(-tile[axis] // parts)
    if min(tile) < 16 and sizes[axis] >= 16:
        return
    calls = -(-sizes[axis] // tile[axis])
    work = [Fraction(s[0] * s[1] * s[2] * s[3]) for s in (sizes, tile)]
    for machine in (Machine(), *GPUS.values()):
        whole = slowness(machine, *sizes) * work[0]
        assert whole <= calls * slowness(machine, *tile) * work[1]


def test_the_page_has_the_names() -> None:
    from tcgen.options import Planning, described

    (option,) = (f for f in fields(Planning) if f.name == "machine")
    info = described(option)
    assert info is not None
    assert all(re.search(rf"\b{name}\b", info.help) for name in GPUS)


@pytest.mark.parametrize("record", [CpuRates, GpuRates])
def test_every_fitted_constant_has_a_source(record: type) -> None:
    """An attribute says its unit and effect, and where its value comes from."""
    text = " ".join((record.__doc__ or "").split("Attributes:")[1].split())
    names = [constant.name for constant in fields(record)]
    starts = [text.index(f"{name}:") for name in names]
    for name, start, end in zip(names, starts, [*starts[1:], len(text)], strict=True):
        assert "Source:" in text[start:end] or "by definition" in text[start:end], name


def test_more_splits_of_a_sum_help_only_where_multiprocessors_are_idle() -> None:
    """One tile on 132 multiprocessors is faster in parts; tiles for all of them are not."""
    few, many = ProductSize(1, 64, 64, 4096, 1.0), ProductSize(1, 4096, 4096, 4096, 1.0)
    for size, faster in ((few, True), (many, False)):
        one, parts = (tile_cycles((64, 64), n, 2, size, FLOAT64, 132) for n in (1, 8))
        assert (parts < one) == faster
