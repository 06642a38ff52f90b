"""Programs on arrays that NumPy's arrays and lazy ones run alike.

A program takes the arrays that it names: ``x`` and ``y`` of real numbers, ``i`` of integers, ``b``
of booleans, ``z`` and ``w`` of complex numbers; all have 6 rows and 7 columns.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

Work = Callable[..., Any]
_RANDOM = np.random.default_rng(0)
X, Y = _RANDOM.standard_normal((2, 6, 7))
ARRAYS: dict[str, Any] = {
    **{"x": X, "y": Y, "z": X + 1j * Y, "w": Y - 1j * X[::-1]},
    "i": _RANDOM.integers(-3, 4, (6, 7)),
    "b": _RANDOM.random((6, 7)) > 0.5,
}
_SINGLE = {"f": "float32", "c": "complex64"}


def given(work: Work, single: bool = False) -> list[Any]:
    """Copies of the arrays that a program names, in single precision on request."""
    arrays = [ARRAYS[name] for name in signature(work).parameters]
    return [a.astype(_SINGLE.get(a.dtype.kind, a.dtype)) if single else a.copy() for a in arrays]


def check(work: Work, lazy: Work, values: Work = np.asarray, single: bool = False) -> int:
    """Compare a program on lazy arrays with NumPy; the number of operations that were pending.

    ``lazy`` makes a lazy array, and ``values`` takes the values of a result.
    """
    wanted = np.asarray(work(*given(work, single)))
    found = work(*map(lazy, given(work, single)))
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    pending = getattr(found, "pending", 0)
    tolerance = 1e-5 if single else 1e-12
    np.testing.assert_allclose(values(found), wanted, rtol=10 * tolerance, atol=tolerance)
    return int(pending)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def red_black(x: Any, y: Any) -> Any:
    x[1::2] -= 0.5 * (y[1::2] - y[::2])
    x[:, 1:-1] += 0.25 * (y[:, 2:] - y[:, :-2])
    return x + y


def periodic(x: Any, y: Any) -> Any:
    return y + 0.1 * (np.roll(x, 1, 0) + np.roll(x, (1, -1), (0, 1)) - 2 * x)


def updated(x: Any, y: Any) -> Any:
    before = x * 2
    part = x[1:]
    part += y[1:]
    x[0] = 5
    x[2, 1:3] = y[0, 1:3]
    np.maximum(x, 0, out=x)
    return before + x


def escaped(z: Any, c: Any) -> Any:
    """Points that leave a disk keep their last place."""
    count = np.abs(c) * 0
    for _ in range(5):
        inside = abs(z) < 2.0
        count = count + inside
        z = np.where(inside, z * z + c, z)
    return z, count


def masked_update(z: Any, b: Any) -> Any:
    z = z * 1
    z[:] = np.where(b, z * 2, z)
    z += np.where(b, 1j, z)
    return z


# Programs whose last operations are recorded.
RECORDED: dict[str, Work] = {
    "maximum": lambda x, y, i, b: np.maximum(x, y) + np.minimum(x, 0.5),
    "where": lambda x, y, i, b: np.where(x > y, x, -y),
    "masks": lambda x, y, i, b: np.where((x > 0) & (y <= 0.5) | ~(x != y), x, 0.0),
    "xor": lambda x, y, i, b: (x > 0) ^ (y > 0),
    "clip": lambda x, y, i, b: np.clip(x, -0.5, 0.5) + x.clip(0),
    "comparison": lambda x, y, i, b: x >= y,
    "number first": lambda x, y, i, b: 0.2 < x,  # noqa: SIM300
    "equal": lambda x, y, i, b: x * 0 == 0,
    "max": lambda x, y, i, b: (x * y).max(),
    "max over rows": lambda x, y, i, b: np.max(abs(x), axis=0),
    "min": lambda x, y, i, b: (x + y).min(1, keepdims=True),
    "prod": lambda x, y, i, b: np.prod(x, axis=1),
    "any": lambda x, y, i, b: (x > 2).any(0),
    "all": lambda x, y, i, b: np.all(x < 2),
    "argmax": lambda x, y, i, b: (x * y).argmax(1),
    "argmax over columns": lambda x, y, i, b: np.argmax(abs(x - y), axis=0, keepdims=True),
    "argmin": lambda x, y, i, b: np.argmin(x[1:, ::2] * 2, 1),
    "max of masks": lambda x, y, i, b: (x > 0).max(1),
    "integers": lambda x, y, i, b: x * i + y / (i + 5),
    "booleans": lambda x, y, i, b: x * b + (x > 0) * y,
    "power": lambda x, y, i, b: abs(x) ** y + abs(x) ** 1.7 + 2.0**x,
    "more functions": lambda x, y, i, b: np.cbrt(x) + np.exp2(x) + np.hypot(x, y) + np.log1p(x * x),
    "near zero": lambda x, y, i, b: np.expm1(x / 1e9) + np.rint(x * 2) + np.logaddexp(x, y * 50),
    "flipped": lambda x, y, i, b: np.flip(x * y, 1) + np.flip(x - y) + np.flip(y * 2, (0, 1)),
    "split": lambda x, y, i, b: sum(np.split(x * y, 3)) + np.array_split(x + y, 4, 1)[1][:2, :1],
    "differences": lambda x, y, i, b: np.diff(x * y, axis=0) - np.diff(x.T).T,
    "merged axes": lambda x, y, i, b: (x * y + 1).reshape(-1) * 2 + (x - 2.0).ravel(),
    "merged axes of functions": lambda x, y, i, b: (
        (lambda e: e.reshape(-1)[3:] * e.sum(0).max())(np.exp(x.T)) + np.exp(y).ravel()[3:]
    ),
    "split axes": lambda x, y, i, b: (
        (x * y).reshape(2, 3, -1).sum(1) / (y + 1).reshape((2, -1)).max()
    ),
    "slices of functions": lambda x, y, i, b: (
        np.exp(x)[1:, 2] * np.tanh(y + x)[::-1].T[2, :-1] + np.sin(np.roll(x, 2, 1))[2:3, 3]
    ),
    "slices of sums": lambda x, y, i, b: np.exp(x - x.max(1, keepdims=True))[1:] / y[1:].sum(),
    "slices and the whole": lambda x, y, i, b: (
        lambda e: e[1:].sum(0) / e.sum(0) + e[:, None][::2, 0].max()
    )(np.exp(x)),
    "joined": lambda x, y, i, b: np.concatenate([x + 1, y, np.exp(x[:2])]) * 2,
    "joined and rolled": lambda x, y, i, b: (
        (
            np.concatenate((np.roll(x, 2, 0), y[:, :1], np.ones((6, 2))), -1)
            - np.roll(x[:, :1], 2, 0)
        )[1:, ::-1]
        ** 2
    ),
    "sum of joined": lambda x, y, i, b: (
        np.concatenate((x[::-1], y))[2:9:2] + np.concatenate((x, y)).sum(0)
    ),
    "sums with new axes": lambda x, y, i, b: (
        x / x.sum(1)[:, None] + y.sum(0)[None] - (x * y).max(1).reshape(6, 1)
    ),
    "other axes": lambda x, y, i, b: (
        np.squeeze(np.expand_dims(x * y, (0, 2)), 0)[:, 0] + np.rot90(x + y, 2)
    ),
    "slices of slices": lambda x, y, i, b: np.exp(np.cos(x * y)[:, ::2])[::-1][1:, :1] + 0 * y[1:],
    "functions": lambda x, y, i, b: np.tan(x) + np.sinh(x) + np.cosh(y) + np.arctan2(x, y),
    "inverse": lambda x, y, i, b: np.arcsin(x / 9) + np.arccos(y / 9) + np.arctan(x),
    "whole parts": lambda x, y, i, b: np.floor(x) + np.sign(y) + np.mod(x, y) + x % 2,
    "variance": lambda x, y, i, b: x.var(0) + x.std(0),
    "softmax": lambda x, y, i, b: softmax(x),
    "slices": lambda x, y, i, b: np.maximum(x, y)[1:, ::2] - np.where(x > 0, x, y)[:-1, ::2],
    "transposed": lambda x, y, i, b: (x > 0).T,
    "sums of chosen elements": lambda x, y, i, b: (
        np.sum(x * y, axis=0, where=b) + x.sum(0, where=y > 0) + np.where(b, x, np.inf).sum(where=b)
    ),
    "sums of elements by a mask": lambda x, y, i, b: (
        (x * y)[b].sum() + x[y > 0].prod() / np.mean(np.exp(x)[x < y]) + np.add.reduce(y[b * 1 > 0])
    ),
    "elements by a mask": lambda x, y, i, b: (
        x[x > y] * 2 + (y + 1)[x > y][::-1] - x[x > y].sum(0, keepdims=True)
    ),
    "product of chosen elements": lambda x, y, i, b: np.multiply.reduce(x * 2, where=b[0]),
    "no numbers": lambda x, y, i, b: np.isnan(np.where(b, x, np.nan) * y),
    "reciprocal": lambda x, y, i, b: np.reciprocal(x + y) - np.reciprocal(x),
    "masked sum": lambda x, y, i, b: np.sum(np.where(b, x, 0) * i),
    "where whole": lambda x, y, i, b: np.where(b, x * 2, 1.0),
    "tensordot": lambda x, y, i, b: 2 + np.tensordot(x, y.T, 1) + np.tensordot(x, y, axes=(1, -1)),
    "tensordot of sums": lambda x, y, i, b: np.tensordot(x + y, x[:3] * 2, ([1], [1])),
    "outer product": lambda x, y, i, b: np.tensordot(x, y, 0) * 2,
    "tensordot of three axes": lambda x, y, i, b: (
        np.tensordot(x.reshape(2, 3, 7), y.reshape(7, 3, 2), ((1, 2), (1, 0))) - 1
    ),
    "chain of functions": lambda x, y, i, b: (
        np.sin(x) ** 2 + np.cos(y) * np.exp(-x) - 2 / (3 + abs(y))
    ),
    "broadcast": lambda x, y, i, b: x[:, None, :] - y[None, :, :1],
    "stencil": lambda x, y, i, b: (x[1:-1, 2:] + x[1:-1, :-2] + x[2:, 1:-1] + x[:-2, 1:-1]) / 4,
    "reversed": lambda x, y, i, b: x[::-1, ::2] * y[:, ::-2] + (x + y)[::-1, ::2],
    "product": lambda x, y, i, b: np.einsum("ij,kj->ik", x, y) + 1,
    "red-black": lambda x, y, i, b: red_black(x, y),
    "periodic": lambda x, y, i, b: periodic(x, y),
    "updates": lambda x, y, i, b: updated(x, y),
    "roll 0": lambda x, y: np.roll(x, 1, 0),
    "roll 2": lambda x, y: np.roll(x, 0, 1) + y,
    "roll 3": lambda x, y: np.roll(x, (1, 2), (0, 0)) - y,
    "roll 4": lambda x, y: np.roll(x, [1, 2], [0, 1]) - y,
    "roll 5": lambda x, y: np.roll(x, 1, (0, 1)) - y,
    "roll 6": lambda x, y: np.roll(x.T, 2, 1).T + y,
    "roll 7": lambda x, y: np.roll(x[::-1, 1:], -7, 0) + y[:, 1:],
    "roll 8": lambda x, y: np.roll(x + y, 1, 1) * y,
    "roll 9": lambda x, y: (np.roll(x, 1, 0) * y).sum(0),
    "roll 10": lambda x, y: np.roll(x, 1, 0) @ y.T,
    "roll 11": lambda x, y: (np.roll(x, 1, 0) + y)[1:, ::2] - np.roll(y, 1, 1)[1:, ::2],
    "roll 12": lambda x, y: np.roll(x[0], 2) + y,
    "roll 13": lambda x, y: np.roll(x[:1], 2, 1) + y,
    "roll 14": lambda x, y: np.where(np.roll(x, 1, 0) > y, x, np.roll(y, 1, 1)),
    "roll 15": lambda x, y: (np.roll(x, 1, 0) + y).argmax(1),
    "roll 16": lambda x, y: np.exp(np.roll(x, 1, 1)).max() + y,
    "complex: divided by zero": np.errstate(all="ignore")(lambda z, w, x, b: z / (w * b)),
    "complex: chosen": lambda z, w, x, b: np.where((x > 0) & ~b, z * w, 1j)[1:, ::2] + b[1:, ::2],
    "complex: chosen by integers": lambda z, w, x, b: np.where(b, np.where(x > 0, z, 2), b) @ w.T,
    "complex: escaped": lambda z, w, x, b: escaped(z * 2, w)[0],
}
# Programs that end with NumPy's work on the values, or with an update.
OTHERS: dict[str, Work] = {
    "reciprocal of whole numbers": lambda x, y, i, b: np.reciprocal(i * 0 + 2) + np.isnan(i),
    "mean of chosen elements": lambda x, y, i, b: (
        (x * y).mean(0, where=b) + x.max(0, where=b, initial=0)
    ),
    "sum of chosen masks": lambda x, y, i, b: (x > 0).sum(0, where=b) + np.sum(x, where=b[:1]),
    "methods of numbers": lambda x, y, i, b: x.sum().max().astype("f4") + (y > 0).all().T.var(),
    "count": lambda x, y, i, b: (x > 0).sum(),
    "mean of masks": lambda x, y, i, b: (x > 0).mean(0),
    "mask product": lambda x, y, i, b: (x > 0) * b,
    "mask sum": lambda x, y, i, b: (x > 0) + (y > 0),
    "masks chosen": lambda x, y, i, b: np.where(x > 0, b, y > 0),
    "mask as index": lambda x, y, i, b: x[x > 0],
    "cast": lambda x, y, i, b: -(x > 0).astype(float),
    "mask of whole": lambda x, y, i, b: (i > 0) * x,
    "masked": lambda x, y, i, b: (x + 0) * (1 - (x > 0)),
    "tensordot of all axes": lambda x, y, i, b: np.tensordot(x, y),
    "tensordot of integers": lambda x, y, i, b: np.tensordot(x, i, (0, 0)),
    "reduce": lambda x, y, i, b: np.maximum.reduce(x) + np.multiply.reduce(y),
    "cupy: cumsum": lambda x, y, i, b: np.cumsum(x * 2, axis=1),
    "cupy: sort": lambda x, y, i, b: np.sort(x + y, axis=0),
    "cupy: joined types": lambda x, y, i, b: np.concatenate([x + 1, i]),
    "joined without an axis": lambda x, y: np.concatenate([x, y], axis=None),
    "cupy: reshape": lambda x, y, i, b: (x + y).reshape(7, 6),
    "cupy: masked": lambda x, y, i, b: x[x > 0] * 2,
    "cupy: cast": lambda x, y, i, b: (x * 2).astype("float32"),
    "cupy: integers": lambda x, y, i, b: i // 2,
    "complex: count": lambda z, w, x, b: sum(escaped(z * 2, w)),
    "complex: pending factor": lambda z, w, x, b: z * (x > 0) + (x < 1) * w - (x > 0),
    "complex: real and complex": lambda z, w, x, b: np.where(b, z, x),
    "complex: real": lambda z, w, x, b: np.where(b, z.real, x) + np.where(x > 0, 1j, x),
    "complex: complex condition": lambda z, w, x, b: np.where(z * (x > 0), z, w),
    "complex: update": lambda z, w, x, b: masked_update(z, b),
    "roll without an axis": lambda x, y: np.roll(x, 3),
}
