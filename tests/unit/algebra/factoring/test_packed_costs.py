"""The packed cost: symmetry derived and true, equal multiply-adds counted once, values right."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from itertools import permutations, product
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from support.paths import ROOT
from tcgen.algebra import form_sequence, neutral_sequence
from tcgen.algebra.cost_model import CostModel
from tcgen.algebra.equations.normal_form import NormalForms
from tcgen.algebra.equations.proven_symmetry import normalised
from tcgen.algebra.factoring.factor import factored
from tcgen.compiler.driver import read_system
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_program, evaluate_system
from tcgen.ir.cost import equal_points
from tcgen.ir.program import FormulaSequence
from tcgen.ir.system import System
from tcgen.ir.tensor import symmetry_group
from tcgen.options import Options
from tcgen.testing import assert_same_values, random_arrays, split_starts
from tcgen.testing.strategies import extents_for, systems
from tcgen.thresholds import AlgebraThresholds

EQS = ROOT / "tests" / "data" / "eqs"
LARGE = {"o": 20, "v": 100}
PACKED = CostModel(packed=True)


def checker() -> ModuleType:
    spec = spec_from_file_location("sequence_check", ROOT / "benchmarks" / "sequence_check.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


check = checker()


def packed_program(system: System, **options: object) -> FormulaSequence:
    chosen = Options(extents=tuple(LARGE.items()), cost="packed", byte_weight=0.0, **options)  # type: ignore[arg-type]
    program = form_sequence(system, chosen)
    program.verify()
    return program


def same_values(system: System, other: System | FormulaSequence, extents: dict[str, int]) -> None:
    inputs, starts = split_starts(system, random_arrays(system, extents, dtype="float64", seed=5))
    expected = evaluate_system(system, inputs, extents, out=starts)
    evaluate = evaluate_program if isinstance(other, FormulaSequence) else evaluate_system
    actual = evaluate(other, inputs, extents, out=starts)  # type: ignore[operator]
    assert_same_values(actual, expected, rtol=1e-12, atol=1e-12)


def all_arrays(system: System, program: FormulaSequence, extents: dict[str, int]) -> dict:
    """Every array of a program, made by the neutral form's own evaluator."""
    arrays = random_arrays(system, extents, dtype="float64", seed=5)
    inputs = {
        (t.family or t.name, tuple(s.name for s in t.spaces)): arrays[t.name] for t in system.inputs
    }
    terms = check.terms_of(json.loads(json.dumps(neutral_sequence(program))))
    return check.evaluate(terms, inputs, extents)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "most", "extents"),
    [
        ("ccd_so", 2.1881e10, {"o": 5, "v": 6}),
        pytest.param("ccsd_so", 2.4054e10, {"o": 5, "v": 6}, marks=pytest.mark.slow),
        ("rccd_sa", 7.2e10, {"o": 3, "v": 4}),
        pytest.param("ccsdt_so.sym", 8.3472e12, {"o": 5, "v": 6}, marks=pytest.mark.slow),
    ],
)
def test_counts_values_and_symmetries(name: str, most: float, extents: dict[str, int]) -> None:
    system = read_system(EQS / f"{name}.json")
    program = packed_program(system)
    assert program.packed_flops().value(LARGE) / 2 <= most
    same_values(system, program, extents)
    arrays = all_arrays(system, program, extents)
    for tensor in program.intermediates:
        array = arrays[tensor.name, tuple(s.name for s in tensor.spaces)]
        for s in symmetry_group(tensor):
            np.testing.assert_allclose(array.transpose(s.perm), s.sign * array, atol=1e-11)
    if name.endswith("_so"):  # an independent counter, which knows antisymmetric groups only
        terms = check.terms_of(neutral_sequence(program))
        contractions, _ = check.count(terms, check.antisymmetric_groups(arrays))
        assert check.value(contractions, LARGE) == program.packed_flops().value(LARGE) / 2


@cases(40, 400)
@given(system=systems(), data=st.data())
def test_systems_factored_for_packed_cost_have_the_same_values(
    system: System, data: st.DataObject
) -> None:
    extents = data.draw(extents_for(system))
    (found,) = factored(
        normalised(system), extents, NormalForms(False), 1, AlgebraThresholds(), [PACKED]
    )
    found.verify()
    same_values(system, found, extents)


def test_antisymmetric_intermediate_is_made_where_its_reader_is_blind() -> None:
    """tau: the integrals cannot see the order of c and d, so their cofactor is antisymmetric."""
    system = read_spec(
        "space o occupied\nspace v virtual\nindex i j : o\nindex a b c d : v\n"
        "input v[v,v,v,v] antisymmetric (0,1) (2,3)\n"
        "input t[v,v,o,o] antisymmetric (0,1) (2,3)\ninput u[v,o]\noutput r\n"
        "r[a,b,i,j] = v[a,b,c,d]*t[c,d,i,j] + 2*v[a,b,c,d]*u[c,i]*u[d,j]\n"
    )
    program = packed_program(system)
    costs = [str(s.packed_flops) for s in program.steps if s.packed_flops != s.flops]
    assert "1/4 o^2 v^4" in costs
    same_values(system, program, {"o": 4, "v": 5})


def group(count: int, *moved: int) -> list[tuple[int, ...]]:
    """All permutations of some axes."""
    found = []
    for images in permutations(moved):
        perm = list(range(count))
        for axis, image in zip(moved, images, strict=True):
            perm[axis] = image
        found.append(tuple(perm))
    return found


@pytest.mark.parametrize(
    ("one", "two", "kept"),
    [
        ((group(4, 0, 1), "abcd"), (group(4, 2, 3), "cdij"), "abij"),
        ((group(4, 0, 1), "cdab"), (group(4, 0, 1), "cdij"), "abij"),
        ((group(4, 0, 1, 2), "acdi"), (group(2, 0, 1), "cd"), "ai"),
        (([(0, 1, 2, 3), (1, 0, 3, 2)], "abcd"), ([(0, 1, 2, 3), (1, 0, 3, 2)], "cdij"), "abij"),
        ((group(3, 0, 1, 2), "abc"), (group(3, 0, 1, 2), "abc"), ""),
        ((group(3, 0, 1, 2), "abc"), (group(3, 0, 1, 2), "abc"), "a"),
        ((group(3, 0, 1), "aab"), (group(2, 0, 1), "bc"), "ac"),
    ],
)
def test_orbits_against_all_permutations_of_the_indices(
    one: tuple[list[tuple[int, ...]], str], two: tuple[list[tuple[int, ...]], str], kept: str
) -> None:
    names = sorted(set(one[1]) | set(two[1]))
    found = 0
    for images in permutations(names):
        move = dict(zip(names, images, strict=True))
        if any((a in kept) != (b in kept) for a, b in move.items()):
            continue
        found += all(
            any(tuple(move[i] for i in held) == tuple(held[p] for p in perm) for perm in perms)
            for perms, held in (one, two)
        )
    assert equal_points(one, two, kept) == found


def test_ladder_of_doubles_is_an_eighth() -> None:
    pairs = [tuple(p + q) for p, q in product(([0, 1], [1, 0]), ([2, 3], [3, 2]))]
    assert equal_points((pairs, "abcd"), (pairs, "cdij"), "abij") == 8


THC = (
    "space o occupied\nspace v virtual\nspace x auxiliary\nspace q quadrature\n"
    "index i j k : o\nindex a b c : v\nindex P Q : x\nindex W : q\n"
)


@pytest.mark.few(4)
@pytest.mark.parametrize("model", [CostModel(), PACKED, CostModel(element=Fraction(2))])
@pytest.mark.parametrize(
    "text",
    [
        # an index in four factors, as in tensor hypercontraction
        "input y[o,x], z[v,x], m[x,x], t[v,o]\noutput r\n"
        "r[a,i] = z[a,P]*y[i,P]*m[P,Q]*y[j,Q]*z[b,Q]*t[b,j]"
        " - z[a,P]*y[j,P]*m[P,Q]*y[i,Q]*z[b,Q]*t[b,j]\n",
        # Laplace quadrature: the point runs through every factor
        "input g[o,v,o,v] symmetry (0,1)<->(2,3)\ninput p[o,q], s[v,q], w[q]\noutput e\n"
        "e = w[W]*p[i,W]*s[a,W]*p[j,W]*s[b,W]*g[i,a,j,b]*(2*g[i,a,j,b] - g[i,b,j,a])\n",
        # diagonals and element-wise factors
        "input f[o,o], d[v,v], t[v,o]\noutput r\n"
        "r[a,i] = f[i,i]*t[a,i] - d[a,a]*t[a,i] + t[a,i]*t[a,i]*f[i,j]*f[j,i]\n",
        # denominators
        "input t[v,v,o,o] antisymmetric (0,1) (2,3)\ninput g[o,o,v,v] antisymmetric (0,1) (2,3)\n"
        "input x[o], y[v]\noutput r\n"
        "r[i,j] = t[a,b,i,k]*g[k,j,a,b]/(x[i] + x[k] - y[a] - y[b]) + t[a,b,i,k]*g[k,j,a,b]\n",
    ],
)
def test_other_products_pass_through(text: str, model: CostModel) -> None:
    system = normalised(read_spec(THC + text))
    extents = {"o": 3, "v": 4, "x": 5, "q": 2}
    large = {"o": 20, "v": 100, "x": 300, "q": 8}
    (found,) = factored(system, large, NormalForms(False), 1, AlgebraThresholds(), [model])
    same_values(system, found, extents)


@pytest.mark.slow
def test_weights_lead_the_search() -> None:
    system = read_system(EQS / "ccd_so.json")
    cheap = form_sequence(system, Options(extents=tuple(LARGE.items())))
    dear = form_sequence(system, Options(extents=tuple(LARGE.items()), byte_weight=50.0))
    weighed = CostModel.of(Options(byte_weight=50.0))
    assert weighed.cost(dear, LARGE) <= weighed.cost(cheap, LARGE)
    same_values(system, dear, {"o": 3, "v": 4})


def test_progress_says_the_best_cost_so_far() -> None:
    said: list[str] = []
    options = Options(extents=tuple(LARGE.items()))
    form_sequence(read_system(EQS / "ccd_so.json"), options, said.append)
    assert any("flops so far" in text for text in said)
