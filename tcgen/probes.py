"""Probes of programs: random inputs with declared symmetry and safe denominators, and comparison.

Denominators stay away from zero, and arguments of sqrt and log positive, because blocks of inputs
have fixed signs. Orbital energies are the model: ``e_o[i] + e_o[j] - e_v[a] - e_v[b]`` is negative
if all occupied energies are negative and all virtual ones are positive. Each block of a tensor (one
base space on each axis) has one sign, so that this also works for one vector over a joined space.
"""

from __future__ import annotations

import itertools
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from .errors import ArgumentError, MemoryLimitError
from .interp.storage import check_extents
from .interp.systems import evaluate_system
from .ir.expr import (
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
    Sum,
    expr_indices,
    format_expr,
    nodes,
    refs,
)
from .ir.layouts import dense_shape, pack
from .ir.system import Apply, Equation, System, Term
from .ir.tensor import Ref, Role, Space, Tensor, element_type, symmetry_group
from .options import DTYPES

Array: TypeAlias = npt.NDArray[Any]
Signs: TypeAlias = dict[tuple[Tensor, tuple[Space, ...]], int]

_MAX_DRAWS = 20  # draws of all inputs before random_arrays gives up
_MIN_DENOMINATOR = 0.1  # smallest absolute value of a denominator that a draw may have


def random_arrays(
    system: System | Sequence[Tensor],
    extents: Mapping[str, int],
    dtype: str = "float64",
    seed: int = 0,
) -> dict[str, Array]:
    """Random inputs as the caller passes them, and starts of the outputs that accumulate.

    Declared symmetry holds to the last bit (antisymmetric, hermitian, packed, stored order).
    Elements have a normal distribution with standard deviation 1/2. For a system, tensors in
    denominators get values in [1, 2] or [-2, -1], so that each denominator keeps its sign and sqrt
    and log get positive arguments. If no choice of signs protects a denominator, all inputs are
    drawn again until its absolute value is at least 0.1 everywhere. A scalar with a default gets
    that value. Blocks of one family are drawn independently, each with its own symmetry.

    Args:
        system: a system, or its tensors alone (denominators are then unknown).
        extents: extents of the base spaces.
        dtype: element type of the program; tensors declared real are real under complex128 too.
        seed: equal seeds give equal arrays. The elements of a tensor depend on its name and its
            extents, not on the other tensors.

    Returns:
        Arrays by name; see :func:`split_starts`.

    Raises:
        ArgumentError: a denominator is near zero in every draw, or ``dtype`` is unknown.
        ExtentError: an extent is missing.
        MemoryLimitError: an array has 2^63 bytes or more.

    Example:
        >>> from tcgen.ir.tensor import Space, Symmetry
        >>> o = Space("o")
        >>> t = Tensor("t", (o, o), Role.INPUT, symmetry=(Symmetry((1, 0), -1),))
        >>> a = random_arrays((t,), {"o": 3})["t"]
        >>> bool((a == -a.T).all())
        True
    """
    if dtype not in DTYPES:
        raise ArgumentError(f"dtype={dtype!r} is not one of {', '.join(DTYPES)}")
    tensors = system.tensors if isinstance(system, System) else tuple(system)
    check_extents([space for t in tensors for space in t.spaces], extents)
    chosen = [t for t in tensors if t.is_input or (t.role is Role.OUTPUT and t.accumulate)]
    signs: Signs = {}
    unprotected: tuple[Expr, ...] = ()
    spread: list[Tensor] = []
    if isinstance(system, System):
        signs, unprotected = _choose_signs(system)
        spread = [t for expr in unprotected for t in _sources(expr, system)]
    for attempt in range(_MAX_DRAWS):
        arrays = {
            t.name: pack(t, _draw(t, extents, dtype, (seed, attempt), signs, t in spread))
            for t in chosen
        }
        if not isinstance(system, System) or all(
            _smallest(system, expr, arrays, extents) >= _MIN_DENOMINATOR for expr in unprotected
        ):
            return arrays
    raise ArgumentError(
        f"{format_expr(unprotected[0])} comes near zero in each of {_MAX_DRAWS} random draws: "
        f"pass arrays of your own"
    )


def split_starts(
    system: System, arrays: Mapping[str, Array]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The inputs, and the start arrays of outputs that accumulate (the ``out=`` of a call).

    Args:
        system: the equations.
        arrays: those that :func:`random_arrays` returned.
    """
    outputs = {t.name for t in system.outputs}
    inputs = {name: a for name, a in arrays.items() if name not in outputs}
    return inputs, {name: a for name, a in arrays.items() if name in outputs}


def assert_same_values(
    actual: Mapping[str, Any] | Any,
    expected: Mapping[str, Any] | Any,
    rtol: float = 1e-10,
    atol: float = 1e-12,
) -> None:
    """Assert that arrays agree: ``max|x - y| <= max(atol, rtol * max|y|)`` for each.

    Args:
        actual: arrays by name, or one array.
        expected: the same. Where it is not finite, ``actual`` must have the same infinity or NaN.
        rtol: tolerance relative to the largest expected element.
        atol: absolute tolerance, for results that cancel to zero.

    Raises:
        AssertionError: arrays differ; it names the array, the deviation and its position.

    Example:
        >>> assert_same_values({"e": 1.0}, {"e": 1.0 + 1e-14})
    """
    if not isinstance(expected, Mapping):
        actual, expected = {"array": actual}, {"array": expected}
    assert set(actual) == set(expected), (
        f"arrays are {', '.join(sorted(actual))}, expected {', '.join(sorted(expected))}"
    )
    for name in expected:
        x, y = np.asarray(actual[name]), np.asarray(expected[name])
        assert x.shape == y.shape, f"{name}: shape {x.shape}, expected {y.shape}"
        if y.size == 0:
            continue
        finite = np.isfinite(y)
        wrong = ~finite & ~((x == y) | (np.isnan(x) & np.isnan(y)))
        assert not wrong.any(), f"{name}{_first(wrong)} is {x[wrong][0]}, expected {y[wrong][0]}"
        if not finite.any():
            continue
        error = np.abs(np.where(finite, x, 0) - np.where(finite, y, 0))
        scale = float(np.max(np.abs(y[finite])))
        worst = float(np.max(error))
        if not worst <= max(atol, rtol * scale):
            at = _first(error == np.max(error)) if worst == worst else _first(np.isnan(error))
            raise AssertionError(
                f"{name}: max|x - y| = {worst:.3e}, max|y| = {scale:.3e}, "
                f"relative {worst / scale if scale else worst:.3e} above {rtol:.0e}, "
                f"largest at {name}{at}"
            )


def _first(mask: Array) -> str:
    """The position of the first true element, as text."""
    place = [int(k) for k in np.argwhere(mask)[0]]
    return f"[{','.join(map(str, place))}]" if place else ""


def _draw(
    tensor: Tensor,
    extents: Mapping[str, int],
    dtype: str,
    seed: tuple[int, int],
    signs: Signs,
    spread: bool,
) -> Array:
    """A random dense logical array with the symmetry of the tensor.

    ``spread`` gives vectors well separated elements: a denominator is a difference of them.
    """
    kind = element_type(tensor, dtype)
    shape = dense_shape(tensor, extents)
    if tensor.default is not None and tensor.is_input:
        return np.full(shape, float(tensor.default), kind)
    if prod(shape) * np.dtype(kind).itemsize > sys.maxsize:
        raise MemoryLimitError(
            f"{tensor.name} of shape {shape} needs 2^63 bytes or more: choose smaller extents"
        )
    rng = np.random.default_rng([*seed, zlib.crc32(tensor.name.encode())])
    value: Array = np.asarray(rng.normal(scale=0.5, size=shape))
    if spread and tensor.rank == 1:
        value = 1 + rng.permutation(shape[0]) + 0.2 * rng.uniform(size=shape)
    for (owner, block), sign in signs.items():
        if owner == tensor:
            part = []
            for base, space in zip(block, tensor.spaces, strict=True):
                before = space.before(base)
                start = sum(extents[b.name] for b in before or ())
                part.append(slice(start, start + extents[base.name]))
            key: tuple[Any, ...] = (*part, ...)
            value[key] = sign * rng.uniform(1, 2, size=value[key].shape)
    if kind == "complex128":
        small = 0.1 if spread or any(owner == tensor for owner, _ in signs) else 0.5
        value = value + small * 1j * rng.normal(size=shape)
    return _symmetric(tensor, value).astype(kind)


def _symmetric(tensor: Tensor, value: Array) -> Array:
    """The array with exact symmetry: each element is a copy of the first one of its orbit."""
    place = np.arange(value.size).reshape(value.shape)
    others = symmetry_group(tensor)[1:]
    for g in others:  # elements that a symmetry maps to themselves become zero, real or imaginary
        fixed = np.transpose(place, np.argsort(g.perm)) == place
        mate = g.sign * (value.conj() if g.conj else value)
        value = np.where(fixed, (value + mate) / 2, value)
    first, result = place, value
    for g in others:
        axes = np.argsort(g.perm)
        image = np.transpose(place, axes)
        mate = np.transpose(value, axes)
        result = np.where(image < first, g.sign * (mate.conj() if g.conj else mate), result)
        first = np.minimum(image, first)
    return result


def _smallest(
    system: System, expr: Expr, arrays: Mapping[str, Array], extents: Mapping[str, int]
) -> float:
    """Smallest absolute value of an expression over the tensors of a system."""
    indices = expr_indices(expr)
    out = Tensor("|expression|", tuple(i.space for i in indices), Role.OUTPUT)
    equation = Equation(Ref(out, indices), (Term(Fraction(1), (Apply(expr),)),))
    probe = replace(system, tensors=(*system.tensors, out), equations=(*system.equations, equation))
    inputs, starts = split_starts(system, arrays)
    value = np.abs(evaluate_system(probe, inputs, extents, out=starts)[out.name])
    return float(np.min(value, initial=np.inf))


def _choose_signs(system: System) -> tuple[Signs, tuple[Expr, ...]]:
    """Signs of blocks of inputs, and the expressions that no choice of signs keeps from zero."""
    equations = {e.lhs.tensor: e for e in system.equations}
    positive: list[Expr] = []
    nonzero: list[Expr] = []
    for expr in _element_wise(system):
        for part, condition in _conditions(expr):
            (positive if condition == "positive" else nonzero).append(part)
    signs: Signs = {}
    unprotected = []
    for n, expr in enumerate(positive + nonzero):
        for sign in (1,) if n < len(positive) else (-1, 1):
            trial = dict(signs)
            if _require(expr, sign, trial, equations):
                signs = trial
                break
        else:
            unprotected.append(expr)
    return signs, tuple(dict.fromkeys(unprotected))


def _sources(expr: Expr, system: System) -> tuple[Tensor, ...]:
    """The inputs on which an expression depends, directly or through intermediates."""
    equations = {e.lhs.tensor: e for e in system.equations}
    visited: dict[Tensor, None] = {}
    rest = [r.tensor for r in refs(expr)]
    while rest:
        tensor = rest.pop()
        if tensor not in visited:
            visited[tensor] = None
            if tensor in equations:
                rest += [r.tensor for t in equations[tensor].terms for r in t.refs]
    return tuple(t for t in visited if t.is_input)


def _element_wise(system: System) -> Iterator[Expr]:
    """The element-wise expressions of a system."""
    for equation in system.equations:
        for term in equation.terms:
            for factor in term.factors:
                if isinstance(factor, Apply):
                    yield factor.expr


def _conditions(expr: Expr) -> Iterator[tuple[Expr, str]]:
    """Sub-expressions that must be positive (sqrt, log) or nonzero (denominators)."""
    for node in nodes(expr):
        match node:
            case Quot(_, den):
                yield den, "nonzero"
            case Pow(base, exponent) if exponent < 0:
                yield base, "nonzero"
            case Call("sqrt" | "log", arg):
                yield arg, "positive"
            case _:
                pass  # the others are defined everywhere


def _require(expr: Expr, sign: int, signs: Signs, equations: Mapping[Tensor, Equation]) -> bool:
    """Extend ``signs`` so that the expression has ``sign``; False where that is not possible."""
    match expr:
        case Const(value):
            return value * sign > 0
        case Ref():
            return _require_ref(expr, sign, signs, equations)
        case Delta() | Equal():
            return sign > 0  # 0 or 1: a sum with another positive term stays positive
        case Access() | Infinity():
            return False
        case Sum(args):
            return all(_require(a, sign, signs, equations) for a in args)
        case Prod(args):
            return _require_product(args, sign, signs, equations)
        case Quot(num, den):
            return _require(num, sign, signs, equations) and _require(den, 1, signs, equations)
        case Pow(base, exponent):
            if exponent % 2 == 0:
                return sign > 0 and _require(base, 1, signs, equations)
            return _require(base, sign, signs, equations)
        case Call("exp", _):
            return sign > 0
        case Call("abs" | "sqrt", arg):
            return sign > 0 and _require(arg, 1, signs, equations)
        case Call("tanh" | "real" | "conj", arg):
            return _require(arg, sign, signs, equations)
        case Call() | Calls():
            return False
        case _:
            assert_never(expr)


def _require_product(
    args: tuple[Expr, ...], sign: int, signs: Signs, equations: Mapping[Tensor, Equation]
) -> bool:
    """The first factor that is not a number gets the sign that numbers leave; others positive."""
    rest = []
    for arg in args:
        if isinstance(arg, Const):
            sign *= 1 if arg.value > 0 else -1
        else:
            rest.append(arg)
    if not rest:
        return sign > 0 and all(not isinstance(a, Const) or a.value != 0 for a in args)
    factor_signs = (sign, *(1 for _ in rest[1:]))
    return all(_require(a, s, signs, equations) for a, s in zip(rest, factor_signs, strict=True))


def _require_ref(ref: Ref, sign: int, signs: Signs, equations: Mapping[Tensor, Equation]) -> bool:
    """Give the blocks of an input a sign, or require it of the equation of an intermediate."""
    tensor = ref.tensor
    if tensor in equations and not tensor.accumulate:
        return all(_require_term(t, sign, signs, equations) for t in equations[tensor].terms)
    if tensor in equations:
        return False
    if tensor.default is not None:
        return tensor.default * sign >= 0
    for block in itertools.product(*(index.space.bases for index in ref.indices)):
        for g in symmetry_group(tensor):
            image = tuple(block[k] for k in g.perm)
            if signs.setdefault((tensor, image), sign * g.sign) != sign * g.sign:
                return False
    return True


def _require_term(
    term: Term, sign: int, signs: Signs, equations: Mapping[Tensor, Equation]
) -> bool:
    """Require a sign of a term; permutations with a minus sign exclude any."""
    if any(p.sign < 0 for p in term.perms):
        return False
    args = tuple(f.expr if isinstance(f, Apply) else f for f in term.factors)
    return _require_product((Const(term.coeff), *args), sign, signs, equations)
