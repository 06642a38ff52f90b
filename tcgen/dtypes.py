"""Element types: names, letters, sizes, and their order in tables of functions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class DType:
    """An element type of tensors; the name is NumPy's.

    ``letter`` is in names of the BLAS and of generated functions. An element has ``itemsize`` bytes
    and ``parts`` real numbers, each a ``c_real`` in C. ``smallest`` is the smallest positive number
    with all digits. ``tensor_cores`` is true if those of a GPU multiply it at full precision.
    """

    name: str
    letter: str
    itemsize: int
    parts: int
    c_type: str
    c_real: str
    cuda_type: str
    smallest: float
    largest: float
    tensor_cores: bool = True

    @property
    def position(self) -> int:
        """Place in tables of functions, one for each type: an interface of generated code."""
        return ALL.index(self)


_SINGLE = (1.1754943508222875e-38, 3.4028234663852886e38)
_DOUBLE = (2.2250738585072014e-308, 1.7976931348623157e308)
FLOAT32 = DType("float32", "s", 4, 1, "float", "float", "float", *_SINGLE, tensor_cores=False)
FLOAT64 = DType("float64", "d", 8, 1, "double", "double", "double", *_DOUBLE)
COMPLEX128 = DType("complex128", "z", 16, 2, "double complex", "double", "tc_complex", *_DOUBLE)
# Tables in generated code have this order.
ALL = (FLOAT32, FLOAT64, COMPLEX128)
# Options list the default first.
NAMES = ("float64", "float32", "complex128")
BY_NAME = {dtype.name: dtype for dtype in ALL}


def fits(value: Fraction, dtype: str) -> bool:
    """True if an element type holds a number with all its digits.

    Example:
        >>> fits(Fraction(1, 3), "float32"), fits(Fraction(10**39), "float32")
        (True, False)
    """
    return value == 0 or BY_NAME[dtype].smallest <= abs(value) <= BY_NAME[dtype].largest
