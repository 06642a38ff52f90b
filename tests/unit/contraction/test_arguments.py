"""Arguments of einsum: orders of contraction, what NumPy refuses, and what the messages say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcgen
from tcgen.errors import (
    ArgumentError,
    DtypeError,
    EinsumError,
    PathError,
    PathNameError,
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
        ("best", PathNameError, "^optimize='best' names no order of contraction"),
        (("best", 3), PathNameError, "optimize='best' names no order"),
        (("greedy", "3"), ArgumentError, "is none of True, False"),
        (3, ArgumentError, "optimize=3 is none"),
        ([(0, 1)], ArgumentError, "is none of True"),
        (["einsum_path", (0, 1)], PathError, r"leaves 2 arrays of 3: it must end at 1"),
        (["einsum_path"], PathError, "leaves 3 arrays"),
        (["einsum_path", (0, 3)], PathError, "there are 3 arrays then"),
    ],
)
def test_wrong_optimize(optimize: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
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
        ((), EinsumError, "needs subscripts and at least one operand"),
        (("",), EinsumError, "at least one operand"),
        (("i,j", A[0]), EinsumError, "subscripts for 2 operands, but 1 were given"),
        (("ij->il", A), EinsumError, r"output label 'l' is on no operand \(labels: i, j\)"),
        (("ij->ii", A), EinsumError, "output label 'i' stands there more than once"),
        (("i", A), EinsumError, "operand 0 has 2 axes, but only the labels 'i'"),
        (("ijk", A), EinsumError, "operand 0 has 2 axes, but too many labels"),
        (("i%", A), EinsumError, "'%' in operand 0 is no label"),
        (("i.j", A), EinsumError, "'.' that is not part of one ellipsis"),
        (("......", A), EinsumError, "not part of one ellipsis"),
        (("ij->i->j", A), EinsumError, "the output follows one '->'"),
        (("ij- >i", A), EinsumError, "the output follows one '->'"),
        (("ij->i,j", A), EinsumError, "the output has a comma"),
        (("i...->i", A), EinsumError, "stands for 1 axes, which the output leaves out"),
        (("ii", A), ShapeError, r"'i' repeats on operand 0 of shape \(2, 3\)"),
        (
            ("ij,jk", A, A),
            ShapeError,
            r"'j' has extent 2 on axis 0 of operand 1 \(shape \(2, 3\)\), but extent 3 on axis 1",
        ),
        (("...,...", A, A.T), ShapeError, r"'...\[-2\]' has extent 3"),
        ((A, 0), ArgumentError, "labels of operand 0 must be a list of integers, found int"),
        ((A, [0.5, 1]), ArgumentError, "must be integers or Ellipsis, found 0.5"),
        ((A, [True, 1]), ArgumentError, "must be integers or Ellipsis, found True"),
        ((A, [0, 52]), EinsumError, "label 52 of operand 0 is not in 0 to 51"),
        ((A, [..., ...]), EinsumError, "more than one Ellipsis"),
    ],
)
def test_wrong_calls(arguments: tuple[Any, ...], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        tcgen.einsum(*arguments)
    with pytest.raises((ValueError, TypeError)) as numpys:
        np.einsum(*arguments)
    assert issubclass(error, ValueError) == isinstance(numpys.value, ValueError)


@pytest.mark.parametrize(
    ("keywords", "error", "said"),
    [
        ({"out": [0]}, ArgumentError, "out must be a NumPy array, found list"),
        (
            {"out": np.zeros(3)},
            ShapeError,
            r"out has shape \(3,\), but the result has shape \(2, 4",
        ),
        ({"out": np.zeros((2, 5))}, ShapeError, r"out has shape \(2, 5\)"),
        ({"out": np.zeros((2, 4), "f4")}, DtypeError, "could not be cast.*casting='unsafe'"),
        ({"dtype": "f4"}, DtypeError, "could not be cast.*cast the operands"),
        ({"dtype": "no type"}, DtypeError, "dtype='no type'"),
        ({"casting": "always"}, EinsumError, "casting"),
        ({"order": "W"}, EinsumError, "order='W' is none of"),
        ({"memory_limit": "lots"}, ArgumentError, "not an amount of memory"),
    ],
)
def test_wrong_keywords(keywords: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        tcgen.einsum("ij,jk", A, B, **keywords)


def test_read_only_out() -> None:
    out = np.zeros((2, 4))
    out.flags.writeable = False
    with pytest.raises(EinsumError, match="out is read-only"):
        tcgen.einsum("ij,jk", A, B, out=out)


def test_arrays_of_a_gpu_are_refused() -> None:
    class OnGpu:
        def __init__(self) -> None:
            self.__cuda_array_interface__: dict[str, Any] = {}

    with pytest.raises(ArgumentError, match=r"operand 1 is a .*OnGpu in GPU memory"):
        tcgen.einsum("ij,jk", A, OnGpu())


@pytest.mark.parametrize("order", ["", "CF", "X", 1])
def test_wrong_orders_are_wrong_as_in_numpy(order: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as numpys:
        np.einsum("ij,jk->ki", A, B, order=order)
    with pytest.raises(TcgenError, match="is none of 'C', 'F', 'A' and 'K'") as ours:
        tcgen.einsum("ij,jk->ki", A, B, order=order)
    assert isinstance(ours.value, numpys.type)


def test_ragged_operands_are_a_value_error() -> None:
    with pytest.raises(ValueError, match="operand 1 is no array"):
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
