"""The memory of lazy arrays: an array or the operations that make it, and views that share it.

A view has no array. It is the steps (a slice, a transpose) that lead to it from the array whose
memory it shares. So an update through a view or through the array itself is seen by all of them,
also if the array was still pending when the view was taken.

An update writes in place if only this array and its views can see it: recorded operations and NumPy
arrays that were handed out hold references to the memory. Otherwise the array first moves to a
copy.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from sys import getrefcount
from typing import Any, Self, TypeAlias

import numpy as np

from ..errors import ArgumentError
from .backend import HOST, Backend, backend_of
from .evaluate import evaluate
from .graph import Array, Leaf, Node, leaf, with_axes_of_array
from .slices import sliced
from .ufuncs import with_axes

Step: TypeAlias = tuple[Callable[[Any, Any], Array], Any]  # a function of an array and an argument


class Memory:
    """An array, pending operations, or a view of another one.

    Attributes:
        _array: the values, if they are known; None for a view.
        _pending: node of the operations that make the values, if they are not known. Of a view:
            the node of its part of the operations of ``_seen``.
        _mine: only this array writes to the memory, or expects it to stay.
        _in_order: pending operations replaced an array in C order, whose views may have another
            shape: their result is also stored in C order.
        _number: the result of an operation that NumPy would return as a number, not as an array.
        _root: the array that this one is a view of, or None.
        _steps: steps that lead from it to the view.
        _seen: node of the root when the view's node was made.
    """

    __slots__ = (
        *("__weakref__", "_array", "_in_order", "_mine", "_number"),
        *("_root", "_seen", "_steps", "_pending"),
    )

    _array: Array | None
    _in_order: bool
    _mine: bool
    _number: bool
    _root: Memory | None
    _seen: Node | None
    _steps: tuple[Step, ...]
    _pending: Node | None

    @classmethod
    def _of_array(cls, array: Array, mine: bool) -> Self:
        made = cls.__new__(cls)
        made._root = made._pending = None
        made._array, made._mine, made._number = array, mine, False
        return made

    @classmethod
    def _of_node(cls, node: Node) -> Self:
        made = cls.__new__(cls)
        made._root = None
        made._number = not node.shape and node.backend is HOST
        made._in_order = False
        made._take(node)
        return made

    def _view(self, step: Step) -> Self:
        made = self.__new__(type(self))
        made._array = made._pending = made._seen = None
        made._number = False
        if self._root is None:
            made._root, made._steps = self, (step,)
        else:
            made._root, made._steps = self._root, (*self._steps, step)
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape; it is known without the values."""
        array = self._known()
        return self._node.shape if array is None else array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type; it is known without the values."""
        array = self._known()
        return self._node.dtype if array is None else array.dtype

    @property
    def _node(self) -> Node:
        return self._as_node()

    def _is_number(self) -> bool:
        """True for a number of NumPy, and for a view of one."""
        return self._number if self._root is None else self._root._number

    @property
    def _backend(self) -> Backend:
        """The backend of the array, or of the arrays that its operations read."""
        root = self if self._root is None else self._root
        pending = root._pending  # first: another thread may settle the array after this line
        if root._array is None and pending is not None and pending.backend is not None:
            return pending.backend
        return backend_of(root._array)

    def _known(self) -> Array | None:
        """The values, if they are known: memory that may be the caller's."""
        root = self._root
        if root is None:
            return self._array
        array = root._array
        if array is None:
            return None
        for step, argument in self._steps:
            array = step(array, argument)
        return array

    def _values(self) -> Array:
        """The values, computed if need be."""
        root = self if self._root is None else self._root
        pending = root._pending  # first: another thread may settle the array after this line
        if root._array is None and pending is not None:
            evaluate((pending,))
            root._settle()
        array = self._known()
        assert array is not None
        return array

    def _settle(self) -> None:
        """Take the array of operations that have been computed."""
        pending = self._pending
        if pending is not None and isinstance(pending.work, Leaf):
            array = pending.work.array
            if self._in_order and not array.flags.c_contiguous:
                array = array.copy()
            self._array, self._pending, self._mine = array, None, True

    def _handed_out(self) -> Array:
        """A read-only view of the values; an update then moves to other memory."""
        values = self._values()
        root = self if self._root is None else self._root
        backend = backend_of(values)
        if root._mine and root._array is not None:
            root._mine = backend.keep(root._array)
        return backend.read_only(values)

    def _as_node(self) -> Node:
        """The node of the values: later updates do not change it."""
        root = self if self._root is None else self._root
        if root is self and self._array is not None:  # the usual case
            return leaf(self._array)
        root._settle()
        pending = root._pending  # first: another thread may settle the array after this line
        if root._array is None and pending is not None:
            if root is self:
                return pending
            if self._pending is not None and self._seen is pending:
                return self._pending
            node = _part(pending, self._steps)
            if node is not None:
                self._seen, self._pending = pending, node
                return node
        if root is not self:
            self._seen = self._pending = None
        return leaf(self._values())

    def _writable(self) -> Array:
        """The values in memory that an update may write to; a number cannot be updated."""
        root = self if self._root is None else self._root
        if root._number:
            raise ArgumentError("a number cannot be updated: use an array of shape (1,)")
        root._values()
        if not (root._mine and _owns_memory(root)):
            assert root._array is not None
            root._array = root._array.copy("K")
            root._mine = True
        array = self._known()
        assert array is not None
        return array

    def _is_unshared(self) -> bool:
        """True if an update writes in place, since pending operations do not read the memory."""
        root = self if self._root is None else self._root
        return root._array is not None and root._mine and _owns_memory(root)

    def _replace(self, node: Node) -> None:
        """Take the values of a node of this shape and type; a view cannot."""
        array = self._array
        self._in_order = self._in_order if array is None else bool(array.flags.c_contiguous)
        self._take(node)

    def _take(self, node: Node) -> None:
        work = node.work
        if isinstance(work, Leaf):
            self._array, self._pending, self._mine = work.array, None, False
            if self._in_order and not self._array.flags.c_contiguous:
                self._array, self._mine = self._array.copy(), True
        else:
            self._array, self._pending = None, node


def _part(node: Node, steps: tuple[Step, ...]) -> Node | None:
    """The node of a view of pending work; None if the work must be computed."""
    made: Node | None = node
    for step, argument in steps:
        if made is None:
            return None
        if step is getitem:
            made = sliced(made, argument)
        elif step is with_axes_of_array:
            made = with_axes(made, argument)
        else:
            return None
    return made


def _owns_memory(root: Memory) -> bool:
    """True if no view, pending work or variable shares the memory of the array."""
    array: Any = root._array
    if backend_of(array).is_kept(array):
        return False
    if array.base is not None and getrefcount(array.base) > _ATTRIBUTE:
        return False
    del array
    return getrefcount(root._array) <= _ATTRIBUTE


# Refcount of an object held only by an attribute (plus the argument of getrefcount).
_ATTRIBUTE = 2
