"""References to arrays in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcgen
from tcgen import ArgumentError, UnavailableError
from tcgen.distributed.stored import by_reference

h5py = pytest.importorskip("h5py")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ints.h5"
    with h5py.File(path, "w") as made:
        made["vv"] = np.arange(12.0).reshape(3, 4)
        made["group/ov"] = np.ones(2)
    return path


def test_a_reference_has_the_shape_and_reads_rectangles(file: Path) -> None:
    found = tcgen.stored(file, "vv")
    assert (found.shape, found.dtype, found.nbytes) == ((3, 4), "float64", 96)
    np.testing.assert_array_equal(found.read((slice(1, 2), slice(0, 3))), [[4, 5, 6]])
    assert tcgen.stored(file, "group/ov").shape == (2,)


def test_data_sets_become_references(file: Path) -> None:
    with h5py.File(file, "r") as opened:
        assert by_reference(opened["vv"]) == tcgen.stored(file, "/vv")


def test_zarr_arrays_become_references(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(store=str(tmp_path / "a.zarr"), mode="w")
    array = group.create_array("vv", shape=(3, 4), dtype="f8")
    array[...] = np.arange(12.0).reshape(3, 4)
    found = by_reference(array)
    np.testing.assert_array_equal(found.read((slice(2, 3), slice(0, 2))), [[8, 9]])
    with pytest.raises(ArgumentError, match="MemoryStore"):
        by_reference(zarr.ones(shape=(2,)))


def test_what_is_not_there_is_named(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"'oo'.*group, vv"):
        tcgen.stored(file, "oo")
    with pytest.raises(ArgumentError, match=r"none\.h5: no such file"):
        tcgen.stored(tmp_path / "none.h5", "oo")
    (tmp_path / "text.h5").write_text("no")
    with pytest.raises(ArgumentError, match="not an HDF5 file"):
        tcgen.stored(tmp_path / "text.h5", "oo")


def test_a_missing_library_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(UnavailableError, match="pip install h5py"):
        tcgen.stored(file, "vv")
