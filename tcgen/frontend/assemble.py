"""Assembles a System: each name is defined before it is read, and unused equations are left out.

Operators P and S multiply: P(i,j) P(a,b) is four permutations. Written again and again they would
be 2^n, although only n! differ. Front ends therefore count permutations after each operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from ..ir.system import Equation, Permutation, System, Term
from ..ir.tensor import Ref, Role, Space, Tensor
from ..ir.term_rewriting import rename_left

Counts: TypeAlias = Mapping[tuple[int, ...], int]
"""Number of times that each permutation is added, by the images of positions."""
# Permutations of one term: enough for two antisymmetric groups of five indices (14,400), and read
# within a second.
MOST_PERMUTATIONS = 20_000
TOO_MANY = f"more than {MOST_PERMUTATIONS:,} permutations"
FEWER = "declare the symmetry of tensors, and write only operators that change the product"


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
    """Add a name to ``done``, after all names that its definition needs; the names of cycles."""
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

    Equations that no output needs are left out with a warning; all inputs remain. Spaces come after
    their parts, and inputs and outputs in declared order. Anonymous equations may stand anywhere.

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


def add_terms(equations: dict[str, Equation], lhs: Ref, terms: tuple[Term, ...]) -> None:
    """Add terms to the equation of a tensor, in the letters of its first left side."""
    old = equations.get(lhs.tensor.name)
    if old is None:
        equations[lhs.tensor.name] = Equation(lhs, terms)
    else:
        moved = tuple(rename_left(t, lhs.indices, old.lhs.indices) for t in terms)
        equations[lhs.tensor.name] = replace(old, terms=old.terms + moved)


def identifier(text: str) -> str:
    """``text`` as a legal identifier: other characters become ``_``."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text)
    return name if name and not name[0].isdigit() else f"_{name}"


def _at(equation: Equation) -> str:
    return f"{equation.span}: " if equation.span else ""


def permutation_lists(counts: Counts, rank: int) -> list[tuple[Fraction, tuple[Permutation, ...]]]:
    """Factors and permutation lists of terms that add up to the counted permutations.

    The common count of permutations becomes a factor, and those that cancel are left out. Each list
    has the identity, and () stands for no other permutation. No pairs if the sum is zero.

    Example:
        >>> permutation_lists({(0, 1): 2, (1, 0): -2}, 2)[0][0]
        Fraction(2, 1)
    """
    left = {images: count for images, count in counts.items() if count}
    identity = tuple(range(rank))
    if not left:
        return []
    common = {abs(count) for count in left.values()}
    if len(common) == 1 and left.get(identity, 0) > 0:
        factor = Fraction(common.pop())
        perms = tuple(Permutation(1 if n > 0 else -1, images) for images, n in left.items())
        return [(factor, perms if len(perms) > 1 else ())]
    return _one_by_one(left, identity)


def _one_by_one(
    counts: Counts, identity: tuple[int, ...]
) -> list[tuple[Fraction, tuple[Permutation, ...]]]:
    """Lists for uneven counts: p X is (1 + p) X - X, and X + p X is a list with the identity."""
    result: list[tuple[Fraction, tuple[Permutation, ...]]] = []
    alone = Fraction(counts.get(identity, 0))
    for images, count in counts.items():
        if images != identity:
            result.append((Fraction(count), (Permutation(1, identity), Permutation(1, images))))
            alone -= count
    return [*result, (alone, ())] if alone else result
