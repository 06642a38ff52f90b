"""Arguments of einsum: orders of contraction, what NumPy refuses, and what the messages say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.errors import (
    ArgumentError,
    ContractionPathError,
    DtypeError,
    EinsumError,
    PathNameError,
    ReadOnlyError,
    ShapeError,
    TcgenError,
)

pytestmark = pytest.mark.usefixtures("generated_einsum")

A = np.arange(6.0).reshape(2, 3)
B = np.arange(12.0).reshape(3, 4)


# ---- options


@pytest.mark.parametrize(
    "optimize",
    [
        *(True, False, None, "greedy", "optimal", ("greedy", 100)),
        ["einsum_path", (1, 2), (0, 1)],
        ["einsum_path", (0, 2), (0, 1)],
        ["einsum_path", (0, 1, 2)],
        ["einsum_path", (0,), (0, 1, 2)],
    ],
)
def test_optimize(optimize: Any) -> None:
    found = tcgen.einsum("ij,jk,lk->il", A, B, B, optimize=optimize)
    np.testing.assert_allclose(found, A @ B @ B.T)


@pytest.mark.parametrize(
    ("optimize", "error", "said"),
    [
        ("best", PathNameError, "optimize='best' order"),
        (("best", 3), PathNameError, "optimize='best' order"),
        (("greedy", "3"), ArgumentError, "True False"),
        (3, ArgumentError, "optimize=3"),
        ([(0, 1)], ArgumentError, "True"),
        (["einsum_path", (0, 1)], ContractionPathError, "2 3 1"),
        (["einsum_path"], ContractionPathError, "3 arrays"),
        (["einsum_path", (0, 3)], ContractionPathError, "3 arrays"),
    ],
)
def test_wrong_optimize(optimize: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=mentions(said)):
        tcgen.einsum("ij,jk,lk->il", A, B, B, optimize=optimize)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    "optimize",
    [
        *("best", ("best", 3), 3.5, 7, ("greedy", 3, 4), (3, "x"), [], {}, b"greedy"),
        *(["einsum_path", *steps] for steps in ([(0, 1)], [(0, 5), (0, 1)], [(0, 1), (0, 1)])),
    ],
    ids=repr,
)
def test_what_numpy_says_of_optimize(optimize: Any, count: int) -> None:
    """An error of ours is of the classes of NumPy's, and none where NumPy has none."""
    text, arrays = ",".join(["ij", "jk", "kl"][:count]), [A, B, B][:count]
    try:
        expected = np.einsum(text, *arrays, optimize=optimize)
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            tcgen.einsum(text, *arrays, optimize=optimize)
        assert isinstance(caught.value, TcgenError)
    else:
        np.testing.assert_allclose(tcgen.einsum(text, *arrays, optimize=optimize), expected)


# ---- messages


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((), EinsumError, "subscripts operand"),
        (("",), EinsumError, "operand"),
        (("i,j", A[0]), EinsumError, "subscripts 2 operands 1"),
        (("ij->il", A), EinsumError, "output label 'l' operand i j"),
        (("ij->ii", A), EinsumError, "output label 'i' once"),
        (("i", A), EinsumError, "operand 0 2 axes labels 'i'"),
        (("ijk", A), EinsumError, "operand 0 2 axes labels"),
        (("i%", A), EinsumError, "'%' operand 0 label"),
        (("i.j", A), EinsumError, "'.' ellipsis"),
        (("......", A), EinsumError, "ellipsis"),
        (("ij->i->j", A), EinsumError, "output '->'"),
        (("ij- >i", A), EinsumError, "output '->'"),
        (("ij->i,j", A), EinsumError, "output comma"),
        (("i...->i", A), EinsumError, "1 axes output"),
        (("ii", A), ShapeError, "'i' operand 0 shape (2, 3)"),
        (
            ("ij,jk", A, A),
            ShapeError,
            "'j' extent 2 axis 0 operand 1 (2, 3) 3",
        ),
        (("...,...", A, A.T), ShapeError, "'...[-2]' extent 3"),
        ((A, 0), ArgumentError, "labels operand 0 integers int"),
        ((A, [0.5, 1]), ArgumentError, "integers Ellipsis 0.5"),
        ((A, [True, 1]), ArgumentError, "integers Ellipsis True"),
        ((A, [0, 52]), EinsumError, "label 52 operand 0 51"),
        ((A, [..., ...]), EinsumError, "one Ellipsis"),
    ],
)
def test_wrong_calls(arguments: tuple[Any, ...], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=mentions(said)):
        tcgen.einsum(*arguments)
    with pytest.raises((ValueError, TypeError)) as numpys:
        np.einsum(*arguments)
    assert issubclass(error, ValueError) == isinstance(numpys.value, ValueError)


@pytest.mark.parametrize(
    ("keywords", "error", "said"),
    [
        ({"out": [0]}, ArgumentError, "out NumPy list"),
        (
            {"out": np.zeros(3)},
            ShapeError,
            "out shape (3,) result (2, 4)",
        ),
        ({"out": np.zeros((2, 5))}, ShapeError, "out shape (2, 5)"),
        ({"out": np.zeros((2, 4), "f4")}, DtypeError, "float64 out float32 casting='unsafe'"),
        ({"dtype": "f4"}, DtypeError, "cast operands float64 float32"),
        ({"dtype": "no type"}, DtypeError, "dtype='no type'"),
        ({"casting": "always"}, EinsumError, "casting"),
        ({"order": "W"}, EinsumError, "order='W'"),
        ({"memory_limit": "lots"}, ArgumentError, "memory"),
    ],
)
def test_wrong_keywords(keywords: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=mentions(said)):
        tcgen.einsum("ij,jk", A, B, **keywords)


def test_read_only_out() -> None:
    out = np.zeros((2, 4))
    out.flags.writeable = False
    with pytest.raises(ReadOnlyError, match=mentions("out read-only")):
        tcgen.einsum("ij,jk", A, B, out=out)


def test_arrays_of_a_gpu_beside_those_of_the_cpu_are_refused() -> None:
    class OnGpu:
        def __init__(self) -> None:
            self.__cuda_array_interface__: dict[str, Any] = {}

    with pytest.raises(ArgumentError, match=mentions("operand 0 numpy.ndarray GPU memory")):
        tcgen.einsum("ij,jk", A, OnGpu())


@pytest.mark.parametrize("order", ["", "CF", "X", 1])
def test_wrong_orders_are_wrong_as_in_numpy(order: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as numpys:
        np.einsum("ij,jk->ki", A, B, order=order)
    with pytest.raises(TcgenError, match=mentions("'C' 'F' 'A' 'K'")) as ours:
        tcgen.einsum("ij,jk->ki", A, B, order=order)
    assert isinstance(ours.value, numpys.type)


def test_ragged_operands_are_a_value_error() -> None:
    with pytest.raises(ValueError, match=mentions("operand 1 array")):
        tcgen.einsum("i,i->", [1.0, 2.0], [[1.0], [2.0, 3.0]])


def test_out_may_be_a_masked_array() -> None:
    out = np.ma.masked_array(np.zeros((2, 4)), np.eye(2, 4))
    expected = np.einsum("ij,jk->ik", A, B, out=out.copy())
    found = tcgen.einsum("ij,jk->ik", A, B, out=out)
    assert found is out
    assert np.array_equal(found.mask, expected.mask)
    assert np.array_equal(found.data, expected.data)


def test_more_labels_than_python_nests_loops() -> None:
    a = np.arange(2.0**10).reshape((2,) * 10 + (1,) * 16)
    letters = "abcdefghijklmnopqrstuvwxyz"
    found = tcgen.einsum(f"{letters},{letters}->{letters[::-1]}", a, a)
    assert np.array_equal(found, (a * a).transpose())


@pytest.mark.parametrize("least", ["0", "1000000"])
@pytest.mark.parametrize("dtype", [">f8", "<f8", ">i4", "<i4", ">c8"])
def test_a_result_in_another_order_of_bytes(
    dtype: str, least: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", least)
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    given = np.arange(6, dtype="i2").reshape(2, 3)
    found = tcgen.einsum("ij,ij->i", given, given, dtype=dtype)
    assert found.dtype == np.dtype(dtype)
    assert found.tolist() == [5, 50]
    assert tcgen.einsum("ij,ij->", given, given, dtype=dtype) == 55
