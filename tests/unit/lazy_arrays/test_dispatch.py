"""Operations go to NumPy or to kernels as they are worth it; both give the same values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tcgen
from support.lazy_programs import RECORDED, check
from tcgen.lazy_arrays import calls, dispatch
from tcgen.lazy_arrays import run as evaluation
from tcgen.lazy_arrays.dispatch import LIMITS, Times


@pytest.fixture(autouse=True)
def compiled_soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few elements are recorded, and forms compiled at their first run."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "100")
    monkeypatch.setattr(LIMITS, "large", 0.0)
    monkeypatch.setattr(calls, "_VIEW", 0)  # small slices do not evaluate what reads the array
    yield
    dispatch.wait_for_background()


@pytest.fixture
def only_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy runs nothing that a kernel can."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")


@pytest.mark.parametrize(
    "name", ["stencil", "red-black", "reversed", "softmax", "masks", "complex: divided by zero"]
)
def test_kernels_that_are_compiled_later_give_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "10")
    ran = []
    original = evaluation.form_of
    monkeypatch.setattr(evaluation, "form_of", lambda key: ran.append(original(key)) or ran[-1])
    for _ in range(3):
        check(RECORDED[name], tcgen.lazy)
        dispatch.wait_for_background()
    assert all(form.kernel is not None for form in ran)
    assert any(times.runs for form in ran for times in form.times.values())


# Seconds of runs of NumPy (n) and of the kernel (k), of which the first loads it, and which of them
# is then preferred.
CHOICES = {
    "the faster one": "n1 k9 >k k.1 >k k.1 >k",
    "a slow first run of NumPy does not decide": "n4 k9 >k k3 >k k3 >n n1 >n",
    "one slow run changes nothing": f"n1 k9 k.5 {'n1 k.5 ' * 3} k30 k.5 >n >k",
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices(name: str) -> None:
    times = Times()
    for step in CHOICES[name].split():
        if step[0] == ">":
            assert times.prefers_kernel() == (step == ">k")
        else:
            times.record(step[0] == "k", float(step[1:]))


@pytest.mark.parametrize(("numpy", "kernel"), [(1.0, 2.0), (2.0, 1.0), (1.0, 0.01)])
def test_the_slower_one_is_tried_ever_more_seldom(numpy: float, kernel: float) -> None:
    times, trials, spent = Times(), [], 0.0
    for by_kernel in (False, True, True):
        times.record(by_kernel, kernel if by_kernel else numpy)
    for run in range(4000):
        by_kernel = times.prefers_kernel()
        times.record(by_kernel, kernel if by_kernel else numpy)
        spent += kernel if by_kernel else numpy
        if by_kernel != (kernel < numpy):
            trials.append(run)
    assert len(trials) >= 2
    assert len(trials) * abs(numpy - kernel) < 0.02 * spent + 5


def test_a_kernel_that_was_slow_once_is_used_after_all() -> None:
    """NumPy's time varies with the values, and the kernel's first measured run was slow."""
    times, chosen = Times(), []
    for by_kernel, seconds in ((False, 1.0), (True, 9.0), (True, 3.0)):
        times.record(by_kernel, seconds)
    for run in range(400):
        chosen.append(times.prefers_kernel())
        times.record(chosen[-1], 0.8 if chosen[-1] else [1.1, 1.5, 1.6][run % 3])
    assert not any(chosen[:3])
    assert sum(chosen[-200:]) > 190


def test_numpy_adds_to_products_in_their_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "large", 9.0)
    a, b = tcgen.lazy(np.ones((20, 20))), tcgen.lazy(np.full((20, 20), 2.0))
    targets = []
    original = evaluation._value

    def noted(work: Any, given: Any, out: Any, backend: Any) -> Any:
        targets.append(out is not None and any(out is one for one in given))
        return original(work, given, out, backend)

    monkeypatch.setattr(evaluation, "_value", noted)
    total = (a + a @ b).compute()
    assert (total == 41).all()
    assert targets == [False, False, False, True]


def test_few_elements_leave() -> None:
    """Results and views of few elements are NumPy's arrays, numbers its numbers."""
    x = tcgen.lazy(np.full((9, 9), 4.0))
    few = ((x + 1) * x, x - x[:, :1], 2 / x, np.sqrt(x), np.maximum(x, x[0]), x.sum(0), x.copy())
    few += (
        np.cumsum(x),
        x.astype("f4"),
        x.T,
        x.reshape(3, 27),
        np.where(x > 0, x, 1),
        x[1:],
        x @ x,
    )
    assert all(type(made) is np.ndarray for made in few)
    assert type(x.sum()) is type(x.max() * x[0, 0]) is np.float64
    assert [row.tolist() for row in x] == [[4.0] * 9] * 9
    assert (x[:, :, None] + x).pending == 1  # a result of many elements
    assert (x + np.ones((9, 9, 9))).pending == 1
    view = x[1:]
    view += 1
    x[0, 0] = 7
    np.add(x, x, out=x)
    x *= 2
    assert (x[0, 0], x[0, 1], view[0, 0]) == (28, 16, 20)


def test_few_elements_of_many_leave() -> None:
    """A view of NumPy and the lazy array see each other's updates; recorded operations do not."""
    x = tcgen.lazy(np.ones((20, 20)), copy=True)
    before = x + 0
    row = x[0]
    assert type(row) is tcgen.LazyArray  # a view of NumPy would evaluate the operation
    del before
    row = x[0]
    assert type(row) is type(row[1:]) is type(row + 1) is np.ndarray
    row += 1
    double, values = x * 2, x.compute()
    assert double.pending == 0  # the row can change what it reads
    x += 1
    row[1] = 9
    np.subtract(x, 1, out=x)
    x[1:] = double[1:]
    x[1:] += double[1:] * 2
    assert (row[0], row[1], x[0, 1], x[5, 5]) == (2, 8, 8, 6)
    assert (double[0, 0], double[1, 1], values[0, 1]) == (4, 2, 2)
    part = row[3:]
    del row
    part[:] = 5
    assert (x[0, 3], (x * 2).pending) == (5, 0)
    del part
    double = x * 2
    assert double.pending == 1
    x[0] = 0
    assert (double[0, 4], x[0, 4]) == (10, 0)


def test_products_with_few_elements_do_not_wait() -> None:
    a, b = tcgen.lazy(np.ones((20, 30))), tcgen.lazy(np.ones((30, 20)))
    for few in (a @ b[:, :4], a @ b[:, 0], a[0] @ b, np.matmul(a[0], b), b[:, 0] @ a.T):
        assert type(few) is np.ndarray
        assert (few == 30).all()
    assert float(a[0] @ b[:, 0]) == 30
    for many in (a @ b, (a * 2) @ b[:, 0], np.matmul(a, b), a[None] @ b):
        assert many.pending > 0
    c, d = tcgen.lazy(np.ones((9, 2))), tcgen.lazy(np.ones((2, 30)))
    for many in (c @ d, np.matmul(c, d), np.dot(c, d), c.dot(d)):
        assert many.pending == 1
        assert (many.compute() == 2).all()
    for few in (c @ d[:, :9], np.dot(c, d[:, :9]), c.dot(d[:, 0]), np.dot(c, 2)):
        assert type(few) is np.ndarray
    for wrong in (lambda: a @ a[:3], lambda: np.matmul(a, a[0, :3])):
        with pytest.raises(ValueError, match="mismatch"):
            wrong()


def test_a_form_depends_neither_on_numbers_nor_on_extents() -> None:
    keys = set()
    for n in (20, 30):
        for part in (slice(None), slice(None, -1)):
            x = tcgen.lazy(np.ones((n, n)))[part]
            keys.add(evaluation.linearize(((x * n + 1)._node,)).key)
    assert len(keys) == 1


def test_delayed_operations_give_no_warnings() -> None:
    x = tcgen.lazy(np.zeros(200))
    quotient = 1 / x - x / x
    with np.errstate(all="raise"):
        assert np.isnan(np.asarray(quotient)).all()


def test_operations_that_hold_much_memory_are_computed_when_they_are_noted() -> None:
    x = tcgen.lazy(np.ones((1000, 300)))
    total = x * 0
    for shift in range(9):
        total = total + np.sort(x, axis=shift % 2)  # nothing else holds what it returns
    assert total.pending < 2
    assert (total.compute() == 9).all()


def test_operations_on_arrays_that_somebody_holds_go_on_waiting() -> None:
    arrays = [tcgen.lazy(np.ones((1000, 300))) for _ in range(9)]
    total = arrays[0] * 0
    for array in arrays:
        total = total + array
    assert total.pending == 10
    assert (total.compute() == 9).all()


@pytest.mark.usefixtures("only_kernels")
def test_kernels_do_not_read_roots_that_are_known() -> None:
    x = tcgen.lazy(np.ones(300))
    known = x + 1
    known.compute()
    pending = x * 2
    assert [a.tolist() for a in tcgen.compute(known, pending)] == [[2.0] * 300] * 2
    nodes = known._node, (x * 3)._node
    evaluation.evaluate(nodes)
    assert [n.work.array[0] for n in nodes] == [2.0, 3.0]  # type: ignore[union-attr]
