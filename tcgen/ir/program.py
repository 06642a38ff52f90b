"""Level 2: a formula sequence, binary steps on whole arrays.

Algebra makes it from a system; fusion and lowering read it. An array has ordered producers (the
first one zeroes it, unless it is an output that accumulates) and any number of consumers. Every
symmetry and permutation operator has become an explicit step. Nothing here says which loops are
shared or where an array lives.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, assert_never

from ..errors import Span, VerifyError
from .cost import ZERO, Poly, iteration_space
from .expr import Const, Expr, expr_indices, format_expr, operation_count, refs
from .orbits import equal_points
from .system import verify_ref
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


@dataclass(frozen=True, slots=True)
class Step:
    """``out (+)= coeff * sum over sums of op``.

    Attributes:
        id: position in the program, from 0.
        out: the array written; its indices are distinct and index every element of it (an index
            of a part on a joined axis writes that slice).
        op: what is computed.
        coeff: exact number.
        accumulate: False for the first producer of an array, which zeroes it.
        sums: summed indices, each in some operand and none in ``out``.
        phase: CONSTANT where every operand is constant.
        span: the user's text it comes from, or None.
    """

    id: int
    out: Ref
    op: Operation
    coeff: Fraction = Fraction(1)
    accumulate: bool = False
    sums: tuple[Index, ...] = ()
    phase: Phase = Phase.VOLATILE
    span: Span | None = None

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
            case Add():
                scale = 1 if abs(self.coeff) != 1 else 0
                return iteration_space(self.indices, adds + scale)
            case Map(expr):
                scale = 1 if abs(self.coeff) != 1 else 0
                return iteration_space(self.indices, operation_count(expr) + adds + scale)
            case Produce():
                return ZERO
            case _:
                assert_never(self.op)

    @property
    def packed_flops(self) -> Poly:
        """Flops where multiply-adds that symmetry makes equal are done once.

        Leading order, as ``points / order of the group``; the generated loops do them all.
        """
        if not isinstance(self.op, Contract):
            return self.flops
        a, b = self.op.a, self.op.b
        order = equal_points(
            (_axis_perms(a.tensor), a.indices), (_axis_perms(b.tensor), b.indices), self.out.indices
        )
        return self.flops * Poly.of(Fraction(1, order))

    def __str__(self) -> str:
        return pretty_step(self)


@lru_cache(maxsize=10_000)
def _axis_perms(tensor: Tensor) -> tuple[tuple[int, ...], ...]:
    return tuple(s.perm for s in symmetry_group(tensor) if not s.conj)


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in an order that may be executed as it stands.

    Attributes:
        name: of the system.
        spaces: all spaces, parts before the spaces that join them.
        tensors: every tensor read or written, inputs first in declared order, then by first write;
            an input that no step reads is kept, since the caller passes it.
        steps: step n has id n.
        naive: flops of the equations as bracket-expanded sums of products (P not expanded): the
            sum over terms of number of factors times iteration space.
        each_term: flops of the equations as written, each product in its cheapest order and
            nothing shared between them.
        notes: what the optimiser left as written, and why, in words.
    """

    name: str
    spaces: tuple[Space, ...]
    tensors: tuple[Tensor, ...]
    steps: tuple[Step, ...]
    naive: Poly = ZERO
    each_term: Poly = ZERO
    notes: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Inputs, generated ones included, in declared order."""
        return tuple(t for t in self.tensors if t.is_input)

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
        """Outputs that only zeros are written to, whatever the inputs are."""
        zero = Map(Const(Fraction(0)))
        return tuple(t for t in self.outputs if all(s.op == zero for s in self.producers(t)))

    def producers(self, tensor: Tensor) -> tuple[Step, ...]:
        """Steps that write ``tensor``, in order."""
        return tuple(s for s in self.steps if s.out.tensor == tensor)

    def consumers(self, tensor: Tensor) -> tuple[Step, ...]:
        """Steps that read ``tensor``, in order, each once."""
        return tuple(s for s in self.steps if any(r.tensor == tensor for r in s.operands))

    def flops(self, kind: type[Contract] | type[Add] | type[Map] | None = None) -> Poly:
        """Total flops, of one kind of operation where ``kind`` is given."""
        total = ZERO
        for step in self.steps:
            if kind is None or isinstance(step.op, kind):
                total = total + step.flops
        return total

    def packed_flops(self) -> Poly:
        """Flops of all contractions where multiply-adds equal by symmetry are done once."""
        total = ZERO
        for step in self.steps:
            if isinstance(step.op, Contract):
                total = total + step.packed_flops
        return total

    def verify(self) -> None:
        """Check the rules of this level.

        Raises:
            VerifyError: showing the step at fault with the steps around it.
        """
        known = set(self.tensors)
        if len({t.name for t in self.tensors}) != len(self.tensors):
            raise VerifyError(f"program {self.name}: two tensors share a name")
        written: set[Tensor] = set()
        read: set[Tensor] = set()
        constant = {t for t in self.tensors if t.is_input and not t.volatile}
        for n, step in enumerate(self.steps):
            try:
                _verify_step(step, n, known, written, read, constant)
            except VerifyError as error:
                near = "\n".join(
                    f"{'>' if m == n else ' '} {pretty_step(self.steps[m])}"
                    for m in range(max(0, n - 2), min(len(self.steps), n + 3))
                )
                raise VerifyError(f"program {self.name}, step {n}: {error}\n{near}") from None
            written.add(step.out.tensor)
            read.update(r.tensor for r in step.operands)
            if step.phase is Phase.CONSTANT:
                constant.add(step.out.tensor)
        missing = [t.name for t in self.tensors if not t.is_input and t not in written]
        if missing:
            raise VerifyError(f"program {self.name}: no step writes {', '.join(missing)}")

    def pretty(self) -> str:
        """One line a step."""
        return "\n".join(pretty_step(s) for s in self.steps) + "\n"


def pretty_step(step: Step) -> str:
    """A step as a chemist would write it.

    Example: ``s3: r2[i,j,a,b] += 1/2 * tau[i,j,c,d] * w[a,b,c,d]``
    """
    match step.op:
        case Contract(a, b):
            text = f"{a} * {b}"
        case Add(a):
            text = str(a)
        case Map(expr):
            text = format_expr(expr)
            if step.coeff != 1:
                text = f"({text})"
        case Produce(tensor):
            text = f"generate {tensor.name}"
        case _:
            assert_never(step.op)
    if step.coeff == -1:
        text = f"-{text}"
    elif step.coeff != 1:
        text = f"{step.coeff} * {text}"
    sums = f"sum({','.join(i.name for i in step.sums)}) " if step.sums else ""
    mark = "   [constant]" if step.phase is Phase.CONSTANT else ""
    return f"s{step.id}: {step.out} {'+=' if step.accumulate else '='} {sums}{text}{mark}"


def _verify_step(
    step: Step,
    position: int,
    known: set[Tensor],
    written: set[Tensor],
    read: set[Tensor],
    constant: set[Tensor],
) -> None:
    """Check one step.

    Args:
        step: in question.
        position: in the program.
        known: all tensors of the program.
        written: by the steps before.
        read: by the steps before.
        constant: arrays that do not change from call to call.
    """
    if step.id != position:
        raise VerifyError(f"its id is {step.id}")
    for ref in (step.out, *step.operands):
        verify_ref(ref, known)
    _verify_role(step)
    _verify_indices(step)
    _verify_order(step, written, read)
    if step.phase is Phase.CONSTANT and not _may_be_constant(step, constant):
        raise VerifyError("a constant step reads something volatile")


def _verify_role(step: Step) -> None:
    """Inputs are not written, but for generated ones, which are produced."""
    tensor = step.out.tensor
    match step.op:
        case Produce(produced):
            if produced.role is not Role.GENERATED or tensor != produced:
                raise VerifyError("a generated input is produced into itself")
        case Map() | Contract() | Add():
            if tensor.is_input:
                raise VerifyError(f"{tensor.name} is an input")
        case _:
            assert_never(step.op)


def _verify_indices(step: Step) -> None:
    """Every index is of the output or summed, and not both."""
    out, sums = step.out.indices, step.sums
    if len(set(out)) != len(out):
        raise VerifyError("indices of the output are not distinct")
    if set(sums) & set(out) or len(set(sums)) != len(sums):
        raise VerifyError("a summed index repeats or is in the output")
    used = {i for r in step.operands for i in r.indices}
    if isinstance(step.op, Map):
        used |= set(expr_indices(step.op.expr))
    if not used <= set(step.indices):
        raise VerifyError("an operand has an index that is neither summed nor in the output")
    if not set(sums) <= used:
        raise VerifyError("a summed index is in no operand")


def _verify_order(step: Step, written: set[Tensor], read: set[Tensor]) -> None:
    """Arrays are written before they are read; the first producer zeroes, the others add."""
    tensor = step.out.tensor
    for ref in step.operands:
        if ref.tensor.role is not Role.INPUT and ref.tensor not in written:
            raise VerifyError(f"{ref.tensor.name} is read before it is written")
    if tensor in read:
        raise VerifyError(f"{tensor.name} is written after it was read")
    first = tensor not in written
    if first and step.accumulate and not tensor.accumulate:
        raise VerifyError("the first producer of an array must not accumulate")
    if not step.accumulate and (not first or tensor.accumulate):
        raise VerifyError("a later producer of an array must accumulate")


def _may_be_constant(step: Step, constant: set[Tensor]) -> bool:
    """True where nothing that the step reads, or adds to, changes from call to call."""
    if isinstance(step.op, Produce):
        return not step.op.tensor.volatile
    return not step.out.tensor.accumulate and all(r.tensor in constant for r in step.operands)
