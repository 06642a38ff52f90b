"""Einsum calls that come again: what was prepared for a call is used for no call that differs."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
import tcgen.compiler.api
from support.campaigns import cases
from support.marks import slow_where
from support.messages import mentions
from tcgen.compiler.program_cache import LeastRecentlyUsed
from tcgen.contraction import libraries as einsum_libraries
from tcgen.contraction import routes as einsum_routes
from tcgen.errors import (
    ArgumentError,
    DtypeError,
    EinsumError,
    MemoryLimitError,
    ReadOnlyError,
    ShapeError,
)

TARGETS = ("numpy", "cpu")
EXPRESSIONS = ("ij,jk->ik", "ij,kj->ki", "ijk,jk->i", "ij,j->ij", "ij,jk,kl->il", "iij,jk->ki")
DTYPES = ("f8", "f4", "c16", "i8")
LAYOUTS = ("C", "F", "reversed", "strided", "repeated", "misaligned", "read-only", "subclass")


class Marked(np.ndarray[Any, Any]):
    """An array of a class of its own."""


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    yield
    tcgen.set_threads(None)


def laid_out(values: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
    """An array of the same shape; ``repeated`` has the values of its first row in each."""
    match layout:
        case "F":
            return np.asfortranarray(values)
        case "reversed":
            return np.ascontiguousarray(values[::-1])[::-1]
        case "strided":
            wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
            wide[..., ::2] = values
            return wide[..., ::2]
        case "repeated":
            return np.broadcast_to(values[:1], values.shape)
        case "misaligned":
            raw = np.zeros(values.nbytes + 1, np.uint8)
            made = raw[1:].view(values.dtype).reshape(values.shape)
            made[...] = values
            return made
        case "read-only":
            values = values.copy()
            values.flags.writeable = False
            return values
        case "subclass":
            return values.copy().view(Marked)
    return values


def operands(
    text: str, extents: dict[str, int], dtypes: Any, layouts: Any, seed: int
) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    terms = text.partition("->")[0].split(",")
    made = []
    for term, dtype, layout in zip(terms, itertools.cycle(dtypes), itertools.cycle(layouts)):
        values = random.integers(-3, 4, [extents[c] for c in term]).astype(dtype)
        made.append(laid_out(values + values * 1j if dtype == "c16" else values, layout))
    return made


@pytest.mark.parametrize("target", slow_where(lambda target: target == "cpu", TARGETS))
def test_calls_that_differ_in_one_thing(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few expressions, so that most calls find what an earlier one has left."""
    if target == "cpu" and tcgen.compiler.target.default_target() != "cpu":
        pytest.skip("no C compiler")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", target)
    texts = EXPRESSIONS if target == "numpy" else EXPRESSIONS[:3]

    @cases(150 if target == "numpy" else 30)
    @given(data=st.data())
    def compare(data: Any) -> None:
        draw = data.draw
        text = draw(st.sampled_from(texts))
        extents = {c: draw(st.sampled_from((0, 1, 2, 3))) for c in "ijkl"}
        kinds = draw(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=2))
        layouts = draw(st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=2))
        arrays = operands(text, extents, kinds, layouts, draw(st.integers(0, 99)))
        if draw(st.booleans()) and arrays[-1].ndim:
            arrays[-1] = arrays[-1][:1]  # broadcasts, where nothing says that it may not
        monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", draw(st.sampled_from(("0", "1000000"))))
        tcgen.set_threads(draw(st.sampled_from((1, 2, None))))
        order = draw(st.sampled_from(("K", "C", "F", "A", None)))
        try:
            expected = np.einsum(text, *map(np.asarray, arrays), order=order)
        except ValueError:
            with pytest.raises(ValueError):
                tcgen.einsum(text, *arrays, order=order)
            return
        found = tcgen.einsum(text, *arrays, order=order)
        assert type(found) is type(expected)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        out = laid_out(np.zeros_like(expected), draw(st.sampled_from(LAYOUTS[:4])))
        if draw(st.booleans()):
            out = out.astype("c16" if out.dtype.kind == "c" else "f8")
        assert tcgen.einsum(text, *arrays, out=out, order=order) is out
        np.testing.assert_array_equal(out, expected)

    compare()


@pytest.mark.usefixtures("generated_einsum")
def test_results_belong_to_their_callers() -> None:
    a, b = np.ones((3, 4)), np.ones((4, 5))
    first = tcgen.einsum("ij,jk->ik", a, b)
    first[:] = -1.0
    second = tcgen.einsum("ij,jk->ik", a, b)
    assert not np.shares_memory(first, second)
    assert (first == -1.0).all()
    assert (second == 4.0).all()


@pytest.mark.usefixtures("generated_einsum")
def test_threads_call_at_the_same_time() -> None:
    """Each with arrays of its own, of shapes that the others have, too."""
    random = np.random.default_rng(0)
    wrong: list[str] = []

    def call(number: int) -> None:
        for n in (3, 5, 4, 3, 5):
            a, b = random.random((n, 6)) + number, np.ones((6, n)) * number
            out = np.empty((n, n))
            tcgen.einsum("ij,jk->ik", a, b, out=out)
            if not np.allclose(out, a @ b) or not np.allclose(
                tcgen.einsum("ij,jk->ik", a, b), a @ b
            ):
                wrong.append(f"thread {number}, extent {n}")

    workers = [threading.Thread(target=call, args=(n,)) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.usefixtures("generated_einsum")
@pytest.mark.parametrize(
    ("text", "keywords", "error", "said"),
    [
        ("ij,kj->ik", {}, ShapeError, "label 'j' extent"),
        ("ij,jk->il", {}, EinsumError, "output label 'l'"),
        ("ij,jk->ik", {"order": "W"}, EinsumError, "order='W'"),
        ("ij,jk->ik", {"order": "w"}, EinsumError, "order='w'"),
        ("ij,jk->ik", {"casting": "always"}, EinsumError, "casting"),
        ("ij,jk->ik", {"casting": ["safe"]}, DtypeError, "casting must be str, not list"),
        ("ij,jk->ik", {"dtype": "f4"}, DtypeError, "cast"),
        ("ij,jk->ik", {"out": np.zeros((2, 2))}, ShapeError, "out shape (2, 2)"),
        ("ij,jk->ik", {"out": np.zeros((3, 5), "f4")}, DtypeError, "cast"),
        ("ij,jk->ik", {"out": [0]}, ArgumentError, "out NumPy list"),
        ("ij,jk->ik", {"memory_limit": 8}, MemoryLimitError, "memory limit"),
        ("ij,jk->ik", {"memory_limit": "much"}, ArgumentError, "memory"),
    ],
)
def test_what_is_wrong_is_wrong_each_time(
    text: str, keywords: dict[str, Any], error: type[Exception], said: str
) -> None:
    a, b = np.ones((3, 4)), np.ones((4, 5))
    for _ in range(2):
        with pytest.raises(error, match=mentions(said)):
            tcgen.einsum(text, a, b, **keywords)
        np.testing.assert_array_equal(tcgen.einsum("ij,jk->ik", a, b), a @ b)


@pytest.mark.usefixtures("generated_einsum")
def test_a_read_only_out_is_refused_after_a_call_with_the_same_shapes() -> None:
    a, b, out = np.ones((3, 4)), np.ones((4, 5)), np.zeros((3, 5))
    tcgen.einsum("ij,jk->ik", a, b, out=out)
    out.flags.writeable = False
    with pytest.raises(ReadOnlyError, match=mentions("out read-only")):
        tcgen.einsum("ij,jk->ik", a, b, out=out)


def test_settings_are_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.ones((3, 4)), np.ones((4, 5))
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")

    def route(least: str) -> tuple[str, str]:
        monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", least)
        tcgen.einsum_report(reset=True)
        tcgen.einsum("ij,jk->ik", a, b)
        (row,) = tcgen.einsum_report().rows
        return row.route, row.reason

    assert route("0") == ("kernel", "numpy")
    assert route("1000") == ("numpy", "tiny")
    assert route("0") == ("kernel", "numpy")
    with pytest.raises(ArgumentError, match=mentions("flops")):
        route("few")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "gpu")
    with pytest.raises(ArgumentError, match=mentions("TCGEN_EINSUM_TARGET='gpu'")):
        route("0")


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(einsum_routes, "_routes", LeastRecentlyUsed(lambda: 3))
    for _, n in itertools.product(range(2), range(1, 9)):
        assert (tcgen.einsum("i,i->", np.ones(n), np.ones(n))) == n
        assert len(einsum_routes._routes) <= 3


# ---- small calls: NumPy's own loop, or its products of pairs


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What ``optimize`` NumPy was given in each call."""
    found: list[Any] = []

    def noted(*operands: Any, **keywords: Any) -> Any:
        found.append(keywords.get("optimize", False))
        return np.einsum(*operands, **keywords)

    monkeypatch.setattr(einsum_libraries, "numpy_einsum", noted)
    monkeypatch.setattr(einsum_routes, "_routes", LeastRecentlyUsed(lambda: 100))
    return found


@pytest.mark.parametrize(
    ("text", "shapes", "pairs"),
    [
        ("ij,jk->ik", [(4, 4), (4, 4)], False),  # too little to compute
        ("dab,cd->bac", [(48, 16, 16), (64, 48)], True),
        ("efad,bcfed->bca", [(48, 7, 2, 3), (100, 2, 7, 48, 3)], True),  # each element once or so
        ("dea,caedb->cab", [(16, 8, 24), (2, 24, 8, 16, 24)], True),
        ("ia,ja->ij", [(100, 40), (100, 40)], True),
        ("ij,ij->", [(300, 300), (300, 300)], False),  # nothing is used again
        ("i,j->ij", [(300,), (300,)], False),  # nothing is summed
        ("ij,j->ij", [(300, 300), (300,)], False),
        ("ij,jk,kl->il", [(30, 30)] * 3, True),
        ("ij,j,i->", [(200, 300), (300,), (200,)], True),
    ],
)
def test_when_numpy_takes_pairs(
    text: str, shapes: list[tuple[int, ...]], pairs: bool, asked: list[Any]
) -> None:
    arrays = [np.random.default_rng(n).random(shape) for n, shape in enumerate(shapes)]
    expected = np.einsum(text, *arrays)
    found = tcgen.einsum(text, *arrays)
    assert type(found) is type(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    out = np.empty(expected.shape)
    assert tcgen.einsum(text, *arrays, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-10)
    assert [bool(o) for o in asked] == [pairs, pairs]


def test_pairs_keep_the_order_that_was_asked_for(asked: list[Any]) -> None:
    a = np.random.default_rng(0).random((30, 30))
    path = ["einsum_path", (1, 2), (0, 1)]
    found = tcgen.einsum("ij,jk,kl->il", a, a, a, optimize=path)
    np.testing.assert_allclose(found, a @ a @ a)
    assert asked == [path]


def test_pairs_are_for_casts_that_are_settled(asked: list[Any]) -> None:
    """Of these, NumPy checks and does casts in its own loop alone."""
    a, b = np.ones((40, 40)), np.ones((40, 40))
    expected = a @ b
    masked = np.ma.masked_array(np.zeros((40, 40)), np.zeros((40, 40), bool))
    for out in (np.zeros((40, 40), "c16"), masked):
        np.testing.assert_array_equal(tcgen.einsum("ij,jk->ik", a, b, out=out), expected)
    longer = tcgen.einsum("ij,jk->ik", a[:1], np.ones((40, 900)), out=np.zeros((3, 900)))
    np.testing.assert_array_equal(longer, np.full((3, 900), 40.0))
    tcgen.einsum("ij,jk->ik", a, b, dtype="f4", casting="same_kind")
    third = np.float32(1) / np.float32(3)
    threes = np.full((20, 20), third), np.full((20, 20), third), np.ones((20, 20))
    np.testing.assert_allclose(  # which a pair in single precision would miss by 1e-8
        tcgen.einsum("ij,jk,kl->il", *threes), 400 * np.float64(third) ** 2, rtol=1e-14
    )
    assert asked == [False] * 5


def test_pairs_may_be_written_over_their_operands(asked: list[Any]) -> None:
    a = np.random.default_rng(0).random((40, 40))
    expected = a @ a.T
    assert tcgen.einsum("ij,kj->ik", a, a, out=a) is a
    np.testing.assert_allclose(a, expected)
    assert asked == [True]
