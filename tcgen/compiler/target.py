"""The target that is used where none is named."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial

from ..environment import compiler_command, einsum_target
from ..runtime.cpu.toolchain import find_compiler, no_compiler


def default_target(say: Callable[[str], object] | None = None) -> str:
    """``cpu`` where a C compiler works, else ``numpy``.

    Args:
        say: called with the reason where it is ``numpy``.
    """
    reason = no_compiler()
    if reason is None:
        return "cpu"
    if say is not None:
        say(f"{reason}: using target numpy (install gcc or clang, or set TCGEN_CC)")
    return "numpy"


def kernel_target() -> str:
    """Target of einsum kernels: TCGEN_EINSUM_TARGET, else the default target."""
    return einsum_target() or default_kernel_target(compiler_command())


@cache
def default_kernel_target(command: str | None) -> str:
    """The default target; a compiler that is there, or was asked for, and fails is named once.

    Args:
        command: of the compiler that the environment asks for; an answer holds for it alone.
    """
    expected = command is not None or find_compiler() is not None
    warn = partial(warnings.warn, category=RuntimeWarning, stacklevel=3)
    return default_target(warn if expected else None)
