"""Blocks of integrals cut out of one transform, beside blocks that are transformed one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tcgen.chem.frames import ALPHA, BETA, SPATIAL, SPIN_ORBITAL, Block
from tcgen.chem.integrals import TransformOptions
from tcgen.chem.mean_field import read_mean_field
from tcgen.chem.pairs import blocks_of_columns, half_transformed, pair_numbers
from tcgen.ir.layouts import pack
from tcgen.ir.tensor import Packing, Role, Space, Storage, Tensor


@pytest.fixture(scope="module")
def fields(blocks: Any) -> dict[str, Any]:
    """Mean fields of a radical and of its anion, one of them with mixed spins."""
    from pyscf import scf

    atoms = "O 0 0 0; H 0.3 0.7 0.5"
    closed = blocks.mean_field(blocks.molecule(atoms, "6-31g", charge=-1))
    radical = blocks.mean_field(blocks.molecule(atoms, "6-31g", spin=1), "UHF")
    general = scf.addons.convert_to_ghf(radical)
    cosine, sine = np.cos(0.3), np.sin(0.3)
    turn = np.kron(np.array([[cosine, -sine], [sine, cosine]]), np.eye(radical.mol.nao))
    general.mo_coeff = turn @ general.mo_coeff
    return {"RHF": closed, "UHF": radical, "GHF": general}


@pytest.mark.parametrize(
    ("kind", "frames"),
    [("RHF", [SPATIAL]), ("UHF", [ALPHA, BETA]), ("UHF", [SPIN_ORBITAL]), ("GHF", [SPIN_ORBITAL])],
)
def test_blocks_are_those_of_single_transforms(
    fields: dict[str, Any], kind: str, frames: list[str]
) -> None:
    reference = read_mean_field(fields[kind], 1 if kind != "GHF" else 2)
    parts = []
    for name in frames:
        frame = reference.frames[name]
        occupied, virtual = range(frame.occupied), range(frame.occupied, frame.count)
        parts.append((Block(name, tuple(occupied)), Block(name, tuple(virtual))))
    pairs = [(p, q) for own in parts for p, q in product(own, own)]
    blocks = [(*one, *two) for one, two in product(pairs, pairs)]
    apart, together = reference.integrals(), reference.integrals()
    together.transform_for(blocks, TransformOptions())
    assert together._pairs
    for block in blocks:
        np.testing.assert_allclose(together.chemist(*block), apart.chemist(*block), atol=1e-12)
    together.forget()
    together.forget_pairs()
    assert not together._pairs


def test_packed_integrals_are_cut_without_a_dense_array(fields: dict[str, Any]) -> None:
    reference = read_mean_field(fields["RHF"])
    frame = reference.frames[SPATIAL]
    virtual = Block(SPATIAL, tuple(range(frame.occupied, frame.count)))
    occupied = Block(SPATIAL, tuple(range(frame.occupied)))
    integrals = reference.integrals()
    v, o = Space("v"), Space("o")
    both = Tensor("g", (v,) * 4, Role.INPUT, storage=Storage(packed=(Packing(0), Packing(2))))
    mixed = Tensor("g", (o, v, v, v), Role.INPUT, storage=Storage(packed=(Packing(2),)))
    cases = ((both, (virtual,) * 4), (mixed, (occupied, virtual, virtual, virtual)))
    for tensor, blocks in cases:
        alone = integrals.stored(tensor, blocks)
        assert (alone is None) == (tensor is mixed)
        if alone is not None:
            expected = pack(tensor, integrals.chemist(*blocks))
            np.testing.assert_allclose(alone, expected, atol=1e-12)
    pairs = list(product((occupied, virtual), repeat=2))
    integrals.transform_for(
        [(*one, *two) for one, two in product(pairs, pairs)], TransformOptions()
    )
    for tensor, blocks in cases:
        expected = pack(tensor, integrals.chemist(*blocks))
        np.testing.assert_allclose(integrals.stored(tensor, blocks), expected, atol=1e-12)


def test_one_small_block_is_transformed_alone(fields: dict[str, Any]) -> None:
    reference = read_mean_field(fields["RHF"])
    integrals = reference.integrals()
    occupied = Block(SPATIAL, (0, 1))
    integrals.transform_for([(occupied,) * 4], TransformOptions())
    assert not integrals._pairs


@pytest.mark.parametrize("fold", [8, 4, 1])
def test_integrals_of_any_symmetry_are_transformed(fields: dict[str, Any], fold: int) -> None:
    from pyscf import ao2mo

    mean_field = fields["RHF"].copy()
    own = mean_field._eri
    expected = ao2mo.full(own, mean_field.mo_coeff)
    mean_field._eri = ao2mo.restore(fold, own, mean_field.mol.nao)
    reference = read_mean_field(mean_field)
    whole = Block(SPATIAL, tuple(range(reference.frames[SPATIAL].count)))
    integrals = reference.integrals()
    np.testing.assert_allclose(integrals.triangles(whole, whole), expected, atol=1e-12)


@pytest.mark.parametrize("counts", [(5, 7), (7, 5), (0, 3), (3, 0), (12, 1)])
def test_half_transform_of_complex_orbitals(counts: tuple[int, int]) -> None:
    draw = np.random.default_rng(1)
    n, columns = 12, 131  # three blocks, the last one of 3 columns
    left, right = (draw.normal(size=(2, n, m)) for m in counts)
    left, right = left[0] + 1j * left[1], right[0] + 1j * right[1]
    rows = draw.normal(size=(n * (n + 1) // 2, columns))
    p, q = np.indices((n, n))
    whole = rows[pair_numbers(p, q, n, real=True)]
    expected = np.einsum("pi,pqx,qj->ijx", left.conj(), whole, right)
    parts = (rows[:, k] for k in blocks_of_columns(columns))
    found = half_transformed(parts, columns, left, right, triangle=False)
    np.testing.assert_allclose(found, expected.reshape(-1, columns), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_rounding_does_not_order_degenerate_spin_orbitals(seed: int) -> None:
    """Amplitudes of one call are those of the next, whose Fock matrix was rounded otherwise."""
    gto, scf = pytest.importorskip("pyscf.gto"), pytest.importorskip("pyscf.scf")
    mol = gto.M(atom="Be 0 0 0; H 0 0 1.3426", basis="sto-3g", spin=1, verbose=0)
    mf = scf.UHF(mol).run(conv_tol=1e-12)
    fock = np.asarray(mf.get_fock())
    wanted = read_mean_field(mf, None).frames["g"]
    noise = 1e-14 * np.random.default_rng(seed).standard_normal(fock.shape)
    mf.get_fock = lambda *args, **kwargs: fock + noise + noise.swapaxes(1, 2)
    found = read_mean_field(mf, None).frames["g"]
    for name in ("a", "b"):
        np.testing.assert_array_equal(found.parts[name].places, wanted.parts[name].places)
    assert np.any(found.fock != wanted.fock)
