"""The way in which equations are written changes nothing: not the sums, not the sequence."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from support.paths import ROOT
from tcgen.algebra import form_sequence
from tcgen.algebra.equations.normal_form import NormalForms
from tcgen.algebra.equations.proven_symmetry import normalised
from tcgen.algebra.factoring.canonical_forms import Forms
from tcgen.algebra.factoring.lift import lift, without_name_order
from tcgen.algebra.permutation_groups import images_of, least_order
from tcgen.compiler.driver import read_system
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.program import Contract
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.testing import assert_same_values, random_arrays, rewritten, split_starts
from tcgen.testing.strategies import extents_for, systems
from tcgen.thresholds import AlgebraThresholds

EQS = ROOT / "tests" / "data" / "eqs"
LARGE = {"o": 20, "v": 100}
LISTS = ("ccd_so.sym", "ccsd_so", "ccsd_so.sym", "rccd_sa.sym", "rccsd_sa", "rccsd_sa.sym")


def sums(system: System) -> list[object]:
    """The numbered sums that the search starts from, in their order."""
    thresholds = AlgebraThresholds()
    named = lift(normalised(system), NormalForms(False), thresholds)
    lifted = without_name_order(named, thresholds.label_orders)
    return [(t.frame, list(t.terms.items())) for t in lifted.targets.values()]


def multiply_adds(system: System) -> int:
    program = form_sequence(system, Options(extents=tuple(LARGE.items())))
    contractions = [s for s in program.steps if isinstance(s.op, Contract)]
    return sum(s.flops.value(LARGE) // 2 for s in contractions)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", LISTS)
def test_numbered_sums_do_not_depend_on_the_notation(name: str) -> None:
    system = read_system(EQS / f"{name}.json")
    wanted = sums(system)
    for seed in range(3):
        other = rewritten(system, seed).system
        other.verify()
        assert sums(other) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LISTS, "ccsdt_so.sym"])
def test_numbered_sums_of_many_rewritings(name: str) -> None:
    system = read_system(EQS / f"{name}.json")
    wanted = sums(system)
    for seed in range(20):
        assert sums(rewritten(system, seed).system) == wanted


@pytest.mark.slow
def test_the_count_does_not_depend_on_the_notation() -> None:
    system = read_system(EQS / "ccd_so.sym.json")
    wanted = multiply_adds(system)
    for seed in range(4):
        assert multiply_adds(rewritten(system, seed).system) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ccsd_so.sym", "rccd_sa.sym", "rccsd_sa.sym"])
def test_the_count_of_many_rewritings(name: str) -> None:
    system = read_system(EQS / f"{name}.json")
    wanted = multiply_adds(system)
    for seed in range(20):
        assert multiply_adds(rewritten(system, seed).system) == wanted


def test_tensors_that_look_alike_are_told_apart_by_their_readers() -> None:
    """x and y have equal shapes and are exchanged in the second way of writing."""
    head = "space o\nindex i j k : o\ninput x[o,o], y[o,o], z[o,o]\noutput r\n"
    one = read_spec(head + "r[i,j] = x[i,k]*y[k,j] + 2*x[i,k]*z[k,j] + x[i,j]\n")
    two = read_spec(head + "r[i,j] = 2*y[i,k]*z[k,j] + y[i,j] + y[i,k]*x[k,j]\n")
    three = read_spec(head + "r[i,j] = 2*y[i,k]*z[k,j] + y[j,i] + y[i,k]*x[k,j]\n")
    assert sums(one) == sums(two)
    assert sums(one) != sums(three)


def test_tensors_in_a_ring_are_all_alike() -> None:
    """Every one of them could be the first: the choice among them changes nothing."""
    head = "space o\nindex i j k l : o\ninput a[o,o], b[o,o], c[o,o], d[o,o]\noutput r\n"
    one = read_spec(head + "r = a[i,j]*b[j,k]*c[k,l]*d[l,i]\n")
    two = read_spec(head + "r = c[i,j]*a[j,k]*d[k,l]*b[l,i]\n")
    crossed = read_spec(head + "r = a[i,j]*b[j,k]*c[k,l]*d[i,l]\n")
    assert sums(one) == sums(two)
    assert sums(one) != sums(crossed)


@cases(40, 400)
@given(system=systems(), seed=st.integers(0, 1000), data=st.data())
def test_rewritten_systems_have_the_same_values(
    system: System, seed: int, data: st.DataObject
) -> None:
    extents = data.draw(extents_for(system))
    other = rewritten(system, seed)
    other.system.verify()
    inputs, starts = split_starts(system, random_arrays(system, extents, dtype="float64", seed=3))
    expected = evaluate_system(system, inputs, extents, out=starts)
    renamed = {other.names[n]: x for n, x in inputs.items()}
    renamed_starts = {other.names[n]: x for n, x in starts.items()}
    actual = evaluate_system(other.system, renamed, extents, out=renamed_starts)
    assert_same_values(
        actual, {other.names[n]: x for n, x in expected.items()}, rtol=1e-12, atol=1e-12
    )


def parity(order: tuple[int, ...]) -> int:
    pairs = combinations(range(len(order)), 2)
    return -1 if sum(order[a] > order[b] for a, b in pairs) % 2 else 1


def test_least_images_by_sorting_are_those_of_all_images() -> None:
    lower, upper = tuple(permutations(range(3))), tuple(permutations((3, 4, 5)))
    group = tuple((a + b, parity(a) * parity(b)) for a, b in product(lower, upper))
    for order in permutations(range(6)):
        assert least_order(order, group) == min(
            (tuple(perm[i] for i in order), sign) for perm, sign in group
        )
    for values in product(range(2), repeat=6):
        codes = [tuple(values[a] for a in perm) for perm, _ in group]
        wanted = {image for image, code in zip(group, codes, strict=True) if code == min(codes)}
        assert set(images_of(group).least(values)) == wanted


@pytest.mark.parametrize("sign", [1, -1])
def test_ties_are_all_images_that_leave_a_product_as_it_is(sign: int) -> None:
    group = tuple((p, parity(p) if sign < 0 else 1) for p in permutations(range(4)))
    forms = Forms()
    forms.add(0, group)
    forms.add(1, (((0, 1), 1),))
    # T[0,1,2,3] T[2,3,4,5] x[4,6]: 0 and 1 are twins, 2 and 3 too, 5 is alone
    parts = ((0, (0, 1, 2, 3)), (0, (2, 3, 4, 5)), (1, (4, 6)))
    form = forms.form(parts, (0,) * 7)
    wanted = set()
    for moved in permutations(range(7)):
        factor = 1
        left = [(t, tuple(moved[i] for i in held)) for t, held in parts]
        for t, held in parts:
            same = next((x for x in left if x[0] == t and set(x[1]) == set(held)), None)
            if same is None or (t == 1 and same[1] != held):
                break
            if t == 0:
                factor *= group[[tuple(held[n] for n in p) for p, _ in group].index(same[1])][1]
        else:
            wanted.add((tuple(moved[i] for i in form.order), form.sign * factor))
    assert set(form.ties()) == wanted
    assert len(wanted) == 4
    assert form.vanishes == (sign < 0 and any(s != form.sign for _, s in wanted))


def test_products_have_one_number_where_they_have_one_form() -> None:
    group = tuple((p, parity(p)) for p in permutations(range(2)))
    forms = Forms()
    forms.add(0, group)
    forms.add(1, (((0, 1), 1),))
    kinds = (0, 0, 1, 1)
    found: dict[object, set[int]] = {}
    for one, two in product(product(range(4), repeat=2), repeat=2):
        for labels in ((0, 1), (1, 0), (1, 1)):
            parts = ((labels[0], one), (labels[1], two))
            number = forms.number(parts, kinds)
            found.setdefault(forms.form(parts, kinds).key, set()).add(number)
    assert all(len(numbers) == 1 for numbers in found.values())
    assert len(set.union(*found.values())) == len(found) > 20


@pytest.mark.slow
def test_the_script_prints_a_table_of_spreads() -> None:
    path = EQS / "ccd_so.sym.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "spread.py"), str(path), "-n", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    title, row = result.stdout.splitlines()
    assert title.split() == ["list", "as", "given", "least", "most", "spread"]
    assert row.split() == ["ccd_so.sym", "6.01640e+10", "6.01640e+10", "6.01640e+10", "0.00%"]
