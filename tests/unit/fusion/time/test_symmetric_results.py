"""Nests in which one of each pair of tiles of a symmetric result is computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcgen
from tcgen.algebra import form_sequence
from tcgen.frontend.spec.reader import read_spec
from tcgen.fusion import plan_fusion
from tcgen.fusion.time.orbit_sums import symmetric_results
from tcgen.fusion.time.triangular_nests import orbit_nests
from tcgen.interp import evaluate_program, evaluate_system, run_module
from tcgen.ir.executed import executed_by, totals
from tcgen.ir.program import Add
from tcgen.ir.tensor import Role
from tcgen.lower import lower_plan
from tcgen.options import Options
from tcgen.testing import random_arrays

SPACES = "space o\nspace v\nspace x\nindex i j k : o\nindex a b c d e f : v\nindex P Q : x\n"
LADDER = tcgen.spec_path("df_ladder").read_text()
# one exchange alone with the sign -1; exchanges with a second pair of the target, of either sign;
# a result with other terms, before and after; a result that several steps read; no exchange at all
PROGRAMS = {
    "antisymmetric": f"""{SPACES}
input u[v,v,v] antisymmetric (0,1)
input t[o,v], g[v,v]
output r
W[a,b,c] = u[a,b,d]*g[d,c]
r[i,a,b] = 3*W[a,b,c]*t[i,c]
""",
    "two pairs": f"""{SPACES}
input b[x,v,v], t[o,o,v,v] symmetry (0,2)<->(1,3)
output r
W[a,b,e,f] = b[P,a,e]*b[P,b,f]
r[i,j,a,b] = 1/3*W[a,b,e,f]*t[i,j,e,f]
""",
    "other sign": f"""{SPACES}
input b[x,v,v], t[o,o,v,v] antisymmetric (0,1) (2,3)
output r
W[a,b,e,f] = b[P,a,e]*b[P,b,f]
r[i,j,a,b] = W[a,b,e,f]*t[i,j,e,f]
""",
    "other terms": f"""{SPACES}
input b[x,v,v], t[o,o,v,v] symmetry (0,2)<->(1,3), s[o,v]
output r, y
W[a,b,e,f] = b[P,a,e]*b[P,b,f]
r[i,j,a,b] = s[i,a]*s[j,b]
r[i,j,a,b] += 2*W[a,b,e,f]*t[i,j,e,f]
r[i,j,a,b] += s[i,b]*s[j,a]
y[i,a] = r[i,j,a,b]*s[j,b]
""",
    "intermediate": f"""{SPACES}
input b[x,v,v], t[o,o,v,v] symmetry (0,2)<->(1,3), s[o,v]
output y
W[a,b,e,f] = b[P,a,e]*b[P,b,f]
r[i,j,a,b] = W[a,b,e,f]*t[i,j,e,f]
y[i,a] = r[i,j,a,b]*s[j,b]*s[i,a]
""",
    "sums": f"""{SPACES}
input b[x,v,v], d[x,v,v], t[o,o,v,v] symmetry (0,2)<->(1,3)
output r
W[a,b,e,f] = b[P,a,e]*d[P,b,f] + d[P,a,e]*b[P,b,f]
r[i,j,a,b] = W[a,b,e,f]*t[i,j,e,f]
""",
}
UNEQUAL = PROGRAMS["two pairs"].replace(" symmetry (0,2)<->(1,3)", "")


def sequence(text, **extents):
    options = Options(extents=tuple(sorted(extents.items())), objective="time", optimize=False)
    return form_sequence(read_spec(text), options), options


def nests(text, **extents):
    program, options = sequence(text, **extents)
    large = [t for t in program.tensors if t.role is Role.TEMP and t.name.startswith("W")]
    return list(orbit_nests(program, large, 4)), options


def check_values(text, tile, *sizes):
    """Every nest of a program, rewritten and lowered, against the equations."""
    system = read_spec(text)
    found, options = nests(text, o=3, v=5, x=4)
    for nest in found:
        plan = nest.plan(tile, options.extents, "float64")
        plan.verify()
        module = lower_plan(plan, options)
        module.verify()
        for extents in sizes:
            arrays = random_arrays(system, extents, dtype="float64", seed=tile)
            wanted = evaluate_system(system, arrays, extents)
            rewritten = evaluate_program(nest.program, arrays, extents)
            for key, got in run_module(module, arrays, extents).items():
                np.testing.assert_allclose(got, wanted[key], rtol=1e-12, atol=1e-13)
                np.testing.assert_allclose(rewritten[key], wanted[key], rtol=1e-12, atol=1e-13)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("tile", [1, 2, 3])
def test_values_are_those_of_the_equations(name, tile):
    sizes = [dict(zip("ovx", n, strict=True)) for n in ((3, 5, 2), (1, 4, 3), (2, 0, 1))]
    assert check_values(PROGRAMS[name], tile, *sizes)


@st.composite
def symmetric_programs(draw):
    """A product of a large array, of either sign, and a factor that may need a second exchange."""
    made = draw(
        st.sampled_from(
            [
                "b[P,a,e]*b[P,b,f]",
                "b[P,a,e]*d[P,b,f] + d[P,a,e]*b[P,b,f]",
                "b[P,a,e]*d[P,b,f] - d[P,a,e]*b[P,b,f]",
                "b[P,a,b]*b[P,e,f] - b[P,b,a]*b[P,e,f]",
            ]
        )
    )
    pair = draw(st.sampled_from(["antisymmetric (0,1) (2,3)", "symmetry (0,2)<->(1,3)"]))
    factor, held = draw(st.sampled_from([(f"t[o,o,v,v] {pair}", "t[i,j,e,f]"), ("t[o]", "t[i]")]))
    summed = held != "t[i]"
    axes = "".join(draw(st.permutations("abef")))
    target = "".join(draw(st.permutations("ijab" if summed else "iabef")))
    coeff = draw(st.sampled_from(["", "-1/2*", "3*"]))
    before = draw(st.booleans())
    other = f"q[{','.join(target)}]"
    spaces = ",".join("o" if i in "ij" else "v" for i in target)
    lines = [
        f"input b[x,v,v], d[x,v,v], q[{spaces}], {factor}",
        "output r",
        f"W[{','.join(axes)}] = {made}",
        *([f"r[{','.join(target)}] = {other}"] if before else []),
        f"r[{','.join(target)}] {'+=' if before else '='} {coeff}W[{','.join(axes)}]*{held}",
    ]
    return SPACES + "\n".join(lines) + "\n"


@settings(max_examples=15, deadline=None)
@given(symmetric_programs(), st.integers(1, 4), st.tuples(*[st.integers(0, 5)] * 3))
def test_random_programs(text, tile, sizes):
    check_values(text, tile, dict(zip("ovx", sizes, strict=True)))


def test_images_of_the_result_are_added():
    program, _ = sequence(PROGRAMS["two pairs"], o=2, v=3, x=2)
    last = program.steps[-1]
    large = [t for t in program.tensors if t.name == "W"]
    (found,) = symmetric_results(program, last, large)
    assert [i.name for i in found.chain] == ["a", "b"]
    images = found.program.steps[-2:]
    assert all(isinstance(s.op, Add) for s in images)
    assert [[i.name for i in s.out.indices] for s in images] == [[*"ijab"], [*"jiba"]]
    assert sum(s.coeff for s in images) == last.coeff


def test_no_symmetry_no_nest():
    assert nests(UNEQUAL, o=3, v=5, x=4)[0] == []


def test_about_half_is_executed_within_a_limit():
    extents = {"o": 20, "v": 100, "x": 300}
    program, options = sequence(LADDER, **extents)
    executed = {}
    for limit in (None, 200 * 10**6):
        wish = Options(
            extents=options.extents, objective="time", optimize=False, memory_limit=limit
        )
        module = lower_plan(plan_fusion(program, wish), wish, thrifty=False)
        executed[limit] = totals(executed_by(module), extents).per_call.flops
    whole = sum(s.flops.value(extents) for s in program.steps)
    assert executed[None] < 0.52 * whole
    assert executed[200 * 10**6] < 0.56 * whole


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("target", "dtype"), [("numpy", "float64"), ("numpy", "complex128"), ("cpu", "float64")]
)
def test_a_program_within_a_limit_takes_them(target, dtype):
    extents = {"o": 7, "v": 23, "x": 17}
    limit = (2 if dtype == "complex128" else 1) * 300_000
    program = tcgen.compile(
        LADDER, extents=extents, target=target, dtype=dtype, memory_limit=limit, objective="time"
    )
    assert "<= loop 0" in program.explain()
    for other in (extents, {"o": 2, "v": 3, "x": 5}):
        arrays = random_arrays(read_spec(LADDER), other, dtype=dtype, seed=1)
        wanted = evaluate_system(read_spec(LADDER), arrays, other)["r2"]
        np.testing.assert_allclose(program(**arrays)["r2"], wanted, rtol=1e-12, atol=1e-12)
