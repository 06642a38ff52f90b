"""The einsum family beyond NumPy's own forms: routes, kernels, messages, contract, opt_einsum."""

from __future__ import annotations

import itertools
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import opt_einsum
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
import tcgen.compiler.api
from support.campaigns import cases
from support.messages import mentions, says
from tcgen.compiler.target import default_kernel_target
from tcgen.errors import (
    ArgumentError,
    DtypeError,
    EinsumError,
    ExtentError,
    MemoryLimitError,
    ShapeError,
)
from tcgen.runtime.cpu.blas import used_threads

pytestmark = pytest.mark.usefixtures("generated_einsum")

A = np.arange(6.0).reshape(2, 3)
B = np.arange(12.0).reshape(3, 4)


def routes() -> list[tuple[str, str]]:
    return [(row.route, row.reason) for row in tcgen.einsum_report().rows]


# ---- which way a call goes


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Whether there is a compiler is looked up once."""
    default_kernel_target.cache_clear()
    yield
    default_kernel_target.cache_clear()


@pytest.mark.usefixtures("forgotten")
def test_a_compiler_that_was_asked_for_and_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TCGEN_EINSUM_TARGET")
    monkeypatch.setenv("TCGEN_CC", "no-such-compiler")
    with pytest.warns(RuntimeWarning, match=mentions("'no-such-compiler' numpy")):
        found = tcgen.einsum("ij,jk->ik", A, B)
    np.testing.assert_allclose(found, A @ B)


@pytest.mark.usefixtures("forgotten")
def test_a_compiler_that_does_not_work_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.delenv("TCGEN_EINSUM_TARGET")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("TCGEN_CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.warns(RuntimeWarning, match=mentions("cc exit code 1 numpy")):
        found = tcgen.einsum("ij,jk->ik", A, B)
    np.testing.assert_allclose(found, A @ B)


def test_wishes_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_TUNE", "1")  # of no use to NumPy, and no mistake
    np.testing.assert_allclose(tcgen.einsum("ij,jk->ik", A, B), A @ B)
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cuda")
    with pytest.raises(ArgumentError, match=mentions("TCGEN_EINSUM_TARGET='cuda' cpu numpy")):
        tcgen.einsum("ij,jk->ik", A, B)


def test_no_more_threads_than_a_system_can_start() -> None:
    assert used_threads(2) == 2
    with pytest.raises(ArgumentError, match=mentions("OMP_NUM_THREADS 4097 threads")):
        used_threads(4097)


def test_tiny_calls_are_delegated_and_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TCGEN_EINSUM_MIN_FLOPS")
    tcgen.einsum("ij,jk->ik", A, B)
    big = np.ones((130, 130))
    tcgen.einsum("ij,jk->ik", big, big)
    report = tcgen.einsum_report()
    assert routes() == [("kernel", "numpy"), ("numpy", "tiny")]
    assert (report.kernel_calls, report.numpy_calls) == (1, 1)
    assert says(str(report), "1 generated NumPy")
    assert "ij,jk->ik" in str(report)


def test_the_report_counts_bytes_that_are_copied() -> None:
    x, z, out = np.ones((6, 6)), np.ones((6, 6), complex), np.empty((6, 12))
    calls = [
        ((x, x), {}, 0),
        ((x.T, x), {}, 0),
        ((z.real, x), {}, x.nbytes),
        ((x[::-1], x[:, ::-1]), {}, 2 * x.nbytes),
        ((x.astype("f4"), x), {}, x.nbytes),
        ((x, x), {"out": out[:, :6]}, x.nbytes),  # too small for a program of its own
        ((x, x), {"out": out[:, ::2]}, x.nbytes),
        ((x, x), {"out": z}, 2 * z.nbytes),  # computed as complex numbers
        ((x, x), {"dtype": x.dtype.newbyteorder()}, x.nbytes),
    ]
    for arrays, keywords, copied in calls:
        tcgen.einsum_report(reset=True)
        tcgen.einsum("ij,jk->ik", *arrays, **keywords)
        (row,) = tcgen.einsum_report().rows
        assert row.copied == copied, (arrays, keywords)
        assert (f", {copied:,} bytes copied" in str(tcgen.einsum_report())) == (copied > 0)


@pytest.mark.parametrize("dtype", ["i8", "?", "f2", "c8", "O"])
def test_types_without_kernels_are_delegated(dtype: str) -> None:
    a, b = A.astype(dtype), B.astype(dtype)
    np.testing.assert_array_equal(tcgen.einsum("ij,jk", a, b), np.einsum("ij,jk", a, b))
    ((route, reason),) = routes()
    assert route == "numpy"
    assert reason == f"no kernels for {np.dtype(dtype)}"


def test_views_stay_views() -> None:
    a = np.eye(3)
    tcgen.einsum("ii->i", a)[:] = 7.0
    assert a[1, 1] == 7.0
    assert np.shares_memory(tcgen.einsum("ij->ji", a), a)
    assert routes() == [("numpy", "a view of the operand")] * 2


def test_threads_count_and_agree() -> None:
    results: list[Any] = []
    workers = [
        threading.Thread(target=lambda: results.append(tcgen.einsum("xy,yz,zw->xw", A, B, B.T)))
        for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all((r == A @ B @ B.T).all() for r in results)
    assert tcgen.einsum_report().kernel_calls == len(results) == 8


def test_numpy_can_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "einsum", tcgen.einsum)
    assert np.einsum("i,i", np.arange(3), np.arange(3)) == 5
    assert np.einsum("ij->ji", A.T[::2]).shape == (2, 2)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MIN_FLOPS", "many", "flops"),
        ("TARGET", "gpu", "cpu numpy"),
    ],
)
def test_wrong_settings(name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"TCGEN_EINSUM_{name}", value)
    with pytest.raises(ArgumentError, match=mentions(said)):
        tcgen.einsum("ij,jk", A, B)


# ---- what NumPy cannot do


def test_more_labels_than_letters() -> None:
    """Sixty labels on a chain of matrices: NumPy has names for 52."""
    letters = [chr(0x4E00 + n) for n in range(60)]
    random = np.random.default_rng(1)
    matrices = [random.standard_normal((2, 2)) for _ in range(59)]
    text = ",".join(a + b for a, b in itertools.pairwise(letters))
    found = tcgen.einsum(f"{text}->{letters[0]}{letters[-1]}", *matrices)
    np.testing.assert_allclose(found, np.linalg.multi_dot(matrices), rtol=1e-10)


def test_more_labels_than_letters_on_integers() -> None:
    letters = [chr(0x4E00 + n) for n in range(60)]
    text = ",".join(a + b for a, b in itertools.pairwise(letters))
    with pytest.raises(EinsumError, match=mentions("60 labels int64 NumPy 52")):
        tcgen.einsum(text, *[np.ones((1, 1), int)] * 59)


@pytest.mark.default_thresholds
def test_memory_limit() -> None:
    """The whole intermediate of a fitted ladder does not fit, so loops are fused."""
    random = np.random.default_rng(2)
    b, t = random.standard_normal((5, 24, 24)), random.standard_normal((2, 2, 24, 24))
    text = "xac,xbd,ijcd->ijab"
    expected = np.einsum(text, b, b, t, optimize=True)
    result = 8 * expected.size
    with pytest.raises(MemoryLimitError, match=mentions("plan")) as refused:
        tcgen.einsum(text, b, b, t, memory_limit=result - 1)
    assert "objective" not in str(refused.value)  # which a call of einsum does not choose
    path = ["einsum_path", (0, 1), (0, 1)]
    whole = 8 * 24**4
    fused = tcgen.einsum(text, b, b, t, optimize=path, memory_limit=whole // 2)
    np.testing.assert_allclose(fused, expected, rtol=1e-10, atol=1e-10)
    # The same call on smaller arrays, then on larger ones again: each is planned for its extents.
    small, tau = b[:, :6, :6].copy(), t[:, :, :6, :6].copy()
    wanted = np.einsum(text, small, small, tau, optimize=True)
    for _ in range(2):
        found = tcgen.einsum(text, small, small, tau, optimize=path, memory_limit=whole // 2)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
        fused = tcgen.einsum(text, b, b, t, optimize=path, memory_limit=whole // 2)
        np.testing.assert_allclose(fused, expected, rtol=1e-10, atol=1e-10)


def test_memory_limit_needs_a_kernel() -> None:
    with pytest.raises(DtypeError, match=mentions("memory_limit int64")):
        tcgen.einsum("i,i", np.arange(3), np.arange(3), memory_limit="1MiB")


# ---- delegated calls


@pytest.mark.parametrize(
    ("text", "shapes", "dtype", "way"),
    [
        ("ij,jk->ik", [(3, 4), (4, 2)], "f8", ("numpy", "tiny")),
        (
            "ij,jk",
            [(99, 99), (99, 99)],
            "f8",
            ("numpy", "tiny"),
        ),  # for the BLAS: four times as many
        ("ijk,ij->ik", [(70, 70, 70), (70, 70)], "f8", ("numpy", "tiny")),
        ("ijk,ij->ik", [(80, 80, 80), (80, 80)], "f8", ("kernel", "numpy")),
        ("ij,jk", [(130, 130), (130, 130)], "f8", ("kernel", "numpy")),
        ("ij->ji", [(3, 4)], "f8", ("numpy", "a view of the operand")),
        ("i,i", [(3,), (3,)], "i8", ("numpy", "no kernels for int64")),
        ("...i,...i", [(2, 3), (1, 3)], "f4", ("numpy", "tiny")),
    ],
)
def test_who_runs_a_call(
    text: str,
    shapes: list[tuple[int, ...]],
    dtype: str,
    way: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TCGEN_EINSUM_MIN_FLOPS")
    arrays = [np.random.default_rng(n).random(s).astype(dtype) for n, s in enumerate(shapes)]
    for operands in ((text, *arrays), (text, *(a.tolist() for a in arrays))):
        if operands[1] is not arrays[0] and dtype == "f4":
            continue
        tcgen.einsum_report(reset=True)
        found = tcgen.einsum(*operands)
        np.testing.assert_allclose(found, np.einsum(*operands), rtol=1e-6)
        assert routes() == [way]


@pytest.mark.parametrize("order", ["C", "F", "A", "K", None])
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)])
def test_order_of_memory_is_numpys(order: str | None, transposed: tuple[bool, bool]) -> None:
    random = np.random.default_rng(3)
    a, b = (
        np.asfortranarray(x) if t else x
        for x, t in zip(random.random((2, 2, 3, 4)), transposed, strict=True)
    )
    found = tcgen.einsum("abc,dbc->ad", a, b, order=order)
    expected = np.einsum("abc,dbc->ad", a, b, order=order)
    np.testing.assert_allclose(found, expected)
    if order in ("C", "F") or any(transposed):
        assert found.flags.c_contiguous == expected.flags.c_contiguous
        assert found.flags.f_contiguous == expected.flags.f_contiguous


def test_out_may_be_an_operand_strided_or_longer() -> None:
    square = np.arange(9.0).reshape(3, 3)
    expected = square @ square
    assert tcgen.einsum("ij,jk->ik", square, square, out=square) is square
    np.testing.assert_array_equal(square, expected)
    wide = np.zeros((2, 8))
    tcgen.einsum("ij,jk->ik", A, B, out=wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], A @ B)
    assert not wide[:, 1::2].any()
    repeated = tcgen.einsum("ij,jk->ik", A[:1], B, out=np.zeros((5, 4)))
    np.testing.assert_array_equal(repeated, np.broadcast_to(A[:1] @ B, (5, 4)))
    transposed = tcgen.einsum("ij,jk->ik", A, B, out=np.zeros((2, 4), order="F"))
    np.testing.assert_array_equal(transposed, A @ B)


# ---- the pairwise signature


@pytest.mark.parametrize("alpha", [1.0, -0.5, 2])
@pytest.mark.parametrize("beta", [0.0, 1.0, 3])
def test_contract(alpha: float, beta: float) -> None:
    start = np.full((2, 4), np.nan if beta == 0 else 2.0)
    expected = alpha * (A @ B) + (beta * start if beta else 0)
    out = start.copy()
    assert tcgen.contract("ij,jk->ik", A, B, alpha, beta, out) is out
    np.testing.assert_allclose(out, expected)
    if beta == 0:
        np.testing.assert_allclose(tcgen.contract("ij,jk->ik", A, B, alpha=alpha), expected)


FACTORS = [1, -1.0, 0.5, np.float32(2), 1 / 3, 0.0]


@pytest.mark.few(20)
@pytest.mark.parametrize(
    ("dtype", "alpha"),
    [*itertools.product(["float64", "float32", "complex128"], FACTORS), ("complex128", 1j)],
)
@pytest.mark.parametrize("beta", [0, 1.0, -2])
def test_contract_by_kernels(alpha: complex, beta: complex, dtype: str) -> None:
    """Some factors are in the text of a kernel, which adds to ``out``; others come afterwards."""
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((150, 90), (90, 160)))
    start = rng.integers(-3, 4, (150, 200)).astype(dtype)
    whole = start.copy()
    expected = alpha * (a @ b) + beta * start[:, 20:180]
    assert tcgen.contract("ij,jk->ik", a, b, alpha, beta, whole[:, 20:180]).base is whole
    np.testing.assert_allclose(whole[:, 20:180], expected, rtol=1e-5)
    whole[:, 20:180] = start[:, 20:180]
    np.testing.assert_array_equal(whole, start)
    found = tcgen.contract("ij,jk->ik", a, b, alpha)
    np.testing.assert_allclose(found, alpha * (a @ b), rtol=1e-5)
    assert found.dtype == (alpha * (a @ b)).dtype


def test_contract_may_write_over_an_operand() -> None:
    a, b = (np.random.default_rng(n).random((200, 200)) for n in range(2))
    expected = 2 * (a @ b) + a
    tcgen.contract("ij,jk->ik", a, b, 2.0, 1.0, out=a)
    np.testing.assert_allclose(a, expected)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_contract_adds_in_place(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if tcgen.compiler.target.default_target() != "cpu":
        pytest.skip("NumPy makes arrays of its own")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")
    a, b = np.ones((100, 300), dtype), np.ones((300, 5000), dtype)
    out = np.zeros((102, 5003), dtype)[1:-1, 2:-1]
    tcgen.contract("ij,jk->ik", a, b, -2.0, 1.0, out=out)
    tracemalloc.start()
    tcgen.contract("ij,jk->ik", a, b, -2.0, 1.0, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < out.nbytes / 2
    assert (out == -1200).all()
    assert np.count_nonzero(out.base) == out.size


def test_contract_of_complex_numbers() -> None:
    found = tcgen.contract("ij,jk->ik", A, B, alpha=1j)
    np.testing.assert_allclose(found, 1j * (A @ B))
    with pytest.raises(DtypeError, match=r"complex128.*out float64: pass an out of complex128"):
        tcgen.contract("ij,jk->ik", A, B, alpha=1j, out=np.zeros((2, 4)))


def test_contract_refuses() -> None:
    with pytest.raises(ArgumentError, match=mentions("alpha (3, 4) two operands tcgen.einsum")):
        tcgen.contract("ij,jk,kl->il", A, B, B)
    with pytest.raises(ArgumentError, match=mentions("beta=1.0 out")):
        tcgen.contract("ij,jk->ik", A, B, beta=1.0)
    with pytest.raises(ShapeError, match=mentions("out shape (3,) (2, 4)")):
        tcgen.contract("ij,jk->ik", A, B, alpha=2.0, out=np.zeros(3))
    with pytest.raises(EinsumError, match=mentions("subscripts 3 operands")):
        tcgen.contract("ij,jk,kl->il", A, B)


# ---- opt_einsum's functions


@cases(60)
@given(st.data())
def test_tensordot(data: st.DataObject) -> None:
    summed = data.draw(st.lists(st.integers(1, 3), max_size=3))
    left, right = (data.draw(st.lists(st.integers(1, 3), max_size=2)) for _ in range(2))
    random = np.random.default_rng(len(summed))
    a, b = random.random((*left, *summed)), random.random((*summed, *right))
    n = len(summed)
    order_a = data.draw(st.permutations(range(a.ndim)))
    order_b = data.draw(st.permutations(range(b.ndim)))
    axes_a = [
        order_a.index(len(left) + k) - data.draw(st.sampled_from((0, a.ndim))) for k in range(n)
    ]
    axes_b = [order_b.index(k) for k in range(n)]
    np.testing.assert_allclose(tcgen.tensordot(a, b, n), np.tensordot(a, b, n))
    transposed = a.transpose(order_a), b.transpose(order_b)
    expected = np.tensordot(*transposed, (axes_a, axes_b))
    found = tcgen.tensordot(*transposed, axes=(axes_a, axes_b))
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected)


def test_tensordot_refuses() -> None:
    with pytest.raises(ShapeError, match=mentions("axis 0 shape")):
        tcgen.tensordot(A, A, axes=(0, 1))
    with pytest.raises(EinsumError, match=mentions("axes [5] shape (2, 3)")):
        tcgen.tensordot(A, A, axes=(5, 0))
    with pytest.raises(EinsumError, match=mentions("axes once")):
        tcgen.tensordot(A, A, axes=([0, 1], [0]))


@pytest.mark.parametrize("text", ["ijk,kjl,lm->im", "ij,ij->ij", "ijkl,ka,lb->ijab", "ij,jk,ki->"])
def test_opt_einsum_backend(text: str) -> None:
    random = np.random.default_rng(5)
    extents = dict(zip("abijklm", range(2, 9), strict=True))
    terms = text.partition("->")[0].split(",")
    arrays = [random.random([extents[c] for c in term]) for term in terms]
    found = opt_einsum.contract(text, *arrays, backend="tcgen")
    np.testing.assert_allclose(found, np.einsum(text, *arrays))
    assert tcgen.einsum_report().kernel_calls > 0
    np.testing.assert_array_equal(tcgen.transpose(A), A.T)
    np.testing.assert_array_equal(tcgen.transpose(A, (1, 0)), A.T)


# ---- subscripts as equations of a program


def test_compile_subscripts() -> None:
    program = tcgen.compile("ij,jk->ik", extents={"i": 2, "j": 3, "k": 4}, target="numpy")
    np.testing.assert_array_equal(program(x0=A, x1=B)["y"], A @ B)
    assert program.report["operations"]["polynomial"] == "2 i j k"
    implicit = tcgen.compile("ba,γa", extents={"a": 3, "b": 2, "u3b3": 2}, target="numpy")
    np.testing.assert_array_equal(implicit(x0=A, x1=A)["y"], A @ A.T)


def test_compile_subscripts_refuses() -> None:
    with pytest.raises(ExtentError, match=mentions("extent i j")):
        tcgen.compile("ij,j->i", target="numpy")
    with pytest.raises(EinsumError, match=mentions("arrays axes")):
        tcgen.compile("...i,i->...", target="numpy")
    with pytest.raises(EinsumError, match=mentions("output label 'z' operand")):
        tcgen.compile("ij,jk->iz", target="numpy")
    with pytest.raises(tcgen.TcgenError, match=r"no,such\.spec"):
        tcgen.compile("no,such.spec", target="numpy")


@pytest.mark.parametrize("factor", ["2", None, [1.0, "x"]])
def test_factors_of_contract_are_numbers(factor: object) -> None:
    a = np.eye(2)
    with pytest.raises(ArgumentError, match=mentions("number")):
        tcgen.contract("ij,jk->ik", a, a, alpha=factor)
    with pytest.raises(ArgumentError, match=mentions("number")):
        tcgen.contract("ij,jk->ik", a, a, beta=factor, out=np.zeros((2, 2)))


# ---- repeated elements, many operands


@pytest.mark.parametrize(
    "subscripts", ["ij->", "ij->i", "ij->j", "ij,ij->j", "ij,jk->ik", "ij,i->ji", "ij,kj->k"]
)
@pytest.mark.parametrize("order", ["K", "F", "C"])
def test_elements_that_repeat_in_memory_are_not_copied(subscripts: str, order: str) -> None:
    extents = dict(zip("ijk", (2, 3, 4), strict=True))
    inputs, _, output = subscripts.partition("->")
    operands = [
        np.broadcast_to(
            np.arange(1.0, 1.0 + extents["i"])[:, None] if labels == "ij" else 2.5,
            [extents[label] for label in labels],
        )
        for labels in inputs.split(",")
    ]
    wanted = np.einsum(subscripts, *operands)
    for dtype in ("float64", "complex128", ">f8"):
        found = tcgen.einsum(subscripts, *operands, order=order, dtype=dtype)
        assert found.dtype == np.dtype(dtype) or not output  # numbers are native
        np.testing.assert_allclose(found, wanted)
    out = np.zeros((*(extents[label] for label in output), 2))[..., 0]
    assert tcgen.einsum(subscripts, *operands, out=out) is out
    np.testing.assert_allclose(out, wanted)
    assert tcgen.contract("ij,ij->i", operands[0], operands[0]) is not None


def test_a_lone_operand_of_repeated_elements_takes_no_memory() -> None:
    ones = np.broadcast_to(1.0, (65536, 65536))  # 34 GB as an array
    tracemalloc.start()
    try:
        assert tcgen.einsum("ij->", ones) == 2.0**32
        rows = tcgen.einsum("ij->i", ones)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows[0] == rows[-1] == 65536.0
    assert peak < 10_000_000


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("optimize", [True, False])
def test_more_operands_than_numpy_takes(dtype: str, optimize: bool) -> None:
    random = np.random.default_rng(0)
    vectors = [random.integers(-1, 2, 3).astype(dtype) for _ in range(70)]
    found = tcgen.einsum(",".join(["i"] * 70) + "->i", *vectors, optimize=optimize)
    np.testing.assert_array_equal(found, np.prod(vectors, axis=0))


class Metres:
    """Lengths as a library of units has them: NumPy's functions are computed with their unit."""

    def __init__(self, array: Any, power: int = 1) -> None:
        self.array, self.power = np.asarray(array), power

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise AssertionError("the unit is lost")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        power = sum(x.power for x in args if isinstance(x, Metres))
        plain = [x.array if isinstance(x, Metres) else x for x in args]
        return Metres(func(*plain, **kwargs), power)

    def __mul__(self, factor: float) -> Metres:
        return Metres(self.array * factor, self.power)

    def __add__(self, other: Metres) -> Metres:
        assert self.power == other.power
        return Metres(self.array + other.array, self.power)

    def __setitem__(self, place: Any, values: Metres) -> None:
        self.array[place], self.power = values.array, values.power


@pytest.mark.parametrize("extent", [2, 200])
def test_arrays_of_other_libraries_compute_calls_themselves(extent: int) -> None:
    """NEP 18: units were lost, and arrays of dask were computed whole."""
    x = np.random.default_rng(0).random((extent, extent))
    calls: list[tuple[Any, np.ndarray, int]] = [
        (tcgen.einsum("ij,jk->ik", Metres(x), x), x @ x, 1),
        (tcgen.einsum("ij,jk", x, Metres(x), optimize=False, dtype="f8", order="C"), x @ x, 1),
        (tcgen.einsum(Metres(x), [0, 1], Metres(x), [1, 2]), x @ x, 2),
        (tcgen.tensordot(Metres(x), Metres(x), 1), x @ x, 2),
        (tcgen.contract("ij,jk->ik", Metres(x), x, alpha=2.0), 2 * x @ x, 1),
        (tcgen.transpose(Metres(x), (1, 0)), x.T, 1),
    ]
    out = Metres(np.ones((extent, extent)), 2)
    calls.append(
        (tcgen.contract("ij,jk->ik", Metres(x), Metres(x), 2.0, 3.0, out), 2 * x @ x + 3, 2)
    )
    for found, wanted, power in calls:
        assert isinstance(found, Metres)
        assert found.power == power
        np.testing.assert_allclose(found.array, wanted, rtol=1e-12)
    assert calls[-1][0] is out
    with pytest.raises(ArgumentError, match=mentions("memory_limit")):
        tcgen.einsum("ij,jk->ik", Metres(x), x, memory_limit="1GiB")
    # A list and a subclass of NumPy's arrays have no function of their own.
    assert type(tcgen.einsum("ij,jk->ik", x.tolist(), x.view(np.matrix))) is np.ndarray


def test_arrays_of_dask_stay_delayed() -> None:
    da = pytest.importorskip("dask.array")
    x = np.random.default_rng(0).random((6, 6))
    for found in (
        tcgen.einsum("ij,jk->ik", da.from_array(x, chunks=3), x),
        tcgen.tensordot(da.from_array(x, chunks=3), x, 1),
        tcgen.contract("ij,jk->ik", da.from_array(x, chunks=3), x),
    ):
        assert isinstance(found, da.Array)
        np.testing.assert_allclose(found.compute(), x @ x)


# PySCF 2.14: lib.einsum takes these keywords for two operands, and none has an effect.
@pytest.mark.parametrize(
    "keyword", [{"dtype": "f4"}, {"order": "F"}, {"casting": "no"}, {"DEBUG": 1}]
)
def test_keywords_without_effect_in_pyscf(keyword: dict[str, Any]) -> None:
    a = np.arange(6.0).reshape(2, 3)
    found = tcgen.contract("ij,kj->ik", a, a, **keyword)
    np.testing.assert_array_equal(found, a @ a.T)
    assert (found.dtype, found.flags.c_contiguous) == (np.float64, True)
