"""Checks of the caller's arrays: names, kinds, element types, shapes, extents.

Arrays that are slices of larger ones are found here: kernels can use some of them in place.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..artifact.manifest import Manifest
from ..dtypes import BY_NAME, NAMES
from ..errors import ArgumentError, DtypeError, ExtentError, ShapeError
from ..records.loops import stored_shape
from ..records.tensors import Packing, Role, Tensor, element_type
from ..simplices import extent_of
from .device_protocol import Device

Array = npt.NDArray[Any]
# An array; for a generated input also a callable or an object that slices like an array.
Source = Any
# Shapes of inputs by name; None for an input without a shape.
Shapes = Mapping[str, tuple[int, ...] | None]
_DTYPES = {name: np.dtype(name) for name in NAMES}
# Modules of data sets that are read in slices, the last one of references (tcgen.stored).
_ON_DISK = ("h5py", "zarr", "netCDF4", "tables", "tcgen.distributed.stored")
# For arrays of other libraries the expression that makes NumPy arrays of them.
_TO_NUMPY = {
    "cupy": "cupy.asnumpy(x)",
    "torch": "x.detach().cpu().numpy()",
    "jax": "numpy.asarray(x)",
    "jaxlib": "numpy.asarray(x)",
    "tensorflow": "x.numpy()",
}


def check_names(name: str, inputs: tuple[Tensor, ...], arrays: Mapping[str, object]) -> None:
    """Check that every input is passed or has a default, and that no other array is passed.

    ArgumentError has the missing and the unknown keywords and the names of the inputs.
    """
    names = [t.name for t in inputs]
    if len(arrays) == len(names) and all(map(arrays.__contains__, names)):
        return
    unknown = [n for n in arrays if n not in names]
    missing = [t.name for t in inputs if t.default is None and t.name not in arrays]
    if not unknown and not missing:
        return
    parts = []
    if missing:
        parts.append(f"missing input {', '.join(missing)}")
    if unknown:
        parts.append(f"unknown input {', '.join(unknown)}")
    listed = f"the inputs here are {', '.join(names)}" if names else "the program has none"
    raise ArgumentError(f"{name}: {'; '.join(parts)} ({listed})")


def only_inputs(inputs: tuple[Tensor, ...], arrays: Mapping[str, object]) -> dict[str, object]:
    """The arrays that are inputs."""
    names = {tensor.name for tensor in inputs}
    return {name: array for name, array in arrays.items() if name in names}


def refuse_positional(name: str, inputs: tuple[Tensor, ...]) -> NoReturn:
    """Raise ArgumentError with the call to write, since equations do not order their inputs."""
    example = ", ".join(f"{tensor.name}=..." for tensor in inputs)
    raise ArgumentError(f"{name}: pass arrays by name: program({example})")


def read_inputs(
    device: Device, inputs: tuple[Tensor, ...], arrays: Mapping[str, object], dtype: str
) -> dict[str, Source]:
    """Each input as an array of the right element type and rank, on the CPU or on ``device``.

    No array is copied, whatever its strides. Generated inputs stay as they are. Raises
    ArgumentError, DtypeError or ShapeError, naming the input and what to pass.
    """
    return {t.name: _read_input(device, t, arrays, element_type(t, dtype)) for t in inputs}


class Reader:
    """Checks the inputs of many calls, as :func:`check_names` and :func:`read_inputs` do."""

    def __init__(self, inputs: tuple[Tensor, ...], dtype: str) -> None:
        self._inputs = inputs
        self._expected = [
            (t.name, _DTYPES[element_type(t, dtype)], t.stored_rank, t) for t in inputs
        ]

    def read(self, name: str, device: Device, arrays: Mapping[str, object]) -> dict[str, Source]:
        """The inputs of one call; arrays that fit take little time."""
        if len(arrays) != len(self._expected):
            check_names(name, self._inputs, arrays)
        sources: dict[str, Source] = {}
        on_gpu = not device.on_cpu
        for keyword, dtype, rank, tensor in self._expected:
            given: Any = arrays.get(keyword)
            own = type(given) is np.ndarray or (on_gpu and device.holds(given))
            if own and given.dtype == dtype and given.ndim == rank:
                sources[keyword] = given
                continue
            if given is None:
                check_names(name, self._inputs, arrays)
            sources[keyword] = _read_input(device, tensor, arrays, dtype.name)
        return sources


def _read_input(device: Device, tensor: Tensor, arrays: Mapping[str, object], dtype: str) -> Source:
    if tensor.name not in arrays:
        return np.asarray(float(tensor.default or 0), dtype)
    given: Any = arrays[tensor.name]
    if (
        type(given) is np.ndarray
        and given.dtype == _DTYPES[dtype]
        and given.ndim == tensor.stored_rank
    ):
        return given
    if not device.on_cpu and device.holds(given):
        check_dtype(tensor, dtype, np.dtype(given.dtype))
        check_rank(tensor, tuple(given.shape))
        return given
    if given is None:
        raise DtypeError(f"{tensor.name} must be {dtype}, found None: pass an array")
    _refuse_elsewhere(tensor.name, given, on_gpu=not device.on_cpu)
    if getattr(given, "shape", ()) is None:  # h5py.Empty
        raise ShapeError(
            f"{describe(tensor)} is a data set without a shape, which holds no elements: pass an "
            f"array, or write one into the file"
        )
    if tensor.role is Role.GENERATED:
        return _generated(tensor, given, dtype)
    if callable(given) and not isinstance(given, np.ndarray):
        raise ArgumentError(
            f"{tensor.name} is a callable, but it is not a generated input: pass an array"
        )
    if isinstance(given, numbers.Number):
        return _number(tensor, given, dtype)
    if f"{type(given).__module__}.".startswith(tuple(f"{module}." for module in _ON_DISK)):
        raise ArgumentError(
            f"{tensor.name} is a dataset on disk, but the program reads it as a whole: pass "
            f'{tensor.name}[...], or compile with sliced=("{tensor.name}",) or --sliced '
            f"{tensor.name} to read it in slices"
        )
    array = _array(tensor.name, given)
    check_dtype(tensor, dtype, array.dtype)
    check_rank(tensor, array.shape)
    return array


def _array(name: str, given: Any) -> Array:
    try:
        return np.asarray(given)
    except ValueError as error:  # rows of different lengths, for example
        raise ArgumentError(f"{name} is not an array ({error}): pass a NumPy array") from None


def check_here(name: str, array: Any, device: Device) -> None:
    """Raise ArgumentError, naming both, if an array is on another device than the current one.

    Kernels cannot read another one's memory.
    """
    where = device.elsewhere(array)
    if where is not None:
        raise ArgumentError(
            f"{name} is on {where}: call the program where its arrays are "
            f"(with cupy.cuda.Device(...):), or copy them to the current GPU"
        )


def _refuse_elsewhere(name: str, given: object, *, on_gpu: bool) -> None:
    library = type(given).__module__.partition(".")[0]
    if library in _TO_NUMPY or hasattr(given, "__cuda_array_interface__"):
        if on_gpu:
            whole = f"{name}.detach()" if library == "torch" else name
            raise ArgumentError(
                f"{name} is a {library} array, but this program takes arrays of NumPy and CuPy: "
                f"pass cupy.asarray({whole})"
            )
        advice = _TO_NUMPY.get(library, "a NumPy array")
        raise ArgumentError(
            f"{name} is a {library} array, but this program takes NumPy arrays in the memory of "
            f"the CPU: pass {advice.replace('x', name, 1)}"
        )
    if isinstance(given, np.ma.MaskedArray):
        raise ArgumentError(f"{name} is a masked array: pass {name}.filled(0) or its data")


def _number(tensor: Tensor, given: Any, dtype: str) -> Array:
    if tensor.spaces:
        raise ShapeError(f"{describe(tensor)} must be an array, found the number {given}")
    if isinstance(given, np.generic):
        fits = np.can_cast(given.dtype, dtype, "same_kind")
    else:
        fits = isinstance(given, numbers.Real) or dtype == "complex128"
    if not fits:
        raise DtypeError(f"{tensor.name} must be {dtype}, found {given!r}: pass its .real")
    try:
        with np.errstate(over="ignore", under="ignore"):
            number = np.asarray(given, dtype)
    except OverflowError:
        number = np.asarray(np.inf)
    infinite = not isinstance(given, int | Fraction) and bool(np.isinf(given))
    if (np.isinf(number) and not infinite) or (number == 0) != (given == 0):
        low, high = BY_NAME[dtype].smallest, BY_NAME[dtype].largest
        raise DtypeError(f"{tensor.name} is outside the range of {dtype}, {low:.3g} to {high:.3g}")
    return number


def _generated(tensor: Tensor, given: Any, dtype: str) -> Source:
    if callable(given):
        return given
    if not hasattr(given, "shape") or not hasattr(given, "__getitem__"):
        given = _array(tensor.name, given)
    if hasattr(given, "dtype"):
        # Tiles are in the byte order of the machine, whatever that of the file is.
        check_dtype(tensor, dtype, np.dtype(given.dtype).newbyteorder("="))
    check_rank(tensor, tuple(given.shape))
    return given


def check_dtype(tensor: Tensor, wanted: str, dtype: np.dtype[Any], *, target: bool = False) -> None:
    """Check that an array has the element type ``wanted`` of its tensor in this program.

    ``target`` is true for an array of ``out``. Raises DtypeError with the cast to write.
    """
    if dtype == _DTYPES[wanted]:  # and has the byte order of the machine
        return
    if target:
        raise DtypeError(
            f'out["{tensor.name}"] must be {wanted}, found {dtype}: pass an array of '
            f"{wanted} to write to"
        )
    if dtype.kind not in "biufc":
        raise DtypeError(
            f"{tensor.name} must be {wanted}, found {dtype}: pass numbers, the dense() of an array "
            f"with blocks, or make a program over blocks, tcgen.blocked(program, grading)"
            if dtype.kind == "O"
            else f"{tensor.name} must be {wanted}, found {dtype}: pass numbers"
        )
    loses = dtype.kind == "c" and wanted != "complex128"
    cast = f'{tensor.name}{".real" if loses else ""}.astype("{wanted}")'
    raise DtypeError(f"{tensor.name} must be {wanted}, found {dtype}: pass {cast}")


def check_rank(tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Check that an array has as many axes as its tensor in memory; else ShapeError names them."""
    if len(shape) != tensor.stored_rank:
        pairs = [str(tuple(p.axes)) for p in tensor.storage.packed]
        sign = ", antisymmetric=True" if any(p.antisymmetric for p in tensor.storage.packed) else ""
        whole = bool(pairs) and len(shape) == tensor.rank
        advice = f"tcgen.pack_pairs({tensor.name}, {', '.join(pairs)}{sign})"
        raise ShapeError(
            f"{describe(tensor)} has {tensor.stored_rank} axes, "
            f"found an array of {len(shape)} axes with shape {shape}"
            + (f": pass its triangles, {advice}" if whole else "")
        )


def describe(tensor: Tensor) -> str:
    """``t2[o,o,v,v]``, axes as the array has them; a packed pair in round brackets."""
    axes = [
        name if pair is None else f"({','.join([name] * pair.count)})"
        for name, pair in ((tensor.spaces[axis].name, pair) for axis, pair in tensor.stored())
    ]
    return f"{tensor.name}[{','.join(axes)}]" if axes else tensor.name


def shape_of(source: Source) -> tuple[int, ...] | None:
    """Shape of an input; None for a callable, which has none."""
    shape: Any = getattr(source, "shape", None)
    if shape is None or type(shape) is tuple:
        return shape
    return tuple(int(n) for n in shape)


def find_extents(manifest: Manifest, shapes: Shapes, *, complete: bool = True) -> dict[str, int]:
    """Extents of the base spaces from the arrays, else those that the program was compiled for.

    They are in the order of the base spaces. If not ``complete``, they are only those that follow
    from ``shapes``, of inputs that :func:`read_inputs` accepted.

    Raises:
        ExtentError: two arrays contradict each other, or the extent of a space follows from none.
        ShapeError: an axis does not fit the extents: a packed pair or a joined space.
    """
    shown = [(t, s) for t in manifest.tensors if (s := shapes.get(t.name)) is not None]
    shown_extents: dict[str, int] = {}
    witness: dict[str, str] = {}
    empty: dict[str, tuple[str, int]] = {}  # antisymmetric axes without elements, and their number
    for tensor, shape in shown:
        for number, (axis, pair) in enumerate(tensor.stored()):
            bases = [b.name for b in tensor.spaces[axis].bases]
            if len(bases) > 1:
                continue
            extent = shape[number] if pair is None else _side(tensor, number, pair, shape)
            if pair is not None and pair.antisymmetric and shape[number] == 0:
                place = f"axis {number} of {describe(tensor)}"
                least = min(pair.count, empty.get(bases[0], (place, pair.count))[1])
                empty[bases[0]] = (place, least)
                continue
            if shown_extents.setdefault(bases[0], extent) != extent:
                raise ExtentError(
                    f"axis {number} of {describe(tensor)} says that space {bases[0]} has extent "
                    f"{extent}, but {witness[bases[0]]} says {shown_extents[bases[0]]}: expected "
                    f"{_expected(shown, tensor, shown_extents)}, found shape {shape}"
                )
            witness.setdefault(bases[0], f"axis {number} of {describe(tensor)}")
    _solve_joined(shown, shown_extents)
    default = {s.name: s.extent for s in manifest.spaces if s.extent is not None}
    fallback = {**default, **dict(manifest.planning_extents)} if complete else {}
    extents = {b: shown_extents.get(b, fallback.get(b)) for b in manifest.bases}
    for base, (packed_axis, count) in empty.items():
        if complete and base not in shown_extents and extents[base] not in range(count):
            which = ", ".join(map(str, range(count - 1)))
            what = "a packed pair" if count == 2 else f"{count} packed axes"
            raise ExtentError(
                f"{packed_axis} is {what} without elements, so space {base} has extent {which} or "
                f"{count - 1}, and no other array shows which: to run the program at an extent of "
                f'1, compile it with extents={{"{base}": 1}}'
            )
    missing = [b for b, n in extents.items() if n is None]
    if missing and complete:
        keywords = ", ".join(f'"{b}": 10' for b in missing)
        raise ExtentError(
            f"no array shows the extent of space {', '.join(missing)}: "
            f"compile with extents={{{keywords}}}"
        )
    known = {b: n for b, n in extents.items() if n is not None}
    _check_shapes(shown, known)
    return known


def _side(tensor: Tensor, number: int, pair: Packing, shape: tuple[int, ...]) -> int:
    """Extent of packed axes from the number of their stored values."""
    length = shape[number]
    side = extent_of(length, pair.count, pair.antisymmetric)
    if side is None:
        sign = "-" if pair.antisymmetric else "+"
        more = "".join(f"(n{sign}{k})" for k in range(1, pair.count))
        what = "a packed pair" if pair.count == 2 else f"{pair.count} packed axes"
        raise ShapeError(
            f"axis {number} of {describe(tensor)} is {what}: its length must be "
            f"n{more}/{math.factorial(pair.count)}, found {length} in shape {shape}"
        )
    return side


def _expected(
    shown: list[tuple[Tensor, tuple[int, ...]]],
    tensor: Tensor,
    known: Mapping[str, int],
) -> str:
    """The shape of a tensor by other arrays, else by ``known`` extents; unknown axes by name."""
    extents: dict[str, int] = {}
    for other, shape in shown:
        for number, (axis, pair) in enumerate(other.stored()):
            bases = [b.name for b in other.spaces[axis].bases]
            if other is not tensor and pair is None and len(bases) == 1:
                extents.setdefault(bases[0], shape[number])
    extents = {**known, **extents}
    axes = []
    for axis, pair in tensor.stored():
        bases = [b.name for b in tensor.spaces[axis].bases]
        complete = all(base in extents for base in bases)
        n = sum(extents[base] for base in bases) if complete else 0
        if pair is not None:
            n = pair.values(n)
        axes.append(str(n) if complete else tensor.spaces[axis].name)
    return f"shape ({', '.join(axes)}{',' if len(axes) == 1 else ''})"


def _solve_joined(shown: list[tuple[Tensor, tuple[int, ...]]], extents: dict[str, int]) -> None:
    """Add extents that follow only from joined axes: their length less the other parts."""
    solved = True
    while solved:
        solved = False
        for tensor, shape in shown:
            for number, (axis, pair) in enumerate(tensor.stored()):
                bases = [b.name for b in tensor.spaces[axis].bases]
                unknown = [b for b in bases if b not in extents]
                if len(bases) < 2 or len(unknown) != 1:
                    continue
                whole = shape[number] if pair is None else _side(tensor, number, pair, shape)
                rest = whole - sum(extents[b] for b in bases if b in extents)
                if rest >= 0:
                    extents[unknown[0]] = rest
                    solved = True


def _check_shapes(
    shown: list[tuple[Tensor, tuple[int, ...]]],
    extents: Mapping[str, int],
) -> None:
    for tensor, shape in shown:
        bases = {b.name for s in tensor.spaces for b in s.bases}
        if not bases <= extents.keys():
            continue
        expected = stored_shape(tensor, extents)
        for number, (axis, _) in enumerate(tensor.stored()):
            if shape[number] != expected[number]:
                space = tensor.spaces[axis]
                total = " + ".join(f"{b.name}={extents[b.name]}" for b in space.bases)
                raise ShapeError(
                    f"axis {number} of {describe(tensor)} must have length {expected[number]} "
                    f"({space.name}: {total}), found {shape[number]}: expected shape {expected}, "
                    f"found shape {shape}"
                )


def left_out(array: Array) -> tuple[int, ...] | None:
    """Elements behind each axis in the larger C-ordered array that this one is a slice of.

    They are 0 for the first axis; None if the array is not a slice of a C-ordered one.

    Example:
        >>> import numpy as np
        >>> x = np.empty((4, 5, 6))
        >>> left_out(x), left_out(x[1:, 1:3, 2:]), left_out(x[:, :, ::2])
        ((0, 0, 0), (0, 3, 2), None)
    """
    gaps = [0] * array.ndim
    if array.flags.c_contiguous:
        return tuple(gaps)
    # The stride of an axis with one element is arbitrary; such an axis may still be a part.
    inner, step = array.ndim, array.itemsize  # the next axis within; bytes of its stride
    for axis in range(array.ndim - 1, -1, -1):
        if array.shape[axis] == 1:
            continue
        length = array.shape[inner] if inner < array.ndim else 1
        whole, rest = divmod(array.strides[axis], step)
        if rest or whole < length:
            return None
        if whole > length:
            place = inner if inner < array.ndim else axis + 1
            if place == array.ndim:
                return None  # elements of the last axis do not follow each other
            gaps[place] = whole - length
        inner, step = axis, array.strides[axis]
    return tuple(gaps)


def overlaps_itself(array: Any) -> bool:
    """True if two elements of an array, of the CPU or a GPU, share memory.

    Example:
        >>> import numpy as np
        >>> x = np.zeros(12)
        >>> windows = np.lib.stride_tricks.sliding_window_view
        >>> overlaps_itself(x[::-2]), overlaps_itself(windows(x, 3, writeable=True))
        (False, True)
    """
    axes = [(abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n != 1]
    if 0 in array.shape:
        return False
    end = array.itemsize  # bytes up to the end of the axes so far
    for stride, extent in sorted(axes):
        if stride < end:
            break
        end += stride * (extent - 1)
    else:
        return False  # the usual case
    if any(stride < array.itemsize for stride, _ in axes):
        return True
    places = np.zeros((), np.int64)
    for stride, extent in axes:
        places = np.add.outer(places, stride * np.arange(extent))
    return bool((np.diff(np.sort(places, axis=None)) < array.itemsize).any())


def gap_extents(device: Device, tensor: Tensor, array: Any) -> dict[str, int] | None:
    """Extents of the gaps behind the axes of the caller's array, which has the tensor's shape.

    None if kernels cannot take it in place.
    """
    if not tensor.storage.within or not device.holds(array) or not device.aligned(array):
        return None
    gaps = left_out(array)
    if gaps is None:
        return None
    extents, behind = {}, tensor.gaps
    for axis, elements in zip(tensor.stored_order, gaps, strict=True):
        base = behind[axis]
        if base is not None:
            extents[base] = elements
        elif elements:
            return None
    return extents
