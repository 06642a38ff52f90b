"""The default target, and the machine model for which a target is planned."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from ..environment import cache_dir, compiler_command, einsum_target
from ..errors import CacheWarning, UnavailableError
from ..options import Planning
from ..runtime.cpu.toolchain import find_compiler, no_compiler
from ..thresholds.time_model import Machine, parse_machine

T = TypeVar("T")


def default_target(say: Callable[[str], object] | None = None) -> str:
    """``cpu`` if a C compiler works, else ``numpy``; ``say`` is called with the reason for it."""
    found = no_compiler()
    if found is None:
        return "cpu"
    if say is not None:
        reason, advice = found
        say(f"{reason}: using target numpy ({advice})")
    return "numpy"


def for_machine(planning: Planning, target: str) -> Planning:
    """Planning with the constants of this machine's GPU.

    Constants given by the caller replace those of the device; a named GPU replaces all of them.
    """
    given = planning.machine
    if target != "cuda" or isinstance(given, Machine):
        return planning
    from ..runtime.gpu.cupy_device import device_machine  # noqa: PLC0415  (imports CuPy)

    here = device_machine()
    if here is None:
        return planning
    return replace(planning, machine=here if given is None else parse_machine(given, here))


def kernel_target() -> str:
    """Target of einsum kernels: TCGEN_EINSUM_TARGET, else the default target."""
    asked = einsum_target()
    if asked is None and _without_room and cache_dir() in _without_room:
        return "numpy"
    return asked or default_kernel_target(compiler_command())


def with_kernels(run: Callable[[str], T]) -> T:
    """Call ``run`` with the target of kernels, or with NumPy's if kernels cannot be built.

    NumPy takes over, with one warning, if no folder accepts compiled objects or the compiler's
    temporary files. If TCGEN_EINSUM_TARGET requires the CPU's kernels, this is an UnavailableError.
    ``run`` must have no effect before it has built its kernels.
    """
    target = kernel_target()
    try:
        return run(target)
    except UnavailableError as error:
        if target != "cpu" or einsum_target() == "cpu":
            raise
        if isinstance(error, CacheWarning):  # a warning filter made it an error
            raise
        _without_room.add(cache_dir())
        warnings.warn(f"NumPy runs the kernels: {error}", RuntimeWarning, stacklevel=2)
        return run("numpy")


# Caches in which kernels could not be built.
_without_room: set[Path] = set()


@cache
def default_kernel_target(command: str | None) -> str:
    """The default target; warns once about an existing or required compiler that fails.

    ``command``, the compiler that the environment names, is a part of the cache's key.
    """
    expected = command is not None or find_compiler() is not None
    warn = partial(warnings.warn, category=RuntimeWarning, stacklevel=3)
    return default_target(warn if expected else None)
