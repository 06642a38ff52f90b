"""Calls whose operands live on a GPU: a kernel of ours, or ``cupy.einsum``.

Subscripts and checks are those of calls on the CPU. Operands of other libraries than CuPy are taken
without a copy, and results are given back as their arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiler.program_cache import LeastRecentlyUsed
from ..environment import einsum_min_flops
from ..errors import ArgumentError, EinsumError, ShapeError
from ..frontend.einsum import LETTERS, ContractionPath, Expression, Update
from ..runtime.fork_safe_lock import Once
from ..runtime.gpu.cupy_device import CupyDevice, open_device
from ..runtime.guests import adopt, hand_back, on_a_gpu
from .call import PREPARED_CALLS, check_options, checked
from .programs import kernel_program, written
from .report import count_call
from .routes import Array, Call, Generated, generated, in_letters, stored_nowhere, why_numpy

DEVICE = Once(lambda: open_device())
_UNKNOWN: Any = object()
_prepared: LeastRecentlyUsed[_Delegated | Generated | None] = LeastRecentlyUsed(
    lambda: PREPARED_CALLS
)


def any_on_gpu(arrays: tuple[Any, ...]) -> bool:
    """True if an operand lives on a GPU: then all of them must."""
    for array in arrays:  # noqa: SIM110  (a generator takes longer than the comparison)
        if type(array) is not np.ndarray and on_a_gpu(array):
            return True
    return False


class GpuOperands:
    """Operands of a call as CuPy's arrays.

    Args:
        given: the caller's operands.
        out: the caller's array for the result, or None.

    Attributes:
        device: the current GPU.
        arrays: the operands.
        out: the array for the result, over the memory of the caller's.

    Raises:
        UnavailableError: no CuPy, or no GPU.
        ArgumentError: an operand is not on this GPU.
    """

    def __init__(self, given: tuple[Any, ...], out: Any = None) -> None:
        named = {f"operand {n}": array for n, array in enumerate(given)}
        for name, array in (*named.items(), *(() if out is None else (("out", out),))):
            if not on_a_gpu(array):
                raise ArgumentError(
                    f"{name} is a {type(array).__module__}.{type(array).__name__} in the memory of "
                    f"the CPU, but other arrays are in GPU memory: pass cupy.asarray of it"
                )
        self.device = DEVICE.get()
        self._given_out = out
        self._library: str | None = None
        self.arrays = tuple([self._own(name, array) for name, array in named.items()])
        self.out = None if out is None else self._own("out", out)

    def _own(self, name: str, given: Any) -> Any:
        device = self.device
        own, library = adopt(device, name, given)
        where = device.elsewhere(own)
        if where is not None:
            raise ArgumentError(f"{name} is on {where}: copy it to the current GPU")
        self._library = self._library or library
        return own

    def result(self, made: Any) -> Any:
        """What the caller gets: their ``out``, or the result as an array of their library."""
        if self.out is None:
            return hand_back(made, self._library)
        hand_back(self.out, self._library)  # the library's stream waits for what was written
        return self._given_out


def run_on_gpu(
    subscripts: str | Expression,
    operands: GpuOperands,
    path: ContractionPath | None,
    dtype: npt.DTypeLike | None,
    order: str | None,
    casting: str,
    memory_limit: str | int | None,
    update: Update | None = None,
) -> Any:
    """The result on the GPU; arguments as those of ``run_einsum``.

    Raises:
        ShapeError, DtypeError, EinsumError, ArgumentError: something does not fit.
        MemoryLimitError: no plan fits the limit.
    """
    asked, limit = check_options(dtype, order, casting, memory_limit)
    arrays, out = operands.arrays, operands.out
    kinds = tuple([(a.shape, a.strides, a.dtype) for a in arrays])
    kind = None if out is None else (out.shape, out.strides, out.dtype)
    least = einsum_min_flops()
    key = (subscripts, kinds, kind, path, asked, order, casting, limit, least, update)
    prepared = _prepared.get(key, _UNKNOWN)
    if prepared is _UNKNOWN:
        shadows = tuple([_shadow(a) for a in arrays])
        shadow = None if out is None else _shadow(out)
        options = (path, asked, order, casting, limit, least, update)
        prepared = _prepare(checked(subscripts, shadows, shadow, *options))
        _prepared.add(key, prepared)
    if prepared is None:
        return NotImplemented
    if isinstance(prepared, _Delegated):
        return prepared.run(operands)
    return _kernel(prepared, arrays, out)


def _shadow(array: Any) -> Array:
    """An array of NumPy with shape, strides and element type of one of the GPU; without elements.

    Nobody may read it.
    """
    return np.lib.stride_tricks.as_strided(
        np.empty(1, array.dtype), array.shape, array.strides, writeable=True
    )


class _Delegated:
    """A call that CuPy runs.

    Args:
        call: after its checks.
        reason: why no kernel runs it, for the report.
    """

    def __init__(self, call: Call, reason: str) -> None:
        if len(call.extents) > len(LETTERS):
            raise EinsumError(
                f"{len(call.extents)} labels: CuPy, which runs this call ({reason}), takes "
                f"{len(LETTERS)}"
            )
        dtype = call.dtype or call.arrays[0].dtype
        self._row = (written(call.expression), str(dtype), "cupy", reason)
        self._subscripts = in_letters(call.expression)
        self._dtype = call.asked_dtype
        self._order = call.order
        self._optimize = len(call.arrays) > 1 if call.path is None else ["einsum_path", *call.path]

    def run(self, operands: GpuOperands) -> Any:
        """The result, in ``out`` if there is one."""
        count_call(self._row)
        device, out = operands.device, operands.out
        assert isinstance(device, CupyDevice), "arrays of CuPy are on its device"
        made = device.einsum(
            self._subscripts, *operands.arrays, dtype=self._dtype, optimize=self._optimize
        )
        if out is not None:
            out[...] = made
            return out
        flags = made.flags
        fits = {"C": flags.c_contiguous, "F": flags.f_contiguous}.get(self._order, True)
        return made if fits else made.copy(order=self._order)


def _prepare(call: Call) -> _Delegated | Generated | None:
    """The route of a call; None for an update that no kernel can apply to ``out`` in place."""
    reason = "a view of the operand" if call.view else why_numpy(call)
    if reason is None and stored_nowhere(call):
        reason = "elements that repeat"
    if call.update is not None:
        direct = call.out is None or call.direct
        return generated(call) if reason is None and direct else None
    return generated(call) if reason is None else _Delegated(call, reason)


def _kernel(route: Generated, arrays: tuple[Any, ...], out: Any) -> Any:
    """The result of a kernel, in ``out`` if there is one."""
    program = kernel_program(route.request, "cuda")
    inputs: dict[str, Any] = {}
    copied: list[int] = []  # bytes
    for (name, layout), array in zip(route.layouts, arrays, strict=True):
        inputs[name] = given = array if layout is None else layout.of(array)
        if layout is not None and layout.dtype is not None:
            copied.append(given.nbytes)
    if out is not None and route.direct:
        target = out if route.layout is None else out.transpose(route.layout)
        program.call(inputs, {"y": target}, copied.append)
        made = out
    else:
        made = program.call(inputs, None, copied.append)["y"]
        if route.back is not None:
            made = made.transpose(route.back)
        if out is not None:
            out[...] = made
            made = out
    count_call((*route.row, "kernel", "cuda"), sum(copied))
    return made


def contract_on_gpu(
    subscripts: str,
    operands: GpuOperands,
    path: ContractionPath | None,
    alpha: complex,
    beta: complex,
    exact: tuple[int, int] | None,
) -> Any:
    """``out = alpha*einsum(subscripts, a, b) + beta*out`` on the GPU.

    Args:
        subscripts: of two operands.
        operands: the two, and ``out``.
        path: order of contraction.
        alpha: factor of the product.
        beta: factor of what ``out`` holds.
        exact: ``alpha`` as numerator and denominator, where a kernel may have it in its text.
    """
    options: tuple[Any, Any, Any, Any, Any] = (path, None, "K", "same_kind", None)
    if alpha == 1 and beta == 0:
        return run_on_gpu(subscripts, operands, *options)
    arrays, out = operands.arrays, operands.out
    computed = np.result_type(*(a.dtype for a in arrays))
    same = computed == (computed if out is None else out.dtype)
    if exact is not None and beta in (0, 1) and same:
        update = (*exact, bool(beta == 1))
        made = run_on_gpu(subscripts, operands, *options, update=update)
        if made is not NotImplemented:
            return made
    given, operands.out = out, None
    product = run_on_gpu(subscripts, operands, *options)
    operands.out = given
    if given is None:
        return product * alpha
    if product.shape != given.shape:
        raise ShapeError(
            f'contract("{subscripts}"): out has shape {given.shape}, the result {product.shape}'
        )
    scaled = product if alpha == 1 else product * alpha
    given[...] = scaled if beta == 0 else scaled + given * beta
    return given
