"""Sliced systems compute on ranges of a space what the equations compute at once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tcgen
from tcgen import PlanError
from tcgen.distributed.slicing import Restricted, sliceable_spaces, sliced_stages
from tcgen.distributed.stage import Unpacking
from tcgen.ir.system import System
from tcgen.ir.verify import verify
from tcgen.testing import random_arrays

LARGE = {"o": 20, "v": 100, "x": 300}


def unpacked(
    given: Restricted, array: np.ndarray, first: int, last: int, extents: dict[str, int]
) -> np.ndarray:
    """A range of an array whose last axes, or whose only ones, are packed."""
    group, length = given.packed, extents["v"]
    place = given.axis - group.first
    how = Unpacking(group.first, group.count, group.antisymmetric, place, first, last, length)
    return how.filled(array.shape, how.rectangles(array.shape), array.__getitem__, "float64")


def evaluate_sliced(system: System, space: str, extents: dict[str, int], slices: int) -> dict:
    weighed = {n: LARGE.get(n, 30) for n in extents}
    arrays = random_arrays(system, extents, dtype="float64", seed=1)
    whole = {t.name: arrays[t.name] for t in system.inputs}
    expected = tcgen.evaluate_system(system, whole, extents)
    edges = [k * extents[space] // slices for k in range(slices + 1)]
    for stage in sliced_stages(system, space, weighed, slices):
        verify(stage.system)
        for output in stage.outputs:
            pieces = []
            for first, last in itertools.pairwise(edges):
                inputs = {}
                for given in stage.inputs:
                    array = whole[given.source]
                    before = sum(extents[b] for b in given.before)
                    if given.packed is not None:
                        array = unpacked(given, array, before + first, before + last, extents)
                    elif given.axis is not None:
                        index = [slice(None)] * array.ndim
                        index[given.axis] = slice(before + first, before + last)
                        array = array[tuple(index)]
                    inputs[given.name] = array
                here = {**extents, stage.here: last - first}
                pieces.append(tcgen.evaluate_system(stage.system, inputs, here)[output.name])
            if output.how == "place":
                whole[output.name] = np.concatenate(pieces, axis=output.axis)
            else:
                whole[output.name] = sum(pieces) if output.how == "reduce" else pieces[-1]
    for name, array in expected.items():
        scale = np.abs(array).max()
        np.testing.assert_allclose(whole[name], array, rtol=0, atol=1e-12 * scale)
    return whole


@pytest.mark.parametrize(
    ("spec", "space"),
    [
        ("ccsd_closed_shell", "o"),
        ("ccsd_closed_shell", "v"),
        ("ccsd_spin_orbital", "v"),
        ("mp2_df", "o"),
        ("df_ladder", "v"),
        ("t_closed_shell", "v"),
        ("drpa", "v"),
        ("cc2_df", "v"),
    ],
)
def test_slices_of_a_shipped_spec_make_its_outputs(spec: str, space: str) -> None:
    system = tcgen.read_spec_file(tcgen.spec_path(spec))
    bases = [s.name for s in system.spaces if not s.parts]
    assert space in sliceable_spaces(system)
    evaluate_sliced(system, space, {n: 3 + k for k, n in enumerate(bases)}, 2)


def test_what_would_be_computed_twice_is_exchanged() -> None:
    system = tcgen.read_spec_file(tcgen.spec_path("ccsd_closed_shell"))
    evaluate_sliced(system, "v", {"o": 3, "v": 4}, 2)
    stages = sliced_stages(system, "v", LARGE, 4)
    # The bracket under S(ia,jb) is read on both virtual axes; what it reads is sliced alone.
    assert len(stages) == 2
    exchanged = {o.name for o in stages[0].outputs} - {"e", "r1", "t1_new"}
    assert len(exchanged) == 1
    heavy = [e.lhs.tensor.name for e in stages[0].system.equations if "Wak" in e.lhs.tensor.name]
    assert len(heavy) == 2
    assert all(name.endswith("v_here0") for name in heavy)


def test_an_axis_of_a_joined_space_is_sliced_behind_its_first_part() -> None:
    system = tcgen.read_spec(
        """
        space o = 3
        space v = 4
        space p = o + v
        index i : o
        index a b : v
        input h[p,p], x[v]
        output y
        y[a] = h[a,b]*x[b]
        """
    )
    evaluate_sliced(system, "v", {"o": 3, "v": 4}, 3)


HEAD = """
space o = 3
space v = 4
index i j : o
index a b : v
"""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("input x[v,v]\noutput y\ny[a] = x[a,a]", ("x", "diagonal")),
        ("input x[v]\noutput y accumulate\ny[a] = x[a]", ("y", "accumulates")),
    ],
)
def test_what_cannot_be_sliced_is_refused(text: str, named: tuple[str, ...]) -> None:
    system = tcgen.read_spec(HEAD + text)
    with pytest.raises(PlanError) as caught:
        sliced_stages(system, "v", {"o": 3, "v": 4}, 2)
    assert all(word in str(caught.value) for word in named)


@pytest.mark.parametrize(
    "equation",
    [
        "output y\ny = sum(i,j) delta[i,j]*z[i]",  # one of two summed indices remains
        "output y\ny[i] = delta[i,j]*z[j] + x[i,a]*x[j,a]*delta[j,i]",
        "output y\ny[i] = delta[i,i]*z[i]",
        "output y\ny = sum(i,j) delta[i,j]*z[i]*z[j] + sum(i,j) delta[i,j]*z[j]",
    ],
)
def test_a_delta_is_resolved_before_an_index_is_cut(equation: str) -> None:
    system = tcgen.read_spec(HEAD + "input z[o], x[o,v]\n" + equation)
    assert sliceable_spaces(system) == ("o",)
    evaluate_sliced(system, "o", {"o": 3, "v": 2}, 2)


def test_a_space_that_no_input_has_cannot_be_sliced() -> None:
    """Arrays tell a program the length of a range."""
    system = tcgen.read_spec(HEAD + "input x[o,o]\noutput y\ny[a] = x[i,i] + delta[a,a]")
    assert sliceable_spaces(system) == ()
    with pytest.raises(PlanError, match="no array that the equations of y read has an axis"):
        sliced_stages(system, "v", {"o": 3, "v": 4}, 2)
