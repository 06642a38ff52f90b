"""Kinds of processors for which a library has kernels, and the choice among them at run time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..errors import ArgumentError

# Features that a processor of a level has, by the names of __builtin_cpu_supports (gcc 12); the
# best level comes first.
_LEVELS = {
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": ("avx2", "fma", "bmi", "bmi2"),
    "x86-64-v2": ("sse4.2", "popcnt"),
    "x86-64": (),
}
_ARM = ("armv8-a", "armv8.2-a", "armv9-a")
NAMES = ("native", *_LEVELS, *_ARM)


def read_archs(text: str | Sequence[str]) -> tuple[str, ...]:
    """Values of ``-march``, the best one first.

    Raises:
        ArgumentError: a name is not known, or several are not all levels of x86-64.

    Example:
        >>> read_archs("x86-64-v3,x86-64-v4")
        ('x86-64-v4', 'x86-64-v3')
    """
    found = text.split(",") if isinstance(text, str) else text
    archs = list(found) if isinstance(found, Iterable) else [found]
    given = ",".join(map(str, archs))
    if not archs or any(arch not in NAMES for arch in archs):
        raise ArgumentError(
            f"archs={given!r}: there are {', '.join(NAMES)}; on any other processor, build a "
            f"library of the kind native"
        )
    others = [arch for arch in archs if arch not in _LEVELS]
    if others and len(set(archs)) > 1:
        raise ArgumentError(
            f"archs={given!r}: a library chooses at run time between levels of x86-64 alone "
            f"({', '.join(_LEVELS)}): make one library of {others[0]}, and another one of the rest"
        )
    return tuple(name for name in NAMES if name in archs)


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
