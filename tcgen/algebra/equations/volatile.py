"""The systems that users pass: their type, and which tensors change from call to call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...errors import ArgumentError
from ...ir.system import Equation, System, factor_refs
from ...ir.tensor import Ref, Role, Tensor
from ...ir.term_rewriting import replace_refs


def with_volatile(system: System, volatile: Mapping[str, bool]) -> System:
    """The system with other constant tensors: ``volatile`` has the new marks by name.

    An intermediate that is not named is volatile if its equation reads a volatile tensor; an output
    keeps its mark.
    """
    changed: dict[str, Tensor] = {}
    for tensor in system.tensors:
        marked = volatile.get(tensor.name, tensor.volatile)
        changed[tensor.name] = (
            tensor if marked == tensor.volatile else replace(tensor, volatile=marked)
        )

    def ref(old: Ref) -> Ref:
        return Ref(changed[old.tensor.name], old.indices)

    equations: list[Equation] = []
    for equation in system.equations:
        tensor = equation.lhs.tensor
        if tensor.role is Role.TEMP and tensor.name not in volatile:
            reads = any(changed[name].volatile for name in equation.reads)
            if reads != changed[tensor.name].volatile:
                changed[tensor.name] = replace(tensor, volatile=reads)
        equations.append(replace_refs(equation, ref))
    tensors = tuple(changed[t.name] for t in system.tensors)
    return replace(system, tensors=tensors, equations=tuple(equations))


def marked(
    system: System, constant: str | Sequence[str] = (), volatile: str | Sequence[str] = ()
) -> System:
    """The system with inputs marked as constant between calls of a bound program, or volatile.

    Raises:
        ArgumentError: a name is not that of an input, or is in both lists.
    """
    marks: dict[str, bool] = {}
    known = [t.name for t in system.inputs]
    for keyword, given, mark in (("constant", constant, False), ("volatile", volatile, True)):
        for name in (given,) if isinstance(given, str) else given:
            if name not in known:
                raise ArgumentError(
                    f"{keyword}={name!r} is not an input of {system.name}: its inputs are "
                    f"{', '.join(known)}"
                )
            if marks.setdefault(name, mark) != mark:
                raise ArgumentError(f"{name} is both in constant and in volatile: name it once")
    return with_volatile(system, marks) if marks else system


def check_system(system: object) -> None:
    """Refuse an argument that is not a System."""
    if not isinstance(system, System):
        raise ArgumentError(
            f"system is a {type(system).__name__}, not a System of equations: read it with "
            f"tcgen.read_spec (text) or tcgen.read_spec_file (path)"
        )


def has_constant_products(system: System) -> bool:
    """True if constants are multiplied with each other, which may pay once or in each call."""
    for equation in system.equations:
        for term in equation.terms:
            constant = [
                f for f in term.factors if not any(r.tensor.volatile for r in factor_refs(f))
            ]
            if len(constant) > 1 or (constant and term.sums and len(constant) == len(term.factors)):
                return True
    return any(
        e.lhs.tensor.role is Role.TEMP and not e.lhs.tensor.volatile for e in system.equations
    )
