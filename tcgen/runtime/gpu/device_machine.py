"""The constants of predicted times of the GPU that is here, from its own properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...errors import UnavailableError
from ...hardware import SECTOR_BYTES
from ...thresholds.time_model import COPIED_SHARE, GPUS, Machine
from .cupy_device import open_device

_FLOPS_PER_FMA = 2
# Multiply-adds of double precision in a clock of one multiprocessor, by compute capability.
_FMAS = {(6, 0): 32, (7, 0): 32, (8, 0): 32, (9, 0): 64, (10, 0): 64}
_OTHER_FMAS = 2  # of GPUs for graphics
_TENSOR_CORES = (8, 0)  # first capability whose tensor cores double the rate, where FMAs are many


def device_machine() -> Machine | None:
    """Constants of the current GPU of CuPy; None where there is no GPU, or no CuPy."""
    try:
        device = open_device()
    except UnavailableError:
        return None
    return machine_of(device.properties())


def machine_of(facts: Mapping[str, Any]) -> Machine:
    """Constants from the properties that the CUDA runtime has of a device.

    Rates of a GPU in :data:`tcgen.thresholds.time_model.GPUS` are the ones there; those of others
    follow from clocks.

    Args:
        facts: what ``cupy.cuda.runtime.getDeviceProperties`` returns.
    """
    own = {
        "cache": int(facts["l2CacheSize"]),
        "multiprocessors": int(facts["multiProcessorCount"]),
        "shared": int(facts["sharedMemPerBlockOptin"]),
    }
    words = facts["name"].decode().lower().replace("-", " ").split()
    known = next((GPUS[word] for word in words if word in GPUS), None)
    if known is not None:
        return replace(known, **own)
    capability = (int(facts["major"]), int(facts["minor"]))
    fmas = _FMAS.get(capability, _OTHER_FMAS)
    fma = own["multiprocessors"] * fmas * _FLOPS_PER_FMA * int(facts["clockRate"]) * 1000
    tensor = capability >= _TENSOR_CORES and fmas > _OTHER_FMAS
    part, whole = COPIED_SHARE
    moved = 2 * int(facts["memoryClockRate"]) * 1000 * int(facts["memoryBusWidth"]) // 8
    usual = GPUS["h100"]
    return Machine(
        flops=max(1, 2 * fma if tensor else fma),
        bandwidth=max(1, moved * part // whole),
        call=usual.call,
        line=SECTOR_BYTES,
        fma=max(1, fma),
        **own,
    )
