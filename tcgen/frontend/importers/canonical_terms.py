"""Canonical form of terms, so that the written spec does not depend on SymPy's dummy names.

The names of dummies in SymPy's secondquant, and its choice among the permuted copies of a diagram,
differ from one run of Python to the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from typing import TypeAlias

from ...ir.expr import Delta
from ...ir.system import Equation, Factor, System, Term
from ...ir.tensor import Index, Ref, first_image
from ...ir.term_rewriting import rename_term
from .conventions import LETTERS

# Namings that are tried for one term: enough for six indices of a space, or five of each.
_MOST_NAMINGS = 5_000
_Key: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Names and letters of the factors, in their order."""


def canonical_system(system: System) -> System:
    """The system with each term in canonical form, equal terms added, in a fixed order.

    The canonical form is the first, in alphabetic order, of all equal forms. These differ by the
    names of summed indices, the symmetry of tensors, the order of factors, and by the permuted copy
    that follows the permutations of a term. Factors are tensors and deltas.

    Example:
        >>> from tcgen.frontend import read_spec
        >>> text = '''space o
        ... index i j k l : o
        ... input x[o,o] antisymmetric (0,1), y[o]
        ... output r
        ... r[i] = {}'''
        >>> for term in ("x[k,i]*y[k]", "-y[l]*x[i,l]"):
        ...     print(canonical_system(read_spec(text.format(term))).pretty(), end="")
        r[i] = sum(j) -x[i,j]*y[j]
        r[i] = sum(j) -x[i,j]*y[j]
    """
    equations = []
    for equation in system.equations:
        terms_by_key: dict[tuple[object, ...], Term] = {}
        for term in equation.terms:
            made, key = _first(term, equation.lhs.indices)
            old = terms_by_key.get((key, term.perms))
            coeff = made.coeff + (old.coeff if old else 0)
            terms_by_key[key, term.perms] = replace(made, coeff=coeff)
        order = sorted(terms_by_key, key=_place)
        terms = tuple(terms_by_key[key] for key in order if terms_by_key[key].coeff)
        equations.append(Equation(equation.lhs, terms, equation.span, equation.anonymous))
    return replace(system, equations=tuple(equations))


def _place(key: tuple[object, ...]) -> tuple[object, ...]:
    factors, perms = key
    assert isinstance(factors, tuple)
    assert isinstance(perms, tuple)
    return len(factors), factors, [(p.images, p.sign) for p in perms]


def _first(term: Term, left: tuple[Index, ...]) -> tuple[Term, _Key]:
    """The term in canonical form; its coefficient is 0 if it equals its own negative."""
    best: tuple[_Key, Term] | None = None
    signs: set[int] = set()
    for moved in _copies(term, left):
        for names in itertools.islice(_namings(moved.sums, left), _MOST_NAMINGS):
            sign, factors = _sorted(rename_term(moved, names).factors)
            key = tuple(_text(f) for f in factors)
            if best is None or key < best[0]:
                sums = tuple(sorted((names[i] for i in moved.sums), key=lambda i: i.name))
                best = key, replace(moved, coeff=abs(moved.coeff), factors=factors, sums=sums)
                signs = set()
            if key == best[0]:
                signs.add(sign if moved.coeff > 0 else -sign)
    assert best is not None
    coeff = best[1].coeff * signs.pop() if len(signs) == 1 else Fraction(0)
    return replace(best[1], coeff=coeff, perms=term.perms), best[0]


def _copies(term: Term, left: tuple[Index, ...]) -> Iterator[Term]:
    """The term and, if its permutations are a group, its permuted copies, with their signs."""
    plain = replace(term, perms=())
    signs = {p.images: p.sign for p in term.perms}
    closed = all(
        signs.get(tuple(a[k] for k in b)) == signs[a] * signs[b] for a in signs for b in signs
    )
    if not signs or not closed:
        yield plain
        return
    for images, sign in signs.items():
        names = {left[k]: left[image] for k, image in enumerate(images)}
        yield rename_term(replace(plain, coeff=plain.coeff * sign), names)


def _namings(sums: tuple[Index, ...], left: tuple[Index, ...]) -> Iterator[dict[Index, Index]]:
    """All assignments of the first free letters of their spaces to the summed indices."""
    by_space: dict[str, list[Index]] = {}
    for index in sums:
        by_space.setdefault(index.space.name, []).append(index)
    taken = {i.name for i in left}
    choices = []
    for name, held in by_space.items():
        pool = LETTERS.get(name, name)
        letters = (
            x + n for n in ("", *map(str, range(1, 1 + len(held) + len(left)))) for x in pool
        )
        free = [x for x in letters if x not in taken][: len(held)]
        choices.append([dict(zip(order, free, strict=True)) for order in permutations(held)])
    for chosen in product(*choices):
        yield {i: Index(x, i.space) for names in chosen for i, x in names.items()}


def _sorted(factors: tuple[Factor, ...]) -> tuple[int, tuple[Factor, ...]]:
    """Sign and sorted factors, each tensor with the first of its equal index orders."""
    sign, ordered = 1, list[Factor]()
    for factor in factors:
        if isinstance(factor, Ref):
            one, factor = first_image(factor)
            sign *= one
        ordered.append(factor)
    return sign, tuple(sorted(ordered, key=_text))


def _text(factor: Factor) -> tuple[str, tuple[str, ...]]:
    match factor:
        case Ref(tensor, indices):
            return tensor.name, tuple(i.name for i in indices)
        case Delta(left, right):
            return "delta", (left.name, right.name)
        case _:
            return str(factor), ()
