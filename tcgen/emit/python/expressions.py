"""Accesses and expressions in NumPy: whole axes at once, by slices and broadcasting.

Reads level 4. A variable is either a Python integer of an enclosing ``for``, or a vector variable
of the statement: an axis of the broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import assert_never

from ...errors import VerifyError
from ...ir.expr import (
    Access,
    Call,
    Calls,
    Const,
    Delta,
    Equal,
    Expr,
    Infinity,
    Pow,
    Prod,
    Quot,
    Subscript,
    Sum,
)
from ...ir.loops import BandVar, LoopVar
from ...ir.tensor import Packing, Ref, Space
from ..printing import ATOM, PROD, SUM, extent, is_complex, literal
from ..scope import Scope


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vector variables of a statement, in the order of the broadcast's axes."""

    variables: tuple[BandVar, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Their names in the module."""
        return tuple(v.name for v in self.variables)


def py_bounds(var: LoopVar | BandVar, scope: Scope) -> tuple[str, str]:
    """First value of a variable, and the end of its range."""
    low, high = "0", extent(var.space)
    if isinstance(var, BandVar) and var.base is not None:
        low = scope.variables[var.base]
        high = f"min({low} + {var.tile}, {high})"
    if var.below is not None:
        high = f"min({high}, {scope.variables[var.below]} + 1)"
    return low, high


def _offset(offset: tuple[Space, ...]) -> str:
    return "".join(f" + N_{s.name}" for s in offset)


def _scalar(subscript: Subscript, scope: Scope) -> str:
    """A position as a Python integer."""
    text = "0" if subscript.variable is None else scope.variables[subscript.variable]
    if subscript.base is not None:
        base = scope.variables[subscript.base]
        text = "0" if text == base else f"{text} - {base}"
    return f"{text}{_offset(subscript.offset)}".removeprefix("0 + ")


def _points(subscript: Subscript, scope: Scope, vectors: Vectors) -> str:
    """Positions along an axis of the broadcast, or one position."""
    names = vectors.names
    if subscript.variable not in names:
        return _scalar(subscript, scope)
    number = names.index(subscript.variable)
    low, high = py_bounds(vectors.variables[number], scope)
    text = f"_axis({low}, {high}, {number}, {len(names)})"
    if subscript.base is not None:
        text += f" - {scope.variables[subscript.base]}"
    return text + _offset(subscript.offset)


def _slice(subscript: Subscript, scope: Scope, vectors: Vectors) -> str:
    var = vectors.variables[vectors.names.index(subscript.variable or "")]
    low, high = py_bounds(var, scope)
    if subscript.base is not None:
        base = scope.variables[subscript.base]
        if low != base:
            raise VerifyError(f"{subscript} subtracts another base than that of {var.name}")
        return f":{high} - {base}"
    shift = _offset(subscript.offset)
    if shift:
        start = f"{low}{shift}".removeprefix("0 + ")
        return f"{start}:{high}{shift}"
    return f"{'' if low == '0' else low}:{high}"


def is_simple(access: Access, scope: Scope, vectors: Vectors) -> bool:
    """True if slices express it: no packed pair, and no vector variable twice."""
    used = [s.variable for s in access.subscripts if s.variable in vectors.names]
    return not scope.buffers[access.buffer].packed and len(used) == len(set(used))


def sliced(access: Access, scope: Scope, vectors: Vectors) -> tuple[str, list[str]]:
    """``v[i, :N_o, :]`` and the vector variables of its axes, in stored order."""
    parts, letters = [], []
    for axis in scope.buffers[access.buffer].order:
        subscript = access.subscripts[axis]
        if subscript.variable in vectors.names:
            parts.append(_slice(subscript, scope, vectors))
            letters.append(subscript.variable or "")
        else:
            parts.append(_scalar(subscript, scope))
    return f"{scope.names[access.buffer]}[{', '.join(parts) or '()'}]", letters


def transposed(text: str, letters: list[str], wanted: list[str]) -> str:
    """A view with its axes in another order."""
    if letters == wanted:
        return text
    return f"{text}.transpose({', '.join(str(letters.index(v)) for v in wanted)})"


def place(access: Access, scope: Scope, vectors: Vectors) -> tuple[str, list[tuple[str, ...]]]:
    """Index arrays of an access that slices cannot express, and its antisymmetric axes."""
    parts, signed = [], []
    for axis, packing in scope.buffers[access.buffer].stored():
        if packing is None:
            parts.append(_points(access.subscripts[axis], scope, vectors))
            continue
        held = _packed_points(access, packing, scope, vectors)
        parts.append(f"_simplex({packing.antisymmetric}, {', '.join(held)})")
        if packing.antisymmetric:
            signed.append(held)
    return ", ".join(parts), signed


def _packed_points(
    access: Access, packing: Packing, scope: Scope, vectors: Vectors
) -> tuple[str, ...]:
    """Positions on packed axes, in the order of the buffer."""
    axes = (axis for axis in scope.buffers[access.buffer].order if axis in packing.axes)
    return tuple(_points(access.subscripts[axis], scope, vectors) for axis in axes)


def packed_guard(access: Access, scope: Scope, vectors: Vectors) -> str:
    """Condition that a point is in the stored triangles of a packed target."""
    conditions = []
    for _, packing in scope.buffers[access.buffer].stored():
        if packing is not None:
            compare = "greater" if packing.antisymmetric else "greater_equal"
            held = _packed_points(access, packing, scope, vectors)
            conditions += [f"np.{compare}({row}, {column})" for row, column in pairwise(held)]
    return " & ".join(conditions)


def _read(access: Access, scope: Scope, vectors: Vectors) -> str:
    if not is_simple(access, scope, vectors):
        where, signed = place(access, scope, vectors)
        name = scope.names[access.buffer]
        if not signed:
            return f"{name}[{where}]"
        listed = "".join(f"({', '.join(held)}), " for held in signed)
        return f"_signed({name}, ({where},), ({listed.strip()}))"
    text, letters = sliced(access, scope, vectors)
    text = transposed(text, letters, [n for n in vectors.names if n in letters])
    marks = [":" if n in letters else "None" for n in vectors.names]
    while marks and marks[0] == "None":
        marks.pop(0)
    return f"{text}[{', '.join(marks)}]" if "None" in marks else text


def numpy_expression(expr: Expr, scope: Scope, vectors: Vectors, outer: int = 0) -> str:
    """An expression, in brackets if its precedence is below ``outer``."""
    text, level = _expression(expr, scope, vectors)
    return f"({text})" if level < outer else text


def _expression(expr: Expr, scope: Scope, vectors: Vectors) -> tuple[str, int]:
    def inner(e: Expr, level: int) -> str:
        return numpy_expression(e, scope, vectors, level)

    match expr:
        case Const(number):
            return literal(number, "float64"), SUM if number < 0 else ATOM
        case Access():
            return _read(expr, scope, vectors), ATOM
        case Equal(left, right):
            first, second = (_points(s, scope, vectors) for s in (left, right))
            return f"np.where(np.equal({first}, {second}), 1.0, 0.0)", ATOM
        case Sum(args):
            return " + ".join(inner(a, PROD) for a in args), SUM
        case Prod(args):
            return "*".join(inner(a, ATOM if n else PROD) for n, a in enumerate(args)), PROD
        case Quot(num, den) if is_complex(den, scope):
            return f"_divided({inner(num, 0)}, {inner(den, 0)})", ATOM
        case Quot(num, den):
            return f"{inner(num, PROD)}/{inner(den, ATOM)}", PROD
        case Pow(base, exponent):
            # A division by zero raises for Python numbers, and gives infinity or NaN for arrays.
            return f"np.asarray({inner(base, 0)})**{exponent}", PROD
        case Call(function, arg):
            text = inner(arg, 0)
            if is_complex(expr, scope) and not is_complex(arg, scope):
                text = f"np.asarray({text}, complex)"
            return f"np.{function}({text})", ATOM
        case Calls(function, args):
            return _calls(function, [inner(a, 0) for a in args]), ATOM
        case Infinity(sign):
            return ("np.inf", ATOM) if sign > 0 else ("-np.inf", SUM)
        case Ref() | Delta():
            raise VerifyError(f"{expr} is a leaf of an earlier level")
        case _:
            assert_never(expr)


def _calls(function: str, args: list[str]) -> str:
    """A function of several arguments; a comparison is 1 or 0."""
    match function:
        case "less" | "less_equal" | "equal" | "not_equal":
            return f"np.where(np.{function}({', '.join(args)}), 1.0, 0.0)"
        case "where":
            return f"np.where(np.not_equal({args[0]}, 0), {args[1]}, {args[2]})"
        case "pow":
            return f"np.float_power({', '.join(args)})"
        case _:
            return f"np.{function}({', '.join(args)})"
