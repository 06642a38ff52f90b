"""Integrals in files: one transform, from which tiles are cut, and which later jobs read."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcgen
from support.command_line import invoke
from support.messages import mentions
from tcgen.chem import atomic_integrals
from tcgen.chem.frames import Block
from tcgen.chem.integral_file import IntegralFile, NamedFile, StoredRows
from tcgen.chem.integrals import TransformOptions
from tcgen.chem.mean_field import read_mean_field

pytest.importorskip("pyscf")
pytest.importorskip("h5py")


def told(_text: str) -> None:
    pass


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize("kind", ["RHF", "UHF", "GHF"])
def test_a_transform_into_a_file_gives_the_integrals(
    kind: str, fitted: bool, held: bool, blocks: Any
) -> None:
    from pyscf import scf

    charge = 0 if kind == "RHF" else 1
    molecule = blocks.molecule("O 0 0 0; H 0.3 0.7 0.5; H -0.8 0.3 0", "6-31g*", charge, charge)
    field = (scf.RHF if kind == "RHF" else scf.UHF)(molecule)
    field = (field.density_fit() if fitted else field).run()
    field = field.to_ghf() if kind == "GHF" else field
    if not held:
        field._eri = None
    reference = read_mean_field(field)
    whole = [Block(name, tuple(range(f.count))) for name, f in reference.frames.items()]
    # Blocks of GHF have 38^4 elements: to compare a part is enough.
    some = [replace(b, places=b.places[3:20]) for b in whole]
    wanted = [(p, p, q, q) for p in some for q in some]
    expected = reference.integrals()
    stored = replace(reference, memory=1e5 if held else 1e9).integrals()
    with IntegralFile(told) as file:
        stored.transform_for(
            [(p, p, q, q) for p in whole for q in whole], TransformOptions(file=file, on_disk=True)
        )
        assert file.bytes_written
        for p, q, r, s in wanted:
            made = stored.cut(p, q, r, s)
            np.testing.assert_allclose(made, expected.chemist(p, q, r, s), rtol=0, atol=1e-10)
        stored.forget_pairs()
        assert not stored.has_pairs(whole)


def test_complex_integrals_in_a_file(tmp_path: Path, blocks: Any) -> None:
    from pyscf import scf

    field = blocks.mean_field(blocks.molecule("O 0 0 0; H 0.3 0.7 0.5", "sto-3g", charge=-1))
    field = scf.addons.convert_to_ghf(field)
    field.mo_coeff = field.mo_coeff * np.exp(1j * np.arange(12))
    reference = read_mean_field(field)
    (whole,) = {Block(n, tuple(range(f.count))) for n, f in reference.frames.items()}
    named = NamedFile(tmp_path / "integrals.h5", {})
    expected = reference.integrals().chemist(whole, whole, whole, whole)
    for memory in (1e9, 1e4):
        stored = replace(reference, memory=memory).integrals()
        with IntegralFile(told, named=named) as file:
            stored.transform_for([(whole,) * 4], TransformOptions(file=file))
            np.testing.assert_allclose(stored.cut(*(whole,) * 4), expected, rtol=0, atol=1e-10)
            # In many parts the half with few pairs is made first.
            part = replace(whole, places=whole.places[2:4])
            alone = reference.integrals().cut(part, whole, whole, whole)
            np.testing.assert_allclose(alone, expected[2:4], rtol=0, atol=1e-10)
        named.path.unlink()


@pytest.fixture
def transforms(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A name for each transform of integrals over all pairs of orbitals."""
    made: list[str] = []
    for name in ("_general", "_to_file"):
        method = getattr(atomic_integrals.AtomicIntegrals, name)

        def counted(self: Any, *given: Any, _of: Any = (name, method), **keywords: Any) -> Any:
            made.append(_of[0])
            return _of[1](self, *given, **keywords)

        monkeypatch.setattr(atomic_integrals.AtomicIntegrals, name, counted)
    return made


@pytest.mark.parametrize("fitted", [True, False])
def test_a_later_job_reads_integrals(
    fitted: bool, transforms: list[str], tmp_path: Path, blocks: Any
) -> None:
    field = blocks.mean_field(blocks.molecule("Li 0 0 0; H 0 0 1.5957", "sto-3g"))
    field = field.density_fit().run() if fitted else field
    path = tmp_path / "lih.h5"
    energies = []
    for spec, room, count in (
        ("ccsd_closed_shell", 4000, 1), ("mp2_closed_shell", 4000, 0),
        ("ccsd_closed_shell", 0.004, 0), ("dcsd_closed_shell", 4000, 0),
    ):  # fmt: skip
        field.max_memory = room
        transforms.clear()
        options = {"target": "numpy", "optimize": False, "show": False}
        found = tcgen.chem.solve(spec, field, integral_file=path, **options)
        assert len(transforms) == count, spec
        if spec == "ccsd_closed_shell":
            energies.append(found.e_corr)
    assert abs(energies[0] - energies[1]) < 1e-10
    assert [p.name for p in tmp_path.iterdir()] == ["lih.h5"]


def test_files_of_other_jobs_are_refused(tmp_path: Path, blocks: Any) -> None:
    def solve(field: Any, path: Path, **options: Any) -> None:
        tcgen.chem.solve(
            "mp2_closed_shell", field, integral_file=path, show=False, target="numpy",
            optimize=False, **options,
        )  # fmt: skip

    path = tmp_path / "lih.h5"
    lih = blocks.mean_field(blocks.molecule("Li 0 0 0; H 0 0 1.5957", "sto-3g"))
    solve(lih, path)
    other = blocks.mean_field(blocks.molecule("Li 0 0 0; H 0 0 1.6", "sto-3g"))
    with pytest.raises(tcgen.ArgumentError, match=mentions("lih.h5 another atoms, energy")):
        solve(other, path)
    with pytest.raises(tcgen.ArgumentError, match=mentions("lih.h5 another frozen orbitals")):
        solve(lih, path, frozen=1)
    turned = lih.copy()
    turned.mo_coeff = lih.mo_coeff * [1, -1, 1, 1, 1, 1]
    with pytest.raises(tcgen.ArgumentError, match=mentions("other signs of orbitals: give")):
        solve(turned, path)
    text = tmp_path / "lih.xyz"
    text.write_text("Li 0 0 0")
    with pytest.raises(tcgen.ArgumentError, match=mentions("lih.xyz not integrals of tcgen")):
        solve(lih, text)
    with pytest.raises(tcgen.UnavailableError, match=mentions("cannot write folder")):
        solve(lih, tmp_path / "none" / "lih.h5")
    arrays = tcgen.chem.hamiltonian(np.diag([-1.0, 1.0]), np.zeros((2,) * 4), nelec=2)
    with pytest.raises(tcgen.ArgumentError, match=mentions("integral_file= leave it out")):
        solve(arrays, path)


def test_equations_of_a_command_have_one_transform(transforms: list[str], tmp_path: Path) -> None:
    lih = ("--atom", "Li 0 0 0; H 0 0 1.5957", "--basis", "sto-3g", "--quiet")
    numpy = ("--target", "numpy", "--no-optimize")
    result = invoke("solve", "ccsd_closed_shell", "t_closed_shell", *lih, *numpy)
    assert result.exit_code == 0, result.stderr
    assert len(transforms) == 1
    transforms.clear()
    path = tmp_path / "none" / "lih.h5"
    result = invoke("solve", "ccsd_closed_shell", *lih, *numpy, "--integral-file", path)
    assert result.exit_code == 3
    assert "make the folder" in result.stderr
    assert not transforms


def test_rows_are_read_in_parts() -> None:
    values = np.arange(77.0).reshape(11, 7)
    with IntegralFile(told, kept=5 * 7 * 8) as file:
        data = file.create("values", values.shape, float)
        data[...] = values
        rows = StoredRows(file, data)
        for numbers in ([3, 4, 5], [3, 4, 5], [9, 1, 2, 2, 7, 10, 0], [], [4]):
            before = file.reads
            found = [np.array(part) for _, part in rows.parts(np.array(numbers, int))]
            np.testing.assert_array_equal(
                np.concatenate([np.empty((0, 7)), *found]), values[numbers]
            )
            assert max((len(part) for part in found), default=0) <= 5
        assert file.reads == before + 1


@pytest.mark.parametrize("named", [True, False])
def test_too_little_room_on_disk(
    named: bool, transforms: list[str], tmp_path: Path, blocks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = blocks.mean_field(blocks.molecule("Li 0 0 0; H 0 0 1.5957", "sto-3g"))
    field.max_memory = 4000 if named else 0.004
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1234))
    path, words = (tmp_path / "lih.h5", "another name") if named else (None, "TMPDIR")
    # Triangles of pairs, also half-transformed ones.
    needed = 8 * 21 * 21 * (1 if named else 2)
    with pytest.raises(tcgen.UnavailableError, match=mentions(f"1,234 {needed:,} {words}")):
        tcgen.chem.solve(
            "ccsd_closed_shell", field, target="numpy", optimize=False, show=False,
            integral_file=path,
        )  # fmt: skip
    assert not transforms
    assert not [*tmp_path.iterdir()]
