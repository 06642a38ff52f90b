"""An order of the tensors and targets of a system that their names do not decide.

Tensors are coloured by shape and symmetry, and the colours refined by the terms that read each
tensor (colour refinement, Weisfeiler and Leman 1968) until nothing changes. Where tensors still
look alike, each of them is tried as the first, and the labelling with the least equations is
taken. Two ways of writing a system therefore become the same numbered sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from ..permutation_groups import Group
from .canonical_forms import Forms
from .sums import Algebra, Product, Sum

Colours: TypeAlias = tuple[int, ...]  # of each label
TermKey: TypeAlias = tuple[Product, Fraction]
TargetKey: TypeAlias = tuple[tuple[int, ...], Group, tuple[TermKey, ...]]


@dataclass(frozen=True, slots=True)
class Kind:
    """What is known of a label without its name.

    Attributes:
        shape: text that sorts kinds and is equal for tensors of equal spaces and nature.
        group: symmetry of the tensor.
        target: number of the sum that defines it, or -1.
    """

    shape: str
    group: Group
    target: int = -1


@dataclass(slots=True)
class _Refinement:
    kinds: Sequence[Kind]
    targets: Sequence[Sum]
    most_tried: int
    algebras: dict[Colours, Algebra] = field(default_factory=dict)
    tried: int = 0

    def least(self, colours: Colours) -> Colours:
        """A colour for each label alone, the choice among equals by the least equations."""
        twice = [c for c in sorted(set(colours)) if colours.count(c) > 1]
        if not twice:
            return colours
        best: tuple[list[TargetKey], Colours] | None = None
        for member in (n for n, c in enumerate(colours) if c == twice[0]):
            if best is not None and self.tried >= self.most_tried:
                break
            self.tried += 1
            first = _ranked([(c, n != member) for n, c in enumerate(colours)])
            found = self.least(self.refined(first))
            whole = (sorted(self.keys(found)), found)
            if best is None or whole[0] < best[0]:
                best = whole
        assert best is not None
        return best[1]

    def refined(self, colours: Colours) -> Colours:
        """The coarsest colouring in which equal colours are read by equal terms."""
        while True:
            keys = self.keys(colours)
            level = {k: n for n, k in enumerate(sorted(set(keys)))}
            seen: list[list[tuple[int, TermKey, int]]] = [[] for _ in colours]
            for total, whole in zip(self.targets, keys, strict=True):
                for term, coeff in total.terms.items():
                    key = self.term_key(term, coeff, total, colours)
                    labels = [label for label, _ in term[0]]
                    for label in dict.fromkeys(labels):
                        seen[label].append((level[whole], key, labels.count(label)))
            finer = _ranked(
                [
                    (
                        colours[n],
                        level[keys[kind.target]] if kind.target >= 0 else -1,
                        tuple(sorted(seen[n])),
                    )
                    for n, kind in enumerate(self.kinds)
                ]
            )
            if len(set(finer)) == len(set(colours)):
                return finer
            colours = finer

    def keys(self, colours: Colours) -> list[TargetKey]:
        """For each sum what it is when labels of one colour are the same tensor."""
        return [
            (
                total.frame.spaces,
                total.frame.group,
                tuple(sorted(self.term_key(t, c, total, colours) for t, c in total.terms.items())),
            )
            for total in self.targets
        ]

    def term_key(self, term: Product, coeff: Fraction, total: Sum, colours: Colours) -> TermKey:
        """A term when labels of one colour are the same tensor."""
        algebra = self._algebra(colours)
        parts = tuple(sorted((colours[label], held) for label, held in term[0]))
        product, sign = algebra.normal((parts, term[1]), total.frame)
        if sign:
            return product, coeff * sign
        # it would vanish if tensors of one colour were one: of its form only the colours are sure
        return (tuple((c, ()) for c, _ in parts), tuple(sorted(term[1]))), abs(coeff)

    def _algebra(self, colours: Colours) -> Algebra:
        known = self.algebras.get(colours)
        if known is None:
            known = self.algebras[colours] = Algebra(Forms())
            for kind, colour in zip(self.kinds, colours, strict=True):
                known.forms.add(colour, kind.group)
        return known


def structural_order(
    kinds: Sequence[Kind], targets: Sequence[Sum], most_tried: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The labels and the targets in an order that depends on structure alone.

    Args:
        kinds: of the labels 0, 1, ..
        targets: sums of products of these labels.
        most_tried: orders compared where labels cannot be told apart; the first ones count.

    Returns:
        The old label at each new one, the old target at each new one.
    """
    refinement = _Refinement(kinds, targets, most_tried)
    start = _ranked([(kind.shape, kind.group) for kind in kinds])
    colours = refinement.least(refinement.refined(start))
    keys = refinement.keys(colours)
    return (
        tuple(sorted(range(len(kinds)), key=colours.__getitem__)),
        tuple(sorted(range(len(targets)), key=lambda n: (len(keys[n][0]), keys[n]))),
    )


def _ranked(things: Sequence[Any]) -> Colours:
    level = {thing: n for n, thing in enumerate(sorted(set(things)))}
    return tuple(level[thing] for thing in things)
