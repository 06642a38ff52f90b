"""Products of single precision on tensor cores, which round their factors to TF32 on request."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import tcgen
from support.command_line import MP2, invoke
from support.cuda_device import DEVICES, device_named
from support.messages import mentions, says
from tcgen.errors import ArgumentError
from tcgen.runtime.program import Program

pytestmark = [
    pytest.mark.few(2),
    pytest.mark.default_thresholds,
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
    ),
]
ROUNDED = {"target": "cuda", "dtype": "float32", "tf32": True}
CASES = {
    "ab": ("ik,kj->ij", "ijk"),
    "atb": ("ki,kj->ij", "ijk"),
    "abt": ("ik,jk->ij", "ijk"),
    "atbt": ("ki,jk->ji", "ijk"),
    "blocks of k": ("dfae,cebf->dcba", "abcdef"),
    "a batch": ("xki,jxk->xij", "ijkx"),
}


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = device_named(request.param)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)
    return found


def made(name: str, **options: Any) -> Program:
    subscripts, labels = CASES[name]
    planned = dict.fromkeys(labels, 256 if len(labels) < 6 else 24)
    return tcgen.compile(subscripts, extents=planned, **options)


@pytest.mark.parametrize("name", CASES)
def test_products(name: str, device: Any) -> None:
    """Right to three digits, and no more: at one, primes, and where neighbours are copied."""
    subscripts, labels = CASES[name]
    extents = (1, 4, 5) if len(labels) > 4 else (1, 7, 36, 67)
    program = made(name, **ROUNDED)
    assert "tc_multiply_by_warps<" in program.source
    random = np.random.default_rng(5)
    first, second = subscripts.split("->")[0].split(",")
    errors = []
    for extent in extents:
        a, b = (
            random.random([extent + (extent % 2 and x in "ijab") for x in factor], np.float32)
            - np.float32(0.5)
            for factor in (first, second)
        )
        wanted = np.einsum(subscripts, a.astype(float), b.astype(float))
        found = program(x0=a, x1=b)["y"]
        errors.append(np.max(np.abs(found - wanted)) / np.max(np.abs(wanted)))
    assert max(errors) < 1e-3
    assert max(errors) > 1e-6


def test_nothing_is_multiplied_for_an_extent_of_zero(device: Any) -> None:
    program = made("ab", **ROUNDED)
    a, b = np.ones((5, 0), np.float32), np.ones((0, 3), np.float32)
    np.testing.assert_array_equal(program(x0=a, x1=b)["y"], np.zeros((5, 3)))


def test_it_is_written_down() -> None:
    rounded, exact = made("ab", **ROUNDED), made("ab", target="cuda", dtype="float32")
    assert rounded.artifact.manifest.tf32
    assert rounded.report["tf32"] is True
    assert rounded.report["library"] == []
    assert not exact.artifact.manifest.tf32
    assert "tf32" not in exact.report
    assert "tc_multiply_by_warps<" not in exact.source


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"target": "cpu", "dtype": "float32"}, "tf32 cpu float32 cuda"),
        ({"target": "cuda"}, "tf32 float64 float32"),
        ({"target": "cuda", "dtype": "complex128"}, "tf32 complex128 float32"),
        ({"target": "cuda", "dtype": "float32", "tune": True}, "tune tf32"),
        ({"target": "cuda", "dtype": "float32", "tf32": 1}, "tf32=1 True False"),
    ],
)
def test_where_it_has_no_effect(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=mentions(said)):
        made("ab", **{"tf32": True, **options})


def test_the_command_line() -> None:
    asked = ("explain", MP2, "-e", "o=8", "-e", "v=40", "--target", "cuda", "--tf32")
    done = invoke(*asked, "--dtype", "float32")
    assert done.exit_code == 0
    assert says(done.output, "TF32 float32 11")
    refused = invoke(*asked)
    assert refused.exit_code == 2
    assert says(refused.output, "tf32 float64 float32")
