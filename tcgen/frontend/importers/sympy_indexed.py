"""SymPy expressions as systems: IndexedBase with Idx or Sum, and sympy.physics.secondquant.

An index that no Sum binds and that is not on the left is summed over its range where it occurs
twice or more in a product. A function, a denominator and a power of a bracket count once;
x[i]**2 is x[i]*x[i].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import sympy
from sympy.functions.elementary.complexes import conjugate, im, re
from sympy.physics import secondquant as second

from ...errors import SpecError
from ...ir.expr import Call, Const, Delta, Expr, Pow, Prod, Quot, Sum
from ...ir.system import Apply, Equation, Factor, System, Term, factor_indices
from ...ir.tensor import Index, Ref, Role, Space, Tensor, distinct
from ...ir.term_rewriting import fresh_index, rename_left, resolve_deltas
from ..assemble import assemble, find_cycle
from ..exact_numbers import exact
from ..terms.reader import read_term_data
from .canonical_terms import one_way
from .conventions import integrals, refuse
from .sympy_fermions import fermion_targets

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
        name: of the system.
        spaces: letters of indices that have no range of their own: ``{"o": "i j", "v": "a b"}``.
            A range is that of an Idx, of a Sum, or of the shape of an IndexedBase: the space is
            then named after its symbol, or n5 for a range of 5.
        blocks: secondquant tensors that are given by blocks: v is v_oovv = <ij||ab>, ...; the
            others get the number of their upper indices: t(ab,ij) is t2[a,b,i,j].
        real: orbitals are real, so that bra and ket of f and v may be exchanged.

    Raises:
        SpecError: what cannot be understood.

    Example:
        >>> from sympy import Eq, Idx, IndexedBase, symbols
        >>> i, j = (Idx(x, symbols("n", integer=True)) for x in "ij")
        >>> A, x, y = map(IndexedBase, "Axy")
        >>> print(from_sympy(Eq(y[i], A[i, j]*x[j]/2)).pretty(), end="")
        y[i] = sum(j) 1/2*x[j]*A[i,j]
    """
    pairs = list(_pairs(equations))
    if not pairs:
        raise _wrong("no equations", "give Eq(left, right), a list of them, or {left: right}")
    whole = [_expression(right) for _, right in pairs]
    if any(e.has(second.AntiSymmetricTensor) for e in whole):
        lefts = [left for left, _ in pairs]
        targets, tensors = fermion_targets(list(zip(lefts, whole, strict=True)), blocks)
        data = {
            "name": name,
            "ranges": {"o": list("ijklmn"), "v": list("abcdefgh")},
            "tensors": {**dict(sorted(tensors.items())), **integrals(real=real)},
            "targets": targets,
        }
        return one_way(read_term_data(data, "<sympy>"))
    return _Reader(spaces or {}).system(name, [left for left, _ in pairs], whole)


def is_sympy(value: Any) -> bool:
    """True for what :func:`from_sympy` takes."""
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
    try:
        found = sympy.sympify(given)
    except sympy.SympifyError:
        found = None
    if not isinstance(found, sympy.Basic):
        kind = type(given).__name__
        raise _wrong(f"{given!r} ({kind}) is no expression", "give expressions or Eq of SymPy")
    return found


@dataclass(frozen=True, slots=True)
class _Flat:
    """A product; ``sums`` are bound by a Sum."""

    coeff: Fraction
    factors: tuple[Factor, ...] = ()
    sums: tuple[Index, ...] = ()


class _Reader:
    """Reads equations over Indexed."""

    def __init__(self, spaces: Mapping[str, str]) -> None:
        self._spaces: dict[str, Space] = {}
        self._letters = {letter: name for name, text in spaces.items() for letter in text.split()}
        self._tensors: dict[str, Tensor] = {}
        self._bound: list[dict[Any, Index]] = []
        self._fresh: set[str] = set()

    def system(self, name: str, lefts: list[Any], rights: list[Any]) -> System:
        """All equations; those that another one reads are intermediates."""
        names = [_name(left) for left in lefts]
        read = {
            str(x.base.label if isinstance(x, sympy.Indexed) else x)
            for n, right in zip(names, rights, strict=True)
            for x in right.atoms(sympy.Indexed, sympy.Symbol)
            if str(x.base.label if isinstance(x, sympy.Indexed) else x) != n
        }
        equations: dict[str, Equation] = {}
        for own, left in zip(names, lefts, strict=True):
            role = Role.TEMP if own in read else Role.OUTPUT
            indices = self._left(left)
            made = Tensor(own, tuple(i.space for i in indices), role)
            if self._tensors.setdefault(own, made) != made:
                raise _wrong(f"{own} has different axes in two equations", "give them two names")
        for own, left, right in zip(names, lefts, rights, strict=True):
            lhs = Ref(self._tensors[own], self._left(left))
            self._fresh = {i.name for i in lhs.indices} | {str(s) for s in right.free_symbols}
            terms = tuple(t for flat in self._flat(right) for t in self._finish(flat, lhs))
            old = equations.get(own)
            if old is None:
                equations[own] = Equation(lhs, terms)
            else:
                moved = tuple(rename_left(t, lhs.indices, old.lhs.indices) for t in terms)
                equations[own] = replace(old, terms=old.terms + moved)
        ring = [e.lhs.tensor.name for e in find_cycle(list(equations.values()))]
        if ring:
            text = " -> ".join((*ring, ring[0]))
            raise _wrong(f"these names need each other: {text}", "break the ring")
        inputs = [t for t in self._tensors.values() if t.is_input]
        outputs = [e.lhs.tensor for e in equations.values() if e.lhs.tensor.role is Role.OUTPUT]
        spaces = tuple(self._spaces.values())
        return assemble(name, spaces, inputs, outputs, list(equations.values()))

    def _left(self, left: Any) -> tuple[Index, ...]:
        if isinstance(left, sympy.Indexed):
            indices = tuple(self._index(s, left, n) for n, s in enumerate(left.indices))
            if len(set(indices)) != len(indices):
                raise _wrong(f"the indices of {left} are not distinct", "use different letters")
            return indices
        return ()

    def _finish(self, flat: _Flat, lhs: Ref) -> Iterator[Term]:
        """The term with its implied sums."""
        counts: dict[Index, int] = {}
        for factor in flat.factors:
            held = factor.indices if isinstance(factor, Ref) else factor_indices(factor)
            for index in held:
                counts[index] = counts.get(index, 0) + 1
        free = [i for i in counts if i not in lhs.indices and i not in flat.sums]
        for index in free:
            if counts[index] == 1:
                raise _wrong(
                    f"index {index} occurs once in a term of {lhs} and no Sum binds it",
                    "put it on the left, or write Sum(.., (i, 0, n - 1))",
                )
        ones = tuple(Delta(i, i) for i in flat.sums if i not in counts)
        sums = distinct((*flat.sums, *free))
        resolved = resolve_deltas(Term(flat.coeff, (*flat.factors, *ones), sums))
        if resolved is not None and resolved.coeff:
            yield resolved

    def _flat(self, expr: Any) -> list[_Flat]:
        """Sums of products, brackets multiplied out."""
        match expr:
            case sympy.Add():
                return [f for arg in expr.args for f in self._flat(arg)]
            case sympy.Mul():
                found = [_Flat(Fraction(1))]
                for arg in expr.args:
                    found = [_times(a, b) for a in found for b in self._flat(arg)]
                return found
            case sympy.Sum():
                return self._sum(expr)
            case sympy.Pow() if expr.exp.is_Integer and expr.exp > 0 and _multiplies(expr.base):
                found = [_Flat(Fraction(1))]
                for _ in range(int(expr.exp)):
                    found = [_times(a, b) for a in found for b in self._flat(expr.base)]
                return found
            case _:
                value = self._expr(expr)
                if isinstance(value, Const):
                    return [_Flat(value.value)]
                factor = value if isinstance(value, Ref | Delta) else Apply(value)
                return [_Flat(Fraction(1), (factor,))]

    def _sum(self, expr: Any) -> list[_Flat]:
        """An explicit sum: its letters are new ones inside it."""
        names: dict[Any, Index] = {}
        for limits in expr.limits:
            symbol = limits[0]
            if len(limits) == 3:
                space = self._space(limits[2] - limits[1] + 1, symbol)
            else:
                space = self._index(symbol, expr, None).space
            index = fresh_index(Index(_identifier(symbol), space), self._fresh)
            self._fresh.add(index.name)
            names[symbol] = index
        self._bound.append(names)
        inside = self._flat(expr.function)
        self._bound.pop()
        sums = tuple(names.values())
        return [replace(f, sums=(*f.sums, *sums)) for f in inside]

    def _expr(self, expr: Any) -> Expr:
        """An expression that is evaluated element by element."""
        match expr:
            case sympy.Rational():
                return Const(Fraction(int(expr.p), int(expr.q)))
            case sympy.Float():
                return Const(exact(float(expr)))
            case sympy.Indexed():
                indices = tuple(self._index(s, expr, n) for n, s in enumerate(expr.indices))
                return self._ref(str(expr.base.label), indices)
            case sympy.KroneckerDelta():
                left, right = (self._index(s, expr, None) for s in expr.args[:2])
                return Delta(left, right)
            case sympy.Symbol():
                return self._ref(expr.name, ())
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
                raise _wrong(
                    f"{expr} stands inside a function or denominator",
                    "give it a name in an equation of its own",
                )
            case _:
                raise _wrong(
                    f"{expr} of SymPy's {type(expr).__name__} is not understood",
                    "use Indexed, Sum, KroneckerDelta, numbers, powers and functions",
                )

    def _power(self, base: Any, exponent: Any) -> Expr:
        inner = self._expr(base)
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
        raise _wrong(f"the power {base}**{exponent} is not understood", "use whole or half powers")

    def _ref(self, name: str, indices: tuple[Index, ...]) -> Ref:
        spaces = tuple(i.space for i in indices)
        tensor = self._tensors.setdefault(name, Tensor(name, spaces, Role.INPUT))
        if tensor.spaces != spaces:
            axes = [",".join(s.name for s in found) for found in (tensor.spaces, spaces)]
            raise _wrong(f"{name} has the axes [{axes[0]}] and [{axes[1]}]", "give them two names")
        return Ref(tensor, indices)

    def _index(self, symbol: Any, where: Any, axis: int | None) -> Index:
        for names in reversed(self._bound):
            bound: Index | None = names.get(symbol)
            if bound is not None:
                return bound
        if isinstance(symbol, sympy.Idx) and symbol.upper is not None:
            return Index(_identifier(symbol), self._space(symbol.upper - symbol.lower + 1, symbol))
        shape = where.shape if isinstance(where, sympy.Indexed) and where.base.shape else None
        name = self._letters.get(str(symbol))
        if name is not None:
            return Index(_identifier(symbol), self._spaces.setdefault(name, Space(name)))
        if shape is not None and axis is not None and (symbol.is_Symbol or symbol.is_symbol):
            return Index(_identifier(symbol), self._space(shape[axis], symbol))
        raise _wrong(
            f"index {symbol} of {where} has no range",
            'use Idx("i", n), Sum(.., (i, 0, n - 1)), or spaces={"o": "i j", "v": "a b"}',
        )

    def _space(self, extent: Any, symbol: Any) -> Space:
        extent = sympy.simplify(extent)
        if extent.is_Symbol:
            return self._spaces.setdefault(extent.name, Space(extent.name))
        if extent.is_Integer and extent > 0:
            name = f"n{extent}"
            return self._spaces.setdefault(name, Space(name, int(extent)))
        raise _wrong(
            f"the range of {symbol} has {extent} elements: neither a symbol nor a number",
            "give the range a symbol of its own: n = Symbol('n', integer=True)",
        )


def _multiplies(base: Any) -> bool:
    """True where a power is a product: of Sums, and of elements, as SymPy writes x[i]*x[i]."""
    return isinstance(base, sympy.Indexed) or bool(base.has(sympy.Sum))


def _times(one: _Flat, other: _Flat) -> _Flat:
    return _Flat(one.coeff * other.coeff, one.factors + other.factors, one.sums + other.sums)


def _name(left: Any) -> str:
    return str(left.base.label) if isinstance(left, sympy.Indexed) else str(left)


def _identifier(symbol: Any) -> str:
    return str(symbol.label if isinstance(symbol, sympy.Idx) else symbol).strip("_")


def _wrong(message: str, advice: str) -> SpecError:
    return refuse("<sympy>", 1, "", message, advice)
