"""Integrals over orbitals in place of a mean field: the same energies, and errors."""

from __future__ import annotations

import json
import warnings
from contextlib import suppress
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.command_line import invoke
from support.messages import mentions, says
from tcgen.chem import hamiltonian

solve = partial(tcgen.chem.solve, target="numpy", optimize=False, show=False)
CLOSED = "space o occupied\nspace v virtual\nindex i j k : o\nindex a b c : v\n"
# MP2 by iteration over spin orbitals, with all of the Fock matrix but f_ov; its energy from t2.
MP2 = (
    CLOSED
    + """
input f_oo[o,o], f_vv[v,v], v_oovv[o,o,v,v] antisymmetric (0,1) (2,3)
input t2[o,o,v,v] antisymmetric (0,1) (2,3)
output e, r2
e = 1/4*v_oovv[i,j,a,b]*t2[i,j,a,b]
r2[i,j,a,b] = v_oovv[i,j,a,b] + P(a,b) f_vv[b,c]*t2[i,j,a,c] - P(i,j) f_oo[k,j]*t2[i,k,a,b]
"""
)
ENERGY = (
    CLOSED
    + """
input v_oovv[o,o,v,v], t2[o,o,v,v] antisymmetric (0,1) (2,3)
output e
e = 1/4*v_oovv[i,j,a,b]*t2[i,j,a,b]
"""
)
SINGLES = (
    CLOSED
    + """
input f_ov[o,v], e_o[o], e_v[v], v_oovv[o,o,v,v] antisymmetric (0,1) (2,3)
output e
e = f_ov[i,a]*f_ov[i,a]/(e_o[i] - e_v[a]) + v_oovv[i,j,a,b]*v_oovv[i,j,a,b]
"""
)
BY_SPIN = """
space oa occupied
space va virtual
space ob occupied
space vb virtual
index i : oa
index a : va
index J : ob
index B : vb
input g[oa,va,ob,vb], fa[oa,va], fb[ob,vb], eoa[oa], eva[va], eob[ob], evb[vb]
output e, e1
e = g[i,a,J,B]*g[i,a,J,B]/(eoa[i] + eob[J] - eva[a] - evb[B])
e1 = fa[i,a]*fa[i,a] + fb[J,B]*fb[J,B]
"""
CANONICAL = "ignore:the orbitals of .* are not canonical:RuntimeWarning"


def over_orbitals(mf: Any) -> dict[str, Any]:
    """The integrals of a mean field, as keywords of ``hamiltonian``."""
    from pyscf import ao2mo

    core, whole = mf.get_hcore(), {"core": mf.mol.energy_nuc(), "nelec": mf.mol.nelec}
    c = np.asarray(mf.mo_coeff)
    eri = mf.mol.intor("int2e")
    if c.ndim == 3:
        pairs = ((0, 0), (0, 1), (1, 1))
        blocks = [ao2mo.general(eri, (c[x], c[x], c[y], c[y])) for x, y in pairs]
        return whole | {"h": [one.T @ core @ one for one in c], "eri": blocks}
    if len(c) > mf.mol.nao:
        parts = np.split(c, 2)
        densities = sum(np.einsum("mp,nq->pqmn", part, part) for part in parts)
        whole |= {"spin_orbitals": True, "h": c.T @ core @ c}
        whole |= {"eri": np.einsum("pqmn,mnkl,rskl->pqrs", densities, eri, densities)}
        return whole
    return whole | {"h": c.T @ core @ c, "eri": ao2mo.full(eri, c)}


@pytest.fixture(scope="module")
def fields(blocks: Any) -> dict[str, Any]:
    from pyscf import scf

    lih = blocks.mean_field(blocks.molecule("Li 0 0 0; H 0 0 1.5957", "sto-3g"))
    beh = blocks.molecule("Be 0 0 0; H 0 0 1.3426", "sto-3g", spin=1)
    radical = blocks.mean_field(beh, "UHF")
    return {
        "RHF": lih,
        "UHF": radical,
        "ROHF": blocks.mean_field(beh, "ROHF"),
        "GHF": scf.addons.convert_to_ghf(radical),
    }


@pytest.mark.parametrize(
    ("kind", "spec", "frozen"),
    [
        ("RHF", "mp2_closed_shell", [0, 5]),
        ("RHF", BY_SPIN, 1),
        ("UHF", BY_SPIN, 1),
        ("UHF", "mp2_spin_orbital", [[0], [0, 5]]),
        ("ROHF", SINGLES, 1),
        ("GHF", "mp2_spin_orbital", 2),
        pytest.param("RHF", "ccsd_closed_shell", 1, marks=pytest.mark.slow),
        pytest.param("UHF", "uccsd", 0, marks=pytest.mark.slow),
        pytest.param("ROHF", "ccsd_spin_orbital", 0, marks=pytest.mark.slow),
        pytest.param("GHF", "ccsd_spin_orbital", 0, marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings(CANONICAL)
def test_energies_are_those_of_the_mean_field(
    kind: str, spec: str, frozen: Any, fields: dict[str, Any]
) -> None:
    held = hamiltonian(**over_orbitals(fields[kind]))
    assert held.kind == kind
    found, expected = (solve(spec, one, frozen=frozen) for one in (held, fields[kind]))
    assert found.e_hf == pytest.approx(expected.e_hf, abs=1e-9)
    assert found.energies == pytest.approx(expected.energies, abs=1e-8)


def test_three_index_integrals(fields: dict[str, Any]) -> None:
    from pyscf import lib

    fitted = fields["RHF"].density_fit(auxbasis="def2-svp-ri").run(conv_tol=1e-12)
    c = fitted.mo_coeff
    b = c.T @ lib.unpack_tril(np.vstack([*fitted.with_df.loop()])) @ c
    h, core = c.T @ fitted.get_hcore() @ c, fitted.mol.energy_nuc()
    i, j = np.tril_indices(len(c))
    for cderi in (b, b[:, i, j]):
        held = hamiltonian(h, cderi=cderi, nelec=4, core=core)
        for spec in ("mp2_df", "mp2_closed_shell", "mp2_spin_orbital"):
            found, expected = solve(spec, held), solve(spec, fitted)
            assert found.e_corr == pytest.approx(expected.e_corr, abs=1e-9)
    both = hamiltonian([h, h], cderi=[b, b], nelec=4, core=core)
    assert solve("mp2_spin_orbital", both).e_tot == pytest.approx(found.e_tot, abs=1e-9)


def rotated(mf: Any, mixed: np.ndarray) -> Any:
    """The mean field with other orbitals of the same space."""
    other = mf.copy()
    other.mo_coeff = mf.mo_coeff @ np.linalg.qr(np.eye(len(mixed)) + 0.2 * mixed)[0]
    return other


def test_rotations_among_occupied_and_among_virtual_orbitals(fields: dict[str, Any]) -> None:
    """They change no energy of equations with the whole Fock matrix."""
    rng = np.random.default_rng(2)
    among = np.zeros((6, 6))
    among[:2, :2], among[2:, 2:] = rng.random((2, 2)), rng.random((4, 4))
    with pytest.warns(RuntimeWarning, match=mentions("arrays not canonical f_ov among")):
        held = hamiltonian(**over_orbitals(rotated(fields["RHF"], among)))
    found, expected = solve(MP2, held), solve("mp2_closed_shell", fields["RHF"])
    assert found.e_tot == pytest.approx(expected.e_tot, abs=1e-8)


@pytest.mark.slow
def test_orbitals_that_are_not_canonical(fields: dict[str, Any]) -> None:
    from pyscf import cc

    other = rotated(fields["RHF"], np.random.default_rng(2).random((6, 6)))
    with pytest.warns(RuntimeWarning, match=mentions("not canonical f_ov")):
        held = hamiltonian(**over_orbitals(other))
    solver = cc.CCSD(other).run(conv_tol=1e-11, conv_tol_normt=1e-9, max_cycle=200)
    found = solve("ccsd_closed_shell", held, max_cycle=200)
    assert found.e_corr == pytest.approx(solver.e_corr, abs=1e-8)


def test_the_core_hamiltonian_holds_frozen_orbitals(fields: dict[str, Any]) -> None:
    """With h and integrals, the energy of the determinant is that of all electrons."""
    spec = CLOSED + (
        "input h[o,o] from hcore, g[o,o,o,o] from eri(chemist)\noutput e\n"
        "e = 2*h[i,i] + 2*g[i,i,j,j] - g[i,j,i,j]\n"
    )
    from pyscf import ao2mo, mcscf

    mf = fields["RHF"]
    effective, core = mcscf.CASCI(mf, 5, 2).get_h1eff()
    pairs = ao2mo.restore(1, ao2mo.full(mf.mol, mf.mo_coeff[:, 1:]), 5)
    alone = hamiltonian(effective, pairs, 2, core=core)
    assert alone.e_hf == pytest.approx(mf.e_tot, abs=1e-9)
    for one, frozen in ((mf, 1), (hamiltonian(**over_orbitals(mf), frozen=1), 0), (alone, 0)):
        found = solve(spec, one, frozen=frozen).energies["e"]
        assert found + core == pytest.approx(mf.e_tot, abs=1e-9)


def hubbard(sites: int, repulsion: float) -> tuple[np.ndarray, np.ndarray]:
    ring = np.roll(np.eye(sites), 1, axis=0)
    levels, c = np.linalg.eigh(-(ring + ring.T))
    return np.diag(levels), repulsion * np.einsum("ip,iq,ir,is->pqrs", c, c, c, c)


def test_two_electrons_on_a_ring_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """CCSD is exact for two electrons; nothing of PySCF is needed."""
    monkeypatch.setitem(__import__("sys").modules, "pyscf", None)
    h, eri = hubbard(3, 2.0)
    n = len(h)
    exact = np.kron(h, np.eye(n)) + np.kron(np.eye(n), h)
    exact += eri.transpose(0, 2, 1, 3).reshape(n * n, n * n)
    found = solve("ccsd_closed_shell", hamiltonian(h, eri, 2, origin="ring"))
    assert found.e_tot == pytest.approx(np.linalg.eigvalsh(exact)[0], abs=1e-8)
    assert found.integrals == "ring"
    assert "ring" in repr(hamiltonian(h, eri, 2, origin="ring"))


def test_integrals_in_files_are_read_in_slices(fields: dict[str, Any]) -> None:
    keywords = over_orbitals(fields["RHF"])
    found = solve("mp2_closed_shell", hamiltonian(**keywords, memory=500))
    expected = solve("mp2_closed_shell", hamiltonian(**keywords))
    assert found.e_corr == pytest.approx(expected.e_corr, abs=1e-12)


def test_amplitudes_of_another_reference_are_refused(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    keywords = over_orbitals(fields["RHF"])
    held = hamiltonian(**keywords)
    found = solve(MP2, held)
    path = found.save(tmp_path / "lih.npz")
    again = solve(ENERGY, held, amplitudes=path).energies["e"]
    assert again == pytest.approx(found.e_corr, abs=1e-12)
    assert tcgen.chem.load(path).integrals == "arrays"
    flip = np.diag([1.0, -1, 1, 1, 1, 1])
    turned = np.asarray(fields["RHF"].mo_coeff) @ flip
    other = fields["RHF"].copy()
    other.mo_coeff = turned
    with pytest.raises(tcgen.ArgumentError, match=mentions("t2 another reference signs")):
        solve(ENERGY, hamiltonian(**over_orbitals(other)), amplitudes=path)
    with pytest.raises(tcgen.ArgumentError, match=mentions("another reference atoms")):
        solve(ENERGY, held, amplitudes=solve(MP2, fields["RHF"]))


H, ERI = hubbard(4, 1.0)
BROKEN = ERI + np.arange(256.0).reshape(4, 4, 4, 4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"nelec": None}, "nelec None 4 orbitals"),
        ({"nelec": 9}, "nelec 9 4 orbitals"),
        ({"nelec": 3, "spin": 0}, "nelec 3 spin 0"),
        ({"nelec": 2.5}, "nelec 2.5"),
        ({"nelec": "four"}, "nelec four"),
        ({"h": None}, "h numbers"),
        ({"h": "file"}, "h numbers"),
        ({"eri": [ERI, ERI[:3]]}, "eri numbers"),
        ({"occupied": 3}, "occupied 3"),
        ({"occupied": [0.5, 1]}, "occupied 0.5"),
        ({"nelec": (1, 2), "spin": 1}, "nelec (1, 2) spin 1"),
        ({"nelec": (1, 2)}, "beta alpha exchange"),
        ({"nelec": 5, "spin_orbitals": True}, "nelec 5 4 spin orbitals"),
        ({"occupied": [0, 4]}, "occupied 3"),
        ({"occupied": [0]}, "occupied 2 orbitals"),
        ({"orbital_energies": [1.0, 2.0]}, "orbital_energies (2,) 4"),
        ({"orbital_energies": [np.nan, 1.0, 2.0, 3.0]}, "orbital_energies finite occupied"),
        ({"orbital_energies": [1j, 1.0, 2.0, 3.0]}, "orbital_energies real occupied"),
        ({"irreps": [1]}, "irreps 1 4"),
        ({"irreps": 3}, "irreps=3 integer text 4"),
        ({"irreps": "A1B1"}, "irreps='A1B1' integer text 4"),
        ({"irreps": [1, 1, 1, 1.5]}, "irreps integer text 4"),
        ({"isym": "A1"}, "isym='A1' integer"),
        ({"h": [H, H], "eri": 3.0}, "three arrays 1"),
        ({"h": [H, H], "eri": None, "cderi": 3.0}, "two arrays 1"),
        ({"eri": None}, "eri cderi"),
        ({"cderi": ERI}, "eri cderi"),
        ({"eri": ERI[:3]}, "eri (3, 4, 4, 4) (10, 10)"),
        ({"eri": BROKEN}, "(pq|rs) <pq|rs> transpose"),
        ({"eri": np.arange(100.0).reshape(10, 10)}, "(rs|pq)"),
        ({"h": H + np.tri(4)}, "h deviates"),
        ({"h": H[:3]}, "h (3, 4)"),
        ({"h": [H, H]}, "three arrays"),
        ({"h": [H] * 3}, "h one two"),
        ({"eri": None, "cderi": np.ones((2, 3, 3))}, "cderi 4 10 pairs"),
        ({"eri": None, "cderi": np.arange(16.0).reshape(1, 4, 4)}, "cderi deviates"),
        ({"core": 1j}, "core one real number"),
        ({"core": [1.0, 2.0]}, "core one real number"),
        ({"core": np.nan}, "core one real number"),
        ({"spin": 0.5}, "spin=0.5 unpaired"),
        ({"spin": "a"}, "spin='a' unpaired"),
        ({"h": 1.0}, "h shape n x n"),
    ],
)
def test_what_does_not_fit(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(tcgen.TcgenError, match=mentions(words)):
        hamiltonian(**{"h": H, "eri": ERI, "nelec": 4} | arguments)


@pytest.mark.parametrize("name", [n for n in signature(hamiltonian).parameters if n != "origin"])
@pytest.mark.parametrize("several", [False, True])
def test_any_value_is_taken_or_refused_by_name(name: str, several: bool) -> None:
    h, eri = ([H, H], [ERI, ERI, ERI]) if several else (H, ERI)
    values = ("x", b"x", 3.5, np.nan, 1j, -1, object(), {"a": 1}, [[1, 2], [3]], [None], [[]])
    for value in values:
        given = {"h": h, "eri": eri, "nelec": 4} | {name: value}
        with warnings.catch_warnings(), suppress(tcgen.TcgenError):
            warnings.simplefilter("ignore")
            hamiltonian(**given).reference()


def test_what_equations_ask_for_and_there_is_not() -> None:
    held = hamiltonian(*hubbard(6, 1.0), 6)
    axis = "space z = 3\nindex p : z\n"
    dipole = f"{axis}input d[z,o,o] from dipole\noutput e\ne = d[p,i,j]*d[p,i,j]\n"
    for spec, keywords, words in (
        ("mp2_df", {}, "without a basis set three-index cderi"),
        (CLOSED + dipole, {}, "dipole integrals arrays inputs="),
        ("mp2_closed_shell", {"auxbasis": "weigend"}, "auxbasis weigend"),
        ("mp2_closed_shell", {"frozen": [7]}, "frozen 7 6 orbitals RHF"),
        ("mp2_closed_shell", {"frozen": 4}, "frozen 4 occupied list"),
        ("mp2_closed_shell", {"frozen": 3}, "frozen occupied"),
    ):
        with pytest.raises(tcgen.ArgumentError, match=mentions(words)):
            solve(spec, held, **keywords)


def test_the_occupied_orbitals(fields: dict[str, Any]) -> None:
    """They are the lowest of orbital energies, or named; a warning names others that are lower."""
    keywords = over_orbitals(fields["RHF"])
    order = [5, 0, 2, 1, 4, 3]
    from pyscf import ao2mo

    moved = keywords | {
        "h": keywords["h"][np.ix_(order, order)],
        "eri": ao2mo.restore(1, keywords["eri"], 6)[np.ix_(order, order, order, order)],
    }
    expected = solve("mp2_closed_shell", fields["RHF"])
    levels = fields["RHF"].mo_energy[order]
    for chosen in ({"orbital_energies": levels}, {"occupied": [1, 3]}):
        held = hamiltonian(**moved | chosen)
        assert solve("mp2_closed_shell", held).e_tot == pytest.approx(expected.e_tot, abs=1e-8)
    with pytest.warns(RuntimeWarning) as caught:
        hamiltonian(**moved)
    assert any("occupied=[1, 3]" in str(w.message) for w in caught)


def energy_of(h: Any, eri: Any, alpha: list[int], beta: list[int]) -> float:
    """The energy of a determinant, by the rules of Slater and Condon."""
    both = [(p, 0) for p in alpha] + [(p, 1) for p in beta]
    energy = sum(h[p, p] for p, _ in both)
    for p, x in both:
        for q, y in both:
            energy += (eri[p, p, q, q] - (x == y) * eri[p, q, q, p]) / 2
    return float(energy)


@pytest.mark.parametrize("kind", ["RHF", "ROHF", "UHF", "GHF"])
@pytest.mark.parametrize("alpha", [[0, 1], [2, 0], [3, 1]])
@pytest.mark.parametrize("beta", [[0, 1], [0, 2], [1, 3], [0], [1], []])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_determinant_is_that_of_the_occupied_orbitals(
    kind: str, alpha: list[int], beta: list[int]
) -> None:
    """One list for all spins, or one for each, is that determinant or refused."""
    n = 4
    rng = np.random.default_rng(3)
    h, b = rng.random((n, n)), rng.random((3, n, n))
    h, b = h + h.T, b + b.transpose(0, 2, 1)
    eri = np.einsum("xpq,xrs->pqrs", b, b)
    energy = partial(energy_of, h, eri)
    arrays: dict[str, Any] = {"h": h, "eri": eri}
    if kind == "UHF":
        arrays = {"h": [h, h], "eri": [eri] * 3}
    if kind == "GHF":
        held = hamiltonian(**arrays, nelec=2, spin_orbitals=True, occupied=alpha)
        assert held.e_hf == pytest.approx(energy(alpha, []))
        with pytest.raises(tcgen.ArgumentError, match="occupied="):
            hamiltonian(**arrays, nelec=2, spin_orbitals=True, occupied=[alpha, beta])
        return
    arrays["nelec"] = (len(alpha), len(beta))
    if {*alpha} == {*beta}:
        assert hamiltonian(**arrays, occupied=alpha).e_hf == pytest.approx(energy(alpha, beta))
    for given in ([alpha, beta], (alpha, np.array(beta, dtype=int)), [range(4), beta]):
        own = {*given[0]} == {*alpha}
        if own and (kind == "UHF" or {*beta} <= {*alpha}):
            held = hamiltonian(**arrays, occupied=given)
            assert held.e_hf == pytest.approx(energy(alpha, beta))
        else:
            with pytest.raises(tcgen.ArgumentError, match=mentions("alpha" if own else "occupied")):
                hamiltonian(**arrays, occupied=given)


# The command line.


def run(*options: object) -> Any:
    return invoke("solve", "mp2_closed_shell", *options, "--target", "numpy", "--no-optimize")


@pytest.mark.parametrize("ending", ["npz", "h5"])
def test_integrals_by_name_in_a_file(ending: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    h, eri = hubbard(6, 1.0)
    arrays = {"h": h, "eri": eri, "nelec": 6, "core": 1.5, "irreps": np.ones(6, int)}
    path = tmp_path / f"ring.{ending}"

    def save(**more: Any) -> None:
        if ending == "npz":
            np.savez(path, **arrays | more)
        else:
            with h5py.File(path, "w") as file:
                for name, array in (arrays | more).items():
                    file[name] = array

    save()
    result = run("--integrals", path, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    held = hamiltonian(h, eri, 6, core=1.5)
    assert found["e_tot"] == pytest.approx(solve("mp2_closed_shell", held).e_tot, abs=1e-10)
    assert found["integrals"] == path.name
    result = run("--integrals", path, "--occupied", "0-1,2", "--json")
    assert json.loads(result.stdout)["e_tot"] == pytest.approx(found["e_tot"], abs=1e-10)
    for options, words in (
        (("--integrals", path, "--basis", "sto-3g"), "--integrals --basis"),
        (("--integrals", path, "--fcidump", path), "--fcidump --integrals"),
        (("--integrals", path, "--df"), "--integrals --df"),
        (("--integrals", path, "--occupied", "one"), "one 0-4,6"),
        (("--integrals", path, "--occupied", "0,1"), "occupied 3 orbitals"),
        (("--integrals", path, "--spin", 1), "nelec 6 spin 1"),
        (("--xyz", path, "--occupied", "0,1"), "--occupied --fcidump"),
        ((), "--atom --xyz --fcidump --trexio --integrals"),
    ):
        result = run(*options)
        assert result.exit_code == 2
        assert says(result.stderr, words)
    save(other=1)
    assert says(run("--integrals", path).stderr, "other eri cderi")


def test_files_of_other_programs(tmp_path: Path) -> None:
    h, eri = hubbard(6, 1.0)
    path = tmp_path / "FCIDUMP"
    tcgen.chem.write_fcidump(path, hamiltonian(h, eri, 6))
    result = run("--fcidump", path, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["integrals"] == "FCIDUMP FCIDUMP"
    assert found["e_tot"] == pytest.approx(solve("mp2_closed_shell", hamiltonian(h, eri, 6)).e_tot)
    assert run("--trexio", path).exit_code in (2, 3)  # no TREXIO file, or no package
    turned = np.linalg.qr(np.eye(6) + 0.01 * np.random.default_rng(1).random((6, 6)))[0]
    eri = np.einsum("pqrs,pa,qb,rc,sd->abcd", eri, *[turned] * 4, optimize=True)
    with pytest.warns(RuntimeWarning, match=mentions("arrays not canonical")):
        tcgen.chem.write_fcidump(path, hamiltonian(turned.T @ h @ turned, eri, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert says(run("--fcidump", path).stderr, "warning FCIDUMP not canonical f_ov")
