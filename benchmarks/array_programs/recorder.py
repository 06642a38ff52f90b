"""Records NumPy code as operations of the partition problem, as Bohrium's bytecode has them.

``recorded(program)`` runs a program on arrays that have shapes and no values. Every operation of
NumPy becomes an :class:`Operation`; arrays end where nobody holds them any longer, and the arrays
that the program returns are observed.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tcgen.fusion.kernels.wsp import Operation, View

REDUCTIONS = {np.sum, np.max, np.min, np.any, np.all}


class Log:
    """The operations of a run, in the order in which they were called."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._numbers = itertools.count()

    def base(self, shape: tuple[int, ...], *, given: bool) -> Base:
        """A new array."""
        return Base(self, f"b{next(self._numbers)}", shape, given)

    def note(
        self,
        name: str,
        operands: tuple[Any, ...],
        out: Recorded,
        space: tuple[int, ...] | None = None,
    ) -> None:
        """Note an operation that writes an array; a reduction has the loops of its operand."""
        loops = out.shape if space is None else space
        reads = tuple(o.view(loops) for o in operands if isinstance(o, Recorded))
        new = () if out.base.begun else (out.base.name,)
        out.base.begun = True
        writes = (out.view(loops, reduces=space is not None),)
        self.operations.append(Operation(name, reads, writes, new, space=loops))


class Base:
    """Memory. Its end is noted when the last array that uses it is gone.

    ``reduced``: a reduction makes it, whose result is read after all of its loops alone.
    """

    def __init__(self, log: Log, name: str, shape: tuple[int, ...], given: bool) -> None:
        self.log, self.name, self.shape, self.begun = log, name, shape, given
        self.reduced = False

    def __del__(self) -> None:
        if self.begun:
            self.log.operations.append(Operation(f"free {self.name}", freed=(self.name,)))


@dataclass(frozen=True)
class Axis:
    """An axis of a view: an axis of the base, first element, number of elements, step."""

    of: int
    first: int
    count: int
    step: int


class Recorded(NDArrayOperatorsMixin):
    """An array, or a view of one: some axes of its base, and new ones that are broadcast."""

    def __init__(self, base: Base, axes: tuple[Axis | None, ...], fixed: dict[int, int]) -> None:
        self.base, self.axes, self.fixed = base, axes, fixed

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(1 if a is None else a.count for a in self.axes)

    @property
    def ndim(self) -> int:
        return len(self.axes)

    @property
    def T(self) -> Recorded:  # noqa: N802  (NumPy's name)
        return Recorded(self.base, self.axes[::-1], self.fixed)

    def view(self, shape: tuple[int, ...], *, reduces: bool = False) -> View:
        """What an operation over ``shape`` reads or writes."""
        rank = len(self.base.shape)
        ranges, order, steps = [(0, 0)] * rank, [-1] * rank, [1] * rank
        for axis, at in self.fixed.items():
            ranges[axis] = (at, at + 1)
        first = len(shape) - len(self.axes)
        for loop, axis in enumerate(self.axes):
            if axis is None:
                continue
            last = axis.first + (axis.count - 1) * axis.step
            ranges[axis.of] = (min(axis.first, last), max(axis.first, last) + 1)
            order[axis.of], steps[axis.of] = first + loop, axis.step
        plain = order == list(range(rank)) and rank == len(shape) and not self.base.reduced
        if self.base.reduced:  # an axis by which a finished result differs from one in the making
            ranges.append((0, 1))
            order.append(-2 if reduces else -1)
            steps.append(1)
        return View(
            self.base.name,
            tuple(ranges),
            () if plain else tuple(order),
            steps=() if all(s == 1 for s in steps) else tuple(steps),
        )

    def __getitem__(self, key: Any) -> Recorded:
        keys = list(key) if isinstance(key, tuple) else [key]
        given = sum(k is not None and k is not Ellipsis for k in keys)
        rest = [slice(None)] * (self.ndim - given)
        place = keys.index(Ellipsis) if Ellipsis in keys else len(keys)
        keys[place : place + 1] = rest
        axes: list[Axis | None] = []
        fixed, left = dict(self.fixed), list(self.axes)
        for part in keys:
            if part is None:
                axes.append(None)
                continue
            axis = left.pop(0)
            if isinstance(part, slice):
                count = 1 if axis is None else axis.count
                start, stop, step = part.indices(count)
                if axis is not None:
                    first = axis.first + start * axis.step
                    taken = len(range(start, stop, step))
                    axis = Axis(axis.of, first, taken, axis.step * step)
                axes.append(axis)
            elif axis is not None:
                fixed[axis.of] = axis.first + part % axis.count * axis.step
        return Recorded(self.base, tuple(axes), fixed)

    def __setitem__(self, key: Any, value: Any) -> None:
        part = self[key]
        same = isinstance(value, Recorded) and value.base is self.base
        if same and value.axes == part.axes and value.fixed == part.fixed:
            return  # ``x[1:] += 1`` ends so
        self.base.log.note("copy", (value,), part)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        if method == "reduce":
            return self._reduced(ufunc.__name__, inputs[0], options.get("axis", 0))
        shape = np.broadcast_shapes(*(i.shape for i in inputs if isinstance(i, Recorded)))
        target = self._new(shape) if out is None else out[0]
        self.base.log.note(ufunc.__name__, inputs, target)
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        name = function.__name__
        if function in REDUCTIONS:
            return self._reduced(name, args[0], options.get("axis", *args[1:2] or (None,)))
        if function is np.where:
            shape = np.broadcast_shapes(*(i.shape for i in args if isinstance(i, Recorded)))
            target = self._new(shape)
            self.base.log.note(name, args, target)
            return target
        if function in (np.zeros_like, np.empty_like):
            return self._new(self.shape)
        raise TypeError(f"{name} is not recorded")

    def sum(self, axis: int | None = None) -> Recorded:
        """``numpy.ndarray.sum``."""
        return self._reduced("sum", self, axis)

    def _new(self, shape: tuple[int, ...]) -> Recorded:
        return new_array(self.base.log, shape, given=False)

    def _reduced(self, name: str, array: Recorded, axis: int | None) -> Recorded:
        """A reduction: the loops are those of its operand, in which its result is not indexed."""
        kept = [n for n in range(array.ndim) if axis is not None and n != axis % array.ndim]
        out = self._new(tuple(array.shape[n] for n in kept))
        loops = array.shape
        placed = Recorded(
            out.base,
            tuple(out.axes[kept.index(n)] if n in kept else None for n in range(array.ndim)),
            {},
        )
        out.base.reduced = True
        self.base.log.note(name, (array,), placed, loops)
        return out


def new_array(log: Log, shape: tuple[int, ...], *, given: bool) -> Recorded:
    """An array, given to the program or made by it."""
    axes = tuple(Axis(n, 0, count, 1) for n, count in enumerate(shape))
    return Recorded(log.base(shape, given=given), axes, {})


class Arrays:
    """The functions of NumPy that make arrays, for programs that are recorded."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def given(self, *shape: int) -> Recorded:
        """An array that the program gets."""
        return new_array(self._log, shape, given=True)

    def zeros(self, *shape: int) -> Recorded:
        """``numpy.zeros``."""
        return self._made("zeros", shape)

    def arange(self, count: int) -> Recorded:
        """``numpy.arange``."""
        return self._made("arange", (count,))

    def random(self, *shape: int) -> Recorded:
        """Random numbers."""
        return self._made("random", shape)

    def _made(self, name: str, shape: tuple[int, ...]) -> Recorded:
        array = new_array(self._log, shape, given=False)
        self._log.note(name, (), array)
        return array


def recorded(program: Callable[[Any], Any]) -> tuple[Operation, ...]:
    """The operations of a program, which gets the functions that make arrays."""
    log = Log()
    result = program(Arrays(log))
    results = result if isinstance(result, tuple) else (result,)
    names = tuple(sorted(array.base.name for array in results))
    log.operations.append(Operation("observe", observed=names))
    operations = tuple(log.operations)
    log.operations = []  # what is held now is not freed by the program
    del result, results
    gc.collect()
    return operations
