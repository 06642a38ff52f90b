"""Blocked arrays: conversion, blocks, files, text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcgen

GRADING = tcgen.Grading.from_orbsym("C2v", o=[3, 0, 2, 0, 2], v=[1, 0, 0, 3, 2, 3])
MOMENTA = tcgen.Grading((3,), {"o": [2, 0, 1], "v": [1, 1, 0, 2, 0]})


def allowed(grading: tcgen.Grading, spaces: str, signs: tuple[int, ...], charge: int) -> np.ndarray:
    """Which elements of a dense array are not forbidden, element by element."""
    shape = [len(grading.orbitals(s)) for s in spaces]
    found = np.zeros(shape, bool)
    for place in np.ndindex(*shape):
        total = 0
        for space, position, sign in zip(spaces, place, signs, strict=True):
            irrep = grading.orbitals(space)[position]
            if sign:
                total = grading.addition[total, irrep if sign > 0 else grading.negation[irrep]]
        found[place] = total == charge
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize(
    ("grading", "spaces", "signs", "charge"),
    [
        (GRADING, "oovv", (1, 1, -1, -1), 0),
        (GRADING, "ov", (1, -1), 2),
        (GRADING, "o", (0,), 0),
        (MOMENTA, "ovov", (1, -1, 1, -1), 0),
        (MOMENTA, "ovo", (1, 0, -1), 1),
        (MOMENTA, "vvvv", (1, 1, -1, -1), 2),
    ],
)
def test_dense_arrays_and_back(
    dtype: str, grading: tcgen.Grading, spaces: str, signs: tuple[int, ...], charge: int
) -> None:
    mask = allowed(grading, spaces, signs, charge)
    dense = np.random.default_rng(0).standard_normal(mask.shape).astype(dtype)
    if dtype == "complex128":
        dense = dense * (1 + 2j)
    dense = np.where(mask, dense, np.zeros(1, dtype))
    # A view with other strides is an array like any other.
    given = np.asfortranarray(dense)
    array = tcgen.blocked(given, grading, spaces, signs=signs, charge=charge)
    assert array.data.size == mask.sum()
    assert array.dtype == dense.dtype
    assert array.nbytes == array.data.nbytes
    np.testing.assert_array_equal(array.dense(), dense)
    total = sum(float(np.abs(block).sum()) for _, block in array.blocks())
    assert total == pytest.approx(float(np.abs(dense).sum()), rel=1e-5)


def test_a_block_is_a_view_in_the_order_of_the_orbitals() -> None:
    dense = np.where(allowed(GRADING, "ov", (1, -1), 0), np.arange(30.0).reshape(5, 6), 0)
    array = tcgen.blocked(dense, GRADING, "ov")
    np.testing.assert_array_equal(array.block("A1", 0), dense[np.ix_([1, 3], [1, 2])])
    np.testing.assert_array_equal(array.block((1, 0), "B1"), dense[np.ix_([2, 4], [4])])
    array.block("A1", "A1")[...] = 0
    assert array.dense()[1, 1] == 0
    assert array.dense()[2, 4] == dense[2, 4]
    assert "C2v" not in repr(array)
    assert "(A1, A1) 2x2" in repr(array)
    copy = array.copy()
    copy.data[...] = 0
    assert array.data.any()


def test_files(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    mask = allowed(MOMENTA, "ovov", (1, -1, 1, -1), 2)
    dense = np.where(mask, np.random.default_rng(1).standard_normal(mask.shape), 0) * 1j
    array = tcgen.blocked(dense, MOMENTA, "ovov", signs=(1, -1, 1, -1), charge=2)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        array.save(file, "x")
        with pytest.raises(tcgen.ArgumentError, match="x exists"):
            array.save(file, "x")
    with h5py.File(tmp_path / "a.h5") as file:
        read = tcgen.BlockedArray.load(file, "x")
        with pytest.raises(tcgen.ArgumentError, match="y is not a blocked array"):
            tcgen.BlockedArray.load(file, "y")
    assert read.grading == MOMENTA
    assert read.spaces == array.spaces
    assert read.charge == 2
    np.testing.assert_array_equal(read.dense(), dense)


@pytest.mark.parametrize(
    ("moduli", "orbitals", "spaces", "shape"),
    [
        # Names of irreps exceed an attribute of HDF5.
        pytest.param((16, 16, 16), {"o": [0, 5, 4095]}, "oo", (3, 3), marks=pytest.mark.slow),
        ((2,), {"a/b": [0, 1, 1]}, ["a/b", "a/b"], (3, 3)),
        ((2,), {"o": [0, 1], "x": [0]}, ["o", "y", "y"], (2, 3, 4)),
        ((3,), {"o": [], "v": [1]}, "ov", (0, 1)),
        ((), {"o": [0, 0]}, "o", (2,)),
        ((2,), {"o": [0]}, "", ()),
    ],
)
def test_files_of_all_gradings(
    moduli: tuple[int, ...],
    orbitals: dict[str, list[int]],
    spaces: str | list[str],
    shape: tuple[int, ...],
    tmp_path: Path,
) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    grading = tcgen.Grading(moduli, orbitals)
    array = tcgen.blocked(np.zeros(shape, "float32"), grading, spaces)
    array.data[...] = np.arange(array.data.size)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        array.save(file, "x/y")
        read = tcgen.BlockedArray.load(file, "x/y")
    assert (read.grading, read.spaces, read.dtype) == (grading, array.spaces, array.dtype)
    np.testing.assert_array_equal(read.dense(), array.dense())


def test_data_may_have_other_strides_but_not_other_sizes() -> None:
    array = tcgen.blocked(np.diag(np.arange(1.0, 4.0)), tcgen.Grading((2,), {"o": [0, 1, 0]}), "oo")
    wanted, values = array.dense(), array.data.copy()
    vectors = np.stack([values, -values], axis=1)
    for data in (vectors[:, 0], np.ascontiguousarray(values[::-1])[::-1]):
        array.data = data
        np.testing.assert_array_equal(array.dense(), wanted)
        np.testing.assert_array_equal(array.block(1, 1), [[2]])
    for data in (values[:-1], np.append(values, 0), vectors):
        array.data = data
        with pytest.raises(tcgen.ShapeError, match="5 elements"):
            array.dense()
