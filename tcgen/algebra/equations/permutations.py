"""Permutation operators: each is applied once, to the sum of all terms that have it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction

from ...ir.system import Equation, Permutation, Term
from ...ir.tensor import Ref, Role, Symmetry, Tensor, symmetry_group
from ...ir.term_rewriting import without_perms
from .normal_form import NormalForms, Placed


def separate_permutations(equation: Equation, taken: set[str]) -> tuple[Equation, ...]:
    """New intermediates for the terms with permutations, and then the equation that reads them.

    Terms with equal sets of permutations form one new intermediate, which the equation adds once
    for each permutation. A term that is a single reference needs no intermediate. New names are
    added to ``taken``.
    """
    groups: dict[tuple[Permutation, ...], list[Term]] = {}
    for term in equation.terms:
        perms = tuple(sorted(term.perms, key=lambda p: (p.images, p.sign)))
        groups.setdefault(perms, []).append(term)
    lhs = equation.lhs
    first: list[Equation] = []
    terms: list[Term] = []
    for perms, members in groups.items():
        if not perms:
            terms.extend(members)
            continue
        plain_read = len(members) == 1 and len(members[0].factors) == 1 and not members[0].sums
        if plain_read and isinstance(members[0].factors[0], Ref):
            terms.extend(without_perms(replace(members[0], perms=perms), lhs))
            continue
        tensor = Tensor(
            new_name(f"{lhs.tensor.name}_p", taken),
            tuple(i.space for i in lhs.indices),
            Role.TEMP,
            volatile=any(r.tensor.volatile for t in members for r in t.refs),
        )
        inner = Ref(tensor, lhs.indices)
        plain = tuple(replace(t, perms=()) for t in members)
        first.append(Equation(inner, plain, members[0].span, anonymous=True))
        whole = Term(Fraction(1), (inner,), (), perms, members[0].span)
        terms.extend(without_perms(whole, lhs))
    return (*first, replace(equation, terms=tuple(terms)))


def new_name(stem: str, taken: set[str]) -> str:
    """The stem with the first free number; the new name is added to ``taken``."""
    number = 1
    while f"{stem}{number}" in taken:
        number += 1
    taken.add(f"{stem}{number}")
    return f"{stem}{number}"


def fold_permutations(
    equation: Equation, symmetry: tuple[Symmetry, ...], forms: NormalForms, most_images: int
) -> Equation:
    """The equation with terms that are permutations of each other folded into terms with perms.

    It has no perms yet, such as a residual with all its images written out. Folded terms are images
    under the group of ``symmetry``, proven generators of its left side. Nothing is folded if all
    terms together have more than ``most_images`` images.
    """
    lhs = equation.lhs
    if not symmetry or any(t.perms for t in equation.terms):
        return equation
    probe = replace(lhs.tensor, symmetry=symmetry)
    group = tuple(sorted((s.perm, s.sign) for s in symmetry_group(probe) if not s.conj))
    if len(group) == 1 or len(group) * len(equation.terms) > most_images:
        return equation
    members: dict[Hashable, tuple[int, Term, Placed]] = {}
    for position, term in enumerate(equation.terms):
        placed = forms.placed(term, lhs)
        if placed is not None:
            members.setdefault(_key_of_image(placed), (position, term, placed))
    done: set[Hashable] = set()
    folded: list[tuple[int, Term]] = []
    for key, (position, term, placed) in members.items():
        if key in done:
            continue
        table = {images: _key_of_image(placed, images) for images, _ in group}
        orbit = set(table.values())
        done |= orbit
        if len(orbit) == 1:
            folded.append((position, term))
            continue
        choices = []
        for images, _ in group:
            start, first, _ = members[table[images]]
            perms = _cosets(group, table, images)
            choices.append((tuple(p.images for p in perms), start, first, perms))
        _, start, first, perms = min(choices, key=lambda c: (c[0], c[1]))
        folded.append((min(position, start), replace(first, perms=perms)))
    folded.sort(key=lambda item: item[0])
    return replace(equation, terms=tuple(term for _, term in folded))


def _key_of_image(placed: Placed, images: tuple[int, ...] | None = None) -> Hashable:
    """A key that terms equal up to a sign have in common, left index k moved to ``images[k]``."""
    ((places, _),) = placed.images(images)
    return placed.key, places


def _cosets(
    group: tuple[tuple[tuple[int, ...], int], ...],
    table: dict[tuple[int, ...], Hashable],
    start: tuple[int, ...],
) -> tuple[Permutation, ...]:
    """The first permutation to each distinct image of the term that ``start`` makes."""
    perm_of: dict[Hashable, Permutation] = {}
    for images, sign in group:
        # Index k of the term stands at start[k]; the permutation moves it from there.
        moved = tuple(images[p] for p in start)
        perm_of.setdefault(table[moved], Permutation(sign, images))
    return tuple(perm_of.values())
