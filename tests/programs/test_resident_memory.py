"""What a process holds while a program runs is what the program reports, 1 % and 16 MiB aside.

Each case has a process of its own, which keeps no released memory for the next call
(``TCGEN_POOL=0``): after a warm-up call, what the next one holds at most is what it took itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support.spec_sample import SPEC_SAMPLE as SPECS

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

CALL = """
import ctypes, gc, json, sys
import tcgen
from tcgen.compiler.documents import read_artifact_system
from tcgen.testing import random_arrays, split_starts

def status(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return 1024 * int(line.split()[1])

name, extents, keywords = sys.argv[1], *map(json.loads, sys.argv[2:])
program = tcgen.compile(tcgen.spec_path(name), extents=extents, target="cpu", **keywords)
system = read_artifact_system(program.artifact)
arrays = random_arrays(system, extents, dtype="float64", seed=0)
inputs = split_starts(system, arrays)[0]
program(**inputs)
gc.collect()
if hasattr(ctypes.CDLL(None), "malloc_trim"):  # what the search for a plan left is not used again
    ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
program(**inputs)
grown = status("VmHWM") - before
print(grown, program.allocated_bytes, program.peak_bytes(), program.report["memory"]["peak_bytes"])
"""
EXTENTS = {
    "a3a": {"o": 4, "v": 44},
    "allam_figure1": {"Ni": 150, "Nj": 160, "Nk": 170, "Nl": 180},
    "cc2_df": {"o": 20, "v": 60, "x": 200},
    "ccd_spin_orbital": {"o": 16, "v": 36},
    "ccsd_closed_shell": {"o": 16, "v": 40},
    "ccsd_spin_orbital": {"o": 12, "v": 30},
    "df_ladder": {"o": 6, "v": 60, "x": 60},
    "drpa": {"o": 20, "v": 60, "x": 300, "q": 6},
    "mp2_closed_shell": {"o": 24, "v": 60},
    "mp2_df": {"o": 30, "v": 70, "x": 100},
    "mp2_spin_orbital": {"o": 24, "v": 60},
    "sosmp2_laplace_df": {"o": 20, "v": 60, "x": 300, "q": 6},
    "t_closed_shell": {"o": 8, "v": 22},
    "t_spin_orbital": {"o": 7, "v": 22},
    "uccsd_energy_t1": {"o": 8, "v": 20, "O": 7, "V": 21},
}
SLOW = pytest.mark.slow
CASES = [
    ("df_ladder", {}),
    ("mp2_df", {}),
    ("df_ladder", {"objective": "time", "memory_limit": "30MB"}),
    *(pytest.param(n, {}, marks=SLOW) for n in SPECS if n not in ("df_ladder", "mp2_df")),
    pytest.param("a3a", {"objective": "time", "memory_limit": "20MB"}, marks=SLOW),
    pytest.param("mp2_df", {"objective": "time", "memory_limit": "30MB"}, marks=SLOW),
    pytest.param("t_closed_shell", {"objective": "time", "memory_limit": "40MB"}, marks=SLOW),
    pytest.param("ccsd_closed_shell", {"memory_limit": "25MB"}, marks=SLOW),
    pytest.param("ccsd_spin_orbital", {"memory_limit": "20MB"}, marks=SLOW),
    pytest.param("ccd_spin_orbital", {"objective": "linear"}, marks=SLOW),
    pytest.param("mp2_df", {"objective": "peak"}, marks=SLOW),
]


def test_every_spec_has_extents() -> None:
    assert tuple(EXTENTS) == SPECS


@pytest.mark.slow
@pytest.mark.parametrize(("name", "keywords"), CASES)
def test_resident_memory_stays_within_the_report(name: str, keywords: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALL, name, json.dumps(EXTENTS[name]), json.dumps(keywords)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env={**os.environ, "TCGEN_POOL": "0", "OMP_NUM_THREADS": "1"},
    )
    grown, allocated, expected, reported = map(int, done.stdout.split())
    assert allocated == expected == reported
    assert grown <= reported * 1.01 + 16 * 2**20
    if name == "df_ladder":  # the check can fail: all of W, or of its tile, is written
        assert grown >= 0.9 * reported > 20e6
