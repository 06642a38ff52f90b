"""From factored sums back to equations, with one named intermediate for each array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import starmap
from typing import assert_never

from ...ir.expr import Delta, expr_indices
from ...ir.system import Apply, Equation, Factor, System, Term, factor_indices
from ...ir.tensor import Index, Ref, Role, Space, Symmetry, Tensor, generators
from ...ir.term_rewriting import fresh_index, rename_factor, rename_term
from ..equations.inline import keep_needed
from ..equations.intermediates import is_copy
from ..equations.permutations import new_name
from ..permutation_groups import Group, aligned, stages_of
from .greedy import State
from .lift import Lifted
from .sums import Product, TermSum


@dataclass(slots=True)
class _Writer:
    """The equations written so far; each array is defined before it is read.

    Attributes:
        names: names of indices for each space number.
        symmetric: True if arrays have the symmetry of their frames.
        tensors: the tensor of each array written so far.
        scales: each array holds its sum times this factor.
        equations: the equations in order of definition.
    """

    lifted: Lifted
    state: State
    taken: set[str]
    names: dict[int, tuple[str, ...]]
    symmetric: bool
    tensors: dict[int, Tensor] = field(default_factory=dict)
    scales: dict[int, Fraction] = field(default_factory=dict)
    equations: list[Equation] = field(default_factory=list)

    def array(self, label: int) -> None:
        """Write the equation of an array, after those of the arrays that it reads."""
        if label in self.tensors:
            return
        total = self.state.sums[label]
        self.read_by(total)
        spaces = tuple(self.lifted.spaces[s] for s in total.frame.spaces)
        tensor = Tensor(new_name("w", self.taken), spaces, Role.TEMP)
        if self.symmetric:
            tensor = replace(
                tensor, symmetry=generators(tensor, starmap(Symmetry, total.frame.group))
            )
        lhs = Ref(tensor, tuple(self.fresh(total.frame.spaces, ())))
        terms = tuple(self.term(lhs, p, c) for p, c in sorted(total.terms.items()))
        scale = _plain_scale(terms)
        self.scales[label] = scale
        terms = tuple(replace(t, coeff=t.coeff * scale) for t in terms)
        if self.symmetric:
            group = total.frame.group
            terms = tuple(replace(t, coeff=t.coeff / len(group)) for t in terms)
            terms = self.images(lhs, total, terms)
        self.tensors[label] = self.write(lhs, terms)

    def images(self, lhs: Ref, total: TermSum, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        """Terms that add up to the sum of all images of ``terms`` under the group of a sum.

        A term that equals its images gets their number as a factor. The other terms are added in
        an intermediate, whose images are then added in stages. In place of each term stands the
        image with which the intermediate has the most symmetry.
        """
        group = total.frame.group
        own_groups = [self.lifted.algebra.invariance(p, total.frame) for p in sorted(total.terms)]
        invariant = tuple(
            replace(t, coeff=t.coeff * len(group))
            for own, t in zip(own_groups, terms, strict=True)
            if len(own) == len(group)
        )
        others = [
            (own, t) for own, t in zip(own_groups, terms, strict=True) if len(own) < len(group)
        ]
        if not others:
            return invariant
        moves, common = aligned(group, [own for own, _ in others])
        first = tuple(
            _moved(lhs, term, perm, sign * len(common))
            for (_, term), (perm, sign) in zip(others, moves, strict=True)
        )
        return (*self.staged(lhs, first, stages_of(group, common)), *invariant)

    def read_by(self, total: TermSum) -> None:
        """Write the arrays that a sum reads."""
        for term in sorted(total.terms):
            for part, _ in term.factors:
                if part in self.state.sums:
                    self.array(part)

    def fresh(self, spaces: tuple[int, ...], held: tuple[Index, ...]) -> Iterator[Index]:
        """The indices ``held``, and then a new one for each further space, named as by the user."""
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
        """Append an equation; returns its tensor. The volatility of an intermediate is derived."""
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
        """A factor of the user's equations with new indices, or a reference to an array."""
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
        """Write the equation of a target, with the images of its terms under its symmetry."""
        total = self.state.sums[label]
        old = self.lifted.equations[label]
        self.read_by(total)
        terms = tuple(self.term(old.lhs, p, c) for p, c in sorted(total.terms.items()))
        terms = self.images(old.lhs, total, terms)
        self.equations.append(replace(old, terms=(*terms, *self.lifted.opaque[label])))

    def staged(
        self, lhs: Ref, terms: tuple[Term, ...], stages: tuple[Group, ...]
    ) -> tuple[Term, ...]:
        """Terms that add the images of a sum, stage by stage; each stage reads an intermediate."""
        for stage in stages:
            name = new_name(f"{lhs.tensor.name}_w", self.taken)
            bare = Tensor(name, lhs.tensor.spaces, Role.TEMP)
            inner = self.write(Ref(bare, lhs.indices), terms)
            terms = tuple(
                Term(Fraction(sign), (Ref(inner, tuple(lhs.indices[n] for n in perm)),))
                for perm, sign in stage
            )
        return terms


def _moved(lhs: Ref, term: Term, perm: tuple[int, ...], weight: int) -> Term:
    """A term with its left indices permuted, times a weight."""
    left = {index: lhs.indices[n] for index, n in zip(lhs.indices, perm, strict=True)}
    return replace(rename_term(term, left), coeff=term.coeff * weight)


def _plain_scale(terms: tuple[Term, ...]) -> Fraction:
    """A factor for an array that gives most terms of a single reference the coefficient 1.

    A coefficient of a contraction costs nothing; one of a single reference costs an operation for
    each element.
    """
    lone = [abs(t.coeff) for t in terms if len(t.factors) == 1 and not t.sums]
    if not lone:
        return Fraction(1)
    return 1 / max(sorted(set(lone)), key=lone.count)


def write_system(lifted: Lifted, state: State, symmetric: bool = False) -> System:
    """The system with the factored equations in place of its own.

    If ``symmetric``, arrays have the symmetry of their frames, and the images of their terms are
    written as well.
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


def copies_first(system: System) -> System:
    """The system with single references before products: the first one is copied, not added."""
    equations = tuple(
        replace(e, terms=tuple(sorted(e.terms, key=lambda t: len(t.factors) > 1 or bool(t.sums))))
        for e in system.equations
    )
    return replace(system, equations=equations)


def outputs_as_arrays(system: System) -> System:
    """The system in which no output is only a copy of an intermediate, if it can be the array.

    ``x = A*B, w = x, z = x*Q`` becomes ``w = A*B, z = w*Q``.
    """
    for output in (t for t in system.tensors if t.role is Role.OUTPUT and not t.accumulate):
        copy = next(e for e in system.equations if e.lhs.tensor == output)
        if not is_copy(copy):
            continue
        (term,) = copy.terms
        (source,) = term.factors
        if isinstance(source, Ref) and source.tensor.role is Role.TEMP and abs(term.coeff) == 1:
            system = _renamed(system, source, copy.lhs, term.coeff)
    return system


def _renamed(system: System, source: Ref, lhs: Ref, sign: Fraction) -> System:
    """The system with the array ``lhs`` in place of ``source``, which it is up to the sign."""
    place = [source.indices.index(i) for i in lhs.indices]

    def moved(ref: Ref) -> Ref:
        return Ref(lhs.tensor, tuple(ref.indices[p] for p in place))

    equations: list[Equation] = []
    for old in system.equations:
        if old.lhs.tensor == lhs.tensor:
            continue
        terms = []
        for term in old.terms:
            reads = [isinstance(f, Ref) and f.tensor == source.tensor for f in term.factors]
            power = sum(reads) + (old.lhs.tensor == source.tensor)
            factors = tuple(
                moved(f) if read and isinstance(f, Ref) else f
                for f, read in zip(term.factors, reads, strict=True)
            )
            terms.append(replace(term, coeff=term.coeff * sign**power, factors=factors))
        left = moved(old.lhs) if old.lhs.tensor == source.tensor else old.lhs
        equations.append(replace(old, lhs=left, terms=tuple(terms)))
    tensors = tuple(t for t in system.tensors if t != source.tensor)
    return replace(system, tensors=tensors, equations=tuple(equations))


def _definers_first(lifted: Lifted, targets: tuple[int, ...]) -> tuple[int, ...]:
    """The targets in an order in which each stands after the targets that its equation reads."""
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
    """Names of the user's indices of a space, the shortest first."""
    names: set[str] = set()
    for equation in lifted.equations.values():
        for index in equation.lhs.indices:
            if index.space == space:
                names.add(index.name)
        for term in equation.terms:
            for factor in term.factors:
                held = expr_indices(factor.expr) if isinstance(factor, Apply) else ()
                for index in (*held, *factor_indices(factor)):
                    if index.space == space:
                        names.add(index.name)
    return tuple(sorted(names, key=lambda n: (len(n), n))) or (space.name[0],)
