"""Matrix products by cuBLAS and contractions by cuTENSOR, through CuPy's bindings.

cuBLAS stores matrices by columns. A result that is stored by rows is computed as its transpose,
out^T = b^T a^T, which is stored by columns in the same memory.
"""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ...dtypes import BY_NAME
from ...errors import UnavailableError, pip_install
from ..device_protocol import Contraction, Matrix, MatrixProduct, Operand

AS_IS, TRANSPOSED = 0, 1  # CUBLAS_OP_N, CUBLAS_OP_T
_ADVICE = (
    f"install it ({pip_install('cuda13')}), or compile with library=False "
    "(--no-library), which generates all kernels"
)


@dataclass(frozen=True, slots=True)
class GemmCall:
    """A product as cuBLAS takes it: ``result = operation(first) * operation(second)``, by columns.

    Attributes:
        swapped: the first factor is b, and the result is the transpose of out.
        operations: ``AS_IS`` or ``TRANSPOSED`` for each factor.
        rows, columns: extents of the result.
        steps: elements between the columns of both factors, as they are stored, and of the result.
    """

    swapped: bool
    operations: tuple[int, int]
    rows: int
    columns: int
    steps: tuple[int, int, int]


def gemm_call(product: MatrixProduct) -> GemmCall:
    """The call that computes a product.

    Example:
        >>> rows = MatrixProduct("float64", 2, 3, 4, 1, 1.0, False, Matrix(0, 3, 1, 0),
        ...                      Matrix(0, 4, 1, 0), Matrix(0, 3, 1, 0))
        >>> gemm_call(rows)
        GemmCall(swapped=True, operations=(0, 0), rows=3, columns=2, steps=(3, 4, 3))
    """
    m, n, k = product.m, product.n, product.k
    out, a, b = product.out, product.a, product.b
    if _by_columns(out, m, n):
        one, two = _factor(a, m, k), _factor(b, k, n)
        return GemmCall(False, (one[0], two[0]), m, n, (one[1], two[1], max(out.column, m)))
    one, two = _factor(_turned(b), n, k), _factor(_turned(a), k, m)
    return GemmCall(True, (one[0], two[0]), n, m, (one[1], two[1], max(out.row, n)))


def _turned(matrix: Matrix) -> Matrix:
    return Matrix(matrix.offset, matrix.column, matrix.row, matrix.apart)


def _by_columns(matrix: Matrix, rows: int, columns: int) -> bool:
    """True for a matrix of columns that lie one behind the other."""
    return (matrix.row == 1 or rows <= 1) and (matrix.column >= rows or columns <= 1)


def _factor(matrix: Matrix, rows: int, columns: int) -> tuple[int, int]:
    """The operation that makes a factor of the matrix stored by columns, and its step."""
    if _by_columns(matrix, rows, columns):
        return AS_IS, max(matrix.column, rows, 1)
    return TRANSPOSED, max(matrix.row, columns, 1)


class Cublas:
    """cuBLAS of the current device, on CuPy's stream; UnavailableError if it cannot be loaded."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        try:
            from cupy_backends.cuda.libs import cublas  # noqa: PLC0415  (part of CuPy)

            self.version = cublas.getVersion(cupy.cuda.device.get_cublas_handle())
        except (ImportError, OSError, RuntimeError) as error:
            raise UnavailableError(
                f"this program multiplies matrices by cuBLAS, which CuPy cannot load ({error}): "
                f"{_ADVICE}"
            ) from error
        self._cublas = cublas

    def multiply(self, product: MatrixProduct, out: Any, a: Any, b: Any) -> None:
        """Queue the products."""
        call, dtype = gemm_call(product), BY_NAME[product.dtype]
        factors = [(product.a, a), (product.b, b)]
        if call.swapped:
            factors.reverse()
        batched = product.count > 1
        numbers = (product.factor, float(product.accumulate))
        alpha, beta = (np.array(number, product.dtype) for number in numbers)
        arguments: list[Any] = [*call.operations, call.rows, call.columns, product.k]
        arguments.append(alpha.ctypes.data)
        for (matrix, array), step in zip(factors, call.steps, strict=False):
            arguments += [array.data.ptr + dtype.itemsize * matrix.offset, step]
            arguments += [matrix.apart] if batched else []
        arguments.append(beta.ctypes.data)
        arguments += [out.data.ptr + dtype.itemsize * product.out.offset, call.steps[2]]
        arguments += [product.out.apart, product.count] if batched else []
        multiply = getattr(self._cublas, f"{dtype.letter}gemm{'StridedBatched' * batched}")
        multiply(self._cupy.cuda.device.get_cublas_handle(), *arguments)


def load_cutensor() -> tuple[Any, str]:
    """CuPy's module for cuTENSOR, and the version of the library; no GPU is needed.

    Raises:
        UnavailableError: CuPy or cuTENSOR is missing, or cannot be loaded.
    """
    # CuPy 14 is linked with a second library of the wheel, which it does not look for there.
    wheel = find_spec("cutensor")
    for folder in (wheel and wheel.submodule_search_locations) or ():
        for library in Path(folder, "lib").glob("libcutensorMg.so.*"):
            with contextlib.suppress(OSError):  # the import says what is missing
                ctypes.CDLL(str(library))
    try:
        # Parts of CuPy, if the library is installed.
        from cupy_backends.cuda.libs.cutensor import get_version  # noqa: PLC0415
        from cupyx import cutensor  # noqa: PLC0415
    except (ImportError, OSError, RuntimeError) as error:
        raise UnavailableError(
            f"CuPy cannot load cuTENSOR ({error}): install it (pip install cutensor-cu13)"
        ) from error
    number = get_version()
    return cutensor, f"{number // 10_000}.{number // 100 % 100}.{number % 100}"


class Cutensor:
    """cuTENSOR of the current device, on CuPy's stream; UnavailableError if it cannot be loaded."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        try:
            self._cutensor, self.version = load_cutensor()
        except UnavailableError as error:
            raise UnavailableError(
                f"this program was tuned where contractions were fastest by cuTENSOR. {error}, or "
                f"compile the program again on this machine"
            ) from error

    def contract(self, contraction: Contraction, out: Any, a: Any, b: Any) -> None:
        """Queue a contraction."""
        lengths = contraction.lengths
        target = self._view(contraction, contraction.out, out)
        if 0 in [lengths[mode] for mode in contraction.out.modes]:
            return
        if 0 in lengths:  # an empty sum, which cuTENSOR does not take
            if not contraction.accumulate:
                target.fill(0)
            return
        self._cutensor.contraction(
            contraction.factor,
            self._view(contraction, contraction.a, a),
            contraction.a.modes,
            self._view(contraction, contraction.b, b),
            contraction.b.modes,
            float(contraction.accumulate),
            target,
            contraction.out.modes,
        )

    def _view(self, contraction: Contraction, operand: Operand, array: Any) -> Any:
        """The elements of an operand, with an axis for each of its modes."""
        dtype = np.dtype(contraction.dtype)
        shape = tuple(contraction.lengths[mode] for mode in operand.modes)
        strides = tuple(step * dtype.itemsize for step in operand.strides)
        start = array.data + operand.offset * dtype.itemsize
        return self._cupy.ndarray(shape, dtype, start, strides)
