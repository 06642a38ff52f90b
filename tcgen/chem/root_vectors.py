"""Vectors of roots as states: their spins and irreps, and their leading amplitudes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import isqrt
from typing import Any

import numpy as np

from ..ir.layouts import Array
from ..ir.tensor import Space, Tensor
from ..simplices import parity
from .eigen import independent_elements
from .frames import SPATIAL, Frame
from .inputs import MeanFieldInputs
from .reference import Reference
from .spaces import Kind, OrbitalSpaces
from .states import State, States

EQUAL = 1e-6  # largest difference of roots that are taken as equal, in Hartree
_PURE = 1e-4  # largest element of a normalised vector that another irrep or spin may have
# Multiples of numbers of irreps, 0 to 7, and of Sz beside S^2, so that no two sums are equal.
_OF_IRREP, _OF_Z = 0.17, 0.013
_SPINS = re.compile(r"\w*_([ab]+)")  # a block of a closed shell, such as r2_aba
_LEADING = 0.1  # smallest leading amplitude of a normalised vector
_SHOWN = 3  # leading amplitudes of a state


def groups(values: Sequence[float], width: float = EQUAL) -> list[list[int]]:
    """Numbers of sorted values in groups, which are further apart than ``width``.

    Example:
        >>> groups([0.1, 0.1, 0.2])
        [[0, 1], [2]]
    """
    found: list[list[int]] = []
    for k, value in enumerate(values):
        if found and value - values[k - 1] <= width:
            found[-1].append(k)
        else:
            found.append([k])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Right vectors of roots: tensors without the axis of roots, arrays that have it first.

    ``bases`` are the spaces of orbitals; ``multiplicity`` is that of all states whose vectors do
    not show it.
    """

    tensors: tuple[Tensor, ...]
    bases: tuple[Space, ...]
    spaces: OrbitalSpaces
    blocks: MeanFieldInputs
    reference: Reference
    multiplicity: int | None = None

    def pure(self, values: Sequence[float], arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The vectors, with those of equal roots turned into vectors of one spin and irrep each."""
        turned = {n: a.copy() for n, a in arrays.items()}
        for group in groups(values):
            found = self._marked(arrays, group) if len(group) > 1 else None
            if found is None:
                continue
            # Both operators are Hermitian, and so is their matrix over orthonormal vectors.
            vectors, images = found
            unit, factor = np.linalg.qr(vectors.T)
            inverse = np.linalg.inv(factor.T)
            matrix = unit.conj().T @ (inverse @ images).T
            turn = np.linalg.eigh((matrix + matrix.conj().T) / 2)[1].T @ inverse
            for name, array in arrays.items():
                turned[name][group] = np.tensordot(turn, array[group], axes=1)
        return turned

    def _marked(
        self, arrays: Mapping[str, Array], group: Sequence[int]
    ) -> tuple[Array, Array] | None:
        """Vectors, and an operator times them that has another value for each spin and irrep.

        It is S^2 and small multiples of Sz and of the number of the irrep; None if neither spins
        nor irreps are known.
        """
        squares, labels = self._squared(arrays, group, _OF_Z), self._irreps()
        if squares is not None:
            if labels is not None:
                whole = self._over_spin_orbitals(labels, signed=False).values()
                squares[1][:] += _OF_IRREP * squares[0] * np.concatenate([x.ravel() for x in whole])
            return squares
        if labels is None:
            return None
        vectors = np.array(
            [np.concatenate([arrays[t.name][k].ravel() for t in self.tensors]) for k in group]
        )
        return vectors, vectors * np.concatenate([x.ravel() for x in labels.values()])

    def states(self, values: Sequence[float], arrays: Mapping[str, Array]) -> States:
        """The states of sorted roots, whose equal ones have vectors of one spin each."""
        found: list[State] = []
        for group in groups(values):
            by_spin: dict[tuple[int | None, float | None], list[int]] = {}
            for k in group:
                by_spin.setdefault(self._spin(arrays, k), []).append(k)
            for (multiplicity, s2), roots in by_spin.items():
                # The roots of a multiplet are as many as its components.
                size = multiplicity if self._components and multiplicity else 1
                for start in range(0, len(roots), size):
                    own = tuple(roots[start : start + size])
                    leading, irrep = self._amplitudes(arrays, own[0])
                    energy = float(values[own[0]])
                    found.append(State(energy, own, multiplicity, s2, irrep=irrep, leading=leading))
        return States(sorted(found, key=lambda s: s.roots))

    @property
    def _components(self) -> bool:
        """True if vectors of all components of a multiplet are there: over spin orbitals."""
        return self.blocks.orbitals == "spin"

    def _spin(self, arrays: Mapping[str, Array], k: int) -> tuple[int | None, float | None]:
        """2S + 1 and the expectation value of S^2 of a vector, if known."""
        squares = self._squared(arrays, [k])
        if squares is None and self.multiplicity is not None:
            spin = (self.multiplicity - 1) / 2
            return self.multiplicity, spin * (spin + 1)
        if squares is None:
            return None, None
        (vector,), (image,) = squares
        s2 = float((np.vdot(vector, image) / np.vdot(vector, vector)).real)
        if np.linalg.norm(image - s2 * vector) > _PURE * np.linalg.norm(vector):
            return None, s2
        multiplicity = isqrt(round(4 * s2 + 1))
        return multiplicity, round(s2, 6) + 0.0

    def _squared(
        self, arrays: Mapping[str, Array], chosen: Sequence[int], of_z: float = 0.0
    ) -> tuple[Array, Array] | None:
        """Vectors over determinants, and S^2 + of_z*Sz times them; None if spins are not known.

        The reference must be a closed shell, so that S^2 times its determinant is zero.
        """
        if SPATIAL not in self.reference.frames:
            return None
        if self._spatial and any(self._spins(t) is None for t in self.tensors):
            return None
        if any(self.spaces.spin(s) is None for t in self.tensors for s in t.spaces):
            return None
        pairs = [self._over_spin_orbitals({n: a[k] for n, a in arrays.items()}) for k in chosen]
        flat = [np.concatenate([a.ravel() for a in vector.values()]) for vector in pairs]
        squared = [self._s2(vector, of_z) for vector in pairs]
        images = [np.concatenate([a.ravel() for a in vector.values()]) for vector in squared]
        return np.array(flat), np.array(images)

    def _over_spin_orbitals(
        self, arrays: Mapping[str, Array], *, signed: bool = True
    ) -> dict[tuple[int, int], Array]:
        """A vector by numbers of holes and particles, all of the first before all of the second.

        Blocks of alpha and beta orbitals are put together, beta after alpha. Exchanges change the
        sign of amplitudes, but not of other numbers. A block over spatial orbitals is also that of
        the other spins.
        """
        orbitals = self._orbitals()
        made: dict[tuple[int, int], Array] = {}
        for tensor in self.tensors:
            occupied = [n for n, s in enumerate(tensor.spaces) if self._is(s, Kind.OCCUPIED)]
            virtual = [n for n, s in enumerate(tensor.spaces) if self._is(s, Kind.VIRTUAL)]
            array = arrays[tensor.name].transpose(occupied + virtual)
            sizes = [self._count(Kind.OCCUPIED)] * len(occupied)
            sizes += [self._count(Kind.VIRTUAL)] * len(virtual)
            empty = np.zeros(sizes, array.dtype)
            whole = made.setdefault((len(occupied), len(virtual)), empty)
            for spins in self._both_spins(tensor):
                places = [orbitals[tensor.spaces[n].name + spins[n]] for n in (*occupied, *virtual)]
                # Blocks of several spins stand for those with exchanged spins as well.
                for one in permutations(range(len(occupied))):
                    for two in permutations(range(len(virtual))):
                        axes = [*one, *(len(one) + n for n in two)]
                        own = np.ix_(*(places[n] for n in axes))
                        sign = parity(one) * parity(two) if signed else 1
                        whole[own] = sign * array.transpose(axes)
        return made

    @property
    def _spatial(self) -> bool:
        return self.blocks.orbitals == "spatial"

    def _spins(self, tensor: Tensor) -> str | None:
        """Spins of the axes of a block over spatial orbitals, which its name has; or None."""
        match = _SPINS.fullmatch(tensor.name)
        if match and len(match[1]) == tensor.rank:
            return match[1]
        return "a" if tensor.rank == 1 else None

    def _both_spins(self, tensor: Tensor) -> list[Sequence[str]]:
        """Spins of axes, and these exchanged; none where spaces of orbitals have spins."""
        if not self._spatial:
            return [[""] * tensor.rank]
        own = self._spins(tensor) or ""
        return [own, own.translate(str.maketrans("ab", "ba"))]

    def _orbitals(self) -> dict[str, Array]:
        """The places of the orbitals of each base space among all occupied or virtual ones.

        Spatial orbitals have two places each, by the name of their space and a spin.
        """
        starts = {Kind.OCCUPIED: 0, Kind.VIRTUAL: 0}
        found = {}
        for kind in starts:
            names = [n for n, k in self.spaces.kinds.items() if k is kind]
            for name in sorted(names, key=lambda n: self.spaces.spins[n]):
                for spin in "ab" if self._spatial else ("",):
                    count = self._extent(name)
                    found[name + spin] = np.arange(starts[kind], starts[kind] + count)
                    starts[kind] += count
        return found

    def _s2(
        self, vector: Mapping[tuple[int, int], Array], of_z: float
    ) -> dict[tuple[int, int], Array]:
        """S^2 + of_z*Sz times a vector: S- S+ + Sz (Sz + 1 + of_z)."""
        raised, z = self._spin_operators()
        up = {key: _applied(a, key[0], *raised) for key, a in vector.items()}
        lowered = tuple(m.T for m in raised)
        result = {}
        for key, array in vector.items():
            down = _applied(up[key], key[0], *lowered)
            along = _applied(array, key[0], *z)
            result[key] = down + _applied(along, key[0], *z) + (1 + of_z) * along
        return result

    def _spin_operators(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """S+ and Sz over the occupied and over the virtual orbitals."""
        raised, z = [], []
        for kind in (Kind.OCCUPIED, Kind.VIRTUAL):
            spins: list[str] = []
            numbers: list[int] = []
            names = [n for n, k in self.spaces.kinds.items() if k is kind]
            for name in sorted(names, key=lambda n: self.spaces.spins[n]):
                frame, places = self._frame(name)
                if self._spatial:
                    spins += ["a"] * len(places) + ["b"] * len(places)
                    numbers += [*places, *places]
                    continue
                for place in places:
                    for spin, part in frame.parts.items():
                        if part.places[place] >= 0:
                            spins.append(spin)
                            numbers.append(int(part.places[place]))
            alpha = np.array([s == "a" for s in spins], bool)
            same = np.equal.outer(numbers, numbers)
            raised.append((same & alpha[:, None] & ~alpha[None, :]).astype(float))
            z.append(np.diag(np.where(alpha, 0.5, -0.5)))
        return (raised[0], raised[1]), (z[0], z[1])

    def _amplitudes(
        self, arrays: Mapping[str, Array], k: int
    ) -> tuple[tuple[tuple[float, str], ...], str | None]:
        """Leading amplitudes of a normalised vector, and the irrep that all amplitudes have.

        Complex amplitudes have phases that mean nothing, and only their size is returned.
        """
        entries = []
        for tensor in self.tensors:
            array = arrays[tensor.name][k]
            part = independent_elements(tensor, array.shape)
            entries.append((tensor, array.shape, part.places, part.pack(array)))
        entries = [(*of, abs(x) if np.iscomplexobj(x) else x) for *of, x in entries]
        norm = np.sqrt(sum(float(x @ x) for *_, x in entries)) or 1.0
        large = [
            (float(x[n]) / norm, tensor, np.unravel_index(places[n], shape))
            for tensor, shape, places, x in entries
            for n in np.argsort(-np.abs(x), kind="stable")
            if abs(x[n]) > _PURE * norm
        ]
        labels = self._irreps()
        known = {int(labels[t.name][place]) for _, t, place in large} if labels else set()
        irrep = self._name_of_irrep(known.pop()) if len(known) == 1 else None
        large.sort(key=lambda one: -abs(one[0]))
        sign = 1.0 if not large or large[0][0] > 0 else -1.0
        leading = tuple(
            (round(sign * c, 6), self._named(tensor, place))
            for c, tensor, place in large[:_SHOWN]
            if abs(c) >= _LEADING
        )
        return leading, irrep

    def _named(self, tensor: Tensor, place: Sequence[Any]) -> str:
        """Occupied orbitals, an arrow, virtual ones; with spins where the block's name has them."""
        sides: dict[Kind, list[str]] = {Kind.OCCUPIED: [], Kind.VIRTUAL: []}
        spins = (self._spatial and tensor.rank > 1 and self._spins(tensor)) or [""] * tensor.rank
        for space, n, spin in zip(tensor.spaces, place, spins, strict=True):
            frame, places = self._frame(space.name)
            kind = self.spaces.kinds[space.name]
            if kind in sides:
                sides[kind].append(f"{self.reference.labels(frame)[places[n]]}{spin}")
        left, right = (",".join(x) for x in sides.values())
        return f"{left} ->{' ' * bool(right)}{right}" if left else f"-> {right}"

    def _irreps(self) -> dict[str, Array] | None:
        """The number of the irrep of each element of the tensors, if orbitals have labels."""
        found = {}
        for tensor in self.tensors:
            product = np.zeros((), int)
            for space in tensor.spaces:
                frame, places = self._frame(space.name)
                labels = self.reference.irreps(frame)
                if labels is None:
                    return None
                product = np.bitwise_xor.outer(product, np.array(labels[0], int)[places])
            found[tensor.name] = product
        return found

    def _name_of_irrep(self, label: int) -> str:
        frame, _ = self._frame(self.bases[0].name)
        labels = self.reference.irreps(frame)
        assert labels is not None
        return labels[1](label)

    def _frame(self, name: str) -> tuple[Frame, list[int]]:
        _, frame, places = self.blocks.frame(next(s for s in self.bases if s.name == name))
        return frame, places

    def _extent(self, name: str) -> int:
        return len(self._frame(name)[1])

    def _count(self, kind: Kind) -> int:
        count = sum(self._extent(n) for n, k in self.spaces.kinds.items() if k is kind)
        return 2 * count if self._spatial else count

    def _is(self, space: Any, kind: Kind) -> bool:
        return self.spaces.kind(space) is kind


def _applied(array: Array, holes: int, occupied: Array, virtual: Array) -> Array:
    """A one-electron operator times a vector; holes are on the first axes."""
    result = np.zeros_like(array)
    for axis in range(array.ndim):
        matrix = -occupied.T if axis < holes else virtual
        result += np.moveaxis(np.tensordot(matrix, array, axes=(1, axis)), 0, axis)
    return result
