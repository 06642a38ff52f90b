"""One einsum call: its checks by NumPy's rules, and its way to a kernel or to NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

# Held here, so that a program may put tcgen.einsum in the place of numpy.einsum.
from numpy import einsum as numpy_einsum

from .config import DTYPES, einsum_min_flops, parse_bytes
from .einsum_kernels import count_call, count_tiny, kernel_program, kernel_target
from .errors import ArgumentError, DtypeError, EinsumError, ShapeError
from .frontend.einsum import Kernel, Path, extents_of
from .frontend.subscripts import LETTERS, Expression, express

Array = npt.NDArray[Any]
Dtype = np.dtype[Any]
_PLAIN_KINDS = "biufc"


@dataclass(frozen=True, slots=True)
class _Call:
    """One call after its checks.

    Attributes:
        expression: labels of operands and result.
        arrays: the operands as the caller gave them.
        extents: of each label.
        dtype: in which to compute; None where only NumPy knows (views, objects, text, dates).
    """

    expression: Expression
    arrays: tuple[Array, ...]
    extents: tuple[int, ...]
    dtype: Dtype | None
    out: Array | None
    order: str
    casting: str
    asked_dtype: Dtype | None
    path: Path | None
    memory_limit: int | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return tuple(self.extents[n] for n in self.expression.output)

    @property
    def flops(self) -> int:
        """Of one loop nest over all labels."""
        return len(self.arrays) * math.prod(self.extents)

    @property
    def reuses(self) -> bool:
        """Elements are used many times: a product for the BLAS."""
        return _reuses(self.flops, sum(a.size for a in self.arrays) + math.prod(self.shape))


def run_tiny(operands: tuple[Any, ...], casting: str) -> Any:
    """The result of a small call, straight from NumPy.

    The checks alone cost more than many such calls. It has text and plain NumPy arrays, neither
    output nor element type of its own, and fewer flops than a kernel is started for.

    Returns:
        None where this is no such call, or NumPy refuses it: the checked way says why.
    """
    text, *arrays = operands
    flops = len(arrays)
    kinds = []
    for array in arrays:
        if type(array) is not np.ndarray:
            return None
        flops *= array.size  # no fewer than the elements of the loop nest
        kinds.append((array.ndim, array.dtype))
    least = einsum_min_flops()
    if flops <= 0 or casting not in ("safe", "same_kind", "unsafe"):
        return None
    try:
        optimize = False
        if flops >= least:
            expression = express(text, tuple(rank for rank, _ in kinds))
            extents = dict.fromkeys(expression.output, 1)
            for labels, array in zip(expression.inputs, arrays, strict=True):
                for label, extent in zip(labels, array.shape, strict=True):
                    if extent > extents.get(label, 0):
                        extents[label] = extent
            flops = len(arrays) * math.prod(extents.values())
            touched = sum(a.size for a in arrays)
            touched += math.prod(extents[label] for label in expression.output)
            optimize = _reuses(flops, touched)
            if not _is_small(flops, optimize):
                return None
        made = numpy_einsum(*operands, optimize=optimize)
    except (ValueError, TypeError, IndexError):
        return None
    count_tiny(text, tuple(kinds))
    return made


def _reuses(flops: int, touched: int) -> bool:
    """Each element is used so often that NumPy gains by turning operands for its BLAS."""
    return flops > 100_000 and flops > 8 * touched


def _is_small(flops: int, reuses: bool) -> bool:
    """Starting a program costs more than it saves: NumPy's own way takes less time than that."""
    return flops < einsum_min_flops() * (4 if reuses else 1)


def run_einsum(
    expression: Expression,
    arrays: tuple[Array, ...],
    out: Any,
    path: Path | None,
    dtype: npt.DTypeLike | None,
    order: str | None,
    casting: str,
    memory_limit: str | int | None,
) -> Any:
    """The result of a call whose subscripts are read.

    Args:
        expression: labels of operands and result.
        arrays: the operands.
        out: as the caller gave it.
        path: order of contraction, or None for the cheapest.
        dtype: asked for by the caller.
        order: "C", "F", "A", "K", or None.
        casting: as the caller gave it.
        memory_limit: bytes or text.

    Raises:
        ShapeError, DtypeError, EinsumError, ArgumentError: something does not fit.
        MemoryLimitError: no plan fits the limit.
    """
    extents = extents_of(expression, tuple(a.shape for a in arrays))
    if not isinstance(order, str | None):
        raise ArgumentError(f"order={order!r} is none of 'C', 'F', 'A' and 'K'")
    if order is not None and order.upper() not in ("C", "F", "A", "K"):
        raise EinsumError(f"order={order!r} is none of 'C', 'F', 'A' and 'K'")
    asked = None if dtype is None else _dtype(dtype)
    if out is not None:
        _check_out(out, tuple(extents[n] for n in expression.output))
    # NumPy makes a view whatever dtype and casting say.
    view = len(arrays) == 1 and out is None and len(expression.output) == len(extents)
    types = tuple(a.dtype for a in arrays)
    out_type = None if out is None else out.dtype
    call = _Call(
        expression,
        arrays,
        extents,
        None if view else _computed(types, asked, casting, out_type),
        out,
        (order or "K").upper(),
        casting,
        asked,
        path,
        None if memory_limit is None else parse_bytes(memory_limit),
    )
    reason = "a view of the operand" if view else _why_numpy(call)
    if reason is None:
        return _in_order_of_bytes(_run_kernel(call), call)
    if call.memory_limit is not None and reason.startswith("no kernels"):
        raise DtypeError(f"memory_limit needs generated code: {reason}; use {', '.join(DTYPES)}")
    count_call(expression, _name(call.dtype or arrays[0].dtype), "numpy", reason)
    made = _run_numpy(call)
    return made if view else _in_order_of_bytes(made, call)


def _why_numpy(call: _Call) -> str | None:
    """Why this call is better left to NumPy; None where a kernel runs it."""
    dtype = call.dtype or call.arrays[0].dtype
    if call.dtype is None or _name(dtype) not in DTYPES:
        return f"no kernels for {_name(dtype)}"
    small = call.memory_limit is None and _is_small(call.flops, call.reuses)
    return "tiny" if small and len(call.extents) <= len(LETTERS) else None


def _run_numpy(call: _Call) -> Any:
    if len(call.extents) > len(LETTERS):
        raise EinsumError(
            f"{len(call.extents)} labels on {call.dtype or 'object'} arrays: NumPy, which runs "
            f"them, takes {len(LETTERS)}; cast the operands to {', '.join(DTYPES)}"
        )
    arguments: list[Any] = []
    for array, labels in zip(call.arrays, call.expression.inputs, strict=True):
        arguments += [array, list(labels)]
    # NumPy's own order search drops checks of casts, so it is used for plain calls alone.
    plain = call.dtype is not None and call.asked_dtype is None and call.out is None
    keywords: dict[str, Any] = {"order": call.order, "casting": call.casting}
    if call.asked_dtype is not None:
        # NumPy's einsum (up to 2.4 at least) fills another order of bytes with numbers in its own.
        keywords["dtype"] = call.asked_dtype.newbyteorder("=")
    optimize = plain and call.path is None and call.reuses
    try:
        return numpy_einsum(
            *arguments, list(call.expression.output), out=call.out, optimize=optimize, **keywords
        )
    except TypeError as error:  # of elements that are no plain numbers
        raise DtypeError(f"einsum: {error}") from None


def _run_kernel(call: _Call) -> Any:
    assert call.dtype is not None
    operands: dict[str, Any] = {}
    labels = []
    for number, (given, axes) in enumerate(zip(call.arrays, call.expression.inputs, strict=True)):
        operands[f"x{number}"], turned = _prepared(given, axes, call.extents, call.dtype)
        labels.append(turned)
    layout = _layout(call)
    output = tuple(call.expression.output[k] for k in layout)
    numbers: dict[int, int] = {}
    inputs = tuple(tuple(numbers.setdefault(n, len(numbers)) for n in axes) for axes in labels)
    target = kernel_target()
    program = kernel_program(
        Kernel(inputs, tuple(numbers[n] for n in output)),
        tuple(call.extents[n] for n in numbers),
        dtype=call.dtype.name,
        target=target,
        path=call.path,
        memory_limit=call.memory_limit,
    )
    count_call(call.expression, call.dtype.name, "kernel", target)
    direct = call.out is not None and call.out.dtype == call.dtype and call.out.shape == call.shape
    if call.out is not None and direct:
        program(**operands, out={"y": call.out.view(np.ndarray).transpose(layout)})
        return call.out
    made = program(**operands)["y"].transpose(np.argsort(layout))
    if call.out is None:
        return made[()]
    np.copyto(call.out, made, casting="unsafe")  # the cast was checked before
    return call.out


def _in_order_of_bytes(made: Any, call: _Call) -> Any:
    """A new result in the order of bytes that was asked for."""
    asked = call.asked_dtype
    return made if asked is None or asked.isnative or call.out is not None else made.astype(asked)


def _prepared(
    array: Array, labels: tuple[int, ...], extents: tuple[int, ...], dtype: Dtype
) -> tuple[Array, tuple[int, ...]]:
    """An operand without axes that broadcast, of the kernel's type, its axes in memory order."""
    wide = [k for k, n in enumerate(labels) if array.shape[k] == extents[n]]
    if len(wide) != array.ndim:
        array = array.reshape([array.shape[k] for k in wide])
        labels = tuple(labels[k] for k in wide)
    if array.dtype != dtype:
        array = array.astype(dtype)
    if not array.flags.c_contiguous:
        order = _by_stride(array)
        turned = array.transpose(order)
        if turned.flags.c_contiguous:
            return turned, tuple(labels[k] for k in order)
    return array, labels


def _layout(call: _Call) -> tuple[int, ...]:
    """Axes of the result in the order of memory, the slowest first."""
    rank = len(call.expression.output)
    if call.out is not None:
        return _by_stride(call.out)
    if call.order == "C" or rank < 2 or all(a.flags.c_contiguous for a in call.arrays):
        return tuple(range(rank)) if call.order != "F" else tuple(reversed(range(rank)))
    if call.order == "F" or (call.order == "A" and all(a.flags.f_contiguous for a in call.arrays)):
        return tuple(reversed(range(rank)))
    if call.order == "A" or len(call.extents) > len(LETTERS) or 2 ** len(call.extents) > 4096:
        return tuple(range(rank))
    # K: NumPy's choice depends on strides alone; it is asked with two elements of each axis.
    arguments: list[Any] = []
    for array, labels in zip(call.arrays, call.expression.inputs, strict=True):
        arguments += [array[(slice(0, 2),) * array.ndim], list(labels)]
    return _by_stride(np.asarray(numpy_einsum(*arguments, list(call.expression.output))))


def _by_stride(array: Array) -> tuple[int, ...]:
    """Axes from the longest stride to the shortest; those of equal stride stay in order."""
    return tuple(sorted(range(array.ndim), key=lambda k: -abs(array.strides[k])))


def _check_out(out: Any, shape: tuple[int, ...]) -> None:
    """NumPy's rules for ``out``: it may be longer where the result has extent 1."""
    check_out(out)
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
        raise ArgumentError(f"out must be a NumPy array, found {type(out).__name__}")
    if not out.flags.writeable:
        raise EinsumError("out is read-only: pass an array to write to")


@lru_cache(maxsize=256)
def _name(dtype: Dtype) -> str:
    """Name of an element type, which NumPy puts together anew each time."""
    return str(dtype)


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
    for dtype in dtypes:
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
