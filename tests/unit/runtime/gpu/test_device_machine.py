"""Constants of predicted times from the properties of a device."""

from __future__ import annotations

from typing import Any

import pytest

import tcgen
from tcgen.compiler.target import for_machine
from tcgen.options import Options, Planning
from tcgen.runtime.gpu import cupy_device
from tcgen.runtime.gpu.cupy_device import machine_of
from tcgen.thresholds.time_model import GPUS, Machine


def facts(name: str, capability: tuple[int, int]) -> dict[str, Any]:
    major, minor = capability
    return {
        "name": name.encode(),
        "major": major,
        "minor": minor,
        "l2CacheSize": 6 * 2**20,
        "multiProcessorCount": 80,
        "sharedMemPerBlockOptin": 96 * 1024,
        "clockRate": 1_500_000,  # kHz
        "memoryClockRate": 1_000_000,  # kHz
        "memoryBusWidth": 4096,
    }


def test_a_named_gpu_has_its_own_multiprocessors() -> None:
    machine = machine_of(facts("NVIDIA H100 PCIe", (9, 0)))
    assert (machine.flops, machine.bandwidth) == (GPUS["h100"].flops, GPUS["h100"].bandwidth)
    assert (machine.multiprocessors, machine.cache) == (80, 6 * 2**20)
    assert machine_of(facts("NVIDIA A100-SXM4-80GB", (8, 0))).fma == GPUS["a100"].fma


@pytest.mark.parametrize(
    ("capability", "fma", "flops"),
    [
        ((7, 0), 768 * 10**10, 768 * 10**10),
        ((9, 0), 1536 * 10**10, 3072 * 10**10),
        ((8, 6), 48 * 10**10, 48 * 10**10),
    ],
)
def test_another_gpu_has_the_rates_of_its_clocks(
    capability: tuple[int, int], fma: int, flops: int
) -> None:
    machine = machine_of(facts("Some GPU", capability))
    assert (machine.fma, machine.flops) == (fma, flops)
    assert machine.bandwidth == 1024 * 10**9 * 9 // 10
    assert machine.line == 32


def test_plans_for_a_gpu_are_for_the_one_that_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    class Device:
        def properties(self) -> dict[str, Any]:
            return facts("NVIDIA H200", (9, 0))

    monkeypatch.setattr(cupy_device, "open_device", Device)
    here = machine_of(Device().properties())
    time = Planning(objective="time")
    assert for_machine(time, "cuda").machine == here
    changed = for_machine(Planning(objective="time", machine="call=5"), "cuda").machine
    assert isinstance(changed, Machine)
    assert (changed.call, changed.multiprocessors) == (5, 80)
    named = for_machine(Planning(objective="time", machine="a100"), "cuda").machine
    assert named == GPUS["a100"]
    assert for_machine(time, "cpu") is time
    # A byte's weight in factoring is that of the device, too.
    assert for_machine(Planning(objective="none"), "cuda").machine == here


def test_without_a_gpu_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise tcgen.UnavailableError("no GPU")

    monkeypatch.setattr(cupy_device, "open_device", missing)
    assert cupy_device.device_machine() is None
    time = Planning(objective="time")
    assert for_machine(time, "cuda") is time
    assert Options(target="cuda", objective="time").constants == GPUS["h100"]
