"""Normalisation of a system: its equations in normal form, with proven symmetries.

Declared symmetries of outputs and intermediates are proven, those of intermediates also derived. An
equation has a symmetry if the permuted equation has the same canonical terms. The proof uses the
symmetries of the intermediates that the equation reads, so that inlining is rarely needed.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from ...errors import Diagnostic, Span, SpecError, TcgenError
from ...ir.expr import (
    COMPLEX_BELOW_ZERO,
    Call,
    Const,
    Delta,
    Expr,
    Pow,
    Prod,
    Quot,
    Sum,
    flat_product,
    functions,
    refs,
    scaled,
)
from ...ir.reduction import Reduction
from ...ir.system import Apply, Equation, Factor, System
from ...ir.tensor import Ref, Role, Space, Symmetry, Tensor, exchanged, symmetry_group
from ...ir.term_rewriting import replace_refs, resolve_deltas
from .inline import factor_names, inline, inlined_count, keep_needed
from .normal_form import NormalForms, same_spaces

# Terms of an equation up to which intermediates are inlined for a proof. The limit decides which
# systems are accepted, hence it is not a threshold.
_MAX_PROOF_TERMS = 5000

# Permutations up to which symmetries that nobody declared are added; 6! = 720.
_MOST_DERIVED = 720


def normalised(system: System, complex_values: bool = False) -> System:
    """The needed equations with resolved deltas and the proven symmetries of their tensors.

    Candidates for generators are transpositions of two axes of equal space and exchanges of two
    pairs of axes. Declared symmetries are proven first. Without complex values conj is the
    identity, so that hermitian symmetries are exchanges. The system stores the normal forms of its
    equations (:meth:`NormalForms.of`).

    Raises:
        SpecError: declared symmetries do not follow from the equations; it names each tensor and
            symmetry.
    """
    name = f"normalised, {'complex' if complex_values else 'real'}"
    return system.derived(name, lambda: _normalised(system, complex_values))


def _normalised(system: System, complex_values: bool) -> System:
    system = keep_needed(system)
    forms = NormalForms(complex_values)
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
        resolved = tuple(t for t in map(resolve_deltas, old.terms) if t is not None)
        equation = replace_refs(replace(old, terms=resolved), current)
        equation = replace(equation, lhs=Ref(bare, old.lhs.indices))
        refused += (
            _refusal(old, claim, forms)
            for claim in tensor.symmetry
            if not _follows(equation, claim, known, forms)
        )
        symmetry, volatile = tensor.symmetry, tensor.volatile
        if tensor.role is Role.TEMP:
            symmetry = _derived(equation, tensor, forms)
            volatile = any(r.tensor.volatile for t in equation.terms for r in t.refs)
        changed[tensor.name] = replace(tensor, symmetry=symmetry, volatile=volatile)
        equation = replace(equation, lhs=current(old.lhs))
        known[tensor.name] = equation
        equations.append(equation)
    if refused:
        raise SpecError(tuple(refused))
    tensors = tuple(changed.get(t.name, t) for t in system.tensors)
    return forms.store(replace(system, tensors=tensors, equations=tuple(equations)))


def output_symmetry(equation: Equation, forms: NormalForms) -> tuple[Symmetry, ...]:
    """Generators under which the left side of an equation is unchanged."""
    return _derived(equation, replace(equation.lhs.tensor, symmetry=()), forms)


def _derived(equation: Equation, tensor: Tensor, forms: NormalForms) -> tuple[Symmetry, ...]:
    """The symmetries of a left side: those that ``tensor`` declares, and those derived."""
    key = (equation.terms, equation.lhs.indices, tensor)
    found = forms.symmetries.get(key)
    if found is None:
        found = forms.symmetries[key] = _derive(equation, tensor, forms)
    return found


def _derive(equation: Equation, tensor: Tensor, forms: NormalForms) -> tuple[Symmetry, ...]:
    """Declared generators and the candidates that hold and are new; no new ones for a zero."""
    chosen = list(tensor.symmetry)
    candidates = _candidates(tensor.spaces)
    if not candidates:
        return tensor.symmetry
    vector = forms.vector(equation)
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
    candidates = [exchanged(rank, swap) for swap in swaps]
    for first, second in combinations(swaps, 2):
        if not set(first) & set(second):
            candidates.append(exchanged(rank, first, second))
    return tuple(candidates)


def _follows(
    equation: Equation, claim: Symmetry, known: dict[str, Equation], forms: NormalForms
) -> bool:
    """True if the claim holds; intermediates are inlined only as far as the proof needs it."""
    if not same_spaces(equation.lhs.tensor.spaces, claim.perm):
        return False
    while True:
        if _holds(equation, claim, forms):
            return True
        inner = [known[name] for name in factor_names(equation) if name in known]
        if not inner:
            return False
        for intermediate in inner:
            if inlined_count(equation, intermediate) > _MAX_PROOF_TERMS:
                return False
            equation = inline(equation, intermediate)


def _holds(equation: Equation, claim: Symmetry, forms: NormalForms) -> bool:
    """True if the canonical terms of the equation have the symmetry."""
    images = equation
    if claim.conj:
        # The conjugate of the conjugate writes conj(h[i,j]) of a hermitian h as h[j,i].
        images = _conjugated(equation, forms.complex_values)
        equation = _conjugated(images, forms.complex_values)
        if not forms.complex_values or equation.lhs.tensor.real:
            images = equation
    plain = forms.vector(equation).value()
    permuted = forms.vector(images).value(claim.perm)
    return permuted == {key: claim.sign * coeff for key, coeff in plain.items()}


def _conjugated(equation: Equation, complex_values: bool) -> Equation:
    """The equation whose right side is the complex conjugate."""
    terms = []
    for term in equation.terms:
        coeff, factors = term.coeff, list[Factor]()
        for factor in term.factors:
            if isinstance(factor, Delta):
                factors.append(factor)
                continue
            expr = factor.expr if isinstance(factor, Apply) else factor
            conjugate = _conjugate(expr, complex_values)
            if term.reduction is not Reduction.SUM:
                factors.append(Apply(conjugate))
                continue
            product = flat_product((conjugate,))
            for part in product.args if isinstance(product, Prod) else (product,):
                if isinstance(part, Const):
                    coeff *= part.value
                else:
                    factors.append(part if isinstance(part, Ref) else Apply(part))
        terms.append(replace(term, coeff=coeff, factors=tuple(factors)))
    return replace(equation, terms=tuple(terms))


def _conjugate(expr: Expr, complex_values: bool) -> Expr:
    """The complex conjugate of an expression; every tensor of a real program is real."""

    def conjugate(part: Expr) -> Expr:
        return _conjugate(part, complex_values)

    match expr:
        case Call("conj", arg):
            return arg
        case Ref(tensor, indices) if complex_values and not tensor.real:
            exchange = next((s for s in symmetry_group(tensor) if s.conj), None)
            if exchange is None:
                return Call("conj", expr)
            moved = Ref(tensor, tuple(indices[p] for p in exchange.perm))
            return scaled(Fraction(exchange.sign), moved)
        case Call("abs" | "real" | "imag"):
            return expr
        case Sum(args) | Prod(args):
            return type(expr)(tuple(map(conjugate, args)))
        case Quot(num, den):
            return Quot(conjugate(num), conjugate(den))
        case Pow(base, exponent):
            return Pow(conjugate(base), exponent)
        # Not sqrt and log: sqrt(-1) of a real -1 is i.
        case Call("exp" | "sin" | "cos" | "tanh" as function, arg):
            return Call(function, conjugate(arg))
        case _:
            real = not complex_values or _is_real(expr)
            return expr if real else Call("conj", expr)


def _is_real(expr: Expr) -> bool:
    """True if an expression of a complex program is real for all inputs."""
    if any(function in COMPLEX_BELOW_ZERO for function in functions(expr)):
        return False
    return all(ref.tensor.real for ref in refs(expr))


def _refusal(equation: Equation, claim: Symmetry, forms: NormalForms) -> Diagnostic:
    """The error for a declared symmetry that does not follow."""
    lhs = equation.lhs
    permuted = Ref(lhs.tensor, tuple(lhs.indices[p] for p in claim.perm))
    sign = "-" if claim.sign < 0 else ""
    right = f"conj({lhs})" if claim.conj else str(lhs)
    span = equation.span or Span(lhs.tensor.name, 1, 1)
    if not all(term.exact for term in forms.vector(equation).terms):
        return Diagnostic(
            span,
            f"the symmetry declared for {lhs.tensor.name}, {permuted} = {sign}{right}, cannot be "
            f"shown: one of the products has too many equal factors",
            advice="drop the symmetry",
        )
    missing = "conj, as in A[i,a]*conj(A[j,a])," if claim.conj else "P or S over its terms,"
    return Diagnostic(
        span,
        f"the symmetry declared for {lhs.tensor.name}, {permuted} = {sign}{right}, does not "
        f"follow from its equation",
        advice=f"write the missing {missing} or drop the symmetry",
    )
