"""Level 1: a system of equations, each a flat sum of products, as the user wrote them.

Front ends make it; canonical form, expansion and factoring read it. Brackets and P/S over a sum
appear as equations of anonymous intermediates (``Equation.anonymous``). A system does not fix
the order of computation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from html import escape
from typing import ClassVar, TypeAlias, TypeVar

from ..errors import ArgumentError, ExtentError, Span
from .expr import Delta, Expr, expr_indices, refs
from .level import Level
from .reduction import AnyReduction, Reduction
from .tensor import Index, Ref, Role, Space, Tensor, distinct

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Apply:
    """An element-wise factor that is never expanded, such as a denominator or exp(..)."""

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

    A term that is reduced otherwise is the only one of its equation. It has the coefficient 1, no
    permutations, and one factor, an :class:`Apply`.

    Attributes:
        coeff: exact number.
        factors: the product; () is the number 1. A left index that no factor has is broadcast.
        sums: summed indices, distinct, none of them on the left; the index of a running reduction,
            which is on the left.
        perms: all signed permutations, the identity included; () if that is the only one.
        span: place in the user's text, or None; without effect on results.
        reduction: operation over ``sums``.
    """

    coeff: Fraction
    factors: tuple[Factor, ...]
    sums: tuple[Index, ...] = ()
    perms: tuple[Permutation, ...] = ()
    span: Span | None = None
    reduction: AnyReduction = Reduction.SUM

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
    def reduction(self) -> AnyReduction:
        """The sum of terms, or the maximum, minimum or product that is the only term."""
        return self.terms[0].reduction if len(self.terms) == 1 else Reduction.SUM

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the tensors that the right side reads, each once, in order."""
        return tuple(dict.fromkeys(r.tensor.name for t in self.terms for r in t.refs))


@dataclass(frozen=True, slots=True, repr=False)
class System(Level):
    """Equations in an order in which every name is defined before it is read.

    Attributes:
        name: name of the spec, an identifier.
        spaces: all spaces, parts before the spaces that join them.
        tensors: all tensors, inputs first in the order declared.
        equations: one for each intermediate and output.
        warnings: messages for the user (a name that no output needs, for example).
        written: pairs of a name and its form in the source, ``("N_occ", "N_{occ}")``, if they
            differ; for readers only.
        typesetter: sets the equations in LaTeX (:func:`tcgen.ir.pretty.latex.latex_system`).
    """

    typesetter: ClassVar[Callable[[System], str]]

    name: str
    spaces: tuple[Space, ...]
    tensors: tuple[Tensor, ...]
    equations: tuple[Equation, ...]
    warnings: tuple[str, ...] = ()
    written: tuple[tuple[str, str], ...] = ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Inputs in declared order."""
        return tuple(t for t in self.tensors if t.is_input)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Outputs in declared order."""
        return tuple(t for t in self.tensors if t.role is Role.OUTPUT)

    def __repr__(self) -> str:
        inputs = ", ".join(map(with_axes, self.inputs))
        outputs = ", ".join(map(with_axes, self.outputs))
        return f"<System {self.name}({inputs}) -> {outputs}>"

    def _repr_html_(self) -> str:
        """The equations for a notebook, which sets them with MathJax."""
        body = escape(self.latex(), quote=False)
        return f"<p>{escape(repr(self))}</p>\n$$\\begin{{aligned}}\n{body}\n\\end{{aligned}}$$"

    def latex(self) -> str:
        """The equations in LaTeX, one term a line: the body of an ``aligned`` environment."""
        return System.typesetter(self)

    def equation(self, tensor: Tensor) -> Equation:
        """The equation that defines ``tensor``."""
        return next(e for e in self.equations if e.lhs.tensor == tensor)


def with_axes(tensor: Tensor) -> str:
    """A tensor with its spaces, ``t1[o,v]``."""
    axes = ",".join(space.name for space in tensor.spaces)
    return f"{tensor.name}[{axes}]" if axes else tensor.name


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
    """True if an index may stand on an axis: its space is that of the axis or a part of it."""
    return space.before(index.space) is not None


# Numbers of functions of a molecule of twenty electron pairs in a basis of double-zeta quality.
TYPICAL_EXTENTS = {"occupied": 20, "virtual": 100, "auxiliary": 400}
TYPICAL_EXTENT = 20


def _default_extent(space: Space) -> int | None:
    """The extent that a spec declares, else a typical one of the kind; None without a kind."""
    if space.extent is not None or space.kind is None:
        return space.extent
    return TYPICAL_EXTENTS.get(space.kind, TYPICAL_EXTENT)


def assumed_extents(system: System, given: Mapping[str, int]) -> dict[str, int]:
    """The extents of :func:`planning_extents` that neither the spec nor ``given`` has, by space."""
    extents = dict(planning_extents(system, given))
    undeclared = [s for s in system.spaces if not (s.parts or s.extent or s.name in given)]
    return {s.name: extents[s.name] for s in undeclared if extents[s.name] == _default_extent(s)}


def planning_extents(system: System, given: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Extents of all base spaces, sorted by name: those given, else of the spec, else typical ones.

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
    # The extent of a space that an included file declares and no tensor uses has no effect.
    extents = {n: given.get(n, _default_extent(s) if n in used else 1) for n, s in bases.items()}
    missing = sorted(n for n, e in extents.items() if e is None)
    if missing:
        flags = " ".join(f"-e {n}=10" for n in missing)
        keywords = ", ".join(f'"{n}": 10' for n in missing)
        raise ExtentError(
            f"no planning extent for space {', '.join(missing)}: give {flags} on the command line, "
            f"extents={{{keywords}}} in Python, or a default in the spec (space {missing[0]} = 10)"
        )
    return tuple(sorted((n, e) for n, e in extents.items() if e is not None))


def with_inputs_on_disk(system: System, names: tuple[str, ...]) -> System:
    """The equations with some inputs generated: a program reads slices of them and no whole array.

    Raises:
        ArgumentError: a name is not an input, or its array is a scalar.
    """
    inputs = {t.name: t for t in system.inputs}
    generated: dict[Tensor, Tensor] = {}
    for name in names:
        tensor = inputs.get(name)
        if tensor is None:
            raise ArgumentError(
                f"sliced input {name} is not an input (inputs: {', '.join(inputs)})"
            )
        if not tensor.rank:
            raise ArgumentError(f"sliced input {name} is a scalar: only an array can be sliced")
        generated[tensor] = replace(tensor, role=Role.GENERATED)
    return with_tensors(system, generated) if generated else system


def with_spaces(part: Part, spaces: Mapping[Space, Space]) -> Part:
    """A level, or a part of one, with spaces replaced by others of the same names."""
    replaced: object = part
    if isinstance(part, Space):
        replaced = spaces.get(part, part)
    elif isinstance(part, tuple):
        replaced = tuple(with_spaces(p, spaces) for p in part)
    if is_dataclass(replaced) and not isinstance(replaced, type):
        changes = {f.name: with_spaces(getattr(replaced, f.name), spaces) for f in fields(replaced)}
        replaced = replace(replaced, **changes)
    return replaced  # type: ignore[return-value]


def with_tensors(part: Part, tensors: Mapping[Tensor, Tensor]) -> Part:
    """A level, or a part of one, with tensors replaced by others."""
    replaced: object = part
    if isinstance(part, Tensor):
        replaced = tensors.get(part, part)
    elif isinstance(part, tuple):
        replaced = tuple(with_tensors(p, tensors) for p in part)
    elif is_dataclass(part) and not isinstance(part, type | Index):
        changes = {f.name: with_tensors(getattr(part, f.name), tensors) for f in fields(part)}
        if any(changes[f.name] is not getattr(part, f.name) for f in fields(part)):
            replaced = replace(part, **changes)
    return replaced  # type: ignore[return-value]
