"""The memory of the CPU as a device: where arrays start, and which ones kernels can take."""

from __future__ import annotations

import numpy as np
import pytest

from tcgen.records.arena import Block, place
from tcgen.runtime import host_device
from tcgen.runtime.host_device import HostDevice, address
from tcgen.runtime.memory import Ledger


@pytest.mark.parametrize("alignment", [1, 16, 64, 256])
@pytest.mark.parametrize("size", [0, 1, 100, 10_000])
def test_arenas_start_aligned_and_hold_their_layout(alignment: int, size: int) -> None:
    layout = place((Block("a", size, 0, 1), Block("b", size, 1, 1)), alignment)
    for _ in range(5):
        memory = HostDevice().arena(layout)
        assert memory.nbytes >= layout.extent
        assert size == 0 or address(memory) % alignment == 0


def test_copies_are_made_only_of_arrays_that_kernels_cannot_take() -> None:
    device = HostDevice()
    whole = np.arange(12.0).reshape(3, 4)
    unaligned = np.frombuffer(bytes(8 * 12 + 1), np.float64, 12, offset=1)
    assert device.contiguous(whole) is whole
    for array in (whole.T, whole[:, 1:], unaligned):
        assert not device.direct(array)
        copy = device.contiguous(array)
        assert device.direct(copy)
        np.testing.assert_array_equal(copy, array)


def test_large_arrays_come_from_the_pool_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_device, "MIN_POOLED_BYTES", 1000)
    for reuse in (False, True):
        device = HostDevice(reuse=reuse)
        ledger = Ledger(device, 7)
        small, large = ledger.array((3, 5), "float32"), ledger.array((50, 5), "float64")
        assert ledger.now == ledger.peak == 7 + small.nbytes + large.nbytes
        assert (large.base is not None) == reuse
        assert not reuse or address(large) % 64 == 0
        layout = place((Block("a", 100, 0, 0),))
        ledger.arena(layout)
        ledger.release(layout)
        assert ledger.peak == ledger.now + layout.total
