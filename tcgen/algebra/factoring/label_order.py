"""An order of the tensors and targets of a system that does not depend on their names.

Tensors are coloured by shape and symmetry, and the colours are refined by the terms that read each
tensor until nothing changes (colour refinement, Weisfeiler and Leman 1968). Where several tensors
still have one colour, each of them is tried as the first, and the order with the least equations is
taken. A system therefore gives the same numbered sums however it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from ..permutation_groups import Group
from .canonical_forms import Forms
from .sums import Algebra, Product, TermSum

Colours: TypeAlias = tuple[int, ...]  # colour by label
TermKey: TypeAlias = tuple[Product, Fraction]
TargetKey: TypeAlias = tuple[tuple[int, ...], Group, tuple[TermKey, ...]]


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties of a label that do not depend on its name.

    Attributes:
        shape: text that is equal for tensors of equal spaces and role; kinds are sorted by it.
        target: number of the sum that defines the tensor, or -1.
    """

    shape: str
    group: Group
    target: int = -1


@dataclass(slots=True)
class _Refinement:
    """Colour refinement of the labels of some sums."""

    kinds: Sequence[Kind]
    targets: Sequence[TermSum]
    most_tried: int
    algebras: dict[Colours, Algebra] = field(default_factory=dict)
    tried: int = 0

    def least(self, colours: Colours) -> Colours:
        """Distinct colours for all labels; of several choices those with the least equations."""
        ambiguous = [c for c in sorted(set(colours)) if colours.count(c) > 1]
        if not ambiguous:
            return colours
        best: tuple[list[TargetKey], Colours] | None = None
        for member in (n for n, c in enumerate(colours) if c == ambiguous[0]):
            if best is not None and self.tried >= self.most_tried:
                break
            self.tried += 1
            first = _ranked([(c, n != member) for n, c in enumerate(colours)])
            distinct = self.least(self.refined(first))
            equations = sorted(self.keys(distinct))
            if best is None or equations < best[0]:
                best = (equations, distinct)
        assert best is not None
        return best[1]

    def refined(self, colours: Colours) -> Colours:
        """The coarsest refinement in which equal terms read labels of equal colours."""
        while True:
            keys = self.keys(colours)
            level = {k: n for n, k in enumerate(sorted(set(keys)))}
            readers: list[list[tuple[int, TermKey, int]]] = [[] for _ in colours]
            for total, target_key in zip(self.targets, keys, strict=True):
                target = level[target_key]
                for term, coeff in total.terms.items():
                    key = self.term_key(term, coeff, total, colours)
                    labels = [label for label, _ in term.factors]
                    for label in dict.fromkeys(labels):
                        readers[label].append((target, key, labels.count(label)))
            finer = _ranked(
                [
                    (
                        colours[n],
                        level[keys[kind.target]] if kind.target >= 0 else -1,
                        tuple(sorted(readers[n])),
                    )
                    for n, kind in enumerate(self.kinds)
                ]
            )
            if len(set(finer)) == len(set(colours)):
                return finer
            colours = finer

    def keys(self, colours: Colours) -> list[TargetKey]:
        """A key for each sum, in which labels of one colour count as the same tensor."""
        return [
            (
                total.frame.spaces,
                total.frame.group,
                tuple(sorted(self.term_key(t, c, total, colours) for t, c in total.terms.items())),
            )
            for total in self.targets
        ]

    def term_key(self, term: Product, coeff: Fraction, total: TermSum, colours: Colours) -> TermKey:
        """A key of a term, in which labels of one colour count as the same tensor."""
        algebra = self._algebra(colours)
        parts = tuple(sorted((colours[label], held) for label, held in term.factors))
        product, sign = algebra.normal(Product(parts, term.spaces), total.frame)
        if sign:
            return product, coeff * sign
        # The term would vanish if its tensors of one colour were the same, so that it has no
        # canonical form; the key holds the colours alone.
        colours_alone = tuple((colour, ()) for colour, _ in parts)
        return Product(colours_alone, tuple(sorted(term.spaces))), abs(coeff)

    def _algebra(self, colours: Colours) -> Algebra:
        known = self.algebras.get(colours)
        if known is None:
            known = self.algebras[colours] = Algebra(Forms())
            for kind, colour in zip(self.kinds, colours, strict=True):
                known.forms.add(colour, kind.group)
        return known


def structural_order(
    kinds: Sequence[Kind], targets: Sequence[TermSum], most_tried: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The old label and old target at each new one, in an order that depends only on structure.

    ``kinds`` has the labels 0, 1, .., of whose products the targets are sums. Where labels cannot
    be told apart, ``most_tried`` orders are compared; further ones are ignored.
    """
    refinement = _Refinement(kinds, targets, most_tried)
    start = _ranked([(kind.shape, kind.group) for kind in kinds])
    colours = refinement.least(refinement.refined(start))
    keys = refinement.keys(colours)
    return (
        tuple(sorted(range(len(kinds)), key=colours.__getitem__)),
        tuple(sorted(range(len(targets)), key=lambda n: (len(keys[n][0]), keys[n]))),
    )


def _ranked(keys: Sequence[Any]) -> Colours:
    """The rank of each key among the distinct keys."""
    level = {key: n for n, key in enumerate(sorted(set(keys)))}
    return tuple(level[key] for key in keys)
