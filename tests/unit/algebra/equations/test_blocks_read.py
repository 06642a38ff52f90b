"""Intermediates over joined spaces: the blocks that are read are made, and mean the same."""

from __future__ import annotations

import pytest

import tcgen
from tcgen.algebra.equations.intermediates import split_by_reads
from tcgen.algebra.equations.proven_symmetry import normalised
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.testing import assert_same_values, random_arrays

SPACES = """
space o
space v
space all = o + v
index i j m n : o
index a b e f : v
index p q r s p1 q1 r1 s1 : all
"""
DRESSED = """
input g[p,q,r,s] antisymmetric (p,q) (r,s) symmetry (p,q)<->(r,s) constant
input t1[o,v] constant, r1[o], r2[o,o,v]
output s1, s2
L[p,q] = delta[p,q] - delta[a,p]*t1[m,a]*delta[m,q]
R[p,q] = delta[p,q] + delta[p,e]*t1[i,e]*delta[i,q]
D[p,q,r,s] = L[p,p1]*L[q,q1]*g[p1,q1,r1,s1]*R[r1,r]*R[s1,s]
s1[i] = D[n,m,i,e]*r2[m,n,e]
s2[i,j,a] = P(i,j) D[m,a,i,j]*r1[m] + 1/2*D[m,n,i,j]*r2[m,n,a]
"""
# Reads of a whole axis, of slices of it, of permuted blocks, and inside a function.
MIXED = """
input g[all,all,all], x[o], y[v], z[all]
output s, t, u
W[p,q,r] = P(p,q) g[p,q,r]*z[p]*z[q]
V[p,q] = g[p,q,s]*z[s] + delta[p,q]
s[i,a] = W[i,a,p]*z[p] + W[a,i,m]*x[m] + W[m,i,a]*x[m]
t[i] = V[i,j]*x[j] + V[a,i]*y[a]
u[a] = exp(V[a,a])*y[a]
"""


def split(text: str) -> tuple[System, System]:
    system = normalised(tcgen.read_spec(SPACES + text), False)
    return system, split_by_reads(system, False, 400)


@pytest.mark.parametrize("text", [DRESSED, MIXED], ids=["dressed", "mixed"])
@pytest.mark.parametrize("extents", [{"o": 2, "v": 3}, {"o": 3, "v": 1}, {"o": 1, "v": 0}])
def test_blocks_mean_the_same(text: str, extents: dict[str, int]) -> None:
    system, blocks = split(text)
    blocks.verify()
    arrays = random_arrays(system, extents, seed=1)
    assert_same_values(
        evaluate_system(blocks, arrays, extents), evaluate_system(system, arrays, extents)
    )


def test_only_blocks_that_are_read_are_made() -> None:
    _, blocks = split(DRESSED)
    made = [e.lhs.tensor for e in blocks.equations]
    assert sorted(t.name for t in made) == ["D_oooo", "D_ooov", "D_ovoo", "s1", "s2"]
    assert not any(space.parts for tensor in made for space in tensor.spaces)
    assert "delta" not in blocks.pretty()


def test_a_block_within_a_larger_one_is_a_slice_of_it() -> None:
    _, blocks = split(MIXED)
    names = [e.lhs.tensor.name for e in blocks.equations]
    assert sum(name.startswith("W_ovall") for name in names) == 1
