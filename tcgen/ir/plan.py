"""Level 3: shared loops of steps, and the place and lifetime of each array.

Fusion makes it, or a person writes it by hand; lowering reads it. A plan is an ordered list of
visits (executions of steps inside shared loops). Visits that follow each other and share a prefix
of loops share those loops, so the list is the loop nest:

    visit s0 in (j, i)           for j:
    visit s2 in (j, k)     ->        for i: f1[] += A[i,j]          (f1 contracted in j)
                                     for k: W[k] += f1[] * f2[j,k]

:mod:`tcgen.ir.verify.plan` is the independent checker: it shares no code with any solver.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from .level import Level
from .program import FormulaSequence
from .tensor import Index, Space, Tensor


@dataclass(frozen=True, slots=True)
class LoopId:
    """One shared loop instance.

    Attributes:
        id: unique in the plan, from 0.
        space: range of the loop; only indices of this very space are bound to it.
        tile: None for a loop over elements; else it runs over tiles of this many elements, and a
            visit bound to it loops over the elements of the tile inside the statement.
        order_after: triangular: this loop's element, or tile, never passes that of ``order_after``,
            which encloses it (i >= j >= k: j.order_after = i, k.order_after = j). Both run over the
            same space, by the same tile. A step that sums over a whole chain counts each point of
            elements, or of tiles, once for each distinct arrangement; a tile that meets itself is
            executed in full. A step whose output has the indices of the chain is computed for the
            triangle only, so its array is contracted in the chain, or whole: then the step is one
            of a set of *images*, additions of one symmetric array that is contracted in the chain,
            with the chain in each order on the same axes of the output, and weighted like a sum.
    """

    id: int
    space: Space
    tile: int | None = None
    order_after: LoopId | None = None

    @property
    def chain(self) -> tuple[LoopId, ...]:
        """The triangular loops that end in this one, outermost first; otherwise this loop."""
        return (self,) if self.order_after is None else (*self.order_after.chain, self)

    def __str__(self) -> str:
        tile = f" by {self.tile}" if self.tile else ""
        after = f" <= loop {self.order_after.id}" if self.order_after else ""
        return f"{self.space.name}{tile}#{self.id}{after}"


def common_loops(one: tuple[LoopId, ...], other: tuple[LoopId, ...]) -> int:
    """Number of outermost loops that two visits share."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


@dataclass(frozen=True, slots=True)
class Visit:
    """One execution of a step inside shared loops.

    Attributes:
        step: id of the step. Several visits of one step compute it several times (recomputation),
            each for its own instance of the array.
        bind: pairs (index of the step, loop). The other indices are local to the statement.
        loops: all enclosing shared loops, outermost first: those of ``bind`` and ``redundant``.
        redundant: enclosing loops over spaces for which the step has no index; the step is
            repeated in each iteration.
    """

    step: int
    bind: tuple[tuple[Index, LoopId], ...] = ()
    loops: tuple[LoopId, ...] = ()
    redundant: tuple[LoopId, ...] = ()

    def loop_of(self, index: Index) -> LoopId | None:
        """Shared loop that ``index`` is bound to, or None if it is local."""
        return next((loop for i, loop in self.bind if i == index), None)


class Place(Enum):
    """Memory of an array: a scalar variable, shared memory of a GPU, the arena, or an argument."""

    REG = "register"
    SHARED = "shared"
    ARENA = "arena"
    CALLER = "caller"


@dataclass(frozen=True, slots=True)
class ArrayPlan:
    """One instance of an array.

    Attributes:
        tensor: the array. A recomputed array has several instances with disjoint ``live``.
        contracted: pairs (axis, loop): this axis holds one element (or one tile) at a time. The
            loops are ``home`` or enclose it.
        home: innermost loop whose body owns the instance: each iteration has a new instance, which
            its first producer overwrites. None: it is live for the whole program.
        place: register, arena, or the caller's array.
        live: first and last visit (positions in the plan) that use the instance, inclusive.
        offset: bytes from the start of the arena under the planning extents, or None.
        bytes: size under the planning extents.
    """

    tensor: Tensor
    contracted: tuple[tuple[int, LoopId], ...] = ()
    home: LoopId | None = None
    place: Place = Place.ARENA
    live: tuple[int, int] = (0, 0)
    offset: int | None = None
    bytes: int = 0

    def loop_of(self, axis: int) -> LoopId | None:
        """Loop in which an axis is contracted, or None if it is whole."""
        return next((loop for a, loop in self.contracted if a == axis), None)


class GroupKind(Enum):
    """Form of a kernel: shared loops, one contraction (by the BLAS if it fits), or element-wise."""

    NEST = "nest"
    LIBRARY = "library"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class KernelGroup:
    """Consecutive visits (positions in ``FusionPlan.visits``) that share one kernel.

    ``host_loops`` are the outermost loops that run on the host, around the launch (fusion by
    launch); a prefix of the loops of every visit. Neighbouring groups with a common prefix of host
    loops share them.
    """

    name: str
    kind: GroupKind
    visits: tuple[int, ...]
    host_loops: tuple[LoopId, ...] = ()


@dataclass(frozen=True, slots=True)
class NestForm:
    """Which of two forms a nest for a GPU has: one kernel, or launches in loops of the host.

    Attributes:
        visits: positions of its visits.
        kernel: it is one kernel.
        seconds: predicted time in that form.
        other: predicted time in the other form; None where it cannot be one kernel.
    """

    visits: tuple[int, ...]
    kernel: bool
    seconds: Fraction
    other: Fraction | None


@dataclass(frozen=True, slots=True)
class Solve:
    """Result of the search for a plan.

    Attributes:
        objective: ``none``, ``linear``, ``memory``, ``peak``, ``time`` or ``kernels``.
        model: ``tree`` (exactly the paper's), ``dag`` (arrays may have several producers and
            consumers) or ``hand`` (written by a person).
        status: ``OPTIMAL`` or ``FEASIBLE``; None where nothing was searched for.
        value: value of the objective, recomputed exactly; None for hand-written plans.
        bound: proven bound on the objective, or None.
        unit: ``seconds``, ``bytes``, ``elements`` or ``saved_elements``.
        nests: the forms of nests for a GPU that hold products or rows of arrays.
    """

    objective: str = "none"
    model: str = "tree"
    status: str | None = None
    value: int | Fraction | None = None
    bound: int | Fraction | None = None
    unit: str = "elements"
    nests: tuple[NestForm, ...] = ()


@dataclass(frozen=True, slots=True)
class FusionPlan(Level):
    """Formula sequence, shared loops, visits in execution order, arrays, kernels.

    Attributes:
        program: steps that are executed, each at least once.
        extents: planning extents of the base spaces, sorted by name.
        loops: all shared loops, by id.
        visits: visits in execution order; those that share a loop are neighbours.
        arrays: an instance for each array that is not a plain input.
        groups: kernels in order; together they hold every visit once, constant steps first.
        arena: bytes of the intermediates' arena under the planning extents.
        solve: objective, status, value.
    """

    program: FormulaSequence
    extents: tuple[tuple[str, int], ...]
    loops: tuple[LoopId, ...]
    visits: tuple[Visit, ...]
    arrays: tuple[ArrayPlan, ...]
    groups: tuple[KernelGroup, ...]
    arena: int = 0
    solve: Solve = Solve()

    @property
    def extent_of(self) -> Mapping[str, int]:
        """Planning extents as a mapping."""
        return dict(self.extents)

    def instance(self, tensor: Tensor, position: int) -> ArrayPlan | None:
        """The instance of ``tensor`` that the visit at ``position`` uses; None for plain inputs."""
        for array in self.instances(tensor):
            if array.live[0] <= position <= array.live[1]:
                return array
        return None

    def instances(self, tensor: Tensor) -> tuple[ArrayPlan, ...]:
        """All instances of ``tensor``, in order."""
        return tuple(self.derived("users", self._users).instances.get(tensor, ()))

    def makers(self, array: ArrayPlan) -> list[int]:
        """Positions of the visits that write an instance."""
        writing = self.derived("users", self._users).writing.get(array.tensor, [])
        first, last = array.live
        return writing[bisect_left(writing, first) : bisect_right(writing, last)]

    def group_of(self, position: int) -> KernelGroup:
        """The kernel group of the visit at ``position``."""
        return self.derived("users", self._users).group[position]

    def _users(self) -> _Users:
        instances: dict[Tensor, list[ArrayPlan]] = {}
        for array in self.arrays:
            instances.setdefault(array.tensor, []).append(array)
        writing: dict[Tensor, list[int]] = {}
        for position, visit in enumerate(self.visits):
            writing.setdefault(self.program.steps[visit.step].out.tensor, []).append(position)
        group = {position: group for group in self.groups for position in group.visits}
        return _Users(instances, writing, group)


@dataclass(frozen=True, slots=True)
class _Users:
    """The instances of each tensor, the visits that write it, and the group of each visit."""

    instances: Mapping[Tensor, list[ArrayPlan]]
    writing: Mapping[Tensor, list[int]]
    group: Mapping[int, KernelGroup]
