"""The route of a call to a generated kernel: how operands are passed and where the result goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Imported by name, because a program may replace numpy.einsum by tcgen.einsum.
from numpy import einsum as numpy_einsum

from ..compiler.target import with_kernels
from ..frontend.einsum import LETTERS, LabelPattern
from ..runtime.arguments import left_out
from ..runtime.execution import Execution
from .libraries import NUMPY, Library
from .programs import Request, kernel_program, request, written
from .report import count_call
from .signature import Array, Arrays, Dtype, Signature

# Elements of the smallest slice that is read in place; smaller slices are copied.
_MIN_STRIDED_ELEMENTS = 2**17


@dataclass(frozen=True, slots=True)
class OperandView:
    """The view of an operand that is passed to a kernel.

    ``index`` drops broadcast axes, and ``dtype`` is the type to cast to; None if there is nothing
    to do. ``axes`` are in memory order; None for C order, or if no order makes the array
    contiguous.
    """

    index: tuple[Any, ...] | None
    dtype: Dtype | None
    axes: tuple[int, ...] | None

    def of(self, array: Array) -> Array:
        """The view of an array."""
        if self.index is not None:
            array = array[self.index]
        if self.dtype is not None:
            array = array.astype(self.dtype)
        return array if self.axes is None else array.transpose(self.axes)


@dataclass(frozen=True, slots=True, eq=False)
class KernelRoute:
    """Calls that a kernel runs.

    Attributes:
        row: row of the report: expression, element type.
        operands: name and view of each operand; None if the array itself is passed.
        layout: axes of the result in the order of memory, the slowest first; None for C order.
        back: permutation that transposes the kernel's result; None for C order.
        direct: the kernel writes to ``out``.
        subclass: ``out`` is an instance of a subclass of NumPy's array.
        scalar: a new result without axes becomes a NumPy scalar.
        swapped: element type of a new result with non-native byte order, else None.
    """

    library: Library
    row: tuple[str, str]
    request: Request
    operands: tuple[tuple[str, OperandView | None], ...]
    layout: tuple[int, ...] | None
    back: tuple[int, ...] | None
    direct: bool
    subclass: bool
    scalar: bool
    swapped: Dtype | None

    def run(self, arrays: Arrays, out: Any) -> Any:
        """The result, in ``out`` if there is one; MemoryLimitError if no plan fits the limit."""
        started = self._started
        target, program = with_kernels(started) if self.library is NUMPY else started("cuda")
        inputs: dict[str, Array] = {}
        copied: list[int] = []  # bytes
        for (name, view), array in zip(self.operands, arrays, strict=True):
            inputs[name] = operand = array if view is None else view.of(array)
            if view is not None and view.dtype is not None:
                copied.append(operand.nbytes)
        if self.direct:
            y = out.view(np.ndarray) if self.subclass else out
            y = y if self.layout is None else y.transpose(self.layout)
            program.call(inputs, {"y": y}, copied.append)
            result = out
        else:
            result = program.call(inputs, None, copied.append)["y"]
            if self.back is not None:
                result = result.transpose(self.back)
            if out is not None:
                self.library.assign(out, result)  # the cast was checked before
                copied.append(result.nbytes)
                result = out
            elif self.swapped is not None:
                result = result.astype(self.swapped)
                copied.append(result.nbytes)
        count_call((*self.row, "kernel", target), sum(copied))
        return result[()] if self.scalar else result

    def _started(self, target: str) -> tuple[str, Execution]:
        """The program for a target, with its kernels loaded."""
        program = kernel_program(self.request, target)
        program.start()
        return target, program


def kernel_route(call: Signature, library: Library) -> KernelRoute:
    """The route of a call to a kernel."""
    assert call.dtype is not None
    stored = stored_labels(call)
    operands = [
        _operand(x, labels, stored, call.extents, call.dtype)
        for x, labels in zip(call.arrays, call.expression.inputs, strict=True)
    ]
    layout = _layout(call)
    output = tuple(call.expression.output[k] for k in layout)
    numbers: dict[int, int] = {}
    inputs = tuple(tuple(numbers.setdefault(n, len(numbers)) for n in t[1]) for t in operands)
    out_gaps = _gaps(call.out.transpose(layout)) if call.out is not None and call.direct else ()
    gaps = (*(t[2] for t in operands), out_gaps)
    kernel = LabelPattern(
        inputs,
        tuple(numbers[n] for n in output),
        gaps if any(gaps) else (),
        call.update,
    )
    extents = tuple(call.extents[n] for n in numbers)
    dtype = call.dtype.name
    in_order = layout == tuple(range(len(layout)))
    return KernelRoute(
        library,
        (written(call.expression), dtype),
        request(kernel, extents, dtype, call.path, call.memory_limit),
        tuple((f"x{n}", operand) for n, (operand, _, _) in enumerate(operands)),
        None if in_order else layout,
        None if in_order else tuple(int(k) for k in np.argsort(layout)),
        call.direct,
        library is NUMPY and type(call.out) is not np.ndarray,
        library is NUMPY and call.out is None and not output,
        call.swapped,
    )


def stored_labels(call: Signature) -> set[int]:
    """Labels along which an operand has distinct elements in memory; others are broadcast."""
    return {
        label
        for array, labels in zip(call.arrays, call.expression.inputs, strict=True)
        for axis, label in enumerate(labels)
        if _is_stored(array, axis, call.extents[label])
    }


def _is_stored(array: Array, axis: int, extent: int) -> bool:
    """True if the axis is as long as its label and its elements are distinct in memory."""
    return array.shape[axis] == extent and (
        extent == 1 or array.strides[axis] != 0 or not array.size
    )


def _operand(
    array: Array,
    labels: tuple[int, ...],
    stored: set[int],
    extents: tuple[int, ...],
    dtype: Dtype,
) -> tuple[OperandView | None, tuple[int, ...], tuple[int, ...]]:
    """The view of an operand, its labels there, and the axes that are slices of longer ones.

    Axes are passed in memory order. The program copies an operand that a kernel cannot read in
    place. An axis of repeated elements is dropped if its label is stored in another operand.
    """
    kept = [
        k
        for k, n in enumerate(labels)
        if _is_stored(array, k, extents[n]) or (array.shape[k] == extents[n] and n not in stored)
    ]
    index: tuple[Any, ...] | None = None
    if len(kept) != array.ndim:
        index = (..., *(slice(None) if k in kept else 0 for k in range(array.ndim)))
        array = array[index]
        labels = tuple(labels[k] for k in kept)
    cast = None if array.dtype == dtype else dtype
    axes: tuple[int, ...] | None = None
    gaps: tuple[int, ...] = ()
    if not array.flags.c_contiguous:
        order = _by_stride(array)
        transposed = array.transpose(order)
        gaps = _gaps(transposed) if cast is None else ()
        # A cast makes a dense copy in the same order.
        if cast is not None or gaps or transposed.flags.c_contiguous:
            axes = None if order == tuple(range(array.ndim)) else order
            labels = tuple(labels[k] for k in order)
    unchanged = index is None and cast is None and axes is None
    return None if unchanged else OperandView(index, cast, axes), labels, gaps


def _gaps(array: Array) -> tuple[int, ...]:
    """Axes along which a large array is a slice of a longer one; kernels read it in place.

    Copying a small array takes less time than compiling a program for its strides.
    """
    skipped = left_out(array) if array.size >= _MIN_STRIDED_ELEMENTS else None
    return tuple(axis for axis, elements in enumerate(skipped or ()) if elements)


def _layout(call: Signature) -> tuple[int, ...]:
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
    # K: NumPy's choice depends only on strides, so two elements of each axis reproduce it.
    arguments: list[Any] = []
    for array, labels in zip(call.arrays, call.expression.inputs, strict=True):
        arguments += [_two_elements(array), list(labels)]
    return _by_stride(np.asarray(numpy_einsum(*arguments, list(call.expression.output))))


def _two_elements(array: Array) -> Array:
    """A new array with at most two elements along each axis, whose strides sort alike."""
    ranks = {s: n for n, s in enumerate(sorted({abs(s) for s in array.strides if s}))}
    strides = [array.itemsize * 2 ** ranks[abs(s)] if s else 0 for s in array.strides]
    memory = np.zeros(1 + array.ndim * 2 ** len(ranks), array.dtype)
    return np.lib.stride_tricks.as_strided(memory, [min(n, 2) for n in array.shape], strides)


def _by_stride(array: Array) -> tuple[int, ...]:
    """Axes from the longest stride to the shortest; those of equal stride stay in order."""
    return tuple(sorted(range(array.ndim), key=lambda k: -abs(array.strides[k])))
