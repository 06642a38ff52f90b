"""Packing and unpacking against the interpreter's own conversion, on random groups of axes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from tcgen.interp.storage import caller_shape, read_block, to_caller, to_logical
from tcgen.ir.layouts import dense_shape, pack, unpack
from tcgen.ir.tensor import Packing, Role, Space, Storage, Tensor
from tcgen.records.loops import stored_shape
from tcgen.simplices import parity

SPACES = {n: Space(f"s{n}") for n in (0, 1, 2, 3, 5)}
EXTENTS = {space.name: n for n, space in SPACES.items()}
DTYPES = ("float64", "float32", "complex128")


@st.composite
def layouts(draw: st.DrawFn) -> Tensor:
    """Groups of one to three axes of one space, packed or not, in any order of the groups."""
    spaces: list[Space] = []
    packed = []
    groups = []
    for _ in range(draw(st.integers(0, 3))):
        count = draw(st.integers(1, 3))
        axes = range(len(spaces), len(spaces) + count)
        spaces += [SPACES[draw(st.sampled_from(list(SPACES)))]] * count
        if count > 1 and draw(st.booleans()):
            packed.append(Packing(axes[0], draw(st.booleans()), count))
            groups.append(draw(st.permutations(axes)))
        else:
            groups += [[axis] for axis in axes]
    order = tuple(axis for group in draw(st.permutations(groups)) for axis in group)
    return Tensor("t", tuple(spaces), Role.INPUT, storage=Storage(order, tuple(packed)))


def random_dense(tensor: Tensor, dtype: str) -> np.ndarray:
    """Random integers, so that sums are exact, with the symmetry of the packed groups."""
    rng = np.random.default_rng(len(tensor.spaces))
    array = rng.integers(-9, 10, size=dense_shape(tensor, EXTENTS)).astype(dtype)
    if dtype == "complex128":
        array += 1j * rng.integers(-9, 10, size=array.shape)
    for packing in tensor.storage.packed:
        images = []
        for order in permutations(range(packing.count)):
            perm = list(range(tensor.rank))
            perm[packing.first : packing.first + packing.count] = [packing.first + k for k in order]
            sign = parity(order) if packing.antisymmetric else 1
            images.append(sign * np.transpose(array, perm))
        array = np.sum(images, axis=0, dtype=array.dtype)
    return array


@cases(200)
@given(layouts(), st.sampled_from(DTYPES))
def test_both_conversions_agree(tensor: Tensor, dtype: str) -> None:
    dense = random_dense(tensor, dtype)
    stored = pack(tensor, dense)
    assert stored.shape == stored_shape(tensor, EXTENTS) == caller_shape(tensor, EXTENTS)
    assert stored.dtype == dtype
    assert stored.flags.c_contiguous
    np.testing.assert_array_equal(stored, to_caller(tensor, dense))
    for back in (unpack(tensor, stored, EXTENTS), to_logical(tensor, stored, EXTENTS)):
        assert back.dtype == dtype
        np.testing.assert_array_equal(back, dense)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("extent", SPACES)
@pytest.mark.parametrize("antisymmetric", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_every_stored_element_has_its_place(
    count: int, antisymmetric: bool, extent: int, dtype: str
) -> None:
    packing = Packing(0, antisymmetric, count)
    spaces = (SPACES[extent],) * count
    tensor = Tensor("t", spaces, Role.INPUT, storage=Storage((), (packing,)))
    stored = 1 + np.arange(packing.values(extent)).astype(dtype)
    dense = unpack(tensor, stored, EXTENTS)
    np.testing.assert_array_equal(dense, to_logical(tensor, stored, EXTENTS))
    np.testing.assert_array_equal(pack(tensor, dense), stored)


@cases(50)
@given(layouts(), st.data())
def test_a_block_is_cut_from_the_whole(tensor: Tensor, data: st.DataObject) -> None:
    dense = random_dense(tensor, "float64")
    stored = to_caller(tensor, dense)
    block = tuple(
        tuple(sorted(data.draw(st.tuples(*[st.integers(0, n)] * 2)))) for n in dense.shape
    )
    part = unpack(tensor, stored, EXTENTS)[tuple(slice(*ends) for ends in block)]
    np.testing.assert_array_equal(read_block(tensor, stored, block, "float64"), part)
