"""Programs with bound constants equal the interpreter, also at extents other than planned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from tcgen.compiler.driver import compile_system
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.ir.tensor import Role, Tensor
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import assert_same_values, random_arrays, split_starts, systems

OBJECTIVES = ("none", "linear", "memory", "peak", "time", "kernels")


def extents(draw: st.DrawFn, system: System, smallest: int) -> dict[str, int]:
    bases = dict.fromkeys(base.name for space in system.spaces for base in space.bases)
    return {name: draw(st.integers(smallest, 4)) for name in bases}


def drawn(draw: st.DrawFn) -> tuple[System, dict[str, int], dict[str, int]]:
    system = draw(systems())
    return system, extents(draw, system, 1), extents(draw, system, 0)


def shown_by(tensor: Tensor, actual: dict[str, int]) -> set[str]:
    """Base spaces whose extents the array of an input shows."""
    shown = set()
    for axis, pair in tensor.stored():
        space = tensor.spaces[axis]
        # The triangle of an antisymmetric pair is empty for a side of 0 and of 1.
        ambiguous = pair is not None and pair.antisymmetric and actual.get(space.name, 0) < 2
        if len(space.bases) == 1 and not ambiguous:
            shown.add(space.name)
    return shown


class Filler:
    """A generated input that fills the tiles of an array in the order of the equations."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __call__(self, out: np.ndarray, ranges: tuple[slice, ...]) -> None:
        out[...] = self.array[ranges]


def check_bound(
    system: System,
    planned: dict[str, int],
    actual: dict[str, int],
    *,
    target: str,
    objective: str,
    filled: bool,
) -> None:
    chosen = Options(extents=tuple(sorted(planned.items())), target=target, objective=objective)
    program = Program(compile_system(system, chosen).artifact)
    inputs, starts = split_starts(system, random_arrays(system, actual, seed=1))
    expected = evaluate_system(system, inputs, actual, out=starts)
    tensors = {t.name: t for t in system.tensors}
    given: dict[str, object] = dict(inputs)
    for name, array in inputs.items():
        storage = tensors[name].storage
        plain = not storage.packed and not storage.order
        if filled and tensors[name].role is Role.GENERATED and plain:
            given[name] = Filler(array)
    shown = {
        base
        for name in inputs
        if given[name] is inputs[name]
        for base in shown_by(tensors[name], actual)
    }
    if any(actual[base] != planned[base] for base in actual.keys() - shown):
        return  # the program takes the planned extents of what no array shows
    constants = {n: a for n, a in given.items() if not tensors[n].volatile}
    volatile = {n: a for n, a in given.items() if tensors[n].volatile}
    bound = program.bind(**constants)
    for _ in range(2):  # the second call finds the state of the constants
        results = bound(**volatile, out={n: a.copy() for n, a in starts.items()})
        assert_same_values(results, expected, rtol=1e-9, atol=1e-9)


CASES = st.composite(drawn)()


@cases(10, 1500)
@given(case=CASES, objective=st.sampled_from(OBJECTIVES), filled=st.booleans())
def test_bound_programs_in_numpy(case, objective: str, filled: bool) -> None:
    check_bound(*case, target="numpy", objective=objective, filled=filled)


@cases(4, 1500)
@given(case=CASES, objective=st.sampled_from(OBJECTIVES), filled=st.booleans())
def test_bound_programs_in_c(case, objective: str, filled: bool) -> None:
    check_bound(*case, target="cpu", objective=objective, filled=filled)


TILES = """
space o = 2
space v = 3
space p = o + v
index q : p
input B[p] constant
input c
output r
r = sum(q) c*B[q]
"""


@pytest.mark.parametrize(
    ("target", "objective"),
    [("cpu", "linear"), *(("numpy", objective) for objective in OBJECTIVES)],
)
def test_the_constant_phase_waits_for_the_extents_that_its_tiles_need(target, objective):
    """No array shows o and v, so the constants alone do not say how many tiles there are."""
    generated = TILES.replace("constant", "generated constant")
    for text, sliced in ((generated, ()), (TILES, ("B",)), (TILES, ())):
        program = tcgen.compile(text, objective=objective, target=target, sliced=sliced)
        bound = program.bind(B=np.arange(1.0, 6.0))
        assert bound(c=1.0)["r"] == 15.0
