"""tcgen in the place of the contractions of PySCF, ebcc and opt_einsum: energies to 1e-10."""

from __future__ import annotations

import functools
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


# PySCF 2.14, ebcc 1.6.2: the table in docs/solve.md.
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["R", "U", "G"])
def test_amplitudes_of_pyscf_and_ebcc(kind: str, chemistry: Callable[[str], Any]) -> None:
    ebcc = pytest.importorskip("ebcc", reason="ebcc is not installed")
    from pyscf import cc

    mean_field = chemistry("lih_sto3g").reference
    mean_field = {"R": mean_field, "U": mean_field.to_uhf(), "G": mean_field.to_ghf()}[kind]
    reference = cc.CCSD(mean_field).run(conv_tol=1e-12, conv_tol_normt=1e-9)
    method = getattr(ebcc, f"{kind}EBCC")(mean_field, ansatz="CCSD", log=ebcc.NullLogger())
    method.options.e_tol, method.options.t_tol = 1e-11, 1e-9
    method.kernel()
    spec = {"R": "ccsd_closed_shell", "U": "uccsd", "G": "ccsd_spin_orbital"}[kind]
    keywords = {"target": "numpy", "optimize": False, "show": False}
    own = tcgen.chem.solve(spec, mean_field, **keywords).amplitudes
    if kind == "U":
        found = (method.t2.aaaa * 2, method.t2.abab, method.t2.bbbb * 2)
        triples = zip(found, reference.t2, (own["t2aa"], own["t2ab"], own["t2bb"]), strict=True)
    else:
        triples = [(method.t2, reference.t2, own["t2"]), (method.t1, reference.t1, own["t1"])]
    for other, pyscf, ours in triples:
        np.testing.assert_allclose(other, pyscf, rtol=0, atol=1e-7)
        np.testing.assert_allclose(ours, pyscf, rtol=0, atol=1e-7)


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
    whole = reference.tamps_tri2full(reference.t3)
    np.testing.assert_allclose(method.t3, whole - whole.swapaxes(0, 2), rtol=0, atol=1e-8)
