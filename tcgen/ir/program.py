"""Level 2: a formula sequence, binary steps on whole arrays.

Algebra makes it from a system; fusion and lowering read it. An array has ordered producers (the
first one overwrites it, unless it is an output that accumulates) and any number of consumers. Each
symmetry and permutation operator is an explicit step. A sequence fixes neither the fused loops nor
the memory of an array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, assert_never

from ..errors import Span
from .cost import ZERO, Poly, equal_points, iteration_space
from .expr import Access, Const, Delta, Equal, Expr, Prod, map_leaves, operation_count, refs
from .level import Level
from .reduction import AnyReduction, Reduction, Running
from .tensor import Index, Ref, Role, Space, Tensor, distinct, symmetry_group


class Phase(Enum):
    """CONSTANT steps depend on constants only and run once for a bound program."""

    CONSTANT = "constant"
    VOLATILE = "volatile"


@dataclass(frozen=True, slots=True)
class Contract:
    """Product of two references, summed over the step's ``sums``."""

    a: Ref
    b: Ref


@dataclass(frozen=True, slots=True)
class Add:
    """One reference: a copy, permutation, diagonal, trace or broadcast."""

    a: Ref


@dataclass(frozen=True, slots=True)
class Map:
    """An expression of whole elements, summed over the step's ``sums``."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class Produce:
    """Elements of a generated input, from the caller's callable or file."""

    tensor: Tensor


Operation: TypeAlias = Contract | Add | Map | Produce


def map_operation(
    op: Operation, ref: Callable[[Ref], Ref], delta: Callable[[Delta], Delta] = lambda delta: delta
) -> Operation:
    """The operation with every reference and Kronecker delta replaced."""

    def leaf(node: Ref | Access | Delta | Equal) -> Expr:
        if isinstance(node, Ref):
            return ref(node)
        return delta(node) if isinstance(node, Delta) else node

    match op:
        case Contract(a, b):
            return Contract(ref(a), ref(b))
        case Add(a):
            return Add(ref(a))
        case Map(expr):
            return Map(map_leaves(expr, leaf))
        case Produce():
            return op
        case _:
            assert_never(op)


@dataclass(frozen=True, slots=True)
class Step:
    """``out (+)= coeff * sum over sums of op``.

    A step that reduces otherwise is a map with the coefficient 1, the only producer of its array.

    Attributes:
        id: position in the program, from 0.
        out: the array written; its indices are distinct and index every element of it (an index
            of a part on a joined axis writes that slice).
        op: operation on the operands.
        coeff: exact number.
        accumulate: add to the array; False for its first producer, which overwrites it.
        sums: summed indices, each in some operand and none in ``out``; the index of a running
            reduction, which is in ``out``.
        phase: CONSTANT if every operand is constant.
        span: place in the user's text, or None.
        reduction: operation over ``sums``.
    """

    id: int
    out: Ref
    op: Operation
    coeff: Fraction = Fraction(1)
    accumulate: bool = False
    sums: tuple[Index, ...] = ()
    phase: Phase = Phase.VOLATILE
    span: Span | None = None
    reduction: AnyReduction = Reduction.SUM

    @property
    def running(self) -> Index | None:
        """The index of a running reduction, whose values are taken in order; None for others."""
        return self.sums[0] if isinstance(self.reduction, Running) else None

    @property
    def operands(self) -> tuple[Ref, ...]:
        """References read, left to right, repeats included."""
        match self.op:
            case Contract(a, b):
                return (a, b)
            case Add(a):
                return (a,)
            case Map(expr):
                return refs(expr)
            case Produce():
                return ()
            case _:
                assert_never(self.op)

    @property
    def summand(self) -> Expr | None:
        """The operation as an expression; None for a generated input."""
        match self.op:
            case Contract(a, b):
                return Prod((a, b))
            case Add(a):
                return a
            case Map(expr):
                return expr
            case Produce():
                return None
            case _:
                assert_never(self.op)

    @property
    def indices(self) -> tuple[Index, ...]:
        """Loops of the step: the indices of ``out``, then the summed ones."""
        return distinct(self.out.indices + self.sums)

    @property
    def flops(self) -> Poly:
        """Flops, where a multiply and an add are 2.

        A multiply-add of a contraction counts 2, an addition 1, a map its operations and 1 more to
        accumulate or sum; producing and plain copies count 0.
        """
        adds = 1 if self.accumulate or self.sums else 0
        match self.op:
            case Contract():
                return iteration_space(self.indices, 2)
            case Add() | Map():
                own = operation_count(self.op.expr) if isinstance(self.op, Map) else 0
                return iteration_space(self.indices, own + adds + (abs(self.coeff) != 1))
            case Produce():
                return ZERO
            case _:
                assert_never(self.op)

    @property
    def packed_flops(self) -> Poly:
        """Flops if multiply-adds that are equal by symmetry are executed once.

        Leading order, as ``points / order of the group``; the generated loops execute all of them.
        """
        if not isinstance(self.op, Contract):
            return self.flops
        a, b = self.op.a, self.op.b
        order = equal_points(
            (_axis_perms(a.tensor), a.indices), (_axis_perms(b.tensor), b.indices), self.out.indices
        )
        return self.flops * Poly.of(Fraction(1, order))


@lru_cache(maxsize=10_000)
def _axis_perms(tensor: Tensor) -> tuple[tuple[int, ...], ...]:
    return tuple(s.perm for s in symmetry_group(tensor) if not s.conj)


# What is known of the cost of a sequence, at the extents of its search.
PROVEN = "proven over all terms"
EACH_TERM = "optimal for each term"
BEST_FOUND = "best found"


@dataclass(frozen=True, slots=True)
class FormulaSequence(Level):
    """Steps in an order in which they can be executed.

    Attributes:
        name: name of the system.
        spaces: all spaces, parts before the spaces that join them.
        tensors: every tensor read or written, inputs first in declared order, then by first write;
            inputs that no step reads are included, since the caller passes them. Aliases of
            generated inputs are among the written ones.
        steps: step n has id n.
        naive: flops of the equations as bracket-expanded sums of products (P not expanded), each
            product in one loop.
        each_term: flops of the equations as written, with each product in its cheapest order and
            no intermediate used twice.
        optimality: claim about the cost, at the extents of the search: PROVEN, EACH_TERM or
            BEST_FOUND.
        notes: sentences on terms that the optimiser left as written, and why.
    """

    name: str
    spaces: tuple[Space, ...]
    tensors: tuple[Tensor, ...]
    steps: tuple[Step, ...]
    naive: Poly = ZERO
    each_term: Poly = ZERO
    optimality: str = BEST_FOUND
    notes: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Inputs, generated ones included, in declared order."""
        return tuple(t for t in self.tensors if t.is_input and t.alias is None)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Outputs in order."""
        return tuple(t for t in self.tensors if t.role is Role.OUTPUT)

    @property
    def intermediates(self) -> tuple[Tensor, ...]:
        """Arrays that are neither input nor output."""
        return tuple(t for t in self.tensors if t.role is Role.TEMP)

    @property
    def zero_outputs(self) -> tuple[Tensor, ...]:
        """Outputs that are zero for all inputs: every producer writes the constant 0."""
        zero = Map(Const(Fraction(0)))
        return tuple(t for t in self.outputs if all(s.op == zero for s in self.producers(t)))

    def producers(self, tensor: Tensor) -> tuple[Step, ...]:
        """Steps that write ``tensor``, in order."""
        return self.derived("users", self._users)[0].get(tensor, ())

    def consumers(self, tensor: Tensor) -> tuple[Step, ...]:
        """Steps that read ``tensor``, in order, each once."""
        return self.derived("users", self._users)[1].get(tensor, ())

    def _users(self) -> tuple[dict[Tensor, tuple[Step, ...]], dict[Tensor, tuple[Step, ...]]]:
        """The steps that write and that read each tensor."""
        writing: dict[Tensor, list[Step]] = {}
        reading: dict[Tensor, list[Step]] = {}
        for step in self.steps:
            writing.setdefault(step.out.tensor, []).append(step)
            for tensor in dict.fromkeys(r.tensor for r in step.operands):
                reading.setdefault(tensor, []).append(step)
        return (
            {tensor: tuple(steps) for tensor, steps in writing.items()},
            {tensor: tuple(steps) for tensor, steps in reading.items()},
        )

    def flops(self, kind: type[Contract] | type[Add] | type[Map] | None = None) -> Poly:
        """Total flops, or those of one kind of operation."""
        steps = (s for s in self.steps if kind is None or isinstance(s.op, kind))
        name = "flops" if kind is None else f"flops {kind.__name__}"
        return self.derived(name, lambda: _sum(step.flops for step in steps))

    def packed_flops(self) -> Poly:
        """Flops of all contractions if multiply-adds equal by symmetry are executed once."""
        contractions = (s for s in self.steps if isinstance(s.op, Contract))
        return self.derived("packed flops", lambda: _sum(s.packed_flops for s in contractions))


def _sum(costs: Iterable[Poly]) -> Poly:
    """The sum of costs, of which many are equal."""
    total = ZERO
    for cost, times in Counter(costs).items():
        total = total + cost * Poly.of(times)
    return total
