"""Symmetries of outputs and intermediates: declared ones proven, others derived.

An equation has a symmetry where the permuted equation has the same canonical terms. Symmetries
already proven for the intermediates it reads take part, so that inlining is rarely needed.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from ...errors import Diagnostic, Span, SpecError
from ...ir.expr import Access, Delta, Equal, Expr, map_leaves
from ...ir.system import Apply, Equation, Factor, System, Term
from ...ir.tensor import Ref, Role, Space, Symmetry, Tensor, symmetry_group
from ...ir.term_rewriting import replace_refs
from ..permutation_groups import Group
from .canonical_equation import vector_of
from .inline import factor_names, inline, inlined_count
from .like_terms import same_spaces

_MOST_TERMS = 5000  # of an equation fully inlined for a proof


def derive_symmetries(system: System, complex_values: bool = False) -> System:
    """The system with the symmetries of its intermediates derived and set on their tensors.

    Transpositions of axes of equal space and exchanges of two pairs of axes are tried as
    generators. Declared symmetries are proven first.

    Raises:
        SpecError: naming each tensor and declared symmetry that cannot be derived.
    """
    refused: list[Diagnostic] = []
    changed: dict[str, Tensor] = {}

    def current(ref: Ref) -> Ref:
        return Ref(changed.get(ref.tensor.name, ref.tensor), ref.indices)

    equations: list[Equation] = []
    known: dict[str, Equation] = {}
    for old in system.equations:
        tensor = old.lhs.tensor
        # the claim itself must not take part in its proof
        bare = replace(tensor, symmetry=())
        equation = replace_refs(old, current)
        equation = replace(equation, lhs=Ref(bare, old.lhs.indices))
        refused += (
            _refusal(old, claim)
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
    """Declared generators and those of the candidates that hold and are new; none of a zero."""
    found = list(tensor.symmetry)
    candidates = _candidates(tensor.spaces)
    if not candidates:
        return tuple(found)
    vector = vector_of(equation, complex_values)
    if not vector.terms:
        return tuple(found)
    have = {s.perm for s in symmetry_group(tensor)}
    for images in candidates:
        if images in have:
            continue
        for sign in (1, -1):
            if vector.has(images, sign):
                found.append(Symmetry(images, sign))
                probe = replace(tensor, symmetry=tuple(found))
                try:
                    have = {s.perm for s in symmetry_group(probe)}
                except ValueError:  # one says that it is minus another: all of it cancels
                    return tensor.symmetry
                break
    return tuple(found)


def _candidates(spaces: tuple[Space, ...]) -> tuple[tuple[int, ...], ...]:
    """Transpositions and exchanges of two pairs of axes, among axes of equal space."""
    rank = len(spaces)
    swaps = []
    for p, q in combinations(range(rank), 2):
        if spaces[p] == spaces[q]:
            swaps.append((p, q))
    found = [_swapped(rank, (s,)) for s in swaps]
    for first, second in combinations(swaps, 2):
        if not set(first) & set(second):
            found.append(_swapped(rank, (first, second)))
    return tuple(found)


def _swapped(rank: int, swaps: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    images = list(range(rank))
    for p, q in swaps:
        images[p], images[q] = images[q], images[p]
    return tuple(images)


def _follows(
    equation: Equation, claim: Symmetry, known: dict[str, Equation], complex_values: bool
) -> bool:
    """True where the claim holds, inlining intermediates only as far as needed."""
    if not same_spaces(equation.lhs.tensor.spaces, claim.perm):
        return False
    conj = claim.conj and complex_values and not equation.lhs.tensor.real
    while True:
        if _holds(equation, claim, conj, complex_values):
            return True
        inner = [known[name] for name in factor_names(equation) if name in known]
        if not inner:
            return False
        for one in inner:
            if inlined_count(equation, one) > _MOST_TERMS:
                return False
            equation = inline(equation, one)


def _holds(equation: Equation, claim: Symmetry, conj: bool, complex_values: bool) -> bool:
    plain = vector_of(equation, complex_values).value()
    if conj:
        terms = [_conjugated(t) for t in equation.terms]
        if any(t is None for t in terms):
            return False
        equation = replace(equation, terms=tuple(t for t in terms if t is not None))
    permuted = vector_of(equation, complex_values).value(claim.perm)
    return permuted == {key: claim.sign * coeff for key, coeff in plain.items()}


def _conjugated(term: Term) -> Term | None:
    """The complex conjugate of a term, where real or hermitian tensors make it expressible."""
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
    """True where every tensor of an expression is real."""
    real = [True]

    def leaf(node: Ref | Access | Delta | Equal) -> Expr:
        if isinstance(node, Ref) and not node.tensor.real:
            real[0] = False
        return node

    map_leaves(expr, leaf)
    return real[0]


def _refusal(equation: Equation, claim: Symmetry) -> Diagnostic:
    lhs = equation.lhs
    permuted = Ref(lhs.tensor, tuple(lhs.indices[p] for p in claim.perm))
    sign = "-" if claim.sign < 0 else ""
    right = f"conj({lhs})" if claim.conj else str(lhs)
    return Diagnostic(
        equation.span or Span(lhs.tensor.name, 1, 1),
        f"the symmetry declared for {lhs.tensor.name}, {permuted} = {sign}{right}, does not "
        f"follow from its equation",
        advice="write the missing P or S over its terms, or drop the symmetry",
    )


def generators(tensor: Tensor, group: Group) -> tuple[Symmetry, ...]:
    """A small set of generators of a symmetry group."""
    chosen: list[Symmetry] = []
    have: set[tuple[int, ...]] = {tuple(range(tensor.rank))}
    for perm, sign in group:
        if perm not in have:
            chosen.append(Symmetry(perm, sign))
            have = {s.perm for s in symmetry_group(replace(tensor, symmetry=tuple(chosen)))}
    return tuple(chosen)
