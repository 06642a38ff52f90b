"""Terms: deltas resolved, like terms merged with exact coefficients, zero terms dropped."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from fractions import Fraction

from ...ir.deltas import resolve_deltas
from ...ir.system import Equation, Term
from ...ir.tensor import Index, Ref, Space
from .atoms import atom_of
from .canonical_equation import Placed, placed_term
from .canonical_product import Colour, canonical_product


def left_colours(lhs: Ref, images: tuple[int, ...] | None = None) -> dict[Index, Colour]:
    """Colours that fix the left indices, optionally each at the position ``images`` gives it."""
    return {
        index: ("left", images[k] if images is not None else k)
        for k, index in enumerate(lhs.indices)
    }


def term_form(
    term: Term, colours: Mapping[Index, Colour], complex_values: bool
) -> tuple[Hashable, int]:
    """Key and sign of the product of a term, its perms not looked at."""
    atoms = tuple(atom_of(f, complex_values) for f in term.factors)
    form = canonical_product(atoms, colours)
    return form.key, form.sign


def clean_equation(equation: Equation, complex_values: bool, zero: frozenset[str]) -> Equation:
    """Deltas resolved, like terms with equal perms merged, vanishing terms dropped.

    Args:
        equation: any equation.
        complex_values: whether hermitian symmetries must be left alone.
        zero: names of intermediates known to be zero.
    """
    kept: dict[Hashable, list[tuple[int, Term, Placed, Fraction]]] = {}
    for position, term in enumerate(equation.terms):
        if any(isinstance(f, Ref) and f.tensor.name in zero for f in term.factors):
            continue
        resolved = resolve_deltas(term)
        if resolved is None or resolved.coeff == 0:
            continue
        placed = placed_term(resolved, equation.lhs, complex_values)
        if placed is None or placed.vanishes():
            continue
        like = kept.setdefault((placed.perms, placed.key, placed.fixed()), [])
        for n, (first, known, other, total) in enumerate(like):
            sign = placed.relation(other)
            if sign:
                like[n] = first, known, other, total + resolved.coeff * sign
                break
        else:
            like.append((position, resolved, placed, resolved.coeff))
    found = sorted((m for like in kept.values() for m in like), key=lambda m: m[0])
    terms = tuple(replace(term, coeff=total) for _, term, _, total in found if total != 0)
    return replace(equation, terms=terms)


def same_spaces(spaces: tuple[Space, ...], images: tuple[int, ...]) -> bool:
    """True where a permutation of axes exchanges only axes of equal spaces."""
    return all(spaces[k] == spaces[image] for k, image in enumerate(images))
