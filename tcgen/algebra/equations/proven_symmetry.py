"""Symmetries of outputs and intermediates: declared ones are proven, others are derived.

An equation has a symmetry where the permuted equation has the same canonical terms. The proof uses
the symmetries of the intermediates that the equation reads, so that inlining is rarely needed.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from ...errors import Diagnostic, Span, SpecError, TcgenError
from ...ir.expr import COMPLEX_BELOW_ZERO, Delta, Expr, functions, refs
from ...ir.system import Apply, Equation, Factor, System, Term
from ...ir.tensor import Ref, Role, Space, Symmetry, Tensor, symmetry_group
from ...ir.term_rewriting import replace_refs
from ..permutation_groups import Group
from .canonical_equation import vector_of
from .inline import factor_names, inline, inlined_count
from .like_terms import same_spaces

# Terms of an equation up to which intermediates are inlined for a proof. The limit decides which
# systems are accepted, hence it is not a threshold.
_MAX_PROOF_TERMS = 5000

# Permutations up to which symmetries that nobody declared are added; 6! = 720.
_MOST_DERIVED = 720


def derive_symmetries(system: System, complex_values: bool = False) -> System:
    """The system with the symmetries of its intermediates derived and set on their tensors.

    Candidates for generators are transpositions of two axes of equal space and exchanges of two
    pairs of axes. Declared symmetries are proven first.

    Raises:
        SpecError: declared symmetries do not follow from the equations; it names each tensor and
            symmetry.
    """
    refused: list[Diagnostic] = []
    changed: dict[str, Tensor] = {}

    def current(ref: Ref) -> Ref:
        return Ref(changed.get(ref.tensor.name, ref.tensor), ref.indices)

    equations: list[Equation] = []
    known: dict[str, Equation] = {}
    for old in system.equations:
        tensor = old.lhs.tensor
        # The declared symmetry must not take part in its own proof.
        bare = replace(tensor, symmetry=())
        equation = replace_refs(old, current)
        equation = replace(equation, lhs=Ref(bare, old.lhs.indices))
        refused += (
            _refusal(old, claim, complex_values)
            for claim in tensor.symmetry
            if not _follows(equation, claim, known, complex_values)
        )
        symmetry = tensor.symmetry
        if tensor.role is Role.TEMP:
            symmetry = _derived(equation, tensor, complex_values)
        volatile = tensor.volatile
        if tensor.role is Role.TEMP:
            volatile = any(r.tensor.volatile for t in equation.terms for r in t.refs)
        changed[tensor.name] = replace(tensor, symmetry=symmetry, volatile=volatile)
        equation = replace(equation, lhs=current(old.lhs))
        known[tensor.name] = equation
        equations.append(equation)
    if refused:
        raise SpecError(tuple(refused))
    tensors = tuple(changed.get(t.name, t) for t in system.tensors)
    return replace(system, tensors=tensors, equations=tuple(equations))


def output_symmetry(equation: Equation, complex_values: bool) -> tuple[Symmetry, ...]:
    """Generators under which the left side of an equation is unchanged."""
    bare = replace(equation.lhs.tensor, symmetry=())
    return _derived(replace(equation, lhs=Ref(bare, equation.lhs.indices)), bare, complex_values)


def _derived(equation: Equation, tensor: Tensor, complex_values: bool) -> tuple[Symmetry, ...]:
    """Declared generators and the candidates that hold and are new; no new ones for a zero."""
    chosen = list(tensor.symmetry)
    candidates = _candidates(tensor.spaces)
    if not candidates:
        return tensor.symmetry
    vector = vector_of(equation, complex_values)
    if not vector.terms:
        return tensor.symmetry
    known = {s.perm for s in symmetry_group(tensor)}
    if len(known) > _MOST_DERIVED:
        return tensor.symmetry
    for images in candidates:
        if images in known:
            continue
        for sign in (1, -1):
            if vector.has(images, sign):
                chosen.append(Symmetry(images, sign))
                probe = replace(tensor, symmetry=tuple(chosen))
                try:
                    known = {s.perm for s in symmetry_group(probe, _MOST_DERIVED)}
                except ValueError:  # an element is minus itself, so the equation is zero
                    return tensor.symmetry
                except TcgenError:  # passes would list too many images of each term
                    return tuple(chosen[:-1])
                break
    return tuple(chosen)


def _candidates(spaces: tuple[Space, ...]) -> tuple[tuple[int, ...], ...]:
    """Transpositions and exchanges of two pairs of axes, among axes of equal space."""
    rank = len(spaces)
    swaps = []
    for p, q in combinations(range(rank), 2):
        if spaces[p] == spaces[q]:
            swaps.append((p, q))
    candidates = [_swapped(rank, (s,)) for s in swaps]
    for first, second in combinations(swaps, 2):
        if not set(first) & set(second):
            candidates.append(_swapped(rank, (first, second)))
    return tuple(candidates)


def _swapped(rank: int, swaps: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """The permutation of ``rank`` axes that exchanges each pair."""
    images = list(range(rank))
    for p, q in swaps:
        images[p], images[q] = images[q], images[p]
    return tuple(images)


def _follows(
    equation: Equation, claim: Symmetry, known: dict[str, Equation], complex_values: bool
) -> bool:
    """True where the claim holds; intermediates are inlined only as far as the proof needs it."""
    if not same_spaces(equation.lhs.tensor.spaces, claim.perm):
        return False
    conj = claim.conj and complex_values and not equation.lhs.tensor.real
    while True:
        if _holds(equation, claim, conj, complex_values):
            return True
        inner = [known[name] for name in factor_names(equation) if name in known]
        if not inner:
            return False
        for intermediate in inner:
            if inlined_count(equation, intermediate) > _MAX_PROOF_TERMS:
                return False
            equation = inline(equation, intermediate)


def _holds(equation: Equation, claim: Symmetry, conj: bool, complex_values: bool) -> bool:
    """True where the canonical terms of the equation have the symmetry."""
    plain = vector_of(equation, complex_values).value()
    if conj:
        terms = [_conjugated(t) for t in equation.terms]
        if any(t is None for t in terms):
            return False
        equation = replace(equation, terms=tuple(t for t in terms if t is not None))
    permuted = vector_of(equation, complex_values).value(claim.perm)
    return permuted == {key: claim.sign * coeff for key, coeff in plain.items()}


def _conjugated(term: Term) -> Term | None:
    """The complex conjugate of a term; None unless all its tensors are real or hermitian."""
    factors: list[Factor] = []
    coeff = term.coeff
    for factor in term.factors:
        match factor:
            case Ref(tensor, indices):
                if tensor.real:
                    factors.append(factor)
                    continue
                exchange = next((s for s in symmetry_group(tensor) if s.conj), None)
                if exchange is None:
                    return None
                coeff *= exchange.sign
                factors.append(Ref(tensor, tuple(indices[p] for p in exchange.perm)))
            case Delta():
                factors.append(factor)
            case Apply(expr):
                if not _is_real(expr):
                    return None
                factors.append(factor)
    return replace(term, coeff=coeff, factors=tuple(factors))


def _is_real(expr: Expr) -> bool:
    """True where an expression is real for sure, in a complex program."""
    if any(function in COMPLEX_BELOW_ZERO for function in functions(expr)):
        return False
    return all(ref.tensor.real for ref in refs(expr))


def _refusal(equation: Equation, claim: Symmetry, complex_values: bool) -> Diagnostic:
    """The error for a declared symmetry that does not follow."""
    lhs = equation.lhs
    permuted = Ref(lhs.tensor, tuple(lhs.indices[p] for p in claim.perm))
    sign = "-" if claim.sign < 0 else ""
    right = f"conj({lhs})" if claim.conj else str(lhs)
    span = equation.span or Span(lhs.tensor.name, 1, 1)
    if not all(term.exact for term in vector_of(equation, complex_values).terms):
        return Diagnostic(
            span,
            f"the symmetry declared for {lhs.tensor.name}, {permuted} = {sign}{right}, cannot be "
            f"shown: one of the products has too many equal factors",
            advice="drop the symmetry",
        )
    return Diagnostic(
        span,
        f"the symmetry declared for {lhs.tensor.name}, {permuted} = {sign}{right}, does not "
        f"follow from its equation",
        advice="write the missing P or S over its terms, or drop the symmetry",
    )


def generators(tensor: Tensor, group: Group) -> tuple[Symmetry, ...]:
    """A small set of generators of a symmetry group."""
    chosen: list[Symmetry] = []
    generated: set[tuple[int, ...]] = {tuple(range(tensor.rank))}
    for perm, sign in group:
        if perm not in generated:
            chosen.append(Symmetry(perm, sign))
            probe = replace(tensor, symmetry=tuple(chosen))
            generated = {s.perm for s in symmetry_group(probe)}
    return tuple(chosen)
