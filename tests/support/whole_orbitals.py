"""Whole tensors over orbitals, from which the arrays of any way to write the equations are cut."""

from __future__ import annotations

import itertools

import numpy as np

from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.ir.tensor import Space, Tensor

AUXILIARY = 7
Arrays = dict[str, np.ndarray]


class WholeOrbitals:
    """Tensors over the orbitals o, O, v, V in this order, by the letters of pdaggerq's names.

    ``halves``: orbitals of each of the four. With ``spin``, O and V are beta and what changes the
    spin is zero. v and eri are <pq||rs> = (pr|qs) - (ps|qr) of fitted integrals B.
    """

    def __init__(
        self, halves: dict[str, int], *, spin: bool = False, ranks: tuple[int, ...] = (1, 2)
    ) -> None:
        starts = np.cumsum([0, *(halves[n] for n in "oOvV")])
        self._places = {n: np.arange(*starts[k : k + 2]) for k, n in enumerate("oOvV")}
        self._upper = np.repeat([0, 1, 0, 1], [halves[n] for n in "oOvV"])
        self._spin, self._rng = spin, np.random.default_rng(7)
        b = self._rng.standard_normal((AUXILIARY, self._upper.size, self._upper.size))
        b = (b + b.transpose(0, 2, 1)) * (np.equal.outer(self._upper, self._upper) if spin else 1)
        coulomb = np.einsum("Qpr,Qqs->pqrs", b, b)
        v = coulomb - coulomb.transpose(0, 1, 3, 2)
        amplitudes = {f"t{n}": self._amplitude(n) for n in ranks}
        self._whole = {"B": b, "v": v, "eri": v, "f": self._amplitude(1, "ov", "ov"), **amplitudes}

    def _amplitude(self, rank: int, upper: str = "v", lower: str = "o") -> np.ndarray:
        """Random, antisymmetric in the upper and in the lower half; elsewhere zero."""
        spaces = [self._held(upper)] * rank + [self._held(lower)] * rank
        raw = self._rng.standard_normal([len(x) for x in spaces])
        for half in (range(rank), range(rank, 2 * rank)):
            orders = itertools.permutations(range(rank))
            raw = sum(
                parity(o) * np.moveaxis(raw, list(half), [half[k] for k in o]) for o in orders
            )
        if self._spin:
            betas = [self._upper[x] for x in spaces]
            counts = [sum(np.ix_(*betas[k : k + rank]), np.array(0)) for k in (0, rank)]
            raw = raw * np.equal.outer(*counts)
        made = np.zeros((self._upper.size,) * 2 * rank)
        made[np.ix_(*spaces)] = raw
        return made

    def _held(self, spaces: str) -> np.ndarray:
        """Places of both halves of each space."""
        return np.concatenate([self._places[x] for n in spaces for x in (n, n.upper())])

    def _axis(self, space: Space, plain: bool) -> np.ndarray:
        if space.name == "Q":
            return np.arange(AUXILIARY)
        return self._held(space.name) if plain else self._places[space.name]

    def evaluate(self, system: System, *, plain: bool) -> Arrays:
        """Outputs of a system; ``plain``: o and v are all occupied and virtual orbitals."""
        arrays = {}
        for tensor in system.inputs:
            whole = self._whole[tensor.name.partition("_")[0]]
            axes = [self._axis(s, plain) for s in tensor.spaces]
            arrays[tensor.name] = np.ascontiguousarray(whole[np.ix_(*axes)])
        extents = {s.name: self._axis(s, plain).size for s in system.spaces}
        return evaluate_system(system, arrays, extents)

    def part(self, result: np.ndarray, tensor: Tensor) -> np.ndarray:
        """Elements of a plain result on the axes of a tensor over halves."""
        places = []
        for space in tensor.spaces:
            both = self._held(space.name.lower())
            places.append(np.flatnonzero(np.isin(both, self._places[space.name])))
        return result[np.ix_(*places)] if places else result


def parity(order: tuple[int, ...]) -> int:
    return (-1) ** sum(a > b for a, b in itertools.combinations(order, 2))
