"""Marks of single values in a ``parametrize``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Values whose tests take longer: ``-m slow`` runs them."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def slow_where(condition: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
    """All values, in order; those for which the condition holds take longer."""
    return [slow(value)[0] if condition(value) else value for value in values]
