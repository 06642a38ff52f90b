"""Quotients of complex numbers at the ends of the range of float64."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from support.cuda_device import device_named

TEXT = "space o = 3\nindex i : o\ninput x[o], y[o]\noutput q\nq[i] = x[i]/y[i]\n"
TINY = 5e-324
QUOTIENTS = [
    (1e-309 + 2e-309j, 1e-309 + 2e-309j, 1),
    (1 + 2j, 4e-308 + 0j, 2.5e307 + 5e307j),
    (3 * TINY * 1j, TINY, 3j),
    (4 * TINY, 2j * TINY, -2j),
    (0, TINY + 1j * TINY, 0),
    (1e300, 1e-309, np.inf),
    (8e307, 8e307 + 8e307j, 0.5 - 0.5j),
    # As NumPy: y.re + y.im*(y.im/y.re) is above the range.
    (9e307, 9e307 + 9e307j, 0),
    (3 + 4j, np.inf, 0),
]


@pytest.mark.parametrize("target", ["numpy", "cpu", "cuda"])
def test_ends_of_the_range(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, wanted = (np.array(column, complex) for column in zip(*QUOTIENTS, strict=True))
    if target == "cuda":
        device = device_named("emulator")
        monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
    found = tcgen.compile(TEXT, dtype="complex128", target=target)(x=x, y=y)
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(found["q"]), finite)
    np.testing.assert_allclose(found["q"][finite], wanted[finite], rtol=1e-14)
