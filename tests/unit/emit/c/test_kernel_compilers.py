"""The contraction kernel built by GCC and clang, for the machine's vectors and for shorter ones."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.messages import says
from support.paths import ROOT

FILES = ("tests/unit/emit/c/test_contraction.py", "tests/unit/emit/c/test_staged_lines.py")
TESTS = "random_contractions or pass_by or staged_rows or several_blocks or turned_target"
SHORTER = ("-mno-avx512f", "-mno-avx")
AMD = [f"__znver{n}__" for n in range(1, 6)]
OTHERS = " ".join(f"-U{name}" for name in AMD)  # as on a processor that is not AMD's
PROCESSORS = {
    "Zen 4": f"{OTHERS} -D__znver4__=1 -U__GFNI__ -D__GFNI__=1 -U__AVXVNNI__",
    "Zen 5": f"{OTHERS} -D__znver5__=1 -U__AVXVNNI__ -D__AVXVNNI__=1",
    "another": OTHERS,
}
BUILDS = [
    *(("cc", flag) for flag in (*SHORTER, PROCESSORS["Zen 4"])),
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
    tests = [*FILES, "-k", TESTS]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
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
    """How a sum is cut, and when lines are fetched and stored, depends on the processor."""
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
        for flags in PROCESSORS.values()
    }
    (hashes,) = printed
    assert len(set(hashes.split())) == 6


WITHOUT_TILES = """\
#!/bin/sh
for word; do
    case $word in *.c) head -1 "$word" | grep -q TC_WAY && exit 1 ;; esac
done
exec cc "$@"
"""
STAGED = """\
import numpy as np, tcgen
a = np.random.default_rng(0).random((72, 330, 80))
b = np.random.default_rng(1).random((24, 330))
assert np.allclose(tcgen.einsum("adb,cd->cba", a, b), np.einsum("adb,cd->cba", a, b))
"""


def test_a_kernel_that_a_compiler_refuses_is_replaced_with_a_warning(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(WITHOUT_TILES)
    compiler.chmod(0o755)
    for refused, settings in ((False, {}), (True, {"TCGEN_CC": str(compiler)})):
        settings["TCGEN_CACHE_DIR"] = str(tmp_path / f"cache{refused}")
        done = subprocess.run(
            [sys.executable, "-c", STAGED],
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (says(done.stderr, "contraction times")) == refused
