"""Limits of memory and launches: advice that costs little, and hyper-edges that fit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.compiler import limits
from tcgen.compiler.driver import compile_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.options import Options
from tcgen.resources import spec_path

LIMIT = 10_000
CHAIN = """
space o = 40
index i j k : o
input a[o,o], b[o,o]
output e
s[i,j] = a[i,k]*b[k,j]
t[i,j] = a[i,k]*b[k,j]*2 + s[j,i]
e = sum(i,j) cos(t[i,j])
"""


@pytest.mark.parametrize("objective", ["none", "linear", "memory", "peak", "time", "kernels"])
def test_no_objective_refuses_what_another_one_finds(objective: str) -> None:
    wish = {"objective": objective, "optimize": False, "target": "numpy"}
    program = tcgen.compile(CHAIN, memory_limit=100, **wish)
    random = np.random.default_rng(3)
    a, b = random.random((40, 40)), random.random((40, 40))
    s = a @ b
    np.testing.assert_allclose(program(a=a, b=b)["e"], np.cos(2 * s + s.T).sum(), rtol=1e-10)
    assert program.allocated_bytes <= 100
    with pytest.raises(tcgen.MemoryLimitError, match=mentions("limit 4 predicted time")) as error:
        tcgen.compile(CHAIN, memory_limit=4, **wish)
    (least,) = re.findall(r"Raise the limit to (\d+) or more", str(error.value))
    assert tcgen.compile(CHAIN, memory_limit=int(least), **wish).peak_bytes() <= int(least) <= 100


@pytest.mark.parametrize(
    "subscripts",
    [
        "abx,bcx,cax->",
        "abx,bcx,cax->x",
        "xa,xb,xc,ya,yb,yc->xy",
        "ab,ac,ad,bc,bd,cd->",
        "abc,abd,acd,bcd->a",
    ],
)
def test_loops_over_indices_of_many_operands_keep_a_limit(subscripts: str) -> None:
    """Products of two operands keep such an index, so that their arrays pass the limit whole."""
    names = subscripts.split("->")[0]
    extents = dict.fromkeys(sorted(set(names) - {","}), 12)
    operands = names.split(",")
    random = np.random.default_rng(7)
    arrays = [random.random([12] * len(labels)) for labels in operands]
    program = tcgen.compile(
        subscripts, extents=extents, objective="time", memory_limit=LIMIT, target="numpy"
    )
    found = program(**{f"x{n}": x for n, x in enumerate(arrays)})["y"]
    np.testing.assert_allclose(found, np.einsum(subscripts, *arrays, optimize=True), rtol=1e-10)
    assert program.allocated_bytes <= LIMIT


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({"objective": "time", "memory_limit": 8_000_000}, "limit 8,000,000 larger"),
        ({"objective": "peak"}, "objective time none"),
        ({"objective": "peak", "memory_limit": 8_000_000}, "limit 8,000,000 larger objective time"),
    ],
)
def test_too_many_launches_are_refused(
    given: dict[str, Any], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    extents = {"o": 30, "v": 200, "x": 600}
    program = tcgen.compile(spec_path("mp2_df"), extents=extents, target="cuda", **given)
    count = program.report["launches"]
    assert count > 4
    monkeypatch.setattr(limits, "MOST_LAUNCHES", count - 1)
    message = mentions(f"launches {count:,} {count - 1:,} loops host tiles by {advice}")
    with pytest.raises(tcgen.PlanError, match=message):
        tcgen.compile(spec_path("mp2_df"), extents=extents, target="cuda", **given)
    tcgen.compile(spec_path("mp2_df"), extents=extents, target="numpy", **given)


PACKED = """
space o
space v
index i j k l : o
index a b : v
input t[o,o,v,v] antisymmetric (0,1) (2,3) packed (0,1) (2,3)
input u[o,o,v,v] antisymmetric (0,1) (2,3) packed (0,1) (2,3)
output r[o,o,v,v] antisymmetric (0,1) (2,3) packed (0,1) (2,3)
x[i,j,k,l] = t[i,j,a,b]*u[k,l,a,b]
r[i,j,a,b] = x[i,j,k,l]*u[k,l,a,b]
"""


@pytest.mark.few(2)
@pytest.mark.parametrize("objective", ["time", "linear", "memory", "peak"])
def test_a_plan_that_exists_and_fits_is_a_candidate(objective: str) -> None:
    """Lowering packs arrays, so that the unfused plan takes less than searches count."""
    system, extents = read_spec(PACKED), (("o", 6), ("v", 9))

    def used(objective: str, limit: int | None = None) -> int:
        wish = Options(extents, objective=objective, memory_limit=limit)
        made = compile_system(system, wish, documents=False)
        return limits.planned_use(made.module, wish).peak

    least = used("peak")
    assert least <= used("none")
    assert all(used(objective, limit) <= limit for limit in (least, used("none")))


REPEATED = """
space o occupied = 7
space v virtual = 9
space x auxiliary = 9
space p = o + v
index i j n m : o
index f e : v
index u : p
index T : x
input B[o] constant
input C[p,v] generated constant
input D[v,v,x]
input e_o[o] constant
input e_v[v] constant
input u_o[o] constant
output r0
output r1
r0[i,j] = -sum(f) B[n]*C[i,e]/(e_o[n] - e_v[f] + e_o[i] - e_v[e])
r0[i,j] += u_o[j]
r1 = 3/2*sum(f,e,n) log(1 + abs(B[m]))*delta[f,e]*r0[n,m]
r1 -= 1/4*sum(u,f) cos(C[u,f])*r0[m,m]
r1 += 1/2*sum(T,n,m,f) D[e,e,T]*B[n]*C[m,f]
"""


def test_what_a_smaller_limit_finds_is_a_candidate() -> None:
    """Without a limit the search stops at whole arrays; loops over tiles are faster."""
    system, extents = read_spec(REPEATED), (("o", 7), ("v", 9), ("x", 9))

    def seconds(limit: int) -> float:
        wish = Options(extents, optimize=False, memory_limit=limit)
        return float(compile_system(system, wish, documents=False).plan.solve.value or 0)

    less, whole, more = map(seconds, (4390, 5488, 8232))
    assert more <= whole <= less


@pytest.mark.parametrize(
    "extents", [{"i": 2**31, "j": 2**31, "k": 1}, {"i": 2**40, "j": 1, "k": 2**30}]
)
def test_extents_whose_arrays_no_machine_addresses_are_refused(extents: dict[str, int]) -> None:
    with pytest.raises(tcgen.ExtentError, match="more than a machine addresses"):
        tcgen.compile("ij,jk->ik", extents=extents, target="numpy")
