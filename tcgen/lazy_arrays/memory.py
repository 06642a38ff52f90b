"""The memory of lazy arrays: an array or the operations that make it, and views that share it.

A view has no array. It is the steps (a slice, a transpose) that lead to it from the array whose
memory it shares. So an update through a view or through the array itself is seen by all of them,
also if the array was still pending when the view was taken.

Pending operations and views of NumPy read the memory. Weak references tell whether they are alive:
an update writes in place if no operation reads the memory, and moves the array to a copy otherwise.
An operation runs at once if a view of NumPy may write to the memory that it reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dis import opname
from operator import getitem
from sys import _getframe
from typing import Any, Self, TypeAlias
from weakref import ref

import numpy as np

from ..errors import ArgumentError
from ..runtime.fork_safe_lock import Lock
from .backend import BACKENDS, HOST, Backend, backend_of
from .dispatch import LIMITS
from .graph import Array, Leaf, Node, Product, leaf, with_axes, with_axes_of_array
from .run import evaluate, evaluate_into
from .views import reshaped, sliced

Step: TypeAlias = tuple[Callable[[Any, Any], Array], Any]  # a function of an array and an argument
# Held while threads that read an array find out, or change, who else reads or writes its memory.
_STATE = Lock()
# Elements whose copy takes the time in which an operation on a lazy view is recorded and run, about
# 30 microseconds.
_VIEW = 2**15


class Memory:
    """An array, pending operations, or a view of another one.

    Attributes:
        _array: the values, if they are known; None for a view.
        _pending: node of the operations that make the values, if they are not known. Of a view:
            the node of its part of the operations of ``_seen``.
        _leaf: weak reference to the node of the known values; pending operations keep it alive.
        _open: the array through which NumPy reads and writes known values: a small array itself,
            a number of NumPy, or an array that lives as long as NumPy's views of a large one.
        _taken: elements of lazy views, where those of NumPy would have needed a copy.
        _mine: only this array writes to the memory, or expects it to stay.
        _in_order: pending operations replaced an array in C order, whose views may have another
            shape: their result is also stored in C order.
        _number: the result of an operation that NumPy would return as a number, not as an array.
        _root: the array that this one is a view of, or None.
        _steps: steps that lead from it to the view.
        _seen: node of the root when the view's node was made.
    """

    __slots__ = (
        *("__weakref__", "_array", "_in_order", "_leaf", "_mine", "_number", "_open"),
        *("_root", "_seen", "_steps", "_pending", "_taken"),
    )

    _array: Array | None
    _in_order: bool
    _leaf: ref[Node] | None
    _mine: bool
    _number: bool
    _open: Any
    _root: Self | None
    _seen: Node | None
    _steps: tuple[Step, ...]
    _pending: Node | None
    _taken: int

    @classmethod
    def _of_array(cls, array: Array, mine: bool) -> Self:
        made = cls.__new__(cls)
        made._root = made._pending = made._leaf = made._open = None
        made._array, made._mine, made._number, made._taken = array, mine, False, 0
        return made

    @classmethod
    def _of_node(cls, node: Node) -> Self:
        made = cls.__new__(cls)
        made._root = made._array = made._leaf = made._open = None
        made._number = not node.shape and node.backend is HOST
        made._in_order, made._taken = False, 0
        made._take(node)
        return made

    def _view(self, step: Step) -> Self:
        made = self.__new__(type(self))
        made._array = made._pending = made._seen = made._open = None
        made._number = False
        if self._root is None:
            made._root, made._steps = self, (step,)
        else:
            made._root, made._steps = self._root, (*self._steps, step)
        return made

    @property
    def _owner(self) -> Self:
        """The array whose memory this one shares, or itself."""
        return self if self._root is None else self._root

    def _part_of(self, array: Any) -> Any:
        """The part of an array of the owner that this one is."""
        for step, argument in () if self._root is None else self._steps:
            array = step(array, argument)
        return array

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
    def _backend(self) -> Backend:
        """The backend of the array, or of the arrays that its operations read."""
        root = self._owner
        pending = root._pending  # first: another thread may settle the array after this line
        if root._array is None and pending is not None and pending.backend is not None:
            return pending.backend
        return backend_of(root._array)

    # ---- values

    def _known(self) -> Array | None:
        """The values, if they are known: memory that may be the caller's."""
        array = self._owner._array
        return None if array is None else self._part_of(array)

    def _values(self) -> Array:
        """The values, computed if need be."""
        root = self._owner
        pending = root._pending  # first: another thread may settle the array after this line
        if root._array is None and pending is not None:
            evaluate((pending,))
            root._settle()
        array = self._known()
        assert array is not None
        return array

    def _take(self, node: Node) -> None:
        """Take the values of a node."""
        if node.has_handle():
            node = with_axes(node, tuple(range(node.ndim)))  # a node has one lazy array
        node.handle = ref(self)
        self._array, self._pending = None, node
        self._settle()

    def _settle(self) -> None:
        """Take the array of operations that have been computed."""
        pending = self._pending
        if pending is None or not isinstance(pending.work, Leaf):
            return
        with _STATE:
            if self._pending is pending:
                work = pending.work
                array, mine = work.array, work.is_new
                leaf_of: ref[Node] | None = ref(pending)
                if work.whole is not None or (self._in_order and not array.flags.c_contiguous):
                    array, mine, leaf_of = array.copy(), True, None
                self._mine, self._leaf, self._open = mine, leaf_of, None
                self._array, self._pending = array, None

    def _plain(self) -> Any:
        """The array of NumPy, or its number, that holds few known elements; None for others."""
        found = self._open
        if found is None:
            if self._root is None:
                if self._array is None:
                    self._settle()
                array = self._array
                if array is not None and (self._number or array.size < LIMITS.elements):
                    return self._opened()
            elif self._root._plain() is not None and not self._root._number:
                return self._known()
        elif found.size < LIMITS.elements or self._number:
            return found
        return None

    def _through(self) -> Any:
        """The array through which NumPy already reads and writes the values, or None."""
        root = self._owner
        array = root._plain() if root._open is None else root._open
        return None if array is None else self._part_of(array)

    def _opened(self) -> Any:
        """The array through which NumPy reads and writes the known values."""
        with _STATE:
            array = self._array
            assert array is not None
            found = array[()] if self._number else self._lending()
            if found is None:
                if not self._is_unshared():
                    array = self._array = array.copy("K")
                    self._mine = True
                self._leaf, self._taken = None, 0
                found = array if array.size < LIMITS.elements else np.asarray(_Lent(array))
            self._open = found
            return found

    def _lending(self) -> Any:
        """The array through which NumPy can write to the memory, or None."""
        lent = self._open
        if lent is None or lent is self._array:
            return lent
        alive = ref(lent) if type(lent) is np.ndarray else None
        self._open = lent = None
        self._open = None if alive is None else alive()
        return self._open

    def _lends(self) -> bool:
        """True if views of NumPy can write to the memory."""
        with _STATE:
            return self._lending() is not None

    def _lent(self) -> Any:
        """The known values, to be read and written by NumPy."""
        return self._part_of(self._owner._opened())

    def _handed_out(self) -> Array:
        """A read-only view of the values; an update then moves to other memory."""
        values = self._values()
        root = self._owner
        backend = backend_of(values)
        with _STATE:
            if root._lending() is not None:
                values = values.copy()
            elif root._mine and root._array is not None:
                root._mine = backend.keep(root._array)
        return backend.read_only(values)

    @property
    def _node(self) -> Node:
        """The node of the values: later updates do not change it."""
        root = self._owner
        if root._array is None:
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
        if root is self:
            return self._known_node()
        self._seen = self._pending = None
        root._values()
        node = root._known_node()
        assert isinstance(node.work, Leaf)
        return node.part(self._part_of(node.work.array))

    def _known_node(self) -> Node:
        """The node of known values: of a copy, where NumPy's arrays may write to few elements."""
        with _STATE:
            array = self._array
            assert array is not None
            node = None if self._leaf is None else self._leaf()
            if node is None:
                lent = self._lending()
                is_open = lent is not None and lent is not array
                if lent is array:
                    array = array.copy()
                node = leaf(array)
                node.work = Leaf(array, None, self._mine, is_open)
                if lent is None:
                    node.handle, self._leaf = ref(self), ref(node)
            return node

    # ---- updates

    def _is_unshared(self) -> bool:
        """True if an update writes in place, since pending operations do not read the memory."""
        root = self._owner
        if root._array is None or not root._mine or backend_of(root._array).is_kept(root._array):
            return False
        return root._leaf is None or root._leaf() is None

    def _writable(self) -> Array:
        """The values in memory that an update may write to; a number cannot be updated."""
        root = self._owner
        if root._number:
            raise ArgumentError("a number cannot be updated: use an array of shape (1,)")
        root._values()
        if not root._is_unshared():
            assert root._array is not None
            root._array = root._array.copy("K")
            root._mine, root._leaf = True, None
        array = self._known()
        assert array is not None
        return array

    def _replace(self, node: Node) -> None:
        """Take the values of a node of this shape and type; a view cannot."""
        array = self._array
        self._in_order = self._in_order if array is None else bool(array.flags.c_contiguous)
        self._leaf = None
        self._take(node)

    def _lazy_part(self, key: Any) -> Any:
        """``self[key]`` for a key of numbers, slices and arrays of NumPy."""
        values = self._known()
        if values is None:
            part = None if self._number else sliced(self._node, key)
            if part is not None and math.prod(part.shape) >= LIMITS.elements:
                dots = key is Ellipsis or (type(key) is tuple and Ellipsis in key)
                return self._view((getitem, key)) if part.ndim or dots else self._of_node(part)
            self._values()
            plain = self._plain()
            if plain is not None:
                return plain[key]
            values = self._values()
        found = values[key]
        if type(found) not in BACKENDS:
            return found
        base = found.base
        if base is None or not (
            base is values or base is values.base or np.may_share_memory(found, values)
        ):
            return found if found.size < LIMITS.elements else self._of_array(found, True)
        small = found.size < LIMITS.elements and found.ndim <= values.ndim
        root = self._owner
        if small and type(found) is np.ndarray and found.dtype.kind in "biufc":
            root._taken += max(found.size, _VIEW)
            assert root._array is not None
            if root._lends() or root._is_unshared() or root._taken >= root._array.size:
                return self._lent()[key]
        return self._view((getitem, key))

    def _written_by(self, key: Any, value: Self) -> bool:
        """Let pending operations write to a slice of the array, which then holds their values."""
        if not (is_basic(key) and self._is_unshared()):
            return False
        node, target = value._node, self._known()
        part = target[key]  # type: ignore[index]
        if type(part) not in BACKENDS or part.shape != node.shape or part.dtype != node.dtype:
            return False
        if not node.has_kernels or node.ran or type(node.work) is Leaf:
            return False
        evaluate_into(node, part)
        root = self._owner
        node.ran = root._lends()
        if not node.ran:
            node.set_array(part, root._known_node())
        return True

    def _changed_by(self, operation: str, other: Self) -> bool:
        """Let pending operations change the array where it is.

        For a whole array, only a product is not deferred: later operations may join other loops.
        """
        if other._known() is not None:
            return False
        node = other._node
        if self.shape != node.shape or self.dtype != node.dtype or not node.has_kernels:
            return False
        if node.ran or type(node.work) is Leaf:
            return False
        if self._root is None:
            if not isinstance(node.work, Product):
                return False
            self._values()
        if not self._is_unshared():
            return False
        target = self._known()
        if type(target) not in BACKENDS:
            return False
        assert target is not None
        evaluate_into(node, target, operation)
        node.ran = True
        return True

    def _is_part(self, key: Any, part: Self) -> bool:
        """True if the part is this slice of the array."""
        root, steps = (self, ()) if self._root is None else (self._root, self._steps)
        if part._root is not root or len(part._steps) != len(steps) + 1:
            return False
        step, argument = part._steps[-1]
        if step is not getitem or part._steps[:-1] != steps:
            return False
        return is_basic(key) and is_basic(argument) and bool(key == argument)

    def _is_row(self, value: Any) -> bool:
        """True if the value is a view of an index of the first axis of the array."""
        if type(value) is not type(self):
            return value.base is not None and np.may_share_memory(value, self._values())
        root, steps = (self, ()) if self._root is None else (self._root, self._steps)
        if value._root is not root or value._steps[:-1] != steps:
            return False
        step, argument = value._steps[-1]
        return step is getitem and type(argument) is int


class _Lent:
    """The base of NumPy's views of an array: it lives as long as one of them."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


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
        elif step is reshaped_array:
            made = reshaped(made, argument)
        else:
            return None
    return made


def reshaped_array(array: Any, shape: tuple[int, ...]) -> Any:
    """The step to another shape, for arrays of NumPy and CuPy."""
    return array.reshape(shape)


def is_basic(key: Any) -> bool:
    """True for a key of numbers, slices and new axes, which can be compared."""
    if type(key) is tuple:
        return all(map(is_basic, key))
    return key is None or key is Ellipsis or type(key) in (int, slice)


def is_called_by_c() -> bool:
    """True if code in C, not a statement of Python, calls the caller's assignment."""
    frame = _getframe(2)
    return opname[frame.f_code.co_code[frame.f_lasti]] != "STORE_SUBSCR"
