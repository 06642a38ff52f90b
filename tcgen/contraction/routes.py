"""Routes an einsum call to a generated kernel or to NumPy, once for each signature of calls."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

# Imported by name, because a program may replace numpy.einsum by tcgen.einsum.
from numpy import einsum as numpy_einsum

from ..compiler.target import with_kernels
from ..errors import DtypeError, EinsumError
from ..frontend.einsum import (
    LETTERS,
    ContractionPath,
    Expression,
    LabelPattern,
    Update,
    contraction_path,
)
from ..options import DTYPES
from ..runtime.call.strided import left_out
from ..runtime.execution import Execution
from .programs import Request, kernel_program, request, written
from .report import count_call

Array = npt.NDArray[Any]
Arrays = tuple[Array, ...]
Dtype = np.dtype[Any]

_NUMPY_OPERANDS = 31  # that the loop of any version of NumPy takes
_LARGE = 2**17  # elements from which a slice is read in place; smaller slices are copied


@dataclass(frozen=True, slots=True)
class Call:
    """One call after its checks.

    Attributes:
        expression: labels of operands and result.
        arrays: the operands as the caller gave them.
        extents: of each label.
        dtype: of the computation; None if NumPy decides (views, objects, text, dates).
        out: array for the result, or None.
        order: of memory: "C", "F", "A" or "K".
        casting: as the caller gave it.
        asked_dtype: as the caller gave it.
        path: order of contraction, or None for the cheapest.
        memory_limit: in bytes, or None.
        least: flops below which NumPy runs the call.
        update: a factor of the product, and whether it is added to ``out``; None for neither.
    """

    expression: Expression
    arrays: Arrays
    extents: tuple[int, ...]
    dtype: Dtype | None
    out: Array | None
    order: str
    casting: str
    asked_dtype: Dtype | None
    path: ContractionPath | None
    memory_limit: int | None
    least: int
    update: Update | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return tuple(self.extents[n] for n in self.expression.output)

    @property
    def view(self) -> bool:
        """NumPy makes a view of its operand, whatever dtype and casting say."""
        return makes_view(self.expression, self.out)

    @property
    def flops(self) -> int:
        """Of one loop nest over all labels."""
        return len(self.arrays) * math.prod(self.extents)

    @property
    def touched(self) -> int:
        """Elements of the operands and of the result."""
        return sum(a.size for a in self.arrays) + math.prod(self.shape)

    @property
    def direct(self) -> bool:
        """A kernel can write the result to ``out``, without a buffer."""
        out = self.out
        return out is not None and out.dtype == self.dtype and out.shape == self.shape

    @property
    def reuses(self) -> bool:
        """Each element is used so often that NumPy's BLAS is about as fast as a kernel."""
        return self.flops > 100_000 and self.flops > 8 * self.touched

    @property
    def pairs(self) -> bool:
        """True where NumPy's products of pairs, with its BLAS, are faster than its own loop.

        NumPy's loop takes 1 to 10 nanoseconds for a flop, more for short innermost axes. Products
        of pairs take 15 microseconds to start and transpose operands; they gain if the operands
        have a summed label in common. On 1275 random calls of fewer than 1,000,000 flops this rule
        loses 9 microseconds on average against the better choice; five calls take four times as
        long.
        """
        if self.flops <= 30_000 + self.touched:
            return False
        summed = set(range(len(self.extents))).difference(self.expression.output)
        return any(
            self.extents[n] > 1 and sum(n in labels for labels in self.expression.inputs) > 1
            for n in summed
        )

    @property
    def swapped(self) -> Dtype | None:
        """Type of a new result whose bytes are to be in another order than the machine's."""
        asked = self.asked_dtype
        new = asked is not None and not asked.isnative and self.out is None and not self.view
        return asked if new else None


def makes_view(expression: Expression, out: Array | None) -> bool:
    """NumPy makes a view of its operand."""
    whole = len(expression.output) == len(expression.names)
    return len(expression.inputs) == 1 and out is None and whole


@dataclass(frozen=True, slots=True, eq=False)
class _Delegated:
    """A call that NumPy runs.

    Attributes:
        row: of the report: expression, element type, route and reason.
        subscripts: in the letters that NumPy accepts.
        keywords: for NumPy.
        scalar: products of pairs leave an array, where NumPy's own loop gives a scalar.
        swapped: type of the result if its bytes are in another order than the machine's; else None.
    """

    row: tuple[str, str, str, str]
    subscripts: str
    keywords: dict[str, Any]
    scalar: bool
    swapped: Dtype | None

    def run(self, arrays: Arrays, out: Array | None) -> Any:
        """The result.

        Raises:
            DtypeError: NumPy cannot multiply elements of this type.
        """
        count_call(self.row)
        try:
            made = numpy_einsum(self.subscripts, *arrays, out=out, **self.keywords)
        except TypeError as error:
            raise DtypeError(f"einsum: {error}") from None
        if self.swapped is not None:
            made = made.astype(self.swapped)
        return made[()] if self.scalar else made


@dataclass(frozen=True, slots=True)
class _OperandView:
    """How an operand is passed to a kernel.

    Attributes:
        index: drops axes that broadcast; None if there are none.
        dtype: to cast to; None if the operand has the kernel's.
        axes: order of axes in memory; None if they are in C order already, or in no order.
    """

    index: tuple[Any, ...] | None
    dtype: Dtype | None
    axes: tuple[int, ...] | None

    def of(self, array: Array) -> Array:
        """The operand as the kernel gets it."""
        if self.index is not None:
            array = array[self.index]
        if self.dtype is not None:
            array = array.astype(self.dtype)
        return array if self.axes is None else array.transpose(self.axes)


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """A call that a kernel runs.

    Attributes:
        row: of the report: expression, element type.
        request: for the program.
        layouts: by name of the operand; None if it is passed as it is.
        layout: axes of the result in the order of memory, the slowest first; None for C order.
        back: the order that transposes the kernel's result back; None for C order.
        direct: the kernel writes to ``out``.
        swapped: type of the result if its bytes are in another order than the machine's; else None.
    """

    row: tuple[str, str]
    request: Request
    layouts: tuple[tuple[str, _OperandView | None], ...]
    layout: tuple[int, ...] | None
    back: tuple[int, ...] | None
    direct: bool
    swapped: Dtype | None

    def run(self, arrays: Arrays, out: Array | None) -> Any:
        """The result.

        Raises:
            MemoryLimitError: no plan fits the limit.
        """
        target, program = with_kernels(self._started)
        operands: dict[str, Array] = {}  # of the kernel's type, as many axes as it has labels
        copied: list[int] = []  # bytes
        for (name, layout), array in zip(self.layouts, arrays, strict=True):
            operands[name] = operand = array if layout is None else layout.of(array)
            if layout is not None and layout.dtype is not None:
                copied.append(operand.nbytes)
        if out is not None and self.direct:
            y = out if type(out) is np.ndarray else out.view(np.ndarray)
            y = y if self.layout is None else y.transpose(self.layout)
            program.call(operands, {"y": y}, copied.append)
            made = out
        else:
            made = program.call(operands, None, copied.append)["y"]
            if self.back is not None:
                made = made.transpose(self.back)
            if out is not None:
                np.copyto(out, made, casting="unsafe")  # the cast was checked before
                copied.append(made.nbytes)
            elif self.swapped is not None:
                made = made.astype(self.swapped)
                copied.append(made.nbytes)
        count_call((*self.row, "kernel", target), sum(copied))
        if out is not None:
            return out
        return made if made.ndim else made[()]

    def _started(self, target: str) -> tuple[str, Execution]:
        """The program for a target, with its kernels loaded."""
        program = kernel_program(self.request, target)
        program.start()
        return target, program


@dataclass(frozen=True, slots=True, eq=False)
class _Repeated:
    """A call in which no operand stores some labels: elements repeat along them in memory.

    Attributes:
        inner: the call without these labels, on operands without these axes.
        indices: of each operand, which drop these axes.
        factor: product of the extents of those labels that are summed.
        kept: axes of the result that the inner call gives, None for one along which it repeats.
        shape: of the result.
        order: of the result's memory.
        dtype: of the computation.
        swapped: type of the result if its bytes are in another order than the machine's; else None.
    """

    inner: Prepared
    indices: tuple[tuple[Any, ...], ...]
    factor: int
    kept: tuple[slice | None, ...]
    shape: tuple[int, ...]
    order: str
    dtype: Dtype
    swapped: Dtype | None

    def run(self, arrays: Arrays, out: Array | None) -> Any:
        """The result.

        Raises:
            MemoryLimitError: no plan fits the limit.
        """
        parts = tuple(array[index] for array, index in zip(arrays, self.indices, strict=True))
        made = np.asarray(self.inner.run(parts, None)).astype(self.dtype, copy=False)
        made = (made if self.factor == 1 else made * self.dtype.type(self.factor))[self.kept]
        if out is not None:
            np.copyto(out, made, casting="unsafe")  # the cast was checked before
            return out
        if not self.shape and self.swapped is None:
            return made[()]
        result = np.empty(self.shape, self.swapped or self.dtype, "F" if self.order == "F" else "C")
        result[...] = made
        return result if self.shape else result[()]


Prepared: TypeAlias = _Delegated | Generated | _Repeated


def prepare(call: Call) -> Prepared | None:
    """The prepared form of a call, for all calls of the same signature.

    None for an update that no kernel can apply to ``out`` in place.
    """
    reason = "a view of the operand" if call.view else why_numpy(call)
    if call.update is not None:
        if reason is not None or stored_nowhere(call) or not (call.out is None or call.direct):
            return None
        return generated(call)
    if reason is None:
        repeated = stored_nowhere(call)
        return _repeated(call, repeated) if repeated else generated(call)
    if call.memory_limit is not None and reason.startswith("no kernels"):
        raise DtypeError(f"memory_limit needs generated code: {reason}; use {', '.join(DTYPES)}")
    return _delegated(call, reason)


def why_numpy(call: Call) -> str | None:
    """The reason why NumPy runs this call; None if a kernel runs it."""
    dtype = call.dtype or call.arrays[0].dtype
    if call.dtype is None or _name(dtype) not in DTYPES:
        return f"no kernels for {_name(dtype)}"
    # A program takes longer to start than its kernel saves.
    small = call.memory_limit is None and call.flops < call.least * (4 if call.reuses else 1)
    fits = len(call.extents) <= len(LETTERS) and len(call.arrays) <= _NUMPY_OPERANDS
    return "tiny" if small and fits else None


def _delegated(call: Call, reason: str) -> _Delegated:
    if len(call.extents) > len(LETTERS):
        raise EinsumError(
            f"{len(call.extents)} labels on {call.dtype or 'object'} arrays: NumPy, which runs "
            f"them, takes {len(LETTERS)}; cast the operands to {', '.join(DTYPES)}"
        )
    keywords: dict[str, Any] = {}
    if call.order != "K":
        keywords["order"] = call.order
    if call.casting != "safe":
        keywords["casting"] = call.casting
    if call.asked_dtype is not None:
        # NumPy's einsum (up to 2.4 at least) fills another order of bytes with numbers in its own.
        keywords["dtype"] = call.asked_dtype.newbyteorder("=")
    if len(call.arrays) > _NUMPY_OPERANDS:
        path = call.path or contraction_path(False, len(call.arrays))
        keywords["optimize"] = ["einsum_path", *(path or ())]
    elif _pays_in_pairs(call):
        keywords["optimize"] = ["einsum_path", *call.path] if call.path is not None else True
    expression = call.expression
    dtype = _name(call.dtype or call.arrays[0].dtype)
    return _Delegated(
        (written(expression), dtype, "numpy", reason),
        in_letters(expression),
        keywords,
        call.out is None and not expression.output and "optimize" in keywords,
        call.swapped,
    )


@lru_cache(maxsize=4096)
def in_letters(expression: Expression) -> str:
    """Subscripts in the letters that NumPy accepts."""
    terms = ("".join(LETTERS[n] for n in labels) for labels in expression.inputs)
    return f"{','.join(terms)}->{''.join(LETTERS[n] for n in expression.output)}"


def _pays_in_pairs(call: Call) -> bool:
    """True if NumPy's products of pairs give the same result in less time.

    They skip checks of casts and compute each pair in the type of its two operands, so they are
    used only if all arrays have one element type.
    """
    if call.dtype is None or call.asked_dtype is not None:
        return False
    one_type = all(a.dtype == call.dtype for a in call.arrays)
    plain = call.out is None or (type(call.out) is np.ndarray and call.direct)
    return one_type and plain and call.pairs


def generated(call: Call) -> Generated:
    """How a kernel runs a call."""
    assert call.dtype is not None
    pairs = list(zip(call.arrays, call.expression.inputs, strict=True))
    stored = {
        n for x, labels in pairs for k, n in enumerate(labels) if _is_stored(x, k, call.extents[n])
    }
    operands = [_operand(x, labels, stored, call.extents, call.dtype) for x, labels in pairs]
    layout = _layout(call)
    output = tuple(call.expression.output[k] for k in layout)
    numbers: dict[int, int] = {}
    inputs = tuple(tuple(numbers.setdefault(n, len(numbers)) for n in t[1]) for t in operands)
    written_gaps = _gaps(call.out.transpose(layout)) if call.out is not None and call.direct else ()
    gaps = (*(t[2] for t in operands), written_gaps)
    kernel = LabelPattern(
        inputs,
        tuple(numbers[n] for n in output),
        gaps if any(gaps) else (),
        call.update,
    )
    dtype = call.dtype.name
    in_order = layout == tuple(range(len(layout)))
    return Generated(
        (written(call.expression), dtype),
        request(
            kernel, tuple(call.extents[n] for n in numbers), dtype, call.path, call.memory_limit
        ),
        tuple((f"x{n}", operand) for n, (operand, _, _) in enumerate(operands)),
        None if in_order else layout,
        None if in_order else tuple(int(k) for k in np.argsort(layout)),
        call.direct,
        call.swapped,
    )


def stored_nowhere(call: Call) -> frozenset[int]:
    """Labels along which the elements of all operands repeat."""
    stored = {
        label
        for array, labels in zip(call.arrays, call.expression.inputs, strict=True)
        for axis, label in enumerate(labels)
        if _is_stored(array, axis, call.extents[label])
    }
    return frozenset(range(len(call.extents))) - stored


def _repeated(call: Call, repeated: frozenset[int]) -> _Repeated:
    assert call.dtype is not None
    indices = tuple(
        (..., *(0 if label in repeated else slice(None) for label in labels))
        for labels in call.expression.inputs
    )
    numbers = {n: k for k, n in enumerate(sorted(set(range(len(call.extents))) - repeated))}
    expression = Expression(
        tuple(tuple(numbers[n] for n in t if n in numbers) for t in call.expression.inputs),
        tuple(numbers[n] for n in call.expression.output if n in numbers),
        tuple(call.expression.names[n] for n in numbers),
    )
    summed = repeated.difference(call.expression.output)
    inner = replace(
        call,
        expression=expression,
        arrays=tuple(a[index] for a, index in zip(call.arrays, indices, strict=True)),
        extents=tuple(call.extents[n] for n in numbers),
        out=None,
        asked_dtype=None if call.asked_dtype is None else call.dtype,
    )
    prepared = prepare(inner)
    assert prepared is not None, "without an update every call has a route"
    return _Repeated(
        prepared,
        indices,
        math.prod(call.extents[n] for n in summed),
        tuple(None if n in repeated else slice(None) for n in call.expression.output),
        call.shape,
        call.order,
        call.dtype,
        call.swapped,
    )


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
) -> tuple[_OperandView | None, tuple[int, ...], tuple[int, ...]]:
    """How a kernel gets an operand, its labels there, and axes that are parts of longer ones.

    Axes are passed in memory order. An operand that a kernel cannot read in place is passed as it
    is and copied. An axis of repeated elements broadcasts if its label is ``stored`` in another
    operand.
    """
    wide = [
        k
        for k, n in enumerate(labels)
        if _is_stored(array, k, extents[n]) or (array.shape[k] == extents[n] and n not in stored)
    ]
    index: tuple[Any, ...] | None = None
    if len(wide) != array.ndim:
        index = (..., *(slice(None) if k in wide else 0 for k in range(array.ndim)))
        array = array[index]
        labels = tuple(labels[k] for k in wide)
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
    as_it_is = index is None and cast is None and axes is None
    return None if as_it_is else _OperandView(index, cast, axes), labels, gaps


def _gaps(array: Array) -> tuple[int, ...]:
    """Axes along which a large array is a slice of a longer one; such arrays are read in place.

    Copying a small array takes less time than compiling a program for its strides.
    """
    skipped = left_out(array) if array.size >= _LARGE else None
    return tuple(axis for axis, elements in enumerate(skipped or ()) if elements)


def _layout(call: Call) -> tuple[int, ...]:
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
    # K: NumPy's choice depends on strides alone, so two elements of each axis show it.
    arguments: list[Any] = []
    for array, labels in zip(call.arrays, call.expression.inputs, strict=True):
        arguments += [array[(slice(0, 2),) * array.ndim], list(labels)]
    return _by_stride(np.asarray(numpy_einsum(*arguments, list(call.expression.output))))


def _by_stride(array: Array) -> tuple[int, ...]:
    """Axes from the longest stride to the shortest; those of equal stride stay in order."""
    return tuple(sorted(range(array.ndim), key=lambda k: -abs(array.strides[k])))


@lru_cache(maxsize=256)
def _name(dtype: Dtype) -> str:
    """Name of an element type; NumPy composes it at each request."""
    return str(dtype)
