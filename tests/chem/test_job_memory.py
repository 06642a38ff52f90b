"""``memory=``: what a job takes, counted before the transform begins, and kept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tcgen
from support.messages import mentions
from support.paths import TESTS
from tcgen.chem.frames import SPATIAL, Block
from tcgen.chem.mean_field import read_mean_field
from tcgen.chem.memory import BASE, Budget
from tcgen.ir.tensor import Packing, Role, Space, Storage, Tensor

JOB = """
import sys
import tcgen
from pyscf import gto, scf

def status(name):
    line = next(x for x in open("/proc/self/status") if x.startswith(name))
    return int(line.split()[1]) * 1024

atom = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
mf = scf.RHF(gto.M(atom=atom, basis="cc-pvtz", verbose=0)).run(conv_tol=1e-12)
import tcgen.chem
open("/proc/self/clear_refs", "w").write("5")
start = status("VmRSS")
memory = int(sys.argv[1])
if sys.argv[2] == "max_memory":
    mf.max_memory, memory = memory / 1e6, None
found = tcgen.chem.solve(
    "ccsd_closed_shell", mf, target="numpy", optimize=False, memory=memory, show=False,
    tolerance=1e-7,
)
print(status("VmHWM") - start, found.e_corr)
"""


def budget(memory: float, **changes: Any) -> Budget:
    fields: dict[str, Any] = {
        "memory": memory,
        "inputs": {"v": 100.0, "f": 1.0},
        "making": {"v": 300.0},
        "amplitudes": 10.0,
        "diis": 4,
    }
    return Budget(**(fields | changes))


def test_all_that_is_beside_the_program_is_counted() -> None:
    assert not budget(1000).diis_on_disk
    assert budget(BASE + 1000).beside == BASE + 101 + 60 + 80
    assert budget(BASE + 1000).for_program() == 1000 - 101 - 60 - 80
    assert budget(BASE + 1000, amplitudes=BASE).diis_on_disk
    assert budget(BASE + 1000, amplitudes=BASE).beside == BASE + 101 + 6 * BASE


@pytest.mark.parametrize("missing", [0, 1])
def test_the_least_memory_is_named(missing: int) -> None:
    # 300 bytes while v is made, and f
    enough = budget(BASE + 301 - missing)
    if not missing:
        assert enough.for_program() > 0
        return
    with pytest.raises(tcgen.MemoryLimitError, match=mentions("make v 300 memory")) as raised:
        enough.for_program()
    assert f"{BASE + 301:,}" in str(raised.value)
    with pytest.raises(tcgen.MemoryLimitError, match=mentions("inputs v 100 amplitudes 60")):
        budget(BASE + 241, making={}).for_program()


def test_bytes_of_a_transform(blocks: Any) -> None:
    field = blocks.mean_field(blocks.molecule("O 0 0 0; H 0.3 0.7 0.5", "6-31g", charge=-1))
    integrals = read_mean_field(field).integrals()
    virtual = Block(SPATIAL, tuple(range(5, 11)))
    v = Space("v")
    packed = Tensor("g", (v,) * 4, Role.INPUT, storage=Storage(packed=(Packing(0), Packing(2))))
    pairs, atomic = 21, 66
    found = integrals.bytes_apart(packed, (virtual,) * 4)
    assert found == 8 * (pairs * pairs + pairs * atomic)
    dense = Tensor("g", (v,) * 4, Role.INPUT)
    assert integrals.bytes_apart(dense, (virtual,) * 4) == 8 * (2 * 6**4 + 36 * atomic)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["memory", "max_memory"])
@pytest.mark.parametrize("memory", [4e9, 4e8, 25e7, 21e7])
def test_a_job_takes_what_it_may(memory: float, option: str) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("needs /proc")
    pytest.importorskip("pyscf")
    done = subprocess.run(
        [sys.executable, "-c", JOB, f"{memory:.0f}", option],
        env={**os.environ, "PYTHONPATH": str(TESTS.parent), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    taken, energy = map(float, done.stdout.split())
    assert abs(energy + 0.275) < 0.01
    assert taken <= memory


@pytest.mark.parametrize("room", [0.004, 170.0])
def test_a_job_beyond_the_memory_of_a_mean_field_says_so(room: float, blocks: Any) -> None:
    field = blocks.mean_field(blocks.molecule("Li 0 0 0; H 0 0 1.5957", "sto-3g"))
    field.max_memory = room
    lines: list[str] = []
    found = tcgen.chem.solve(
        "ccsd_closed_shell", field, target="numpy", optimize=False, show=lines.append
    )
    assert abs(found.e_corr + 0.020378926447) < 1e-8
    assert any("mf.max_memory" in line for line in lines) == (room < 1)


def test_too_little_memory_for_the_program(blocks: Any) -> None:
    field = blocks.mean_field(blocks.molecule("Li 0 0 0; H 0 0 1.5957", "sto-3g"))
    with pytest.raises(tcgen.MemoryLimitError, match=re.compile(r"memory=1,000,000 bytes.*\d\. G")):
        tcgen.chem.solve("ccsd_closed_shell", field, memory="1MB", show=False)
    found = tcgen.chem.solve(
        "ccsd_closed_shell", field, memory="300MB", target="numpy", optimize=False, show=False
    )
    assert abs(found.e_corr + 0.020378926447) < 1e-8


@pytest.mark.parametrize("symmetry", [False, True])
def test_integrals_that_nobody_else_needs_are_released(symmetry: bool) -> None:
    gto, scf = pytest.importorskip("pyscf.gto"), pytest.importorskip("pyscf.scf")
    atom = "Li 0 0 0; H 0 0 1.5957"
    field = scf.RHF(gto.M(atom=atom, basis="sto-3g", symmetry=symmetry, verbose=0)).run()
    for release in (False, True, True):  # the last one makes them again
        found = tcgen.chem.solve(
            "mp2_closed_shell", field, symmetry=symmetry, release_integrals=release, show=False
        )
        assert abs(found.e_corr + 0.012870135774) < 1e-8
        assert (field._eri is None) == release
