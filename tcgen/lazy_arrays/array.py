"""Lazy NumPy arrays: operations are recorded, fused, and run when their values are needed.

The design follows Morton et al. (DelayRepay: Delayed Execution for Kernel Fusion in Python, DLS
2020). NumPy computes operations that have no kernel, from the values of their operands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiler.target import kernel_target
from ..errors import ArgumentError
from .arguments import refuse_other_arrays, settle
from .array_api import ArrayNamespace
from .backend import BACKENDS, array_on_gpu
from .dispatch import read_limits
from .equations import lazy_system
from .kernels import kernel_of
from .linearized import linearize
from .methods import Methods
from .operators import Operators


class LazyArray(Operators, Methods):
    """An array whose values are computed when they are needed; it behaves as a NumPy array.

    Operators and NumPy's functions record operations on large arrays: arithmetic, powers,
    functions, comparisons, ``where``, ``clip``, reductions over axes, ``einsum``, ``@``, ``dot``,
    slices, transposes and new axes, on arrays of one element type out of float64, float32 and
    complex128, with booleans and integers among them. NumPy computes every other operation from the
    values. Values are computed once, when they are needed: ``x.compute()``, ``numpy.asarray(x)``,
    ``print(x)``, ``float(x)``. :func:`tcgen.compute` computes several arrays in one program.
    """

    __slots__ = ()

    def explain(self) -> str:
        """The formula sequence and the loop nest of the kernel that would compute the values."""
        line = linearize((self._node,))
        if not line.operands[-1]:
            return "nothing pending: already evaluated\n"
        lazy = lazy_system(line.nodes())
        return kernel_of(lazy, line.dtype.name, kernel_target()).program.explain()

    def compute(self) -> npt.NDArray[Any]:
        """The values as a read-only NumPy array, or as CuPy's; runs pending operations."""
        return self._handed_out()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if self._backend.on_gpu:
            raise ArgumentError(
                "the array is in the memory of a GPU: x.compute() is CuPy's array, and "
                "cupy.asnumpy(x.compute()) one of NumPy"
            )
        values = self._handed_out()
        if not copy and dtype is None:
            return values
        return np.array(values, dtype=dtype, copy=copy)  # refuses a cast without a copy

    # ---- Python's protocols

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        if self._backend.on_gpu:
            raise ArgumentError(
                "lazy arrays of a GPU have no namespace of the array API: NumPy's functions take "
                "them, and cupy makes new arrays for tcgen.lazy"
            )
        np.empty(0).__array_namespace__(api_version=api_version)  # refuses unknown versions
        return NAMESPACE

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        given = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        options = {name: value for name, value in given.items() if value is not None}
        if copy is not False:
            return self._values().copy().__dlpack__(**options)
        # Capsules of these versions have a flag for read-only arrays.
        if max_version is not None and max_version[0] >= 1:
            return self._backend.read_only(self._values()).__dlpack__(**options)
        array = self._writable()
        if not self._backend.on_gpu:
            array = self._lent()
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        return self._values().__dlpack_device__()

    def __copy__(self) -> LazyArray:
        if self._known() is None:
            return self._of_node(self._as_node())
        return self._of_array(self._values().copy("K"), True)

    def __deepcopy__(self, memo: Any) -> LazyArray:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return (lazy, (self.compute(),))

    def __repr__(self) -> str:
        count = self.pending
        operations = f"{count} pending operation{'' if count == 1 else 's'}"
        return f"<lazy array of shape {self.shape}, {self.dtype}, {operations}>"


def lazy(array: npt.ArrayLike, *, copy: bool = False) -> LazyArray:
    """A lazy array: its operations are recorded, and later run as a few fused kernels.

    Args:
        array: neither copied nor written to; of the CPU's memory or, by CuPy, torch or JAX, of a
            GPU's. Recorded operations read it later: do not change it before they have run, or
            pass ``copy``.
        copy: copy the array; pending operations of a lazy array run first.

    Raises:
        ArgumentError: ``array`` is not an array, or is on another GPU than the current one.
        UnavailableError: ``array`` is on a GPU, and CuPy cannot be used.

    Example:
        >>> import numpy as np
        >>> x = lazy(np.linspace(0.0, 1.0, 200_000))
        >>> y = np.sin(x) ** 2 + np.cos(x) ** 2
        >>> y
        <lazy array of shape (200000,), float64, 5 pending operations>
        >>> np.asarray(y)
        array([1., 1., 1., ..., 1., 1., 1.], shape=(200000,))
    """
    read_limits()
    if isinstance(array, LazyArray):
        return LazyArray._of_array(array._values().copy(), True) if copy else array
    own = array_on_gpu(array)
    if own is not None:
        return LazyArray._of_array(own.copy() if copy else own, copy)
    refuse_other_arrays(array)
    try:
        return LazyArray._of_array(np.array(array, copy=copy or None), copy)
    except ValueError as error:
        raise ArgumentError(f"tcgen.lazy cannot make an array of this: {error}") from None


def _made_lazy(array: npt.NDArray[Any], args: tuple[Any, ...]) -> LazyArray:
    """A result of NumPy as a lazy array; an argument that NumPy returns stays itself."""
    first = args[0] if args else None
    if isinstance(first, LazyArray) and first.dtype == array.dtype and first.shape == array.shape:
        own = first._values()
        if own.ctypes.data == array.ctypes.data and own.strides == array.strides:
            return first
    read_limits()
    is_new = array.flags.owndata and not any(array is given for given in args)
    return LazyArray._of_array(array, mine=is_new)


NAMESPACE = ArrayNamespace(np, _made_lazy)


def compute(*arrays: LazyArray | npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Values of several lazy arrays, computed in one program, common parts once.

    Returns:
        A read-only NumPy array for each lazy array; NumPy's arrays and numbers as they are.

    Raises:
        ArgumentError: an argument is neither a lazy array nor one of NumPy.

    Example:
        >>> import numpy as np
        >>> x = lazy(np.zeros(2))
        >>> e = np.exp(x)
        >>> compute(e + 1, e - 1)
        (array([2., 2.]), array([0., 0.]))
    """
    for array in arrays:
        if not isinstance(array, LazyArray | np.generic) and type(array) not in BACKENDS:
            raise ArgumentError(f"compute: a {type(array).__name__} is not a lazy array")
    settle(arrays)
    return tuple(a.compute() if isinstance(a, LazyArray) else a for a in arrays)
