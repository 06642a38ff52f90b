"""Tiles give the same values by the matrix products of every architecture, or by shuffles."""

from __future__ import annotations

import shutil

import pytest

from support import cuda_compile
from support.cuda_compile import compile_cuda
from support.cuda_device import EmulatedDevice
from support.kernel_families import compiled, is_right
from support.marks import slow, slow_where

pytestmark = [
    pytest.mark.default_thresholds,
    pytest.mark.skipif(shutil.which("g++") is None, reason="no C compiler: the emulator needs g++"),
]
FAMILIES = ["tiles", "tiles in TF32", "tiles of complex numbers"]
SHUFFLES = 75  # the last architecture without matrix products of double precision


@pytest.mark.parametrize("arch", [SHUFFLES, *slow(80, 90)])
@pytest.mark.parametrize("name", FAMILIES)
def test_tiles_on_an_architecture(name: str, arch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: EmulatedDevice(arch))
    assert is_right(name)


@pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING)
@pytest.mark.parametrize("name", slow_where(lambda name: "complex" in name, FAMILIES))
def test_products_by_shuffles_compile(name: str) -> None:
    for use in compile_cuda(compiled(name)[1].text("kernels.cu"), SHUFFLES):
        assert use.stack == use.spills == 0, use.name
