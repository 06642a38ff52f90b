"""Element-wise expressions and products of arrays with named indices, in plain NumPy.

Each axis of an array has an index; axes with the same index mean the diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from ..errors import VerifyError
from ..ir.expr import (
    ARGUMENT_COUNTS,
    COMPLEX_BELOW_ZERO,
    FUNCTIONS,
    REAL_FUNCTIONS,
    REAL_VALUED,
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
)
from ..ir.reduction import AnyReduction, Reduction, Running
from ..ir.tensor import Index, Ref, Space, distinct

Array: TypeAlias = npt.NDArray[Any]
Labelled: TypeAlias = tuple[Array, tuple[Index, ...]]

# Functions have NumPy's names, except pow.
_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    name: getattr(np, name) for name in (*FUNCTIONS, *REAL_FUNCTIONS)
}


def _where(condition: Array, one: Array, other: Array) -> Array:
    chosen = np.asarray(np.where(condition != 0, one, other))
    return chosen.astype(np.promote_types(chosen.dtype, np.float64), copy=False)


_FUNCTIONS_OF_SEVERAL: dict[str, Callable[..., Array]] = {
    name: np.float_power if name == "pow" else getattr(np, name)
    for name in ARGUMENT_COUNTS
    if name != "where"
}
_REDUCED: dict[Reduction, np.ufunc] = {
    Reduction.SUM: np.add,
    Reduction.MAX: np.maximum,
    Reduction.MIN: np.minimum,
    Reduction.PROD: np.multiply,
}


def evaluate_expr(
    expr: Expr, leaf: Callable[[Ref | Access | Delta | Equal], Array], dtype: str
) -> Array:
    """Value of an expression whose leaves have the values ``leaf(node)``, which are broadcast.

    ``dtype`` is that of the program: in a complex one the square root of -1 is the imaginary unit.
    Division by zero and overflow follow IEEE 754. Call this under ``np.errstate(all="ignore")``.
    """

    def value(part: Expr) -> Array:
        return evaluate_expr(part, leaf, dtype)

    match expr:
        case Const(number):
            return np.asarray(float(number))
        case Infinity(sign):
            return np.asarray(sign * np.inf)
        case Ref() | Access() | Delta() | Equal():
            return leaf(expr)
        case Sum(args):
            total = value(args[0])
            for arg in args[1:]:
                total = np.add(total, value(arg))
            return total
        case Prod(args):
            product = value(args[0])
            for arg in args[1:]:
                product = np.multiply(product, value(arg))
            return product
        case Quot(num, den):
            return np.asarray(np.true_divide(value(num), value(den)))
        case Pow(base, exponent):
            power = np.asarray(np.power(value(base), abs(exponent)))
            return np.asarray(np.true_divide(1.0, power)) if exponent < 0 else power
        case Call(function, arg):
            if function not in _FUNCTIONS:
                raise VerifyError(f"{function} is not a function of expressions")
            given = np.real(value(arg)) if function in REAL_VALUED else value(arg)
            if function in COMPLEX_BELOW_ZERO and dtype == "complex128":
                given = given.astype(np.complex128)
            return np.asarray(_FUNCTIONS[function](given))
        case Calls("where", (condition, *chosen)):
            return _where(np.real(value(condition)), *map(value, chosen))
        case Calls(function, args):
            if function not in _FUNCTIONS_OF_SEVERAL:
                raise VerifyError(f"{function} is not a function of expressions")
            several = [np.real(value(arg)) for arg in args]
            return np.asarray(_FUNCTIONS_OF_SEVERAL[function](*several), np.float64)
        case _:
            assert_never(expr)


def evaluate_over(
    expr: Expr, reference: Callable[[Ref], Array], kronecker: Callable[[Delta], Array], dtype: str
) -> Labelled:
    """Values of an expression over its indices, whose references and deltas have given values."""
    order = expr_indices(expr)

    def leaf(node: Ref | Access | Delta | Equal) -> Array:
        match node:
            case Ref(_, indices):
                return align(reference(node), indices, order)
            case Delta(one, other):
                return align(kronecker(node), (one, other), order)
            case _:
                raise TypeError(f"{node} cannot occur in a system or program")

    return evaluate_expr(expr, leaf, dtype), order


def add_product(
    reduction: AnyReduction,
    coeff: Fraction,
    operands: Sequence[Labelled],
    left: Sequence[Index],
    sums: Sequence[Index],
    targets: Iterable[tuple[int, Array]],
) -> None:
    """Add a product of arrays, or a reduced array, to each target with its sign.

    The axes of a target have the ``left`` indices. A target that is real gets the real part.
    """
    if reduction is Reduction.SUM:
        value = align(*product(operands, left), left) * float(coeff)
    elif isinstance(reduction, Running):
        ufunc, axis = _REDUCED[reduction.each], left.index(sums[0])
        for _, target in targets:
            target[...] = np.broadcast_to(align(*operands[0], left), target.shape)
            ufunc.accumulate(target, axis, out=target)
        return
    else:
        order = (*left, *sums)
        axes = tuple(range(len(left), len(order)))
        value = reduced(reduction, align(*operands[0], order), axes)
    for sign, target in targets:
        part = value if np.iscomplexobj(target) else value.real
        if reduction is Reduction.SUM:
            target += sign * part
        else:
            target[...] = combine(reduction, target, part)


def first_position(index: Index, space: Space, extents: Mapping[str, int]) -> int:
    """First position of the space of an index on an axis of ``space``."""
    before = space.before(index.space)
    assert before is not None, f"{index} does not fit an axis of {space.name}"
    return sum(extents[base.name] for base in before)


def combine(reduction: Reduction, one: Array, other: Array) -> Array:
    """The sum, maximum, minimum or product of elements."""
    return np.asarray(_REDUCED[reduction](one, other))


def combine_at(reduction: Reduction, target: Array, place: tuple[Array, ...], value: Array) -> None:
    """Combine values with the elements of a target, of which one may be named several times."""
    _REDUCED[reduction].at(target, place, value)


def reduced(reduction: Reduction, array: Array, axes: tuple[int, ...] | None) -> Array:
    """An array reduced over some axes, or all; the neutral element if they are empty."""
    start = _neutral(reduction)
    return np.asarray(_REDUCED[reduction].reduce(array, axis=axes, initial=start))


def filled(reduction: AnyReduction, shape: Sequence[int], dtype: npt.DTypeLike) -> Array:
    """An array of neutral elements."""
    return np.full(tuple(shape), _neutral(reduction), dtype)


def _neutral(reduction: AnyReduction) -> float:
    match reduction.neutral:
        case Const(number):
            return float(number)
        case Infinity(sign):
            return sign * math.inf
        case Prod((Const(sign), Const(zero))):
            return float(sign) * float(zero)
        case other:
            raise VerifyError(f"{other} is not a number")


def delta(left: Space, right: Space, extents: Mapping[str, int]) -> Array:
    """Kronecker delta: 1 if both positions are the same orbital of one base space, else 0."""
    starts: dict[Space, int] = {}
    total = 0
    for base in dict.fromkeys(left.bases + right.bases):
        starts[base] = total
        total += extents[base.name]

    def orbitals(space: Space) -> Array:
        each = [starts[base] + np.arange(extents[base.name]) for base in space.bases]
        return np.concatenate(each)

    return np.asarray(orbitals(left)[:, None] == orbitals(right)[None, :], np.float64)


def diagonal(array: Array, indices: Sequence[Index]) -> Labelled:
    """The diagonal over repeated indices: an array in which every index occurs once."""
    names = list(indices)
    for index in dict.fromkeys(indices):
        while names.count(index) > 1:
            first = names.index(index)
            second = names.index(index, first + 1)
            array = np.diagonal(array, axis1=first, axis2=second)
            del names[second], names[first]
            names.append(index)
    return array, tuple(names)


def align(array: Array, indices: Sequence[Index], order: Sequence[Index]) -> Array:
    """The array with axes in ``order``, which has all its indices; new axes have length 1."""
    array, names = diagonal(array, indices)
    array = np.transpose(array, [names.index(i) for i in order if i in names])
    length = dict(zip((i for i in order if i in names), array.shape, strict=True))
    return array.reshape(tuple(length.get(i, 1) for i in order))


def reduce_to(array: Array, indices: Sequence[Index], keep: Sequence[Index]) -> Labelled:
    """The diagonal over repeated indices, summed over every index outside ``keep``."""
    array, names = diagonal(array, indices)
    summed = tuple(axis for axis, i in enumerate(names) if i not in keep)
    if summed:
        array = np.asarray(np.sum(array, axis=summed))
    return array, tuple(i for i in names if i in keep)


def multiply(a: Labelled, b: Labelled, keep: Sequence[Index]) -> Labelled:
    """Product of two arrays, summed over the indices outside ``keep``."""
    x, x_indices = reduce_to(*a, [*keep, *b[1]])
    y, y_indices = reduce_to(*b, [*keep, *a[1]])
    k = [i for i in x_indices if i in y_indices and i not in keep]
    batch = [i for i in x_indices if i in y_indices and i in keep]
    m = [i for i in x_indices if i not in y_indices]
    n = [i for i in y_indices if i not in x_indices]
    indices = (*batch, *m, *n)
    if not k:
        return np.multiply(align(x, x_indices, indices), align(y, y_indices, indices)), indices
    x = np.transpose(x, [x_indices.index(i) for i in (*batch, *m, *k)])
    y = np.transpose(y, [y_indices.index(i) for i in (*batch, *k, *n)])
    batch_shape = x.shape[: len(batch)]
    m_shape = x.shape[len(batch) : len(batch) + len(m)]
    k_shape = x.shape[len(batch) + len(m) :]
    n_shape = y.shape[len(batch) + len(k) :]
    product = np.matmul(
        x.reshape((*batch_shape, math.prod(m_shape), math.prod(k_shape))),
        y.reshape((*batch_shape, math.prod(k_shape), math.prod(n_shape))),
    )
    return product.reshape((*batch_shape, *m_shape, *n_shape)), indices


def pair_order(
    operands: Sequence[Sequence[Index]], left: Sequence[Index], length: Mapping[Index, int]
) -> list[tuple[int, int, tuple[Index, ...]]]:
    """Greedy order of pairwise products, as entries ``(m, n, indices of the result)``.

    Each entry removes the operands at positions m < n from the list and appends their product. The
    pair whose result has the fewest elements more than both operands goes first; among equal pairs
    the one with the fewest multiplications, then the earliest.
    """

    def elements(indices: Sequence[Index]) -> int:
        return math.prod(length[i] for i in indices)

    rest = [distinct(tuple(indices)) for indices in operands]
    order = []
    while len(rest) > 1:
        best = None
        for n in range(len(rest)):
            for m in range(n):
                others = [r for k, r in enumerate(rest) if k not in (m, n)]
                needed = {*left, *(i for r in others for i in r)}
                both = distinct(rest[m] + rest[n])
                result = tuple(i for i in both if i in needed)
                growth = elements(result) - elements(rest[m]) - elements(rest[n])
                key = (growth, elements(both), m, n)
                if best is None or key < best[0]:
                    best = (key, result)
        assert best is not None
        (_, _, m, n), result = best
        rest = [r for k, r in enumerate(rest) if k not in (m, n)] + [result]
        order.append((m, n, result))
    return order


def product(operands: Sequence[Labelled], left: Sequence[Index]) -> Labelled:
    """Product of arrays, summed over the indices outside ``left``; each other one occurs once."""
    if not operands:
        return np.asarray(1.0), ()
    rest = [diagonal(*operand) for operand in operands]
    if len(rest) == 1:
        return reduce_to(*rest[0], left)
    for n, operand in enumerate(rest):
        elsewhere = [i for m, (_, indices) in enumerate(rest) if m != n for i in indices]
        rest[n] = reduce_to(*operand, [*left, *elsewhere])
    length = {i: d for array, names in rest for i, d in zip(names, array.shape, strict=True)}
    for m, n, result in pair_order([names for _, names in rest], left, length):
        pair = multiply(rest[m], rest[n], result)
        rest = [r for k, r in enumerate(rest) if k not in (m, n)] + [pair]
    return rest[0]
