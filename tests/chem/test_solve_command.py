"""``tcgen solve``: energies, JSON, files of amplitudes, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import tcgen
from support.command_line import invoke
from support.messages import says
from tcgen.chem.molecule import _refuse_missing_ecp, run_mean_field

pytest.importorskip("pyscf")

LIH = ("--atom", "Li 0 0 0; H 0 0 1.5957", "--basis", "sto-3g")
BEH = ("--atom", "Be 0 0 0; H 0 0 1.3426", "--basis", "sto-3g", "--spin", "1")
# Correlation energies of LiH, in Hartree.
E_MP2, E_CCSD, E_T = -0.012870135774, -0.020378926447, -0.000008395641


def solve(spec: object, *options: object) -> Result:
    return invoke("solve", spec, *options, "--target", "numpy", "--no-optimize")


def solved(spec: object, *options: object) -> dict[str, Any]:
    result = solve(spec, *options, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_shipped_spec_by_name() -> None:
    result = solve("mp2_closed_shell", *LIH)
    assert result.exit_code == 0, result.stderr
    energy = re.search(r"^E\(corr\) += +(\S+)$", result.stdout, re.MULTILINE)
    assert energy is not None
    assert abs(float(energy[1]) - E_MP2) < 1e-8
    assert "E(total)" in result.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-e", "v=7"), "v=7 4 leave it out"),
        (("--charge", "9"), "--charge 9 electrons atoms have, 4"),
        (("--occupied", "3-1"), "'3-1' list of orbitals 0-4,6"),
        (("--occupied", "0-99999999999"), "list of orbitals 0-4,6"),
        (("--occupied", "9" * 5000), "list of orbitals 0-4,6"),
    ],
)
def test_numbers_that_do_not_fit_the_molecule(options: tuple[str, ...], words: str) -> None:
    result = solve("ccsd_closed_shell", *LIH, *options)
    assert result.exit_code == 2, result.exception
    assert says(result.stderr, words)
    assert len(result.stderr) < 500


def test_a_checkpoint_of_several_specs(tmp_path: Path) -> None:
    """Each has a file of its own; energies and roots without iterations have none."""
    names = ("ccsd_closed_shell", "dcsd_closed_shell", "eom_ee_ccsd_closed_shell")
    command = (names[0], *LIH, "--checkpoint", tmp_path / "job.h5")
    solved(*command)
    for _ in range(2):
        result = solve(names[0], *names[1:2], "mp2_closed_shell", *command[1:], "--json")
        assert result.exit_code == 0, result.stderr
        energies = [record["e_corr"] for record in json.loads(result.stdout)["solutions"]]
        np.testing.assert_allclose([energies[0], energies[2]], [E_CCSD, E_MP2], rtol=0, atol=1e-8)
        files = {path.name for path in tmp_path.iterdir()}
        assert files == {"job.h5", *(f"job_{name}.h5" for name in names[:2])}
    assert len([row for row in result.stderr.splitlines() if row.split()[0].isdigit()]) == 2
    more = ("--amplitudes", tmp_path / "lih.npz")
    roots = solve(names[0], names[2], *command[1:], *more, "--json")
    assert roots.exit_code == 0, roots.stderr
    assert json.loads(roots.stdout)["solutions"][1]["roots"]


def test_several_specs_in_one_command(tmp_path: Path) -> None:
    names = ("ccsd_closed_shell", "t_closed_shell")
    file = tmp_path / "lih.npz"
    for more in ((), ("--amplitudes", file)):
        result = solve(*names, *LIH, "--json", *more)
        assert result.exit_code == 0, result.stderr
        ccsd, triples = json.loads(result.stdout)["solutions"]
        assert abs(ccsd["e_corr"] - E_CCSD) < 1e-8
        assert abs(triples["energies"]["e_t"] - E_T) < 1e-8
        assert [line.split()[0] for line in result.stderr.splitlines() if " on RHF" in line] == [
            *names
        ]
    assert [s.name for s in tcgen.chem.result.load_all(file)] == [*reversed(names)]
    assert [path.name for path in tmp_path.iterdir()] == ["lih.npz"]


@pytest.mark.parametrize(("follow", "held"), [((), False), (("--states", "1"), True)])
def test_the_command_releases_its_integrals(
    follow: tuple[str, ...], held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = []

    def kept(**keywords: Any) -> Any:
        fields.append(run_mean_field(**keywords))
        return fields[0]

    monkeypatch.setattr("tcgen.chem.molecule.run_mean_field", kept)
    solved("ccsd_closed_shell" if follow else "mp2_closed_shell", *LIH, *follow)
    assert (fields[0]._eri is not None) == held


def test_several_specs_end_with_one_that_does_not_converge() -> None:
    result = solve("ccsd_closed_shell", "t_closed_shell", *LIH, "--max-cycle", 2)
    assert result.exit_code == 1
    assert "ccsd_closed_shell is not converged" in result.stderr
    assert "t_closed_shell on" not in result.stdout


def test_roles_belong_to_one_of_several_specs() -> None:
    names = ("mp2_closed_shell", "ccsd_closed_shell")
    assert solve(*names, *LIH, "--role", "r1=residual of t1").exit_code == 0
    assert "--role r9" in solve(*names, *LIH, "--role", "r9=residual of t1").stderr


def test_json_keeps_the_contract(tmp_path: Path) -> None:
    amplitudes = tmp_path / "lih.npz"
    result = solve("ccsd_closed_shell", *LIH, "--json", "--amplitudes", amplitudes)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    keys = (
        "schema name reference converged e_hf e_corr e_tot energies roots integrals symmetry "
        "iterations residual_norms seconds timings work states"
    )
    assert set(found) == set(keys.split())
    assert found["converged"] is True
    assert found["reference"] == "RHF"
    assert found["integrals"] == "PySCF, sto-3g, 2 atoms"
    assert list(found["timings"]) == ["planning", "integrals", "compiling", "iterations"]
    assert 0 < sum(found["timings"].values()) <= found["seconds"]
    assert found["work"]["planning"] == {"calls": 1}
    assert found["work"]["iterations"]["calls"] == found["iterations"]
    # v_vvvv in triangles, and v_ovvv as it is
    assert found["work"]["integrals"]["bytes"] > 8 * (100 + 128)
    assert abs(found["e_corr"] - E_CCSD) < 1e-8
    assert abs(found["e_hf"] + found["e_corr"] - found["e_tot"]) < 1e-12
    assert max(found["residual_norms"].values()) <= 1e-9
    assert "cycle" in result.stderr

    result = solve("ccsd_closed_shell", *LIH, "--amplitudes", amplitudes, "--timings", "--json")
    again = json.loads(result.stdout)
    assert again["iterations"] == 1
    assert re.search(r"^integrals +\d+\.\d\d +\d+ +[\d,]+$", result.stderr, re.M)
    triples = solved("t_closed_shell", *LIH, "--amplitudes", amplitudes)
    assert abs(triples["energies"]["e_t"] - E_T) < 1e-8
    assert triples["e_corr"] is None
    assert sorted(tcgen.chem.load(amplitudes).amplitudes) == ["t1", "t2"]
    # The step that only reads amplitudes has not replaced the solution of CCSD.
    assert tcgen.chem.load(amplitudes).e_corr == again["e_corr"]
    energies = tcgen.chem.load(amplitudes, "t_closed_shell").energies
    assert energies == triples["energies"]
    with pytest.raises(tcgen.ArgumentError, match="mp9"):
        tcgen.chem.load(amplitudes, "mp9")


def test_amplitudes_of_one_of_several_solutions(tmp_path: Path) -> None:
    file = ("--amplitudes", tmp_path / "lih.npz")
    solved("ccsd_closed_shell", *LIH, *file)
    solved("dcsd_closed_shell", *LIH, *file)
    result = solve("t_closed_shell", *LIH, *file)
    assert result.exit_code == 2
    assert says(result.stderr, "t1 t2 ccsd_closed_shell dcsd_closed_shell --amplitudes-of")
    chosen = ("--amplitudes-of", "ccsd_closed_shell")
    triples = solved("t_closed_shell", *LIH, *file, *chosen)
    assert abs(triples["energies"]["e_t"] - E_T) < 1e-8
    for options, words in (((*file, chosen[0], "mp9"), "mp9"), (chosen, "--amplitudes FILE")):
        result = solve("t_closed_shell", *LIH, *options)
        assert result.exit_code == 2
        assert says(result.stderr, words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--atom", "Li 0 0 0; H 0 0 1.7", *LIH[2:]), "other atoms"),
        ((*LIH[:2], "--basis", "sto-6g"), "other basis"),
        ((*LIH, "--frozen", 1), "frozen"),
    ],
)
def test_amplitudes_of_another_reference(
    options: tuple[object, ...], words: str, tmp_path: Path
) -> None:
    file = tmp_path / "lih.npz"
    solved("ccsd_closed_shell", *LIH, "--amplitudes", file)
    before = file.read_bytes()
    result = solve("t_closed_shell", *options, "--amplitudes", file)
    assert result.exit_code == 2
    assert says(result.stderr, f"t1 t2 ccsd_closed_shell {words}"), result.stderr
    assert file.read_bytes() == before
    # They may start an iteration, which does not depend on its start.
    if "--frozen" not in options:
        found = solved("ccsd_closed_shell", *options, "--amplitudes", file)
        assert found["converged"]


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_given_amplitudes_that_are_not_converged(tmp_path: Path) -> None:
    file = tmp_path / "lih.npz"
    first = solve("ccsd_closed_shell", *LIH, "--max-cycle", 2, "--amplitudes", file)
    assert first.exit_code == 1
    assert "warning" not in first.stderr
    second = solve("t_closed_shell", *LIH, "--amplitudes", file)
    assert second.exit_code == 0
    assert says(second.stderr, "warning t1 t2 ccsd_closed_shell converged")


def test_a_basis_for_effective_core_potentials() -> None:
    iodide = ("--atom", "I 0 0 0", "--charge", "-1", "--basis", "def2-svp", "--frozen", 10)
    result = solve("mp2_closed_shell", *iodide)
    assert result.exit_code == 2
    assert says(result.stderr, "def2-svp I --ecp")
    found = solved("mp2_closed_shell", *iodide, "--ecp", "def2-svp")
    assert -298 < found["e_hf"] < -296


@pytest.mark.parametrize(
    ("atom", "basis", "potential"),
    [
        ("C", "bfd-vdz", "bfd"),
        ("H", "bfd-vdz", "bfd"),
        ("C", "ccecp-aug-cc-pVTZ", "ccecp"),
        ("Cl", "ccECP_He_cc-pvdz", "ccecphe"),
        ("Au", "aug-cc-pvdz-pp", "ccpvdzpp"),
        ("Cu", "cc-pwcvdz-pp", None),
        ("I", "def2-mtzvpp", None),
        ("F", "gth-dzvp", None),
        ("H", "GTH-SZV", None),
        ("F", "cc-pvdz", ""),
        ("Au", "ano-rcc", ""),
        ("Li", "sto-3g", ""),
        ("Cu", "def2-svp", ""),
        ("Ghost-I", "def2-svp", ""),
    ],
)
def test_the_potential_of_a_basis(atom: str, basis: str, potential: str | None) -> None:
    """It is found by its name, or where the basis has no core orbitals."""
    from pyscf import gto

    mol = gto.M(atom=f"{atom} 0 0 0", basis=basis, spin=None, verbose=0)
    if potential == "":
        _refuse_missing_ecp(mol, basis)
        return
    with pytest.raises(tcgen.ArgumentError) as caught:
        _refuse_missing_ecp(mol, basis)
    words = f"--ecp {potential}" if potential else "all electrons --ecp tcgen.chem.solve"
    assert says(str(caught.value), f"{basis} {words}")
    if potential:
        mol = gto.M(atom=f"{atom} 0 0 0", basis=basis, ecp=potential, spin=None, verbose=0)
        _refuse_missing_ecp(mol, basis)


@pytest.mark.parametrize("reference", ["rhf", "uhf", "rohf", "ghf"])
def test_references(reference: str) -> None:
    found = solved("mp2_spin_orbital", *LIH, "--reference", reference)
    assert found["reference"] == reference.upper()
    assert abs(found["e_corr"] - E_MP2) < 1e-8


def test_an_open_shell_gets_a_uhf_reference(blocks: Any) -> None:
    from pyscf import mp

    reference = blocks.mean_field(blocks.molecule(BEH[1], "sto-3g", spin=1), "UHF")
    for frozen in (0, 1):
        found = solved("mp2_spin_orbital", *BEH, "--frozen", frozen)
        assert found["reference"] == "UHF"
        expected = mp.UMP2(reference, frozen=frozen or None).kernel()[0]
        assert abs(found["e_corr"] - expected) < 1e-8
        general = solved("mp2_spin_orbital", *BEH, "--frozen", frozen, "--reference", "ghf")
        assert abs(general["e_corr"] - expected) < 1e-8


def test_a_file_of_atoms_charge_and_density_fitting(tmp_path: Path) -> None:
    atoms = tmp_path / "lih.xyz"
    atoms.write_text("2\nlithium hydride\nLi 0 0 0\nH 0 0 1.5957\n")
    common = ("--xyz", atoms, "--basis", "sto-3g")
    assert abs(solved("mp2_closed_shell", *common)["e_corr"] - E_MP2) < 1e-8
    fitted = solved("mp2_df", *common, "--df", "--auxbasis", "weigend")
    whole = solved("mp2_closed_shell", *common, "--df", "--auxbasis", "weigend")
    assert abs(fitted["e_corr"] - whole["e_corr"]) < 1e-10
    assert abs(fitted["e_corr"] - E_MP2) < 1e-4
    charged = solved("mp2_spin_orbital", *common, "--charge", "1", "--spin", "1")
    assert charged["e_hf"] > -7.862


def test_roles_and_other_inputs(tmp_path: Path) -> None:
    spec = tmp_path / "own.spec"
    spec.write_text(
        "space o\nspace v\nindex i j : o\nindex a b : v\n"
        "input w[o,v,o,v], e_o[o], e_v[v], scale\noutput mine, half\n"
        "mine = scale*(2*w[i,a,j,b] - w[i,b,j,a])*w[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])\n"
        "half = 1/2*mine\n"
    )
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, scale=1.0)
    roles = ("--role", "w=(pq|rs)", "--role", "mine=energy")
    found = solved(spec, *LIH, "--inputs", inputs, *roles)
    assert abs(found["e_corr"] - E_MP2) < 1e-8
    assert abs(found["energies"]["half"] - E_MP2 / 2) < 1e-8


def test_without_convergence_the_status_is_1() -> None:
    result = solve("ccsd_closed_shell", *LIH, "--max-cycle", 2, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["converged"] is False
    assert says(result.stderr, "error not converged --max-cycle")


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--atom", "Li 0 0 0"), 2, "electrons 3 charge 0 spin 0 (2S) odd"),
        (("--atom", "Qq 0 0 0"), 2, "QQ atoms"),
        ((*LIH[:2], "--basis", "none-such"), 2, "none-such basis"),
        (("--xyz", "absent.xyz"), 2, "absent.xyz"),
        ((*LIH, "--xyz", "absent.xyz"), 2, ".xyz atoms"),
        ((), 2, ".xyz atoms"),
        ((*LIH, "--df", "--auxbasis", "none-such"), 2, "none-such auxbasis"),
        ((*BEH, "--reference", "rhf"), 2, "RHF spin 0 1 uhf rohf ghf"),
        ((*LIH, "--frozen", 9), 2, "frozen 6 orbitals"),
        ((*LIH, "--frozen", 2), 2, "frozen 2 occupied"),
        ((*LIH, "--role", "e"), 2, "NAME=ROLE"),
        ((*LIH, "--role", "z=energy"), 2, "z mp2_df e b_ov"),
        ((*LIH, "--level-shift", -1), 2, "level_shift -1"),
        (("--atom", "H 0 0 0; H 0 0 0"), 2, "atoms 1 and 2 same place"),
        ((*LIH[:2], "--basis", ""), 2, "basis '' no functions Li H"),
        ((*LIH, "--checkpoint-every", 2), 2, "checkpoint_every=2 --checkpoint FILE"),
        ((*LIH, "--irrep", "A1"), 2, "irrep=A1 roots mp2_df none"),
        ((*LIH, "--nroots", 2), 2, "nroots=2 roots mp2_df none excited_states --states"),
        ((*LIH, "--level-shift", 0.1), 2, "level_shift=0.1 amplitudes mp2_df"),
        ((*LIH, "--damping", 0.1), 2, "damping=0.1 amplitudes mp2_df"),
        ((*LIH, "--checkpoint", "job.h5"), 2, "checkpoint=job.h5 amplitudes mp2_df"),
        *(((*LIH, *word), 2, "mp2_df no amplitudes ccsd_closed_shell")
          for word in (("--states", 2), ("--properties",), ("--polarizability",))),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Basis may be available")
def test_mistakes(options: tuple[object, ...], status: int, words: str) -> None:
    result = solve("mp2_df", *options)
    assert result.exit_code == status
    assert says(result.stderr, words), result.stderr
    assert "Traceback" not in result.stderr
    assert " on RHF" not in result.stdout, "nothing has been computed"


def test_options_that_act_on_one_of_several_specs(tmp_path: Path) -> None:
    """Each set of equations gets those that act on it; what acts on none is refused."""
    names = ("ccsd_closed_shell", "t_closed_shell", "eom_ee_ccsd_closed_shell")
    result = solve(*names, *LIH, "--nroots", 3, "--damping", 0.1, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["solutions"]
    assert [len(one["roots"]) for one in found] == [0, 0, 3]
    result = solve(*names[:2], *LIH, "--nroots", 3)
    assert result.exit_code == 2
    assert says(result.stderr, "nroots=3 ccsd_closed_shell, t_closed_shell none")
    file = tmp_path / "FCIDUMP"
    file.write_text("")
    result = solve(names[0], "--fcidump", file, "--polarizability")
    assert result.exit_code == 2
    assert says(result.stderr, "--polarizability coordinates --fcidump --atom")
    result = solve(names[0], *LIH, "--states", 2, "--dtype", "complex128")
    assert result.exit_code == 2
    assert says(result.stderr, "complex128 float64")
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("some words\nmore of them\n", "line 1 'some words' not a number of atoms"),
        ("", "line 1 '' not a number"),
        (" &FCI NORB= 6,NELEC= 4\n", "FCIDUMP --fcidump read_fcidump"),
        ("2\n\nLi 0 0 0\n", "line 1 is 2, comment 1"),
        ("1\n\nHe 0 0 0\nHe 0 0 3\n", "line 1 is 1, comment 2"),
        ("2\n\nLi 0 0 0\nH 0 0\n", "line 4 'H 0 0' not an atom"),
        ("2\n\nLi 0 0 0\nH 0 0 nan\n", "line 4 'H 0 0 nan'"),
        ("2\n\nLi 0 0 0\nQq 0 0 1\n", "line 4 'Qq 0 0 1'"),
    ],
)
def test_files_that_are_no_geometry(text: str, words: str, tmp_path: Path) -> None:
    """PySCF 2.14 reads the first atoms of a longer file, and has Python's own errors for others."""
    path = tmp_path / "molecule.xyz"
    path.write_text(text)
    result = solve("mp2_df", "--xyz", path)
    assert result.exit_code == 2
    assert says(result.stderr, words), result.stderr


@pytest.mark.parametrize("kind", ["rhf", "ghf"])
def test_orbitals_of_equal_energy_are_those_of_every_run(kind: str) -> None:
    """A rotation of pi orbitals, or another sign, must not refuse amplitudes of an earlier run."""
    from tcgen.chem.molecule import _orient, run_mean_field

    mean_field = run_mean_field(atom="Li 0 0 0; H 0 0 1.6", basis="sto-3g", kind=kind)
    expected, energies = np.array(mean_field.mo_coeff), mean_field.mo_energy
    rng = np.random.default_rng(0)
    same = np.abs(energies[:, None] - energies) < 1e-6
    mixed = np.linalg.qr(np.where(same, rng.standard_normal(same.shape), 0))[0]
    mean_field.mo_coeff[...] = expected @ mixed
    assert np.abs(mean_field.mo_coeff - expected).max() > 0.1
    _orient(mean_field)
    np.testing.assert_allclose(mean_field.mo_coeff, expected, rtol=0, atol=1e-10)


WITH_GHOST = ("--atom", "Li 0 0 0; H 0 0 1.5957; ghost-H 0 0 9", "--basis", "sto-3g")
FAST = ("--target", "numpy", "--no-optimize", "--orbitals", "spatial")


def test_results_in_files(tmp_path: Path) -> None:
    """QCSchema for programs that read energies; HDF5 with all solutions, read again."""
    pytest.importorskip("pyscf")
    whole, energy = tmp_path / "lih.h5", tmp_path / "lih.json"
    assert invoke("solve", "mp2_closed_shell", *WITH_GHOST, *FAST, "-o", energy).exit_code == 0
    record = json.loads(energy.read_text())
    assert record["schema_name"] == "qcschema_output"
    assert record["molecule"]["symbols"] == ["Li", "H", "H"]
    assert record["molecule"]["real"] == [True, True, False]
    assert record["success"]
    assert record["return_result"] == record["extras"]["e_tot"]
    assert record["properties"]["scf_total_energy"] == record["extras"]["e_hf"]
    specs = ("ccsd_closed_shell", "t_closed_shell")
    refused = invoke("solve", *specs, *WITH_GHOST, "-o", energy)
    assert refused.exit_code == 2
    assert ".h5" in refused.stderr
    assert invoke("solve", *specs, *WITH_GHOST, *FAST, "-o", whole).exit_code == 0
    found = [tcgen.chem.load(whole, name) for name in specs]
    assert found[0].amplitudes["t2"].shape == (2, 2, 5, 5)
    assert found[1].energies["e_t"] < 0
    assert record["properties"]["scf_total_energy"] == pytest.approx(found[0].e_hf)
    again = invoke("solve", specs[1], *WITH_GHOST, *FAST, "--amplitudes", whole, "--json")
    assert json.loads(again.stdout)["energies"]["e_t"] == pytest.approx(found[1].energies["e_t"])
    with pytest.raises(tcgen.ArgumentError, match=r"total energy.*h5"):
        found[1].save(energy)


def test_files_that_cannot_be_written_are_refused_before_the_computation(tmp_path: Path) -> None:
    pytest.importorskip("pyscf")
    (tmp_path / "folder.h5").mkdir()
    (tmp_path / "text.npz").write_text("text")
    for option, name, words in (
        ("-o", "lih.txt", "lih.txt .h5 .npz"),
        ("-o", "lih.JSON", "lih.JSON .json"),
        ("-o", "no/lih.h5", "no/lih.h5 folder"),
        ("--amplitudes", "no/lih.npz", "no/lih.npz folder"),
        ("-o", "folder.h5", "folder.h5"),
        ("-o", "text.npz", "text.npz"),
    ):
        refused = invoke("solve", "mp2_closed_shell", *WITH_GHOST, option, tmp_path / name)
        assert refused.exit_code != 0
        assert says(refused.stderr, words), refused.stderr
        assert "E(HF)" not in refused.stdout
    assert (tmp_path / "text.npz").read_text() == "text"


def test_solutions_before_an_error_are_in_the_file(tmp_path: Path) -> None:
    """The second equations read an array that is not there."""
    pytest.importorskip("pyscf")
    path, other = tmp_path / "lih.npz", tmp_path / "other.spec"
    other.write_text("space o occupied\nindex i : o\ninput x[o]\noutput s\ns = x[i]*x[i]\n")
    stopped = invoke("solve", "mp2_closed_shell", other, *WITH_GHOST, *FAST, "-o", path)
    assert stopped.exit_code != 0
    assert tcgen.chem.load(path).energies["e"] < 0
