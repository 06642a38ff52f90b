"""``tcgen library`` on the command line, and the tutorial as it stands on its page."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import tcgen
from support.command_line import invoke
from support.native_library import built, needs_cmake, needs_fortran, run
from support.paths import ROOT

SPEC = "space o = 3\nindex i : o\ninput x[o]\noutput y\ny = x[i]*x[i]\n"


def test_a_spec_and_a_folder_become_one_library(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.spec").write_text(SPEC)
    folder, made = tmp_path / "compiled", tmp_path / "made"
    assert invoke("-q", "compile", tmp_path / "one.spec", "-o", folder).exit_code == 0
    result = invoke(
        "library", folder, tmp_path / "two.spec", "-o", made, "--prefix", "x_", "--json"
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"schema": 1, "library": str(made)}
    header = (made / "include" / "made.h").read_text()
    assert re.findall(r"^TCGEN_API int (\w+)\(const \w+ \*n, const \w+ \*in", header, re.M) == [
        "x_one",
        "x_two",
    ]
    assert "(void)" not in (made / "README.md").read_text()
    # Again, with fewer programs: what the older library had is gone.
    assert invoke("-q", "library", tmp_path / "two.spec", "-o", made).exit_code == 0
    assert not list(made.rglob("one_kernels.c"))


def test_an_interruption_leaves_the_older_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of two libraries never stand side by side; what else is in the folder stays."""
    made = tcgen.library([SPEC], tmp_path / "made", dtype="float32")
    (made / "build").mkdir()
    (made / "build" / "notes").write_text("mine")
    (made / "build" / "link").symlink_to(tmp_path)

    def files() -> dict[Path, bytes]:
        return {p.relative_to(made): p.read_bytes() for p in made.rglob("*") if p.is_file()}

    older, rename, left = files(), Path.rename, [0]

    def interrupted(self: Path, target: Path) -> Path:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return rename(self, target)

    for at in (1, 2):
        with monkeypatch.context() as patched:
            left[0] = at
            patched.setattr(Path, "rename", interrupted)
            with pytest.raises(KeyboardInterrupt):
                tcgen.library([SPEC], made)
        assert files() == older
    tcgen.library([SPEC], made)
    assert files().keys() == older.keys()
    assert files() != older
    assert (made / "build" / "notes").read_text() == "mine"
    assert (made / "build" / "link").is_symlink()
    assert [p.name for p in tmp_path.iterdir()] == ["made"]


def test_options_that_change_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one.spec").write_text(SPEC)
    folder = tmp_path / "compiled"
    assert invoke("-q", "compile", tmp_path / "one.spec", "-o", folder).exit_code == 0
    for options, words in (
        ((folder, "-e", "o=4"), "compiled already"),
        ((folder, "--fortran-order"), "compiled already"),
        ((tmp_path / "one.spec", "--target", "numpy"), "target cpu"),
        ((tmp_path / "one.spec", "-e", "q=4"), "no spec has a base space q"),
    ):
        result = invoke("library", *options, "-o", tmp_path / "made")
        assert result.exit_code == 2, result.output
        assert words in " ".join(result.stderr.split())
        assert not (tmp_path / "made").exists()


@needs_cmake
@needs_fortran
@pytest.mark.slow
def test_the_tutorial(tmp_path: Path) -> None:
    """Its library is built, and its three programs print the energy."""
    page = (ROOT / "docs" / "native.md").read_text()
    blocks = re.findall(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", page, re.M | re.S)
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    command = re.search(r"^\$ tcgen -q library (.*) -o demo$", page, re.M)
    assert command is not None
    result = invoke("-q", "library", *command[1].split(), "-o", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    prefix = built(tmp_path / "demo", "-Ddemo_FORTRAN=ON", name="demo", install=True)
    build = tmp_path / "build"
    run("cmake", "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    energy = 0.1**2 / (2 * (-0.5 - 0.75))
    for name in ("use_c", "use_cpp", "use_fortran"):
        assert run(build / name) == f"E(MP2) = {energy:.6f}\n"


@needs_cmake
@needs_fortran
@pytest.mark.slow
def test_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script ends with an error unless the energies are those of PySCF."""
    if shutil.which("mpicc") is None or shutil.which("tcgen") is None:
        pytest.skip("MPI or the command tcgen is not installed")
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")
    assert "the energies are PySCF's" in run("bash", ROOT / "examples/native/run.sh", tmp_path)
