"""The rules of level 2: indices of each step, order of writes and reads, phases."""

from __future__ import annotations

from typing import assert_never

from ...errors import VerifyError
from ..expr import expr_indices
from ..pretty.equations import pretty_step
from ..program import Add, Contract, FormulaSequence, Map, Phase, Produce, Step
from ..reduction import Reduction
from ..tensor import Role, Tensor
from .system import check_ref, check_sums


def check_program(program: FormulaSequence) -> None:
    """Check every rule of level 2; an error shows the step at fault with the steps around it."""
    known = set(program.tensors)
    if len({t.name for t in program.tensors}) != len(program.tensors):
        raise VerifyError(f"program {program.name}: two tensors share a name")
    written: set[Tensor] = set()
    read: set[Tensor] = set()
    constant = {t for t in program.tensors if t.is_input and not t.volatile}
    for n, step in enumerate(program.steps):
        try:
            _check_step(step, n, known, written, read, constant)
        except VerifyError as error:
            near = "\n".join(
                f"{'>' if m == n else ' '} {pretty_step(program.steps[m])}"
                for m in range(max(0, n - 2), min(len(program.steps), n + 3))
            )
            raise VerifyError(f"program {program.name}, step {n}: {error}\n{near}") from None
        written.add(step.out.tensor)
        read.update(r.tensor for r in step.operands)
        if step.phase is Phase.CONSTANT:
            constant.add(step.out.tensor)
    missing = [t.name for t in program.tensors if not t.is_input and t not in written]
    if missing:
        raise VerifyError(f"program {program.name}: no step writes {', '.join(missing)}")


def _check_step(
    step: Step,
    position: int,
    known: set[Tensor],
    written: set[Tensor],
    read: set[Tensor],
    constant: set[Tensor],
) -> None:
    """Check one step; earlier steps wrote and read the tensors of ``written`` and ``read``."""
    if step.id != position:
        raise VerifyError(f"its id is {step.id}")
    for ref in (step.out, *step.operands):
        check_ref(ref, known)
    _check_role(step)
    _check_indices(step)
    _check_order(step, written, read)
    if step.reduction is not Reduction.SUM:
        _check_reduction(step, written)
    if step.phase is Phase.CONSTANT and not _may_be_constant(step, constant):
        raise VerifyError("a constant step reads something volatile")


def _check_role(step: Step) -> None:
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


def _check_indices(step: Step) -> None:
    """Every index is of the output or summed; that of a running reduction is both."""
    out, sums = step.out.indices, step.sums
    if len(set(out)) != len(out):
        raise VerifyError("indices of the output are not distinct")
    check_sums(out, sums, step.reduction)
    used = {i for r in step.operands for i in r.indices}
    if isinstance(step.op, Map):
        used |= set(expr_indices(step.op.expr))
    if not used <= set(step.indices):
        raise VerifyError("an operand has an index that is neither summed nor in the output")
    if not set(sums) <= used:
        raise VerifyError("a summed index is in no operand")


def _check_order(step: Step, written: set[Tensor], read: set[Tensor]) -> None:
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


def _check_reduction(step: Step, written: set[Tensor]) -> None:
    """A maximum, minimum or product is a map over indices, the only producer of its array."""
    word = step.reduction.value
    if not isinstance(step.op, Map) or not step.sums or step.coeff != 1:
        raise VerifyError(f"{word} is not over the indices of one expression")
    if step.accumulate or step.out.tensor in written:
        raise VerifyError(f"{word} is not the only producer of {step.out.tensor.name}")
    if any(i.space != s for i, s in zip(step.out.indices, step.out.tensor.spaces, strict=True)):
        raise VerifyError(f"{word} does not write all of {step.out.tensor.name}")


def _may_be_constant(step: Step, constant: set[Tensor]) -> bool:
    """True if neither inputs nor target of the step change from call to call."""
    if isinstance(step.op, Produce):
        return not step.op.tensor.volatile
    return not step.out.tensor.accumulate and all(r.tensor in constant for r in step.operands)
