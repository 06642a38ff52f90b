"""Numbers that an element type cannot hold are refused where they stand in the equations."""

from __future__ import annotations

import pytest

import tcgen
from support.messages import mentions

TEXT = """
space o = 2
index i j : o
input A[o,o], c = {default}
output r
r[i,j] = {number}*A[i,j] + c*A[j,i]
"""


@pytest.mark.parametrize("target", ["cpu", "numpy", "cuda"])
@pytest.mark.parametrize(
    ("number", "dtype", "shown"),
    [
        ("1e39", "float32", "6:10 1.00000e+39 float32"),
        ("1e-46", "float32", "6:10 1e-46 float32"),
        ("1e-40", "float32", "6:10 1e-40 float32"),  # it has no more than five digits there
        ("exp(1e39)", "float32", "6:10 float32"),
        ("1e200*1e200", "float64", "6:10 floating-point"),
        ("sqrt(-1)", "float64", "6:10 sqrt(-1) complex128 --dtype"),
        ("log(-1/2)", "float32", "6:10 complex128"),
        ("sqrt(-sqrt(2))", "float64", "6:10 sqrt(-sqrt(2)) complex128 --dtype"),
        ("log(cos(3))", "float64", "6:10 log(cos(3)) complex128 --dtype"),
        ("arccos(2)", "float64", "6:10 arccos(2) sqrt log"),
        ("pow(-1,1/2)", "complex128", "6:10 pow(-1, 1/2) sqrt log"),
    ],
)
def test_numbers_outside_the_range_are_refused(number, dtype, shown, target) -> None:
    text = TEXT.format(number=number, default="1")
    with pytest.raises(tcgen.SpecError, match=mentions(shown)):
        tcgen.compile(text, dtype=dtype, target=target)


def test_a_default_outside_the_range_is_refused() -> None:
    with pytest.raises(tcgen.SpecError, match=mentions("c 1.00000e+39 float32")):
        tcgen.compile(TEXT.format(number="2", default="1e39"), dtype="float32")


def test_numbers_at_the_ends_of_the_range_are_accepted() -> None:
    for number in ("3e38", "1.2e-38", "-3e38", "0"):
        tcgen.compile(TEXT.format(number=number, default="1"), dtype="float32")


def test_numbers_that_factoring_multiplies_are_checked() -> None:
    text = """
    space o = 2
    index i j k : o
    input A[o,o], B[o,o]
    output r
    w[i,j] = 1e30*A[i,k]*B[k,j]
    r[i,j] = 1e30*w[i,j]
    """
    with pytest.raises(tcgen.ArgumentError, match=mentions("float32 scale")):
        tcgen.compile(text, dtype="float32")
    tcgen.compile(text)
