"""Signatures of einsum calls: labels, shapes, strides and element types, checked by NumPy's rules.

All calls of one signature pass the same checks and take the same route. The elements of arrays are
not read here, so a stand-in without elements can describe an array of a GPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

# Imported by name, because a program may replace numpy.einsum by tcgen.einsum.
from numpy import einsum as numpy_einsum

from ..errors import ArgumentError, DtypeError, EinsumError, ReadOnlyError, ShapeError
from ..frontend.einsum import ContractionPath, Expression, Update, express, extents_of
from ..runtime.arguments import overlaps_itself

Array = npt.NDArray[Any]
Arrays = tuple[Array, ...]
Dtype = np.dtype[Any]

_PLAIN_KINDS = "biufc"


@dataclass(frozen=True, slots=True)
class Signature:
    """A call after its checks.

    ``arrays`` are operands or stand-ins for them; ``extents`` has that of each label. ``dtype`` is
    that of the computation, or None if the library decides (views, objects, text, dates). ``order``
    is "C", "F", "A" or "K"; ``path`` is None for the cheapest order of contraction, and
    ``memory_limit`` is bytes or None. The library runs calls of fewer than ``min_flops``.
    ``update`` is the factor of the product, and whether it is added to ``out``; None for neither.
    """

    expression: Expression
    arrays: Arrays
    extents: tuple[int, ...]
    dtype: Dtype | None
    out: Array | None
    order: str
    casting: str
    requested_dtype: Dtype | None
    path: ContractionPath | None
    memory_limit: int | None
    min_flops: int
    update: Update | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return tuple(self.extents[n] for n in self.expression.output)

    @property
    def view(self) -> bool:
        """True if NumPy returns a view of the operand, whatever dtype and casting are."""
        return _makes_view(self.expression, self.out)

    @property
    def flops(self) -> int:
        """Flops of one loop nest over all labels."""
        return len(self.arrays) * math.prod(self.extents)

    @property
    def path_flops(self) -> int:
        """Flops of the products of pairs that the path names."""
        terms = [set(labels) for labels in self.expression.inputs]
        flops = 0
        for step in self.path or ():
            taken = [terms[k] for k in step]
            terms = [labels for k, labels in enumerate(terms) if k not in step]
            joined = set().union(*taken)
            flops += len(taken) * math.prod(self.extents[n] for n in joined)
            terms.append(joined & set(self.expression.output).union(*terms))
        return flops

    @property
    def elements(self) -> int:
        """Elements of the operands and of the result."""
        return sum(a.size for a in self.arrays) + math.prod(self.shape)

    @property
    def direct(self) -> bool:
        """True if a kernel can write the result to ``out`` without a buffer."""
        out = self.out
        return out is not None and out.dtype == self.dtype and out.shape == self.shape

    @property
    def suits_blas(self) -> bool:
        """True if each element is used so often that NumPy's BLAS is about as fast as a kernel."""
        return self.flops > 100_000 and self.flops > 8 * self.elements

    @property
    def suits_pairs(self) -> bool:
        """True if NumPy's products of pairs, with its BLAS, are faster than its own loop.

        NumPy's loop takes 1 to 10 nanoseconds for a flop, more for short innermost axes. Products
        of pairs take 15 microseconds to start and transpose operands; they gain if the operands
        have a summed label in common. On 1275 random calls of fewer than 1,000,000 flops this rule
        loses 9 microseconds on average against the better choice; five calls take four times as
        long.
        """
        if self.flops <= 30_000 + self.elements:
            return False
        summed = set(range(len(self.extents))).difference(self.expression.output)
        return any(
            self.extents[n] > 1 and sum(n in labels for labels in self.expression.inputs) > 1
            for n in summed
        )

    @property
    def swapped(self) -> Dtype | None:
        """Element type of a new result with non-native byte order; None for native order."""
        dtype = self.requested_dtype
        new = dtype is not None and not dtype.isnative and self.out is None and not self.view
        return dtype if new else None


def _makes_view(expression: Expression, out: Array | None) -> bool:
    """True if NumPy returns a view of the operand."""
    unsummed = len(expression.output) == len(expression.names)
    return len(expression.inputs) == 1 and out is None and unsummed


def checked(
    subscripts: str | Expression,
    arrays: Arrays,
    out: Any,
    path: ContractionPath | None,
    requested: Dtype | None,
    order: str | None,
    casting: str,
    memory_limit: int | None,
    min_flops: int,
    update: Update | None,
) -> Signature:
    """The signature of a call that keeps NumPy's rules.

    Raises ShapeError, DtypeError or EinsumError if an array or an option does not fit.
    """
    expression = subscripts
    if isinstance(expression, str):
        expression = express(expression, tuple(a.ndim for a in arrays))
    extents = extents_of(expression, tuple(a.shape for a in arrays))
    layout = "K" if order is None else order.upper()
    if layout not in ("C", "F", "A", "K"):
        raise EinsumError(f"order={order!r} is not one of 'C', 'F', 'A' and 'K'")
    if out is not None and update is None:
        check_shape(out, tuple(extents[n] for n in expression.output))
    dtype = None
    if not _makes_view(expression, out):
        types = tuple([a.dtype for a in arrays])
        dtype = _computed_dtype(types, requested, casting, None if out is None else out.dtype)
    return Signature(
        expression,
        arrays,
        extents,
        dtype=dtype,
        out=out,
        order=layout,
        casting=casting,
        requested_dtype=requested,
        path=path,
        memory_limit=memory_limit,
        min_flops=min_flops,
        update=update,
    )


def check_shape(out: Array, shape: tuple[int, ...]) -> None:
    """Apply NumPy's rule for ``out``: an axis may be longer if the result has extent 1 there.

    Raises ShapeError if it has another shape.
    """
    fits = len(shape) == out.ndim
    if not fits or any(n not in (1, m) for n, m in zip(shape, out.shape, strict=True)):
        raise ShapeError(f"out has shape {out.shape}, but the result has shape {shape}")


def check_out(out: object) -> None:
    """Check that results can be written to an array of the CPU.

    Raises ArgumentError if it is not a NumPy array or its elements share memory, ReadOnlyError if
    it is read-only.
    """
    if not isinstance(out, np.ndarray):
        raise ArgumentError(f"out must be a NumPy array, not {type(out).__name__}")
    if not out.flags.writeable:
        raise ReadOnlyError("out is read-only: pass an array to write to")
    check_apart(out)


def check_apart(out: Array) -> None:
    """Raise ArgumentError if elements of an array for results share memory."""
    if overlaps_itself(out):
        raise ArgumentError("elements of out share memory: pass a copy of it")


def read_dtype(requested: npt.DTypeLike, *, native: bool) -> Dtype:
    """The element type that a caller names, or the one of native byte order; else DtypeError."""
    try:
        dtype = np.dtype(requested)
    except TypeError as error:
        raise DtypeError(f"dtype={requested!r}: {error}") from None
    return dtype.newbyteorder("=") if native else dtype


@lru_cache(maxsize=4096)
def _computed_dtype(
    dtypes: tuple[Dtype, ...], requested: Dtype | None, casting: Any, out: Dtype | None
) -> Dtype | None:
    """Element type of the computation; None if the elements are not plain numbers.

    A call of NumPy with operands of one element checks whether the casts are allowed: DtypeError if
    not, EinsumError if ``casting`` is unknown.
    """
    types = [*dtypes, *(d for d in (requested, out) if d is not None)]
    if any(d.kind not in _PLAIN_KINDS for d in types):
        return None
    arguments: list[Any] = []
    for dtype in dict.fromkeys(dtypes):  # NumPy takes few operands at once
        arguments += [np.zeros(1, dtype), [0]]
    keywords: dict[str, Any] = {"casting": casting}
    if requested is not None:
        keywords["dtype"] = requested
    if out is not None:
        keywords["out"] = np.zeros((), out)
    try:
        numpy_einsum(*arguments, [], **keywords)
    except TypeError:
        made = np.result_type(*dtypes, *(() if out is None else (out,)))
        target = made if requested is None else requested
        if out is None or np.can_cast(target, out, casting):
            what, advice = f"operands of {made} to {target}", "cast them"
        else:
            what, advice = f"the result of {target} to out, {out}", f"pass an out of {target}"
        raise DtypeError(
            f"einsum: casting={casting!r} does not cast {what}: {advice}, or pass casting='unsafe'"
        ) from None
    except ValueError as error:
        raise EinsumError(f"einsum: {error}") from None
    if requested is not None:
        return requested.newbyteorder("=")
    return np.result_type(*dtypes, *(() if out is None else (out,))).newbyteorder("=")
