"""The example scripts, run as a user runs them: their results and their exit status."""

from __future__ import annotations

import doctest
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from support.messages import mentions
from support.paths import TESTS

LITHIUM_HYDRIDE = ("--atom", "Li 0 0 0; H 0 0 1.5957", "--basis", "sto-3g")


def run(script: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(script), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def target() -> str:
    from tcgen.compiler.target import default_target

    return default_target()


@pytest.fixture
def copied(examples: SimpleNamespace, tmp_path: Path) -> Path:
    """The folder of the examples, somewhere else and free to change."""
    return Path(shutil.copytree(examples.folder, tmp_path / "elsewhere"))


@pytest.mark.slow
def test_water(examples: SimpleNamespace, target: str) -> None:
    done = run(examples.folder / "water.py", "--target", target)
    assert done.returncode == 0, done.stderr
    energy = re.search(r"^E\(CCSD\) = (-\d+\.\d{12})$", done.stdout, re.MULTILINE)
    assert energy is not None
    assert abs(float(energy[1]) + 0.135379499614) < 1e-9
    rows = [line for line in done.stdout.splitlines() if re.match(r" +\d+ +-0\.\d{12}", line)]
    assert 8 < len(rows) < 25
    naive, chosen = numbers(done.stdout, "flops")
    assert 0 < chosen < naive
    before, after = numbers(done.stdout, "memory")
    assert 0 < after <= before  # nothing is fused where that saves no memory
    assert re.search(r"^time .* ms an iteration, .* through opt_einsum", done.stdout, re.MULTILINE)


def numbers(text: str, first: str) -> tuple[int, int]:
    """The first two integers of the line that begins with this word."""
    line = next(line for line in text.splitlines() if line.startswith(first))
    one, two = (int(n.replace(",", "")) for n in re.findall(r"\d[\d,]+", line)[:2])
    return one, two


@pytest.mark.slow
def test_hubbard_ring(examples: SimpleNamespace) -> None:
    done = run(examples.folder / "hubbard_ring.py", "--target", "numpy")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[1] for row in rows] == ["2", "6", "2", "6"]
    assert abs(float(rows[0][3]) - float(rows[0][5])) < 1e-6


@pytest.mark.slow
def test_water_fails_on_a_wrong_energy(copied: Path, target: str) -> None:
    data = copied / "data" / "water_631g.npz"
    with np.load(data) as file:
        arrays = dict(file)
    np.savez_compressed(data, **arrays | {"e_ccsd": arrays["e_ccsd"] + 1e-8})
    done = run(copied / "water.py", "--target", target)
    assert done.returncode == 1, done.stderr
    assert "difference" in done.stdout


def test_water_data_are_those_of_the_reference(examples: SimpleNamespace) -> None:
    records = json.loads((TESTS / "data" / "energies.json").read_text())["cases"]
    energies = next(c["energies"] for c in records if c["id"] == "h2o_631g")
    with np.load(examples.folder / "data" / "water_631g.npz") as file:
        assert abs(float(file["e_ccsd"]) - energies["E_CCSD_corr"]) < 1e-10
        assert abs(float(file["e_hf"]) - energies["E_HF"]) < 1e-10


def test_water_data_can_be_made_again(examples: SimpleNamespace, copied: Path) -> None:
    pytest.importorskip("pyscf")
    data = copied / "data" / "water_631g.npz"
    data.unlink()
    done = run(copied / "data" / "make_water.py")
    assert done.returncode == 0, done.stderr
    with np.load(data) as made, np.load(examples.folder / "data" / "water_631g.npz") as shipped:
        assert sorted(made) == sorted(shipped)
        for name in shipped:
            assert np.allclose(made[name], shipped[name], rtol=0, atol=1e-8), name


@pytest.mark.parametrize(
    ("script", "options", "lines"),
    [
        ("pyscf_ccsd.py", LITHIUM_HYDRIDE, 2),
        ("pyscf_triples.py", LITHIUM_HYDRIDE, 2),
        ("density_fitting.py", ("--basis", "6-31g", "--auxbasis", "weigend"), 2),
    ],
)
def test_pyscf_example(
    script: str, options: tuple[str, ...], lines: int, examples: SimpleNamespace, target: str
) -> None:
    pytest.importorskip("pyscf")
    done = run(examples.folder / script, *options, "--target", target)
    assert done.returncode == 0, done.stdout + done.stderr
    differences = [line for line in done.stdout.splitlines() if re.search(r"[+-]\d\.\de[+-]", line)]
    assert len(differences) == lines


@pytest.mark.slow
def test_crystal_example(examples: SimpleNamespace) -> None:
    pytest.importorskip("pyscf")
    done = run(examples.folder / "crystal.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PySCF") == 5


def test_diis_example(examples: SimpleNamespace) -> None:
    result = doctest.testmod(examples.diis)
    assert result.attempted > 0
    assert result.failed == 0


def test_iteration_that_does_not_converge_says_so(examples: SimpleNamespace) -> None:
    random = np.random.default_rng(3)
    with pytest.raises(ArithmeticError, match=mentions("convergence 5")):
        examples.diis.iterate(
            lambda t1: {"e": 0.0, "t1_new": random.standard_normal(t1.shape)},
            {"t1": np.zeros((2, 3))},
            limit=5,
        )


@pytest.mark.slow
def test_sympy_ccd(examples: SimpleNamespace) -> None:
    done = run(examples.folder / "sympy_ccd.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "E(CCD) = -0.1346951619" in done.stdout
