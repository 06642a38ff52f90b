"""Sums that became arrays of the factoring search, and their names.

Two kinds. Where only the number of operations of dense loops counts, an array may hold any sum
that its readers cannot tell from the one they mean. Where symmetry saves operations, an array
holds the symmetric one among them, so that the contractions that read it may use it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from ..permutation_groups import Group
from .sums import Algebra, Frame, Product, Sum, trivial

FIRST_ARRAY = 100_000  # labels of arrays that the search makes
_STAND_IN = 90_000  # labels of arrays not yet made, one for each group


@dataclass(slots=True)
class Arrays:
    """Names of the sums that became arrays.

    An array's label claims no symmetry, so that what a reader may change about one array never
    rests on the value of another.
    """

    algebra: Algebra
    labels: dict[object, int] = field(default_factory=dict)
    sums: dict[int, Sum] = field(default_factory=dict)
    stand_ins: dict[Group, int] = field(default_factory=dict)

    @property
    def fixed(self) -> bool:
        """True where the value of an array never changes."""
        return False

    def intern(self, total: Sum, copy: int) -> tuple[int, tuple[int, ...], Fraction]:
        """Label of the array, the left index on each of its axes, and the factor.

        Args:
            total: any sum.
            copy: number of arrays of these terms that cannot be used.
        """
        terms, order, scale = self.algebra.canonical_sum(total.frame, total.terms)
        spaces = tuple(total.frame.spaces[i] for i in order)
        key = (spaces, terms, copy)
        label = self.labels.get(key)
        if label is None:
            label = self._new(key, trivial(len(spaces)))
            self.sums[label] = Sum(Frame(spaces, trivial(len(spaces))), dict(terms))
        return label, order, scale

    def _new(self, key: object, group: Group) -> int:
        label = FIRST_ARRAY + len(self.labels)
        self.labels[key] = label
        self.algebra.forms.add(label, group)
        return label

    def stand_in(self, frame: Frame) -> int:
        """Label of an array that is not made yet, to be weighed in its place."""
        return self._stand_in(trivial(frame.rank))

    def _stand_in(self, group: Group) -> int:
        label = self.stand_ins.get(group)
        if label is None:
            label = self.stand_ins[group] = _STAND_IN + len(self.stand_ins)
            self.algebra.forms.add(label, group)
        return label

    def sources(self, total: Sum) -> dict[Product, Fraction]:
        """Terms that may stand for an array in its readers."""
        return total.terms


@dataclass(slots=True)
class SymmetricArrays(Arrays):
    """Arrays with all the symmetry that their readers leave open.

    The signed permutations that a reader cannot see are applied to the sum, which costs additions
    only; what comes out has that symmetry, and often more, which is derived from its terms. An
    array means this value for good: ``value = sum over g in G of g(terms) / |G|``.
    """

    expanded: dict[tuple[Frame, frozenset[tuple[Product, Fraction]]], Sum] = field(
        default_factory=dict
    )

    @property
    def fixed(self) -> bool:
        """True where the value of an array never changes."""
        return True

    def intern(self, total: Sum, copy: int) -> tuple[int, tuple[int, ...], Fraction]:
        """Label of the symmetric array, the left index on each of its axes, and the factor."""
        whole = self._written_out(total)
        terms, order, scale, group = self.algebra.symmetric_sum(whole.frame, whole.terms)
        spaces = tuple(whole.frame.spaces[i] for i in order)
        key = (spaces, terms, copy)
        label = self.labels.get(key)
        if label is None:
            label = self._new(key, group)
            frame = Frame(spaces, group)
            self.sums[label] = Sum(frame, {})
            for term, coeff in terms:
                normal, sign = self.algebra.normal(term, frame)
                self.sums[label].add(normal, coeff * sign)
        return label, order, scale

    def stand_in(self, frame: Frame) -> int:
        """Label of an array that is not made yet, with the symmetry that is certain."""
        return self._stand_in(frame.group)

    def sources(self, total: Sum) -> dict[Product, Fraction]:
        """Terms of an array with the images under its group written out."""
        return self._written_out(total).terms

    def _written_out(self, total: Sum) -> Sum:
        memo = (total.frame, frozenset(total.terms.items()))
        found = self.expanded.get(memo)
        if found is None:
            found = self.expanded[memo] = self._images(total)
        return found

    def _images(self, total: Sum) -> Sum:
        frame = Frame(total.frame.spaces, trivial(total.frame.rank))
        group = total.frame.group
        whole = Sum(frame, {})
        for (parts, spaces), coeff in total.terms.items():
            for perm, sign in group:
                moved = tuple(
                    (label, tuple(perm[i] if i < frame.rank else i for i in held))
                    for label, held in parts
                )
                normal, factor = self.algebra.normal((tuple(sorted(moved)), spaces), frame)
                if factor:
                    whole.add(normal, coeff * sign * factor / len(group))
        return whole
