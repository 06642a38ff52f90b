"""The Hubbard model on a ring: CCSD and (T) of its integrals, beside exact diagonalisation.

Six sites are filled to half. The orbitals are eigenvectors of the hopping, which are canonical for
closed shells, and their integrals are a Hamiltonian for ``tcgen.chem.solve``: no atoms, no SCF, no
PySCF. CCSD is exact for two electrons.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np

import tcgen

SITES = 6
# Largest deviations of the energies of CCSD(T) up to U = 2, in units of the hopping.
EXPECTED = {2: 1e-8, 6: 2e-3}


def hopping() -> np.ndarray:
    """The matrix of the hopping, -1 between neighbours on the ring."""
    ring = np.roll(np.eye(SITES), 1, axis=0)
    return -(ring + ring.T)


def over_orbitals(repulsion: float) -> tuple[np.ndarray, np.ndarray]:
    """h and (pq|rs) over the eigenvectors of the hopping."""
    levels, c = np.linalg.eigh(hopping())
    return np.diag(levels), repulsion * np.einsum("ip,iq,ir,is->pqrs", c, c, c, c)


def exact(repulsion: float, electrons: int) -> float:
    """The lowest eigenvalue, with equal numbers of electrons of both spins, over sites."""
    states = list(combinations(range(SITES), electrons // 2))
    t, number = hopping(), {state: k for k, state in enumerate(states)}
    moves = np.zeros((len(states),) * 2)
    for state, k in number.items():
        for place, site in enumerate(state):
            for other in set(range(SITES)) - {*state}:
                moved = tuple(sorted((*state[:place], other, *state[place + 1 :])))
                # One sign for each electron between the two places.
                sign = (-1) ** (place + moved.index(other))
                moves[number[moved], k] += sign * t[other, site]
    one = np.eye(len(states))
    both = np.array([[len({*a} & {*b}) for b in states] for a in states])
    matrix = np.kron(moves, one) + np.kron(one, moves) + repulsion * np.diag(both.ravel())
    return float(np.linalg.eigvalsh(matrix)[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default=None, help="cpu or numpy")
    target = parser.parse_args().target
    print("U  electrons      E(HF)    E(CCSD)     +(T)      exact")
    wrong = False
    for repulsion in (1.0, 2.0):
        for electrons, most in EXPECTED.items():
            ring = tcgen.chem.hamiltonian(*over_orbitals(repulsion), nelec=electrons, origin="ring")
            ccsd = tcgen.chem.solve("ccsd_closed_shell", ring, target=target, show=False)
            triples = tcgen.chem.solve(
                "t_closed_shell", ring, amplitudes=ccsd, target=target, show=False
            )
            total = ccsd.e_tot + triples.energies["e_t"]
            found = exact(repulsion, electrons)
            wrong |= abs(total - found) > most
            print(
                f"{repulsion:g}  {electrons:9d} {ring.e_hf:10.6f} {ccsd.e_tot:10.6f} "
                f"{total:10.6f} {found:10.6f}"
            )
    return int(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
