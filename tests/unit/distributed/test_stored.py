"""References to arrays in files."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tcgen
from tcgen import ArgumentError, ShapeError, UnavailableError
from tcgen.distributed.handles import InFile
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
    np.testing.assert_array_equal(np.asarray(found, "float32"), np.arange(12.0).reshape(3, 4))
    assert tcgen.einsum("ij->", found) == 66


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
    with pytest.raises(ArgumentError, match="is not an HDF5 file"):
        tcgen.stored(tmp_path / "text.h5", "oo")


def test_a_missing_library_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(UnavailableError, match="pip install h5py"):
        tcgen.stored(file, "vv")


# h5py 3.16.0 with HDF5 2.0.0: a file that is open for writing is locked (BlockingIOError).
def test_a_file_that_is_open_for_writing_elsewhere_is_named(file: Path) -> None:
    program = "import h5py, sys; f = h5py.File(sys.argv[1], 'r+'); print(flush=True); input()"
    command = [sys.executable, "-c", program, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(ArgumentError, match=r"open for writing elsewhere.*close it there"):
            tcgen.stored(file, "vv")
        writer.kill()


# h5py 3.16.0: OSError, RuntimeError, KeyError or ValueError, by the place of the damage.
def test_damaged_files_are_read_or_refused_by_name(file: Path) -> None:
    content = file.read_bytes()
    for signature in (b"TREE", b"HEAP", b"SNOD"):
        assert signature in content
        file.write_bytes(content.replace(signature, b"XXXX"))
        with pytest.raises(ArgumentError, match=r"ints\.h5 is damaged, or is not"):
            tcgen.stored(file, "vv").read((slice(0, 3), slice(0, 4)))
    for cut in (0, 100, len(content) - 8):
        file.write_bytes(content[:cut])
        with pytest.raises(ArgumentError, match="is damaged, or is not"):
            tcgen.stored(file, "vv")
    np.save(file.with_suffix(".npy"), np.ones(1000))
    whole = file.with_suffix(".npy").read_bytes()
    file.with_suffix(".npy").write_bytes(whole[:500])
    with pytest.raises(ArgumentError, match="is damaged, or is not"):
        tcgen.stored(file.with_suffix(".npy"))


def test_a_data_set_without_a_shape_is_refused(tmp_path: Path) -> None:
    program = tcgen.compile("ij->", extents={"i": 3, "j": 4})
    with h5py.File(tmp_path / "a.h5", "w") as made:
        made["none"] = h5py.Empty("f8")
        with pytest.raises(ShapeError, match=r"x0.*holds no elements"):
            program(x0=made["none"])
    with pytest.raises(ArgumentError, match="'none' has no shape and holds no elements"):
        tcgen.stored(tmp_path / "a.h5", "none")


def test_the_byte_order_of_a_file_is_that_of_the_machine(tmp_path: Path) -> None:
    values = np.arange(12.0).reshape(3, 4)
    other = values.astype(values.dtype.newbyteorder())
    np.save(tmp_path / "x.npy", other)
    with h5py.File(tmp_path / "x.h5", "w") as made:
        made["x"] = other
    program = tcgen.compile("ij,ij->i", extents={"i": 3, "j": 4}, sliced=("x0",))
    expected = (values**2).sum(axis=1)
    with h5py.File(tmp_path / "x.h5", "r") as opened:
        assert opened["x"].dtype == other.dtype
        np.testing.assert_array_equal(program(x0=opened["x"], x1=values)["y"], expected)
    np.testing.assert_array_equal(program(x0=other, x1=values)["y"], expected)
    whole = tcgen.compile("ij,ij->i", extents={"i": 3, "j": 4})
    with ThreadPoolExecutor(2) as pool, tcgen.distribute(whole, pool) as run:
        for given in (tcgen.stored(tmp_path / "x.h5", "x"), tcgen.stored(tmp_path / "x.npy")):
            np.testing.assert_array_equal(run(x0=given, x1=values)["y"], expected)


def test_a_reference_in_a_plain_call_gets_the_advice_of_a_data_set(file: Path) -> None:
    program = tcgen.compile("ij->", extents={"i": 3, "j": 4})
    reference = tcgen.stored(file, "vv")
    with pytest.raises(ArgumentError, match=r'pass x0\[\.\.\.\], or compile with sliced=\("x0",\)'):
        program(x0=reference)
    assert program(x0=reference[...])["y"] == 66


def test_a_folder_for_arrays_without_room_is_named(tmp_path: Path) -> None:
    for value in (np.ones(3), "a program"):
        with pytest.raises(UnavailableError, match=r"none \(No such file.*scratch= a folder"):
            InFile.write(value, tmp_path / "none")
    program = tcgen.compile("ij,jk->ik", extents={"i": 3, "j": 4, "k": 2}, target="numpy")
    with ProcessPoolExecutor(1) as pool:
        run = tcgen.distribute(program, pool, along="i", scratch=tmp_path / "none")
        with pytest.raises(UnavailableError, match=r"none \(No such file.*scratch= a folder"):
            run(x0=np.ones((3, 4)), x1=np.ones((4, 2)))


# zarr 3.1.6, of which docs/distributed.md warns.
def test_zarr_cuts_off_and_drops_signs_of_complex_zeros() -> None:
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(store={}, shape=(2, 2), dtype="f8")
    array[...] = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(array[...], [[0, 1], [4, 5]])
    array = zarr.create_array(store={}, shape=(2,), dtype="c16")
    array[...] = np.full(2, complex(0.0, -0.0))
    assert not np.signbit(array[...].imag).any()
