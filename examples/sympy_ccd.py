"""CCD derived with SymPy's secondquant, compiled and solved: H2O in 6-31G. Needs no PySCF.

    python examples/sympy_ccd.py

The derivation is the one of SymPy's documentation (sympy.physics.secondquant), for doubles. Ends
with status 1 if the energy differs from PySCF's by more than 1e-8 Hartree.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from diis import denominators, iterate, updating
from spin_orbitals import spin_orbital_blocks
from sympy import Dummy, Expr, Rational, symbols
from sympy.physics.secondquant import (
    NO,
    AntiSymmetricTensor,
    Commutator,
    F,
    Fd,
    PermutationOperator,
    evaluate_deltas,
    simplify_index_permutations,
    substitute_dummies,
    wicks,
)

import tcgen

DATA = Path(__file__).resolve().parent / "data" / "water_631g.npz"
E_CCD = -0.134695161945  # H2O/6-31G, PySCF
LETTERS = {"below": "ijklmno", "above": "abcdefg", "general": "pqrstu"}


def doubles() -> Expr:
    """T2 with dummies of its own."""
    i, j = symbols("i,j", below_fermi=True, cls=Dummy)
    a, b = symbols("a,b", above_fermi=True, cls=Dummy)
    t = AntiSymmetricTensor("t", (a, b), (i, j))
    return Rational(1, 4) * t * NO(Fd(a) * F(i) * Fd(b) * F(j))


def ccd() -> tuple[Expr, Expr]:
    """The energy and the residual R(a,b,i,j) of exp(-T2) H exp(T2)."""
    p, q, r, s = symbols("p,q,r,s", cls=Dummy)
    fock = AntiSymmetricTensor("f", (p,), (q,)) * NO(Fd(p) * F(q))
    pairs = AntiSymmetricTensor("v", (p, q), (r, s)) * NO(Fd(p) * Fd(q) * F(s) * F(r))
    total = nested = fock + Rational(1, 4) * pairs
    for order in (1, 2):  # further commutators do not reach the doubles
        nested = wicks(Commutator(nested, doubles())).expand()
        nested = substitute_dummies(evaluate_deltas(nested))
        total += nested / order
    total = substitute_dummies(
        evaluate_deltas(total.expand()), new_indices=True, pretty_indices=LETTERS
    )
    energy = wicks(total, simplify_dummies=True, keep_only_fully_contracted=True)
    i, j = symbols("i,j", below_fermi=True)
    a, b = symbols("a,b", above_fermi=True)
    projected = NO(Fd(i) * Fd(j) * F(b) * F(a)) * total
    residual = wicks(projected, simplify_kronecker_deltas=True, keep_only_fully_contracted=True)
    residual = substitute_dummies(residual, new_indices=True, pretty_indices=LETTERS)
    swaps = [PermutationOperator(a, b), PermutationOperator(i, j)]
    return energy, simplify_index_permutations(residual, swaps)


def main() -> int:
    """Derive, compile, solve and compare; 0 if the energy is right."""
    energy, residual = ccd()
    system = tcgen.from_sympy({"e": energy, "r2(a,b,i,j)": residual}, name="ccd", real=True)
    print(system.pretty())
    program = tcgen.compile(system, extents={"o": 10, "v": 16})
    with np.load(DATA) as file:
        closed = dict(file)
    arrays = spin_orbital_blocks(closed, [t.name for t in system.inputs])
    e_o, e_v = arrays.pop("e_o"), arrays.pop("e_v")
    d1, d2 = (d.T.copy() for d in denominators(e_o, e_v))  # virtual axes first, as t2[a,b,i,j]
    d2 = d2.transpose(1, 0, 3, 2).copy()
    start = {"t2": arrays["v_oovv"].transpose(2, 3, 0, 1) / d2}
    result = iterate(updating(program.bind(**arrays), d1, d2), start, tolerance=1e-9)
    error = result.energy - E_CCD
    print(f"E(CCD) = {result.energy:.12f} after {result.iterations} iterations")
    print(f"PySCF  = {E_CCD:.12f}   difference {error:.1e} Hartree")
    return 0 if abs(error) < 1e-8 else 1


if __name__ == "__main__":
    sys.exit(main())
