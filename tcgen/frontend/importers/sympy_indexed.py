"""SymPy expressions as systems: IndexedBase with Idx or Sum, and sympy.physics.secondquant.

An index that is neither bound by a Sum nor on the left is summed over its range if it occurs at
least twice in a product. Indices in a function, a denominator or a power of a bracket count once;
x[i]**2 is x[i]*x[i]. Only objects and numbers are read, since SymPy evaluates a text as Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import sympy
from sympy.functions.elementary.complexes import conjugate, im, re
from sympy.physics import secondquant as second

from ...ir.expr import Call, Const, Delta, Expr, Pow, Prod, Quot, Sum
from ...ir.system import Apply, Equation, Factor, System, Term, factor_indices
from ...ir.tensor import Index, Ref, Role, Tensor, distinct
from ...ir.term_rewriting import resolve_deltas
from ..assemble import add_terms, assemble, find_cycles
from ..exact_numbers import OUTSIDE, rejection_reason
from ..source import refuse_deep_nesting
from ..terms import read_term_data
from .canonical_terms import canonical_system
from .conventions import LETTERS, check_texts, integrals, is_name, names_of_blocks, with_integrals
from .sympy_atoms import (
    Ranges,
    check_term_count,
    exact_number,
    identifier_of,
    index_symbols,
    not_a_name,
    range_symbols,
    two_names,
    wrong,
)
from .sympy_fermions import fermion_targets

# Largest exponent of a power; the message for larger ones advises exp(n*log(x)).
_LARGEST_EXPONENT = 1000
_FUNCTIONS: dict[Any, str] = {
    sympy.exp: "exp",
    sympy.log: "log",
    sympy.sin: "sin",
    sympy.cos: "cos",
    sympy.tanh: "tanh",
    sympy.Abs: "abs",
    conjugate: "conj",
    re: "real",
    im: "imag",
}


def from_sympy(
    equations: Any,
    *,
    name: str = "sympy",
    spaces: Mapping[str, str] | None = None,
    blocks: Sequence[str] = ("f", "v"),
    real: bool = False,
) -> System:
    """The system of SymPy equations.

    Args:
        equations: ``Eq(left, right)``, a list of them, ``{left: right}``, or one expression
            without free indices, which defines ``e``. A left side is an Indexed, a Symbol, an
            AntiSymmetricTensor, or a text such as ``"r2(a,b,i,j)"``.
        name: name of the system.
        spaces: letters of indices that have no range of their own: ``{"o": "i j", "v": "a b"}``.
            A range is that of an Idx, of a Sum, or of the shape of an IndexedBase: the space is
            then named after its symbol, or n5 for a range of 5.
        blocks: secondquant tensors that are given by blocks: v is v_oovv = <ij||ab>, ...; the
            others get the number of their upper indices: t(ab,ij) is t2[a,b,i,j].
        real: orbitals are real, so that bra and ket of f and v may be exchanged.

    Raises:
        ArgumentError: a keyword is of another type.
        SpecError: an expression cannot be understood, or has no equivalent space: a range that
            does not begin at 0, or is not that of an array's shape. A range that is a number is
            accepted if the arrays have it in their shapes.

    Example:
        >>> from sympy import Eq, Idx, IndexedBase, symbols
        >>> i, j = (Idx(x, symbols("n", integer=True)) for x in "ij")
        >>> A, x, y = map(IndexedBase, "Axy")
        >>> print(from_sympy(Eq(y[i], A[i, j]*x[j]/2)).pretty(), end="")
        y[i] = sum(j) 1/2*x[j]*A[i,j]
    """
    check_texts(name=name)
    families = names_of_blocks(blocks)
    ranges = Ranges(spaces or {})
    with refuse_deep_nesting("<sympy>"):
        pairs = [(_left_side(left), _expression(right)) for left, right in _pairs(equations)]
        if not pairs:
            raise wrong("no equations", "give Eq(left, right), a list of them, or {left: right}")
        if not any(right.has(second.AntiSymmetricTensor) for _, right in pairs):
            return _Reader(ranges).system(name, pairs)
        for _, right in pairs:
            check_term_count(right, powers=True)
        targets, tensors = fermion_targets(pairs, families)
        data = {
            "name": name,
            "ranges": {space: list(letters) for space, letters in LETTERS.items()},
            "tensors": {**dict(sorted(tensors.items())), **integrals(real=real)},
            "targets": targets,
        }
        return canonical_system(with_integrals(read_term_data(data, "<sympy>")))


def is_sympy(value: Any) -> bool:
    """True for arguments of :func:`from_sympy`."""
    if isinstance(value, Mapping):
        return bool(value) and all(isinstance(x, sympy.Basic) for x in value.values())
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(x, sympy.Basic) for x in value)
    return isinstance(value, sympy.Basic)


def _pairs(equations: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(equations, Mapping):
        yield from equations.items()
    elif isinstance(equations, list | tuple):
        for equation in equations:
            yield from _pairs(equation)
    elif isinstance(equations, sympy.Equality):
        yield equations.lhs, equations.rhs
    else:
        yield "e", equations


def _expression(given: Any) -> Any:
    """An object of SymPy, or a number as one; nothing else is read, least of all a text."""
    match given:
        case bool():
            pass
        case sympy.Basic():
            return given
        case int():
            return sympy.Integer(given)
        case float():
            return sympy.Float(given)
        case Fraction():
            return sympy.Rational(given.numerator, given.denominator)
        case _:
            pass
    kind = type(given).__name__
    raise wrong(f"{given!r:.40} ({kind}) is not an expression", "give expressions or Eq of SymPy")


def _left_side(given: Any) -> Any:
    """The left side of an equation: elements, a symbol, or a text for another front end."""
    if isinstance(given, sympy.Indexed | sympy.Symbol | second.AntiSymmetricTensor):
        return given
    if isinstance(given, str):
        text = given.replace("[", "(").replace("]", ")")  # r[a,b,i,j] is r(a,b,i,j)
        if is_name(text.partition("(")[0]):
            return text
    raise not_a_name(given)


@dataclass(frozen=True, slots=True)
class _Flat:
    """A product; ``sums`` are bound by a Sum."""

    coeff: Fraction
    factors: tuple[Factor, ...] = ()
    sums: tuple[Index, ...] = ()


class _Reader:
    """Reads equations over Indexed."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._tensors: dict[str, Tensor] = {}
        self._owners: dict[str, Any] = {}  # the symbol of each tensor
        self._not_numbers: dict[Any, str] = {}

    def system(self, name: str, pairs: list[tuple[Any, Any]]) -> System:
        """All equations; those that another one reads are intermediates."""
        for _, right in pairs:
            check_term_count(right, powers=False)
            self._ranges.indices |= index_symbols(right)
            self._not_numbers |= dict.fromkeys(range_symbols(right), "the extent of a range")
        self._not_numbers |= dict.fromkeys(self._ranges.indices, "an index")
        names = [self._defined(left) for left, _ in pairs]
        read = {
            other
            for own, (_, right) in zip(names, pairs, strict=True)
            for other in map(_tensor_name, right.atoms(sympy.Indexed, sympy.Symbol))
            if other != own
        }
        for own, (left, _) in zip(names, pairs, strict=True):
            role = Role.TEMP if own in read else Role.OUTPUT
            self._ranges.begin(())
            made = Tensor(own, tuple(i.space for i in self._left(left)), role)
            if self._tensors.setdefault(own, made) != made:
                raise wrong(f"{own} has different axes in two equations", "give them two names")
        equations: dict[str, Equation] = {}
        for own, (left, right) in zip(names, pairs, strict=True):
            free = right.free_symbols | (
                left.free_symbols if isinstance(left, sympy.Basic) else set()
            )
            self._ranges.begin(s for s in free if isinstance(s, sympy.Symbol))
            lhs = Ref(self._tensors[own], self._left(left))
            terms = tuple(t for flat in self._flat(right) for t in self._finish(flat, lhs))
            add_terms(equations, lhs, terms)
        for cycle in find_cycles(list(equations.values())):
            text = " -> ".join(e.lhs.tensor.name for e in (*cycle, cycle[0]))
            raise wrong(
                f"circular definition: {text}", "change one so that it does not read the next"
            )
        inputs = [t for t in self._tensors.values() if t.is_input]
        outputs = [e.lhs.tensor for e in equations.values() if e.lhs.tensor.role is Role.OUTPUT]
        made_of = assemble(name, self._ranges.spaces, inputs, outputs, list(equations.values()))
        return replace(made_of, written=self._written())

    def _written(self) -> tuple[tuple[str, str], ...]:
        """Names that differ from those in SymPy, with the latter."""
        names = {name: owner.name for name, owner in self._owners.items()} | self._ranges.written
        return tuple((name, text) for name, text in sorted(names.items()) if name != text)

    def _defined(self, left: Any) -> str:
        """Name of the tensor on a left side."""
        if isinstance(left, str):
            if not is_name(left):
                name, _, axes = left.rstrip(")").partition("(")
                raise wrong(
                    f"{left!r:.80} cannot be a name",
                    f"write IndexedBase({name!r:.80})[{axes or 'i'}] on the left, not as text",
                )
            return left
        return self._owned(left.base.label if isinstance(left, sympy.Indexed) else left)

    def _owned(self, symbol: Any) -> str:
        """Name of the tensor of a symbol; no two symbols have the same."""
        if not isinstance(symbol, sympy.Symbol):
            raise not_a_name(symbol)
        name = identifier_of(symbol.name)
        known = self._owners.setdefault(name, symbol)
        if known != symbol:
            raise wrong(f"two different symbols have the name {name}", two_names(known, symbol))
        return name

    def _left(self, left: Any) -> tuple[Index, ...]:
        if not isinstance(left, sympy.Indexed):
            return ()
        indices = self._ranges.of_axes(left)
        if len(set(indices)) != len(indices):
            raise wrong(f"the indices of {left} are not distinct", "use different letters")
        return indices

    def _finish(self, flat: _Flat, lhs: Ref) -> Iterator[Term]:
        """The term with its implied sums."""
        counts: dict[Index, int] = {}
        for factor in flat.factors:
            held = factor.indices if isinstance(factor, Ref) else factor_indices(factor)
            for index in held:
                counts[index] = counts.get(index, 0) + 1
        self._ranges.check_term((*lhs.indices, *counts))
        free = [i for i in counts if i not in lhs.indices and i not in flat.sums]
        for index in free:
            if counts[index] == 1:
                advice = "put it on the left, or write Sum(.., (i, 0, n - 1))"
                raise wrong(
                    f"index {index} occurs once in a term of {lhs} and no Sum binds it",
                    self._ranges.twin(index) or advice,
                )
        ones = tuple(Delta(i, i) for i in flat.sums if i not in counts)
        sums = distinct((*flat.sums, *free))
        resolved = resolve_deltas(Term(flat.coeff, (*flat.factors, *ones), sums))
        reason = rejection_reason(flat.coeff)
        if reason:
            raise wrong(f"the number of a term of {lhs} {reason}", OUTSIDE)
        if resolved is not None and resolved.coeff:
            yield resolved

    def _flat(self, expr: Any) -> list[_Flat]:
        """The expression as a sum of products, with brackets expanded."""
        match expr:
            case sympy.Add():
                return [f for arg in expr.args for f in self._flat(arg)]
            case sympy.Mul():
                products = [_Flat(Fraction(1))]
                for arg in expr.args:
                    products = [_times(a, b) for a in products for b in self._flat(arg)]
                return products
            case sympy.Sum():
                return self._sum(expr)
            case sympy.Piecewise():
                return self._flat(self._ranges.value_in_range(expr))
            case sympy.Pow() if expr.exp.is_Integer and expr.exp > 0 and _multiplies(expr.base):
                products = [_Flat(Fraction(1))]
                for _ in range(_check_exponent(expr.exp)):
                    products = [_times(a, b) for a in products for b in self._flat(expr.base)]
                return products
            case _:
                value = self._expr(expr)
                if isinstance(value, Const):
                    return [_Flat(value.value)]
                factor = value if isinstance(value, Ref | Delta) else Apply(value)
                return [_Flat(Fraction(1), (factor,))]

    def _sum(self, expr: Any) -> list[_Flat]:
        """An explicit sum, whose bound letters get new names."""
        sums = tuple(self._ranges.bind(expr.limits).values())
        inside = self._flat(expr.function)
        self._ranges.release()
        return [replace(f, sums=(*f.sums, *sums)) for f in inside]

    def _expr(self, expr: Any) -> Expr:
        """An element-wise expression."""
        match expr:
            case sympy.core.numbers.ImaginaryUnit():
                return Call("sqrt", Const(Fraction(-1)))
            case sympy.Rational() | sympy.Float() | sympy.NumberSymbol():
                return Const(exact_number(expr))
            case sympy.Piecewise():
                return self._expr(self._ranges.value_in_range(expr))
            case sympy.Indexed():
                return self._element(expr)
            case sympy.KroneckerDelta():
                if len(expr.args) > 2:
                    raise wrong(f"{expr} has a range", "give its indices their ranges")
                left, right = (self._ranges.index(s, expr, None) for s in expr.args)
                return Delta(left, right)
            case sympy.Symbol():
                kind = self._not_numbers.get(expr)
                if kind is not None:
                    advice = "pass its values as an input: an array for an index"
                    raise wrong(f"{expr} is {kind}, and a number elsewhere", advice)
                return self._ref(self._owned(expr), ())
            case sympy.Add():
                return Sum(tuple(self._expr(a) for a in expr.args))
            case sympy.Mul():
                return Prod(tuple(self._expr(a) for a in expr.args))
            case sympy.Pow():
                return self._power(expr.base, expr.exp)
            case sympy.exp():
                return Call("exp", self._expr(expr.args[0]))
            case _ if type(expr) in _FUNCTIONS:
                return Call(_FUNCTIONS[type(expr)], self._expr(expr.args[0]))
            case sympy.Sum():
                raise wrong(
                    f"{expr} is inside a function or denominator",
                    "give it a name in an equation of its own",
                )
            case _:
                raise wrong(
                    f"{expr} of SymPy's {type(expr).__name__} is not understood",
                    "use Indexed, Sum, KroneckerDelta, numbers, powers and functions",
                )

    def _power(self, base: Any, exponent: Any) -> Expr:
        inner = self._expr(base)
        _check_exponent(exponent)
        if exponent.is_Integer:
            power = int(exponent)
            whole = inner if abs(power) == 1 else Pow(inner, abs(power))
            return whole if power > 0 else Quot(Const(Fraction(1)), whole)
        if (2 * exponent).is_Integer:
            power = int(abs(exponent))  # and a half
            root = Call("sqrt", inner)
            factor = inner if power == 1 else Pow(inner, power)
            half = Prod((factor, root)) if power else root
            return half if exponent > 0 else Quot(Const(Fraction(1)), half)
        raise wrong(f"the power {base}**{exponent} is not understood", "use whole or half powers")

    def _ref(self, name: str, indices: tuple[Index, ...]) -> Ref:
        spaces = tuple(i.space for i in indices)
        tensor = self._tensors.setdefault(name, Tensor(name, spaces, Role.INPUT))
        if tensor.spaces != spaces:
            axes = [",".join(s.name for s in axis) for axis in (tensor.spaces, spaces)]
            raise wrong(f"{name} has the axes [{axes[0]}] and [{axes[1]}]", "give them two names")
        return Ref(tensor, indices)

    def _element(self, expr: Any) -> Ref:
        """An element of an array; a range that is a number must be that of its shape."""
        indices = self._ranges.of_axes(expr)
        ref = self._ref(self._owned(expr.base.label), indices)
        numbers = [i for i in indices if i.space.extent is not None]
        if ref.tensor.is_input and expr.base.shape is None and numbers:
            index = numbers[0]
            raise wrong(
                f"the range of index {index} of {expr} has {index.space.extent} elements, and the "
                f"shape of {ref.tensor.name} is unknown: it may have more",
                "give the IndexedBase its shape, or write a symbol for the range",
            )
        return ref


def _check_exponent(exponent: Any) -> int:
    """The whole part of an exponent."""
    if exponent.is_Rational and abs(exponent) > _LARGEST_EXPONENT:
        message = f"the exponent {exponent!s:.40} is beyond {_LARGEST_EXPONENT}"
        raise wrong(message, "write exp(n*log(x))")
    return int(exponent) if exponent.is_Rational else 0


def _multiplies(base: Any) -> bool:
    """True if a power is a product: of Sums, or of elements, as SymPy writes x[i]*x[i]."""
    return isinstance(base, sympy.Indexed) or bool(base.has(sympy.Sum))


def _times(one: _Flat, other: _Flat) -> _Flat:
    return _Flat(one.coeff * other.coeff, one.factors + other.factors, one.sums + other.sums)


def _tensor_name(atom: Any) -> str:
    """Name of the tensor of an element or a symbol, if it has a tensor."""
    label = atom.base.label if isinstance(atom, sympy.Indexed) else atom
    return identifier_of(label.name) if isinstance(label, sympy.Symbol) else ""
