"""Level 1: a system of equations, flat sums of products, as the user meant them.

Front ends make it; canonical form, expansion and factoring read it. Brackets and P/S over a sum
appear as equations of anonymous intermediates (``Equation.anonymous``). Nothing here says in
which order anything is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from ..errors import ExtentError, Span, VerifyError
from .expr import Delta, Expr, expr_indices, format_expr, leaves, refs
from .tensor import Index, Ref, Role, Space, Tensor, distinct


@dataclass(frozen=True, slots=True)
class Apply:
    """A factor that is evaluated element by element and never expanded (a denominator, exp(..))."""

    expr: Expr


Factor: TypeAlias = Ref | Delta | Apply


@dataclass(frozen=True, slots=True)
class Permutation:
    """Adds ``sign`` times the term with left index k renamed to left index ``images[k]``."""

    sign: int
    images: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """``sum over perms of sign * coeff * sum over sums of the product of factors``.

    Attributes:
        coeff: exact number.
        factors: the product; () is the number 1. Left indices that no factor holds broadcast.
        sums: summed indices, distinct, none of them on the left.
        perms: () for the identity alone, else all signed permutations, the identity included.
        span: where it stands in the user's text, or None. Not part of equality of meaning.
    """

    coeff: Fraction
    factors: tuple[Factor, ...]
    sums: tuple[Index, ...] = ()
    perms: tuple[Permutation, ...] = ()
    span: Span | None = None

    @property
    def refs(self) -> tuple[Ref, ...]:
        """All references, those inside Apply included."""
        return tuple(r for f in self.factors for r in factor_refs(f))

    @property
    def indices(self) -> tuple[Index, ...]:
        """Indices of the factors, each once."""
        return distinct(tuple(i for f in self.factors for i in factor_indices(f)))


@dataclass(frozen=True, slots=True)
class Equation:
    """``lhs = sum of terms``; the left indices are distinct.

    ``anonymous`` marks a bracket or a P/S over a sum, which canonical form may inline.
    """

    lhs: Ref
    terms: tuple[Term, ...]
    span: Span | None = None
    anonymous: bool = False

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the tensors that the right side reads, each once, in order."""
        return tuple(dict.fromkeys(r.tensor.name for t in self.terms for r in t.refs))


@dataclass(frozen=True, slots=True)
class System:
    """Equations in an order in which every name is defined before it is read.

    Attributes:
        name: of the spec, a legal identifier.
        spaces: all spaces, parts before the spaces that join them.
        tensors: all tensors, inputs first in the order declared.
        equations: one for each intermediate and output.
        warnings: messages for the user (a name that no output needs, for example).
    """

    name: str
    spaces: tuple[Space, ...]
    tensors: tuple[Tensor, ...]
    equations: tuple[Equation, ...]
    warnings: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Inputs in declared order."""
        return tuple(t for t in self.tensors if t.is_input)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Outputs in declared order."""
        return tuple(t for t in self.tensors if t.role is Role.OUTPUT)

    def equation(self, tensor: Tensor) -> Equation:
        """The equation that defines ``tensor``."""
        return next(e for e in self.equations if e.lhs.tensor == tensor)

    def verify(self) -> None:
        """Check the rules of this level.

        Raises:
            VerifyError: naming the equation and the rule that it breaks.
        """
        names = [t.name for t in self.tensors]
        if len(set(names)) != len(names):
            raise VerifyError(f"system {self.name}: two tensors share a name: {sorted(names)}")
        known, defined = set(self.tensors), {t for t in self.tensors if t.is_input}
        for equation in self.equations:
            try:
                _verify_equation(equation, known, defined)
            except VerifyError as error:
                raise VerifyError(
                    f"system {self.name}: {error}\nwhile checking: {pretty_equation(equation)}"
                ) from None
            defined.add(equation.lhs.tensor)
        missing = [t.name for t in self.tensors if t not in defined]
        if missing:
            raise VerifyError(f"system {self.name}: no equation defines {', '.join(missing)}")

    def pretty(self) -> str:
        """The equations in the .spec notation, one line a term group."""
        return "\n".join(pretty_equation(e) for e in self.equations) + "\n"


def factor_refs(factor: Factor) -> tuple[Ref, ...]:
    """References of a factor, those inside Apply included."""
    match factor:
        case Ref():
            return (factor,)
        case Delta():
            return ()
        case Apply(expr):
            return refs(expr)


def factor_indices(factor: Factor) -> tuple[Index, ...]:
    """Indices of a factor, each once."""
    match factor:
        case Ref(_, indices):
            return distinct(indices)
        case Delta(left, right):
            return distinct((left, right))
        case Apply(expr):
            return expr_indices(expr)


def fits_axis(index: Index, space: Space) -> bool:
    """True where an index may stand on an axis: the same space or a part of it."""
    return space.before(index.space) is not None


def pretty_term(term: Term, lhs: Ref) -> str:
    """A term in the .spec notation; several permutations print as a list of signed left sides."""
    parts = []
    for factor in term.factors:
        match factor:
            case Ref():
                parts.append(str(factor))
            case Delta():
                parts.append(format_expr(factor))
            case Apply(expr):
                parts.append(f"({format_expr(expr)})")
    product = "*".join(parts)
    if not product:
        text = str(term.coeff)
    elif abs(term.coeff) == 1:
        text = f"-{product}" if term.coeff < 0 else product
    else:
        text = f"{term.coeff}*{product}"
    if term.perms:
        images = " ".join(
            ("+" if p.sign > 0 else "-") + "".join(lhs.indices[k].name for k in p.images)
            for p in term.perms
        )
        text = f"perm({images}) {text}"
    if term.sums:
        text = f"sum({','.join(i.name for i in term.sums)}) {text}"
    return text


def pretty_equation(equation: Equation) -> str:
    """An equation, one term a line."""
    terms = [pretty_term(t, equation.lhs) for t in equation.terms] or ["0"]
    pad = " " * len(str(equation.lhs))
    return "\n".join(
        f"{equation.lhs if n == 0 else pad} {'=' if n == 0 else '+'} {text}"
        for n, text in enumerate(terms)
    )


def _verify_equation(equation: Equation, known: set[Tensor], defined: set[Tensor]) -> None:
    lhs = equation.lhs
    verify_ref(lhs, known)
    if lhs.tensor.is_input or lhs.tensor in defined:
        raise VerifyError(f"{lhs.tensor.name} is an input or is defined twice")
    if len(set(lhs.indices)) != len(lhs.indices):
        raise VerifyError("the left indices are not distinct")
    for term in equation.terms:
        allowed = set(lhs.indices) | set(term.sums)
        if len(allowed) != len(lhs.indices) + len(term.sums):
            raise VerifyError("a summed index repeats or stands on the left")
        for ref in term.refs:
            verify_ref(ref, known)
            if ref.tensor not in defined:
                raise VerifyError(f"{ref.tensor.name} is read before it is defined")
        free = set(term.indices)
        if not free <= allowed:
            raise VerifyError(f"unbound {sorted(i.name for i in free - allowed)}")
        if not set(term.sums) <= free:
            raise VerifyError("a summed index occurs in no factor")
        for factor in term.factors:
            if isinstance(factor, Apply) and any(
                not isinstance(leaf, Ref | Delta) for leaf in leaves(factor.expr)
            ):
                raise VerifyError("a leaf of level 4 in an expression of level 1")
        for perm in term.perms:
            if sorted(perm.images) != list(range(len(lhs.indices))) or perm.sign not in (1, -1):
                raise VerifyError(f"{perm} is no signed permutation of the left indices")
            for k, image in enumerate(perm.images):
                if lhs.indices[k].space != lhs.indices[image].space:
                    raise VerifyError("a permutation exchanges indices of different spaces")


def verify_ref(ref: Ref, known: set[Tensor]) -> None:
    """A known tensor, with an index of its own space on each axis.

    Raises:
        VerifyError: naming the tensor, the reference or the index.
    """
    if ref.tensor not in known:
        raise VerifyError(f"{ref.tensor.name} is not one of the tensors")
    if len(ref.indices) != ref.tensor.rank:
        raise VerifyError(f"{ref} needs {ref.tensor.rank} indices")
    for index, space in zip(ref.indices, ref.tensor.spaces, strict=True):
        if not fits_axis(index, space):
            raise VerifyError(f"index {index} of {index.space.name} on an axis of {space.name}")


def planning_extents(system: System, given: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Extents of all base spaces: those given, else the defaults of the spec, sorted by name.

    Raises:
        ExtentError: naming unknown, joined or missing spaces and how to give them.
    """
    bases = {s.name: s for s in system.spaces if not s.parts}
    for name in given:
        if name not in bases:
            joined = any(s.name == name for s in system.spaces)
            reason = "is joined; give the extents of its parts" if joined else "is not declared"
            raise ExtentError(
                f"extent {name}={given[name]}: space {name} {reason} "
                f"(spaces of {system.name}: {', '.join(bases)})"
            )
    axes = [s for t in system.tensors for s in t.spaces]
    axes += [i.space for e in system.equations for t in e.terms for i in t.sums]
    used = {base.name for space in axes for base in space.bases}
    # A space that a shared include declares and nothing uses has no extent that could matter.
    extents = {n: given.get(n, s.extent if n in used else 1) for n, s in bases.items()}
    missing = sorted(n for n, e in extents.items() if e is None)
    if missing:
        flags = " ".join(f"-e {n}=10" for n in missing)
        keywords = ", ".join(f'"{n}": 10' for n in missing)
        raise ExtentError(
            f"no planning extent for space {', '.join(missing)}: give {flags} on the command line, "
            f"extents={{{keywords}}} in Python, or a default in the spec (space {missing[0]} = 10)"
        )
    return tuple(sorted((n, e) for n, e in extents.items() if e is not None))
