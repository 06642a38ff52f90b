"""Updates of lazy arrays and of their views write through, as NumPy's do."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support.array_programs import check_program
from support.campaigns import cases
from support.messages import mentions
from tcgen.errors import ArgumentError
from tcgen.lazy_arrays import calls
from tcgen.lazy_arrays import run as evaluation
from tcgen.lazy_arrays.graph import Leaf, Node


@pytest.fixture(autouse=True)
def all_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays are also deferred."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")


def _add_to(part: Any) -> None:
    part += 1


UPDATES: dict[str, Callable[[Any], Any]] = {
    "item of an item": lambda a: a[0].__setitem__(1, 9),
    "out": lambda a: np.add(a[:1], 1, out=a[1:2]),
    "out of a method": lambda a: a.sum(0, out=a[0]),
    "copyto": lambda a: np.copyto(a[1:], 7),
    "transpose": lambda a: a.T.__setitem__((0, 1), 9),
    "slice in place": lambda a: _add_to(a[1:]),
    "slice of a slice": lambda a: _add_to(a[1:][::-1, 1]),
    "overlap": lambda a: a.__setitem__(slice(1, None), a[:-1]),
    "overlap in place": lambda a: np.multiply(a[:, 1:], a[:, :-1], out=a[:, 1:]),
    "reshape": lambda a: a.reshape(-1).__setitem__(slice(None, None, 2), 5),
    "function": lambda a: np.reshape(a, 12).fill(2),
    "ravel": lambda a: a.ravel().__setitem__(0, 5),
    "swapaxes": lambda a: _add_to(a.swapaxes(0, 1)[1]),
    "part of a split": lambda a: _add_to(np.split(a, 3)[1]),
    "rows": lambda a: [_add_to(row) for row in a],
    "mask": lambda a: a[1:].__setitem__(a[1:] > 5, 0),
    "real": lambda a: _add_to(a.real[0]),
    "one element": lambda a: _add_to(a[1, 2, ...]),
    "einsum": lambda a: np.einsum("ij->ji", a).__setitem__((0, 1), 9),
    "einsum of a diagonal": lambda a: np.einsum("ii->i", a[:3, :3]).__setitem__(..., 9),
    "at": lambda a: np.add.at(a[1:], ([0, 0],), 1),
    "sort": lambda a: a[:, 1].sort(),
    "copyto where": lambda a: np.copyto(a, a * 2, where=a > 2),
    "fill_diagonal": lambda a: np.fill_diagonal(a, 9),
    "place": lambda a: np.place(a, a > 2, [0]),
    "put": lambda a: np.put(a, [0], 9),
    "put_along_axis": lambda a: np.put_along_axis(a, np.array([[1], [2], [0]]), 9, axis=1),
    "putmask": lambda a: np.putmask(a, a > 2, -a),
    "partition": lambda a: a.partition(1),
    "method put": lambda a: a.put([0], 5),
}


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("name", UPDATES)
def test_updates_write_through_views(
    name: str, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not waits:
        monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "1000000")
    given_array = np.arange(12.0).reshape(3, 4)[::-1].copy()
    wanted, x = given_array.copy(), tcgen.lazy(given_array)
    if waits:
        wanted, x = wanted * 2, x * 2
    view, before = x[1:, ::2], x + 0
    wanted_view, wanted_before = wanted[1:, ::2], wanted + 0
    handed_out = np.asarray(x) if not waits else None
    UPDATES[name](wanted)
    UPDATES[name](x)
    np.testing.assert_array_equal(x, wanted)
    np.testing.assert_array_equal(view, wanted_view)
    np.testing.assert_array_equal(before, wanted_before)
    np.testing.assert_array_equal(given_array, np.arange(12.0).reshape(3, 4)[::-1])
    if handed_out is not None:
        np.testing.assert_array_equal(handed_out, given_array)


def test_an_update_writes_in_place_where_nobody_else_reads() -> None:
    x = tcgen.lazy(np.ones((4, 4))) + 0
    x[0] = 2
    memory = x._values().__array_interface__["data"]
    for _ in range(3):
        x[1:] = x[:-1] * 2
        x[0] += 1
        np.add(x, 1, out=x[...])
    assert x._values().__array_interface__["data"] == memory
    view = x[1:]
    view[0] = 5
    assert x._values().__array_interface__["data"] == memory
    waits = x + 1
    x[0] = 7  # evaluates what reads the memory
    assert waits.pending == 0
    assert x._values().__array_interface__["data"] == memory
    assert waits[0, 0] != 8


@pytest.mark.parametrize("least", ["0", "1000000"])
def test_an_expression_is_not_assigned_to_a_number(
    least: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)
    x = tcgen.lazy(np.ones((3, 3)))
    for key in ((), ..., (...,)):
        for value in (lambda: x.sum() * 2, lambda: (x + 1)[0, 0], lambda: np.exp(x).sum(), float):
            total = (x * 2).sum()
            assert float(total) == 18
            with pytest.raises((TypeError, ArgumentError)):
                total[key] = value()
            again = total
            total += 1
            assert (float(total), float(again)) == (19, 18)


def test_what_cannot_be_updated_says_so() -> None:
    x: Any = tcgen.lazy(np.ones((2, 3)))
    with pytest.raises(ArgumentError, match=mentions("view resized copy")):
        x[1:].resize(3)
    with pytest.raises(ValueError, match="read-only"):
        np.broadcast_to(x, (4, 2, 3))[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        x.flat[0] = 1
    np.testing.assert_array_equal(x, np.ones((2, 3)))


@cases(200, 10_000)
@given(st.integers(0, 2**32 - 1))
def test_random_array_programs_do_what_numpys_do(seed: int) -> None:
    """On arrays of many elements, of few, and of both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCGEN_LAZY_MIN_ELEMENTS", ["0", "4", "5", "1000000"][seed % 4])
        patch.setattr(calls, "_VIEW", [0, 2**15][seed % 2])
        check_program(seed, tcgen.lazy)


@cases(20, 1000)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["0", "4", "20", "1000"]))
def test_threads_share_arrays(seed: int, least: str) -> None:
    """They read the same array at the same time; each updates a copy of its own."""

    def work(e: Any, n: int) -> tuple[Any, Any, Any]:
        total = e * n + e[n % 6]
        own = e.copy()
        own[0] = n
        own[1:] += e[1:]
        return (total[1:] * 2).sum(0), own, e[2] + 1

    values = np.random.default_rng(seed).random((6, 5))
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(4) as pool:
            patch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)
            x = tcgen.lazy(values)
            shared = np.exp(x) + 1 if seed % 2 else x
            wanted = np.exp(values) + 1 if seed % 2 else values
            for n, found in enumerate(pool.map(lambda n: work(shared, n), range(8))):
                for one, right in zip(found, work(wanted, n), strict=True):
                    np.testing.assert_allclose(np.asarray(one), right, rtol=1e-12)
            np.testing.assert_allclose(shared, wanted, rtol=1e-15)
    finally:
        sys.setswitchinterval(usual)


def test_another_thread_may_meet_a_node_as_soon_as_an_operand_knows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noted = Node.is_read_by

    def met(operand: Node, reader: Node) -> None:
        noted(operand, reader)
        assert reader in operand.readers_above()
        assert operand.is_held(())
        assert not reader.has_handle()

    monkeypatch.setattr(Node, "is_read_by", met)
    x = tcgen.lazy(np.ones(3))
    np.testing.assert_array_equal(((x + x) * x).sum(), 6)


@cases(60, 1000)
@given(st.integers(0, 2**32 - 1))
def test_values_do_not_depend_on_references_to_arguments(seed: int) -> None:
    """Other versions of Python count references in other ways, and free them later."""
    held: list[Any] = []

    def holding(method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            held.append((args, options))
            return method(*args, **options)

        return called

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCGEN_LAZY_MIN_ELEMENTS", ["0", "4", "1000000"][seed % 3])
        patch.setattr(calls, "_VIEW", 0)
        for name in ("add", "iadd", "mul", "imul", "isub", "getitem", "setitem", "array_ufunc"):
            method = getattr(tcgen.LazyArray, f"__{name}__")
            patch.setattr(tcgen.LazyArray, f"__{name}__", holding(method))
        check_program(seed, tcgen.lazy)


def test_only_what_a_lazy_array_names_is_stored() -> None:
    x = tcgen.lazy(np.linspace(0, 1, 6))
    for is_named in (True, False):
        e = np.exp(x)
        node, total = e._node, (e * e + e).sum()
        if not is_named:
            del e  # the node is still here
        float(total)
        assert isinstance(node.work, Leaf) == is_named
    shared = np.exp(x)
    node, one, two = shared._node, shared + 1, shared * 2
    del shared
    one.compute()
    assert isinstance(node.work, Leaf)  # another operation reads it
    del two


def test_an_assigned_expression_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its values are in the array that it was assigned to, until that is changed."""
    runs: list[Any] = []
    original = evaluation._run
    monkeypatch.setattr(evaluation, "_run", lambda line: runs.append(line) or original(line))
    x, y = tcgen.lazy(np.linspace(0, 1, 6)), tcgen.lazy(np.zeros(7), copy=True)
    e = np.exp(x) * 2
    y[1:] = e
    place = y.ctypes.data
    twice = e + y[1:]
    y[2] = 7
    assert y.ctypes.data != place  # the operation reads what was there
    wanted = np.exp(np.linspace(0, 1, 6)) * 2
    np.testing.assert_allclose(e, wanted, rtol=1e-15)
    np.testing.assert_allclose(twice, wanted * 2, rtol=1e-15)
    assert (len(runs), y[2], e.strides) == (2, 7, (8,))
    for _ in range(3):
        y[1:] += np.tanh(x) + x
    part, change = y[1:], np.exp(x) * x
    for _ in range(5):
        part += change
    assert len(runs) == 7  # the second change stores it


def test_values_are_assigned_to_attributes() -> None:
    x = tcgen.lazy(np.zeros((2, 2), complex))
    view, before = x[1], x + 0
    x.flat = [1, 2, 3, 4]
    x.real = 5
    view.imag = [6, 7]
    np.testing.assert_array_equal(x, [[5, 5], [5 + 6j, 5 + 7j]])
    np.testing.assert_array_equal(before, np.zeros((2, 2)))
    with pytest.raises(TypeError, match="imag"):
        tcgen.lazy(np.zeros(2)).imag = 1


def _centred(x: Any) -> None:
    x -= x.mean()


def _scaled_part(x: Any) -> None:
    x[1:] *= 2


@pytest.mark.parametrize("change", [_centred, _scaled_part])
def test_a_number_changes_known_values_where_they_are(change: Callable[[Any], None]) -> None:
    values = np.arange(12.0).reshape(3, 4)
    x = tcgen.lazy(values, copy=True)
    x += 1  # has its memory from here on
    place = x.ctypes.data
    change(x)
    assert x.pending == 0
    assert x.ctypes.data == place
    wanted = values + 1
    change(wanted)
    np.testing.assert_array_equal(x, wanted)


def test_an_array_that_was_computed_for_another_one_is_changed_where_it_is() -> None:
    x = tcgen.lazy(np.arange(6.0))
    y = (np.exp(x) + 1) * 2  # its maximum computes it
    most = float(y.max())
    y /= y.max()
    assert y.pending == 0
    np.testing.assert_allclose(y, (np.exp(np.arange(6.0)) + 1) * 2 / most)


@pytest.mark.parametrize("shaped", [np.ravel, np.atleast_1d, lambda x: x.reshape(1)])
def test_arrays_of_numbers_can_be_updated(shaped: Callable[[Any], Any]) -> None:
    total = tcgen.lazy(np.arange(3.0)).sum()
    array = shaped(total)
    array[0] = 7
    np.testing.assert_array_equal(array, [7])
    assert float(total) == 3


def test_a_product_is_added_where_the_array_is() -> None:
    a = np.arange(12.0).reshape(3, 4)
    total, factor = tcgen.lazy(np.ones((3, 3)), copy=True), tcgen.lazy(a)
    total = total * 2
    total += factor @ factor.T
    assert total.pending == 0
    place = total.ctypes.data
    total -= factor @ factor.T
    assert total.ctypes.data == place
    before = total + 1  # keeps what it reads
    total += factor @ factor.T
    np.testing.assert_array_equal(total, a @ a.T + 2)
    np.testing.assert_array_equal(before, np.full((3, 3), 3.0))


GIVEN: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda a: a.T,
    "Fortran order": np.asfortranarray,
    "C order": lambda a: a,
}
CHANGES: tuple[Callable[[Any], Any], ...] = (
    lambda x: x.__iadd__(1),
    lambda x: x.__iadd__(x * 2),
    lambda x: np.exp(x * 0.1, out=x),
    lambda x: x.__setitem__((0, 0), 3),
    lambda x: x[1:].__iadd__(x[:-1]),
)


@pytest.mark.parametrize("least", ["0", "1000"])
@pytest.mark.parametrize("name", GIVEN)
def test_another_shape_is_a_view_where_numpys_is(
    name: str, least: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first update moves the array to memory of its own, which has the same views."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)
    shaped = (lambda x: x.reshape(-1), lambda x: x.ravel(), lambda x: x.T.reshape(2, -1))
    for change, shape in itertools.product(CHANGES, shaped):
        results = []
        for kind in (np.asarray, tcgen.lazy):
            x = kind(GIVEN[name](np.arange(24.0).reshape(4, 6)))
            change(x)
            view = shape(x)
            view[..., 0] = 99
            results.append((np.asarray(x), np.asarray(view)))
        for wanted, found in zip(*results, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("change", [np.add, np.exp])
@pytest.mark.parametrize(
    "view", [lambda x: x.reshape(-1), lambda x: x.ravel(), lambda x: x[1:].reshape(3, 2, 2)]
)
@pytest.mark.parametrize("least", ["0", "1000"])
def test_views_of_another_shape_share_memory_with_results_in_fortran_order(
    change: Any, view: Callable[[Any], Any], least: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)

    def run(x: Any, y: Any) -> Any:
        part = view(x)
        change(*(y.T,) * change.nin, out=x)
        part += 1
        change(*(y.T,) * change.nin, out=x)
        part[1] = 9
        return x

    given = np.arange(16.0).reshape(4, 4) / 8, np.linspace(0, 1, 16).reshape(4, 4)
    wanted = run(*(a.copy() for a in given))
    np.testing.assert_allclose(run(*map(tcgen.lazy, given)), wanted, rtol=1e-15)


# Functions of a square matrix.
VIEWS: dict[str, Callable[[Any], Any]] = {
    **{f"einsum {t}": lambda a, t=t: np.einsum(t, a) for t in ("ii->i", "ij->ji", "ij", "...j")},
    **{
        name: getattr(np, name)
        for name in (
            *("transpose", "ravel", "flipud", "fliplr", "rot90", "squeeze", "atleast_3d", "real"),
            *("diagonal", "flip", "matrix_transpose", "imag"),
        )
        if hasattr(np, name)
    },
    "swapaxes": lambda a: np.swapaxes(a, 0, 1),
    "moveaxis": lambda a: np.moveaxis(a, 0, 1),
    "rollaxis": lambda a: np.rollaxis(a, 1),
    "expand_dims": lambda a: np.expand_dims(a, 1),
    "reshape": lambda a: np.reshape(a, (2, -1)),
    "reshape in Fortran's order": lambda a: np.reshape(a, (2, -1), order="F"),
    "split": lambda a: np.split(a, 2)[1],
    "array_split": lambda a: np.array_split(a, 3)[1],
    "hsplit": lambda a: np.hsplit(a, 2)[0],
    "vsplit": lambda a: np.vsplit(a, 2)[0],
    "broadcast_arrays": lambda a: np.broadcast_arrays(a, a)[0],
    "method ravel": lambda a: a.ravel(),
    "method diagonal": lambda a: a.diagonal(1),
    "method view": lambda a: a.view(),
    "method squeeze": lambda a: a[:1].squeeze(),
    "mT": lambda a: a.mT if hasattr(a, "mT") else a.T,
    "rows": lambda a: a[1:3],
    "a row of rows": lambda a: a[1:][0],
    "diagonal of rows": lambda a: np.diagonal(a[1:3, 1:3]),
    "flip of rows": lambda a: np.flip(a[1:], 0)[0],
    "transpose by name": lambda a: np.transpose(a=a),
    "reshape by name": lambda a: np.reshape(a, shape=-1),
    "split by name": lambda a: np.split(ary=a, indices_or_sections=2)[1],
    "second of broadcast_arrays": lambda a: np.broadcast_arrays(a[1:2], a)[1],
    "second of atleast_2d": lambda a: np.atleast_2d(a, a)[1],
    "broadcast_to": lambda a: np.broadcast_to(a, a.shape),
    "diagonal without elements": lambda a: np.diagonal(a[:0]),
    "sliding_window_view": lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=0),
    "attribute imag": lambda a: a.imag,
    "the array itself": lambda a: np.moveaxis(a.reshape(a.shape).swapaxes(1, 1), 0, 0),
    "no other type": lambda a: a.astype("f8", copy=False),
}


@pytest.mark.few(20)
@pytest.mark.parametrize("extent", [4, 400])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_views_are_views_at_every_size(
    name: str, waits: bool, extent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TCGEN_LAZY_MIN_ELEMENTS")
    values = np.arange(float(extent * extent)).reshape(extent, extent)
    wanted, x = values.copy(), tcgen.lazy(values)
    if waits:
        wanted, x = wanted * 2, x * 2
    seen: list[Any] = []
    for array in (wanted, x):
        made = VIEWS[name](array)
        if VIEWS[name](values).flags.writeable:
            made[...] = -1
            made += 1
            made += 1
        else:
            with pytest.raises(ValueError, match="read-only"):
                made[...] = -1
        array += 1
        seen.append(made)
    np.testing.assert_array_equal(x, wanted)
    np.testing.assert_array_equal(seen[1], seen[0])


@pytest.mark.parametrize("extent", [4, 400])
def test_changes_that_numpy_makes_itself(extent: int) -> None:
    """They are right, or refused before anything is changed."""
    values = np.arange(float(extent * extent)).reshape(extent, extent)
    x = tcgen.lazy(values)
    for shuffle in (np.random.default_rng(0).shuffle, np.random.RandomState(0).shuffle):
        vector = x[0].copy()
        if extent < 400:  # NumPy's own array otherwise
            vector = tcgen.lazy(vector)
        with pytest.warns(UserWarning, match="may contain duplicates"):
            shuffle(vector)
        np.testing.assert_array_equal(np.sort(vector), values[0])
    x[0] = x[1]
    np.testing.assert_array_equal(x[0], values[1])
    with pytest.raises(ArgumentError, match=mentions("flags compute() read-only")):
        x.setflags(write=False)
    with pytest.raises(ArgumentError, match=mentions("flags compute() read-only")):
        x.flags.writeable = False
    with pytest.raises(ArgumentError, match=mentions("flags compute() read-only")):
        x.flags["W"] = False
    assert x.flags.c_contiguous
    assert x.flags["C"]
    y = tcgen.lazy(np.where(values == 1, np.nan, values))
    assert np.nan_to_num(y[:1], copy=False, nan=3.0).shape == (1, extent)
    assert y[0, 1] == 3.0


def test_an_update_sees_the_readers_of_a_part() -> None:
    """The operation whose part is read is gone; the part reads the memory of the array."""
    for take in (
        lambda y: y[1:] * 2,
        lambda y: y[::-1] * 2,
        lambda y: y[None, 1:].T * 2,
        lambda y: y.reshape(2, 5)[1] * 2,
    ):
        x = tcgen.lazy(np.arange(10.0), copy=True)
        later = take(x + 1)
        x += 1
        np.testing.assert_array_equal(later, take(np.arange(10.0) + 1))


def test_an_update_by_a_slice_of_what_something_else_needs() -> None:
    for take in (lambda e: e[1:], lambda e: e[::-1][:-1], lambda e: e[1:] * 2):
        x = np.arange(10.0)
        e, own = np.exp(tcgen.lazy(x)), tcgen.lazy(np.zeros(10), copy=True)
        own[1:] += take(e)
        own[1:] -= take(e) + 0
        own[:-1] = take(e)
        np.testing.assert_array_equal(own, [*take(np.exp(x)), 0])
        np.testing.assert_array_equal(e, np.exp(x))


@pytest.mark.parametrize("limit", ["0", "1000000"])
@pytest.mark.parametrize(
    "take",
    [
        lambda x: x[:0],
        lambda x: x[1:1, 0],
        lambda x: x.T[:, 2:2],
        lambda x: x[::-1, 3:3].T,
        lambda x: x[:0].reshape(-1),
        lambda x: x[:0].ravel(),
        lambda x: x[[]],
        lambda x: x[np.zeros(3, bool)],
        lambda x: x.real[:0],
        lambda x: np.split(x, [0])[0],
    ],
)
@pytest.mark.parametrize("pending", [False, True])
def test_parts_without_elements_may_be_updated(
    take: Callable[[Any], Any], limit: str, pending: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of memory that was handed out, which is read-only."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", limit)
    wanted, x = np.ones((3, 3)), tcgen.lazy(np.ones((3, 3)))
    if pending:
        wanted, x = wanted + wanted, x + x
    np.asarray(x)
    for array in (wanted, x):
        part = take(array)
        part += 1
        part[...] = 5
        np.multiply(part, 2, out=part)
        part[part > 2] = 0
    assert take(x).shape == take(wanted).shape
    np.testing.assert_array_equal(x, wanted)


def test_arguments_of_views_may_change_afterwards() -> None:
    for pending in (False, True):
        x, places, shape = tcgen.lazy(np.arange(12.0).reshape(3, 4)), [1, 2], [4, 3]
        x = x * 1 if pending else x
        one, other = np.split(x, places, 1)[1], x.reshape(shape)
        places[0], shape[:] = 0, [6, 2]
        x += 1
        np.testing.assert_array_equal(one, [[2], [6], [10]])
        np.testing.assert_array_equal(other, np.arange(12.0).reshape(4, 3) + 1)


def test_one_element_of_pending_choices_is_an_array() -> None:
    x = tcgen.lazy(np.arange(4.0))
    for made in (np.where(x + x > 2, x + x, x), np.exp(x), np.power(x, 3)):
        for element in (made[2], made[2, ...], made[-1], made.reshape(2, 2)[1, 0]):
            assert np.asarray(element).shape == ()
        assert np.asarray(made[2]) == np.asarray(made)[2]
