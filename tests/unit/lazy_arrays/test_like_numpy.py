"""Lazy arrays where NumPy is particular: ``out=``, memory that changes, threads, errors."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tcgen
from support.messages import mentions
from tcgen.errors import ArgumentError
from tcgen.lazy_arrays import run as evaluation

Array = npt.NDArray[Any]


@pytest.fixture(autouse=True, params=["0", "1000000"], ids=["kernels", "numpy"])
def least_elements(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything goes to kernels, on the target that needs no compiler, or everything to NumPy."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", request.param)
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")


@pytest.fixture
def all_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays are also recorded."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")


def grid(*shape: int) -> Array:
    return np.arange(float(np.prod(shape))).reshape(shape) + 1


# ---- where results go


# Of a matrix, a vector, a mask and a matrix for the result; None for a part of it.
OUT: tuple[Callable[[Any, Any, Any, Any], Any], ...] = (
    lambda x, v, m, out: np.add(x, x, out=out),
    lambda x, v, m, out: np.exp(x, out=out),
    lambda x, v, m, out: np.square(x, out=out),
    lambda x, v, m, out: np.matmul(x, x, out=out),
    lambda x, v, m, out: np.dot(x, x, out=out),
    lambda x, v, m, out: np.einsum("ij->ij", x, out=out),
    lambda x, v, m, out: np.einsum(x, [0, 1], [1, 0], out=out),
    lambda x, v, m, out: np.cumsum(x, axis=0, out=out),
    lambda x, v, m, out: np.clip(x, 2, 5, out=out),
    lambda x, v, m, out: np.add(x, v, out=out),
    lambda x, v, m, out: np.add(v, 1, out=out),
    lambda x, v, m, out: np.add(x, 1, out=out, where=m),
    lambda x, v, m, out: np.exp(x, out=out, where=m),
    lambda x, v, m, out: np.add(x, x, out=x),
    lambda x, v, m, out: np.multiply(x, v, out=x),
    lambda x, v, m, out: np.exp(v, out=x),
    # parts of the result, also by position
    lambda x, v, m, out: np.sum(x, 0, None, out[0]),
    lambda x, v, m, out: np.sum(x, 0, None, out[0], False),
    lambda x, v, m, out: np.mean(x, 0, None, out[0]),
    lambda x, v, m, out: np.max(x, 0, out[1]),
    lambda x, v, m, out: x.sum(1, out=out[:, 1]),
    lambda x, v, m, out: np.sum(x, axis=1, where=m, out=out[0]),
    lambda x, v, m, out: np.clip(x[0], 1.0, 2.0, out[0]),
    lambda x, v, m, out: np.round(x[1] / 3, 1, out[0]),
    lambda x, v, m, out: np.dot(x[:1, 0], x[:1], out[0]),
    lambda x, v, m, out: np.concatenate([x[0, :1], x[1, 1:]], 0, out[0]),
    lambda x, v, m, out: np.subtract(x[1:], x[:-1], out=x[:-1]),
    lambda x, v, m, out: np.add(x, x.T, out=x.T),
    lambda x, v, m, out: np.modf(x / 2, out=(None, out))[0],
    lambda x, v, m, out: np.divmod(x, v, out=(x, out[::-1]))[1],
    # other types and shapes
    lambda x, v, m, out: np.add(x, v, out=np.zeros(x.shape, "f4")),
    lambda x, v, m, out: np.add(x, 0.5, out=np.zeros_like(x, int)),
    lambda x, v, m, out: np.add(x, 0.5, out=np.zeros_like(x, int), casting="unsafe"),
    lambda x, v, m, out: np.add(x, 0.5, out=m),
    lambda x, v, m, out: np.sum(x, axis=0, out=out),
    lambda x, v, m, out: np.add(x, v, out=v),
)


@pytest.mark.parametrize("call", OUT)
@pytest.mark.parametrize("lazy", ["x v m out", "x", "out", "m", "x out"])
def test_results_go_where_out_says(call: Callable[..., Any], lazy: str) -> None:
    """Operations recorded before read what was there; the caller's arrays are not written to."""

    def run(x: Any, v: Any, m: Any, out: Any) -> list[Any]:
        before = [x + 0, out + 0]
        try:
            made = call(x, v, m, out)
        except (TypeError, ValueError) as error:
            return [type(error), x, v, m, out, *before]
        whole = [n for n, array in enumerate((x, out)) if made is array]
        return [whole, made, x, v, m, out, *before]

    given = grid(3, 3), grid(3) / 2, grid(3, 3) % 2 == 0, np.full((3, 3), -7.0)
    wanted = run(*(a.copy() for a in given))
    named = zip(["x", "v", "m", "out"], given, strict=True)
    kept = [a.copy() for a in given]
    found = run(*(tcgen.lazy(a) if n in lazy.split() else a.copy() for n, a in named))
    assert found[0] == wanted[0]
    for one, other in zip(found[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
        assert one.dtype == other.dtype
    for array, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(array, before)


# ---- memory that changes


def read_only(array: Array) -> Array:
    view = array[:]
    view.flags.writeable = False
    return view


@pytest.mark.parametrize(
    "view",
    [
        lambda b: b,
        read_only,
        lambda b: np.broadcast_to(b, (2, 6)),
        lambda b: np.broadcast_to(b[:, None], (6, 6)),
        lambda b: read_only(read_only(b)[::2])[:, None].repeat(6, 1),
        lambda b: np.lib.stride_tricks.sliding_window_view(b, 6),
        lambda b: np.frombuffer(memoryview(b)),
    ],
)
def test_views_of_memory_that_can_change_are_copied(view: Callable[[Array], Array]) -> None:
    b = np.zeros(6)
    y = tcgen.lazy(np.ones((1, 6))) + view(b)
    b[:] = 100
    np.testing.assert_array_equal(y, np.ones(y.shape))


@pytest.mark.usefixtures("all_noted")
def test_memory_that_cannot_change_is_not_copied() -> None:
    owner = np.zeros(6)
    owner.flags.writeable = False
    fixed = np.frombuffer(np.zeros(6).tobytes())
    values = np.asarray(tcgen.lazy(np.ones(6)) * 2)
    for array in (owner, owner[1:], np.broadcast_to(owner, (3, 6)), fixed, values):
        held = (tcgen.lazy(np.ones(array.shape)) + array)._node.work.operands[1].work.array
        assert np.shares_memory(held, array)


def test_a_copy_is_taken_of_a_lazy_array_too() -> None:
    values = grid(3)
    there, waits = tcgen.lazy(values), tcgen.lazy(values) + 1
    assert tcgen.lazy(there) is there
    copies = tcgen.lazy(there, copy=True), tcgen.lazy(waits, copy=True)
    values[:] = 99
    np.testing.assert_allclose(copies[0], grid(3))
    np.testing.assert_allclose(copies[1], grid(3) + 1)


def test_computed_values_are_no_alias_of_the_callers_array() -> None:
    values = grid(2, 3)
    y = np.einsum("ij->j", tcgen.lazy(values))
    np.asarray(y)
    values[:] = 99
    np.testing.assert_allclose(y, grid(2, 3).sum(0))


# ---- threads


@pytest.mark.usefixtures("all_noted")
def test_another_thread_computes_the_same_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tcgen.lazy(grid(4, 5))
    shared = np.exp(-x)
    y = shared * 2 + shared
    meanwhile = threading.Thread(target=tcgen.compute, args=(shared, y))

    def after_the_other(run: Callable[[Any], Any], roots: Any) -> Any:
        if not meanwhile.ident:
            meanwhile.start()
            meanwhile.join()
        return run(roots)

    monkeypatch.setattr(evaluation, "_run", partial(after_the_other, evaluation._run))
    np.testing.assert_allclose(y, np.exp(-grid(4, 5)) * 3)
    assert meanwhile.ident
    assert (y.pending, shared.pending) == (0, 0)


# ---- arguments and errors


@pytest.mark.usefixtures("all_noted")
def test_arguments_by_position_are_those_of_numpy() -> None:
    x, lazy = grid(2, 3), tcgen.lazy(grid(2, 3))
    assert float(np.sum(lazy, None, None, None, False, 5.0)) == x.sum() + 5
    none = np._NoValue
    np.testing.assert_allclose(np.sum(lazy, 0, None, None, True), x.sum(0, keepdims=True))
    assert float(np.sum(lazy, None, None, None, none, none, none)) == x.sum()
    assert np.mean(lazy, 1, None, None, True).shape == (2, 1)
    assert np.sum(lazy, 1, keepdims=none).pending == 1  # still recorded
    assert np.add.reduce(lazy, keepdims=False, where=True).pending == 1


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (np.ma.array([1.0, 2.0], mask=[False, True]), "lazy mask"),
        (np.array([[1.0, 2.0]]).view(np.matrix), "lazy elements"),
    ],
    ids=["masked", "matrix"],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda x, other: x + other,
        lambda x, other: other + x,
        lambda x, other: other * x,
        lambda x, other: other - x,
        lambda x, other: np.maximum(x, other),
        lambda x, other: np.add(x, 1, out=other),
        lambda x, other: np.where(tcgen.lazy(np.ones(2, bool)), other, x),
        lambda x, other: np.concatenate([x, other]),
        lambda x, other: np.sum(x, out=other),
        lambda x, other: x.__setitem__(0, other),
    ],
)
def test_other_arrays_are_refused(
    call: Callable[[Any, Any], Any], other: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=mentions(message)):
        call(tcgen.lazy(np.ones(2)), other)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, other: x @ other,
        lambda x, other: x * other,
        lambda x, other: x + other,
        lambda x, other: other - x,
        lambda x, other: other / x,
        lambda x, other: np.dot(x, other),
    ],
)
def test_sparse_arrays_are_refused_but_where_they_do_the_work(
    call: Callable[[Any, Any], Any],
) -> None:
    sparse = pytest.importorskip("scipy.sparse").eye_array(2, format="csr") * 3
    x = tcgen.lazy(np.ones((2, 2)))
    with pytest.raises(ArgumentError, match=mentions("csr_array NumPy")):
        call(x, sparse)
    np.testing.assert_array_equal(sparse @ x, [[3, 3], [3, 3]])


def test_a_masked_array_is_not_updated_by_a_lazy_one() -> None:
    other = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(ArgumentError, match=mentions("mask")):
        other += tcgen.lazy(np.ones(2))
    np.testing.assert_array_equal(other.data, [1, 2])


MISTAKES: tuple[Callable[[Any], Any], ...] = (
    lambda x: x + np.ones(4),
    lambda x: x + x[:, :2],
    lambda x: x @ x,
    lambda x: x @ np.ones((1, 4)),
    lambda x: np.dot(np.ones(1), x),
    lambda x: x @ 2.0,
    lambda x: np.einsum("ij,jk", x, x),
    lambda x: np.einsum("ij,jk,kl", x, x.T, x, optimize="nonsense"),
    lambda x: np.einsum("ij,jk,kl", x, x.T, x, optimize=7),
    lambda x: x.sum(axis=2),
    lambda x: x.sum(axis=(0, 0)),
    lambda x: x.sum(axis=(0, -3)),
    lambda x: x.sum(axis=1.5),
    lambda x: np.add.reduce(x, axis=2),
    lambda x: np.mean(x, axis=-4),
    lambda x: np.diff(x, axis=3),
    lambda x: x.argmax(axis=5),
    lambda x: x.transpose(0),
    lambda x: x.transpose(0, 5),
    lambda x: np.transpose(x, (1, 1)),
    lambda x: x.swapaxes(0, 2),
    lambda x: x.reshape(4),
    lambda x: np.where(x > 0, x, np.ones(4)),
    lambda x: np.roll(x, 1, 4),
    lambda x: np.roll(x, (1, 2), (0, 5)),
    lambda x: np.concatenate([x, x[:, :1]]),
    lambda x: np.concatenate([x, x], 2),
    lambda x: np.concatenate([]),
    lambda x: np.split(x, 2, 1),
    lambda x: np.squeeze(x, 0),
    lambda x: np.moveaxis(x, 0, 3),
    lambda x: np.tensordot(x, x, 1),
    lambda x: x[:, :, 0],
    lambda x: x[5],
    lambda x: x.__setitem__(slice(1, None), np.ones(4)),
    lambda x: np.add(x, x, out=x[:1]),
)


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("pending", [False, True])
def test_errors_are_numpys(mistake: Callable[[Any], Any], pending: bool) -> None:
    with pytest.raises(Exception) as numpys:
        mistake(grid(2, 3))
    x = tcgen.lazy(grid(2, 3))
    with pytest.raises(numpys.type) as found:
        mistake(x * 1 if pending else x)
    assert type(found.value) is numpys.type
    assert str(found.value) == str(numpys.value)


def test_axes_are_whole_numbers() -> None:
    x = tcgen.lazy(grid(2, 3))
    np.testing.assert_allclose(x.sum(axis=np.array(1)), grid(2, 3).sum(1))
    with pytest.raises(TypeError):
        len(x.sum())


@pytest.mark.parametrize(
    "optimize", [True, False, "greedy", "optimal", ["einsum_path", (1, 2), (0, 1)]]
)
def test_orders_of_contraction_are_numpys(optimize: Any) -> None:
    x, y = tcgen.lazy(grid(3, 3)), grid(3, 3)
    np.testing.assert_allclose(np.einsum("ij,jk,kl", x, x, x, optimize=optimize), y @ y @ y)


# ---- numbers and protocols


@pytest.mark.usefixtures("all_noted")
def test_first_powers_keep_complex_infinities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TCGEN_EINSUM_TARGET")  # generated C multiplied by 1
    x = np.array([complex(0, np.inf), complex(np.inf, 0), complex(1, 2)])
    y = tcgen.lazy(x) ** 1
    assert y.pending == 1
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(((tcgen.lazy(x[2:]) ** 1) * x[2:]).sum(), x[2] ** 2)


def test_numbers_are_rounded_and_counted_with() -> None:
    x, whole = tcgen.lazy(grid(2, 3) / 4), tcgen.lazy(np.array(3))
    assert (round(x.sum()), round(x.sum(), 1)) == (round(21 / 4), round(21 / 4, 1))
    assert type(round(x.sum())) is int
    assert list(range(whole)) == [0, 1, 2]
    assert "abcd"[whole] == "d"
    with pytest.raises(TypeError, match="__round__"):
        round(x)
    for other in (x.sum(), tcgen.lazy(np.arange(3))):
        with pytest.raises(TypeError, match="integer"):
            index(other)


@pytest.mark.skipif(np.__version__ < "2", reason="NumPy 1 knows no copy=False that is kept")
def test_a_copy_that_is_not_wanted_is_not_taken() -> None:
    y = tcgen.lazy(grid(3)) + 1
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.array(y, dtype="f4", copy=False)
    assert np.shares_memory(np.array(y, copy=False), np.asarray(y))
    assert np.asarray(y, "f4").dtype == np.float32
    taken = np.array(y)
    assert taken.flags.writeable
    assert not np.shares_memory(taken, np.asarray(y))


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda a, b, v: (a * v).sum(0),
        lambda a, b, v: (a * v).sum(),
        lambda a, b, v: (a @ b).sum(),
        lambda a, b, v: (a @ b) @ v,
        lambda a, b, v: (b - b) @ a,
        lambda a, b, v: (0 * b).sum(1),
        lambda a, b, v: (a * 1e308 * 1e308).sum(0) * 0,
    ],
)
def test_infinities_and_nan_stand_where_numpy_has_them(evaluate: Any, monkeypatch: Any) -> None:
    """Nothing is reordered: 0*inf and inf - inf occur in the kernel where they occur in NumPy."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    random = np.random.default_rng(0)
    a, b, v = random.random((4, 4)), random.random((4, 4)), random.random(4)
    a[0, 0], b[0, 1], v[0] = 0.0, np.inf, np.inf
    with np.errstate(all="ignore"):
        wanted = evaluate(a, b, v)
        found = np.asarray(evaluate(tcgen.lazy(a), tcgen.lazy(b), tcgen.lazy(v)))
    np.testing.assert_allclose(found, wanted)


class Tagged:
    """An array of another library, which has its own functions."""

    def __array_function__(self, func, types, args, kwargs):
        return func.__name__, sorted(kind.__name__ for kind in types)


class Refusing:
    def __array_function__(self, func, types, args, kwargs):
        return NotImplemented


def test_functions_leave_arrays_of_other_libraries_to_them() -> None:
    x = tcgen.lazy(np.arange(3.0))
    assert np.concatenate((x, Tagged())) == ("concatenate", ["LazyArray", "Tagged"])
    with pytest.raises(TypeError, match="no implementation found"):
        np.concatenate((x, Refusing()))


READING: dict[str, Callable[[Any], Any]] = {
    "argmax": lambda x: np.argmax(x.astype(int)),
    "argmin": lambda x: x.astype(int).argmin(),
    "bincount": lambda x: np.bincount(x.astype(int)),
    "choose": lambda x: np.choose(x.astype(int), [x, x]),
    "convolve": lambda x: np.convolve(x, x[:3]),
    "correlate": lambda x: np.correlate(x, x[:3]),
    "interp": lambda x: np.interp(x[:3], x, x),
    "repeat": lambda x: np.repeat(x, 2),
    "repeat method": lambda x: x.repeat(2),
    "take": lambda x: np.take(x, x[:9].astype(int)),
}


@pytest.mark.parametrize("name", READING)
def test_numpy_copies_nothing_for_functions_that_only_read(name: str) -> None:
    array = np.linspace(0.0, 1.0, 50_000)
    peaks = []
    for x in (array, tcgen.lazy(array)):
        READING[name](x)
        tracemalloc.start()
        found = READING[name](x)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        np.testing.assert_array_equal(found, READING[name](array))
    assert peaks[1] < peaks[0] + array.nbytes / 2
    assert np.array_equal(array, np.linspace(0.0, 1.0, 50_000))


@pytest.mark.parametrize("exponent", [0, 2, 2.0, 3, np.int64(2), np.True_])
@pytest.mark.parametrize("kind", ["bool", "int64", "float64"])
def test_powers_of_numbers_have_the_types_of_numpys_numbers(kind: str, exponent: Any) -> None:
    x = np.array([1, 0, 1]).astype(kind)
    for work in (lambda x: x.max() ** exponent, lambda x: (x > 0).all() ** exponent):
        found, wanted = work(tcgen.lazy(x)), work(x)
        assert found.dtype == wanted.dtype
        assert found == wanted
