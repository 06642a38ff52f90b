"""``tcgen.einsum`` and its relatives: NumPy's signatures, generated code behind them.

A call is checked by NumPy's rules, then it runs a kernel that was generated for its expression, or
goes to NumPy where that is better: element types without kernels, calls that only make a view, and
tiny ones. ``tcgen.einsum_report()`` shows the route of each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from numbers import Number
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

# Imported by name, because a program may replace them by those of tcgen.
from numpy import einsum as numpy_einsum
from numpy import tensordot as numpy_tensordot

from ..errors import ArgumentError, DtypeError, EinsumError, ShapeError
from ..frontend.einsum import LETTERS, Expression, interleaved
from .libraries import NUMPY, GpuOperands, Library, any_on_gpu, any_overrides
from .routes import run_einsum
from .signature import Array, check_out

# Largest numerator and denominator of a factor for which a program is compiled.
_MAX_FACTOR = 64
_DEFAULTS = {"optimize": True, "order": "K", "casting": "safe"}


def einsum(
    *operands: Any,
    out: Array | None = None,
    optimize: Any = True,
    dtype: npt.DTypeLike | None = None,
    order: str | None = "K",
    casting: str = "safe",
    memory_limit: str | int | None = None,
) -> Any:
    """``numpy.einsum``, run by generated code.

    Subscripts, broadcasting, promotion, ``out``, ``dtype``, ``order``, ``casting`` and errors are
    NumPy's; labels may be letters of any alphabet, any number of them. Calls on element types other
    than float64, float32 and complex128, calls that make a view, and small calls go to NumPy. A
    call is small below 1,000,000 flops (TCGEN_EINSUM_MIN_FLOPS), or below four times as many if
    NumPy would call its BLAS. Operands on the current GPU are contracted there. See
    :func:`tcgen.einsum_report`. Arrays of classes with ``__array_function__``, such as those of
    dask, compute the call themselves, as NEP 18 asks.

    Args:
        operands: subscripts and arrays, or arrays and lists of integers in turn.
        out: array for the result, which is overwritten; ``casting`` decides on its type, whatever
            ``optimize`` is.
        optimize: True, "greedy" or "optimal": the order with the fewest flops (exact for up to
            eight operands). False: from left to right. Or a path as ``numpy.einsum_path`` gives it.
        dtype: element type of the computation.
        order: memory order of the result: "C", "F", "A" or "K".
        casting: allowed casts, as in NumPy.
        memory_limit: bytes or text such as "8GiB" for the result and all intermediates, casts of
            operands excepted; if they need more, loops are fused.

    Returns:
        The result; a NumPy scalar if it has no axes, a view if NumPy returns one.

    Raises:
        EinsumError: wrong subscripts, order, casting or path (a ValueError).
        PathNameError: ``optimize`` is an unknown name (a KeyError).
        ShapeError: extents do not fit (a ValueError).
        DtypeError, ArgumentError: a cast is not allowed, or a wrong argument (a TypeError).
        MemoryLimitError: no plan fits ``memory_limit``.

    Example:
        >>> import numpy as np
        >>> einsum("ij,j->i", np.eye(2), np.array([1.0, 2.0]))
        array([1., 2.])
    """
    if operands and isinstance(operands[0], str):
        text, given = operands[0], operands[1:]
    elif operands and isinstance(operands[0], bytes):
        text, given = operands[0].decode(errors="replace"), operands[1:]
    else:
        text, given = interleaved(operands)
    if not given:
        raise EinsumError(f'einsum("{text}") needs at least one operand')
    if any_on_gpu(given):
        gpu, options = GpuOperands(given, out), (optimize, dtype, order, casting, memory_limit)
        return gpu.for_caller(run_einsum(gpu.library, text, gpu.arrays, gpu.out, *options))
    if any_overrides((*given, out)):
        keywords = {"out": out, "optimize": optimize, "dtype": dtype}
        keywords |= {"order": order, "casting": casting, "memory_limit": memory_limit}
        changed = {k: v for k, v in keywords.items() if v is not _DEFAULTS.get(k)}
        if "memory_limit" in changed:
            raise ArgumentError(
                "einsum: memory_limit has no effect on arrays of another library: leave it out"
            )
        written = (text, *given) if isinstance(operands[0], str | bytes) else operands
        return numpy_einsum(*written, **changed)
    if out is not None:
        check_out(out)
    arrays = tuple([x if type(x) is np.ndarray else _array(n, x) for n, x in enumerate(given)])
    return run_einsum(NUMPY, text, arrays, out, optimize, dtype, order, casting, memory_limit)


def contract(
    subscripts: str,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    alpha: complex = 1.0,
    beta: complex = 0.0,
    out: Array | None = None,
    *,
    optimize: Any = True,
    dtype: Any = None,  # noqa: ARG001
    order: Any = None,  # noqa: ARG001
    casting: Any = None,  # noqa: ARG001
    DEBUG: Any = False,  # noqa: ARG001
) -> Any:
    """``out = alpha*einsum(subscripts, a, b) + beta*out``: what PySCF, ebcc and gpu4pyscf call.

    Args:
        subscripts: subscripts of two operands.
        a: first operand.
        b: second operand.
        alpha: factor of the product; where it is a fraction of integers up to 64, and ``beta`` is 0
            or 1, a kernel applies it and writes to ``out`` itself.
        beta: factor of what ``out`` holds; 0 overwrites it, whatever it holds.
        out: array for the result; without it a new one.
        optimize: accepted because ``pyscf.lib.einsum`` passes it on; two operands have one order.
        dtype: accepted without effect, as by ``pyscf.lib.einsum``; so are the next three.
        order: accepted without effect.
        casting: accepted without effect.
        DEBUG: accepted without effect.

    Raises:
        ArgumentError: ``beta`` is given and ``out`` is not, or one of the factors is not a number.
        EinsumError, ShapeError, DtypeError: as :func:`tcgen.einsum`.

    Example:
        >>> import numpy as np
        >>> out = np.ones(2)
        >>> contract("ij,j->i", np.eye(2), np.array([1.0, 2.0]), alpha=2.0, beta=1.0, out=out)
        array([3., 5.])
    """
    for name, factor in (("alpha", alpha), ("beta", beta)):
        if not isinstance(factor, Number) and (
            np.ndim(factor) or np.asarray(factor).dtype.kind not in "biufc"
        ):
            found = f"of shape {np.shape(factor)}" if np.ndim(factor) else repr(factor)
            raise ArgumentError(
                f"contract: {name} is not a number, but {found}: pass alpha= and beta= by name, "
                f"and more than two operands to tcgen.einsum"
            )
    if out is None and beta != 0:
        raise ArgumentError(f"contract: beta={beta} scales what out holds: pass out as well")
    if any_on_gpu((a, b)):
        gpu = GpuOperands((a, b), out)
        factors = (alpha, beta, optimize)
        return gpu.for_caller(_contract(gpu.library, subscripts, gpu.arrays, gpu.out, *factors))
    if any_overrides((a, b, out)):
        foreign: tuple[Any, Any] = (a, b)
        product: Any = numpy_einsum(subscripts, *foreign)
        scaled = product if alpha == 1 else product * alpha
        if out is None:
            return scaled
        out[...] = scaled if beta == 0 else scaled + out * beta
        return out
    if out is not None:
        check_out(out)
    arrays = (
        a if type(a) is np.ndarray else _array(0, a),
        b if type(b) is np.ndarray else _array(1, b),
    )
    return _contract(NUMPY, subscripts, arrays, out, alpha, beta, optimize)


def _contract(
    library: Library,
    subscripts: str,
    arrays: tuple[Any, ...],
    out: Any,
    alpha: Any,
    beta: Any,
    optimize: Any,
) -> Any:
    """``contract`` on arrays of one library."""
    types = [x.dtype for x in arrays]
    factors = [factor for factor, none in ((alpha, 1), (beta, 0)) if factor != none]
    if out is not None:
        made = np.result_type(*types, *factors)
        if not np.can_cast(made, out.dtype, "same_kind"):
            raise DtypeError(
                f'contract("{subscripts}"): the result is {made}, and out {out.dtype}: pass an out '
                f"of {made}"
            )
    if not factors:
        return run_einsum(library, subscripts, arrays, out, optimize, casting="same_kind")
    exact = _exact(alpha)
    dtype = np.result_type(*types)
    same = np.result_type(*types, alpha) == dtype == (dtype if out is None else out.dtype)
    if exact is not None and beta in (0, 1) and same:
        update = (*exact, bool(beta == 1))
        result = run_einsum(library, subscripts, arrays, out, optimize, update=update)
        if result is not NotImplemented:
            return result
    product = run_einsum(library, subscripts, arrays, None, optimize)
    if out is None:
        return product * alpha
    if np.shape(product) != out.shape:
        raise ShapeError(
            f'contract("{subscripts}"): out has shape {out.shape}, the result {np.shape(product)}'
        )
    scaled = product if alpha == 1 else product * alpha
    if beta != 0:
        scaled = scaled + (out if beta == 1 else out * beta)
    library.assign(out, scaled)
    return out


def tensordot(a: npt.ArrayLike, b: npt.ArrayLike, axes: Any = 2) -> Any:
    """``numpy.tensordot``, run by generated code.

    Args:
        a: first operand.
        b: second operand.
        axes: number of last axes of ``a`` summed with the first ones of ``b``, or a pair of lists.

    Raises:
        ShapeError, EinsumError: the axes do not fit.

    Example:
        >>> import numpy as np
        >>> tensordot(np.ones((2, 3)), np.ones((3, 4)), axes=1).shape
        (2, 4)
    """
    gpu = GpuOperands((a, b)) if any_on_gpu((a, b)) else None
    if gpu is None and any_overrides((a, b)):
        foreign: tuple[Any, Any] = (a, b)
        return numpy_tensordot(*foreign, axes)
    arrays = (_array(0, a), _array(1, b)) if gpu is None else (gpu.arrays[0], gpu.arrays[1])
    first, second = _summed_axes(axes, arrays)
    labels_a = list(range(arrays[0].ndim))
    labels_b = [len(labels_a) + n for n in range(arrays[1].ndim)]
    for p, q in zip(first, second, strict=True):
        if arrays[0].shape[p] != arrays[1].shape[q]:
            raise ShapeError(
                f"tensordot: axis {p} of shape {arrays[0].shape} and axis {q} of shape "
                f"{arrays[1].shape} are summed together, but their extents differ"
            )
        labels_b[q] = p
    numbers = {n: k for k, n in enumerate(dict.fromkeys(labels_a + labels_b))}
    output = [n for p, n in enumerate(labels_a) if p not in first]
    output += [n for q, n in enumerate(labels_b) if q not in second]
    expression = Expression(
        (tuple(labels_a), tuple(numbers[n] for n in labels_b)),
        tuple(numbers[n] for n in output),
        tuple(LETTERS[n] if n < len(LETTERS) else f"x{n}" for n in numbers.values()),
    )
    if gpu is not None:
        return gpu.for_caller(run_einsum(gpu.library, expression, arrays, None, order="C"))
    # numpy.tensordot returns an array even if all axes are summed.
    return np.asarray(run_einsum(NUMPY, expression, arrays, None, order="C"))


def transpose(a: npt.ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """A view of ``a`` with its axes in another order: ``numpy.transpose``.

    ``opt_einsum.contract(..., backend="tcgen")`` looks it up in the module ``tcgen``, beside
    ``einsum`` and ``tensordot``.

    Raises:
        ShapeError: ``axes`` does not name each axis once.
    """
    array: Any = a if any_overrides((a,)) else np.asarray(a)
    try:
        return np.transpose(array, axes)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"transpose: axes={axes!r} of shape {array.shape}: {error}") from None


def _exact(alpha: Any) -> tuple[int, int] | None:
    """Numerator and denominator of a factor that a kernel may have in its text; None of others."""
    number = np.asarray(alpha)
    if number.dtype.kind not in "iuf" or not np.isfinite(number) or number == 0:
        return None
    factor = Fraction(float(number))
    small = max(abs(factor.numerator), factor.denominator) <= _MAX_FACTOR
    return (factor.numerator, factor.denominator) if small else None


def _array(number: int, given: Any) -> Array:
    """An operand as a NumPy array; arrays that live on another device are refused."""
    if hasattr(given, "__cuda_array_interface__"):
        kind = f"{type(given).__module__}.{type(given).__name__}"
        raise ArgumentError(f"operand {number} is a {kind} in GPU memory: copy it to a NumPy array")
    try:
        return np.asarray(given)
    except ValueError as error:  # rows of different lengths, for example
        raise ShapeError(f"operand {number} is not an array: {error}") from None


def _summed_axes(axes: Any, arrays: tuple[Array, Array]) -> tuple[list[int], list[int]]:
    """Positions of the summed axes of both operands of a tensordot."""
    a, _ = arrays
    pairs: list[list[int]] = []
    for given, array in zip(_given_axes(axes, a.ndim), arrays, strict=True):
        if not all(-array.ndim <= n < array.ndim for n in given):
            raise EinsumError(f"tensordot: axes {given} do not exist in shape {array.shape}")
        pairs.append([n % array.ndim for n in given])
    if len(pairs[0]) != len(pairs[1]) or any(len(set(p)) != len(p) for p in pairs):
        raise EinsumError(
            f"tensordot: axes={axes!r} must name as many axes of one array as of the other, "
            f"each once"
        )
    return pairs[0], pairs[1]


def _given_axes(axes: Any, rank: int) -> tuple[list[int], list[int]]:
    """Axes of both operands as ``tensordot`` is given them; ``rank`` is that of the first one."""
    try:
        try:
            count = index(axes)
        except TypeError:  # a pair of numbers or of lists
            first, second = (list(map(index, g)) if np.ndim(g) else [index(g)] for g in axes)
            return first, second
        return list(range(rank - count, rank)), list(range(count))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"tensordot: axes={axes!r} is neither a number of axes nor a pair of lists of axes"
        ) from None
