"""Terms: deltas resolved, like terms merged with exact coefficients, zero terms dropped."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from fractions import Fraction

from ..ir.expr import Delta
from ..ir.system import Equation, Permutation, Term, factor_indices
from ..ir.tensor import Index, Ref, Space
from .atoms import atom_of
from .canonical import Colour, canonical_product
from .rename import rename_factors, without_perms


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


def resolve_deltas(term: Term) -> Term | None:
    """The term with each delta over a summed index carried out; None if a delta makes it zero.

    A delta between two left indices, or over partly overlapping spaces, stays a factor.

    Example:
        >>> o = Space("o")
        >>> i, j = Index("i", o), Index("j", o)
        >>> from tcgen.ir.tensor import Role, Tensor
        >>> x = Ref(Tensor("x", (o,), Role.INPUT), (j,))
        >>> done = resolve_deltas(Term(Fraction(1), (Delta(i, j), x), (j,)))
        >>> str(done.factors[0]), done.sums
        ('x[i]', ())
    """
    for position, factor in enumerate(term.factors):
        if not isinstance(factor, Delta):
            continue
        left, right = factor.left, factor.right
        if not set(left.space.bases) & set(right.space.bases):
            return None
        others = term.factors[:position] + term.factors[position + 1 :]
        held = {i for f in others for i in factor_indices(f)}
        if left == right:
            if left in held or left not in term.sums:
                return resolve_deltas(replace(term, factors=others))
            continue
        for old, new in ((left, right), (right, left)):
            free = old in term.sums and old.space.before(new.space) is not None
            if free and (new in held or old in held or new not in term.sums):
                return resolve_deltas(
                    replace(
                        term,
                        factors=rename_factors(others, {old: new}),
                        sums=tuple(i for i in term.sums if i != old),
                    )
                )
    return term


def clean_equation(equation: Equation, complex_values: bool, zero: frozenset[str]) -> Equation:
    """Deltas resolved, like terms with equal perms merged, vanishing terms dropped.

    Args:
        equation: any equation.
        complex_values: whether hermitian symmetries must be left alone.
        zero: names of intermediates known to be zero.
    """
    lhs = equation.lhs
    kept: dict[Hashable, tuple[Term, int, Fraction]] = {}
    for term in equation.terms:
        if any(isinstance(f, Ref) and f.tensor.name in zero for f in term.factors):
            continue
        resolved = resolve_deltas(term)
        if resolved is None or resolved.coeff == 0:
            continue
        key, sign = _signed_key(resolved, lhs, complex_values)
        if sign == 0:
            continue
        whole = (resolved.perms, key)
        first, first_sign, total = kept.get(whole, (resolved, sign, Fraction(0)))
        kept[whole] = (first, first_sign, total + resolved.coeff * sign * first_sign)
    terms = tuple(replace(term, coeff=total) for term, _, total in kept.values() if total != 0)
    return replace(equation, terms=terms)


def _signed_key(term: Term, lhs: Ref, complex_values: bool) -> tuple[Hashable, int]:
    """Key of a term with its perms: the least over a group of perms; sign 0 where they cancel."""
    if not term.perms:
        return term_form(term, left_colours(lhs), complex_values)
    images: dict[Hashable, int] = {}
    least: tuple[str, Hashable, int] | None = None
    for perm in term.perms:
        colours = left_colours(lhs, perm.images)
        key, sign = term_form(term, colours, complex_values)
        images[key] = images.get(key, 0) + sign * perm.sign
        candidate = (repr(key), key, sign * perm.sign)
        if sign != 0 and (least is None or candidate[0] < least[0]):
            least = candidate
    if least is None or not any(images.values()):
        return (), 0
    if is_signed_group(term.perms):
        return least[1], least[2]
    return term_form(term, left_colours(lhs), complex_values)


def is_signed_group(perms: tuple[Permutation, ...]) -> bool:
    """True where the permutations form a group and the sign is a homomorphism.

    Example:
        >>> is_signed_group((Permutation(1, (0, 1)), Permutation(-1, (1, 0))))
        True
    """
    signs = {p.images: p.sign for p in perms}
    return len(signs) == len(perms) and all(
        signs.get(tuple(a.images[k] for k in b.images)) == a.sign * b.sign
        for a in perms
        for b in perms
    )


def value_of(
    equation: Equation, complex_values: bool, images: tuple[int, ...] | None = None
) -> dict[Hashable, Fraction]:
    """The equation as a vector: canonical product -> coefficient, permutations written out.

    Args:
        equation: its terms; two equations are equal where their vectors are.
        complex_values: whether hermitian symmetries must be left alone.
        images: left index k counts as standing at position ``images[k]``.
    """
    total: dict[Hashable, Fraction] = {}
    colours = left_colours(equation.lhs, images)
    for term in equation.terms:
        for plain in without_perms(term, equation.lhs):
            resolved = resolve_deltas(plain)
            if resolved is None:
                continue
            key, sign = term_form(resolved, colours, complex_values)
            if sign:
                total[key] = total.get(key, Fraction(0)) + sign * resolved.coeff
    return {key: coeff for key, coeff in total.items() if coeff}


def same_spaces(spaces: tuple[Space, ...], images: tuple[int, ...]) -> bool:
    """True where a permutation of axes exchanges only axes of equal spaces."""
    return all(spaces[k] == spaces[image] for k, image in enumerate(images))
