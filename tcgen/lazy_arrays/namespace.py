"""Lazy arrays as a module of the array API standard.

Example:
    >>> from tcgen.lazy_arrays import namespace as xp
    >>> x = xp.linspace(0.0, 1.0, 3)
    >>> x
    <lazy array of shape (3,), float64, 0 pending operations>
    >>> xp.max(x) == 1
    np.True_
"""

from __future__ import annotations

from typing import Any

from .array import NAMESPACE


def __getattr__(name: str) -> Any:
    return getattr(NAMESPACE, name)


def __dir__() -> list[str]:
    return dir(NAMESPACE)
