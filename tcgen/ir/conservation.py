"""Conservation by tensors over graded spaces: their signs and charges, and whether equations agree.

Orbitals of a graded space have irreps of an abelian group, momenta or spins. A tensor differs from
zero only where what enters through some axes leaves through the others, up to a charge. Which axes
these are follows for inputs from their declarations, and for intermediates and outputs from their
equations. The group and the irreps come with a call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from ..errors import Diagnostic, Span, SpecError
from ..records.quantity import Quantity
from ..records.signature import Signature
from .conserved_factors import (
    Fault,
    NotConservedError,
    Product,
    factor_of,
    left_signatures,
    products_of,
    sides_text,
    times,
)
from .expr import Delta, format_expr
from .orbital_phases import Products, phase_faults
from .program import FormulaSequence
from .reduction import AnyReduction, Reduction
from .system import Apply, Factor, Permutation, System
from .tensor import Index, Ref, Role, Space, Tensor, symmetry_group

# Choices of signatures of intermediates that are tried where several are possible.
_MOST_CHOICES = 64


@dataclass(frozen=True, slots=True)
class Line:
    """A term of an equation, or a step: ``left (+)= sum over bound of the product of factors``."""

    left: Ref
    factors: tuple[Factor, ...]
    bound: frozenset[Index]
    perms: tuple[Permutation, ...]
    span: Span | None
    reduction: AnyReduction = Reduction.SUM

    @property
    def text(self) -> str:
        """The product as in a spec."""
        factors = (format_expr(f.expr if isinstance(f, Apply) else f) for f in self.factors)
        return "*".join(factors) or "1"


def axis_signs(
    equations: System | FormulaSequence,
    *,
    graded: Collection[str] | None = None,
    own_inverse: bool = False,
) -> dict[str, Signature]:
    """The signature of each tensor, by name, intermediates included.

    Args:
        equations: a system or a formula sequence.
        graded: names of the graded base spaces; None for those that are declared so.
        own_inverse: every element of the group is its own inverse, as irreps of point groups are.
            Signs then count modulo 2 and are 1 or 0, and the order of axes has no effect.

    Raises:
        SpecError: a term conserves nothing, or an array cannot be graded; with all places.

    Example:
        >>> from tcgen import read_spec
        >>> system = read_spec('''
        ... space o occupied graded
        ... space v virtual graded
        ... index i j : o
        ... index a b : v
        ... input f_vv[v,v], t2[o,o,v,v], e_o[o]
        ... output r, D
        ... r[i,j,a,b] = f_vv[a,c]*t2[i,j,c,b]
        ... D[i,j] = e_o[i] - e_o[j]
        ... index c : v''')
        >>> signatures = axis_signs(system)
        >>> signatures["r"].signs, signatures["e_o"].label, signatures["D"].label
        ((1, 1, -1, -1), True, True)
    """
    signatures, faults = conservation(equations, graded=graded, own_inverse=own_inverse)
    if faults:
        nowhere = Span(equations.name, 1, 1)
        raise SpecError(
            tuple(Diagnostic(f.span or nowhere, f.message, advice=f.advice) for f in faults)
        )
    return signatures


def conservation(
    equations: System | FormulaSequence,
    *,
    graded: Collection[str] | None = None,
    own_inverse: bool = False,
) -> tuple[dict[str, Signature], tuple[Fault, ...]]:
    """The signatures of all tensors, as far as they are known, and all faults."""
    if graded is None:
        graded = [space.name for space in equations.spaces if space.graded]
    names = frozenset(graded)
    first = _Analysis(equations, names, own_inverse, ())
    if not first.faults and isinstance(equations, System) and not own_inverse:
        return first.signatures, tuple(first.phase_faults(equations))
    if not first.faults or not first.open:
        return first.signatures, tuple(first.faults)
    # An intermediate that is a product of tensors without common indices may be turned around in
    # several ways, of which its readers allow some.
    every = product(*(range(count) for count in first.open))
    for choice in islice(every, 1, _MOST_CHOICES):
        other = _Analysis(equations, names, own_inverse, choice)
        if not other.faults:
            return other.signatures, ()
    return first.signatures, tuple(first.faults)


def lines_of(equations: System | FormulaSequence) -> Iterator[tuple[Tensor, tuple[Line, ...]]]:
    """The lines that define each tensor, in an order in which it is defined before it is read."""
    if isinstance(equations, System):
        for equation in equations.equations:
            yield (
                equation.lhs.tensor,
                tuple(
                    Line(
                        equation.lhs,
                        t.factors,
                        frozenset(t.sums),
                        t.perms,
                        t.span or equation.span,
                        t.reduction,
                    )
                    for t in equation.terms
                    if t.coeff
                ),
            )
        return
    producers: dict[Tensor, list[Line]] = {}
    for step in equations.steps:
        lines = producers.setdefault(step.out.tensor, [])
        if step.summand is not None:
            factors = (Apply(step.summand),)
            lines.append(
                Line(step.out, factors, frozenset(step.sums), (), step.span, step.reduction)
            )
    # A tensor that is read between two of its producers would be an accumulating output.
    last = {step.out.tensor: step.id for step in equations.steps}
    for tensor in sorted(producers, key=lambda t: last[t]):
        yield tensor, tuple(producers[tensor])


def default_sides(
    tensor: Tensor, axes: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Of some axes, those through which a number enters by default, and those where it leaves.

    They are the two halves of the axes. In integrals (pq|rs), they are the first and the other axis
    of each electron; in three-index integrals, the first orbital and the rest. None for any other
    odd number of axes above 1.

    Example:
        >>> from .tensor import Role
        >>> o = Space("o")
        >>> default_sides(Tensor("t", (o, o), Role.INPUT), (0, 1))
        ((0,), (1,))
    """
    quantity = tensor.quantity
    if quantity is not None and len(axes) == quantity.rank:
        pairs = quantity.electrons
        if pairs:
            return tuple(one for one, _ in pairs), tuple(other for _, other in pairs)
        if quantity is Quantity.THREE_INDEX:
            first = next(
                (k for k in axes if all(b.kind != "auxiliary" for b in tensor.spaces[k].bases)), 0
            )
            return (first,), tuple(k for k in axes if k != first)
    if len(axes) % 2 and len(axes) > 1:
        return None
    half = (len(axes) + 1) // 2
    return tuple(axes[:half]), tuple(axes[half:])


class _Analysis:
    """Signatures of all tensors in the order of equations.

    ``open`` has the number of possible signatures of each intermediate that has several.
    """

    def __init__(
        self,
        equations: System | FormulaSequence,
        graded: frozenset[str],
        own_inverse: bool,
        choice: tuple[int, ...],
    ) -> None:
        joined = (s.name for s in equations.spaces if all(b.name in graded for b in s.bases))
        self._graded, self._own_inverse = graded.union(joined), own_inverse
        self._choice = choice
        self.signatures: dict[str, Signature] = {}
        self.faults: list[Fault] = []
        self.open: list[int] = []
        for tensor in equations.tensors:
            if tensor.is_input:
                self.signatures[tensor.name] = self._declared(tensor)
        for tensor, lines in lines_of(equations):
            if tensor.is_input:  # tiles of a generated input
                continue
            self._joined(tensor, lines[0].span if lines else None)
            self.signatures[tensor.name] = self._defined(tensor, lines)

    def phase_faults(self, system: System) -> list[Fault]:
        """The terms that hold for real orbitals only, if some orbitals are complex."""
        if not any(space.strict for space in system.spaces):
            return []
        terms = [
            (
                tensor,
                [
                    Products(x.left, self.products(x), x.bound, x.perms, x.span, x.text)
                    for x in lines
                ],
            )
            for tensor, lines in lines_of(system)
        ]
        return phase_faults(system.inputs, terms, self.signatures)

    def _axes(self, spaces: Sequence[Space]) -> list[int]:
        """The graded axes."""
        return [k for k, space in enumerate(spaces) if space.name in self._graded]

    def _fault(self, tensor: Tensor, span: Span | None, message: str, advice: str) -> None:
        self.faults.append(Fault(tensor.name, span, message, advice))

    def _joined(self, tensor: Tensor, span: Span | None) -> None:
        for axis, space in enumerate(tensor.spaces):
            parts = [b.name for b in space.bases if b.name in self._graded]
            if parts and space.name not in self._graded:
                axes = ",".join(s.name for s in tensor.spaces)
                rest = ", ".join(b.name for b in space.bases if b.name not in parts)
                self._fault(
                    tensor,
                    span,
                    f"axis {axis} of {tensor.name}[{axes}] joins {', '.join(parts)}, which "
                    f"{'are' if parts[1:] else 'is'} graded, and {rest}, which is not",
                    f"declare {rest} graded as well, or leave all these spaces ungraded",
                )
                return

    def _declared(self, tensor: Tensor) -> Signature:
        """The declared signature of an input; an axis alone is a label unless it has a charge."""
        before = len(self.faults)
        self._joined(tensor, None)
        axes = self._axes(tensor.spaces)
        if axes and tensor.role is Role.GENERATED and tensor.alias is None:
            self._fault(
                tensor,
                None,
                f"{tensor.name} is generated or sliced, and has graded axes",
                "pass it whole, or leave its spaces ungraded",
            )
        charge = () if tensor.charge is None or not self._graded else ((tensor.charge, 1),)
        label = tensor.label or tensor.quantity in (Quantity.ENERGIES, Quantity.DIPOLE)
        alone = len(axes) == 1 and tensor.charge is None
        if not axes or label or alone or len(self.faults) > before:
            return Signature((0,) * tensor.rank, charge)
        signature = self._as_declared(tensor, axes)
        if signature is None:
            return Signature((0,) * tensor.rank)
        self._check_symmetry(tensor, signature)
        return signature

    def _as_declared(self, tensor: Tensor, axes: Sequence[int]) -> Signature | None:
        sides = tensor.conserves or default_sides(tensor, axes)
        text = f"{tensor.name}[{','.join(space.name for space in tensor.spaces)}]"
        if sides is None:
            self._fault(
                tensor,
                None,
                f"{text} has {len(axes)} graded axes, so that no half of them is the first",
                "say what it conserves, such as conserves (0,1)->(2)",
            )
            return None
        missing = [k for k in axes if k not in (*sides[0], *sides[1])]
        if missing:
            self._fault(
                tensor,
                None,
                f"axis {missing[0]} of {text} is graded, and on neither side of conserves",
                "name all graded axes in conserves",
            )
            return None
        signs = [0 if k not in axes else 1 if k in sides[0] else -1 for k in range(tensor.rank)]
        charge = () if tensor.charge is None else ((tensor.charge, 1),)
        return Signature(tuple(map(abs, signs)) if self._own_inverse else tuple(signs), charge)

    def _check_symmetry(self, tensor: Tensor, signature: Signature) -> None:
        """Note symmetry that exchanges axes of both sides one by one."""
        for symmetry in symmetry_group(tensor):
            moved = Signature(tuple(signature.signs[k] for k in symmetry.perm), signature.charge)
            if moved not in (signature, signature.negative()):
                sides = sides_text(enumerate(signature.signs))
                self._fault(
                    tensor,
                    None,
                    f"{tensor.name} has the symmetry of axes in the order {symmetry.perm}, which "
                    f"changes what it conserves, {sides}",
                    "if its axes are in another order, such as that of (pq|rs), declare conserves "
                    "(0,2)->(1,3); else correct the symmetry",
                )
                return

    def _leaf(self, leaf: Ref | Delta) -> Product:
        """A reference or delta as a product of one factor."""
        return factor_of(leaf, self.signatures, self._graded, own_inverse=self._own_inverse)

    def products(self, line: Line) -> tuple[Product, ...]:
        """The products of a line with expressions expanded."""
        return times(
            [products_of(f.expr if isinstance(f, Apply) else f, self._leaf) for f in line.factors]
        )

    def _defined(self, tensor: Tensor, lines: Sequence[Line]) -> Signature:
        """The first signature that all lines allow the tensor on their left."""
        axes = self._axes(tensor.spaces)
        nothing = Signature((0,) * tensor.rank)
        if tensor.label:
            return nothing
        declared = None
        if axes and (tensor.conserves is not None or tensor.charge is not None):
            declared = self._as_declared(tensor, axes)
        choices: tuple[Signature, ...] | None = None if declared is None else (declared,)
        for line in lines:
            try:
                found = [list(one) for one in self._allowed(line)]
            except NotConservedError as error:
                message = f"momentum is not conserved in {line.text}: {error.message}"
                self._fault(tensor, line.span, message, error.advice)
                continue
            for allowed in found:
                known = {s for one in allowed for s in (one, one.negative())}
                common = tuple(s for s in (allowed if choices is None else choices) if s in known)
                if not common and choices is not None:
                    self._disagreement(line, allowed[0], choices[0], declared is not None)
                    break
                choices = common
        if not choices:
            return nothing
        if declared is None and default_sides(tensor, axes) is not None:
            plain = self._as_declared(tensor, axes)
            assert plain is not None, "the axes have default sides"
            usual = [s for one in choices for s in (one, one.negative()) if s.signs == plain.signs]
            choices = (*usual[:1], *(s for s in choices if s not in usual))
        if len(choices) > 1:
            self.open.append(len(choices))
            if len(self._choice) >= len(self.open):
                return choices[self._choice[len(self.open) - 1] % len(choices)]
        return choices[0]

    def _allowed(self, line: Line) -> Iterator[tuple[Signature, ...]]:
        """For each product and permutation of a line, what the left side can conserve."""
        rank = len(line.left.indices)
        for made in self.products(line):
            if made.factors and line.reduction is not Reduction.SUM:
                raise NotConservedError(
                    f"{line.reduction.value} counts the zeros of "
                    f"{format_expr(made.factors[0].factor)} between different irreps",
                    f"take the {line.reduction.value} of labels only, or declare the tensor label",
                )
            found = left_signatures(
                made, line.left.indices, line.bound, own_inverse=self._own_inverse
            )
            for images in [p.images for p in line.perms] or [tuple(range(rank))]:
                moved = []
                for signature in found:
                    signs = [0] * rank
                    for k, image in enumerate(images):
                        signs[image] = signature.signs[k]
                    moved.append(Signature(tuple(signs), signature.charge))
                yield tuple(moved)

    def _disagreement(
        self, line: Line, found: Signature, wanted: Signature, declared: bool
    ) -> None:
        left = line.left
        has, needed = (_words(left.indices, s) for s in (found, wanted))
        why = "is declared to conserve" if declared else "conserves, by its other terms,"
        self._fault(
            left.tensor,
            line.span,
            f"momentum is not conserved in {line.text}: it conserves {has}, and {left} {why} "
            f"{needed}",
            "correct the indices, or what the inputs conserve: declare conserves (0,2)->(1,3), "
            "charge x or label",
        )


def _words(indices: Sequence[Index], signature: Signature) -> str:
    """``(i,j)->(a,b)``, with the charge; ``nothing`` for a label."""
    if signature.label:
        return "nothing"
    charge = "".join(
        f"{'+' if k > 0 else '-'}{name if abs(k) == 1 else f'{abs(k)}*{name}'}"
        for name, k in signature.charge
    )
    sides = sides_text(zip(indices, signature.signs, strict=True))
    return sides + (f" with charge {charge.removeprefix('+')}" if charge else "")
