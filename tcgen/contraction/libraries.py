"""Array libraries behind einsum calls: NumPy for arrays of the CPU, CuPy for those of a GPU.

Calls of both take the same path. A library runs the calls that no kernel takes. Operands of other
GPU libraries become CuPy arrays without a copy, and results become arrays of the caller's library.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np

# Imported by name, because a program may replace numpy.einsum by tcgen.einsum.
from numpy import einsum as numpy_einsum

from ..errors import ArgumentError, DtypeError
from ..frontend.einsum import contraction_path
from ..runtime.dlpack import adopt, hand_back, on_a_gpu
from ..runtime.fork_safe_lock import Once
from ..runtime.gpu.cupy_device import CupyDevice, open_device
from ..runtime.host_device import new_array
from .signature import Array, Signature, check_apart

# Most operands that every supported NumPy accepts in one loop.
MAX_OPERANDS = 31


class Library(Protocol):
    """A library whose arrays are the operands of calls."""

    name: str
    title: str

    def stand_in(self, array: Any) -> Array:
        """A NumPy array with shape, strides and element type of an array of the library."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A new array in C order."""

    def assign(self, out: Any, values: Any) -> object:
        """Copy values to an array of any element type."""

    def keywords(self, call: Signature) -> dict[str, Any]:
        """Keywords of ``einsum`` for a call, ``out`` excepted."""

    def einsum(self, subscripts: str, arrays: tuple[Any, ...], out: Any, keywords: Any) -> Any:
        """The library's einsum; DtypeError if it cannot multiply elements of this type."""


class _NumPy:
    name, title = "numpy", "NumPy"
    empty = staticmethod(new_array)
    assign = staticmethod(partial(np.copyto, casting="unsafe"))

    def stand_in(self, array: Array) -> Array:
        return array

    def keywords(self, call: Signature) -> dict[str, Any]:
        keywords: dict[str, Any] = {}
        if call.order != "K":
            keywords["order"] = call.order
        if call.casting != "safe":
            keywords["casting"] = call.casting
        if call.requested_dtype is not None:
            # NumPy's einsum (up to 2.4 at least) fills arrays of non-native byte order wrongly.
            keywords["dtype"] = call.requested_dtype.newbyteorder("=")
        if len(call.arrays) > MAX_OPERANDS:
            path = call.path or contraction_path(False, len(call.arrays))
            keywords["optimize"] = ["einsum_path", *(path or ())]
        elif takes_pairs(call):
            keywords["optimize"] = ["einsum_path", *call.path] if call.path is not None else True
        return keywords

    def einsum(self, subscripts: str, arrays: tuple[Any, ...], out: Any, keywords: Any) -> Any:
        try:
            return numpy_einsum(subscripts, *arrays, out=out, **keywords)
        except TypeError as error:
            raise DtypeError(f"einsum: {error}") from None


def takes_pairs(call: Signature) -> bool:
    """True if NumPy's products of pairs give the same result in less time.

    They skip checks of casts and compute each pair in the type of its two operands, so they are
    used only if all arrays have one element type.
    """
    if call.dtype is None or call.requested_dtype is not None:
        return False
    one_type = all(a.dtype == call.dtype for a in call.arrays)
    plain = call.out is None or (type(call.out) is np.ndarray and call.direct)
    return one_type and plain and call.suits_pairs


class CuPy:
    """CuPy on one GPU."""

    name, title = "cupy", "CuPy"

    def __init__(self, device: CupyDevice) -> None:
        self.device = device
        self.empty = device.empty

    def stand_in(self, array: Any) -> Array:
        """An array without elements, which nobody may read."""
        return np.lib.stride_tricks.as_strided(
            np.empty(1, array.dtype), array.shape, array.strides, writeable=True
        )

    def assign(self, out: Any, values: Any) -> None:
        """Copy on the current stream."""
        out[...] = values

    def keywords(self, call: Signature) -> dict[str, Any]:
        """Element type, order of contraction, and order of memory."""
        path = len(call.arrays) > 1 if call.path is None else ["einsum_path", *call.path]
        return {"dtype": call.requested_dtype, "optimize": path, "order": call.order}

    def einsum(self, subscripts: str, arrays: tuple[Any, ...], out: Any, keywords: Any) -> Any:
        """``cupy.einsum``, which has neither ``out`` nor ``order``."""
        options = {name: keywords[name] for name in ("dtype", "optimize")}
        result = self.device.einsum(subscripts, *arrays, **options)
        if out is not None:
            out[...] = result
            return out
        order, flags = keywords["order"], result.flags
        fits = {"C": flags.c_contiguous, "F": flags.f_contiguous}.get(order, True)
        return result if fits else result.copy(order=order)


NUMPY = _NumPy()
CUPY = Once(lambda: CuPy(open_device()))


def any_on_gpu(arrays: tuple[Any, ...]) -> bool:
    """True if an operand is on a GPU: then all of them must be."""
    for array in arrays:  # noqa: SIM110  (a generator takes longer than the comparison)
        if type(array) is not np.ndarray and on_a_gpu(array):
            return True
    return False


def any_overrides(arrays: tuple[Any, ...]) -> bool:
    """True if an array is of a class that computes NumPy's functions itself (NEP 18)."""
    for array in arrays:
        if type(array) is not np.ndarray and _override_of(array) is not _NO_OVERRIDE:
            return True
    return False


_NO_OVERRIDE = np.ndarray.__array_function__


def _override_of(array: Any) -> Any:
    return getattr(type(array), "__array_function__", _NO_OVERRIDE)


class GpuOperands:
    """Operands of a call as arrays of CuPy, and ``out`` as one over the memory of the caller's.

    Raises UnavailableError if CuPy or a GPU is missing, ArgumentError if an operand is not on it.
    """

    def __init__(self, given: tuple[Any, ...], out: Any = None) -> None:
        named = {f"operand {n}": array for n, array in enumerate(given)}
        for name, array in (*named.items(), *(() if out is None else (("out", out),))):
            if not on_a_gpu(array):
                raise ArgumentError(
                    f"{name} is a {type(array).__module__}.{type(array).__name__} in the memory of "
                    f"the CPU, but other arrays are in GPU memory: pass cupy.asarray of it"
                )
        self.library = CUPY.get()
        self._caller_out = out
        self._caller_library: str | None = None
        self.arrays = tuple([self._adopt(name, array) for name, array in named.items()])
        self.out = None if out is None else self._adopt("out", out)
        if self.out is not None:
            check_apart(self.out)

    def _adopt(self, name: str, given: Any) -> Any:
        device = self.library.device
        array, library = adopt(device, name, given)
        where = device.elsewhere(array)
        if where is not None:
            raise ArgumentError(f"{name} is on {where}: copy it to the current GPU")
        self._caller_library = self._caller_library or library
        return array

    def for_caller(self, result: Any) -> Any:
        """The caller's ``out``, or the result as an array of the caller's library."""
        if self.out is None:
            return hand_back(result, self._caller_library)
        # The library's stream waits for the kernels.
        hand_back(self.out, self._caller_library)
        return self._caller_out
