"""Errors as other processes see them: process pools pickle what a worker raises."""

from __future__ import annotations

import copy
import copyreg
import pickle
from collections.abc import Iterator

import pytest

import tcgen.errors
from tcgen.errors import AxisError, Diagnostic, Span, SpecError, TcgenError

DIAGNOSTICS = tuple(Diagnostic(Span("a.spec", n, 2), f"fault {n}", "x = y", "z") for n in range(3))
ERRORS = [
    SpecError(DIAGNOSTICS),
    AxisError("axis 3", axis=3, ndim=2),
    *(
        error("what is wrong: what to do")
        for error in vars(tcgen.errors).values()
        if isinstance(error, type) and issubclass(error, TcgenError) and error is not SpecError
    ),
]


@pytest.fixture
def reducers() -> Iterator[None]:
    """Reducers that the test registers leave with it."""
    before = copyreg.dispatch_table.copy()
    yield
    copyreg.dispatch_table.clear()
    copyreg.dispatch_table.update(before)


@pytest.mark.usefixtures("reducers")
@pytest.mark.parametrize("by_dask", [False, True])
@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_an_error_is_the_same_after_pickling(error: TcgenError, by_dask: bool) -> None:
    if by_dask:  # it pickles errors by tblib
        pytest.importorskip("tblib.pickling_support").install(error)
    error.__notes__ = ["a note"]
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert other.__notes__ == ["a note"]
        for name in ("diagnostics", "axis", "ndim"):
            assert getattr(other, name, None) == getattr(error, name, None)
