"""Addresses of the matrix products of the BLAS that SciPy carries."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

ROUTINES = ("sgemm", "dgemm", "zgemm")  # in the order of the generated code's table


@cache
def blas_pointers() -> tuple[int | None, ...]:
    """Function pointers for ROUTINES; all None without SciPy, or if its integers are not 32 bits.

    A program then uses its own plain matrix product.
    """
    try:
        from scipy.linalg import cython_blas  # noqa: PLC0415  (SciPy is optional at run time)
    except ImportError:
        return (None,) * len(ROUTINES)
    table = vars(cython_blas).get("__pyx_capi__", {})
    return tuple(_pointer(table.get(name)) for name in ROUTINES)


def _pointer(capsule: object) -> int | None:
    """Address in a capsule whose signature has the 32-bit integers that generated code passes."""
    if capsule is None:
        return None
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = get_name(capsule)
    if signature is None or signature.count(b"int *") != 6:
        return None
    address: int | None = get_pointer(capsule, signature)
    return address


def blas_library() -> str | None:
    """Name of the BLAS that programs call, or None where the plain product is used.

    Example: ``SciPy 1.17.1: openblas 0.3.29``
    """
    if not all(blas_pointers()):
        return None
    import scipy  # noqa: PLC0415  (present, as its pointers are)

    details: Any = scipy.show_config(mode="dicts")
    found = details.get("Build Dependencies", {}).get("blas", {})
    name = f"{found.get('name', 'BLAS')} {found.get('version', '')}".strip()
    return f"SciPy {scipy.__version__}: {name}"
