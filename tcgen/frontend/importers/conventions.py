"""What importers of printed equations share: problems in lines, exact numbers, integrals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ...errors import Diagnostic, Span, SpecError


def refuse(filename: str, number: int, line: str, message: str, advice: str) -> SpecError:
    """The error of one line of a file."""
    return SpecError((Diagnostic(Span(filename, number, 1), message, line, advice),))


def integrals(*, real: bool) -> dict[str, Any]:
    """Declarations of f and of v = <pq||rs> for a term list: constant, antisymmetric as printed.

    Args:
        real: orbitals are real: bra and ket may be exchanged too, which needs fewer blocks.
    """
    bra_ket = (["sym(0,1)"], ["swap(01,23)"]) if real else ([], [])
    fock, physicist = ({"sym": text, "constant": True} for text in bra_ket)
    return {"f": fock, "v": {**physicist, "antisym": [[0, 1], [2, 3]]}}


def amplitudes_symmetry(upper: int, lower: int) -> dict[str, Any]:
    """Antisymmetry within the first ``upper`` axes and within the ``lower`` ones after them."""
    groups = [list(range(upper)), list(range(upper, upper + lower))]
    return {"antisym": [g for g in groups if len(g) > 1]}


def signed_letters(
    operators: Sequence[tuple[str, tuple[str, ...]]], left: Sequence[str]
) -> list[list[Any]]:
    """Permutation operators as a term list has them: signed lists of the left letters.

    Args:
        operators: kind (P, PP2, PP3 or PP6) and letters, the last applied first.
        left: letters of the target.

    Example:
        >>> signed_letters([("P", ("i", "j"))], ["a", "i", "j"])
        [[1, ['a', 'i', 'j']], [-1, ['a', 'j', 'i']]]
    """
    perms: list[list[Any]] = []
    for choice in itertools.product(*(_images(kind, held) for kind, held in operators)):
        sign, names = 1, {x: x for x in left}
        for one, mapping in reversed(choice):
            sign *= one
            names = {x: mapping.get(y, y) for x, y in names.items()}
        perms.append([sign, [names[x] for x in left]])
    return perms if operators else []


def _images(kind: str, held: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """Terms of one operator: sign and renaming."""
    if kind == "P":
        return [(1, {}), (-1, dict(zip(held, reversed(held), strict=True)))]
    pairs = list(zip(held[::2], held[1::2], strict=True))
    orders = list(itertools.permutations(range(len(pairs))))
    if kind == "PP3":
        orders = [(0, 1, 2), (1, 0, 2), (2, 1, 0)]
    return [
        (1, {a: b for k, m in enumerate(o) for a, b in zip(pairs[k], pairs[m], strict=True)})
        for o in orders
    ]
