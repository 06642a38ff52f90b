"""Lazy arrays: NumPy's values, shapes and types; nothing twice, nothing too late."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tcgen
from support.messages import mentions
from tcgen.errors import ArgumentError
from tcgen.lazy_arrays import compile as kernels
from tcgen.lazy_arrays import run as evaluation
from tcgen.lazy_arrays.compile import lazy_system
from tcgen.lazy_arrays.graph import linearize

Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def kernels_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays go to kernels too, on the target that needs no compiler."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")


def drawn(*shape: int, dtype: str = "float64", seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    values = rng.random(shape) + 0.5
    if dtype == "complex128":
        values = values + 1j * rng.random(shape)
    return values.astype(dtype)


# Forms of the paper on T2.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "softmax": (lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), ((4, 5),)),
    "centred": (lambda x: (x - x.mean(axis=0)) / np.sqrt((x**2).sum(0)), ((5, 3),)),
    "outer": (lambda x, y: np.sin(x**2) + np.cos(y**2), ((1, 6), (5, 1))),
    "transposed": (lambda x: (x + 1).T + np.transpose(x * 2), ((4, 4),)),
    "new axes": (lambda x: (x * 2)[None, :, None] - x[..., None], ((4,),)),
    "matrix chain": (lambda a, b: a @ (b + 1) @ b.T, ((3, 4), (4, 5))),
    "batch": (lambda a, b: a @ b, ((2, 3, 4), (4, 5))),
    "einsum": (lambda a, b: np.einsum("ijk,kl->lj", a * 2, b) / 3, ((2, 3, 4), (4, 5))),
    "diagonal": (lambda a: np.einsum("ii->i", a + 1) - a.sum(1), ((4, 4),)),
    "powers": (lambda x: x**0 + x**-1 + x**-2 + x**3.0 + x**0.5 + x**2.5 + x**x, ((5,),)),
    "ufunc methods": (lambda x: np.add.reduce(x) + np.maximum.reduce(x * 2), ((5, 3),)),
    "scalars": (lambda x: 2 * x - np.float64(3) + True - np.ones(3), ((3,),)),
    "extents of 1": (lambda x, y: (x + y) * x.sum(axis=1, keepdims=True), ((1, 4), (3, 1))),
    "spread": (lambda x: x.std(0) + np.var(x, 1, ddof=1, keepdims=True) - np.std(x), ((4, 5),)),
    "numbers": (lambda x: x.sum() / x.mean() + abs(-x).sum(), ((1, 1),)),
}


@pytest.mark.parametrize("least", ["0", "1000000"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_numpy_gives(name: str, least: str, monkeypatch) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)
    program, shapes = PROGRAMS[name]
    given_arrays = [drawn(*shape, seed=n) for n, shape in enumerate(shapes)]
    wanted = program(*(a.copy() for a in given_arrays))
    found = program(*(tcgen.lazy(a) for a in given_arrays))
    assert np.shape(found) == np.shape(wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_generated_c_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TCGEN_EINSUM_TARGET")
    for name in ("softmax", "outer", "matrix chain"):
        program, shapes = PROGRAMS[name]
        arrays = [drawn(*shape, seed=n) for n, shape in enumerate(shapes)]
        found = program(*map(tcgen.lazy, arrays))
        np.testing.assert_allclose(found, program(*arrays), rtol=1e-12)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), ()])
def test_empty_arrays_and_those_without_axes(shape: tuple[int, ...]) -> None:
    values = np.ones(shape)
    found = (tcgen.lazy(values) * 2 + 1).sum(axis=0) if shape else tcgen.lazy(values) * 2
    np.testing.assert_array_equal(found, (values * 2 + 1).sum(axis=0) if shape else values * 2)


def ratio(x: Any) -> Any:
    e = np.exp(x)
    return (e * e).sum() / e.sum()


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("work", "kernels_of_the_plan"),
    [
        (ratio, 2),
        (lambda x: x.var(), 4),
        (lambda x: x.mean() + x.var(), 4),
        (softmax, 1),
        (lambda x: (x * np.exp(x)).sum(1) / np.exp(x).sum(1), 1),
        (lambda x: (x + 1).sum() + ((x + 1) ** 2).sum(), 2),
    ],
)
def test_products_of_elements_are_fused(
    work: Callable[[Any], Any], kernels_of_the_plan: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = drawn(30, 40)
    text = work(tcgen.lazy(x)).explain()
    plan = text[text.index("Loop nest") :]
    assert plan.count("\n# ") == kernels_of_the_plan
    assert "[s0,s1] arena" not in plan
    for target in ("numpy", "cpu"):
        monkeypatch.setenv("TCGEN_EINSUM_TARGET", target)
        np.testing.assert_allclose(work(tcgen.lazy(x)), work(x), rtol=1e-13)


def test_a_slice_of_a_function_is_work_on_slices() -> None:
    x = tcgen.lazy(drawn(30, 40))
    later = np.exp(x * 2)[1:, ::2] + 1
    assert "intermediates" not in later.explain()  # the only step reads a slice
    assert "s0: y0[i,j] = exp(x0[i,j]*c0) + c1" in later.explain()
    np.testing.assert_allclose(later, np.exp(drawn(30, 40) * 2)[1:, ::2] + 1)
    e = np.exp(x)
    view = e[1:]
    total = (view * 2).sum()
    view[0] = 7  # e is evaluated, since its slice is a view
    wanted = np.exp(drawn(30, 40))
    np.testing.assert_allclose(total, 2 * wanted[1:].sum())
    wanted[1] = 7
    np.testing.assert_allclose(e, wanted)


@pytest.mark.parametrize("shape", [(6,), (0,), (1,)])
def test_other_axes_of_an_array_and_a_number(shape: tuple[int, ...]) -> None:
    x, two = drawn(*shape), np.array(2.0)
    made = (tcgen.lazy(x) * tcgen.lazy(two)).reshape(-1, 1)
    np.testing.assert_array_equal(made + 0, (x * two).reshape(-1, 1))


def test_columns_are_not_summed_one_after_the_other() -> None:
    x = tcgen.lazy(drawn(300, 400))
    e = np.exp(x)
    for work in (x.var(0), x / (x**2).sum(0), (e * e).sum(0) / e.sum(0), (e * e).sum(0) + e.sum()):
        text = work.explain()
        assert "objective kernels" in text
        assert "OPTIMAL" in text
        nests = re.findall(r"# nest_.*?\n(for .*?)(?=\n#|\nt)", text, re.DOTALL)
        assert not any(nest.startswith("for s1") and "for s0" in nest for nest in nests)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_that_share_a_loop_are_those_of_vectors(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")
    x = drawn(6, 100_003).astype(dtype)
    x[1, 70_000] = np.nan
    x[2, 5] = np.inf

    def reduced(x: Any) -> list[Any]:
        e = np.exp(-x)
        return [(e * e).sum(1), e.sum(1), e.max(1), e.min(1), e.mean() + e.prod(), e.sum(0)]

    found = [a._node for a in reduced(tcgen.lazy(x))]
    text = kernels.kernel_of(
        lazy_system(linearize(found)), np.dtype(dtype).name, "cpu"
    ).program.source
    for clause in ("reduction(+:tc_sum_y0)", "reduction(tc_by_max:tc_sum_y2)"):
        assert clause in text
    wanted = reduced(x.astype(np.float64))
    for one, other in zip(tcgen.compute(*reduced(tcgen.lazy(x))), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13 if dtype is np.float64 else 1e-6)


def test_equal_operations_are_computed_once() -> None:
    x = tcgen.lazy(drawn(3, 4))
    one, other = np.exp(x * 2), np.exp(x * 2)
    total = one + other - np.exp(x * 2.5)
    line = linearize([total._node])
    names = [getattr(work, "operation", None) for work in line.works]
    assert (names.count("exp"), names.count("multiply")) == (2, 2)
    np.testing.assert_allclose(total, 2 * np.exp(drawn(3, 4) * 2) - np.exp(drawn(3, 4) * 2.5))
    assert (one.pending, other.pending) == (0, 0)  # both are named
    one[0] = 0
    np.testing.assert_allclose(other, np.exp(drawn(3, 4) * 2))
    zeros = tcgen.lazy(np.zeros(3))
    signs = np.arctan2(zeros, zeros - 1) + np.arctan2(zeros * -0.0, zeros * 0.0 - 1)
    assert [type(w).__name__ for w in linearize([signs._node]).works].count("Scalar") == 3
    np.testing.assert_array_equal(signs, np.zeros(3))
    roots = tcgen.compute(np.tanh(x), np.tanh(x))
    np.testing.assert_array_equal(*roots)


@pytest.mark.parametrize("shape", [(40,), (30, 40)])
def test_results_that_share_a_register_go_to_the_vector_unit(shape: tuple[int, ...]) -> None:
    e = np.exp(tcgen.lazy(drawn(*shape)))
    line = linearize([(e * e)._node, (e + 1)._node])
    source = kernels.kernel_of(lazy_system(line), "float64", "cpu").program.source
    assert "double t1 = 0;" in source
    assert "omp parallel for simd" in source or "omp simd" in source


def test_what_has_fewer_elements_is_not_computed_for_each_element_of_its_reader() -> None:
    """Case 3: a producer that is folded into a larger loop would be computed again and again."""
    x, y = tcgen.lazy(drawn(1, 6)), tcgen.lazy(drawn(5, 1))
    system = lazy_system(linearize([(np.sin(x**2) + np.cos(y**2))._node])).system
    assert system.pretty() == (
        "t1[i] = (sin(x0[i]**2))\nt3[i] = (cos(x1[i]**2))\ny0[i,j] = (t1[j] + t3[i])\n"
    )


def test_results_asked_for_together_are_one_program() -> None:
    x = tcgen.lazy(drawn(4, 5))
    shared = np.exp(x)
    a, b = shared.sum(0), shared - 1
    tcgen.compute(a, b, a)
    assert (a.pending, b.pending, shared.pending) == (0, 0, 0)
    np.testing.assert_allclose(a, np.exp(drawn(4, 5)).sum(0))
    np.testing.assert_allclose(b, np.exp(drawn(4, 5)) - 1)
    with pytest.raises(ArgumentError, match=mentions("int lazy array")):
        tcgen.compute(1)  # type: ignore[arg-type]  # a user's mistake


def test_values_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.exp(tcgen.lazy(drawn(5)))
    first = np.asarray(y)
    monkeypatch.setattr(evaluation, "lazy_system", None)
    assert np.asarray(y)[0] == first[0]
    assert not first.flags.writeable


def test_equal_work_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    original = kernels.compile_system
    monkeypatch.setattr(
        kernels, "compile_system", lambda *args: compiled.append(args) or original(*args)
    )
    for n in range(5):  # other numbers and extents: the same kernel
        np.asarray(tcgen.lazy(drawn(3 + n, 7)) * float(n) + np.tanh(drawn(3 + n, 7)))
    assert len(compiled) <= 1


def test_operations_read_what_was_there_when_they_were_recorded() -> None:
    """Case 1, and the fault of DelayRepay: an update does not reach what was recorded before it."""
    values, other = drawn(4, 3), drawn(4, 3, seed=1)
    x = tcgen.lazy(values)
    before, twice = x + 1, x * other
    x[0] = 7
    x += 1
    np.add(x, 1, out=x)
    kept = other.copy()
    other[:] = 0
    wanted = values.copy()
    wanted[0] = 7
    np.testing.assert_allclose(before, values + 1)
    np.testing.assert_allclose(twice, values * kept)
    np.testing.assert_allclose(x, wanted + 2)
    assert values[0, 0] != 7  # the caller's array is never written to


def test_element_types_follow_numpy() -> None:
    x = tcgen.lazy(drawn(3, dtype="float32"))
    for found, wanted in (
        (x * 2.0, "float32"),
        (x * np.float64(2), "float64"),
        (x + drawn(3), "float64"),
        (x * 1j, "complex64"),
        (abs(tcgen.lazy(drawn(3, dtype="complex128"))), "float64"),
        (tcgen.lazy(np.arange(3)) / 2, "float64"),
        (x > 0, "bool"),
    ):
        assert found.dtype == np.dtype(wanted)


def test_what_it_is_in_python() -> None:
    x = tcgen.lazy([1.0, 2.0, 3.0]) * 2
    assert repr(x) == "<lazy array of shape (3,), float64, 1 pending operation>"
    assert (len(x), x.ndim, x.size, list(x)) == (3, 1, 3, [2, 4, 6])
    assert str(x) == "[2. 4. 6.]"
    assert (float(x.sum()), int(x[0]), x.max(), x[1]) == (12.0, 2, 6.0, 4.0)
    assert bool(x.sum() > 11)
    assert complex(x.sum()) == 12
    assert tcgen.lazy(x) is x
    assert np.linalg.norm(x) == pytest.approx(np.sqrt(56))
    assert tcgen.lazy(1.0).explain() == "nothing pending: already evaluated\n"


def test_the_former_name_of_pending_warns() -> None:
    with pytest.deprecated_call(match="LazyArray.pending"):
        assert (tcgen.lazy(np.ones(3)) + 1).waiting == 1


@pytest.mark.parametrize("axis", [0, -1])
def test_a_number_has_an_axis_to_sum_over_as_in_numpy(axis: int) -> None:
    number = tcgen.lazy(np.array(3.0)) * 2
    assert float(np.sum(number, axis=axis)) == np.sum(np.array(6.0), axis=axis)
    with pytest.raises(np.exceptions.AxisError):
        np.mean(number, axis=axis)


class OfEitherMemory:
    """Like a tensor of torch 2 or an array of JAX 0.6 in the memory of the CPU.

    Their classes have attributes of an array of a GPU, which raise for such an array.
    """

    def __init__(self, array: Array) -> None:
        self._array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AttributeError("in the memory of the CPU")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.array(self._array, dtype, copy=copy)


def test_arrays_of_gpu_libraries_in_the_memory_of_the_cpu_are_values() -> None:
    values = drawn(3, 4)
    other = OfEitherMemory(values)
    x = tcgen.lazy(values)
    for found in (x + other, np.add(x, other), np.concatenate([x, other])[:3] + tcgen.lazy(other)):
        np.testing.assert_array_equal(found, values + values)
