"""Choices of lazy arrays that measured times make do not depend on the load of the machine."""

from __future__ import annotations

import pytest

from tcgen.lazy_arrays.dispatch import LIMITS


@pytest.fixture(autouse=True)
def no_kernel_because_a_run_was_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels and NumPy add in different orders; tests that want a kernel ask for it."""
    monkeypatch.setattr(LIMITS, "large", float("inf"))
    monkeypatch.setattr(LIMITS, "spent", float("inf"))
