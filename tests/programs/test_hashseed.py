"""Same input, same bytes of the artifact, whatever PYTHONHASHSEED, folder and clock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT

CASES = {
    "mp2_closed_shell": ["-e", "o=3", "-e", "v=4"],
    "ccsd_closed_shell": ["-e", "o=3", "-e", "v=4"],
    "ccd_spin_orbital": ["-e", "o=4", "-e", "v=5", "--objective", "linear"],
    "t_closed_shell": ["-e", "o=3", "-e", "v=4", "--objective", "linear"],
}


def compile_with_seed(seed: str, spec: str, options: list[str], folder: Path) -> dict[str, bytes]:
    """Files of the artifact, by name."""
    folder.mkdir()
    environment = {
        **os.environ,
        "PYTHONHASHSEED": seed,
        "PYTHONPATH": str(ROOT),
        "TCGEN_CACHE_DIR": str(folder.parent / "cache"),
    }
    command = [
        sys.executable,
        "-m",
        "tcgen.cli.commands",
        "-q",
        "compile",
        str(ROOT / "specs" / spec),
    ]
    result = subprocess.run(
        [*command, *options, "--target", "numpy", "-o", "out"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    out = folder / "out"
    files = [p for p in sorted(out.rglob("*")) if p.is_file() and "__pycache__" not in p.parts]
    return {str(p.relative_to(out)): p.read_bytes() for p in files}


@pytest.mark.parametrize("name", CASES)
def test_artifact_bytes_do_not_depend_on_the_hash_seed(name: str, tmp_path: Path) -> None:
    first, *others = (
        compile_with_seed(seed, f"{name}.spec", CASES[name], tmp_path / f"seed{seed}")
        for seed in ("0", "1", "4242")
    )
    assert "manifest.json" in first
    for other in others:
        assert other.keys() == first.keys()
        changed = [file for file in first if first[file] != other[file]]
        assert not changed, f"these files depend on the hash seed: {changed}"


def test_generated_source_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    """The C text, without building it."""
    code = (
        "import tcgen\n"
        "p = tcgen.compile(tcgen.spec_path('ccsd_closed_shell'), extents={'o': 3, 'v': 4},"
        " target='cpu')\n"
        "print(p.source)"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(texts) == 1
