"""The memory of lazy arrays: an array or the operations that make it, and views that share it.

A view has no array. It is the steps (functions that take a slice, a transpose) that lead to it
from the array whose memory it shares. So an update through a view or through the array itself is
seen by all of them, also if the array was still pending when the view was taken.

An update first evaluates the pending operations that read the memory. It then writes in place,
unless the memory is the caller's or was handed out: the array moves to a copy then. NumPy's views
of the memory can write to it unseen: while one is alive, operations on the array run at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, Self, TypeAlias
from weakref import ref

import numpy as np

from ..errors import ArgumentError
from ..ir.reduction import Reduction
from ..runtime.fork_safe_lock import Lock
from .backend import BACKENDS, HOST, Backend, backend_of
from .dispatch import LIMITS
from .graph import Array, Leaf, Node, Product, Reduce, leaf, with_axes
from .run import evaluate, evaluate_into
from .views import UNREAD, picked, viewed

Step: TypeAlias = Callable[[Any], Any]  # takes a part of an array
# Held while threads that read an array find out, or change, who else reads or writes its memory.
_STATE = Lock()


def _followed(steps: tuple[Step, ...], array: Any) -> Any:
    """The part of an array to which steps lead."""
    for take in steps:
        array = take(array)
    return array


def _one(take: Step, place: int, array: Any) -> Any:
    """One of several views."""
    return take(array)[place]


class Memory:
    """An array, pending operations, or a view of another one.

    Attributes:
        _array: the values, if they are known; None for a view.
        _pending: node of the operations that make the values, if they are not known. Of a view:
            the node of its part of the operations of ``_seen``.
        _leaf: weak reference to the node of the known values; pending operations keep it alive.
        _open: the array through which NumPy reads and writes known values: that of few elements
            itself, a number of NumPy, or an array that lives as long as NumPy's views of many.
        _mine: only this array writes to the memory, or expects it to stay.
        _in_order: pending operations replaced an array in C order, whose views may have another
            shape: their result is also stored in C order.
        _number: the result of an operation that NumPy would return as a number, not as an array.
        _root: the array that this one is a view of, or None.
        _steps: steps that lead from it to the view.
        _seen: node of the root when the view's node was made.
        _taken: elements of lazy views, where those of NumPy would have evaluated or copied them.
    """

    __slots__ = (
        *("__weakref__", "_array", "_in_order", "_leaf", "_mine", "_number", "_open"),
        *("_pending", "_root", "_seen", "_steps", "_taken"),
    )

    _array: Array | None
    _in_order: bool
    _leaf: ref[Node] | None
    _open: Any
    _mine: bool
    _number: bool
    _pending: Node | None
    _root: Self | None
    _seen: Node | None
    _steps: tuple[Step, ...]
    _taken: int

    @classmethod
    def _of_array(cls, array: Array, mine: bool) -> Self:
        made = cls._made(None, ())
        made._array, made._mine = array, mine
        return made

    @classmethod
    def _of_node(cls, node: Node) -> Self:
        made = cls._made(None, ())
        made._number = not node.shape and node.backend is HOST
        made._take(node)
        return made

    def _view(self, step: Step) -> Self:
        return self._made(self._owner, (*self._steps, step))

    @classmethod
    def _made(cls, root: Self | None, steps: tuple[Step, ...]) -> Self:
        made = cls.__new__(cls)
        made._root, made._steps = root, steps
        made._array = made._pending = made._seen = made._leaf = made._open = None
        made._number = made._in_order = made._mine = False
        made._taken = 0
        return made

    def _views(self, take: Step) -> Any:
        """The views that a function takes of pending operations; None if it needs their values.

        It gets an array in C order, so that the result is stored in this order where the views have
        another shape. Views of few elements are those of known values.
        """
        root = self._owner
        root._settle()
        pending = root._pending
        if self._number or pending is None:
            return None
        whole = UNREAD.in_shape(pending.shape)
        found = take(self._part_of(whole))
        several = type(found) in (tuple, list)
        made = []
        for n, part in enumerate(found if several else (found,)):
            if type(part) is not np.ndarray or part.base is not whole.base:
                return None
            view = self._view(partial(_one, take, n) if several else take)
            view._seen = pending
            steps = view._steps
            view._pending = viewed(pending, partial(_followed, steps) if steps[1:] else steps[0])
            if view._pending is None or part.size < min(LIMITS.elements, whole.size):
                return None
            root._in_order |= type(take) is not itemgetter and picked(whole, part) is None
            made.append(view)
        return type(found)(made) if several else made[0]

    @property
    def _owner(self) -> Self:
        """The array whose memory this one shares, or itself."""
        return self if self._root is None else self._root

    def _part_of(self, array: Any) -> Any:
        """The part of an array of the owner that this one is."""
        return _followed(self._steps, array)

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
        """The array of NumPy that holds few known elements, or its number; None for others.

        NumPy reads it, and writes to it.
        """
        found = self._open
        if found is None:
            root = self if self._root is None else self._root
            if root is not self:
                return None if root._plain() is None else self._known()
            if self._array is None:
                self._settle()
            array = self._array
            if array is None or not (self._number or array.size < LIMITS.elements):
                return None
            if self._number:
                found = array[()]
            else:
                if not self._mine or self._leaf is not None:
                    self._unshare()
                found = self._array
            self._open = found
        elif not self._number and found.size >= LIMITS.elements:
            return None
        return found

    def _numpys(self) -> Any:
        """The array, if NumPy reads and writes it: few known elements, or a part of lent memory."""
        root = self if self._root is None else self._root
        lent = root._open  # another thread may change it after this line
        return self._plain() if lent is None or root._number else _followed(self._steps, lent)

    def _lends(self) -> bool:
        """True if NumPy's arrays can write to the memory."""
        lender = self._open
        if lender is None or self._number:
            return False
        if lender is not self._array:
            alive = ref(lender)
            self._open = lender = None
            self._open = alive()
        return self._open is not None

    def _lent(self) -> Any:
        """The known values, to be read and written by NumPy."""
        root = self._owner
        lender = root._open  # another thread may change it after this line
        if lender is None:
            lender = root._plain()
        if lender is None:
            root._unshare()
            assert root._array is not None
            root._taken = 0
            root._open = lender = np.asarray(_Lent(root._array))
        return self._part_of(lender)

    def _handed_out(self) -> Array:
        """A read-only view of the values; an update then moves to other memory."""
        values = self._values()
        root = self._owner
        backend = backend_of(values)
        with _STATE:
            if root._lends():
                values = values.copy()
            elif root._mine and root._array is not None:
                backend.freeze(root._array)
                root._mine = False
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
                node = viewed(pending, partial(_followed, self._steps))
                if node is not None:
                    self._seen, self._pending = pending, node
                    return node
                root._values()
        if root is self:
            return self._known_node()
        self._seen = self._pending = None
        node = root._known_node()
        assert isinstance(node.work, Leaf)
        return node.part(self._part_of(node.work.array))

    def _known_node(self) -> Node:
        """The node of known values."""
        with _STATE:
            array = self._array
            assert array is not None
            node = None if self._leaf is None else self._leaf()
            if node is None:
                lends = self._lends()
                node = leaf(array)
                if self._open is array:
                    node.work = Leaf(array, is_borrowed=True)
                    return node
                node.work = Leaf(array, None, self._mine, lends)
                if not lends:
                    node.handle, self._leaf = ref(self), ref(node)
            return node

    # ---- updates

    def _is_read(self) -> bool:
        """True if pending operations read the memory."""
        node = None if self._leaf is None else self._leaf()
        return node is not None and bool(node.readers_above())

    def _unshare(self) -> None:
        """Let this array alone, with its views, write to the memory."""
        node = None if self._leaf is None else self._leaf()
        above = [] if node is None else node.readers_above()
        evaluate([reader for reader in above if reader.has_handle()])
        for reader in above:
            handle = None if reader.handle is None else reader.handle()
            if handle is not None:
                handle._settle()
        with _STATE:
            assert self._array is not None
            if not self._mine or (node is not None and node.readers_above()):
                self._array, self._mine = self._array.copy("K"), True
            self._leaf = None

    def _writable(self) -> Array:
        """The values in memory that an update may write to; a number cannot be updated."""
        root = self._owner
        if root._number:
            raise ArgumentError("a number cannot be updated: use an array of shape (1,)")
        root._values()
        root._unshare()
        array = self._known()
        assert array is not None
        return array

    def _replace(self, node: Node) -> None:
        """Take the values of a node of this shape and type; a view cannot."""
        array = self._array
        self._in_order = self._in_order if array is None else bool(array.flags.c_contiguous)
        self._leaf = None
        self._take(node)

    def _filled(self, key: Any, value: Self, change: str = "") -> bool:
        """Let a kernel write pending operations to a slice of the memory; False if NumPy has to.

        ``change`` is ``add`` or ``subtract`` if the values change the slice.
        """
        if value._known() is not None or value._node.ran or not value._node.has_kernels:
            return False
        target: Any = self._writable()[key]
        node = value._node  # it has been evaluated if it reads the memory
        if type(target) not in BACKENDS or type(node.work) is Leaf or target is self._owner._open:
            return False
        if (target.shape, target.dtype) != (node.shape, node.dtype):
            return False
        evaluate_into(node, target, change)
        root = self._owner
        node.ran = bool(change) or root._lends()
        if not node.ran:
            node.set_array(target, root._known_node())
        return True

    def _changed_by(self, operation: str, other: Self) -> bool:
        """Let pending operations change the array where it is.

        For a whole array, only a product is not deferred: later operations may join other loops.
        """
        if other._known() is not None:
            return False
        work = other._node.work
        if self._root is None and not isinstance(work, Product):
            return False
        if isinstance(work, Reduce) and work.reduction is not Reduction.SUM:
            return False
        return not self._owner._number and self._filled(..., other, operation)


class _Lent:
    """The base of NumPy's views of an array: it lives as long as one of them."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__
