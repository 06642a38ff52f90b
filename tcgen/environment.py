"""The only reader of environment variables.

Raises:
    ArgumentError: a variable has a value that cannot be used.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .errors import ArgumentError
from .options import parse_bytes

STAGES = ("system", "program", "plan", "module", "tuned")
# From 100,000 flops to this, a kernel is faster than the better of NumPy's two methods in 30 of 100
# random calls (43 with out=) and saves nothing on average, while an expression takes 0.1 to
# 0.7 s to compile; below, it hardly ever is.
EINSUM_MIN_FLOPS = 1_000_000
EINSUM_PROGRAMS = 512
# Lines of two to five operations on float64 arrays of 130,000 elements take kernels 1.1 of NumPy's
# time (geometric mean of seven), of 160,000 elements 1.04, and of 200,000 elements 0.94.
LAZY_MIN_ELEMENTS = 150_000
POOL_BYTES = 512 * 2**20
SEARCH_PATHS = (
    *("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"),
    *("LD_LIBRARY_PATH", "SDKROOT", "MACOSX_DEPLOYMENT_TARGET"),
)


def _environment(name: str) -> str | None:
    """A variable of the environment; ``os.environ.get`` takes twice as long where it is not set."""
    try:
        return os.environ[name]
    except KeyError:
        return None


def cache_dir() -> Path:
    """Folder of compiled objects and plans: TCGEN_CACHE_DIR, else the user's cache folder.

    A user without a home folder has it among the temporary files.
    """
    chosen = _environment("TCGEN_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = _environment("XDG_CACHE_HOME")
    if base:
        return Path(base) / "tcgen"
    try:
        return Path.home() / ".cache" / "tcgen"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"tcgen-cache-{os.getuid()}"


def compiler_search_paths() -> tuple[tuple[str, str], ...]:
    """The set variables that change the search of a C compiler, by name."""
    return tuple((name, os.environ[name]) for name in SEARCH_PATHS if name in os.environ)


def keeps_plans() -> bool:
    """TCGEN_PLAN_CACHE: 0 searches every sequence and plan anew; 1 (default) keeps them on disk."""
    text = os.environ.get("TCGEN_PLAN_CACHE", "1")
    if text not in ("0", "1"):
        raise ArgumentError(f"TCGEN_PLAN_CACHE={text!r} is not 0 or 1")
    return text == "1"


def openmp_threads() -> str | None:
    """OMP_NUM_THREADS, as OpenMP reads it."""
    return _environment("OMP_NUM_THREADS")


def compiler_command() -> str | None:
    """C compiler named by TCGEN_CC or CC, or None."""
    return _environment("TCGEN_CC") or _environment("CC")


def compiler_flags() -> str | None:
    """Flags that TCGEN_CFLAGS adds to those of the C compiler, or None."""
    return _environment("TCGEN_CFLAGS")


def pool_bytes() -> int:
    """TCGEN_POOL: bytes of released arrays that a process keeps for the next ones (0: none)."""
    text = _environment("TCGEN_POOL")
    return POOL_BYTES if text is None else parse_bytes(text)


def einsum_min_flops() -> int:
    """TCGEN_EINSUM_MIN_FLOPS: einsum calls of fewer flops go to NumPy (0: none of them does)."""
    text = _environment("TCGEN_EINSUM_MIN_FLOPS")
    return EINSUM_MIN_FLOPS if text is None else _whole("TCGEN_EINSUM_MIN_FLOPS", text, "flops")


def lazy_min_elements() -> int:
    """TCGEN_LAZY_MIN_ELEMENTS: NumPy runs lazy operations on fewer elements (0: it runs none)."""
    text = _environment("TCGEN_LAZY_MIN_ELEMENTS")
    name = "TCGEN_LAZY_MIN_ELEMENTS"
    return LAZY_MIN_ELEMENTS if text is None else _whole(name, text, "elements")


def einsum_programs() -> int:
    """TCGEN_EINSUM_PROGRAMS: how many compiled einsum programs a process keeps."""
    text = _environment("TCGEN_EINSUM_PROGRAMS")
    return EINSUM_PROGRAMS if text is None else _whole("TCGEN_EINSUM_PROGRAMS", text, "programs")


def _whole(name: str, text: str, what: str) -> int:
    if not text.isdecimal():
        raise ArgumentError(f"{name}={text!r} is not a number of {what} such as 1000")
    return int(text)


def einsum_target() -> str | None:
    """TCGEN_EINSUM_TARGET: target of einsum kernels, or None for what this machine has."""
    target = _environment("TCGEN_EINSUM_TARGET") or None
    if target not in (None, "cpu", "numpy"):
        raise ArgumentError(f"TCGEN_EINSUM_TARGET={target!r} is not cpu or numpy")
    return target


def einsum_tunes() -> bool:
    """TCGEN_EINSUM_TUNE: 1 measures how einsum kernels of the CPU are computed best, 0 does not."""
    text = _environment("TCGEN_EINSUM_TUNE")
    if text not in (None, "0", "1"):
        raise ArgumentError(f"TCGEN_EINSUM_TUNE={text!r} is not 0 or 1")
    return text == "1"


def dump_stages() -> tuple[str, ...]:
    """Stages whose result is written to files: TCGEN_DUMP=all or a comma-separated list."""
    stages = tuple(s.strip() for s in os.environ.get("TCGEN_DUMP", "").split(",") if s.strip())
    for stage in stages:
        if stage not in ("all", *STAGES):
            raise ArgumentError(f"TCGEN_DUMP: {stage!r} is not all or one of {', '.join(STAGES)}")
    return stages


def dump_dir() -> Path:
    """Folder of the dumps: TCGEN_DUMP_DIR, else ``tcgen_dump`` here."""
    return Path(os.environ.get("TCGEN_DUMP_DIR", "tcgen_dump"))


def verify_level() -> int:
    """TCGEN_VERIFY: 0 no checks, 1 (default) structure of each level, 2 also its values."""
    text = os.environ.get("TCGEN_VERIFY", "1")
    if text not in ("0", "1", "2"):
        raise ArgumentError(f"TCGEN_VERIFY={text!r} is not 0, 1 or 2")
    return int(text)
