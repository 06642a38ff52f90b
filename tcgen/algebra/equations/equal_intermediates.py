"""Intermediates that are equal up to the order of their axes and a factor become one array."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

from ...ir.system import Equation, System, Term
from ...ir.tensor import Ref, Role
from ...ir.term_rewriting import replace_refs, resolve_deltas, without_perms
from ...thresholds import AlgebraThresholds
from .atoms import atom_of
from .canonical_equation import vector_of
from .canonical_product import FREE, canonical_product
from .inline import inline, keep_needed


def merge_equal_intermediates(
    system: System, complex_values: bool, thresholds: AlgebraThresholds
) -> System:
    """The system in which terms read the first of several equal intermediates.

    Intermediates ``x`` and ``y`` are equal where, say, ``x[a,b] = c*y[b,a]``. A reference inside
    Apply cannot carry the factor c, so ``x`` stays where such a reference reads it.
    """
    seen: dict[Hashable, list[Equation]] = {}
    copies: dict[str, Equation] = {}
    equations: list[Equation] = []
    for old in system.equations:
        equation = old
        for name in old.reads:
            if name in copies:
                equation = _redirected(equation, copies[name])
        equations.append(equation)
        if equation.lhs.tensor.role is not Role.TEMP:
            continue
        fingerprint = _fingerprint(equation, complex_values)
        earlier = seen.setdefault(fingerprint, [])
        for other in earlier:
            copy = _as_copy(equation, other, complex_values, thresholds.axis_orders)
            if copy is not None:
                copies[equation.lhs.tensor.name] = copy
                break
        else:
            earlier.append(equation)
    return keep_needed(replace(system, equations=tuple(equations)))


def _redirected(equation: Equation, copy: Equation) -> Equation:
    """``equation`` with the original in place of the copy; inside Apply only if the factor is 1."""
    equation = inline(equation, copy)
    term = copy.terms[0]
    source = term.factors[0]
    assert isinstance(source, Ref)
    if term.coeff != 1:
        return equation
    place = [copy.lhs.indices.index(i) for i in source.indices]

    def change(ref: Ref) -> Ref:
        if ref.tensor != copy.lhs.tensor:
            return ref
        return Ref(source.tensor, tuple(ref.indices[p] for p in place))

    return replace(equation, terms=replace_refs(equation, change).terms)


def _fingerprint(equation: Equation, complex_values: bool) -> Hashable:
    """A key that intermediates equal up to the order of axes and a factor have in common."""
    lhs = equation.lhs
    weights: dict[Hashable, Fraction] = {}
    colours = dict.fromkeys(lhs.indices, FREE)
    for term in equation.terms:
        for plain in without_perms(term, lhs):
            resolved = resolve_deltas(plain)
            if resolved is not None:
                atoms = tuple(atom_of(f, complex_values) for f in resolved.factors)
                key = canonical_product(atoms, colours).key
                word = (resolved.reduction.value, key)
                weights[word] = weights.get(word, Fraction(0)) + abs(resolved.coeff)
    least = min(weights.values(), default=Fraction(1)) or Fraction(1)
    spaces = tuple(sorted(i.space.name for i in lhs.indices))
    return (spaces, tuple(sorted((repr(k), c / least) for k, c in weights.items())))


def _as_copy(
    equation: Equation, other: Equation, complex_values: bool, most_orders: int
) -> Equation | None:
    """``equation`` written as a multiple of ``other`` with permuted axes, or None."""
    wanted = vector_of(equation, complex_values).value()
    vector = vector_of(other, complex_values)
    spaces = tuple(i.space for i in equation.lhs.indices)
    target = tuple(i.space for i in other.lhs.indices)
    if not wanted:
        return None
    for count, images in enumerate(permutations(range(len(target)))):
        if count >= most_orders:
            return None
        # Axis k of the other array stands at position images[k] of this one.
        if any(target[k] != spaces[p] for k, p in enumerate(images)):
            continue
        given = vector.value(images)
        if given.keys() != wanted.keys():
            continue
        ratios = {wanted[key] / given[key] for key in wanted}
        if len(ratios) == 1:
            indices = tuple(equation.lhs.indices[p] for p in images)
            term = Term(ratios.pop(), (Ref(other.lhs.tensor, indices),))
            return replace(equation, terms=(term,))
    return None
