"""Drop-ins where the cache, or every folder, cannot be used: one warning, and NumPy's numbers."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.bad_folders import FAULTS, noexec
from support.messages import mentions
from tcgen.compiler import target
from tcgen.contraction import programs
from tcgen.errors import CacheWarning, UnavailableError
from tcgen.lazy_arrays import compile as kernels
from tcgen.lazy_arrays import dispatch
from tcgen.runtime.cpu import private_folder

X = np.random.default_rng(0).random((40, 50))
SUMS = (X * X).sum(axis=1)
# None of these needs the contraction kernel, which takes a second to compile.
CALLS: dict[str, Callable[[], Any]] = {
    "einsum": lambda: tcgen.einsum("ij,ij->i", X, X),
    "lazy": lambda: (tcgen.lazy(X) * X).sum(axis=1).compute(),
    "contract": lambda: tcgen.contract("ij,ij->i", X, X, 1.0, 1.0, out=np.zeros(40)),
}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new cache, and a process that has compiled nothing."""
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", "0")
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.delenv("TCGEN_EINSUM_TARGET", raising=False)
    if target.default_target() != "cpu":
        pytest.skip("no C compiler")
    target.kernel_target()
    for kept in (programs.PROGRAMS, kernels.PROGRAMS, dispatch.FORMS):
        kept.clear()
    return tmp_path / "cache"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_cache_that_cannot_be_used_costs_one_warning(
    call: Callable[[], Any], fault: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FAULTS[fault](monkeypatch, cache)
    with pytest.warns(CacheWarning, match=mentions(f"{cache} TCGEN_CACHE_DIR")) as caught:
        np.testing.assert_allclose(call(), SUMS, rtol=1e-12)
    assert len(caught) == 1
    np.testing.assert_allclose(call(), SUMS, rtol=1e-12)


@pytest.fixture
def nowhere(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder takes libraries: neither the cache nor one for temporary files."""
    noexec(monkeypatch, tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(private_folder._Process, "objects", None)


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_without_any_folder_numpy_takes_over(call: Callable[[], Any]) -> None:
    tcgen.einsum_report(reset=True)
    with pytest.warns(RuntimeWarning, match=mentions("NumPy TCGEN_CACHE_DIR")) as caught:
        np.testing.assert_allclose(call(), SUMS, rtol=1e-12)
    assert len(caught) == 1
    np.testing.assert_allclose(call(), SUMS, rtol=1e-12)
    assert {row.reason for row in tcgen.einsum_report().rows} <= {"numpy"}


@pytest.mark.usefixtures("nowhere")
def test_kernels_that_were_asked_for_are_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")
    with pytest.raises(UnavailableError, match=mentions("TCGEN_CACHE_DIR")):
        tcgen.einsum("ij,ij->i", X, X)


@pytest.mark.usefixtures("cache")
def test_a_full_disk_in_the_middle_adds_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(**_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(private_folder.tempfile, "mkdtemp", no_room)
    out = np.ones(40)
    with pytest.warns(RuntimeWarning, match=mentions("NumPy TMPDIR")):
        tcgen.contract("ij,ij->i", X, X, 1.0, 1.0, out=out)
    np.testing.assert_allclose(out, 1 + SUMS, rtol=1e-12)
