"""Sums over orbits: summands made symmetric, nests over triangles of tiles, and their values."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import tcgen
from tcgen.algebra import form_sequence
from tcgen.frontend.spec.reader import read_spec
from tcgen.fusion import plan_fusion
from tcgen.fusion.placement.memory import plan_peak
from tcgen.fusion.time.orbit_steps import (
    added_directly,
    arrangements_apart,
    in_one_pass,
    only_added,
)
from tcgen.fusion.time.orbit_sums import orbit_sums
from tcgen.fusion.time.triangular_nests import orbit_nests
from tcgen.interp import evaluate_program, evaluate_system, run_module
from tcgen.ir.exchange_symmetry import exchange_sign
from tcgen.ir.tensor import Role
from tcgen.lower import lower_plan
from tcgen.options import Options
from tcgen.testing import random_arrays

SPACES = "space o occupied\nspace v virtual\nindex i j k : o\nindex a b c d : v\n"
PAIR = f"""{SPACES}
input t[o,o,v,v], g[o,v,v]
input e_o[o], e_v[v]
output e
x[i,j,a,b] = S(ia,jb) (t[i,j,a,d]*g[i,d,b])
e = x[i,j,a,b]*(2*x[i,j,a,b] - x[i,j,b,a]) / (e_o[i] + e_o[j] - e_v[a] - e_v[b])
"""
ANTISYMMETRIC = f"""{SPACES}
input t[o,v,v], g[v,v], u[o,v,v,v] antisymmetric (2,3)
output e
x[i,a,b,c] = P(a/bc) (t[i,a,d]*u[i,d,b,c])
e = x[i,a,b,c]*(x[i,a,b,c] - 3*x[i,b,a,c]) / (g[a,a] + g[b,b] + g[c,c])
"""
# Read in four arrangements by the last step, and symmetric in none of them.
ARRANGED = f"""{SPACES}
input t[o,v,v], g[o,v,v], f[o,v], s[o,v]
output e
w[i,j,a,b] = P(i/j) P(a/b) (t[i,a,d]*g[j,d,b])
x[i,j,a,b] = f[i,a]*s[j,b]
e = w[i,j,a,b]*w[i,j,a,b] / (9 + x[i,j,a,b] + x[j,i,a,b] + x[i,j,b,a] + x[j,i,b,a])
"""
FETCHED = PAIR.replace("g[o,v,v]", "g[o,v,v] generated")
TRIPLES = tcgen.spec_path("t_closed_shell").read_text()
SPIN_TRIPLES = tcgen.spec_path("t_spin_orbital").read_text()


@cache  # the search for a sequence takes seconds
def sequence(text, **extents):
    written = text == ARRANGED  # else its products are factored
    options = Options(
        extents=tuple(sorted(extents.items())), objective="time", optimize=not written
    )
    return form_sequence(read_spec(text), options), options


@pytest.mark.slow
def test_a_summand_becomes_symmetric_and_is_read_in_place():
    program, _ = sequence(TRIPLES, o=3, v=5)
    large = [t for t in program.tensors if t.role is Role.TEMP]
    last = program.steps[-1]
    chains = set()
    for found in orbit_sums(last, large, 4):
        chains.add(tuple(str(i) for i in found.chain))
        changed = replace(program, steps=(*program.steps[:-1], found.step))
        changed.verify()
        for tensor in large:
            reads = [r for r in found.step.operands if r.tensor == tensor]
            assert len({tuple(r.indices.index(i) for i in found.chain) for r in reads}) <= 1
        for one, two in pairwise(found.chain):
            swap = {one: two, two: one}
            assert exchange_sign(program, last, swap) is None
            assert exchange_sign(changed, found.step, swap) == 1
    assert chains == {("i", "j", "k"), ("a", "b", "c")}


@pytest.mark.parametrize(
    ("text", "tile"),
    [
        pytest.param(TRIPLES, 2, marks=pytest.mark.slow),
        pytest.param(SPIN_TRIPLES, 2, marks=pytest.mark.slow),
        (ARRANGED, 1),
        (ARRANGED, 2),
        (PAIR, 1),
        (PAIR, 3),
        (ANTISYMMETRIC, 1),
        (ANTISYMMETRIC, 2),
        (FETCHED, 1),
        (FETCHED, 2),
    ],
)
def test_nests_over_orbits_give_the_values(text, tile):
    system = read_spec(text)
    program, options = sequence(text, o=3, v=5)
    large = [t for t in program.tensors if t.role is Role.TEMP]
    nests = list(orbit_nests(program, large, 4))
    assert {nest.chain[0].space.name for nest in nests} >= {"v"}
    for nest in nests:
        plan = nest.plan(tile, options.extents, "float64")
        plan.verify()
        for array in plan.arrays:
            if array.tensor.role is Role.TEMP:
                if nest.target.role is Role.OUTPUT or array.home is not None:
                    assert len(array.contracted) == len(nest.chain)
            elif array.tensor.role is Role.GENERATED:  # one tile, for one reader
                assert array.contracted
                assert array.live[1] == array.live[0] + 1
        module = lower_plan(plan, options)
        module.verify()
        for o, v in ((2, 3), (1, 5), (3, 1), (0, 3), (3, 0)):
            extents = {"o": o, "v": v}
            arrays = random_arrays(system, extents, dtype="float64", seed=o)
            wanted = evaluate_system(system, arrays, extents)["e_t" if "e_t" in text else "e"]
            found = run_module(module, arrays, extents)
            np.testing.assert_allclose(next(iter(found.values())), wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.few(3)
@pytest.mark.parametrize("target", ["numpy", "cpu"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_a_program_within_a_limit_takes_them(dtype, target):
    extents, system, limit = {"o": 3, "v": 11}, read_spec(PAIR), 4_000
    limit = limit * {"float64": 2, "float32": 1, "complex128": 4}[dtype] // 2
    program = tcgen.compile(
        PAIR, extents=extents, objective="time", memory_limit=limit, dtype=dtype, target=target
    )
    assert "<=" in program.explain()
    arrays = random_arrays(system, extents, dtype=dtype, seed=3)
    wanted = evaluate_system(system, arrays, extents)["e"]
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(program(**arrays)["e"], wanted, rtol=tolerance)
    assert program.allocated_bytes <= limit


@pytest.mark.few(1)
@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_a_sliced_input_with_several_readers(target):
    extents, system = {"o": 3, "v": 11}, read_spec(PAIR)
    program = tcgen.compile(
        PAIR, extents=extents, objective="time", memory_limit=6_000, sliced="g", target=target
    )
    assert "<=" in program.explain()
    arrays = random_arrays(system, extents, dtype="float64", seed=3)
    wanted = evaluate_system(system, arrays, extents)["e"]
    np.testing.assert_allclose(program(**arrays)["e"], wanted, rtol=1e-11)
    assert program.allocated_bytes <= 6_000


def as_written(text):
    """The sequence of the equations as they stand, so that no search shares or splits anything."""
    options = Options(extents=(("o", 3), ("v", 5)), optimize=False)
    return form_sequence(read_spec(text), options)


def same_values(one, other):
    for o, v in ((3, 5), (1, 4), (4, 1), (0, 3)):
        extents = {"o": o, "v": v}
        arrays = random_arrays(read_spec(PAIR), extents, dtype="float64", seed=o)
        wanted = evaluate_program(one, arrays, extents)
        found = evaluate_program(other, arrays, extents)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-14)


def test_what_is_only_added_is_added_directly():
    program = as_written(
        PAIR.split("x[i,j")[0].replace("output e", "output r")
        + "x[j,i,b,a] = t[j,i,b,c]*g[i,c,a] - 2*t[i,j,d,a]*g[j,b,d]\n"
        + "r[i,j,d,c] = 3*x[i,j,c,d] - x[j,i,d,c] + t[i,j,c,d]\n"
    )
    made = next(t for t in program.tensors if t.name == "x")
    assert only_added(program, made)
    shorter = added_directly(program, [made])
    shorter.verify()
    assert made not in shorter.tensors
    assert len(shorter.steps) == len(program.steps)  # 2 + 3 before, 2 * 2 + 1 now
    same_values(program, shorter)


def test_an_array_that_is_read_otherwise_is_not():
    for readers in (
        "r = x[i,j,a,b]*t[i,j,a,b]\n",  # a product
        "r = sum(i,j,a) x[i,j,a,a]\n",  # the sum of a part
    ):
        program = as_written(
            PAIR.split("x[i,j")[0].replace("output e", "output r")
            + "x[i,j,a,b] = t[i,j,a,d]*g[i,d,b]\n"
            + readers
        )
        assert not only_added(program, next(t for t in program.tensors if t.name == "x"))


def test_sums_of_arrangements_are_apart():
    program, _ = sequence(ARRANGED, o=3, v=5)
    last = program.steps[-1]
    (read,) = {r.tensor for r in last.operands if r.tensor.name == "x"}
    assert len({r.indices for r in last.operands if r.tensor == read}) == 4
    assert arrangements_apart(program, last, ()) == (program, ())
    changed, (added,) = arrangements_apart(program, last, (read,))
    changed.verify()
    assert [s.accumulate for s in changed.producers(added)] == [False, True, True, True]
    assert [r.tensor for r in changed.steps[-1].operands].count(added) == 1
    arrays = random_arrays(read_spec(ARRANGED), {"o": 3, "v": 4}, dtype="float64", seed=5)
    wanted, found = (evaluate_program(p, arrays, {"o": 3, "v": 4})["e"] for p in (program, changed))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.slow
def test_triples_over_spin_orbitals_hold_tiles():
    """64 GB whole, for o = 20 and v = 100."""
    program, options = sequence(SPIN_TRIPLES, o=20, v=100)
    options = replace(options, memory_limit=8 * 2**30, target="cuda")
    plan = plan_fusion(program, options)
    assert plan_peak(plan) < 2**30


@pytest.mark.slow
def test_products_are_added_in_one_pass_and_like_ones_collected():
    program = as_written(
        PAIR.split("x[i,j")[0].replace("output e", "output r")
        + "r[i,j,a,b] = e_o[i]*t[i,j,a,b] - 1/2*e_o[j]*t[i,j,a,b] + 2*t[i,j,a,b]*e_o[i]\n"
    )
    shorter = in_one_pass(program, [s.out.tensor for s in program.steps])
    shorter.verify()
    assert len(shorter.steps) == 1 < len(program.steps)
    assert "3*" in shorter.pretty()
    same_values(program, shorter)
    triples, _ = sequence(TRIPLES, o=3, v=5)
    summed = [t for t in triples.tensors if t.name == "_b1"]
    assert in_one_pass(triples, summed) == triples


@pytest.mark.slow
def test_triples_are_contracted_into_one_array():
    program, _ = sequence(TRIPLES, o=3, v=5)
    large = [t for t in program.tensors if t.role is Role.TEMP]
    for nest in orbit_nests(program, large, 4):
        nest.program.verify()
        assert {t.name for t in nest.program.intermediates} == {"w", "y"}
        kinds = [type(s.op).__name__ for s in nest.program.steps]
        assert kinds == ["Contract"] * 12 + ["Map"] * 2


def test_other_sums_have_no_orbits():
    for text in (
        PAIR.replace("S(ia,jb) (t[i,j,a,d]*g[i,d,b])", "t[i,j,a,d]*g[i,d,b]"),  # without symmetry
        PAIR.replace("output e\n", "output e, x\n"),  # x as an output
        PAIR.replace("output e\n", "output e, r\n") + "r[i,j] = x[i,j,a,b]*t[i,j,a,b]\n",
    ):
        program, _ = sequence(text, o=3, v=5)
        large = [t for t in program.tensors if t.role is not Role.INPUT and t.rank == 4]
        assert not list(orbit_nests(program, large, 4)), text
