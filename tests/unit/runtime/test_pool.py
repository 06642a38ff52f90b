"""Memory of released arrays is used again, and never while anything still sees it."""

from __future__ import annotations

import gc
import threading
from random import Random
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.runtime import host_device as allocation
from tcgen.runtime.host_device import Pool


def pool(most: int = 10**9) -> Pool:
    return Pool(lambda count: np.empty(count, np.uint8), lambda: most)


def place(array: Any) -> int:
    return array.__array_interface__["data"][0]


def test_released_memory_is_used_again_and_starts_on_a_cache_line() -> None:
    made = pool()
    for shape, dtype in (
        ((3, 5), "float64"),
        ((7,), "float32"),
        ((2, 0), "complex128"),
        ((), "f8"),
    ):
        array = made.array(shape, dtype)
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.flags.writeable
        first = place(array)
        assert first % 64 == 0
        del array
        again = made.array(shape, dtype)
        assert place(again) == first
        other = made.array(shape, dtype)
        assert place(other) != first


def test_slices_of_nearly_one_size_use_the_same_memory_in_turn() -> None:
    made = pool()
    places = set()
    for shape in ((999, 1200), (1000, 1199), (999, 1199)):
        array = made.array(shape, "f8")
        places.add(place(array))
        del array
    assert len(places) == 1
    assert made.waiting_bytes <= 999 * 1200 * 8 * 33 // 32 + 64
    exact = Pool(lambda count: np.empty(count, np.uint8), lambda: 0)
    array = exact.array((999, 1200), "f8")
    assert exact.waiting_bytes == 0
    assert array.nbytes == 999 * 1200 * 8


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[1:3, ::2],
        lambda a: a.T[2],
        lambda a: memoryview(a),
        lambda a: a.view(np.uint8),
        lambda a: np.frombuffer(a, np.float64),
        lambda a: np.lib.stride_tricks.as_strided(a, (2,), (8,)),
        lambda a: a.ravel().view(np.matrix),
        lambda a: iter(a.flat),
    ],
)
def test_memory_is_not_used_again_while_a_view_lives(view: Any) -> None:
    made = pool()
    array = made.array((4, 6), "float64")
    first, seen = place(array), view(array)
    del array
    gc.collect()
    assert place(made.array((4, 6), "float64")) != first
    del seen
    gc.collect()
    assert first in {place(a) for a in [made.array((4, 6), "float64") for _ in range(3)]}


def test_what_waits_is_bounded() -> None:
    made = pool(10_000)
    arrays = [made.array((100 + n,), "float64") for n in range(30)]
    first = place(arrays[0])
    assert made.waiting_bytes == 0
    del arrays
    assert 5_000 < made.waiting_bytes <= 10_000
    latest = made.array((129,), "float64")
    assert place(latest) != first
    large = made.array((10_000,), "float64")
    del large, latest
    assert made.waiting_bytes <= 10_000


def test_a_lower_limit_holds_from_the_next_array_on() -> None:
    limit = [10**9]
    made = Pool(lambda count: np.empty(count, np.uint8), lambda: limit[0])
    arrays = [made.array((100 + n,), "float64") for n in range(3)]
    del arrays
    assert made.waiting_bytes > 2400
    limit[0] = 1500
    made.array((5,), "float64")
    assert 0 < made.waiting_bytes <= 1500
    limit[0] = 0
    array = made.array((102,), "float64")
    assert made.waiting_bytes == 0
    assert array.shape == (102,)


def test_threads_and_the_collector() -> None:
    """Arrays in cycles go at any moment; no two that live at once share memory."""
    made = pool(2**20)
    wrong: list[int] = []

    def work(seed: int) -> None:
        random = Random(seed)
        held: list[Any] = []
        for _ in range(400):
            array = made.array((random.randint(1, 8), 50), "float64")
            array[...] = seed
            cycle: list[Any] = [array[:1]]
            cycle.append(cycle)
            held.append(array)
            if len(held) > 6:
                old = held.pop(random.randrange(6))
                if (old != seed).any():
                    wrong.append(seed)
            if random.random() < 0.01:
                gc.collect()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_large_results_take_the_memory_of_released_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "_pool", pool())
    random = np.random.default_rng(0)
    a, b = random.random((400, 30)), random.random((30, 400))
    expected = a @ b
    one = tcgen.einsum("ik,kj->ji", a, b)
    two = tcgen.einsum("ik,kj->ji", a, b)
    assert place(one) != place(two)
    assert place(one) % 64 == 0
    row, first = two[3], place(two)
    del two
    three = tcgen.einsum("ik,kj->ji", a, b)
    assert place(three) != first
    del row
    four = tcgen.einsum("ik,kj->ji", 2 * a, b)
    assert place(four) == first
    np.testing.assert_allclose(one, expected.T)
    np.testing.assert_allclose(three, expected.T)
    np.testing.assert_allclose(four, 2 * expected.T)


def test_a_memory_limit_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "_pool", None)
    a = np.ones((400, 400))
    tcgen.einsum("ik,kj->ij", a, a, memory_limit="100MB")
    monkeypatch.setattr(allocation, "_pool", pool())
    monkeypatch.setenv("TCGEN_POOL", "none")
    with pytest.raises(tcgen.ArgumentError, match=mentions("memory")):
        allocation.pool_bytes()


def test_all_memory_that_waits_is_released() -> None:
    made = pool()
    kept = made.array((1000,), "float64")
    for count in (1000, 5000):
        made.array((count,), "float64")
    assert made.waiting_bytes > 0
    made.release()
    assert made.waiting_bytes == 0
    del kept
    assert made.waiting_bytes > 0
