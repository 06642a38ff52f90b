"""tcgen in the place of the contractions of PySCF, ebcc and opt_einsum: energies to 1e-10."""

from __future__ import annotations

import functools
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions

DATA = Path(__file__).parents[1] / "data"
LITHIUM_HYDRIDE = ("--atom", "Li 0 0 0; H 0 0 1.5957", "--basis", "sto-3g")


@pytest.fixture(params=["cpu", "numpy"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every pairwise contraction runs generated code, on each target in turn: this one."""
    from tcgen.compiler.target import default_target

    if request.param == "cpu" and default_target() != "cpu":
        pytest.skip("no C compiler")
    monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", request.param)
    tcgen.einsum_report(reset=True)
    target: str = request.param
    return target


@pytest.mark.usefixtures("kernels")
def test_ebcc_pair_by_pair(chemistry: Callable[[str], Any]) -> None:
    pytest.importorskip("ebcc", reason="ebcc is not installed")
    import ebcc_ccsd
    from ebcc.util import einsumfunc

    water = chemistry("h2o_631g")
    own, counted, strings = einsumfunc._contract_backend, 0, set()

    def count(subscripts: str, *arguments: Any, **options: Any) -> Any:
        nonlocal counted
        counted += 1
        strings.add(subscripts)
        return own(subscripts, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(einsumfunc, "_contract_backend", count)
        ebcc_ccsd.solver(water.reference).kernel()
    assert counted > 900
    solver = ebcc_ccsd.solver(water.reference)
    with ebcc_ccsd.generated_contractions():
        solver.kernel()
    assert solver.converged
    assert abs(solver.e_corr - water.energies["E_CCSD_corr"]) < 1e-10
    report = tcgen.einsum_report()
    assert (report.kernel_calls, report.numpy_calls) == (counted, 0)
    assert len(strings) > 50


def test_ebcc_whole_functions(chemistry: Callable[[str], Any]) -> None:
    pytest.importorskip("ebcc", reason="ebcc is not installed")
    import ebcc_ccsd

    water = chemistry("h2o_631g")
    solver = ebcc_ccsd.solver(water.reference)
    own = solver._eqns
    solver._eqns = ebcc_ccsd.GeneratedEquations(own, {"o": 5, "v": 8})
    solver.kernel()
    assert solver.converged
    assert abs(solver.e_corr - water.energies["E_CCSD_corr"]) < 1e-10
    assert solver._eqns.make_rdm1_f is own.make_rdm1_f


def test_pyscf_gccsd(kernels: str, chemistry: Callable[[str], Any]) -> None:
    """lib.einsum hands each pair to ``_contract``; three factors are split by PySCF."""
    import pyscf_einsum

    water = chemistry("h2o_631g" if kernels == "numpy" else "h2o_sto3g")
    solver = pyscf_einsum.tight(pyscf_einsum.general_solver(water.reference, water.frozen))
    with pyscf_einsum.generated_contractions():
        solver.kernel()
    assert solver.converged
    assert abs(solver.e_corr - water.energies["E_CCSD_corr"]) < 1e-10
    report = tcgen.einsum_report()
    assert report.numpy_calls == 0
    assert report.kernel_calls > 500


def test_pyscf_lib_einsum(blocks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyscf import lib

    assert blocks is not None
    monkeypatch.setattr(lib.numpy_helper, "EINSUM_BACKEND", None, raising=False)
    random = np.random.default_rng(0)
    a, b, c = random.random((3, 4, 5)), random.random((5, 4, 6)), random.random((6, 7))
    found = lib.einsum("ijk,kjl,lm->im", a, b, c, _contract=tcgen.contract)
    np.testing.assert_allclose(found, np.einsum("ijk,kjl,lm->im", a, b, c))
    out = np.ones((3, 6))
    contract = functools.partial(lib.einsum, _contract=tcgen.contract)
    contract("ijk,kjl->il", a, b, alpha=2.0, beta=-1.0, out=out)
    np.testing.assert_allclose(out, 2 * np.einsum("ijk,kjl->il", a, b) - 1)


def test_signature_of_gpu4pyscf() -> None:
    """``contract(pattern, a, b, alpha, beta, out)``, all by position."""
    a, b, out = np.ones((2, 3)), np.ones((3, 4)), np.ones((2, 4))
    assert tcgen.contract("ij,jk->ik", a, b, 2.0, 1.0, out) is out
    assert (out == 7.0).all()


@pytest.mark.parametrize(
    ("script", "options", "needs", "lines"),
    [
        ("pyscf_einsum.py", (*LITHIUM_HYDRIDE, "--all-kernels"), "pyscf", 1),
        ("ebcc_ccsd.py", LITHIUM_HYDRIDE, "ebcc", 2),
        ("opt_einsum_backend.py", ("--extent", "6"), "opt_einsum", 0),
    ],
)
def test_example(
    script: str, options: tuple[str, ...], needs: str, lines: int, examples: SimpleNamespace
) -> None:
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    path: Path = examples.folder / script
    command = [sys.executable, str(path), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [line for line in done.stdout.splitlines() if re.search(r"[+-]\d\.\de[+-]", line)]
    assert len(found) == lines


def solved(program: str, kind: str, mean_field: Any) -> Any:
    """CCSD of PySCF 2.14 or ebcc 1.6.2, converged; the table of docs/solve.md is about these."""
    if program == "pyscf":
        from pyscf import cc

        return getattr(cc, f"{kind}CCSD")(mean_field).run(conv_tol=1e-12, conv_tol_normt=1e-9)
    ebcc = pytest.importorskip("ebcc", reason="ebcc is not installed")
    method = getattr(ebcc, f"{kind}EBCC")(mean_field, ansatz="CCSD", log=ebcc.NullLogger())
    method.options.e_tol, method.options.t_tol = 1e-11, 1e-9
    method.kernel()
    return method


SPECS = {"R": "ccsd_closed_shell", "U": "uccsd", "G": "ccsd_spin_orbital"}
KEYWORDS: dict[str, Any] = {"target": "numpy", "optimize": False, "show": False}


@pytest.fixture
def mean_fields(chemistry: Callable[[str], Any]) -> dict[str, Any]:
    """Lithium hydride, and its cation for UHF, whose numbers of spins differ."""
    from pyscf import gto, scf

    closed = chemistry("lih_sto3g").reference
    cation = gto.M(atom=LITHIUM_HYDRIDE[1], basis="sto-3g", charge=1, spin=1, verbose=0)
    return {"R": closed, "U": scf.UHF(cation).run(conv_tol=1e-12), "G": closed.to_ghf()}


@pytest.mark.parametrize("kind", ["R", "G", pytest.param("U", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", ["pyscf", "ebcc"])
def test_amplitudes_of_other_programs(program: str, kind: str, mean_fields: dict[str, Any]) -> None:
    method = solved(program, kind, mean_fields[kind])
    carried = tcgen.chem.amplitudes_of(method)
    own = tcgen.chem.solve(SPECS[kind], mean_fields[kind], **KEYWORDS)
    assert carried.keys() == own.amplitudes.keys()
    for name, amplitude in carried.items():
        np.testing.assert_allclose(amplitude, own.amplitudes[name], rtol=0, atol=1e-7)
    again = tcgen.chem.solve(
        SPECS[kind], mean_fields[kind], amplitudes=carried, tolerance=1e-6, **KEYWORDS
    )
    assert again.iterations == 1
    given = {name: 2 * amplitude for name, amplitude in own.amplitudes.items()}
    tcgen.chem.set_amplitudes(method, given)
    for name, amplitude in tcgen.chem.amplitudes_of(method).items():
        np.testing.assert_allclose(amplitude, given[name])
    method = type(method)(mean_fields[kind])  # without amplitudes
    tcgen.chem.set_amplitudes(method, own)
    if program == "ebcc":
        energy = method.energy()
    else:
        energy = method.energy(method.t1, method.t2, method.ao2mo())
    assert abs(energy - own.e_corr) < 1e-8


def test_triples_of_pyscf_from_own_amplitudes(mean_fields: dict[str, Any]) -> None:
    from pyscf import cc

    solver = cc.CCSD(mean_fields["R"])
    doubles = tcgen.chem.solve("ccsd_closed_shell", mean_fields["R"], **KEYWORDS)
    tcgen.chem.set_amplitudes(solver, doubles)
    own = tcgen.chem.solve("t_closed_shell", mean_fields["R"], amplitudes=doubles, **KEYWORDS)
    assert abs(solver.ccsd_t() - own.energies["e_t"]) < 1e-10


def test_amplitudes_that_do_not_fit_a_solver(mean_fields: dict[str, Any]) -> None:
    from pyscf import cc

    solver = cc.UCCSD(mean_fields["U"])
    doubles = {"t1": np.zeros((2, 4)), "t2": np.zeros((2, 2, 4, 4))}
    with pytest.raises(tcgen.ArgumentError, match=mentions("UCCSD kernel first")):
        tcgen.chem.amplitudes_of(solver)
    with pytest.raises(tcgen.ArgumentError, match=mentions("UCCSD t1a t2bb uccsd")):
        tcgen.chem.set_amplitudes(solver, doubles)
    frozen = cc.CCSD(mean_fields["R"], frozen=1)
    with pytest.raises(tcgen.ShapeError, match=mentions("t1 (2, 4) (1, 4) frozen")):
        tcgen.chem.set_amplitudes(frozen, doubles)
    with pytest.raises(tcgen.ArgumentError, match=mentions("RHF GCCSD REBCC")):
        tcgen.chem.amplitudes_of(mean_fields["R"])


def test_triples_of_ebcc_are_those_of_pyscf_without_an_exchange(
    chemistry: Callable[[str], Any],
) -> None:
    ebcc = pytest.importorskip("ebcc", reason="ebcc is not installed")
    rccsdt = pytest.importorskip("pyscf.cc.rccsdt", reason="PySCF is older than 2.10")
    mean_field = chemistry("lih_sto3g").reference
    method = ebcc.REBCC(mean_field, ansatz="CCSDT", log=ebcc.NullLogger())
    method.options.e_tol, method.options.t_tol = 1e-11, 1e-9
    method.kernel()
    reference = rccsdt.RCCSDT(mean_field)
    reference.conv_tol, reference.conv_tol_normt = 1e-12, 1e-9
    reference.kernel()
    whole = tcgen.chem.amplitudes_of(reference)["t3"]
    np.testing.assert_allclose(method.t3, whole - whole.swapaxes(0, 2), rtol=0, atol=1e-8)
    found, packed = method.t3.copy(), reference.t3.copy()
    for solver in (method, reference):
        tcgen.chem.set_amplitudes(solver, tcgen.chem.amplitudes_of(reference))
    np.testing.assert_allclose(method.t3, found, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(reference.t3, packed)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("reader", "file", "order"),
    [
        (tcgen.from_pdaggerq, "pdaggerq/ccsd.txt", "abij"),  # pdaggerq 1d2cf48
        (tcgen.from_wicked, "wicked/ccsd.txt", "ijab"),  # wick&d 1.3.0
    ],
)
def test_amplitudes_of_derived_equations(
    reader: Any, file: str, order: str, mean_fields: dict[str, Any]
) -> None:
    """Sign, factor and order of axes are those of the table, from zero amplitudes."""
    reference = solved("pyscf", "G", mean_fields["G"])
    system = reader((DATA / file).read_text(), real=True)
    found = tcgen.chem.solve(system, mean_fields["G"], **KEYWORDS)
    assert found.converged
    for name, wanted in (("t1", reference.t1), ("t2", reference.t2)):
        axes = order if name == "t2" else order[::2]
        ours = np.einsum(
            f"{axes}->{''.join(sorted(axes, key='ijab'.index))}", found.amplitudes[name]
        )
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-7)
    assert "v_oovv" in {tensor.name for tensor in system.inputs}


def test_integrals_by_name(mean_fields: dict[str, Any]) -> None:
    from pyscf import ao2mo, cc

    def chemists(mean_field: Any, first: Any, second: Any) -> Any:
        sizes = [first.shape[1]] * 2 + [second.shape[1]] * 2
        pairs = [first, first, second, second]
        return ao2mo.general(mean_field.mol, pairs, compact=False).reshape(sizes)

    closed, radical = mean_fields["R"], mean_fields["U"]
    alpha, beta = radical.mo_coeff
    whole = chemists(closed, closed.mo_coeff, closed.mo_coeff)[:2, 2:, :2, 2:]
    mixed = chemists(radical, alpha, beta)[:2, 2:, :1, 1:]
    spins = mean_fields["G"]
    general = solved("pyscf", "G", spins).ao2mo()
    halves = np.split(spins.mo_coeff, 2)
    total = sum(chemists(closed, one, other) for one in halves for other in halves)
    physicists = total.transpose(0, 2, 1, 3) - total.transpose(0, 2, 3, 1)
    named = [
        (cc.CCSD(closed).ao2mo().ovov, whole),
        (cc.UCCSD(radical).ao2mo().ovOV, mixed),
        (general.oovv, physicists[:4, :4, 4:, 4:]),
    ]
    if importlib.util.find_spec("ebcc"):
        import ebcc

        log = ebcc.NullLogger()
        named += [
            (ebcc.REBCC(closed, log=log).get_eris().ovov, whole),
            (ebcc.UEBCC(radical, log=log).get_eris().aabb.ovov, mixed),
            (ebcc.GEBCC(spins, log=log).get_eris().oovv, physicists[:4, :4, 4:, 4:]),
        ]
    for found, wanted in named:
        np.testing.assert_allclose(np.reshape(found, wanted.shape), wanted, rtol=0, atol=1e-10)
