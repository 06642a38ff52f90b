"""Labels of the sums that the factoring search stores as arrays: equal sums are one array.

There are two tables. Where the cost is that of dense loops, an array may hold any sum that gives
its readers the same result. Where the cost counts symmetry, an array holds the symmetric one among
these sums, so that the contractions that read it can use the symmetry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from ..permutation_groups import Group
from .sums import Algebra, Frame, Product, TermSum, relabelled, trivial

# Ranges of labels, above those of the user's tensors and below LEFT of canonical_forms. Factors of
# a product are sorted by label.
FIRST_STAND_IN = 90_000  # arrays not made yet, one label for each symmetry group
FIRST_HOLE = 95_000  # factors to be filled in, one label for each rank
ONES = 99_999  # ones along an index that no factor of a term holds
FIRST_ARRAY = 100_000  # arrays that the search has made


@dataclass(slots=True)
class ArrayTable:
    """Labels of arrays for dense cost.

    The label of an array has no symmetry. What one reader may change about an array is therefore
    independent of the values of the others.

    Attributes:
        fixed: True if the value of an array never changes.
        sums: terms of each array, as first made.
        stand_ins: label of an array not made yet, by its symmetry group and whether it is constant.
    """

    fixed: ClassVar[bool] = False

    algebra: Algebra
    labels: dict[object, int] = field(default_factory=dict)
    sums: dict[int, TermSum] = field(default_factory=dict)
    stand_ins: dict[tuple[Group, bool], int] = field(default_factory=dict)

    def intern(self, total: TermSum, copy: int) -> tuple[int, tuple[int, ...], Fraction]:
        """The array that holds a sum up to a factor: label, left index on each axis, and factor.

        ``copy`` is 0 for the first array with these terms, 1 for a second one, and so on.
        """
        terms, order, scale = self.algebra.canonical_sum(total.frame, total.terms)
        spaces = tuple(total.frame.spaces[i] for i in order)
        key = (spaces, terms, copy)
        label = self.labels.get(key)
        if label is None:
            label = self._new(key, trivial(len(spaces)), total)
            self.sums[label] = TermSum(Frame(spaces, trivial(len(spaces))), dict(terms))
        return label, order, scale

    def _new(self, key: object, group: Group, total: TermSum) -> int:
        label = FIRST_ARRAY + len(self.labels)
        self.labels[key] = label
        self.algebra.forms.add(label, group)
        if self.algebra.is_constant(total.terms):
            self.algebra.constant.add(label)
        return label

    def stand_in(self, frame: Frame, *, constant: bool) -> int:
        """Label of an array that is not made yet, for the cost of products with it."""
        return self._stand_in(trivial(frame.rank), constant)

    def _stand_in(self, group: Group, constant: bool) -> int:
        label = self.stand_ins.get((group, constant))
        if label is None:
            label = self.stand_ins[group, constant] = FIRST_STAND_IN + len(self.stand_ins)
            self.algebra.forms.add(label, group)
            if constant:
                self.algebra.constant.add(label)
        return label

    def sources(self, total: TermSum) -> dict[Product, Fraction]:
        """Terms that may replace an array in its readers."""
        return total.terms


@dataclass(slots=True)
class SymmetricArrayTable(ArrayTable):
    """Labels of arrays for packed cost, each with as much symmetry as its readers permit.

    A sum is averaged over the group G of signed permutations that leave its reader unchanged:
    ``value = sum over g in G of g(terms) / |G|``, which costs additions alone. The result has the
    symmetry G and often more, which follows from its terms. The value of an array never changes.
    """

    fixed: ClassVar[bool] = True

    expanded: dict[tuple[Frame, frozenset[tuple[Product, Fraction]]], TermSum] = field(
        default_factory=dict
    )

    def intern(self, total: TermSum, copy: int) -> tuple[int, tuple[int, ...], Fraction]:
        """The symmetric array of a sum; see :meth:`ArrayTable.intern`."""
        whole = self._written_out(total)
        terms, order, scale, group = self.algebra.symmetric_sum(whole.frame, whole.terms)
        spaces = tuple(whole.frame.spaces[i] for i in order)
        key = (spaces, terms, copy)
        label = self.labels.get(key)
        if label is None:
            label = self._new(key, group, total)
            frame = Frame(spaces, group)
            self.sums[label] = TermSum(frame, {})
            for term, coeff in terms:
                self.algebra.add(self.sums[label], term, coeff)
        return label, order, scale

    def stand_in(self, frame: Frame, *, constant: bool) -> int:
        """Label of an array that is not made yet, with the symmetry that it certainly has."""
        return self._stand_in(frame.group, constant)

    def sources(self, total: TermSum) -> dict[Product, Fraction]:
        """Terms of an array, with their images under its group written out."""
        return self._written_out(total).terms

    def _written_out(self, total: TermSum) -> TermSum:
        memo = (total.frame, frozenset(total.terms.items()))
        images = self.expanded.get(memo)
        if images is None:
            images = self.expanded[memo] = self._images(total)
        return images

    def _images(self, total: TermSum) -> TermSum:
        """The sum as the average of the images of its terms under its group."""
        frame = Frame(total.frame.spaces, trivial(total.frame.rank))
        group = total.frame.group
        whole = TermSum(frame, {})
        for (parts, spaces), coeff in total.terms.items():
            for perm, sign in group:
                moved = Product(relabelled(parts, dict(enumerate(perm))), spaces)
                self.algebra.add(whole, moved, coeff * sign / len(group))
        return whole
