"""Spin integration: equations over spin orbitals become equations over blocks of given spins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np

from ...errors import ArgumentError, Diagnostic, Span, SpecError
from ...ir.expr import (
    Access,
    Call,
    Calls,
    Const,
    Delta,
    Equal,
    Expr,
    Pow,
    Prod,
    Quot,
    Sum,
    expr_indices,
    format_expr,
    map_leaves,
    nodes,
    number_of,
)
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
    with_tensors,
)
from ...ir.tensor import Index, Ref, Role, Tensor
from ...ir.term_rewriting import replace_refs
from ..equations.inline import keep_needed
from ..equations.normal_form import NormalForms
from ..equations.permutations import fold_permutations
from ..equations.proven_symmetry import normalised, output_symmetry
from ..equations.volatile import check_system
from .blocks import Block, Blocks
from .invariance import contradiction, form_of, form_of_input
from .labels import (
    SPINS,
    UNLABELLED,
    Pattern,
    conserves_spin,
    electrons,
    has_labels,
    input_conserves,
    input_flow,
    patterns,
)

FORMS = ("closed-shell", "unrestricted", "triplet")

# Permuted terms up to which those of one equation are merged; it only makes them shorter to read.
_MOST_IMAGES = 20_000

_ZERO, _ONE = Const(Fraction(0)), Const(Fraction(1))
_AT_ZERO = dict.fromkeys(("sqrt", "abs", "sin", "tanh", "conj", "real", "imag"), _ZERO)
_AT_ZERO |= dict.fromkeys(("tan", "sinh", "arcsin", "arctan", "floor", "sign", "rint"), _ZERO)
_AT_ZERO |= dict.fromkeys(("log1p", "expm1", "cbrt"), _ZERO)
_AT_ZERO |= dict.fromkeys(("exp", "exp2", "cos", "cosh"), _ONE)

_Index: TypeAlias = Callable[[Index, Mapping[Index, str]], Index]
"""Gives an index the space of its spin."""


@dataclass(frozen=True, slots=True)
class SpinIntegration:
    """The system ``source`` over spin orbitals, and ``system``, its equations over blocks.

    The outputs of ``source`` have their derived symmetries. ``form`` is one of ``FORMS``.
    ``blocks`` has the blocks of all inputs and outputs of ``system``, in their order; ``table`` has
    all blocks.
    """

    source: System
    form: str
    system: System
    blocks: tuple[Block, ...]
    table: Blocks


def spin_integrated(system: System, form: str) -> System:
    """The equations of a closed shell, or of alpha and beta orbitals, from those of spin orbitals.

    Spaces that are declared occupied, virtual or general have spins. Inputs conserve the spin from
    the first half of their axes over orbitals to the second, or as ``conserves`` declares; those
    from eri(physicist) or eri(chemist) conserve the spin of each electron. What intermediates and
    outputs conserve follows from the equations.

    Args:
        system: equations over spin orbitals.
        form: "closed-shell", "unrestricted" or "triplet". A closed shell has as many alpha as beta
            orbitals, all its tensors are singlets, and its equations have only one array for most
            tensors. Its spins are (alpha, beta) for doubles and (alpha, alpha, beta) for triples.
            Unrestricted equations have a block for each combination of spins that symmetry does not
            relate to another; beta is in upper case. In those of triplets, the volatile inputs are
            vectors of an eigenvalue problem of a closed shell, with Ms = 0, which change sign where
            all spins are flipped. Doubles have one more array, ``r2_aaaa`` of (alpha, alpha).

    Returns:
        A system that is worth the same at the same orbitals. Its inputs are blocks of those of
        ``system``: see :func:`spin_blocks`. Blocks of <pq||rs> are in the order of <pq|rs>.

    Raises:
        ArgumentError: ``form`` is unknown, no space has spins, or an input cannot conserve them;
            no input of triplets is volatile.
        SpecError: the equations break the conservation that an input or output is declared to have,
            a declared symmetry does not follow, or equations of triplets are not linear.

    Example:
        >>> from tcgen import read_spec
        >>> system = read_spec('''
        ... space o occupied
        ... space v virtual
        ... index i j : o
        ... index a b : v
        ... input v_oovv[o,o,v,v] antisymmetric (0,1) (2,3)
        ... input t2[o,o,v,v] antisymmetric (0,1) (2,3)
        ... output e
        ... e = 1/4*v_oovv[i,j,a,b]*t2[i,j,a,b]''')
        >>> print(spin_integrated(system, "closed-shell").pretty().strip())
        e = sum(i,j,a,b) 2*v_oovv[i,j,a,b]*t2[i,j,a,b]
          + sum(i,j,a,b) -v_oovv[i,j,a,b]*t2[j,i,a,b]
    """
    return integrate(system, form).system


@lru_cache(maxsize=8)
def integrate(system: System, form: str) -> SpinIntegration:
    """Like :func:`spin_integrated`, with the blocks that the new inputs and outputs hold."""
    check_system(system)
    if form not in FORMS:
        raise ArgumentError(f"spin {form!r} is not known: use {' or '.join(map(repr, FORMS))}")
    if not any(has_labels(space) for space in system.spaces):
        names = ", ".join(space.name for space in system.spaces) or "none"
        raise ArgumentError(
            f"{system.name} has no space over spin orbitals (spaces: {names}): declare the kind "
            f"of those that are, such as: space o occupied"
        )
    return _Integration(_with_symmetries(system), form).result()


def _with_symmetries(system: System) -> System:
    """The system with the symmetries of intermediates and outputs, which decide on blocks."""
    known = normalised(system, complex_values=True)
    forms = NormalForms.of(known)
    changed: dict[Tensor, Tensor] = {}
    for equation in known.equations:
        tensor = equation.lhs.tensor
        if tensor.role is Role.OUTPUT and not tensor.accumulate:
            derived = output_symmetry(equation, forms)
            changed[tensor] = replace(tensor, symmetry=(*tensor.symmetry, *derived))
    return with_tensors(known, changed)


class _Integration:
    """Blocks of a system, found in the order of its equations."""

    def __init__(self, system: System, form: str) -> None:
        self._system, self._form = system, form
        self._blocks = Blocks(system, closed=form != FORMS[1])
        self._wrong: list[Diagnostic] = []
        self._forms = NormalForms(complex_values=True)

    def result(self) -> SpinIntegration:
        system, blocks = self._system, self._blocks
        for tensor in system.inputs:
            blocks.forms[tensor] = form_of_input(tensor)
            _check_symmetry(tensor)
        if self._form == FORMS[2]:
            blocks.odd = {t.name for t in system.inputs if t.volatile}
            if not blocks.odd:
                raise ArgumentError(
                    f"{system.name} has no vectors, which could be triplets: declare those of its "
                    f"inputs volatile"
                )
        equations: list[Equation] = []
        for equation in system.equations:
            blocks.forms[equation.lhs.tensor] = form_of(equation, blocks.forms)
            for term in equation.terms:
                self._check_term(equation, term)
            self._find_parity(equation)
            equations += self._block_equations(equation)
        if self._wrong:
            raise SpecError(tuple(self._wrong))
        place = {tensor.name: n for n, tensor in enumerate(system.tensors)}
        equations = [
            replace_refs(e, lambda ref: Ref(_bare(ref.tensor), ref.indices)) for e in equations
        ]
        made = sorted(
            (replace(b, tensor=_bare(b.tensor)) for b in blocks.known.values() if b is not None),
            key=lambda b: (place[b.source.name], b.pattern),
        )
        inputs = [b.tensor for b in made if b.source.is_input]
        whole = System(
            f"{system.name.removesuffix('_spin_orbital')}_{self._form.replace('-', '_')}",
            blocks.spaces.spaces,
            (*inputs, *(e.lhs.tensor for e in equations)),
            tuple(equations),
            system.warnings,
        )
        needed = keep_needed(whole)
        read = {r.tensor for e in needed.equations for t in e.terms for r in t.refs}
        tensors = tuple(t for t in needed.tensors if not t.is_input or t in read)
        final = replace(needed, tensors=tensors)
        outer = {*final.inputs, *final.outputs}
        kept = tuple(b for b in made if b.tensor in outer)
        return SpinIntegration(system, self._form, final, kept, blocks)

    def _block_equations(self, equation: Equation) -> list[Equation]:
        """Equations of the blocks that are not zero; of an output at least one."""
        tensor = equation.lhs.tensor
        found: list[tuple[Pattern, tuple[Term, ...]]] = []
        canonical = list(self._blocks.canonical(tensor))
        for pattern in canonical:
            terms = tuple(
                t for term in equation.terms for t in self._terms(term, equation, pattern)
            )
            clean = self._equation(equation, pattern, terms)
            if clean.terms:
                found.append((pattern, clean.terms))
                self._check_block(equation, pattern)
        if not found and tensor.role is Role.OUTPUT and canonical:
            found.append((self._first_conserving(tensor, canonical), ()))
        made = []
        for pattern, terms in found:
            block = self._blocks.enter(tensor, pattern)
            left = self._left(equation, pattern)
            made.append(replace(equation, lhs=Ref(block.tensor, left), terms=terms))
        return made

    def _equation(self, equation: Equation, pattern: Pattern, terms: tuple[Term, ...]) -> Equation:
        """The equation of a block whose array is not known yet.

        Like terms are merged, and those that are permutations of each other within the block.
        """
        left = self._left(equation, pattern)
        lhs = equation.lhs.tensor
        probe = replace(lhs, spaces=tuple(i.space for i in left), symmetry=())
        clean = self._forms.clean(Equation(Ref(probe, left), terms))
        plain = replace(clean, terms=tuple(t for t in clean.terms if not t.perms))
        symmetry = output_symmetry(plain, self._forms)
        folded = fold_permutations(plain, symmetry, self._forms, _MOST_IMAGES)
        return replace(clean, terms=(*folded.terms, *(t for t in clean.terms if t.perms)))

    def _left(self, equation: Equation, pattern: Pattern) -> tuple[Index, ...]:
        return tuple(
            self._blocks.spaces.index(i, x)
            for i, x in zip(equation.lhs.indices, pattern, strict=True)
        )

    def _first_conserving(self, tensor: Tensor, canonical: Sequence[Pattern]) -> Pattern:
        """The block that stands for an output that is zero."""
        flow = self._blocks.forms[tensor].flow
        if flow is None or self._blocks.forms[tensor].constant:
            return canonical[0]
        return next((p for p in canonical if conserves_spin(p, flow)), canonical[0])

    def _terms(self, term: Term, equation: Equation, pattern: Pattern) -> Iterator[Term]:
        """The terms that a term gives in the equation of a block."""
        parity = self._blocks.parity(equation.lhs.tensor)
        for spins, first, perms in self._arrangements(term, pattern, parity):
            left = equation.lhs.indices
            names = {left[k]: left[image] for k, image in enumerate(first.images)}
            labels = dict(zip(left, spins, strict=True))
            for number, factors, summed in self._assigned(term, labels, names):
                yield replace(
                    term,
                    coeff=term.coeff * first.sign * number,
                    factors=factors,
                    sums=summed,
                    perms=perms if len(perms) > 1 else (),
                )

    def _find_parity(self, equation: Equation) -> None:
        """Note that the left side is odd; a vector must be a factor of all terms, or of none."""
        odd = self._blocks.odd
        counts = {
            sum(
                2 if isinstance(f, Apply) else 1  # a function of a vector is not linear
                for f in term.factors
                if any(r.tensor.name in odd for r in factor_refs(f))
            )
            for term in equation.terms
        }
        if counts == {1}:
            odd.add(equation.lhs.tensor.name)
        elif counts - {0}:
            span = equation.span or Span(self._system.name, 1, 1)
            message = f"{equation.lhs} is not linear in the vectors of triplets"
            self._wrong.append(Diagnostic(span, message, advice="declare other inputs constant"))

    def _arrangements(
        self, term: Term, pattern: Pattern, parity: int
    ) -> Iterator[tuple[Pattern, Permutation, tuple[Permutation, ...]]]:
        """Spins of the left indices of a term, one of its permutations to them, and the others.

        The others are permutations within the block. In a closed shell, those that flip all spins
        of the block are among them.
        """
        every = term.perms or (Permutation(1, tuple(range(len(pattern)))),)
        groups: dict[Pattern, list[Permutation]] = {}
        for perm in every:
            spins = "".join(pattern[image] for image in perm.images)
            flipped = spins.translate(str.maketrans("ab", "ba"))
            turned = self._blocks.closed and flipped in groups
            one = replace(perm, sign=perm.sign * parity) if turned else perm
            groups.setdefault(flipped if turned else spins, []).append(one)
        for spins, perms in groups.items():
            first = perms[0]
            within = []
            for perm in perms:
                images = list(range(len(pattern)))
                for k, start in enumerate(first.images):
                    images[start] = perm.images[k]
                within.append(Permutation(perm.sign * first.sign, tuple(images)))
            yield spins, first, tuple(within)

    def _assigned(
        self, term: Term, labels: dict[Index, str], names: Mapping[Index, Index]
    ) -> Iterator[tuple[Fraction, tuple[Factor, ...], tuple[Index, ...]]]:
        """Number, factors and summed indices for all spins of the summed indices."""
        order = sorted(range(len(term.factors)), key=lambda n: isinstance(term.factors[n], Apply))

        def index(old: Index, spins: Mapping[Index, str]) -> Index:
            return self._blocks.spaces.index(names.get(old, old), spins[old])

        def walk(
            place: int, spins: dict[Index, str], chosen: dict[int, list[tuple[Fraction, Factor]]]
        ) -> Iterator[tuple[Fraction, tuple[Factor, ...], tuple[Index, ...]]]:
            if place == len(order):
                summed = tuple(index(i, spins) for i in term.sums)
                for combination in product(*(chosen[n] for n in range(len(term.factors)))):
                    number = Fraction(1)
                    for factor_number, _ in combination:
                        number *= factor_number
                    factors = tuple(f for _, f in combination)
                    # A function of a block that is zero is a number: its sums are extents.
                    held = {i for f in factors for i in factor_indices(f)}
                    extents = tuple(Delta(i, i) for i in summed if i not in held)
                    yield number, factors + extents, summed
                return
            n = order[place]
            factor = term.factors[n]
            new = [i for i in factor_indices(factor) if i not in spins]
            choices = (SPINS if has_labels(i.space) else UNLABELLED for i in new)
            for added in product(*choices):
                known = spins | dict(zip(new, added, strict=True))
                alternatives = self._factor(factor, known, index)
                if alternatives:
                    yield from walk(place + 1, known, chosen | {n: alternatives})

        yield from walk(0, labels, {})

    def _factor(
        self, factor: Factor, spins: dict[Index, str], index: _Index
    ) -> list[tuple[Fraction, Factor]]:
        """The factor at given spins, as a sum of numbers times factors; [] if it is zero."""
        match factor:
            case Ref():
                return [(number, ref) for number, ref in self._refs(factor, spins, index)]
            case Delta(left, right):
                if spins[left] != spins[right]:
                    return []
                return [(Fraction(1), Delta(index(left, spins), index(right, spins)))]
            case Apply(expr):
                changed = self._at_spins(expr, spins, index)
                return [] if is_zero(changed) else [(Fraction(1), Apply(changed))]

    def _at_spins(self, expr: Expr, spins: dict[Index, str], index: _Index) -> Expr:
        return without_zeros(map_leaves(expr, lambda x: self._leaf(x, spins, index)))

    def _refs(
        self, ref: Ref, spins: dict[Index, str], index: _Index
    ) -> Iterator[tuple[Fraction, Ref]]:
        pattern = "".join(spins[i] for i in ref.indices)
        for part in self._blocks.parts(ref.tensor, pattern):
            indices = tuple(index(ref.indices[k], spins) for k in part.axes)
            yield part.number, Ref(part.tensor, indices)

    def _leaf(
        self, leaf: Ref | Access | Delta | Equal, spins: dict[Index, str], index: _Index
    ) -> Expr:
        match leaf:
            case Ref():
                parts = [
                    ref if number == 1 else Prod((Const(number), ref))
                    for number, ref in self._refs(leaf, spins, index)
                ]
                if not parts:
                    return Const(Fraction(0))
                return parts[0] if len(parts) == 1 else Sum(tuple(parts))
            case Delta(left, right):
                if spins[left] != spins[right]:
                    return Const(Fraction(0))
                return Delta(index(left, spins), index(right, spins))
            case _:
                return leaf

    def _check_term(self, equation: Equation, term: Term) -> None:
        """Note a term whose factors contradict each other in what they conserve."""
        if term.reduction is not Reduction.SUM:
            span = term.span or equation.span or Span(self._system.name, 1, 1)
            message = f"{term.reduction.value} over spin orbitals has no form over spatial ones"
            advice = "leave it out, or compute it from the results"
            self._wrong.append(Diagnostic(span, message, advice=advice))
            return
        self._check_finite(equation, term)
        found = contradiction(term, self._blocks.forms)
        if found is None:
            return
        ref, index = found
        span = term.span or equation.span or Span(self._system.name, 1, 1)
        self._wrong.append(
            Diagnostic(
                span,
                f"{ref} conserves spin from {_sides(ref)}, which contradicts the other factors "
                f"at index {index}",
                advice=f"if the axes of {ref.tensor.name} are in another order, such as that of "
                f"(pq|rs), declare it: conserves (0,2)->(1,3)",
            )
        )

    def _check_finite(self, equation: Equation, term: Term) -> None:
        """Note a function that is infinite, or no number, where a block is zero.

        Another factor may be zero there, as in ``t[i,a]/t[i,a]``: the product is not a number.
        """
        span = term.span or equation.span or Span(self._system.name, 1, 1)

        def index(old: Index, spins: Mapping[Index, str]) -> Index:
            return self._blocks.spaces.index(old, spins[old])

        for expr in (factor.expr for factor in term.factors if isinstance(factor, Apply)):
            indices = expr_indices(expr)
            for pattern in patterns(tuple(i.space for i in indices)):
                found = self._at_spins(expr, dict(zip(indices, pattern, strict=True)), index)
                numbers = (n for n in map(number_of, nodes(found)) if n is not None)
                if np.all(np.isfinite(list(numbers))):
                    continue
                self._wrong.append(
                    Diagnostic(
                        span,
                        f"a factor of {equation.lhs} is {format_expr(found)} where spins differ, "
                        f"which is not finite",
                        advice="leave out the elements that spin makes zero, for example by adding "
                        "a number to the argument",
                    )
                )
                break

    def _check_block(self, equation: Equation, pattern: Pattern) -> None:
        """Note a block that is not zero, though the output is declared to conserve spin."""
        tensor = equation.lhs.tensor
        if tensor.conserves is None or conserves_spin(pattern, input_flow(tensor)):
            return
        span = equation.span or Span(self._system.name, 1, 1)
        spins = ", ".join(
            f"{i} {_WORDS[x]}"
            for i, x in zip(equation.lhs.indices, pattern, strict=True)
            if x in _WORDS
        )
        self._wrong.append(
            Diagnostic(
                span,
                f"{equation.lhs} is declared to conserve spin from {_sides(equation.lhs)}, but "
                f"its equation is not zero with {spins}",
                advice=f"correct conserves of {tensor.name} or the equation, or leave conserves "
                f"out: what an output conserves is found",
            )
        )


def _bare(tensor: Tensor) -> Tensor:
    """The tensor without the symmetry that follows from its equation, which later passes find."""
    declared = tensor.is_input or tensor.storage.packed
    return tensor if declared else replace(tensor, symmetry=())


_WORDS = {"a": "alpha", "b": "beta"}


def _sides(ref: Ref) -> str:
    flow = input_flow(ref.tensor)
    sides = (
        ",".join(i.name for i, f in zip(ref.indices, flow, strict=True) if f == direction)
        for direction in (1, -1)
    )
    return " to ".join(sides)


def _check_symmetry(tensor: Tensor) -> None:
    """Refuse an input whose symmetries exchange what enters with part of what leaves."""
    flow = input_flow(tensor)
    for symmetry in tensor.symmetry:
        for pattern in patterns(tensor.spaces):
            image = "".join(pattern[k] for k in symmetry.perm)
            if input_conserves(tensor, pattern) == input_conserves(tensor, image):
                continue
            axes = ",".join(space.name for space in tensor.spaces)
            text = f"{tensor.name}[{axes}] has the symmetry of axes in the order {symmetry.perm}"
            if tensor.quantity is not None and electrons(tensor):
                one, other = electrons(tensor)
                raise ArgumentError(
                    f"{text}, but it is {tensor.quantity.value}, in which axes {one} are those of "
                    f"one electron and {other} those of another: correct the symmetry, or write "
                    f"from eri(antisymmetric) for <pq||rs>"
                )
            raise ArgumentError(
                f"{text}, which changes what it conserves, "
                f"{_positions(flow, 1)}->{_positions(flow, -1)}: if its axes are in another "
                f"order, such as that of (pq|rs), declare conserves (0,2)->(1,3)"
            )


def _positions(flow: tuple[int, ...], direction: int) -> str:
    return f"({','.join(str(k) for k, f in enumerate(flow) if f == direction)})"


def without_zeros(expr: Expr) -> Expr:
    """The expression without the parts that a zero in it makes zero; a division by zero stays.

    Example:
        >>> from tcgen.ir.tensor import Ref, Role, Tensor
        >>> x = Ref(Tensor("x", (), Role.INPUT))
        >>> without_zeros(Sum((x, Prod((x, _ZERO))))) == x
        True
    """
    match expr:
        case Sum(args):
            kept = tuple(a for a in map(without_zeros, args) if a != _ZERO)
            if not kept:
                return _ZERO
            numbers = [a.value for a in kept if isinstance(a, Const)]
            if len(numbers) == len(kept):
                return Const(sum(numbers, Fraction(0)))
            return kept[0] if len(kept) == 1 else Sum(kept)
        case Prod(args):
            kept = tuple(map(without_zeros, args))
            numbers = [a.value for a in kept if isinstance(a, Const)]
            if len(numbers) == len(kept):
                return Const(prod(numbers, start=Fraction(1)))
            return _ZERO if _ZERO in kept else Prod(kept)
        case Quot(num, den):
            above, below = without_zeros(num), without_zeros(den)
            return _ZERO if above == _ZERO and below != _ZERO else Quot(above, below)
        case Pow(base, exponent):
            inner = without_zeros(base)
            return _ZERO if inner == _ZERO and exponent > 0 else Pow(inner, exponent)
        case Calls(function, args):
            return Calls(function, tuple(map(without_zeros, args)))
        case Call(function, arg):
            inner = without_zeros(arg)
            if inner == _ZERO and function in _AT_ZERO:
                return _AT_ZERO[function]
            return Call(function, inner)
        case _:
            return expr


def is_zero(expr: Expr) -> bool:
    """True for the number 0."""
    return expr == _ZERO
