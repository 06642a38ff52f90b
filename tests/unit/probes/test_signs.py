"""Which denominators the signs of random inputs keep from zero."""

from __future__ import annotations

import pytest

import tcgen
from tcgen.probes.signs import choose_signs


@pytest.mark.parametrize(
    ("right", "protected"),
    [
        ("a[i]/x", False),  # the default of x is 0
        ("a[i]/(a[i] + x)", True),
        ("a[i]/(a[i]*x)", False),
        ("sqrt(x)*log(a[i])", False),
        ("a[i]/two", True),
    ],
)
def test_a_scalar_of_default_0_protects_nothing(right: str, protected: bool) -> None:
    text = f"space o\nindex i : o\ninput a[o], x = 0, two = 2\noutput y\ny[i] = {right}\n"
    _, unprotected = choose_signs(tcgen.read_spec(text))
    assert (not unprotected) == protected
