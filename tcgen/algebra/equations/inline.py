"""Substitution of intermediates into the terms that read them, and the naive cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ...ir.cost import ZERO, Poly
from ...ir.expr import Const, Delta, Quot, operation_count
from ...ir.reduction import Reduction
from ...ir.system import (
    Apply,
    Equation,
    Factor,
    Permutation,
    System,
    Term,
    factor_indices,
    factor_refs,
    fits_axis,
)
from ...ir.tensor import Index, Ref, Role, Space
from ...ir.term_rewriting import fresh_indices, rename_factors, without_perms


def inline(reader: Equation, inner: Equation) -> Equation:
    """``reader`` with every factor that reads ``inner``'s tensor replaced by its terms.

    References inside Apply stay. The permutations of a term of ``reader`` stay. Those of a term of
    ``inner`` are written out, unless the reference is the whole term and has the left indices of
    ``reader``: then the new term has these permutations.
    """
    return inline_all(reader, {inner.lhs.tensor.name: inner})


def inlined_count(reader: Equation, inner: Equation) -> int:
    """Number of terms that :func:`inline` would make, counted with permutations written out."""
    width = sum(max(1, len(t.perms)) for t in inner.terms)
    return sum(
        width ** sum(isinstance(f, Ref) and f.tensor == inner.lhs.tensor for f in t.factors)
        for t in reader.terms
    )


def _inline_first(term: Term, lhs: Ref, known: Mapping[str, Equation]) -> list[Term] | None:
    """The terms that replace a term, its first known reference inlined; None if it has none."""
    found = _first_known(term, known)
    if found is None:
        return None
    position, factor, inner = found
    whole = (
        len(term.factors) == 1
        and not term.perms
        and not term.sums
        and sorted(i.name for i in factor.indices) == sorted(i.name for i in lhs.indices)
    )
    before, after = term.factors[:position], term.factors[position + 1 :]
    result = []
    for source in inner.terms:
        plain, perms = without_perms(source, inner.lhs), term.perms
        if whole and source.perms:
            plain = (replace(source, perms=()),)
            perms = _carried(source.perms, factor, lhs)
        for one in plain:
            factors, sums = _substituted(one, inner.lhs, factor, term, lhs)
            held = {i for f in (*before, *factors, *after) for i in factor_indices(f)}
            # Only the replaced reference held these summed indices: a delta keeps the sum over 1.
            broadcast = tuple(Delta(i, i) for i in term.sums if i not in held)
            result.append(
                Term(
                    term.coeff * one.coeff,
                    (*before, *factors, *broadcast, *after),
                    (*term.sums, *sums),
                    perms,
                    term.span or one.span,
                )
            )
    return result


def _first_known(term: Term, known: Mapping[str, Equation]) -> tuple[int, Ref, Equation] | None:
    """The first factor that can be inlined, its position and its equation."""
    for position, factor in enumerate(term.factors):
        inner = known.get(factor.tensor.name) if isinstance(factor, Ref) else None
        if inner is not None and isinstance(factor, Ref) and _can_inline(factor, inner):
            return position, factor, inner
    return None


def _can_inline(factor: Factor, inner: Equation) -> bool:
    """True for a reference to a sum of terms whose indices can replace the left ones."""
    lhs = inner.lhs
    return (
        isinstance(factor, Ref)
        and factor.tensor == lhs.tensor
        and inner.reduction is Reduction.SUM
        and all(
            fits_axis(new, old.space) for new, old in zip(factor.indices, lhs.indices, strict=True)
        )
    )


def _carried(perms: tuple[Permutation, ...], ref: Ref, lhs: Ref) -> tuple[Permutation, ...]:
    """Permutations of the axes of ``ref`` as permutations of the left indices on these axes."""
    place = [lhs.indices.index(i) for i in ref.indices]
    carried = []
    for perm in perms:
        images = list(range(len(place)))
        for axis, image in enumerate(perm.images):
            images[place[axis]] = place[image]
        carried.append(Permutation(perm.sign, tuple(images)))
    return tuple(carried)


def _substituted(
    source: Term, source_lhs: Ref, ref: Ref, term: Term, lhs: Ref
) -> tuple[tuple[Factor, ...], tuple[Index, ...]]:
    """Factors and summed indices of ``source`` in place of ``ref``, with fresh summed indices."""
    taken = {i.name for i in (*lhs.indices, *term.sums, *term.indices)}
    sums = fresh_indices(source.sums, taken)
    names = dict(zip(source_lhs.indices, ref.indices, strict=True)) | sums
    return rename_factors(source.factors, names), tuple(sums.values())


def inline_all(equation: Equation, known: Mapping[str, Equation]) -> Equation:
    """The equation with every intermediate of ``known`` that it reads inlined, as by inline."""
    pending = list(reversed(equation.terms))
    done: list[Term] = []
    while pending:
        term = pending.pop()
        replaced = _inline_first(term, equation.lhs, known)
        if replaced is None:
            done.append(term)
        else:
            pending.extend(reversed(replaced))
    return replace(equation, terms=tuple(done))


def factor_names(equation: Equation) -> tuple[str, ...]:
    """Names of the tensors that are factors, in order, each once."""
    return tuple(
        dict.fromkeys(
            f.tensor.name for t in equation.terms for f in t.factors if isinstance(f, Ref)
        )
    )


def keep_needed(system: System) -> System:
    """The system without the intermediates that no output needs."""
    needed = {t.name for t in system.tensors if t.role is Role.OUTPUT}
    needed_equations = []
    for equation in reversed(system.equations):
        if equation.lhs.tensor.name in needed:
            needed_equations.append(equation)
            needed.update(r.tensor.name for t in equation.terms for r in t.refs)
    names = {e.lhs.tensor.name for e in needed_equations}
    return replace(
        system,
        tensors=tuple(t for t in system.tensors if t.is_input or t.name in names),
        equations=tuple(reversed(needed_equations)),
    )


@dataclass(frozen=True, slots=True)
class _TermKind:
    """The properties on which the cost of an expanded term depends.

    Attributes:
        spaces: spaces of its summed indices, sorted by name.
        held: left indices that factors hold: positions for an equation, names within a term.
        coeff: magnitude of the coefficient.
        tensors: number of factors that are references.
        operations: flops of an element of the factors that are expressions.
    """

    factors: int = 0
    spaces: tuple[Space, ...] = ()
    held: frozenset[int | str] = frozenset()
    coeff: Fraction = Fraction(1)
    tensors: int = 0
    operations: int = 0

    @property
    def contraction(self) -> bool:
        """True for the product of two tensors."""
        return self.factors == self.tensors == 2

    def flops(self, left: Sequence[Space]) -> Poly:
        """Flops of the term in one loop that adds to its target, by the rule of steps."""
        each = 2
        if not self.contraction:
            each = max(1, self.factors) + self.operations + (self.coeff != 1)
        return Poly.of(each, (*left, *self.spaces))


def naive_cost(system: System) -> Poly:
    """Flops of the equations as flat sums of products, each in one loop, by the rule of steps.

    A product of two tensors takes 2 flops at a point, any other term its operations and one to add
    it. An operator P is applied once to all terms that have it, with one addition for each image.
    Brackets count as multiplied out, named intermediates stay. Terms of equal cost are counted
    together, so that a long product of brackets is never written out.
    """
    products: dict[str, Counter[_TermKind]] = {}
    costs: dict[str, Poly] = {}
    images: dict[str, Poly] = {}
    reads: dict[str, frozenset[str]] = {}
    known: dict[str, Equation] = {}
    for equation in system.equations:
        name = equation.lhs.tensor.name
        reads[name] = _reads(equation, known, reads)
        inlined = [n for n in factor_names(equation) if n in known]
        images[name] = sum((images[n] for n in inlined), ZERO)
        groups: dict[frozenset[Permutation], list[Term]] = {}
        for term in equation.terms:
            groups.setdefault(frozenset(term.perms), []).append(term)
        products[name], costs[name] = Counter(), ZERO
        left = [i.space for i in equation.lhs.indices]
        for perms, terms in groups.items():
            kinds = _kind_counts(replace(equation, terms=tuple(terms)), known, products)
            products[name] += kinds
            for kind, count in kinds.items():
                costs[name] += kind.flops(left) * Poly.of(count)
            images[name] += Poly.of(len(perms), left)
        if equation.anonymous and equation.lhs.tensor.role is Role.TEMP:
            known[name] = equation
    total = ZERO
    needed = {t.name for t in system.tensors if t.role is Role.OUTPUT}
    for equation in reversed(system.equations):
        if (name := equation.lhs.tensor.name) in needed:
            needed |= reads[name]
            total += costs[name] + images[name]
    return total


def _kind_counts(
    equation: Equation, known: Mapping[str, Equation], products: Mapping[str, Counter[_TermKind]]
) -> Counter[_TermKind]:
    """The number of expanded terms of each kind in an equation."""
    counts: Counter[_TermKind] = Counter()
    for term in equation.terms:
        spaces = tuple(i.space for i in term.sums if i not in equation.lhs.indices)
        kinds = Counter({_TermKind(spaces=spaces, coeff=abs(term.coeff)): 1})
        for factor in term.factors:
            inner = _inlined(factor, known)
            if inner is None:
                held = frozenset(i.name for i in factor_indices(factor))
                tensors, operations = 1, 0
                if not isinstance(factor, Ref):
                    tensors, operations = 0, _own_operations(factor, len(term.factors))
                choices = Counter({_TermKind(1, (), held, Fraction(1), tensors, operations): 1})
            else:
                assert isinstance(factor, Ref)
                names = [i.name for i in factor.indices]
                choices = Counter()
                for kind, count in products[inner.lhs.tensor.name].items():
                    held = frozenset(names[p] for p in kind.held if isinstance(p, int))
                    choices[replace(kind, held=held)] += count
            kinds = _multiplied(kinds, choices)
        left = [i.name for i in equation.lhs.indices]
        for kind, count in kinds.items():
            broadcast = sum(i.name not in kind.held for i in term.sums)  # sums over 1
            places = frozenset(p for p, name in enumerate(left) if name in kind.held)
            counts[replace(kind, factors=kind.factors + broadcast, held=places)] += count
    return counts


def _own_operations(factor: Factor, factors: int) -> int:
    """Flops of an element of an expression, less the one that ``x*(1/d) = x/d`` saves."""
    if not isinstance(factor, Apply):
        return 0
    reciprocal = isinstance(factor.expr, Quot) and factor.expr.num == Const(Fraction(1))
    return operation_count(factor.expr) - (reciprocal and factors > 1)


def _multiplied(one: Counter[_TermKind], two: Counter[_TermKind]) -> Counter[_TermKind]:
    result: Counter[_TermKind] = Counter()
    for x, many in one.items():
        for y, times in two.items():
            kind = _TermKind(
                x.factors + y.factors,
                tuple(sorted((*x.spaces, *y.spaces), key=lambda s: s.name)),
                x.held | y.held,
                x.coeff * y.coeff,
                x.tensors + y.tensors,
                x.operations + y.operations,
            )
            result[kind] += many * times
    return result


def _inlined(factor: Factor, known: Mapping[str, Equation]) -> Equation | None:
    """The equation of the bracket that a factor refers to, if it can be multiplied out."""
    inner = known.get(factor.tensor.name) if isinstance(factor, Ref) else None
    return inner if inner is not None and _can_inline(factor, inner) else None


def _reads(
    equation: Equation, known: Mapping[str, Equation], reads: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """Names of the tensors that an equation reads after its brackets are multiplied out."""
    names: set[str] = set()
    for factor in (f for t in equation.terms for f in t.factors):
        inner = _inlined(factor, known)
        if inner is None:
            names.update(r.tensor.name for r in factor_refs(factor))
        else:
            names |= reads[inner.lhs.tensor.name]
    return frozenset(names)
