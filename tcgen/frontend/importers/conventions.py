"""Conventions of the importers: errors, names, symmetry of integrals and amplitudes, operators."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import ArgumentError, Diagnostic, Span, SpecError
from ...ir.system import System, with_tensors
from ...records.quantity import Quantity
from ..assemble import MOST_PERMUTATIONS, TOO_MANY

# Letters of occupied and of virtual indices.
LETTERS = {"o": "ijklmn", "v": "abcdefgh"}


def refuse(filename: str, number: int, line: str, message: str, advice: str) -> SpecError:
    """The error of one line of a file."""
    return SpecError((Diagnostic(Span(filename, number, 1), message, line, advice),))


def check_texts(**given: object) -> None:
    """Check keywords that must be texts; an ArgumentError names the first that is not."""
    for keyword, value in given.items():
        if not isinstance(value, str):
            raise ArgumentError(f"{keyword} must be a str, not {type(value).__name__}")


def names_of_blocks(given: object) -> tuple[str, ...]:
    """The names that ``blocks`` lists; an ArgumentError if it is not a list of names."""
    names = tuple(given) if isinstance(given, list | tuple | set | frozenset) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise ArgumentError('blocks must be a list of names such as ["f", "v"]')
    return tuple(str(name) for name in names)


def is_name(text: str) -> bool:
    """True for a name that all levels accept."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) is not None


def integrals(*, real: bool) -> dict[str, Any]:
    """Declarations of f and of v = <pq||rs> for a term list: constant, antisymmetric as printed.

    With ``real`` orbitals bra and ket may also be exchanged, which needs fewer blocks.
    """
    bra_ket = (["sym(0,1)"], ["swap(01,23)"]) if real else ([], [])
    fock, physicist = ({"sym": text, "constant": True} for text in bra_ket)
    return {"f": fock, "v": {**physicist, "antisym": [[0, 1], [2, 3]]}}


def with_integrals(system: System) -> System:
    """The system whose blocks v_oovv, ... are <pq||rs>, so that its orbitals are spin orbitals.

    Without amplitudes that are antisymmetric, as in CIS, nothing else says so.
    """
    blocks = [t for t in system.inputs if re.fullmatch(r"v_\w{4}", t.name) and t.rank == 4]
    known = {t: replace(t, quantity=Quantity.ANTISYMMETRISED) for t in blocks}
    return with_tensors(system, known)


def amplitudes_symmetry(upper: int, lower: int) -> dict[str, Any]:
    """Antisymmetry within the first ``upper`` axes and within the ``lower`` ones after them."""
    groups = [list(range(upper)), list(range(upper, upper + lower))]
    return {"antisym": [g for g in groups if len(g) > 1]}


def amplitudes(axes: Sequence[str], upper: int) -> dict[str, Any]:
    """The declaration of amplitudes for a term list; only axes of one space are antisymmetric."""
    groups = amplitudes_symmetry(upper, len(axes) - upper)["antisym"]
    same = [group for group in groups if len({axes[k] for k in group}) == 1]
    return {"axes": list(axes), "antisym": same}


def signed_letters(
    operators: Sequence[tuple[str, tuple[str, ...]]], left: Sequence[str]
) -> list[list[Any]]:
    """Permutation operators in the form of a term list: counted lists of the left letters.

    An operator is its kind (P, PP2, PP3 or PP6) and its letters; the last one is applied first. A
    ValueError refuses operators that make too many permutations.

    Example:
        >>> signed_letters([("P", ("i", "j"))], ["a", "i", "j"])
        [[1, ['a', 'i', 'j']], [-1, ['a', 'j', 'i']]]
        >>> signed_letters([("P", ("i", "j")), ("P", ("i", "j"))], ["i", "j"])
        [[2, ['i', 'j']], [-2, ['j', 'i']]]
    """
    counts = Counter({tuple(left): 1})
    for kind, held in reversed(operators):
        images = _images(kind, held)
        if len(counts) * len(images) > MOST_PERMUTATIONS:
            raise ValueError(f"the operators of a term make {TOO_MANY}")
        moved: Counter[tuple[str, ...]] = Counter()
        for sign, mapping in images:
            for names, count in counts.items():
                moved[tuple(mapping.get(x, x) for x in names)] += sign * count
        counts = moved
    return [[count, list(names)] for names, count in counts.items()] if operators else []


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
