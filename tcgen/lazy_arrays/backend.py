"""The memory of lazy arrays: that of the CPU with NumPy, or that of a GPU with CuPy.

Both libraries have the same functions, and NumPy's own take CuPy's arrays, whose library then runs
them. A backend hides the differences: allocation, how values are handed out, and which kernels read
them. CuPy is not imported: its arrays bring it.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..compiler.target import kernel_target
from ..errors import ArgumentError
from ..runtime.dlpack import adopt, on_a_gpu
from ..runtime.gpu.cupy_device import CupyDevice, open_device
from ..runtime.host_device import MIN_POOLED_BYTES, HostDevice

Array: TypeAlias = npt.NDArray[Any]  # or of CuPy, which has the same functions


class Backend:
    """Arrays in the memory of the CPU, and NumPy, which runs operations without a kernel."""

    on_gpu = False
    least_pooled: float = MIN_POOLED_BYTES  # bytes of an array; the library allocates smaller ones
    module: Any = np
    array_type: type[Any] = np.ndarray

    def __init__(self) -> None:
        self._pool = HostDevice(reuse=True)  # has pages that the system has mapped before

    def target(self) -> str:
        """Target of the kernels that read its arrays."""
        return kernel_target()

    def pooled(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory for a result of at least ``least_pooled`` bytes."""
        return self._pool.empty(shape, dtype)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array with arbitrary elements."""
        if prod(shape) * dtype.itemsize >= self.least_pooled:
            return self.pooled(shape, dtype)
        made: Array = self.module.empty(shape, dtype)
        return made

    def read_only(self, array: Array) -> Array:
        """A view that cannot be written to."""
        view = array.view()
        view.flags.writeable = False
        return view

    def freeze(self, array: Any) -> None:
        """Make an array that is handed out read-only: lazy arrays read it later without a copy."""
        array.flags.writeable = False

    def wait(self) -> None:
        """Return when the work that was queued has run; a CPU has no queue."""


class GpuBackend(Backend):
    """Arrays of CuPy. None of them is read-only, and work is queued on CuPy's current stream."""

    on_gpu = True
    least_pooled = float("inf")  # CuPy has a pool of its own

    def __init__(self, device: CupyDevice) -> None:
        self.device = device
        self.module = device.library
        self.array_type = device.library.ndarray

    def target(self) -> str:
        """CUDA: CuPy's arrays are in the memory of a GPU."""
        return "cuda"

    def read_only(self, array: Array) -> Array:
        """A view: CuPy knows no read-only arrays."""
        return array.view()

    def freeze(self, array: Any) -> None:
        """Nothing: users do not write to an array of CuPy that was handed out."""

    def wait(self) -> None:
        """Synchronize CuPy's current stream."""
        self.device.wait()


HOST = Backend()
# The backend of each type of array; a GPU's is added when its first array comes.
BACKENDS: dict[type[Any], Backend] = {np.ndarray: HOST}


def backend_of(array: Any) -> Backend:
    """The backend of an array that a lazy one holds, or of a number of NumPy."""
    return BACKENDS.get(type(array), HOST)


def array_on_gpu(array: Any) -> Any | None:
    """The array as one of CuPy's, without a copy; None if it is in the memory of the CPU."""
    if not on_a_gpu(array):
        return None
    known = BACKENDS.get(type(array))
    device = known.device if isinstance(known, GpuBackend) else open_device()
    own, _ = adopt(device, "the array", array)
    where = device.elsewhere(own)
    if where is not None:
        raise ArgumentError(f"lazy: the array is on {where}: copy it to the current GPU")
    if type(own) not in BACKENDS:
        BACKENDS[type(own)] = GpuBackend(device)
    return own


def sent_to_gpu(array: Array) -> Any:
    """A copy in the memory of the current GPU, as CuPy's."""
    return array_on_gpu(open_device().library.asarray(array))


def mixed() -> ArgumentError:
    """The error of an operation on arrays of the CPU and of a GPU."""
    return ArgumentError(
        "an operation has arrays in the memory of the CPU and in that of a GPU: move one of them, "
        "with tcgen.lazy(cupy.asarray(array)) or cupy.asnumpy(x.compute())"
    )
