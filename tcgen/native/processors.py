"""Kinds of processors for which a library has kernels, and the choice among them at run time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import ArgumentError

# Features that a processor of a level has, by the names of __builtin_cpu_supports (gcc 12); the
# best level comes first.
_LEVELS = {
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": ("avx2", "fma", "bmi", "bmi2"),
    "x86-64-v2": ("sse4.2", "popcnt"),
    "x86-64": (),
}


def read_archs(text: str | Sequence[str]) -> tuple[str, ...]:
    """Values of ``-march``, the best one first.

    Raises:
        ArgumentError: a name cannot be one, or several are not all levels of x86-64.

    Example:
        >>> read_archs("x86-64-v3,x86-64-v4")
        ('x86-64-v4', 'x86-64-v3')
    """
    archs = text.split(",") if isinstance(text, str) else list(text)
    for arch in archs:
        if not isinstance(arch, str) or not re.fullmatch(r"[a-z0-9][\w.+-]*", arch):
            raise ArgumentError(f"{arch!r} is not a kind of processor: give a value of -march")
    if len(archs) == 1:
        return tuple(archs)
    others = [arch for arch in archs if arch not in _LEVELS]
    if others or not archs:
        raise ArgumentError(
            f"archs={','.join(archs)!r}: a library chooses at run time between "
            f"{', '.join(_LEVELS)}; any other kind stands alone"
        )
    return tuple(level for level in _LEVELS if level in archs)


def identifier(arch: str) -> str:
    """The end of the names of a kind's symbols."""
    return re.sub(r"\W", "_", arch)


def chooser(archs: Sequence[str]) -> list[str]:
    """The function ``tcr_processor``: the number of the best kind, -1 if none fits."""
    lines = ["static int tcr_processor(void)", "{"]
    for number, arch in enumerate(archs):
        checks = [f'__builtin_cpu_supports("{name}")' for name in _LEVELS.get(arch, ())]
        if not checks:
            return [*lines, f"    return {number};", "}"]
        lines.append(f"    if ({' && '.join(checks)}) return {number};")
    return [*lines, "    return -1;", "}"]
