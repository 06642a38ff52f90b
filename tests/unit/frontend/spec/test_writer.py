"""Systems as .spec text that reads back with equal values."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from support.campaigns import cases
from support.marks import slow_where
from support.paths import DATA, ROOT
from support.spec_sample import SPEC_SAMPLE
from tcgen.frontend import read, read_spec
from tcgen.frontend.spec.writer import spec_text
from tcgen.interp import evaluate_system
from tcgen.ir.system import Permutation, System
from tcgen.ir.tensor import Role, Storage
from tcgen.testing import (
    assert_same_values,
    extents_for,
    random_arrays,
    split_starts,
    systems,
)

FILES = sorted(
    [
        *(DATA / "eqs").glob("*.json"),
        *(DATA / "equations").glob("*.json"),
        *(ROOT / "specs").glob("*.spec"),
    ]
)


def check_same(first: System, second: System, extents: dict[str, int]) -> None:
    inputs, starts = split_starts(first, random_arrays(first, extents))
    wanted = evaluate_system(first, inputs, extents, out=starts)
    assert_same_values(evaluate_system(second, inputs, extents, out=starts), wanted)


def beyond_the_sample(path: Path) -> bool:
    return path.suffix == ".spec" and path.stem not in SPEC_SAMPLE


@pytest.mark.few(15)
@pytest.mark.parametrize("path", slow_where(beyond_the_sample, FILES), ids=lambda p: p.name)
def test_files_round_trip(path: Path) -> None:
    system = read(path)
    text = spec_text(system)
    again = read_spec(text, f"{system.name}.spec")
    again.verify()
    assert spec_text(again) == text
    assert [t.name for t in again.outputs] == [t.name for t in system.outputs]
    if "ccsdt" not in path.name:
        bases = [s.name for s in system.spaces if not s.parts]
        check_same(system, again, {name: 2 + n % 2 for n, name in enumerate(bases)})


def test_cosets_of_triples_are_operators() -> None:
    """The list has P(i/jk) as cyclic permutations, which differ by an exchange that t3 knows."""
    system = read(DATA / "eqs" / "ccsdt_so.sym.json")
    text = spec_text(system)
    lines = [line for line in text.splitlines() if "= " in line]
    assert len(lines) == sum(len(e.terms) for e in system.equations)
    assert sum("P(a/bc) P(i/jk)" in line for line in lines) == 9
    check_same(system, read_spec(text, "ccsdt_so.spec"), {"o": 3, "v": 4})


def draw_system(data: st.DataObject) -> System:
    """A random system that the language can say: generated inputs have no stored layout."""
    system = data.draw(systems())
    assume(not any(t.role is Role.GENERATED and t.storage != Storage() for t in system.inputs))
    return system


@cases(60, 2000)
@given(st.data())
def test_random_systems_round_trip(data: st.DataObject) -> None:
    system = draw_system(data)
    extents = data.draw(extents_for(system, 3))
    text = spec_text(system)
    again = read_spec(text, f"{system.name}.spec")
    again.verify()
    check_same(system, again, extents)


@pytest.mark.parametrize("factor", ["", "A[i]", "A[k]", "B[i,k]", "B[k,j]"])
@pytest.mark.parametrize(
    "images",
    [[(1, 2, 0)], [(0, 2, 1), (1, 0, 2)], [(1, 0, 2), (2, 0, 1)], [*permutations(range(3))]],
)
def test_left_indices_without_a_factor_are_deltas(images: list, factor: str) -> None:
    """Also where the permutations of a term have no identity."""
    text = f"space o\nindex i j k : o\ninput A[o], B[o,o]\noutput r\nr[i,j,k] = {factor or 1}"
    ones = "".join(f"*delta[{i},{i}]" for i in "ijk")
    system = read_spec(text + ones)
    (equation,) = system.equations
    perms = tuple(Permutation((-1) ** n, image) for n, image in enumerate(images))
    terms = (replace(equation.terms[0], perms=perms),)
    changed = replace(system, equations=(replace(equation, terms=terms),))
    check_same(changed, read_spec(spec_text(changed)), {"o": 3})
