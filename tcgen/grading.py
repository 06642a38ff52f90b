"""Finite abelian groups, and the numbers of orbitals that belong to each of their elements.

Irreps of D2h and its subgroups, momenta of a mesh of k-points and projections of the spin are all
elements of products of cyclic groups, which are added component by component.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError

Element: TypeAlias = tuple[int, ...]

# Names in PySCF's order, in which the product of two irreps is the XOR of their numbers.
_IRREPS = {
    "C1": ("A",),
    "Cs": ("A'", 'A"'),
    "Ci": ("Ag", "Au"),
    "C2": ("A", "B"),
    "C2v": ("A1", "A2", "B1", "B2"),
    "C2h": ("Ag", "Bg", "Au", "Bu"),
    "D2": ("A", "B1", "B2", "B3"),
    "D2h": ("Ag", "B1g", "B2g", "B3g", "Au", "B1u", "B2u", "B3u"),
}
# Groups of linear molecules and atoms, of which an abelian subgroup is used.
_SUBGROUPS = {"Dooh": "D2h", "Coov": "C2v", "SO3": "D2h"}
_SPINS = ("a", "b")
# An odd cyclic group stands for the integers: sums of so few spins do not wrap around.
_MOST_ELEMENTS = 4096


class Grading:
    """A group, and for each orbital of some spaces its element: an irrep, a momentum, a spin.

    Orbitals are in the order of the arrays that a program takes. A value: equal gradings have equal
    groups, names and orbitals, and none changes.

    Args:
        moduli: orders of the cyclic groups whose product the group is; () is the trivial group.
        orbitals: elements of the orbitals of each space in order, as numbers of 0 to
            ``len(grading) - 1`` or as tuples with a component for each cyclic group.
        names: names of all elements, in the order of their numbers; by default their components.

    Raises:
        ArgumentError: naming the space and the orbital whose element the group does not have.

    Example:
        >>> Grading((2, 2), {"o": [0, 0, 3], "v": [0, 1, 2, 3, 3]})
        <Grading Z2 x Z2: o = 2+0+0+1, v = 1+1+1+2>
        >>> Grading.from_orbsym("C2v", o=[0, 0, 2, 3, 0], v=[0, 3])
        <Grading C2v (A1 A2 B1 B2): o = 3+0+1+1, v = 1+0+0+1>
    """

    __slots__ = ("__dict__", "_moduli", "_name", "_names", "_orbitals")

    def __init__(
        self,
        moduli: Sequence[int],
        orbitals: Mapping[str, Iterable[int | Sequence[int]]],
        names: Sequence[str] = (),
        *,
        name: str = "",
    ) -> None:
        self._moduli = tuple(_integer(m, "the order of a cyclic group") for m in moduli)
        if any(m < 1 for m in self._moduli):
            raise ArgumentError(f"moduli={self._moduli}: the order of a cyclic group is at least 1")
        if prod(self._moduli) > _MOST_ELEMENTS:
            raise ArgumentError(
                f"moduli={self._moduli}: the group has {prod(self._moduli):,} elements, and at "
                f"most {_MOST_ELEMENTS:,} are possible: use a smaller group or mesh"
            )
        plain = [",".join(map(str, element)) or "0" for element in self.elements]
        self._names = tuple(map(str, names)) or tuple(plain)
        if len(self._names) != len(self) or len(set(self._names)) != len(self):
            raise ArgumentError(
                f"names={self._names}: {len(self)} different names are expected, one for each "
                f"element of the group"
            )
        self._name = name or " x ".join(f"Z{m}" for m in self._moduli) or "Z1"
        self._orbitals = {
            _space_name(space): self._numbers(space, elements)
            for space, elements in orbitals.items()
        }

    @classmethod
    def from_orbsym(cls, group: str, **orbitals: Iterable[int]) -> Grading:
        """The grading by irreps of a point group, from their numbers for each orbital.

        Args:
            group: C1, Cs, Ci, C2, C2v, C2h, D2 or D2h; for Dooh, Coov and SO3 an abelian subgroup
                is taken.
            orbitals: numbers of irreps as PySCF's ``get_orbsym()`` has them, for each space. Those
                of Dooh, Coov and SO3 count modulo 10.

        Example:
            >>> Grading.from_orbsym("Dooh", o=[0, 5], v=[14, 2, 15])
            <Grading D2h (Ag B1g B2g B3g Au B1u B2u B3u): o = 1+0+0+0+0+1+0+0, v = 0+0+1+0+1+1+0+0>
        """
        abelian = _SUBGROUPS.get(group, group)
        if abelian not in _IRREPS:
            known = ", ".join((*_IRREPS, *_SUBGROUPS))
            raise ArgumentError(
                f"group {group!r} is not known: use one of {known}; of a non-abelian group use an "
                f"abelian subgroup"
            )
        names = _IRREPS[abelian]
        moduli = (2,) * (len(names).bit_length() - 1)
        given = {space: _sequence(space, values) for space, values in orbitals.items()}
        if abelian != group:
            given = {s: [_integer(v, f"an irrep of {s}") % 10 for v in given[s]] for s in given}
        return cls(moduli, given, names, name=abelian)

    @classmethod
    def from_kmesh(cls, mesh: Sequence[int], **orbitals: Iterable[int]) -> Grading:
        """The grading by momenta of a mesh of k-points, from the number of orbitals at each.

        Orbitals are sorted by k-point, in the order of PySCF's ``make_kpts``: the last axis of the
        mesh is fastest.

        Args:
            mesh: points along each reciprocal axis.
            orbitals: numbers of orbitals at all k-points, for each space.

        Example:
            >>> Grading.from_kmesh((1, 1, 3), o=[2, 2, 2], v=[3, 3, 4])
            <Grading k-points 1 x 1 x 3: o = 2+2+2, v = 3+3+4>
        """
        mesh = tuple(_integer(m, "a number of k-points") for m in mesh)
        given = {}
        for space, values in orbitals.items():
            counts = [_integer(c, f"the number of orbitals {space}") for c in values]
            if len(counts) != prod(mesh) or any(c < 0 for c in counts):
                raise ArgumentError(
                    f"{space}={counts!r:.80}: {prod(mesh)} numbers of orbitals are expected, one "
                    f"for each k-point of the mesh {' x '.join(map(str, mesh))}"
                )
            given[space] = [k for k, count in enumerate(counts) for _ in range(count)]
        return cls(mesh, given, name=f"k-points {' x '.join(map(str, mesh))}")

    @classmethod
    def spin(cls, *, order: int = 9, **orbitals: Iterable[int]) -> Grading:
        """The grading of spin orbitals by the projection of their spin.

        Args:
            order: the spins are added modulo this odd number, which must exceed the sum of spins
                that any array may have: with 9, arrays of up to 8 axes conserve the spin itself.
            orbitals: spins of the orbitals of each space, 0 for alpha and 1 for beta, as in PySCF's
                ``orbspin``.

        Example:
            >>> Grading.spin(o=[0, 1, 0, 1], v=[0, 1, 1])["o"]
            (0, 2, 0, 0, 0, 0, 0, 0, 2)
        """
        if order < 3 or order % 2 == 0:
            raise ArgumentError(f"order={order}: an odd number of 3 or more is expected")
        given = {}
        for space, values in orbitals.items():
            spins = [_integer(v, f"a spin of {space}") for v in values]
            if not set(spins) <= {0, 1}:
                raise ArgumentError(f"{space}: spins are 0 for alpha and 1 for beta, not {spins}")
            given[space] = [1 if spin == 0 else order - 1 for spin in spins]
        half = order // 2
        names = [f"{n if n <= half else n - order:+d}/2" for n in range(order)]
        return cls((order,), given, names, name="Sz")

    def __mul__(self, other: Grading) -> Grading:
        """The grading by both groups: each orbital has an element of the product of the groups.

        Example:
            >>> g = Grading.from_orbsym("Cs", o=[0, 1, 0]) * Grading((3,), {"o": [2, 0, 2]})
            >>> g
            <Grading Cs x Z3: o = 0+0+2+1+0+0>
        """
        if not isinstance(other, Grading):
            return NotImplemented
        mine, others = self._orbitals, other._orbitals
        for space in (*mine, *others):
            counts = [len(g[space]) if space in g else None for g in (mine, others)]
            if counts[0] != counts[1]:
                found = " and ".join("no" if c is None else str(c) for c in counts)
                raise ArgumentError(
                    f"the gradings have {found} orbitals {space}: grade the same orbitals by both"
                )
        orbitals = {
            space: [a * len(other) + b for a, b in zip(mine[space], others[space], strict=True)]
            for space in mine
        }
        names = [f"{a}|{b}" for a in self._names for b in other._names]
        name = f"{self._name} x {other._name}"
        return Grading((*self._moduli, *other._moduli), orbitals, names, name=name)

    def __len__(self) -> int:
        """The number of elements of the group."""
        return prod(self._moduli)

    def __getitem__(self, space: str) -> tuple[int, ...]:
        """The number of orbitals of a space for each element of the group."""
        elements = self.orbitals(space)
        return tuple(map(int, np.bincount(elements, minlength=len(self))))

    def __contains__(self, space: object) -> bool:
        return space in self._orbitals

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grading) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{s} = {'+'.join(map(str, self[s]))}" for s in self._orbitals)
        own = self._name if len(self) > 8 or self._name not in _IRREPS else self._named
        return f"<Grading {own}: {sizes}>" if sizes else f"<Grading {own}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._moduli, self._orbitals, self._names, self._name)

    @property
    def name(self) -> str:
        """The group in words, ``D2h`` or ``k-points 2 x 2 x 2``."""
        return self._name

    @property
    def moduli(self) -> tuple[int, ...]:
        """Orders of the cyclic groups whose product the group is."""
        return self._moduli

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all elements, by their numbers; the neutral one is first."""
        return self._names

    @property
    def spaces(self) -> tuple[str, ...]:
        """Names of the graded spaces."""
        return tuple(self._orbitals)

    @property
    def elements(self) -> tuple[Element, ...]:
        """All elements by their numbers, as tuples of components; the last is fastest."""
        return tuple(map(tuple, np.ndindex(*self._moduli)))

    @property
    def own_inverse(self) -> bool:
        """True if every element is its own inverse, as irreps of point groups are."""
        return all(m <= 2 for m in self._moduli)

    @cached_property
    def negation(self) -> NDArray[np.intp]:
        """For each element the number of its inverse."""
        return self._numbered([tuple(-c for c in element) for element in self.elements])

    @cached_property
    def addition(self) -> NDArray[np.intp]:
        """For each two elements the number of their sum (the product of irreps)."""
        components = np.array(self.elements, dtype=np.intp).reshape(len(self), -1)
        sums = components[:, None, :] + components[None, :, :]
        return self._numbered(sums.reshape(len(self) ** 2, -1)).reshape(len(self), len(self))

    def orbitals(self, space: str) -> tuple[int, ...]:
        """The numbers of the elements of all orbitals of a space, in their order.

        Raises:
            ArgumentError: the space has no grading.
        """
        if space not in self._orbitals:
            known = ", ".join(self._orbitals) or "none"
            raise ArgumentError(
                f"space {space} has no grading (graded: {known}): give the irreps of its orbitals"
            )
        return self._orbitals[space]

    def order(self, space: str) -> NDArray[np.intp]:
        """The positions of the orbitals of a space, sorted by element and then by position.

        Example:
            >>> Grading((2,), {"o": [1, 0, 1, 0]}).order("o").tolist()
            [1, 3, 0, 2]
        """
        return np.argsort(np.array(self.orbitals(space), dtype=np.intp), kind="stable")

    def starts(self, space: str) -> tuple[int, ...]:
        """Positions at which the orbitals of each element begin once sorted, and their number."""
        return (0, *accumulate(self[space]))

    def element(self, value: str | int | Sequence[int]) -> int:
        """The number of an element that is given by its name, number or components.

        Raises:
            ArgumentError: the group has no such element; names are listed.

        Example:
            >>> Grading.from_orbsym("C2v").element("B1"), Grading((2, 3), {}).element((1, 5))
            (2, 5)
        """
        if isinstance(value, str):
            if value in self._names:
                return self._names.index(value)
            plain = [",".join(map(str, element)) for element in self.elements]
            if value in plain:
                return plain.index(value)
        elif isinstance(value, Sequence):
            if len(value) == len(self._moduli):
                return int(self._numbered([value])[0])
        else:
            number = _integer(value, "an element")
            if 0 <= number < len(self):
                return number
        shown = ", ".join(self._names[:16]) + (", ..." if len(self) > 16 else "")
        raise ArgumentError(f"{self._name} has no element {value!r}: its elements are {shown}")

    @property
    def _named(self) -> str:
        return f"{self._name} ({' '.join(self._names)})"

    @property
    def _key(self) -> tuple[Any, ...]:
        return self._moduli, self._names, tuple(sorted(self._orbitals.items()))

    def _numbered(self, components: Any) -> NDArray[np.intp]:
        """The numbers of elements, from rows of components that may lie outside the moduli."""
        rows = np.array(components, dtype=np.intp).reshape(len(components), len(self._moduli))
        numbers = np.zeros(len(rows), dtype=np.intp)
        for axis, modulus in enumerate(self._moduli):
            numbers = numbers * modulus + rows[:, axis] % modulus
        return numbers

    def _numbers(self, space: str, elements: Iterable[Any]) -> tuple[int, ...]:
        numbers = []
        for place, value in enumerate(_sequence(space, elements)):
            try:
                numbers.append(self.element(value))
            except ArgumentError as error:
                raise ArgumentError(f"orbital {place} of space {space}: {error}") from None
        return tuple(numbers)


def _restored(
    moduli: tuple[int, ...],
    orbitals: Mapping[str, tuple[int, ...]],
    names: tuple[str, ...],
    name: str,
) -> Grading:
    return Grading(moduli, orbitals, names, name=name)


def _sequence(space: str, values: Any) -> list[Any]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise ArgumentError(
            f"{space}={values!r:.60}: a list with the element of each orbital is expected"
        )
    return list(values)


def _space_name(space: object) -> str:
    if not isinstance(space, str):
        raise ArgumentError(f"{space!r} is not the name of a space, such as 'o'")
    return space


def _integer(value: Any, what: str) -> int:
    """A Python or NumPy integer, not a bool."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ArgumentError(f"{what} is {value!r:.60}: an integer is expected")
    return int(value)
