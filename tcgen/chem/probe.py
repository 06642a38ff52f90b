"""Equations at small extents, with synthetic orbital energies and integrals, in the interpreter.

Evaluations there infer roles: which output is a residual, whether equations are linear, which
convention of integrals gives the right first order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from ..interp import evaluate_system
from ..ir.layouts import Array, pack
from ..ir.system import System
from ..ir.tensor import Ref, Space, Tensor
from ..probes import random_arrays
from ..records.quantity import Quantity
from .quantities import Found
from .spaces import Kind, OrbitalSpaces

_FACTORS = 3  # auxiliary functions of systems without an auxiliary space


class Probe:
    """A system at small extents, whose inputs ``found`` are quantities of a mean field."""

    def __init__(self, system: System, spaces: OrbitalSpaces, found: Mapping[str, Found]) -> None:
        self.system, self.spaces, self.found = system, spaces, found
        self.extents = {s.name: self._extent(s) for s in system.spaces if not s.parts}
        rng = np.random.default_rng(5)
        start = {Kind.OCCUPIED: -2.0, Kind.VIRTUAL: 0.5}
        self.energies = {
            name: start.get(spaces.kinds[name], 0.0) + rng.random(n)
            for name, n in self.extents.items()
        }
        self.random = random_arrays(system.inputs, self.extents, seed=7)
        self._starts, counts = self._numbered()
        auxiliary = [self.extents[n] for n, kind in spaces.kinds.items() if kind is Kind.AUXILIARY]
        self.factors = {}
        for spin, count in counts.items():
            factor = rng.random((auxiliary[0] if auxiliary else _FACTORS, count, count))
            self.factors[spin] = factor + factor.transpose(0, 2, 1)
        self._without_integrals = self._zeroed()
        self._rest = self.evaluate(self._without_integrals)

    def _numbered(self) -> tuple[dict[str, int], dict[str, int]]:
        """The first orbital of each base space among those of its spin, and their numbers."""
        starts, counts = {}, {"": 0}
        for name, spin in self.spaces.spins.items():
            starts[name] = counts.get(spin, 0)
            counts[spin] = starts[name] + self.extents[name]
        return starts, counts

    def _extent(self, space: Space) -> int:
        """Enough elements for antisymmetric axes, other numbers for other spaces."""
        most = max((t.spaces.count(space) for t in self.system.tensors), default=0)
        extra = {Kind.OCCUPIED: 1, Kind.VIRTUAL: 2}
        return min(most, 4) + extra.get(self.spaces.kinds[space.name], 2)

    def change_with(self, amplitude: Tensor) -> dict[str, Array]:
        """Change of the outputs by one amplitude, without integrals and other amplitudes."""
        arrays = self._without_integrals | {amplitude.name: self.drawn(amplitude)}
        moved = self.evaluate(arrays)
        return {name: array - self._rest[name] for name, array in moved.items()}

    def drawn(self, tensor: Tensor) -> Array:
        """A random array with the symmetry of this tensor, in the caller's layout."""
        return random_arrays((tensor,), self.extents, seed=7)[tensor.name]

    @property
    def occupied_energy(self) -> float:
        """Sum of the energies of all occupied orbitals."""
        kinds = self.spaces.kinds
        return float(
            sum(e.sum() for name, e in self.energies.items() if kinds[name] is Kind.OCCUPIED)
        )

    def is_linear(self, amplitudes: Iterable[str], outputs: Iterable[str]) -> bool:
        """True if twice the amplitudes give twice these outputs, whatever the other inputs are."""
        twice = self.random | {name: 2 * self.random[name] for name in amplitudes}
        one, two = self.evaluate(self.random), self.evaluate(twice)
        return all(np.allclose(2 * one[name], two[name], rtol=1e-9) for name in outputs)

    def vanishes(self, amplitudes: Iterable[str], outputs: Iterable[str]) -> bool:
        """True if these outputs are zero for zero amplitudes and any integrals."""
        arrays = dict(self.random)
        for name, found in self.found.items():
            if found.quantity is Quantity.ENERGIES:
                arrays[name] = pack(found.tensor, self.simple(found))
        for name in amplitudes:
            arrays[name] = np.zeros_like(arrays[name])
        results = self.evaluate(arrays)
        return not any(np.any(results[name]) for name in outputs)

    def without_amplitudes(self, integrals: Mapping[str, Found]) -> dict[str, Array]:
        """Outputs without amplitudes, with a diagonal Fock matrix and consistent integrals."""
        arrays = dict(self._without_integrals)
        for name, found in integrals.items():
            arrays[name] = pack(found.tensor, self.integrals(found))
        return self.evaluate(arrays)

    def chemist(self, *spaces: Space) -> Array:
        """(pq|rs) between spaces of orbitals, from the same factors as all other integrals."""
        p, q, r, s = spaces
        return np.tensordot(self.factor(p, q), self.factor(r, s), axes=(0, 0))

    def factor(self, p: Space, q: Space) -> Array:
        """Three-index integrals b[P,p,q], zero between orbitals of different spin."""
        spins = self.spaces.spin(p), self.spaces.spin(q)
        left, right = self._places(p), self._places(q)
        if spins[0] != spins[1]:
            return np.zeros((len(self.factors[""]), len(left), len(right)))
        return self.factors[spins[0] or ""][:, left][:, :, right]

    def _places(self, space: Space) -> list[int]:
        """Places of the orbitals of a space among all of its spin."""
        places: list[int] = []
        for base in space.bases:
            start = self._starts[base.name]
            places += range(start, start + self.extents[base.name])
        return places

    def phase(self, tensor: Tensor, phases: Mapping[str, Array], sign: int) -> Array:
        """The product of the phases of occupied orbitals and conjugate ones of virtual orbitals.

        ``phases`` are by spin; those of ``sign`` -1 are the conjugates.
        """
        result = np.ones((1,) * tensor.rank, complex)
        for axis, space in enumerate(tensor.spaces):
            spin = self.spaces.spin(space)
            if spin is None:
                continue
            values = phases[spin][self._places(space)]
            occupied = self.spaces.kind(space) is Kind.OCCUPIED
            values = values if occupied == (sign > 0) else values.conj()
            result = result * values.reshape(-1, *(1,) * (tensor.rank - axis - 1))
        return result

    def integrals(self, found: Found) -> Array:
        """The array of two-electron or three-index integrals."""
        tensor = found.tensor
        orbital = [s for k, s in enumerate(tensor.spaces) if k != found.other_axis]
        if found.quantity is Quantity.THREE_INDEX:
            return np.moveaxis(self.factor(*orbital), 0, found.other_axis or 0)
        p, q, r, s = orbital
        if found.quantity is Quantity.CHEMIST:
            return self.chemist(p, q, r, s)
        direct = self.chemist(p, r, q, s).transpose(0, 2, 1, 3)
        if found.quantity is Quantity.PHYSICIST:
            return direct
        return direct - self.chemist(p, s, q, r).transpose(0, 2, 3, 1)

    def _zeroed(self) -> dict[str, Array]:
        """Orbital energies on the diagonal of the Fock matrix, no integrals, no amplitudes."""
        arrays = dict(self.random)
        for tensor in self.system.inputs:
            if tensor.name in self.found:
                logical = self.simple(self.found[tensor.name])
                arrays[tensor.name] = pack(tensor, logical)
            elif tensor.rank and not self.is_other(tensor):
                arrays[tensor.name] = np.zeros_like(arrays[tensor.name])
        return arrays

    def is_other(self, tensor: Tensor) -> bool:
        """True for an input over no orbitals, such as weights of a quadrature."""
        return not any(self.spaces.spin(space) is not None for space in tensor.spaces)

    def evaluate(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of the equations.

        Products with zero are left out first: most of those of quadruples.
        """
        zero = {name for name, array in arrays.items() if not np.any(array)}
        # A tensor may have several equations, of which one with terms is enough.
        made: set[str] = set()
        equations = []
        for equation in self.system.equations:
            factors = (
                (t, [f.tensor.name for f in t.factors if isinstance(f, Ref)])
                for t in equation.terms
            )
            terms = tuple(t for t, names in factors if zero.isdisjoint(names))
            equations.append(replace(equation, terms=terms))
            name = equation.lhs.tensor.name
            made |= {name} if terms else set()
            (zero.discard if name in made else zero.add)(name)
        with np.errstate(all="ignore"):
            system = replace(self.system, equations=tuple(equations))
            return evaluate_system(system, arrays, self.extents)

    def simple(self, found: Found) -> Array:
        """Orbital energies, a diagonal Fock matrix, or no integrals."""
        tensor = found.tensor
        parts = [[base.name for base in space.bases] for space in tensor.spaces]
        values = [np.concatenate([self.energies[name] for name in names]) for names in parts]
        if found.quantity is Quantity.ENERGIES:
            return values[0]
        result = np.zeros([len(v) for v in values])
        if found.quantity is Quantity.FOCK:
            names = [np.repeat(p, [self.extents[n] for n in p]) for p in parts]
            places = [np.concatenate([np.arange(self.extents[n]) for n in p]) for p in parts]
            same = (names[0][:, None] == names[1]) & (places[0][:, None] == places[1])
            result[same] = np.broadcast_to(values[0][:, None], same.shape)[same]
        return result
