"""Assembles a System: each name is defined before it is read, and unused equations are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.system import Equation, System
from ..ir.tensor import Role, Space, Tensor


def find_cycles(equations: Sequence[Equation]) -> list[tuple[Equation, ...]]:
    """Cycles of definitions, each in the order of reading; of two that share names, the first."""
    by_name = {e.lhs.tensor.name: e for e in equations}
    done: dict[str, None] = {}
    return [
        tuple(by_name[name] for name in cycle)
        for start in by_name
        for cycle in _visit(start, by_name, done)
    ]


def _visit(start: str, by_name: Mapping[str, Equation], done: dict[str, None]) -> list[list[str]]:
    """Add a name to ``done``, after all names that its definition needs.

    Returns:
        The names of cycles, each in the order of reading.
    """
    if start in done:
        return []
    cycles: list[list[str]] = []
    path = {start: iter(by_name[start].reads)}
    while path:
        name = next(reversed(path))
        for read in path[name]:
            if read in path:
                names = list(path)
                cycles.append(names[names.index(read) :])
                for member in cycles[-1]:
                    del path[member]
                    done[member] = None
                break
            if read in by_name and read not in done:
                path[read] = iter(by_name[read].reads)
                break
        else:
            del path[name]
            done[name] = None
    return cycles


def assemble(
    name: str,
    spaces: tuple[Space, ...],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    equations: Sequence[Equation],
) -> System:
    """The system of ``equations``, which have no cycle.

    Equations that no output needs are left out with a warning; all inputs remain.

    Args:
        name: of the system; made a legal identifier.
        spaces: parts before the spaces that join them.
        inputs: in declared order.
        outputs: in declared order.
        equations: in the order written; anonymous ones anywhere.

    Example:
        >>> assemble("2 e-mp", (), (), (), ()).name
        '_2_e_mp'
    """
    by_name = {e.lhs.tensor.name: e for e in equations}
    wanted = {t.name for t in outputs}
    frontier = [t.name for t in outputs]
    while frontier:
        for read in by_name[frontier.pop()].reads:
            if read in by_name and read not in wanted:
                wanted.add(read)
                frontier.append(read)
    done: dict[str, None] = {}
    for equation in equations:
        if equation.lhs.tensor.name in wanted and not equation.anonymous:
            _visit(equation.lhs.tensor.name, by_name, done)
    ordered = tuple(by_name[name] for name in done)
    used = {r for e in ordered for r in e.reads}
    warnings = [
        f"{_at(e)}{e.lhs.tensor.name} is not needed by any output and is not computed"
        for e in equations
        if e.lhs.tensor.name not in wanted and not e.anonymous
    ]
    warnings += [f"input {t.name} is not read by any output" for t in inputs if t.name not in used]
    temps = tuple(e.lhs.tensor for e in ordered if e.lhs.tensor.role is Role.TEMP)
    return System(
        identifier(name),
        spaces,
        (*inputs, *temps, *outputs),
        ordered,
        tuple(warnings),
    )


def identifier(text: str) -> str:
    """``text`` as a legal identifier: other characters become ``_``."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text)
    return name if name and not name[0].isdigit() else f"_{name}"


def _at(equation: Equation) -> str:
    return f"{equation.span}: " if equation.span else ""
