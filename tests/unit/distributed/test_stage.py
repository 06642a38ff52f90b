"""Ranges of packed groups: runs of the stored axis, and the arrays that they fill."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tcgen
from tcgen.distributed.stage import Unpacking
from tcgen.simplices import parity


@pytest.mark.parametrize("antisymmetric", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_a_range_has_the_elements_of_the_whole_array(count: int, antisymmetric: bool) -> None:
    rng = np.random.default_rng(0)
    for extent in range(5):
        drawn = rng.integers(-99, 99, size=(2,) + (extent,) * count + (3,)).astype(float)
        whole = np.zeros_like(drawn)
        for order in itertools.permutations(range(count)):
            axes = (0, *(1 + k for k in order), count + 1)
            whole += (parity(order) if antisymmetric else 1) * drawn.transpose(axes)
        group = tuple(range(1, count + 1))
        packed = tcgen.pack_pairs(whole, group, antisymmetric=antisymmetric)
        for place in range(count):
            for first, last in itertools.combinations_with_replacement(range(extent + 1), 2):
                unpacking = Unpacking(1, count, antisymmetric, place, first, last, extent)
                rectangles = unpacking.rectangles(packed.shape)
                found = unpacking.filled(
                    packed.shape, rectangles, packed.__getitem__, packed.dtype.name
                )
                index = [slice(None)] * whole.ndim
                index[1 + place] = slice(first, last)
                np.testing.assert_array_equal(found, whole[tuple(index)])
                assert found.shape == unpacking.shape(packed.shape)


def test_no_element_is_read_twice_and_none_in_vain() -> None:
    unpacking = Unpacking(0, 2, False, 0, 2, 4, 6)
    rows = [(r.start, r.stop) for (r,) in unpacking.rectangles((21,))]
    # Rows 2 and 3 of the triangle, and of rows 4 and 5 the elements with 2 and 3.
    assert rows == [(3, 6), (6, 10), (12, 14), (17, 19)]
