"""One einsum call: its checks by NumPy's rules.

What follows from subscripts, shapes, strides and element types is worked out once: a call of a
known signature needs no checks, and its route is known.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

# Imported by name, because a program may replace numpy.einsum by tcgen.einsum.
from numpy import einsum as numpy_einsum

from ..compiler.program_cache import LeastRecentlyUsed
from ..environment import einsum_min_flops
from ..errors import ArgumentError, DtypeError, EinsumError, ShapeError
from ..frontend.einsum import ContractionPath, Expression, Update, express, extents_of
from ..options import parse_bytes
from .routes import Array, Arrays, Call, Dtype, Prepared, makes_view, prepare

_PLAIN_KINDS = "biufc"
_UNKNOWN: Any = object()
PREPARED_CALLS = 4096  # calls whose checks and route are kept; a few kilobytes each

_prepared: LeastRecentlyUsed[Prepared | None] = LeastRecentlyUsed(lambda: PREPARED_CALLS)


def run_einsum(
    subscripts: str | Expression,
    arrays: Arrays,
    out: Any,
    path: ContractionPath | None,
    dtype: npt.DTypeLike | None,
    order: str | None,
    casting: str,
    memory_limit: str | int | None,
    update: Update | None = None,
) -> Any:
    """The result of a call.

    Args:
        subscripts: as text, or read.
        arrays: the operands.
        out: as the caller gave it.
        path: order of contraction, or None for the cheapest.
        dtype: asked for by the caller.
        order: "C", "F", "A", "K", or None.
        casting: as the caller gave it.
        memory_limit: bytes or text.
        update: a factor of the result, and whether it is added to ``out``.

    Returns:
        The result. NotImplemented, with nothing done, for an update that a kernel cannot apply to
        ``out`` in place.

    Raises:
        ShapeError, DtypeError, EinsumError, ArgumentError: something does not fit.
        MemoryLimitError: no plan fits the limit.
    """
    if out is not None:
        check_out(out)
    asked, limit = check_options(dtype, order, casting, memory_limit)
    kinds = tuple([(a.shape, a.strides, a.dtype) for a in arrays])
    kind = None if out is None else (out.shape, out.strides, out.dtype, type(out))
    least = einsum_min_flops()
    key = (subscripts, kinds, kind, path, asked, order, casting, limit, least, update)
    prepared = _prepared.get(key, _UNKNOWN)
    if prepared is _UNKNOWN:
        prepared = prepare(
            checked(subscripts, arrays, out, path, asked, order, casting, limit, least, update)
        )
        _prepared.add(key, prepared)
    return NotImplemented if prepared is None else prepared.run(arrays, out)


def check_options(
    dtype: npt.DTypeLike | None, order: object, casting: object, memory_limit: str | int | None
) -> tuple[Dtype | None, int | None]:
    """The element type and the memory limit that a call asks for.

    Raises:
        ArgumentError, DtypeError: an option is of the wrong kind.
    """
    if order is not None and not isinstance(order, str):
        raise ArgumentError(f"order={order!r} is not one of 'C', 'F', 'A' and 'K'")
    if not isinstance(casting, str):
        raise DtypeError(f"einsum: casting must be str, not {type(casting).__name__}")
    asked = None if dtype is None else _dtype(dtype)
    return asked, None if memory_limit is None else parse_bytes(memory_limit)


def checked(
    subscripts: str | Expression,
    arrays: Arrays,
    out: Any,
    path: ContractionPath | None,
    asked: Dtype | None,
    order: str | None,
    casting: str,
    limit: int | None,
    least: int,
    update: Update | None,
) -> Call:
    """A call that keeps NumPy's rules.

    Only shapes, strides and element types of the arrays are read.

    Raises:
        ShapeError, DtypeError, EinsumError: something does not fit.
    """
    expression = _expression(subscripts, arrays)
    extents = extents_of(expression, tuple(a.shape for a in arrays))
    layout = "K" if order is None else order.upper()
    if layout not in ("C", "F", "A", "K"):
        raise EinsumError(f"order={order!r} is not one of 'C', 'F', 'A' and 'K'")
    if out is not None and update is None:
        check_shape(out, tuple(extents[n] for n in expression.output))
    computed = None
    if not makes_view(expression, out):
        types = tuple([a.dtype for a in arrays])
        computed = _computed(types, asked, casting, None if out is None else out.dtype)
    return Call(
        expression,
        arrays,
        extents,
        dtype=computed,
        out=out,
        order=layout,
        casting=casting,
        asked_dtype=asked,
        path=path,
        memory_limit=limit,
        least=least,
        update=update,
    )


def _expression(subscripts: str | Expression, arrays: Arrays) -> Expression:
    if isinstance(subscripts, str):
        return express(subscripts, tuple(a.ndim for a in arrays))
    return subscripts


def check_shape(out: Array, shape: tuple[int, ...]) -> None:
    """NumPy's rules for ``out``: it may be longer where the result has extent 1.

    Raises:
        ShapeError: it has another shape.
    """
    fits = len(shape) == out.ndim
    if not fits or any(n not in (1, m) for n, m in zip(shape, out.shape, strict=True)):
        raise ShapeError(f"out has shape {out.shape}, but the result has shape {shape}")


def check_out(out: object) -> None:
    """Results can be written to it.

    Raises:
        ArgumentError: it is no NumPy array.
        EinsumError: it is read-only.
    """
    if not isinstance(out, np.ndarray):
        raise ArgumentError(f"out must be a NumPy array, not {type(out).__name__}")
    if not out.flags.writeable:
        raise EinsumError("out is read-only: pass an array to write to")


def _dtype(asked: npt.DTypeLike) -> Dtype:
    try:
        return np.dtype(asked)
    except TypeError as error:
        raise DtypeError(f"dtype={asked!r}: {error}") from None


@lru_cache(maxsize=4096)
def _computed(
    dtypes: tuple[Dtype, ...], asked: Dtype | None, casting: str, out: Dtype | None
) -> Dtype | None:
    """Element type of the computation; None where the elements are not plain numbers.

    NumPy itself is asked, with operands of one element, whether it allows the casts.

    Raises:
        DtypeError, EinsumError: a cast is not allowed, or ``casting`` is unknown.
    """
    types = [*dtypes, *(d for d in (asked, out) if d is not None)]
    if any(d.kind not in _PLAIN_KINDS for d in types):
        return None
    arguments: list[Any] = []
    for dtype in dict.fromkeys(dtypes):  # NumPy takes few operands at once
        arguments += [np.zeros(1, dtype), [0]]
    keywords: dict[str, Any] = {"casting": casting}
    if asked is not None:
        keywords["dtype"] = asked
    if out is not None:
        keywords["out"] = np.zeros((), out)
    try:
        numpy_einsum(*arguments, [], **keywords)
    except TypeError as error:
        raise DtypeError(f"einsum: {error}: cast the operands, or pass casting='unsafe'") from None
    except ValueError as error:
        raise EinsumError(f"einsum: {error}") from None
    if asked is not None:
        return asked.newbyteorder("=")
    return np.result_type(*dtypes, *(() if out is None else (out,))).newbyteorder("=")


def numpy_casts(
    subscripts: str | Expression, arrays: Arrays, out: Array, optimize: Any, options: dict[str, Any]
) -> bool:
    """True where NumPy writes the result to ``out``, whatever its element type.

    It does so where its BLAS computes the last product, which depends on labels and on the path. So
    it is asked, with at most two elements along each axis.
    """
    if not isinstance(subscripts, str):
        return False

    def small(array: Array) -> Array:
        return np.zeros([min(n, 2) for n in array.shape], array.dtype)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of discarded imaginary parts
            operands = map(small, arrays)
            numpy_einsum(subscripts, *operands, out=small(out), optimize=optimize, **options)
    except (TypeError, ValueError):
        return False
    return True
