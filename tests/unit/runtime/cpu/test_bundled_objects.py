"""Artifacts that carry their compiled objects run where there is no compiler."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.runtime.cpu import bundled_objects

TEXT = """space o
index i j k l : o
input x[o,o,o]
output y[o,o]
y[i,j] = x[i,k,l]*x[j,l,k]
"""


def program(target: str = "cpu") -> tcgen.Program:
    return tcgen.compile(tcgen.read_spec(TEXT), extents={"o": 5}, target=target)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program and its objects, and then an empty cache and no compiler."""
    folder = program().save(tmp_path / "carried", objects=True)
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TCGEN_CC", "no-such-compiler")
    return folder


def test_no_compiler_is_needed(nowhere: Path) -> None:
    x = np.random.default_rng(0).random((5, 5, 5))
    loaded = tcgen.load(nowhere)
    np.testing.assert_allclose(loaded(x=x)["y"], np.einsum("ikl,jlk->ij", x, x))
    loaded.build()


def test_objects_of_another_processor_are_left_alone(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundled_objects, "processor", lambda: "another one")
    with pytest.raises(tcgen.BuildError, match=mentions("no-such-compiler TCGEN_CC numpy")):
        tcgen.load(nowhere)(x=np.ones((5, 5, 5)))


def test_a_changed_object_is_refused(nowhere: Path) -> None:
    changed = next((nowhere / "objects").glob("*.b64"))
    changed.write_text("AAAA\n")
    with pytest.raises(tcgen.ArtifactError, match=mentions(changed.name)):
        tcgen.load(nowhere)


@pytest.mark.parametrize("objects", [False, True])
def test_numpy_runs_a_program_without_compiler_and_objects(
    objects: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tcgen.compile(tcgen.read_spec(TEXT), extents={"o": 5}, target="cpu", fallback=True)
    folder = made.save(tmp_path / "carried", objects=objects)
    x = np.random.default_rng(0).random((5, 5, 5))
    expected = np.einsum("ikl,jlk->ij", x, x)
    assert tcgen.load(folder).manifest.target == "cpu"
    np.testing.assert_allclose(tcgen.load(folder)(x=x)["y"], expected)

    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TCGEN_CC", "no-such-compiler")
    monkeypatch.setattr(bundled_objects, "processor", lambda: "another one")
    with pytest.warns(RuntimeWarning, match=mentions("NumPy no-such-compiler")):
        loaded = tcgen.load(folder)
    assert loaded.manifest.target == "numpy"
    np.testing.assert_allclose(loaded(x=x)["y"], expected)
    assert loaded.report == made.report
    again = loaded.save(tmp_path / "again")
    assert (again / "manifest.json").read_text() == (folder / "manifest.json").read_text()


def test_a_changed_fallback_is_refused(tmp_path: Path) -> None:
    made = tcgen.compile(tcgen.read_spec(TEXT), extents={"o": 5}, target="cpu", fallback=True)
    text = made.artifact.text("fallback.json").replace('"numpy"', '"cuda"')
    damaged = made.artifact.with_files((("fallback.json", text),))
    with pytest.raises(tcgen.ArtifactError, match=mentions("fallback.json checksum")):
        tcgen.Program(damaged)


def test_other_targets_have_no_fallback() -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions("numpy fallback cpu")):
        tcgen.compile(tcgen.read_spec(TEXT), extents={"o": 5}, target="numpy", fallback=True)


def test_other_targets_have_no_objects(tmp_path: Path) -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions("numpy objects cpu")):
        program("numpy").save(tmp_path / "numpy", objects=True)
