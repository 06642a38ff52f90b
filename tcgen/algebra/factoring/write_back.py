"""Factored sums as equations again: one named intermediate for each array of the search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import assert_never

from ...ir.expr import Delta, expr_indices
from ...ir.system import Apply, Equation, Factor, System, Term, factor_indices
from ...ir.tensor import Index, Ref, Role, Space, Tensor
from ...ir.term_rewriting import fresh_index, rename_factor
from ..equations.inline import keep_needed
from ..equations.permutations import new_name
from ..equations.proven_symmetry import generators
from ..permutation_groups import Group
from .greedy import State
from .lift import Lifted
from .sums import Product, Sum
from .symmetriser import stages_of


@dataclass(slots=True)
class _Writer:
    """Equations written so far, in an order in which every array is defined before it is read."""

    lifted: Lifted
    state: State
    taken: set[str]
    names: dict[int, tuple[str, ...]]  # index names of each space
    symmetric: bool  # arrays have the symmetry of their frames
    tensors: dict[int, Tensor] = field(default_factory=dict)
    scales: dict[int, Fraction] = field(default_factory=dict)  # an array holds its sum times this
    equations: list[Equation] = field(default_factory=list)

    def array(self, label: int) -> None:
        """Write the equation of an array after those that it reads."""
        if label in self.tensors:
            return
        total = self.state.sums[label]
        self.needed_by(total)
        spaces = tuple(self.lifted.spaces[s] for s in total.frame.spaces)
        tensor = Tensor(new_name("w", self.taken), spaces, Role.TEMP)
        if self.symmetric:
            tensor = replace(tensor, symmetry=generators(tensor, total.frame.group))
        lhs = Ref(tensor, self.left(total))
        terms = tuple(self.term(lhs, p, c) for p, c in sorted(total.terms.items()))
        scale = _plain_scale(terms)
        self.scales[label] = scale
        terms = tuple(replace(t, coeff=t.coeff * scale) for t in terms)
        if self.symmetric:
            group = total.frame.group
            terms = tuple(replace(t, coeff=t.coeff / len(group)) for t in terms)
            terms = self.images(lhs, total, terms)
        self.tensors[label] = self.write(lhs, terms)

    def images(self, lhs: Ref, total: Sum, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        """Terms that add up to the sum of all images of ``terms`` under the group of a sum.

        A term that is its own image is counted once for each image. The others are added up in an
        intermediate, whose images are added in stages.
        """
        group = total.frame.group
        own = [self.lifted.algebra.invariance(p, total.frame) for p in sorted(total.terms)]
        ready = tuple(
            replace(t, coeff=t.coeff * len(group))
            for g, t in zip(own, terms, strict=True)
            if len(g) == len(group)
        )
        rest = [(g, t) for g, t in zip(own, terms, strict=True) if len(g) < len(group)]
        if not rest:
            return ready
        shared = tuple(g for g in group if all(g in has for has, _ in rest))
        first = tuple(replace(t, coeff=t.coeff * len(shared)) for _, t in rest)
        return (*self.staged(lhs, first, stages_of(group, shared)), *ready)

    def needed_by(self, total: Sum) -> None:
        """Write the arrays that a sum reads."""
        for term in sorted(total.terms):
            for part, _ in term[0]:
                if part in self.state.sums:
                    self.array(part)

    def left(self, total: Sum) -> tuple[Index, ...]:
        """Left indices with the letters that the user has for their spaces."""
        return tuple(self.fresh(total.frame.spaces, ()))

    def fresh(self, spaces: tuple[int, ...], held: tuple[Index, ...]) -> Iterator[Index]:
        """``held`` and then one new index for each further space."""
        taken = {i.name for i in held}
        yield from held
        for number in spaces[len(held) :]:
            space = self.lifted.spaces[number]
            letters = self.names[number]
            name = next((x for x in letters if x not in taken), None)
            index = Index(name, space) if name else fresh_index(Index(letters[0], space), taken)
            taken.add(index.name)
            yield index

    def write(self, lhs: Ref, terms: tuple[Term, ...]) -> Tensor:
        """Append an equation, the volatility of an intermediate derived."""
        tensor = lhs.tensor
        if tensor.role is Role.TEMP:
            tensor = replace(tensor, volatile=any(r.tensor.volatile for t in terms for r in t.refs))
        self.equations.append(Equation(Ref(tensor, lhs.indices), terms))
        return tensor

    def term(self, lhs: Ref, product: Product, coeff: Fraction) -> Term:
        """A product as a term under given left indices."""
        parts, spaces = product
        indices = tuple(self.fresh(spaces, lhs.indices))
        factors = tuple(self.factor(p, tuple(indices[i] for i in held)) for p, held in parts)
        for label, _ in parts:
            coeff /= self.scales.get(label, 1)
        return Term(coeff, factors, indices[len(lhs.indices) :])

    def factor(self, label: int, indices: tuple[Index, ...]) -> Factor:
        """A factor of the user with new indices, or a reference to an array."""
        if label in self.tensors:
            return Ref(self.tensors[label], indices)
        known = self.lifted.atoms[label]
        match known:
            case Ref(tensor, _):
                return Ref(tensor, indices)
            case Delta():
                return Delta(*indices)
            case Apply():
                axes = self.lifted.axes[label]
                return rename_factor(known, dict(zip(axes, indices, strict=True)))
            case _:
                assert_never(known)

    def target(self, label: int) -> None:
        """Write the equation of a target; its symmetry is restored at the end."""
        total = self.state.sums[label]
        old = self.lifted.equations[label]
        self.needed_by(total)
        terms = tuple(self.term(old.lhs, p, c) for p, c in sorted(total.terms.items()))
        rest = self.lifted.opaque[label]
        terms = self.images(old.lhs, total, terms)
        self.equations.append(replace(old, terms=(*terms, *rest)))

    def staged(
        self, lhs: Ref, terms: tuple[Term, ...], stages: tuple[Group, ...]
    ) -> tuple[Term, ...]:
        """Terms that add the images of a sum, the sum itself written as an intermediate."""
        for stage in stages:
            name = new_name(f"{lhs.tensor.name}_w", self.taken)
            bare = Tensor(name, lhs.tensor.spaces, Role.TEMP)
            inner = self.write(Ref(bare, lhs.indices), terms)
            terms = tuple(
                Term(Fraction(sign), (Ref(inner, tuple(lhs.indices[n] for n in perm)),))
                for perm, sign in stage
            )
        return terms


def _plain_scale(terms: tuple[Term, ...]) -> Fraction:
    """A number after which most lone references are added as they are.

    The coefficient of a contraction costs nothing, that of a lone reference an operation each.
    """
    lone = [abs(t.coeff) for t in terms if len(t.factors) == 1 and not t.sums]
    if not lone:
        return Fraction(1)
    return 1 / max(sorted(set(lone)), key=lone.count)


def write_system(lifted: Lifted, state: State, symmetric: bool = False) -> System:
    """The system with the factored equations in place of its own.

    Args:
        lifted: the system as it was.
        state: its sums, factored.
        symmetric: arrays have the symmetry of their frames, and it has to be made.
    """
    system = lifted.system
    writer = _Writer(
        lifted,
        state,
        {t.name for t in system.tensors},
        {n: _letters(lifted, space) for n, space in enumerate(lifted.spaces)},
        symmetric,
    )
    for label in _definers_first(lifted, state.targets):
        writer.target(label)
    made = [e.lhs.tensor for e in writer.equations]
    known = {t.name for t in system.tensors}
    new = replace(
        system,
        tensors=(*system.tensors, *(t for t in made if t.name not in known)),
        equations=tuple(writer.equations),
    )
    return keep_needed(new)


def _definers_first(lifted: Lifted, targets: tuple[int, ...]) -> tuple[int, ...]:
    """The targets, each after those that its equation reads."""
    label_of = {lifted.equations[t].lhs.tensor.name: t for t in targets}
    reads = {
        label: {
            label_of[ref.tensor.name]
            for term in lifted.equations[label].terms
            for ref in term.refs
            if ref.tensor.name in label_of
        }
        - {label}
        for label in targets
    }
    ordered: list[int] = []
    while len(ordered) < len(targets):
        ready = (t for t in targets if t not in ordered and reads[t] <= set(ordered))
        ordered.append(next(ready))
    return tuple(ordered)


def _letters(lifted: Lifted, space: Space) -> tuple[str, ...]:
    """Names that the user has for indices of a space, sorted."""
    found: dict[str, None] = {}
    for equation in lifted.equations.values():
        for index in equation.lhs.indices:
            if index.space == space:
                found[index.name] = None
        for term in equation.terms:
            for factor in term.factors:
                held = expr_indices(factor.expr) if isinstance(factor, Apply) else ()
                for index in (*held, *factor_indices(factor)):
                    if index.space == space:
                        found[index.name] = None
    return tuple(sorted(found, key=lambda n: (len(n), n))) or (space.name[0],)
