"""Messages of ``tcgen.chem.solve`` about references, inputs and outputs that do not fit."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions

Chemistry = Callable[[str], Any]
CLOSED = "space o occupied\nspace v virtual\nindex i j k l : o\nindex a b c d : v\n"


@pytest.fixture(scope="module")
def solve() -> Callable[..., tcgen.chem.Solution]:
    pytest.importorskip("pyscf")
    return partial(tcgen.chem.solve, target="numpy", optimize=False, show=False)


@pytest.fixture(scope="module")
def lih(chemistry: Chemistry) -> Any:
    return chemistry("lih_sto3g").reference


def test_pyscf_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyscf", None)
    with pytest.raises(tcgen.UnavailableError, match=mentions("pip install chem")):
        tcgen.chem.solve("mp2_closed_shell", object())


def test_references_that_cannot_be_read(solve: Any, lih: Any) -> None:
    from pyscf import scf

    fresh = scf.RHF(lih.mol)
    with pytest.raises(tcgen.ConvergenceError, match=mentions("RHF kernel newton max_cycle")):
        solve("mp2_closed_shell", fresh)
    with pytest.raises(tcgen.ArgumentError, match=mentions("RKS to_hf")):
        solve("mp2_closed_shell", lih.to_rks())
    with pytest.raises(tcgen.ArgumentError, match=mentions("Mole RHF ROHF UHF GHF")):
        solve("mp2_closed_shell", lih.mol)
    turned = lih.copy()
    turned.mo_coeff = lih.mo_coeff * np.exp(1j * np.arange(6))
    with pytest.raises(tcgen.ArgumentError, match=mentions("complex PySCF dtype complex128")):
        solve("mp2_closed_shell", turned)
    smeared = lih.copy()
    smeared.mo_occ = np.asarray(lih.mo_occ) * 0.9
    with pytest.raises(tcgen.ArgumentError, match=mentions("fractional")):
        solve("mp2_closed_shell", smeared)


@pytest.mark.parametrize("kind", ["RHF", "ROHF", "UHF", "GHF"])
def test_orbitals_that_are_none(kind: str, solve: Any, lih: Any) -> None:
    """They are missing, of another shape, or not orthonormal in the metric of the overlap."""
    from pyscf import scf

    whole = getattr(scf, kind)(lih.mol).run()
    for name, value, words in (
        ("mo_coeff", whole.mo_coeff * (1 + 1e-6), "not orthonormal 2.0e-06 vec_lowdin"),
        ("mo_coeff", whole.mo_coeff * np.nan, "not orthonormal nan"),
        ("mo_coeff", None, "mo_coeff kernel ()"),
        ("mo_occ", None, "mo_occ kernel ()"),
        ("mo_coeff", whole.mo_coeff[..., 1:], "mo_coeff mo_occ shapes"),
        ("mo_coeff", [np.eye(6), np.eye(5)], "mo_coeff shapes"),
    ):
        changed = whole.copy()
        setattr(changed, name, value)
        with pytest.raises(tcgen.ArgumentError, match=mentions(f"{kind} {words}")):
            solve("mp2_spin_orbital", changed)


def test_periodic_references_are_refused(solve: Any) -> None:
    gto, scf = pytest.importorskip("pyscf.pbc.gto"), pytest.importorskip("pyscf.pbc.scf")
    cell = gto.M(atom="He 0 0 0", a=np.eye(3) * 4, basis="sto-3g", verbose=0)
    with pytest.raises(tcgen.ArgumentError, match=mentions("periodic k-points KRHF density_fit")):
        solve("mp2_closed_shell", scf.RHF(cell))


def test_the_wrong_kind_of_reference(solve: Any, lih: Any) -> None:
    from pyscf import scf

    with pytest.raises(tcgen.ArgumentError, match=mentions("spatial UHF RHF mp2_spin_orbital")):
        solve("mp2_closed_shell", lih.to_uhf())
    general = scf.addons.convert_to_ghf(lih)
    with pytest.raises(tcgen.ArgumentError, match=mentions("alpha beta GHF RHF ROHF UHF")):
        solve("uccsd_energy_t1", general)


@pytest.mark.parametrize(
    "frozen",
    [
        7,
        [0, 9],
        -3,
        [-7],
        [0.5],
        1.5,
        True,
        "core",
        [True, False],
        np.zeros(2),
        [[0], [0]],
        [True, 1] * 3,
    ],
)
def test_frozen_orbitals_that_there_are_not(frozen: Any, solve: Any, lih: Any) -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions("frozen 6 orbitals RHF")):
        solve("mp2_closed_shell", lih, frozen=frozen)


@pytest.mark.parametrize(
    ("frozen", "word"), [(2, "occupied"), ([True] * 6, "occupied"), ([2, 3, 4, 5], "virtual")]
)
def test_frozen_orbitals_that_leave_none(frozen: Any, word: str, solve: Any, lih: Any) -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions(f"frozen {word}")):
        solve("mp2_closed_shell", lih, frozen=frozen)


def test_inputs_without_a_rule_are_listed_with_what_was_tried(solve: Any, lih: Any) -> None:
    text = CLOSED + (
        "input w[o,v,o,v], z[o,v], e_o[o], q[v]\noutput e\n"
        "e = w[i,a,j,b]*z[i,a]*z[j,b]*e_o[i]*q[a]\n"
    )
    with pytest.raises(tcgen.ArgumentError) as error:
        solve(text, lih)
    message = str(error.value)
    for line in ("w[o,v,o,v]", "z[o,v]", "q[v]"):
        assert line in message
    assert "e_o" not in message.split("e_o, ev")[0]
    for name in ("eri", "fock", "amplitudes=", "inputs=", "outputs="):
        assert name in message
    for option in ("--amplitudes", "--inputs", "--role"):
        assert option in message


def test_symmetries_that_no_integrals_have(solve: Any, lih: Any) -> None:
    text = CLOSED + (
        "input v_oooo[o,o,o,o] antisymmetric (0,2)\noutput x\nx[i,j,k,l] = v_oooo[i,j,k,l]\n"
    )
    with pytest.raises(tcgen.ArgumentError, match=mentions("v_oooo (pq|rs) <pq|rs> <pq||rs>")):
        solve(text, lih)


def test_what_an_input_cannot_be(solve: Any, lih: Any) -> None:
    for inputs, words in (
        ({"g": "fock"}, "g[o,v,o,v] fock"),
        ({"g": "exchange"}, "exchange g (pq|rs) hcore"),
        ({"x": np.zeros(3)}, "x g e_o e_v"),
    ):
        with pytest.raises(tcgen.ArgumentError, match=mentions(words)):
            solve("mp2_closed_shell", lih, inputs=inputs)


RESIDUALS = CLOSED + (
    "input f_vv[v,v], f_oo[o,o], t1[o,v]\noutput e, x, y\ne = t1[i,a]*t1[i,a]\n"
    "x[i,a] = 1 + f_vv[a,b]*t1[i,b] - f_oo[i,j]*t1[j,a]\n"
    "y[i,a] = 2*x[i,a]\n"
)


def test_it_is_asked_which_output_is_the_residual(solve: Any, lih: Any) -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions("x y residual t1 outputs=")):
        solve(RESIDUALS, lih)
    energies = [
        solve(RESIDUALS, lih, outputs={name: "residual of t1"}).e_corr for name in ("x", "y")
    ]
    assert abs(energies[0] - energies[1]) < 1e-9


def test_what_an_output_cannot_be(solve: Any, lih: Any) -> None:
    for outputs, words in (
        ({"z": "value"}, "z e x y"),
        ({"x": "gradient"}, "gradient x residual of t1"),
        ({"x": "energy"}, "x axes energy"),
        ({"e": "residual of t1"}, "e number residual"),
        ({"x": "residual of t2"}, "x t2 t1"),
    ):
        with pytest.raises(tcgen.ArgumentError, match=mentions(words)):
            solve(RESIDUALS, lih, outputs=outputs)
    text = CLOSED + "input f_ov[o,v], t1[o,v]\noutput w\nw[i,a] = f_ov[i,a]*t1[i,a]\n"
    with pytest.raises(tcgen.ArgumentError, match=mentions("w t1 Fock t1_new")):
        solve(text, lih, outputs={"w": "residual of t1"})


def test_spaces_that_no_reference_fills(solve: Any, lih: Any) -> None:
    three = "space c occupied\nspace o occupied\nspace q occupied\nindex i : o\ninput e_o[o]\n"
    with pytest.raises(tcgen.ArgumentError, match=mentions("3 occupied c o q")):
        solve(f"{three}output e\ne = e_o[i]*e_o[i]\n", lih)
    two = "space k occupied\nspace m occupied\nindex i : k\ninput e_k[k]\n"
    with pytest.raises(tcgen.ArgumentError, match=mentions("k m alpha beta")):
        solve(f"{two}output e\ne = e_k[i]*e_k[i]\n", lih)


def test_amplitudes_that_do_not_fit(
    solve: Any, lih: Any, chemistry: Chemistry, tmp_path: Path
) -> None:
    earlier = solve("ccsd_closed_shell", lih)
    with pytest.raises(tcgen.ShapeError, match=mentions("t1 (2, 4) (1, 4) frozen")):
        solve("ccsd_closed_shell", lih, amplitudes={"t1": np.zeros((1, 4))})
    with pytest.raises(tcgen.ShapeError, match=mentions("t1 t1[o,v] (4, 8) (2, 4)")):
        solve("ccsd_spin_orbital", lih, amplitudes=earlier)
    other = tmp_path / "other.npz"
    other.write_text("text")
    with pytest.raises(tcgen.ArgumentError, match=mentions("other.npz .npz")):
        solve("ccsd_closed_shell", lih, amplitudes=other)
    np.savez(other, t1=np.zeros(2))
    with pytest.raises(tcgen.ArgumentError, match=mentions("other.npz save")):
        solve("ccsd_closed_shell", lih, amplitudes=other)
    with pytest.raises(tcgen.ArgumentError, match=mentions("absent.npz")):
        solve("ccsd_closed_shell", lih, amplitudes=tmp_path / "absent.npz")


def test_amplitudes_that_are_no_arrays_by_name(solve: Any, lih: Any) -> None:
    from pyscf import cc

    t1, t2 = np.zeros((2, 4)), np.zeros((2, 2, 4, 4))
    for given, word in ((cc.CCSD(lih), "CCSD"), ((t1, t2), "tuple")):
        with pytest.raises(tcgen.ArgumentError, match=mentions(f"{word} t1 amplitudes_of(solver)")):
            solve("t_closed_shell", lih, amplitudes=given)
    with pytest.raises(tcgen.ArgumentError, match=mentions("no T1 or T2 reads t1, t2")):
        solve("t_closed_shell", lih, amplitudes={"T1": t1, "T2": t2})
    with pytest.raises(tcgen.ArgumentError, match=mentions("reads t2 solve ccsd_closed_shell")):
        solve("t_closed_shell", lih, amplitudes={"t1": t1})


def test_passed_arrays_over_other_orbitals(solve: Any, lih: Any) -> None:
    energies = {"e_o": lih.mo_energy, "e_v": lih.mo_energy}
    with pytest.raises(tcgen.ShapeError, match=mentions("e_o[o] (6,) 2 orbitals o")):
        solve("mp2_closed_shell", lih, inputs=energies)


def test_divergence_shows_the_last_norms(solve: Any, lih: Any) -> None:
    text = CLOSED + (
        "input e_o[o], e_v[v], v_ovov[o,v,o,v], t2[o,o,v,v]\noutput e, r2\n"
        "e = v_ovov[i,a,j,b]*t2[i,j,a,b]\n"
        "r2[i,j,a,b] = v_ovov[i,a,j,b] - (e_o[i] + e_o[j] - e_v[a] - e_v[b])*t2[i,j,a,b]\n"
        "            + 1000*v_ovov[i,a,k,c]*t2[k,j,c,b]\n"
    )
    with pytest.raises(tcgen.ConvergenceError) as error:
        solve(text, lih, diis=0)
    message = str(error.value)
    assert message.count("e+0") + message.count("e-0") >= 2
    assert all(word in message for word in ("level_shift", "damping", "DIIS"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tolerance", 0.0),
        ("tolerance", "1e-8"),
        ("max_cycle", 3.5),
        ("nroots", True),
        ("max_cycle", 0),
        ("diis", -1),
        ("level_shift", -0.1),
        ("damping", 1.0),
        ("nroots", 0),
    ],
)
def test_options_out_of_range(name: str, value: object, solve: Any, lih: Any) -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions(f"{name} {value}")):
        solve("mp2_closed_shell", lih, **{name: value})


def test_an_auxiliary_basis_that_no_integrals_are_in(solve: Any, lih: Any) -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions("auxbasis=weigend mp2_closed_shell")):
        solve("mp2_closed_shell", lih, auxbasis="weigend")
    fitted = lih.copy().density_fit(auxbasis="weigend").run()
    with pytest.raises(tcgen.ArgumentError, match=mentions("auxbasis='def2-svp-ri' weigend")):
        solve("mp2_df", fitted, auxbasis="def2-svp-ri")
    assert solve("mp2_df", fitted, auxbasis="weigend").converged


def test_a_level_shift_needs_residuals(solve: Any, lih: Any) -> None:
    text = CLOSED + (
        "input f_ov[o,v], t1[o,v]\noutput t1_new\nt1_new[i,a] = f_ov[i,a] + 1/2*t1[i,a]\n"
    )
    with pytest.raises(tcgen.ArgumentError, match=mentions("level_shift t1_new damping")):
        solve(text, lih, level_shift=0.1)


def test_equations_that_are_not_found(solve: Any, lih: Any, tmp_path: Path) -> None:
    with pytest.raises(tcgen.TcgenError, match=mentions("mp2_closed mp2_closed_shell")):
        solve("mp2_closed", lih)
    with pytest.raises(tcgen.TcgenError, match=mentions("none.spec")):
        solve(tmp_path / "none.spec", lih)
    with pytest.raises(tcgen.ArgumentError, match=mentions("int System")):
        solve(3, lih)


def test_a_memory_limit_that_is_too_small(solve: Any, lih: Any) -> None:
    with pytest.raises(tcgen.MemoryLimitError, match=mentions("memory")):
        solve("mp2_df", lih, memory_limit=8)


def test_options_are_a_record_or_keywords(solve: Any, lih: Any) -> None:
    options = tcgen.chem.SolveOptions(
        frozen=1, target="numpy", planning=tcgen.Planning(optimize=False), show=False
    )
    by_record = tcgen.chem.solve("mp2_closed_shell", lih, options)
    by_keywords = solve("mp2_closed_shell", lih, frozen=1)
    assert by_record.e_corr == pytest.approx(by_keywords.e_corr, abs=1e-12)
    # Keywords replace fields of the record.
    assert tcgen.chem.solve("mp2_closed_shell", lih, options, frozen=0).e_corr != by_record.e_corr


def test_options_that_do_not_exist_are_refused(lih: Any) -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions("solve keyword 'cycles'")):
        tcgen.chem.solve("mp2_closed_shell", lih, cycles=3)
    with pytest.raises(tcgen.ArgumentError, match=mentions("solve keyword 'nroot' write nroots")):
        tcgen.chem.solve("mp2_closed_shell", lih, nroot=3)
    with pytest.raises(tcgen.ArgumentError, match=mentions("options SolveOptions")):
        tcgen.chem.solve("mp2_closed_shell", lih, {"frozen": 1})  # type: ignore[arg-type]


def test_help_lists_every_option() -> None:
    parameters = signature(tcgen.chem.solve).parameters
    assert {"options", "frozen", "max_cycle", "planning", "objective", "show"} <= set(parameters)
    assert parameters["max_cycle"].default == 100


def test_amplitudes_over_other_orbitals_of_equal_energies_are_refused(solve: Any, lih: Any) -> None:
    solution = solve("ccsd_closed_shell", lih)
    solve("t_closed_shell", lih, amplitudes=solution)
    other = copy.copy(lih)
    other.mo_coeff = lih.mo_coeff * np.array([-1, 1, 1, -1, 1, 1])
    with pytest.raises(tcgen.ArgumentError, match=mentions("t1 another reference signs orbitals")):
        solve("t_closed_shell", other, amplitudes=solution)


def test_more_frozen_orbitals_than_fit_into_memory(solve: Any, lih: Any) -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions("frozen 6 orbitals RHF")):
        solve("mp2_closed_shell", lih, frozen=10**15)


def test_a_closed_shell_method_names_those_of_open_shells(solve: Any, lih: Any) -> None:
    for spec, reference, words in (
        ("ccsd_closed_shell", lih.to_uhf(), "RHF reference, or uccsd or ccsd_spin_orbital"),
        ("ccsd_closed_shell", lih.to_ghf(), "RHF reference, or ccsd_spin_orbital"),
        ("t_closed_shell", lih.to_uhf(), "RHF reference, or t_spin_orbital"),
    ):
        with pytest.raises(tcgen.ArgumentError, match=f"{words}$"):
            solve(spec, reference)


def test_exchange_on_a_grid_is_refused(solve: Any, lih: Any) -> None:
    """Also by PySCF 2.14, with AttributeError: an SGX object has no get_naoaux."""
    with pytest.raises(tcgen.ArgumentError, match=mentions("SGX COSX undo_sgx density_fit")):
        solve("ccsd_closed_shell", lih.copy().COSX())
    with pytest.raises(tcgen.ArgumentError, match=mentions("str read_fcidump read_trexio")):
        solve("ccsd_closed_shell", "water.fcidump")


def test_orbitals_of_a_checkpoint(solve: Any, lih: Any, tmp_path: Path) -> None:
    """A checkpoint of PySCF 2.14 does not say that its orbitals are converged."""
    from pyscf import scf

    saved = lih.copy()
    saved.chkfile = str(tmp_path / "lih.chk")
    saved.kernel()
    mol, data = scf.chkfile.load_scf(saved.chkfile)
    read = scf.RHF(mol)
    read.__dict__.update(data)
    del read.converged
    with pytest.raises(tcgen.ConvergenceError, match=r"checkpoint.*set mf\.converged = True"):
        solve("mp2_closed_shell", read)
    read.converged = True
    expected = solve("mp2_closed_shell", saved).e_corr
    assert solve("mp2_closed_shell", read).e_corr == pytest.approx(expected, abs=1e-10)


def test_kohn_sham_orbitals_as_the_message_says(solve: Any, lih: Any) -> None:
    from pyscf import cc

    density_functional = lih.to_rks(xc="pbe").run()
    with pytest.raises(tcgen.ArgumentError, match=r"hf = mf\.to_hf\(\); hf\.converged = True"):
        solve("ccsd_closed_shell", density_functional)
    hf = density_functional.to_hf()
    hf.converged = True
    expected = cc.CCSD(hf).run(conv_tol=1e-11, conv_tol_normt=1e-8).e_corr
    assert solve("ccsd_closed_shell", hf).e_corr == pytest.approx(expected, abs=1e-8)


@pytest.mark.filterwarnings("ignore:Function mol.dumps drops")
def test_integrals_of_a_file_or_a_model(solve: Any, lih: Any, tmp_path: Path) -> None:
    from pyscf.tools import fcidump

    path = str(tmp_path / "lih.fcidump")
    fcidump.from_scf(lih, path)
    read = fcidump.to_scf(path)
    read.verbose = 0
    read.run()
    for spec in ("ccsd_closed_shell", "ccsd_spin_orbital"):
        found = solve(spec, read).e_corr
        assert found == pytest.approx(solve(spec, lih).e_corr, abs=1e-8)
    hcore = "input h[o,o] from hcore\noutput e\ne = 2*h[i,i]\n"
    core = solve(CLOSED + hcore, read).energies["e"]
    assert core == pytest.approx(solve(CLOSED + hcore, lih).energies["e"], abs=1e-8)
    with pytest.raises(tcgen.ArgumentError, match=mentions("without a basis set three-index")):
        solve("mp2_df", read)
    with pytest.raises(tcgen.ArgumentError, match=mentions("get_ovlp GHF 6 rows 12 RHF")):
        solve("ccsd_spin_orbital", read.to_ghf())
    axis = "space z = 3\nindex p : z\n"
    dipole = f"{axis}input d[z,o,o] from dipole\noutput e\ne = d[p,i,j]*d[p,i,j]\n"
    with pytest.raises(tcgen.ArgumentError, match=mentions("dipole integrals inputs=")):
        solve(CLOSED + dipole, read)


def test_the_specs_that_determine_missing_amplitudes_are_named(solve: Any, lih: Any) -> None:
    for spec, words in (
        ("t_closed_shell", "t1, t2 ccsd_closed_shell amplitudes="),
        ("t_spin_orbital", "t1, t2 ccsd_spin_orbital amplitudes="),
    ):
        with pytest.raises(tcgen.ArgumentError, match=mentions(words)) as caught:
            solve(spec, lih)
        others = {"t_closed_shell": "spin_orbital", "t_spin_orbital": "closed_shell"}
        assert others[spec] not in str(caught.value).removeprefix(spec)


def test_a_compiled_folder_has_its_equations(solve: Any, lih: Any, tmp_path: Path) -> None:
    program = tcgen.compile("mp2_closed_shell", extents={"o": 3, "v": 3}, target="numpy")
    program.save(tmp_path / "mp2")
    expected = solve("mp2_closed_shell", lih).e_corr
    assert solve(str(tmp_path / "mp2"), lih).e_corr == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_scalar_inputs_are_numbers(lih: Any, solve: Any, dtype: str) -> None:
    """Numbers of any type adapt to the element type, as in a call of a program."""
    text = CLOSED + (
        "input g[o,v,o,v] from eri(chemist), e_o[o], e_v[v], scale\noutput e\n"
        "e = scale*(2*g[i,a,j,b] - g[i,b,j,a])*g[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])\n"
    )

    def energy(scale: Any) -> Any:
        return solve(text, lih, inputs={"scale": scale}, dtype=dtype).e_corr

    expected = energy(2.0)
    assert abs(expected + 2 * 0.012870135774) < 1e-6
    for number in (2, np.float32(2), np.int64(2), Fraction(2)):
        assert energy(number) == expected
    assert abs(2 * energy(True) - expected) < 1e-7
    with pytest.raises(tcgen.DtypeError, match="scale must be"):
        energy(10**400)


@pytest.mark.parametrize("spec", ["mp2_spin_orbital", "ccsd_closed_shell", "cc2_spin_orbital"])
def test_extents_are_those_of_the_reference(spec: str, lih: Any, solve: Any) -> None:
    expected = solve(spec, lih)
    double = 1 if spec == "ccsd_closed_shell" else 2
    for own in ({"o": 2 * double}, {"v": 4 * double}, {"o": 2 * double, "v": 4 * double}):
        assert abs(solve(spec, lih, extents=own).e_corr - expected.e_corr) < 1e-10
        for name, extent in own.items():
            for other in (1, extent + 1):
                with pytest.raises(tcgen.ExtentError, match=mentions(f"{name}={other} {extent}")):
                    solve(spec, lih, extents={**own, name: other})


def test_extents_are_those_of_passed_arrays(lih: Any, solve: Any) -> None:
    text = CLOSED + (
        "space w quadrature\nindex z : w\ninput x[w], g[o,v,o,v], e_o[o], e_v[v]\noutput e, n\n"
        "e = sum(z) x[z]*g[i,a,j,b]*g[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])\n"
        "n = sum(z) delta[z,z]\n"
    )
    arrays = {"x": np.ones(3)}
    found = solve(text, lih, inputs=arrays, extents={"w": 3}, outputs={"e": "energy"})
    assert found.energies["n"] == 3
    with pytest.raises(tcgen.ExtentError, match=mentions("w=4 3")):
        solve(text, lih, inputs=arrays, extents={"w": 4}, outputs={"e": "energy"})


def test_orbital_energies_that_leave_out_a_fock_matrix(blocks: Any) -> None:
    """Orbitals that are not canonical, as those of a density functional: MP2 says so."""
    field = blocks.mean_field(blocks.molecule("Li 0 0 0; H 0 0 1.5957", "sto-3g"), "RHF")
    turn = np.eye(6)
    turn[1:3, 1:3] = np.array([[3.0, -0.3], [0.3, 3.0]]) / np.hypot(3.0, 0.3)
    field.mo_coeff = field.mo_coeff @ turn
    with pytest.warns(RuntimeWarning, match=r"mp2_closed_shell .* leaves out .* Fock matrix"):
        tcgen.chem.solve("mp2_closed_shell", field, target="numpy", show=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        options = {"target": "numpy", "optimize": False, "show": False}
        assert tcgen.chem.solve("ccsd_closed_shell", field, **options).converged
