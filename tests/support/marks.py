"""Marks of single values in a ``parametrize``."""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Values whose tests take longer: ``-m slow`` runs them."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
