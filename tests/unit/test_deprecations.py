"""Public names of version 0.1: each gives what its new name gives, with a warning that says it."""

from __future__ import annotations

import pytest

import tcgen
from tcgen import _NEW_NAMES


@pytest.mark.parametrize(("old", "new"), _NEW_NAMES.items())
def test_old_name_warns_and_works(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"tcgen\.{old} .*tcgen\.{new}") as caught:
        value = getattr(tcgen, old)
    assert value is getattr(tcgen, new)
    assert caught[0].filename == __file__
    assert new in tcgen.__all__
    assert old not in dir(tcgen)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tcgen.no_such_name  # type: ignore[attr-defined]


def test_backend_of_opt_einsum_warns_of_nothing() -> None:
    assert "transpose" not in tcgen.__all__
    assert tcgen.transpose([[1, 2]]).shape == (2, 1)  # type: ignore[attr-defined]
