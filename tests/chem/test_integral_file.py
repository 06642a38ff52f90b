"""Integrals that do not fit into memory: one transform into a file, from which tiles are cut."""

from __future__ import annotations

import shutil
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.chem.frames import Block
from tcgen.chem.integral_file import IntegralFile, StoredRows
from tcgen.chem.mean_field import read_mean_field

pytest.importorskip("pyscf")
pytest.importorskip("h5py")


def told(_text: str) -> None:
    pass


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("kind", ["RHF", "UHF", "GHF"])
def test_a_transform_into_a_file_gives_the_integrals(kind: str, held: bool, blocks: Any) -> None:
    from pyscf import scf

    charge = 0 if kind == "RHF" else 1
    molecule = blocks.molecule("O 0 0 0; H 0.3 0.7 0.5; H -0.8 0.3 0", "6-31g*", charge, charge)
    field = (scf.RHF if kind == "RHF" else scf.UHF)(molecule).run()
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
        stored.transform_for([(p, p, q, q) for p in whole for q in whole], 0.0, file)
        assert file.bytes_written
        for p, q, r, s in wanted:
            made = stored.cut(p, q, r, s)
            np.testing.assert_allclose(made, expected.chemist(p, q, r, s), rtol=0, atol=1e-10)
        stored.forget_pairs()
        assert not stored.has_pairs(whole)


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


def test_too_little_room_on_disk(blocks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    field = blocks.mean_field(blocks.molecule("Li 0 0 0; H 0 0 1.5957", "sto-3g"))
    field.max_memory = 0.004
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1234))
    with pytest.raises(tcgen.UnavailableError, match=mentions("half 1,234 3,528 TMPDIR")):
        tcgen.chem.solve("ccsd_closed_shell", field, target="numpy", optimize=False, show=False)
