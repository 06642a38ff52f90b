"""Clean equations: deltas are resolved, like terms merged exactly, and zero terms dropped."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from fractions import Fraction

from ...ir.system import Equation, Term
from ...ir.tensor import Index, Ref, Space
from ...ir.term_rewriting import resolve_deltas
from .atoms import atom_of
from .canonical_equation import Placed, placed_term
from .canonical_product import Colour, canonical_product


def left_colours(lhs: Ref, images: tuple[int, ...] | None = None) -> dict[Index, Colour]:
    """Colours that fix each left index at its position, or at the position ``images`` gives it."""
    return {
        index: ("left", images[k] if images is not None else k)
        for k, index in enumerate(lhs.indices)
    }


def term_form(
    term: Term, colours: Mapping[Index, Colour], complex_values: bool
) -> tuple[Hashable, int]:
    """Key and sign of the product of a term, without regard to its permutations."""
    atoms = tuple(atom_of(f, complex_values) for f in term.factors)
    form = canonical_product(atoms, colours)
    return form.key, form.sign


def clean_equation(equation: Equation, complex_values: bool, zero: frozenset[str]) -> Equation:
    """The equation with deltas resolved, like terms with equal perms merged, zero terms dropped.

    Args:
        equation: any equation.
        complex_values: True leaves hermitian symmetries unused, for complex programs.
        zero: names of intermediates known to be zero.
    """
    groups: dict[Hashable, list[tuple[int, Term, Placed, Fraction]]] = {}
    for position, term in enumerate(equation.terms):
        if any(isinstance(f, Ref) and f.tensor.name in zero for f in term.factors):
            continue
        resolved = resolve_deltas(term)
        if resolved is None or resolved.coeff == 0:
            continue
        placed = placed_term(resolved, equation.lhs, complex_values)
        if placed is None or placed.vanishes():
            continue
        group = groups.setdefault((placed.perms, placed.key, placed.fixed()), [])
        for n, (first, known, other, total) in enumerate(group):
            sign = placed.relation(other)
            if sign:
                group[n] = first, known, other, total + resolved.coeff * sign
                break
        else:
            group.append((position, resolved, placed, resolved.coeff))
    merged = sorted((m for group in groups.values() for m in group), key=lambda m: m[0])
    terms = tuple(replace(term, coeff=total) for _, term, _, total in merged if total != 0)
    return replace(equation, terms=terms)


def same_spaces(spaces: tuple[Space, ...], images: tuple[int, ...]) -> bool:
    """True where a permutation of axes exchanges only axes of equal spaces."""
    return all(spaces[k] == spaces[image] for k, image in enumerate(images))
