"""Element types: names, letters, sizes, and their order in tables of functions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """An element type of tensors.

    Attributes:
        name: as NumPy calls it.
        letter: of the BLAS, and in names of generated functions.
        itemsize: bytes of an element.
        parts: real numbers of an element.
        c_type: the element in C.
        c_real: its real part in C.
        cuda_type: the element in CUDA C++.
    """

    name: str
    letter: str
    itemsize: int
    parts: int
    c_type: str
    c_real: str
    cuda_type: str

    @property
    def position(self) -> int:
        """Place in tables of functions, one for each type: an interface of generated code."""
        return ALL.index(self)


FLOAT32 = DType("float32", "s", 4, 1, "float", "float", "float")
FLOAT64 = DType("float64", "d", 8, 1, "double", "double", "double")
COMPLEX128 = DType("complex128", "z", 16, 2, "double complex", "double", "tc_complex")
ALL = (FLOAT32, FLOAT64, COMPLEX128)  # in the order of tables in generated code
NAMES = ("float64", "float32", "complex128")  # as options list them, the default first
BY_NAME = {dtype.name: dtype for dtype in ALL}
