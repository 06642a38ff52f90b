"""The BLAS inside SciPy, and the numbers of threads of it and of programs on the CPU."""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from operator import index
from typing import Any, SupportsIndex

from ...errors import ArgumentError

# In the order of the table of generated code, with the number of integer arguments of each.
ROUTINES = {"sgemm": 6, "dgemm": 6, "zgemm": 6, "sgemv": 5, "dgemv": 5, "zgemv": 5}


@cache
def blas_pointers() -> tuple[int | None, ...]:
    """Function pointers for ROUTINES; None without SciPy, or if its integers are not 32 bits wide.

    A program then uses its own plain products.
    """
    try:
        from scipy.linalg import cython_blas  # noqa: PLC0415  (SciPy is optional at run time)
    except ImportError:
        return (None,) * len(ROUTINES)
    table = vars(cython_blas).get("__pyx_capi__", {})
    return tuple(_pointer(table.get(name), integers) for name, integers in ROUTINES.items())


def _pointer(capsule: object, integers: int) -> int | None:
    """Address of a routine whose signature has the 32-bit integers that generated code passes."""
    if capsule is None:
        return None
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = get_name(capsule)
    if signature is None or signature.count(b"int *") != integers:
        return None
    address: int | None = get_pointer(capsule, signature)
    return address


class _Threads:
    """Make the BLAS run on the calling thread; programs divide the work themselves.

    Two sets of threads that wait for each other's processors are many times slower than one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = 1
        self._get, self._set = _controls()

    @property
    def controlled(self) -> bool:
        """True if the number of threads of the BLAS can be set."""
        return self._set is not None

    def __enter__(self) -> None:
        if self._get is None or self._set is None:
            return
        with self._lock:
            if self._users == 0:
                self._before = self._get()
                self._set(1)
            self._users += 1

    def __exit__(self, *_: object) -> None:
        if self._set is None:
            return
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._set(self._before)


@cache
def blas_threads() -> _Threads:
    """The context of this process, which any number of threads may enter."""
    return _Threads()


if hasattr(os, "register_at_fork"):
    # A lock that another thread of the parent held would never be released in the child.
    os.register_at_fork(after_in_child=blas_threads.cache_clear)


def _controls() -> tuple[Any, Any]:
    """Functions of OpenBLAS or MKL that get and set the number of threads, or None."""
    if not all(blas_pointers()):
        return None, None
    from scipy.linalg import cython_blas  # noqa: PLC0415  (present, as its pointers are)

    library = ctypes.CDLL(cython_blas.__file__)  # also finds symbols of its dependencies
    for prefix in ("scipy_openblas", "openblas", "MKL"):
        names = (
            ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads")
            if prefix == "MKL"
            else (f"{prefix}_get_num_threads", f"{prefix}_set_num_threads")
        )
        if all(hasattr(library, name) for name in names):
            get, put = (getattr(library, name) for name in names)
            put.restype = None
            return get, put
    return None, None


def blas_library() -> str | None:
    """Name of the BLAS of programs (``SciPy 1.17.1: openblas 0.3.29``); None for plain products."""
    if not all(blas_pointers()):
        return None
    import scipy  # noqa: PLC0415  (present, as its pointers are)

    details: Any = scipy.show_config(mode="dicts")
    blas = details.get("Build Dependencies", {}).get("blas", {})
    name = f"{blas.get('name', 'BLAS')} {blas.get('version', '')}".strip()
    return f"SciPy {scipy.__version__}: {name}"


MAX_THREADS = 4096  # threads; OpenMP ends the process if the system cannot start all of them


class _Chosen:
    """The choice of this process."""

    count: int | None = None


def set_threads(count: SupportsIndex | None) -> None:
    """Set the number of threads of all CPU programs and of ``tcgen.einsum`` from now on.

    While a program runs, the BLAS that it calls uses no threads of its own, so that no processor
    has to do the work of two.

    Args:
        count: 1 to 4096; None for as many as OpenMP offers (OMP_NUM_THREADS, else all processors).

    Raises:
        ArgumentError: ``count`` is none of these.

    Example:
        >>> set_threads(1)
        >>> set_threads(None)
    """
    whole = isinstance(count, SupportsIndex) and not isinstance(count, bool)
    if count is not None and (not whole or not 1 <= index(count) <= MAX_THREADS):
        raise ArgumentError(
            f"set_threads({count!r}): give an integer of 1 to {MAX_THREADS}, or None"
        )
    _Chosen.count = None if count is None else index(count)


def get_threads() -> int | None:
    """The number of threads that :func:`set_threads` set; None for as many as OpenMP offers.

    Example:
        >>> set_threads(2)
        >>> get_threads()
        2
        >>> set_threads(None)
    """
    return _Chosen.count


def used_threads(offered: int) -> int:
    """The number that was set, else that of OpenMP; ArgumentError if that exceeds MAX_THREADS."""
    if _Chosen.count is None and offered > MAX_THREADS:
        raise ArgumentError(
            f"OMP_NUM_THREADS asks for {offered} threads: give at most {MAX_THREADS}, one for each "
            f"core"
        )
    return _Chosen.count or offered
