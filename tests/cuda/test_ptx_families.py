"""The PTX of every family of kernels gives the interpreter's values, for sm_80 and sm_90."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from support import cuda_compile
from support.cuda_device import PtxDevice
from support.kernel_families import FAMILIES, compiled, is_right
from support.marks import slow
from support.ptx_engine.module import ptx_of
from tcgen.artifact.kernel_abi import NARROW_INTEGERS

pytestmark = [
    pytest.mark.few(1),
    pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING),
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the PTX engine needs g++"
    ),
]
# In every run, for sm_90:
FIRST = ("tiles", "tiles of complex numbers", "a sum", "transposed tiles", "an epilogue")
CASES = [
    pytest.param(name, arch, marks=[pytest.mark.slow] if arch == 80 or name not in FIRST else [])
    for name in FAMILIES
    for arch in (90, 80)
]


@pytest.mark.parametrize(("name", "arch"), CASES)
def test_the_ptx_of_a_family(name: str, arch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: PtxDevice(arch))
    assert is_right(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [FIRST[0], *slow(*FIRST[1:])])
def test_a_family_with_integers_of_64_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sources give the same values; which one is taken depends on the largest count."""
    sources: list[str] = []

    class Watched(PtxDevice):
        def module(self, code: str) -> Any:
            sources.append(code)
            return super().module(code)

    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: Watched(90))
    assert is_right(name)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.NARROW", 0)
    assert is_right(name)
    narrow, wide = sources
    assert narrow == f"{NARROW_INTEGERS}\n{wide}"


@pytest.mark.parametrize("name", ["tiles", "tiles of complex numbers"])
@pytest.mark.parametrize(("arch", "shape"), [(80, "m8n8k4"), (90, "m16n8k8")])
def test_tiles_use_the_matrix_products_of_their_architecture(
    arch: int, shape: str, name: str
) -> None:
    ptx = ptx_of(compiled(name)[1].text("kernels.cu"), arch)
    assert f"mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64" in ptx
    assert "cp.async" in ptx


@pytest.mark.parametrize("arch", [80, 90])
def test_singles_are_rounded_to_tf32_on_request_alone(arch: int) -> None:
    ptx = ptx_of(compiled("tiles in TF32")[1].text("kernels.cu"), arch)
    assert "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" in ptx
    assert "cvt.rna.tf32.f32" in ptx
    ptx = ptx_of(compiled("tiles of singles")[1].text("kernels.cu"), arch)
    assert "tf32" not in ptx
    assert "mma.sync" not in ptx
