"""Spaces, symmetries, storage and tensors: level 0 without indices.

Names tell apart spaces and tensors, so only a name is hashed: searches look them up millions of
times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cache

from ..simplices import stored_values
from .quantity import Quantity

# Rows of this field are written only where it is set: older tables read as they are.
IF_SET = {"if set": True}


class Role(StrEnum):
    """Role of a tensor in the user's program; a role equals its text."""

    INPUT = "input"
    GENERATED = "generated"  # an input that is produced tile by tile and never stored whole
    TEMP = "intermediate"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Space:
    """A range of orbitals or functions; ``parts`` makes it a joined space, in this order.

    Attributes:
        name: name in the spec, ``o``; the extent is a run-time argument of this name.
        extent: default extent, or None.
        parts: spaces joined here; empty for a base space.
        kind: occupied, virtual, ...; for readers and importers only, it does not affect results.
        graded: its orbitals have irreps of a group, momenta or spins, which calls give.
        strict: its orbitals are complex, so that equations must hold whatever their phases are.
    """

    name: str
    extent: int | None = None
    parts: tuple[Space, ...] = ()
    kind: str | None = None
    graded: bool = field(default=False, metadata=IF_SET)
    strict: bool = field(default=False, metadata=IF_SET)

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def bases(self) -> tuple[Space, ...]:
        """Base spaces in order; a base space is its own only base."""
        if not self.parts:
            return (self,)
        return tuple(base for part in self.parts for base in part.bases)

    def extent_in(self, extents: Mapping[str, int]) -> int:
        """The extent, given those of the base spaces."""
        return sum([extents[base.name] for base in self.bases])

    def before(self, part: Space) -> tuple[Space, ...] | None:
        """Base spaces before ``part`` on an axis of this space; None if it is not a part of it."""
        bases, wanted = self.bases, part.bases
        for start in range(len(bases) - len(wanted) + 1):
            if bases[start : start + len(wanted)] == wanted:
                return bases[:start]
        return None


@dataclass(frozen=True, slots=True)
class Symmetry:
    """One generator: ``T[x[perm[0]], x[perm[1]], ...] == sign * T[x[0], x[1], ...]``.

    ``Symmetry((1, 0), -1)`` says T[j,i] == -T[i,j]. With ``conj`` the right side is complex
    conjugated (a hermitian pair of axes).
    """

    perm: tuple[int, ...]
    sign: int = 1
    conj: bool = False


@dataclass(frozen=True, slots=True)
class Packing:
    """``count`` neighbouring logical axes stored as one axis of their distinct values.

    The values are in lexical order: a pair is stored as its lower triangle, row by row. Symmetric:
    (p, q) with p >= q at p(p+1)/2 + q. Antisymmetric: p > q at p(p-1)/2 + q; equal positions are
    zero, and not stored. More axes are stored alike.
    """

    first: int
    antisymmetric: bool = False
    count: int = 2

    @property
    def axes(self) -> range:
        """The logical axes."""
        return range(self.first, self.first + self.count)

    def values(self, extent: int) -> int:
        """The number of stored values of axes of an extent."""
        return stored_values(extent, self.count, self.antisymmetric)


@dataclass(frozen=True, slots=True)
class Storage:
    """Layout of the caller's array of a tensor.

    Attributes:
        order: logical axes in the order of the array's axes; () is the declared order.
        packed: groups of axes stored as triangles; their axes are also adjacent in ``order``.
        within: spaces of the axes of a larger array of which this one may be a slice; they set the
            strides. Each joins the axis' own space and a space, used by no other axis, for the
            elements after the slice. () for an array of its own.
    """

    order: tuple[int, ...] = ()
    packed: tuple[Packing, ...] = ()
    within: tuple[Space, ...] = ()


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named array of the equations.

    Attributes:
        name: unique name.
        spaces: one for each axis, in the order the equations use.
        role: input, generated input, intermediate or output.
        volatile: may change at each call; False: constant for the life of a bound program.
        symmetry: generators, promised for inputs and proven for the rest.
        storage: layout of the caller's array (inputs and outputs).
        real: stays real when the program is complex.
        default: value of a scalar input that the caller may leave out.
        accumulate: an output that starts from the caller's array.
        family: the tensor of which this is a block (``v`` for ``v_oovv``), or None.
        alias: the generated input whose elements this one has too, or None: a step that reads two
            tiles of an input at the same time reads them under two names.
        conserves: axes through which a conserved number such as the spin enters, and those through
            which it leaves; None for the two halves of the axes over orbitals.
        quantity: quantity of a mean field, or None; without effect on the equations.
        label: its values belong to orbitals, as orbital energies do: it conserves nothing.
        charge: name of its total charge, which calls give; None if it has none.
    """

    name: str
    spaces: tuple[Space, ...]
    role: Role
    volatile: bool = True
    symmetry: tuple[Symmetry, ...] = ()
    storage: Storage = Storage()
    real: bool = False
    default: Fraction | None = None
    accumulate: bool = False
    family: str | None = None
    alias: str | None = None
    conserves: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    quantity: Quantity | None = None
    label: bool = field(default=False, metadata=IF_SET)
    charge: str | None = field(default=None, metadata=IF_SET)

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def source(self) -> str:
        """Name of the input that the caller passes."""
        return self.alias or self.name

    @property
    def rank(self) -> int:
        """Number of logical axes."""
        return len(self.spaces)

    @property
    def stored_order(self) -> tuple[int, ...]:
        """Logical axes in the order of the caller's array."""
        return self.storage.order or tuple(range(len(self.spaces)))

    @property
    def stored_rank(self) -> int:
        """Number of axes of the caller's array."""
        return len(self.spaces) - sum(group.count - 1 for group in self.storage.packed)

    def stored(self) -> tuple[tuple[int, Packing | None], ...]:
        """Axes of the caller's array: a logical axis, or the row axis of a packed pair."""
        return stored_axes(self.stored_order, self.storage.packed)

    @property
    def gaps(self) -> tuple[str | None, ...]:
        """Base spaces of the elements between the parts of an array that may be a slice; or ().

        For each logical axis the name of the base space that counts the elements of the larger
        array between the end of the axis and its next start; None if the axis is whole.
        """
        return _gaps(self.spaces, self.storage.within)

    @property
    def array_spaces(self) -> tuple[Space, ...]:
        """Spaces of the axes that set the strides of the caller's array."""
        return self.storage.within or self.spaces

    @property
    def is_input(self) -> bool:
        """True for inputs, generated or not."""
        return self.role in (Role.INPUT, Role.GENERATED)

    @property
    def is_held(self) -> bool:
        """True if a call allocates memory for it in addition to the caller's arrays.

        This holds for intermediates, for tiles of generated inputs, and for packed results, which
        shared loops compute in dense arrays first.
        """
        packed = self.role is Role.OUTPUT and bool(self.storage.packed)
        return packed or self.role in (Role.TEMP, Role.GENERATED)


def element_type(tensor: Tensor, dtype: str) -> str:
    """Element type of a tensor's array in a program of ``dtype``: real tensors stay real."""
    return "float64" if tensor.real and dtype == "complex128" else dtype


@cache
def stored_axes(
    order: tuple[int, ...], packed: tuple[Packing, ...]
) -> tuple[tuple[int, Packing | None], ...]:
    """Physical axes, slowest first: a logical axis, or the row axis of a packed pair.

    The order (2, 0, 1) and ``Packing(0)`` give ``((2, None), (0, Packing(0)))``.
    """
    groups = {axis: p for p in packed for axis in p.axes}
    axes: list[tuple[int, Packing | None]] = []
    for axis in order:
        group = groups.get(axis)
        if group is None or all(p is not group for _, p in axes):
            axes.append((axis, group))
    return tuple(axes)


@cache
def _gaps(spaces: tuple[Space, ...], within: tuple[Space, ...]) -> tuple[str | None, ...]:
    left = (whole.bases[len(own.bases) :] for own, whole in zip(spaces, within, strict=False))
    return tuple(bases[0].name if bases else None for bases in left)
