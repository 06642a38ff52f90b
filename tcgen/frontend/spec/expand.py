"""Expands products with brackets to flat terms and decides where each index is summed.

A bracket in a product becomes an anonymous intermediate. Its axes are the indices that are bound
outside it: left indices, indices of sum(..) around it, and indices that also occur outside it.
Occurrences are counted for all expanded products at once: the profile of an index is the set of its
possible counts (2 means two or more), added over factors and united over the terms of a bracket.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

from ...ir.expr import expr_indices, refs
from ...ir.system import Apply, Equation, Factor, Term, factor_indices
from ...ir.tensor import Index, Ref, Role, Tensor, distinct
from ..exact_numbers import OUTSIDE, rejection_reason
from ..source import Problems
from .operators import Place, gather
from .products import Flat, Group, Piece, Reduced

Profile: TypeAlias = dict[Index, frozenset[int]]
"""Possible numbers of occurrences of each index; an index that is absent has {0}."""

_NEVER = frozenset((0,))


class Expander:
    """Expands the right sides of one spec; ``anonymous`` collects the equations of brackets."""

    def __init__(self, taken: Iterable[str], problems: Problems) -> None:
        self._taken = frozenset(taken)
        self._problems = problems
        self._numbered = 0
        self._left: tuple[Index, ...] = ()
        self.anonymous: list[Equation] = []

    def expand(self, products: tuple[Flat, ...], left: tuple[Index, ...]) -> list[Term]:
        """Flat terms of a right side."""
        self._left = left
        return self._sum(products, left, frozenset(left), {})

    def _sum(
        self,
        products: tuple[Flat, ...],
        lhs: tuple[Index, ...],
        bound: frozenset[Index],
        outside: Profile,
    ) -> list[Term]:
        return [term for flat in products for term in self._term(flat, lhs, bound, outside)]

    def _term(
        self, flat: Flat, lhs: tuple[Index, ...], bound: frozenset[Index], outside: Profile
    ) -> list[Term]:
        """Terms of one product.

        ``lhs`` are the left indices of its equation, anonymous or not, ``bound`` the user's left
        indices and those of enclosing sums; ``outside`` is the profile of the factors of the
        enclosing bracket.
        """
        before = self._problems.count
        profiles = [_piece_profile(piece) for piece in flat.pieces]
        here = _times(profiles)
        self._check_moved(flat)
        self._check_bound(flat, here, bound, outside)
        summed = frozenset(p.index for p in flat.sums)
        self._check_single(flat, here, bound | summed, outside)
        reason = rejection_reason(flat.coeff)
        if reason:
            self._problems.add(flat.span, f"the number of this product {reason}", OUTSIDE)
        factors: list[Factor] = []
        for n, piece in enumerate(flat.pieces):
            if isinstance(piece.factor, Group):
                others = _times([outside, *profiles[:n], *profiles[n + 1 :]])
                self._check_twice(piece.factor, profiles[n], others, bound | summed)
                factors.append(self._group(piece.factor, bound | summed, others))
            elif isinstance(piece.factor, Reduced):
                others = _times([outside, *profiles[:n], *profiles[n + 1 :]])
                factors.append(self._reduced(piece.factor, bound | summed, others))
            else:
                factors.append(piece.factor)
        if self._problems.count > before:
            return []
        indices = distinct(tuple(i for f in factors for i in factor_indices(f)))
        sums = tuple(i for i in indices if i not in lhs)
        return [
            Term(flat.coeff * count, tuple(factors), sums, perms, flat.span)
            for count, perms in gather(flat.operator, lhs)
            if flat.coeff
        ]

    def _group(self, group: Group, bound: frozenset[Index], others: Profile) -> Ref:
        """Name a bracket and return the reference that replaces it."""
        name = self._fresh_name()
        inside = distinct(tuple(p.index for p in _mentioned(group.products)))
        axes = tuple(i for i in inside if i in bound or max(others.get(i, _NEVER)) > 0)
        if set(axes) == set(self._left):
            axes = self._left
        lhs = Ref(Tensor(name, tuple(i.space for i in axes), Role.TEMP), axes)
        place = len(self.anonymous)
        terms = self._sum(group.products, axes, bound, others)
        self.anonymous.insert(place, Equation(lhs, tuple(terms), group.span, anonymous=True))
        return lhs

    def _reduced(self, reduced: Reduced, bound: frozenset[Index], others: Profile) -> Ref:
        """Name a maximum, minimum or product, and return the reference that replaces it."""
        word = reduced.reduction.value
        for place in reduced.bound:
            index = place.index
            if index in self._left:
                where = "which is on the left"
            elif index in bound:
                where = "which an enclosing sum binds already"
            elif max(others.get(index, _NEVER)) > 0:
                where = "which also occurs outside its term"
            else:
                continue
            message = f"{word}({index}) binds {index}, {where}"
            self._problems.add(place.span, message, "rename one of them")
        sums = tuple(place.index for place in reduced.bound)
        free = tuple(i for i in expr_indices(reduced.expr) if i not in sums)
        axes = self._left if set(free) == set(self._left) else free
        lhs = Ref(Tensor(self._fresh_name(), tuple(i.space for i in axes), Role.TEMP), axes)
        term = Term(Fraction(1), (Apply(reduced.expr),), sums, (), reduced.span, reduced.reduction)
        self.anonymous.append(Equation(lhs, (term,), reduced.span, anonymous=True))
        return lhs

    def _fresh_name(self) -> str:
        while True:
            self._numbered += 1
            if f"_b{self._numbered}" not in self._taken:
                return f"_b{self._numbered}"

    def _check_moved(self, flat: Flat) -> None:
        for place in flat.moved:
            if place.index not in self._left:
                self._problems.add(
                    place.span,
                    f"P and S rename indices of the left side; {place.index} is not there",
                    f"put {place.index} on the left, or write the terms out",
                )

    def _check_bound(
        self, flat: Flat, here: Profile, bound: frozenset[Index], outside: Profile
    ) -> None:
        """Check indices of sum(..): new, in every product, and not outside the term."""
        for place in flat.sums:
            index = place.index
            if index in self._left:
                message = f"sum({index}) binds {index}, which is on the left"
                self._problems.add(place.span, message, "rename one of them")
            elif index in bound:
                message = f"sum({index}) binds {index}, which an enclosing sum binds already"
                self._problems.add(place.span, message, "rename one of them")
            elif max(outside.get(index, _NEVER)) > 0:
                message = f"sum({index}) binds {index}, which also occurs outside its term"
                self._problems.add(place.span, message, "rename one of them")
            elif 0 in here.get(index, _NEVER):
                message = f"{index} of sum({index}) does not occur in every product of the term"
                self._problems.add(place.span, message, "write the products as terms of their own")

    def _check_single(
        self, flat: Flat, here: Profile, bound: frozenset[Index], outside: Profile
    ) -> None:
        """Report indices that occur once in some product and are not bound."""
        for place in _written(flat):
            index = place.index
            if index in bound or max(outside.get(index, _NEVER)) > 0:
                continue
            if 1 in here.get(index, _NEVER):
                message = f"index {index} occurs once in a product and is not on the left"
                self._problems.add(place.span, message, _advice_for_one(flat, index))
                return

    def _check_twice(
        self, group: Group, inside: Profile, others: Profile, bound: frozenset[Index]
    ) -> None:
        for place in _mentioned(group.products):
            index = place.index
            if index in bound or 2 not in inside.get(index, _NEVER):
                continue
            if max(others.get(index, _NEVER)) > 0:
                self._problems.add(
                    place.span,
                    f"index {index} occurs twice inside this bracket and again outside it",
                    "this is ambiguous: rename one, remove the bracket, or name it in an equation",
                )
                return


def _advice_for_one(flat: Flat, index: Index) -> str:
    """Advice on an index that occurs once; inside an atom the user may have meant a sum."""
    for piece in flat.pieces:
        if isinstance(piece.factor, Reduced) and index in {p.index for p in piece.places}:
            word, bound = piece.factor.reduction.value, piece.factor.bound
            letters = ",".join(str(i) for i in (*(p.index for p in bound), index))
            return f"write {word}({letters}), or name a sum over {index} first: x[..] = .."
    advice = f"write sum({index}) or put {index} on the left"
    atoms = [refs(piece.factor.expr) for piece in flat.pieces if isinstance(piece.factor, Apply)]
    if any(sum(ref.indices.count(index) for ref in atom) > 1 for atom in atoms):
        advice += f"; to sum over {index} inside a function, denominator or power, name that first"
    return advice


def _piece_profile(piece: Piece) -> Profile:
    if isinstance(piece.factor, Group):
        return _profile(piece.factor.products)
    counts: dict[Index, int] = {}
    for place in piece.places:
        counts[place.index] = counts.get(place.index, 0) + 1
    return {index: frozenset((min(2, n),)) for index, n in counts.items()}


def _profile(products: tuple[Flat, ...]) -> Profile:
    """Profile of a bracket; without indices that a sum(..) inside it binds."""
    parts = []
    for flat in products:
        here = _times([_piece_profile(piece) for piece in flat.pieces])
        for place in flat.sums:
            here.pop(place.index, None)
        parts.append(here)
    indices = dict.fromkeys(i for part in parts for i in part)
    return {i: frozenset().union(*(part.get(i, _NEVER) for part in parts)) for i in indices}


def _times(profiles: list[Profile]) -> Profile:
    """Profile of a product."""
    result: Profile = {}
    for profile in profiles:
        for index, counts in profile.items():
            so_far = result.get(index, _NEVER)
            result[index] = frozenset(min(2, a + b) for a in so_far for b in counts)
    return result


def _written(flat: Flat) -> tuple[Place, ...]:
    """Places of a product's own indices, then of those inside its brackets."""
    own = tuple(p for piece in flat.pieces for p in piece.places)
    inner = (
        p
        for piece in flat.pieces
        if isinstance(piece.factor, Group)
        for p in _mentioned(piece.factor.products)
    )
    return own + tuple(inner)


def _mentioned(products: tuple[Flat, ...]) -> tuple[Place, ...]:
    """Places of all indices of a bracket that are not bound in it by sum(..)."""
    places: list[Place] = []
    for flat in products:
        hidden = {p.index for p in flat.sums}
        places += (p for p in (*_written(flat), *flat.moved) if p.index not in hidden)
    return tuple(places)


def mentioned(products: tuple[Flat, ...]) -> frozenset[Index]:
    """Indices that occur in a right side or are moved by its operators."""
    return frozenset(p.index for p in _mentioned(products))
