"""The target that is used where none is named."""

from __future__ import annotations

import warnings
from functools import cache

from ..environment import compiler_command, einsum_target
from ..runtime.cpu.toolchain import find_compiler, no_compiler


def default_target(*, warn: bool = False) -> str:
    """``cpu`` where a C compiler works, else ``numpy``."""
    reason = no_compiler()
    if reason is None:
        return "cpu"
    if warn:
        warnings.warn(
            f"{reason}: using target numpy (install gcc or clang, or set TCGEN_CC)",
            stacklevel=3,
        )
    return "numpy"


def kernel_target() -> str:
    """Target of einsum kernels: TCGEN_EINSUM_TARGET, else cpu where a C compiler works."""
    return einsum_target() or _default_target(compiler_command())


@cache
def _default_target(asked: str | None) -> str:
    """``cpu`` where a compiler works; one that is asked for, or is there, and does not is named."""
    reason = no_compiler()
    if reason is None:
        return "cpu"
    if asked or find_compiler() is not None:
        warnings.warn(f"{reason}: NumPy computes", RuntimeWarning, stacklevel=2)
    return "numpy"
