"""The contraction kernel built by GCC and clang, for the machine's vectors and for shorter ones."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT
from tcgen.emit.c.targets import TARGETS

CONTRACTIONS = "tests/unit/emit/c/test_contraction.py"
TESTS = (
    f"{CONTRACTIONS}::test_random_contractions",
    f"{CONTRACTIONS}::test_non_temporal_stores",
    f"{CONTRACTIONS}::test_sums_of_several_blocks",
    f"{CONTRACTIONS}::test_rows_in_place_are_not_read_beyond_the_end_of_the_operand",
    "tests/unit/emit/c/test_staged_lines.py",
)
SHORTER = ("-mno-avx512f", "-mno-avx")
PROCESSORS = [  # that differ from the machine's own, by the rows of the table of targets
    f"-DTC_TARGET={n}" + (" -mno-avx512f" if t.vector_bytes == 32 else "")
    for n, t in enumerate(TARGETS)
    if t.vector_bytes > 16
]
BUILDS = [
    *(("cc", flag) for flag in (*SHORTER, "-DTC_TARGET=2")),
    *(("clang", flag) for flag in ("", *SHORTER)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("compiler", "flag"), BUILDS)
def test_tests_of_the_kernel_pass(compiler: str, flag: str, tmp_path: Path) -> None:
    """In processes of their own: a compiler is chosen once."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if flag and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"{flag} is for another processor")
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore::RuntimeWarning"]  # that it has no OpenMP
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *TESTS],
        cwd=ROOT,
        env=os.environ | {"TCGEN_CC": f"{compiler} {flag}", "TCGEN_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


PRODUCTS = """\
import hashlib, numpy as np, tcgen
random = np.random.default_rng(0)
for labels, *shapes in (
    ("adb,cd->cba", (24, 118, 312), (24, 118)),
    ("aebd,ce->dcba", (24, 67, 11, 72), (24, 67)),
    ("acd,db->cba", (72, 40, 330), (330, 24)),
    ("aged,cbfg->fedcba", (24, 10, 8, 8), (8, 8, 8, 10)),
    ("bged,cafg->fedcba", (9, 13, 8, 10), (7, 23, 8, 13)),
    ("ga,cbg->cba", (13, 345), (37, 43, 13)),
):
    y = tcgen.einsum(labels, *(random.standard_normal(shape) for shape in shapes))
    print(hashlib.sha256(np.ascontiguousarray(y)).hexdigest())
"""


@pytest.mark.slow
def test_kernels_of_all_processors_give_the_same_bits(tmp_path: Path) -> None:
    """How a sum is cut, and when lines are prefetched and stored, depends on the processor."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("which processor a compiler is told decides on x86 alone")
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRODUCTS],
            env=os.environ | {"TCGEN_CC": f"cc {flags}", "TCGEN_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for flags in PROCESSORS
    }
    (hashes,) = printed
    assert len(set(hashes.split())) == 6
