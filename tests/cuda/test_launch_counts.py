"""Launches of programs at the extents of real molecules, counted on a device that does nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcgen
from support.cuda_device import DeviceArray, EmulatedDevice
from tcgen.artifact.manifest import launches
from tcgen.compiler.driver import read_system
from tcgen.records.loops import stored_shape

pytestmark = [pytest.mark.slow, pytest.mark.default_thresholds]
EXTENTS = {"o": 30, "v": 200, "x": 600}
# The most launches of a call, by program and objective: those that reports count, and those with
# second passes, which add partial sums. Lower a bound when plans get better: the test prints what
# it counts.
MOST = {
    ("mp2_df", "none"): (2, 4),
    ("mp2_df", "time"): (40, 40),
    ("df_ladder", "none"): (8, 12),
    ("ccsd_closed_shell", "none"): (50, 60),
    ("t_closed_shell", "time"): (1_600, 1_800),
}


class IdleDevice(EmulatedDevice):
    """Takes arrays without pages, launches nothing and counts the launches."""

    def __init__(self) -> None:
        super().__init__()
        self.launches = 0

    def module(self, code: str) -> Any:
        device = self

        class Module:
            def get_function(self, name: str) -> Any:
                return Kernel()

        class Kernel:
            max_dynamic_shared_size_bytes = 0

            def __call__(self, grid: Any, block: Any, args: Any, shared_mem: int = 0) -> None:
                device.launches += 1

        return Module()

    def multiply(self, product: Any, out: Any, a: Any, b: Any) -> None:
        self.launches += 1

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        return np.empty(shape, dtype).view(DeviceArray)

    def put(self, array: Any) -> Any:
        return array.view(DeviceArray)


@pytest.mark.parametrize(("name", "objective"), MOST)
def test_launches_of_a_call(name: str, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = IdleDevice()
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
    system = read_system(tcgen.spec_path(name))
    extents = {s.name: EXTENTS[s.name] for s in system.spaces if not s.parts}
    program = tcgen.compile(system, extents=extents, target="cuda", objective=objective)
    manifest = program.manifest
    inputs = {
        entry.name: np.zeros(stored_shape(entry, extents)).view(DeviceArray)
        for entry in manifest.tensors
        if entry.role == "input"
    }
    program(**inputs)
    reported, launched = MOST[name, objective]
    counted = launches(manifest, extents)
    assert 0 < counted <= reported, counted
    assert counted <= device.launches <= launched, device.launches
