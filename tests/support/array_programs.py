"""Random array programs: statements that NumPy arrays and lazy arrays run alike."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = list[Any]
Statement = Callable[[Arrays], None]

SHAPES = ((), (0,), (3,), (2, 3), (3, 1), (0, 3), (2, 3, 2), (1,), (3, 3))
TYPES = ("float64", "float64", "float64", "float32", "int64", "bool", "complex128")
BINARY = (operator.add, operator.sub, operator.mul, np.maximum, np.minimum, operator.truediv)
COMPARED = (operator.lt, operator.eq, operator.ge)
IN_PLACE = (operator.iadd, operator.isub, operator.imul)
UNARY = (operator.neg, abs, np.sin, np.tanh, np.conj, np.square, np.sign, lambda x: x**2)
FUNCTIONS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x.T,
    lambda x: x.copy(),
    lambda x: x.ravel(),
    lambda x: x.reshape(-1),
    lambda x: np.reshape(x, x.shape[::-1]),
    lambda x: x.astype("float32"),
    lambda x: x.swapaxes(0, -1),
    lambda x: x.squeeze(),
    lambda x: np.flip(x),
    lambda x: np.roll(x, 1),
    lambda x: x.sum(0),
    lambda x: np.mean(x, axis=-1, keepdims=True),
    lambda x: x.max(0),
    lambda x: x.cumsum(),
    lambda x: np.clip(x, -1, 1),
    lambda x: np.where(x > 0, x, 0),
    lambda x: (x > 0).any(0),
    lambda x: (x > 0) & (x < 2),
    lambda x: np.maximum(x, x[::-1]),
    lambda x: np.minimum(x, 1),
    lambda x: x % 2,
    lambda x: np.prod(x, axis=0),
    lambda x: x.min(-1, keepdims=True),
    lambda x: (x > 0).sum(),
    lambda x: np.floor(x / 2) * (x != 0),
    lambda x: x[x > 0],
    lambda x: x[[0, -1]],
    lambda x: np.concatenate([x, x[:1]]),
    lambda x: np.concatenate((x[..., ::-1] + 1, x, x[..., :0]), -1),
    lambda x: np.roll(x, (1, -1), (0, -1))[1:],
    lambda x: np.moveaxis(np.expand_dims(x, 1), 0, -1),
    lambda x: np.rot90(np.atleast_2d(x)),
    lambda x: np.array_split(x, 2, -1)[0],
    lambda x: x.reshape(x.shape[0], -1)[:, ::2].T,
    lambda x: x.real,
    lambda x: np.split(x, 3)[1],
    lambda x: x.var(),
    lambda x: x @ x,
    lambda x: x[None, ..., None],
    lambda x: np.sort(x, axis=0),
)


def array_of(rng: np.random.Generator, kind: str) -> Any:
    """A small array of whole numbers, so that sums in another order are the same."""
    shape = SHAPES[rng.integers(len(SHAPES))]
    values = rng.integers(-3, 4, shape)
    if kind == "complex128":
        return np.asarray(values + 1j * rng.integers(-3, 4, shape))
    return np.asarray(values).astype(kind)


def key_of(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """A key of slices, numbers and new axes, seldom one that does not fit."""
    parts: list[Any] = []
    for extent in shape[: rng.integers(len(shape) + 1)] + ((1,) if rng.random() < 0.05 else ()):
        match rng.integers(6):
            case 0:
                parts.append(int(rng.integers(-extent - 1, extent + 1)))
            case 1:
                parts.append(slice(None, None, -1))
            case 2:
                parts.append(slice(None, None, 2))
            case 3:
                parts.append(slice(1, None))
            case 4:
                parts.append(slice(None, -1))
            case _:
                parts.append(slice(None))
    if rng.random() < 0.2:
        parts.insert(int(rng.integers(len(parts) + 1)), Ellipsis)
    if rng.random() < 0.1:
        parts.append(None)
    return tuple(parts)


def _put(place: int, key: Any, value: Callable[[Arrays], Any]) -> Statement:
    def run(arrays: Arrays) -> None:
        arrays[place][key] = value(arrays)

    return run


def _append(make: Callable[[Arrays], Any]) -> Statement:
    return lambda arrays: arrays.append(make(arrays))


def statement_of(rng: np.random.Generator, shapes: list[tuple[int, ...]]) -> Statement:
    """One statement on some arrays, which adds an array or changes one."""
    n, m, k = (int(p) for p in rng.integers(len(shapes), size=3))
    key, other_key = key_of(rng, shapes[n]), key_of(rng, shapes[m])
    number = [2, 0.5, -1, 3][rng.integers(4)]

    def pick(choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    def operand(arrays: Arrays) -> Any:
        return number if use_number else arrays[m][other_key] if use_part else arrays[m]

    use_number, use_part = rng.random() < 0.3, rng.random() < 0.4
    binary, unary, function = pick(BINARY), pick(UNARY), pick(FUNCTIONS)
    compared, change = pick(COMPARED), pick(IN_PLACE)

    def change_part(arrays: Arrays) -> None:
        part = arrays[n][key]
        arrays.append(change(part, operand(arrays)))

    def change_all(arrays: Arrays) -> None:
        arrays[n] = change(arrays[n], operand(arrays))

    def put_masked(arrays: Arrays) -> None:
        arrays[n][arrays[n] > 0] = number

    statements: tuple[Statement, ...] = (
        _append(lambda arrays: binary(arrays[n], operand(arrays))),
        _append(lambda arrays: binary(arrays[n], operand(arrays))),
        _append(lambda arrays: unary(arrays[n])),
        _append(lambda arrays: arrays[n][key]),
        _append(lambda arrays: arrays[n][key]),
        _append(lambda arrays: compared(arrays[n], operand(arrays))),
        _append(lambda arrays: function(arrays[n])),
        _append(lambda arrays: function(arrays[n])),
        _put(n, key, operand),
        _put(n, key, operand),
        change_all,
        change_part,
        put_masked,
        lambda arrays: np.add(arrays[n], operand(arrays), out=arrays[k]),
        lambda arrays: np.copyto(arrays[n][key], operand(arrays)),
        lambda arrays: arrays[n].sort(),
    )
    return pick(statements)


def failed(statement: Statement, arrays: Arrays) -> bool:
    """Run a statement; True if it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            statement(arrays)
        except Exception:  # any of NumPy's
            return True
    return False


def is_array(value: Any) -> bool:
    """True for what later statements may use."""
    return hasattr(value, "shape") and value.size < 200


def check_program(seed: int, make_lazy: Callable[[Any], Any], statements: int = 12) -> None:
    """Run a random program with NumPy's arrays and with lazy ones, and compare all of them.

    Raises:
        AssertionError: naming the seed.
    """
    rng = np.random.default_rng(seed)
    given = [array_of(rng, TYPES[rng.integers(len(TYPES))]) for _ in range(3)]
    kept = [a.copy() for a in given]
    plain, lazy = [a.copy() for a in given], [make_lazy(a) for a in given]
    for number in range(statements):
        statement = statement_of(rng, [np.shape(a) for a in plain])
        outcomes = failed(statement, plain), failed(statement, lazy)
        assert outcomes[0] == outcomes[1], f"seed {seed}, statement {number}: raises {outcomes}"
        if len(plain) > 3 and not is_array(plain[-1]):
            del plain[-1], lazy[-1]
    for number, (wanted, found) in enumerate(zip(plain, lazy, strict=True)):
        said = f"seed {seed}, array {number}: {np.shape(found)}, {found.dtype}"
        assert np.shape(found) == np.shape(wanted), (said, np.shape(wanted))
        assert found.dtype == wanted.dtype, (said, wanted.dtype)
        exact = wanted.dtype.kind in "bi"
        tolerance = 0 if exact else 1e-4 if wanted.dtype.itemsize < 8 else 1e-9
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(
                np.asarray(found), wanted, rtol=tolerance, atol=tolerance, err_msg=said
            )
    for array, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(array, before, err_msg=f"seed {seed}: a given array")
