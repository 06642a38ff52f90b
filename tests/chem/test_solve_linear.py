"""EOM, CIS, Lambda and densities with ``tcgen.chem.solve``, against PySCF."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.chem.eigen import estimated_diagonal, independent_elements, lowest_roots
from tcgen.ir.tensor import Role, Space, Tensor

Chemistry = Callable[[str], Any]
TOLERANCE = 1e-8  # Hartree
LAGRANGIAN = """include "ccsd_spin_orbital.spec"
input l1[o,v], l2[o,o,v,v] antisymmetric (0,1) (2,3)
output L
L = e + l1[i,a]*r1[i,a] + 1/4*l2[i,j,a,b]*r2[i,j,a,b]
"""


@pytest.fixture(scope="module")
def solve() -> Callable[..., tcgen.chem.Solution]:
    pytest.importorskip("pyscf")
    return partial(tcgen.chem.solve, target="numpy", optimize=False, show=False)


@pytest.fixture(scope="module")
def lih(chemistry: Chemistry) -> Any:
    return chemistry("lih_sto3g")


@pytest.fixture(scope="module")
def ground(solve: Any, lih: Any) -> tcgen.chem.Solution:
    return solve("ccsd_spin_orbital", lih.reference)


def sigma(spec: str) -> tcgen.System:
    residuals = tcgen.read_spec_file(tcgen.spec_path(spec))
    names = {"r1": "s1", "r2": "s2"}
    return tcgen.jvp(residuals, {"t1": "x1", "t2": "x2"}, of=["r1", "r2"], names=names)


def test_eom_over_spin_orbitals(solve: Any, lih: Any, ground: Any, tmp_path: Path) -> None:
    found = solve(sigma("ccsd_spin_orbital"), lih.reference, amplitudes=ground, nroots=4)
    assert found.converged
    assert found.e_corr is None
    expected = lih.spin_solver.eeccsd(nroots=4)[0]
    assert np.allclose(found.roots, expected, rtol=0, atol=TOLERANCE)
    vectors = found.amplitudes["x2"]
    assert vectors.shape == (4, 4, 4, 8, 8)
    assert np.allclose(vectors, -vectors.swapaxes(1, 2), rtol=0, atol=1e-12)

    again = solve(
        sigma("ccsd_spin_orbital"),
        lih.reference,
        amplitudes=found.save(tmp_path / "roots.npz"),
        nroots=4,
    )
    assert 2 * again.iterations < found.iterations
    assert np.allclose(again.roots, found.roots, rtol=0, atol=TOLERANCE)


@pytest.mark.slow
def test_states_in_one_file(solve: Any, lih: Any, ground: Any, tmp_path: Path) -> None:
    """Each spec reads the amplitudes of CCSD, and only vectors that fit start it."""
    file = ground.save(tmp_path / "states.npz")
    specs = ("eom_ip_ccsd_spin_orbital", "eom_ee_ccsd_spin_orbital", "ccsd_spin_orbital") * 2
    found = [solve(spec, lih.reference, amplitudes=file).save(file) for spec in specs]
    assert set(found) == {file}
    for spec in specs[:2]:
        expected = solve(spec, lih.reference, amplitudes=ground).roots
        assert np.allclose(tcgen.chem.load(file, spec).roots, expected, rtol=0, atol=TOLERANCE)


def test_eom_of_a_closed_shell(solve: Any, lih: Any) -> None:
    ground = solve("ccsd_closed_shell", lih.reference)
    found = solve(sigma("ccsd_closed_shell"), lih.reference, amplitudes=ground, nroots=3)
    expected = lih.closed_solver.eomee_ccsd_singlet(nroots=3)[0]
    assert np.allclose(found.roots, expected, rtol=0, atol=TOLERANCE)


CIS = """
space o occupied
space v virtual
space roots
index i j : o
index a b : v
index x : roots
input v_ovov[o,v,o,v], v_oovv[o,o,v,v] symmetric (0,1) (2,3), e_o[o], e_v[v]
input c[{axes}]
output s
s[{left}] = (e_v[a] - e_o[i])*c[{left}] + 2*v_ovov[i,a,j,b]*c[{right}] - v_oovv[i,j,a,b]*c[{right}]
"""


@pytest.mark.parametrize(
    ("axes", "left", "right"),
    [
        ("o,v", "i,a", "j,b"),
        ("roots,o,v", "x,i,a", "x,j,b"),
        ("v,roots,o", "a,x,i", "b,x,j"),
    ],
)
def test_vectors_one_by_one_and_together(
    axes: str, left: str, right: str, solve: Any, lih: Any
) -> None:
    text = CIS.format(axes=axes, left=left, right=right)
    text = text if "roots" in axes else text.replace("index x : roots\n", "")
    found = solve(text, lih.reference, nroots=3)
    states = lih.reference.TDA()
    states.nstates, states.conv_tol = 3, 1e-12
    expected = states.kernel()[0]
    assert np.allclose(found.roots, expected, rtol=0, atol=TOLERANCE)
    shape = {"o": 2, "v": 4, "roots": 3}
    names = axes.split(",") if "roots" in axes else ["roots", *axes.split(",")]
    assert found.amplitudes["c"].shape == tuple(shape[name] for name in names)


def test_lambda_equations_and_densities(solve: Any, lih: Any, ground: Any) -> None:
    folder = tcgen.spec_path("ccsd_spin_orbital").parent
    lagrangian = tcgen.read_spec(LAGRANGIAN, folder=folder)
    found = solve(
        tcgen.derivative(lagrangian, ["t1", "t2"], of="L"), lih.reference, amplitudes=ground
    )
    solver = lih.spin_solver
    l1, l2 = solver.solve_lambda()
    assert np.allclose(found.amplitudes["l1"], l1, rtol=0, atol=1e-7)
    assert np.allclose(found.amplitudes["l2"], l2, rtol=0, atol=1e-7)
    assert np.array_equal(found.amplitudes["t2"], ground.amplitudes["t2"])

    density = tcgen.derivative(lagrangian, ["f_oo", "f_ov", "f_vv"], of="L")
    values = solve(density, lih.reference, amplitudes=found).values
    expected, o = solver.make_rdm1(), 4
    assert np.allclose(values["d_L_f_oo"], expected[:o, :o] - np.eye(o), rtol=0, atol=1e-7)
    assert np.allclose(values["d_L_f_vv"], expected[o:, o:], rtol=0, atol=1e-7)
    both = expected[:o, o:] + expected[o:, :o].T
    assert np.allclose(values["d_L_f_ov"], both, rtol=0, atol=1e-7)


def test_more_roots_than_rows_are_refused(solve: Any, lih: Any) -> None:
    text = CIS.format(axes="o,v", left="i,a", right="j,b").replace("index x : roots\n", "")
    with pytest.raises(tcgen.ArgumentError, match=mentions("nroots 9 8")):
        solve(text, lih.reference, nroots=9)


def test_few_iterations_do_not_converge(solve: Any, lih: Any, ground: Any) -> None:
    matrix = sigma("ccsd_spin_orbital")
    with pytest.warns(RuntimeWarning, match="is not converged"):
        assert not solve(matrix, lih.reference, amplitudes=ground, max_cycle=1).converged


@pytest.mark.parametrize(("rows", "copies", "count"), [(11, 6, 20), (15, 8, 12), (15, 8, 30)])
@pytest.mark.parametrize("seed", range(3, 6))
def test_many_equal_roots(seed: int, rows: int, copies: int, count: int) -> None:
    """Each root as often as it is there, and none that is not, though directions vanish."""
    pytest.importorskip("pyscf")
    rng = np.random.default_rng(seed)
    turn = np.eye(rows) + 0.02 * rng.normal(size=(rows, rows))
    values = np.sort(rng.random(rows) * 3 + 0.1)
    block = turn @ np.diag(values) @ np.linalg.inv(turn)
    matrix = np.kron(np.eye(copies), block)
    vector = Tensor("x", (Space("o"),), Role.INPUT)
    found = lowest_roots(
        lambda vectors: {"x": vectors["x"] @ matrix.T},
        {"x": independent_elements(vector, (len(matrix),))},
        {"x": matrix.diagonal()},
        {},
        count=count,
        tolerance=1e-9,
        max_cycle=100,
    )
    expected = np.sort(np.repeat(values, copies))[:count]
    assert np.allclose(found.values, expected, rtol=0, atol=TOLERANCE)
    assert max(found.norms) <= 1e-9
    assert min(np.linalg.norm(found.amplitudes["x"], axis=1)) > 1e-3


BARE_LIST = [
    ["+1.0", "f(a,b)", "r1(b,i)"],
    ["-1.0", "f(j,i)", "r1(a,j)"],
    ["+1.0", "<j,a||b,i>", "r1(b,j)"],
]
# pdaggerq 2026 prints these too, unless the sigma vector is derived with commutators.
OF_REFERENCE = [["+1.0", "f(j,j)", "r1(a,i)"], ["-0.5", "<k,j||k,j>", "r1(a,i)"]]


@pytest.mark.parametrize("frozen", [0, 1])
def test_a_bare_list_of_pdaggerq_with_the_energy_of_the_reference(
    frozen: int, solve: Any, lih: Any
) -> None:
    given = BARE_LIST + OF_REFERENCE
    found = solve(tcgen.from_pdaggerq(given), lih.reference, frozen=frozen, nroots=4)
    assert found.converged
    method = lih.reference.to_ghf().TDA()
    if frozen:
        method.frozen = 2
    expected = method.run(nstates=4).e
    assert np.allclose(found.roots, expected, rtol=0, atol=1e-6)
    plain = solve(tcgen.from_pdaggerq(BARE_LIST), lih.reference, frozen=frozen, nroots=4)
    assert np.allclose(found.roots, plain.roots, rtol=0, atol=TOLERANCE)


def test_the_energy_of_the_reference_is_no_part_of_a_residual(solve: Any, lih: Any) -> None:
    terms = [
        ["+1.0", "f(a,i)"],
        ["+1.0", "f(a,b)", "t1(b,i)"],
        ["-1.0", "f(j,i)", "t1(a,j)"],
        ["+1.0", "f(j,j)", "t1(a,i)"],
    ]
    with pytest.raises(tcgen.ArgumentError, match="t1 times the energy of the reference: leave"):
        solve(tcgen.from_pdaggerq({"r1(a,i)": terms}), lih.reference, orbitals="spin")


VECTORS = """space o occupied
space v virtual
space roots
index i j l : o
index a b c : v
index k : roots
input {}, r[roots,o,v]
output s
s[k,i,a] = {}
"""


def test_passed_energies_count(solve: Any, lih: Any) -> None:
    text = VECTORS.format("e_o[o], e_v[v]", "(e_v[a] - e_o[i])*r[k,i,a]")
    energies = lih.reference.mo_energy
    for shift in (0.0, 0.5):
        passed = {"e_o": energies[:2], "e_v": energies[2:] + shift}
        found = solve(text, lih.reference, inputs=passed)
        assert found.roots[0] == pytest.approx(energies[2] - energies[1] + shift, abs=TOLERANCE)


@pytest.mark.parametrize("square", [False, True])
def test_a_stated_sigma_vector_may_have_any_matrix(square: bool, solve: Any, lih: Any) -> None:
    rng = np.random.default_rng(2)
    mol = lih.reference.mol.copy()
    mol.build(basis="cc-pvdz", dump_input=False)
    mean_field = type(lih.reference)(mol).run()
    count = mean_field.mo_coeff.shape[1] - 2
    rows = 2 * count
    assert rows > 32
    matrix = np.diag(np.linspace(0.2, 3.0, rows)) + 0.02 * rng.standard_normal((rows, rows))
    product = "A[i,a,j,b]*A[j,b,l,c]*r[k,l,c]" if square else "A[i,a,j,b]*r[k,j,b]"
    found = solve(
        VECTORS.format("A[o,v,o,v]", product),
        mean_field,
        inputs={"A": matrix.reshape(2, count, 2, count)},
        outputs={"s": "sigma of r"},
        nroots=3,
    )
    expected = np.sort(np.linalg.eigvals(matrix @ matrix if square else matrix).real)[:3]
    assert found.converged
    assert np.allclose(found.roots, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("product", ["A[i,a,j,b]*r[k,j,b] + A[i,a,i,a]", "r[k,i,a]*r[k,i,a]"])
def test_a_sigma_vector_is_linear(product: str, solve: Any, lih: Any) -> None:
    text = VECTORS.format("A[o,v,o,v]", f"{product} + 0*A[i,a,i,a]*r[k,i,a]")
    given = {"A": np.ones((2, 4, 2, 4))}
    with pytest.raises(tcgen.ArgumentError, match="sigma vectors, but are not linear in r"):
        solve(text, lih.reference, inputs=given, outputs={"s": "sigma of r"})


def test_the_diagonal_is_estimated() -> None:
    parts = {"r": independent_elements(Tensor("r", (Space("o"),), Role.INPUT), (200,))}
    matrix = np.diag(np.arange(200.0))
    found = estimated_diagonal(lambda x: {"r": x["r"] @ matrix}, parts)
    np.testing.assert_allclose(found["r"], np.arange(200.0))
