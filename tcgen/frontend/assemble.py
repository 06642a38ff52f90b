"""Assembles a System: each name is defined before it is read, and unused equations are left out."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.system import Equation, System
from ..ir.tensor import Role, Space, Tensor


def find_cycle(equations: Sequence[Equation]) -> tuple[Equation, ...]:
    """Equations whose definitions form a cycle, in the order of reading; () for none."""
    by_name = {e.lhs.tensor.name: e for e in equations}
    done: set[str] = set()
    for start in equations:
        path: list[str] = []
        cycle = _cycle(start.lhs.tensor.name, by_name, path, done)
        if cycle:
            return tuple(by_name[name] for name in cycle)
    return ()


def _cycle(name: str, by_name: dict[str, Equation], path: list[str], done: set[str]) -> list[str]:
    if name in path:
        return path[path.index(name) :]
    if name in done or name not in by_name:
        return []
    path.append(name)
    for read in by_name[name].reads:
        cycle = _cycle(read, by_name, path, done)
        if cycle:
            return cycle
    done.add(path.pop())
    return []


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
    ordered: dict[str, Equation] = {}
    for equation in equations:
        if equation.lhs.tensor.name in wanted and not equation.anonymous:
            _place(equation, by_name, ordered)
    used = {r for e in ordered.values() for r in e.reads}
    warnings = [
        f"{_at(e)}{e.lhs.tensor.name} is not needed by any output and is not computed"
        for e in equations
        if e.lhs.tensor.name not in wanted and not e.anonymous
    ]
    warnings += [f"input {t.name} is not read by any output" for t in inputs if t.name not in used]
    temps = tuple(e.lhs.tensor for e in ordered.values() if e.lhs.tensor.role is Role.TEMP)
    return System(
        identifier(name),
        spaces,
        (*inputs, *temps, *outputs),
        tuple(ordered.values()),
        tuple(warnings),
    )


def identifier(text: str) -> str:
    """``text`` as a legal identifier: other characters become ``_``."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text)
    return name if name and not name[0].isdigit() else f"_{name}"


def _place(equation: Equation, by_name: dict[str, Equation], ordered: dict[str, Equation]) -> None:
    name = equation.lhs.tensor.name
    if name in ordered:
        return
    for read in equation.reads:
        if read in by_name:
            _place(by_name[read], by_name, ordered)
    ordered[name] = equation


def _at(equation: Equation) -> str:
    return f"{equation.span}: " if equation.span else ""
