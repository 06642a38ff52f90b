"""Element-by-element expressions and products of arrays, in plain NumPy.

An array stands for a function of indices, one for each axis; a repeated index is a diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from ..errors import VerifyError
from ..ir.expr import Access, Call, Const, Delta, Equal, Expr, Pow, Prod, Quot, Sum
from ..ir.tensor import Index, Ref, Space, distinct

Array: TypeAlias = npt.NDArray[Any]
Labelled: TypeAlias = tuple[Array, tuple[Index, ...]]

_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "abs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "conj": np.conj,
    "real": np.real,
    "imag": np.imag,
}


def evaluate_expr(expr: Expr, leaf: Callable[[Ref | Access | Delta | Equal], Array]) -> Array:
    """Value of an expression; ``leaf`` gives arrays that broadcast against each other.

    Division by zero, overflow and the like follow IEEE; call it under ``np.errstate``.
    """
    match expr:
        case Const(value):
            return np.asarray(float(value))
        case Ref() | Access() | Delta() | Equal():
            return leaf(expr)
        case Sum(args):
            total = evaluate_expr(args[0], leaf)
            for arg in args[1:]:
                total = np.add(total, evaluate_expr(arg, leaf))
            return total
        case Prod(args):
            product = evaluate_expr(args[0], leaf)
            for arg in args[1:]:
                product = np.multiply(product, evaluate_expr(arg, leaf))
            return product
        case Quot(num, den):
            return np.asarray(np.true_divide(evaluate_expr(num, leaf), evaluate_expr(den, leaf)))
        case Pow(base, exponent):
            power = np.asarray(np.power(evaluate_expr(base, leaf), abs(exponent)))
            return np.asarray(np.true_divide(1.0, power)) if exponent < 0 else power
        case Call(function, arg):
            if function not in _FUNCTIONS:
                raise VerifyError(f"{function} is no function of expressions")
            return np.asarray(_FUNCTIONS[function](evaluate_expr(arg, leaf)))
        case _:
            assert_never(expr)


def delta(left: Space, right: Space, extents: Mapping[str, int]) -> Array:
    """1 where two positions are the same orbital of the same base space, else 0.

    Example:
        >>> o, v = Space("o"), Space("v")
        >>> delta(Space("p", parts=(o, v)), v, {"o": 1, "v": 2})
        array([[0., 0.],
               [1., 0.],
               [0., 1.]])
    """
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
    """The same function with every index once: repeated indices walk a diagonal."""
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
    """Axes in ``order``, which holds every index of the array; missing ones have length 1."""
    array, found = diagonal(array, indices)
    array = np.transpose(array, [found.index(i) for i in order if i in found])
    length = dict(zip((i for i in order if i in found), array.shape, strict=True))
    return array.reshape(tuple(length.get(i, 1) for i in order))


def reduce_to(array: Array, indices: Sequence[Index], keep: Sequence[Index]) -> Labelled:
    """Diagonals taken and every index outside ``keep`` summed."""
    array, found = diagonal(array, indices)
    gone = tuple(k for k, i in enumerate(found) if i not in keep)
    if gone:
        array = np.asarray(np.sum(array, axis=gone))
    return array, tuple(i for i in found if i in keep)


def multiply(a: Labelled, b: Labelled, keep: Sequence[Index]) -> Labelled:
    """Product of two arrays, summed over the indices outside ``keep``."""
    only_a = [*keep, *b[1]]
    only_b = [*keep, *a[1]]
    x, ai = reduce_to(*a, only_a)
    y, bi = reduce_to(*b, only_b)
    summed = [i for i in ai if i in bi and i not in keep]
    batch = [i for i in ai if i in bi and i in keep]
    left = [i for i in ai if i not in bi]
    right = [i for i in bi if i not in ai]
    indices = (*batch, *left, *right)
    if not summed:
        return np.multiply(align(x, ai, indices), align(y, bi, indices)), indices
    x = np.transpose(x, [ai.index(i) for i in (*batch, *left, *summed)])
    y = np.transpose(y, [bi.index(i) for i in (*batch, *summed, *right)])
    nb, nl, ns = len(batch), len(left), len(summed)
    outer = x.shape[:nb]
    rows, inner, columns = x.shape[nb : nb + nl], x.shape[nb + nl :], y.shape[nb + ns :]
    product = np.matmul(
        x.reshape((*outer, math.prod(rows), math.prod(inner))),
        y.reshape((*outer, math.prod(inner), math.prod(columns))),
    )
    return product.reshape((*outer, *rows, *columns)), indices


def pair_order(
    operands: Sequence[Sequence[Index]], left: Sequence[Index], length: Mapping[Index, int]
) -> list[tuple[int, int, tuple[Index, ...]]]:
    """Greedy order of pairwise products: each entry removes operands m < n, appends the result.

    The pair whose result grows the least over what it replaces goes first; ties go to the fewest
    multiplications, then to the earliest operands.
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
    """Product of any number of arrays, summed over the indices outside ``left``.

    Returns:
        The array and its indices, each once, all of them in ``left``, in any order.
    """
    if not operands:
        return np.asarray(1.0), ()
    rest = [diagonal(*operand) for operand in operands]
    if len(rest) == 1:
        return reduce_to(*rest[0], left)
    for n, operand in enumerate(rest):
        elsewhere = [i for m, (_, indices) in enumerate(rest) if m != n for i in indices]
        rest[n] = reduce_to(*operand, [*left, *elsewhere])
    length = {i: d for array, found in rest for i, d in zip(found, array.shape, strict=True)}
    for m, n, result in pair_order([found for _, found in rest], left, length):
        pair = multiply(rest[m], rest[n], result)
        rest = [r for k, r in enumerate(rest) if k not in (m, n)] + [pair]
    return rest[0]
