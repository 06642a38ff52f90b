"""Spin integration against the equations over spin orbitals, element by element."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.errors import ArgumentError, ShapeError, SpecError
from tcgen.frontend import read_spec, read_spec_file, spec_text
from tcgen.interp import evaluate_system
from tcgen.interp.storage import caller_shape
from tcgen.ir.expr import FUNCTIONS, REAL_FUNCTIONS
from tcgen.ir.system import System
from tcgen.testing import random_arrays

Arrays = dict[str, np.ndarray]
HEAD = "space o occupied\nspace v virtual\nindex i j k l : o\nindex a b c d : v\n"
CCSD = tcgen.spec_path("ccsd_spin_orbital")
LAGRANGIAN = (
    'include "ccsd_spin_orbital.spec"\n'
    "input l1[o,v], l2[o,o,v,v] antisymmetric (0,1) (2,3)\noutput L\n"
    "L = e + l1[i,a]*r1[i,a] + 1/4*l2[i,j,a,b]*r2[i,j,a,b]\n"
)
FORMS = ("closed-shell", "unrestricted")


def spec(text: str) -> System:
    return read_spec(HEAD + text, "test.spec")


def deviation(
    source: System, form: str, extents: dict[str, int], arrays: Arrays | None = None
) -> float:
    """The largest difference of a derived system from its source, at random blocks."""
    derived = tcgen.spin_integrated(source, form)
    derived.verify()
    arrays = random_arrays(derived, extents, seed=5) | (arrays or {})
    found = evaluate_system(derived, arrays, extents)
    whole = tcgen.spin_orbital(source, arrays, form)
    labelled = ("occupied", "virtual", "general")
    others = (s for s in source.spaces if not s.parts and s.kind not in labelled)
    sizes = {s.name: extents[s.name] for s in others}
    for space in (s for s in source.spaces if s.name not in sizes and not s.parts):
        sizes[space.name] = extents[space.name] + extents.get(
            space.name.upper(), extents[space.name]
        )
    for tensor in source.inputs:  # those that no block of the result depends on
        whole.setdefault(tensor.name, np.zeros(caller_shape(tensor, sizes)))
    expected = evaluate_system(source, whole, sizes)
    again = tcgen.spin_orbital(source, found, form)
    assert set(again) == set(expected)
    return max(float(np.abs(again[n] - expected[n]).max(initial=0)) for n in expected)


def sizes_of(form: str) -> dict[str, int]:
    return {"o": 2, "v": 3} | ({"O": 1, "V": 4} if form == "unrestricted" else {})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "name",
    [
        "mp2_spin_orbital",
        "ccd_spin_orbital",
        "ccsd_spin_orbital",
        "t_spin_orbital",
        "rpa_sosex_spin_orbital",
    ],
)
def test_shipped_specs(name: str, form: str) -> None:
    source = read_spec_file(tcgen.spec_path(name))
    assert deviation(source, form, sizes_of(form)) < 1e-12


@pytest.mark.parametrize("form", FORMS)
def test_sigma_vector_of_eom(form: str) -> None:
    ground = read_spec_file(CCSD)
    sigma = tcgen.jvp(ground, {"t1": "c1", "t2": "c2"}, of=["r1", "r2"])
    assert deviation(sigma, form, sizes_of(form)) < 1e-12


VECTORS = (
    "input f_oo[o,o] symmetric (0,1) constant, f_vv[v,v] constant, w_ovvo[o,v,v,o] constant\n"
    "input v_oovv[o,o,v,v] antisymmetric (0,1) (2,3) constant\n"
    "input r1[o,v] volatile, r2[o,o,v,v] antisymmetric (0,1) (2,3) volatile\n"
)


@pytest.mark.parametrize(
    "equations",
    [
        "output s1, s2\ns1[i,a] = f_vv[a,b]*r1[i,b] - f_oo[j,i]*r1[j,a] + w_ovvo[j,a,b,i]*r1[j,b]\n"
        "s1[i,a] += v_oovv[i,j,a,b]*r1[j,b]\n"
        "s2[i,j,a,b] = P(a,b) f_vv[b,c]*r2[i,j,a,c] + P(i,j) P(a,b) w_ovvo[k,b,c,j]*r2[i,k,a,c]\n",
        # an intermediate of vectors, and one of integrals
        "output s1\nX[i,a] = r2[i,j,a,b]*f_vv[c,b]*v_oovv[j,k,c,d]*r0[k,d]\n"
        "s1[i,a] = X[i,a] + g[i,j]*r1[j,a]\ng[i,j] = f_oo[i,k]*f_oo[k,j]\n",
    ],
    ids=["sigma", "intermediates"],
)
def test_triplets(equations: str) -> None:
    """A vector that changes sign where all spins are flipped, times equations without spin."""
    text = VECTORS + ("input r0[o,v] constant\n" if "r0" in equations else "")
    source = spec(text + equations)
    assert deviation(source, "triplet", {"o": 2, "v": 3}) < 1e-12
    again = read_spec(spec_text(tcgen.spin_integrated(source, "triplet")), "again.spec")
    names = {t.name: t for t in again.inputs}
    assert [(s.perm, s.sign) for s in names["r2"].symmetry] == [((1, 0, 3, 2), -1)]
    if "r0" in equations:
        return
    blocks = random_arrays(again, {"o": 2, "v": 3}, seed=2)
    whole = tcgen.spin_orbital(source, blocks, "triplet")
    assert np.array_equal(whole["r1"][:2, :3], -whole["r1"][2:, 3:])
    assert np.array_equal(whole["r2"][:2, :2, :3, :3], -whole["r2"][2:, 2:, 3:, 3:])
    assert np.array_equal(tcgen.spin_blocks(source, whole, "triplet")["r2"], blocks["r2"])


def test_eom_of_triplets() -> None:
    source = read_spec_file(tcgen.spec_path("eom_ee_ccsd_spin_orbital"))
    assert deviation(source, "triplet", {"o": 2, "v": 3, "roots": 2}) < 1e-12


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("output e\ne = r1[i,a]*r1[i,a]", SpecError, "e linear triplets constant"),
        ("output s\ns[i,a] = exp(r1[i,a])", SpecError, "s[i,a] linear triplets"),
        ("output s\ns[i,a] = r1[i,a] + f_oo[i,j]*x[j,a]", SpecError, "s[i,a] linear triplets"),
    ],
)
def test_equations_without_triplets(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=mentions(words)):
        tcgen.spin_integrated(spec(VECTORS + "input x[o,v] constant\n" + text), "triplet")
    with pytest.raises(ArgumentError, match=mentions("no vectors volatile")):
        tcgen.spin_integrated(spec("input x[o,v] constant\noutput s\ns[i,a] = x[i,a]"), "triplet")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_lambda_equations(form: str) -> None:
    lagrangian = read_spec(LAGRANGIAN, "lambda.spec", folder=CCSD.parent)
    equations = tcgen.derivative(lagrangian, ("t1", "t2"), of="L")
    assert deviation(equations, form, sizes_of(form)) < 1e-12


def antisymmetric_triples(o: int, v: int) -> np.ndarray:
    """The block (alpha, alpha, beta) of triples of a singlet, from a spin-free amplitude."""
    free = np.random.default_rng(1).normal(size=(o, o, o, v, v, v))
    free = sum(free.transpose(*p, *(3 + k for k in p)) for p in permutations(range(3)))
    return free - free.transpose(0, 1, 2, 4, 3, 5)


@pytest.mark.parametrize("form", FORMS)
def test_triples(form: str) -> None:
    source = spec(
        "input t3[o,o,o,v,v,v] antisymmetric (0,1,2) (3,4,5)\n"
        "input v_vvvv[v,v,v,v] antisymmetric (0,1) (2,3)\n"
        "input v_ovvo[o,v,v,o], f_ov[o,v]\noutput r3, r2\n"
        "index e f : v\n"
        "r3[i,j,k,a,b,c] = 1/2*P(c/ab) v_vvvv[a,b,e,f]*t3[i,j,k,e,f,c]\n"
        "r3[i,j,k,a,b,c] += P(i/jk) P(a/bc) t3[l,j,k,e,b,c]*v_ovvo[l,a,e,i]\n"
        "r2[i,j,a,b] = f_ov[k,c]*t3[i,j,k,a,b,c]\n"
    )
    derived = tcgen.spin_integrated(source, form)
    triples = [t.name for t in derived.inputs if t.rank == 6]
    if form == "unrestricted":
        assert triples == ["t3aaa", "t3aab", "t3abb", "t3bbb"]
        assert deviation(source, form, sizes_of(form) | {"O": 2}) < 1e-12
    else:
        assert triples == ["t3"]
        assert deviation(source, form, sizes_of(form), {"t3": antisymmetric_triples(2, 3)}) < 1e-12


def test_closed_shell_energy_is_written_with_one_amplitude() -> None:
    source = spec(
        "input v_oovv[o,o,v,v] antisymmetric (0,1) (2,3), t2[o,o,v,v] antisymmetric (0,1) (2,3)\n"
        "output e\ne = 1/4*v_oovv[i,j,a,b]*t2[i,j,a,b]"
    )
    derived = tcgen.spin_integrated(source, "closed-shell")
    assert [t.name for t in derived.inputs] == ["v_oovv", "t2"]
    assert [str(t.coeff) for t in derived.equations[0].terms] == ["2", "-1"]


def test_permutations_stay_inside_blocks() -> None:
    source = spec(
        "input x[o,v], y[o,v], u[o,o], w[v,v]\noutput r\nr[i,j,a,b] = P(i,j) P(a,b) x[i,a]*y[j,b]"
    )
    closed = tcgen.spin_integrated(source, "closed-shell")
    assert "S(ia,jb) x[i,a]*y[j,b]" in spec_text(closed)
    (same, *_) = tcgen.spin_integrated(source, "unrestricted").equations
    assert [len(term.perms) for term in same.terms] == [4]


def test_names_of_unrestricted_blocks() -> None:
    derived = tcgen.spin_integrated(read_spec_file(CCSD), "unrestricted")
    names = [t.name for t in derived.inputs]
    assert {"f_oo", "f_OO", "v_oOvV", "v_oVvO", "v_OvVv", "t1a", "t1b", "t2ab"} <= set(names)
    assert [t.name for t in derived.outputs] == ["e", "r1a", "r1b", "r2aa", "r2ab", "r2bb"]


def test_default_extents_are_shared_out() -> None:
    source = read_spec("space o occupied = 5\nindex i j : o\ninput f[o,o]\noutput e\ne = f[i,i]")
    derived = tcgen.spin_integrated(source, "unrestricted")
    assert [(s.name, s.extent) for s in derived.spaces] == [("o", 3), ("O", 2)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "text",
    [
        # denominators are equal for all spins, and the energies of beta orbitals their own
        "input g[o,o,v,v] antisymmetric (0,1) (2,3), e_o[o], e_v[v]\noutput t\n"
        "d[i,j,a,b] = e_o[i] + e_o[j] - e_v[a] - e_v[b]\nt[i,j,a,b] = g[i,j,a,b]/d[i,j,a,b]",
        # squares, element by element, are not invariants: all of their blocks are computed
        "input g[o,o,v,v] antisymmetric (0,1) (2,3), h[o,o,v,v]\noutput q, e\n"
        "q[i,j,a,b] = g[i,j,a,b]**2 + h[i,j,a,b]\ne = q[i,j,a,b]*h[i,j,a,b]",
        # deltas, traces and an axis without spin
        "space x auxiliary = 2\nindex p : x\ninput b[x,o,v], f[o,o]\noutput r, e\n"
        "r[i,j,a,b] = delta[i,j]*b[p,k,a]*b[p,k,b] + 2*f[i,j]*f[k,k]*b[p,l,a]*b[p,l,b]\n"
        "e = b[p,i,a]*b[p,i,a]",
        # integrals in chemists' order
        "input g[o,v,o,v] symmetry (0,1)<->(2,3) conserves (0,2)->(1,3), t[o,v]\noutput e, r\n"
        "e = g[i,a,j,b]*t[i,a]*t[j,b]\nr[i,a] = g[i,a,j,b]*t[j,b] - g[i,b,j,a]*t[j,b]",
        # integrals without exchange conserve the spin of each electron, in either order of axes
        "input g[o,v,o,v] symmetry (0,1)<->(2,3) from eri(chemist), t[o,v]\noutput e, r\n"
        "e = g[i,a,j,b]*t[i,a]*t[j,b]\nr[i,a] = g[i,a,j,b]*t[j,b] - g[i,b,j,a]*t[j,b]",
        "input w[o,o,v,v] from eri(physicist), v[o,o,v,v] antisymmetric (0,1) (2,3), "
        "t[o,o,v,v]\noutput e, s\ne = w[i,j,a,b]*t[i,j,a,b] - w[i,j,b,a]*t[i,j,a,b]\n"
        "r[i,j,a,b] = w[i,k,a,c]*t[k,j,c,b] + v[i,k,a,c]*w[k,j,c,b] + t[i,j,a,b]\n"
        "q[i,j,a,b] = S(ia,jb) w[i,k,a,c]*t[k,j,c,b]\n"
        "s[i,j,a,b] = r[i,k,a,c]*t[k,j,c,b] + q[i,k,a,c]*r[k,j,c,b] + q[i,j,a,b]",
        # an output whose axes are in chemists' order
        "input t[o,v]\noutput r\nr[i,a,j,b] = t[i,a]*t[j,b] - t[i,b]*t[j,a]",
        # ionised states
        "input r1[o], r2[o,o,v] antisymmetric (0,1) conserves (0,1)->(2), f_oo[o,o], f_ov[o,v]\n"
        "output s1, s2\ns1[i] = f_oo[k,i]*r1[k] + f_ov[k,c]*r2[i,k,c]\n"
        "s2[i,j,a] = P(i,j) f_oo[k,i]*r2[k,j,a] + P(i,j) f_ov[i,a]*r1[j]",
    ],
    ids=[
        "denominators",
        "squares",
        "deltas",
        "chemists",
        "electrons",
        "rings",
        "chemists-output",
        "ionised",
    ],
)
def test_other_equations(text: str, form: str) -> None:
    assert deviation(spec(text), form, sizes_of(form) | {"x": 2}) < 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "text",
    [
        "input t[o,v], x[o]\noutput n, r\n"
        "n = sum(i,a) x[i]*cos(t[i,a])\nr[i,a] = exp(t[i,a]) + t[i,a]*x[i]",
        "input t[o,v], f[o,o]\noutput n\nm[i,a] = 1 + t[i,a]\n"
        "n = sum(i,j,a,b) m[i,a]*maximum(t[i,b],f[i,j]) + sum(i,a) (2 + t[i,a])**(-2)",
        "space x auxiliary = 2\nindex p : x\ninput b[x,o,v]\noutput n, s\n"
        "n = sum(p,i,a) exp(b[p,i,a])\ns[i] = sum(p,a) 1/(3 + b[p,i,a])",
    ],
    ids=["left", "intermediate", "auxiliary"],
)
def test_functions_of_blocks_that_vanish_count_their_elements(text: str, form: str) -> None:
    """exp(t[i,a]) is 1 where the spins of i and a differ, for each such i and a."""
    assert deviation(spec(text), form, sizes_of(form) | {"x": 2}) < 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("function", [*FUNCTIONS, *REAL_FUNCTIONS])
def test_each_function_of_zero(function: str, form: str) -> None:
    source = spec(f"input t[o,v]\noutput n\nn = sum(i,a) {function}(1/4*t[i,a])")
    if function == "log":
        with pytest.raises(SpecError, match=mentions("log(0) n finite")):
            tcgen.spin_integrated(source, form)
    else:
        t = {name: np.full(shape, 0.3) for name, shape in SHAPES[form].items()}
        assert deviation(source, form, sizes_of(form), t) < 1e-12


SHAPES = {"closed-shell": {"t": (2, 3)}, "unrestricted": {"t_a": (2, 3), "t_b": (1, 4)}}


@pytest.mark.parametrize(
    "expression",
    [
        *("1/t[i,a]", "t[i,a]**(-1)", "log(1 - exp(t[i,a]))", "mod(2,t[i,a])", "exp(-1/t[i,a])"),
        *("t[i,a]/t[i,a]", "sin(t[i,a])/t[i,a]", "t[i,a]*log(t[i,a])", "t[i,a]/tanh(t[i,a])"),
        *("1/log(cos(t[i,a]))", "1/maximum(t[i,a],0)", "arccos(2 + t[i,a])"),
    ],
)
def test_functions_that_are_infinite_at_zero_are_refused(expression: str) -> None:
    source = spec(f"input t[o,v]\noutput n\nn = sum(i,a) {expression}")
    with pytest.raises(SpecError, match=mentions("test.spec:7:5 n spins finite")):
        tcgen.spin_integrated(source, "unrestricted")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "text",
    [
        "input t[o,o] stored (1,0), f[o,o]\noutput r stored (1,0)\nr[i,j] = t[i,k]*f[k,j]",
        "input t[v,o] stored (1,0), f[o,o] symmetric (0,1) packed (0,1)\noutput e\n"
        "e = f[i,j]*t[a,i]*t[a,j]",
        "input v[o,o,v,v] antisymmetric (0,1) (2,3) stored (2,3,0,1) packed (2,3) packed (0,1)\n"
        "output r antisymmetric (0,1) (2,3) packed (0,1)\n"
        "r[i,j,a,b] = v[i,j,a,b] + v[i,j,c,d]*v[k,l,c,d]*v[k,l,a,b]",
    ],
)
def test_blocks_are_stored_and_packed_as_their_tensor(text: str, form: str) -> None:
    source = spec(text)
    assert deviation(source, form, sizes_of(form)) < 1e-12
    derived = tcgen.spin_integrated(source, form)
    again = read_spec(spec_text(derived))
    assert [t.storage for t in again.inputs] == [t.storage for t in derived.inputs]
    layouts = {t.storage for t in (*derived.inputs, *derived.outputs)}
    if form == "unrestricted":  # blocks of equal spins have the layout of their tensor
        assert {t.storage for t in (*source.inputs, *source.outputs)} <= layouts
    sizes = sizes_of(form) | ({"O": 0, "V": 1} if form == "unrestricted" else {})
    arrays = random_arrays(derived, sizes, seed=2)
    whole = tcgen.spin_orbital(source, arrays, form)
    spins = {s: [0] * sizes[s] + [1] * sizes.get(s.upper(), sizes[s]) for s in "ov"}
    for name, block in tcgen.spin_blocks(source, whole, form, orbspin=spins).items():
        np.testing.assert_array_equal(block, arrays[name])


def test_arrays_of_another_shape_than_stored_are_refused() -> None:
    source = spec("input t[v,o] stored (1,0), f[o,o] symmetric (0,1) packed (0,1)\noutput e\n"
                  "e = f[i,j]*t[a,i]*t[a,j]")  # fmt: skip
    for arrays in ({"t": np.ones((4, 2)), "f": np.ones(3)}, {"f": np.ones(4)}):
        with pytest.raises((ShapeError, ArgumentError), match=mentions("o")):
            tcgen.spin_blocks(source, arrays | {"t": np.ones((6, 4))}, "closed-shell")


def test_closed_shell_has_one_block_of_integrals_without_exchange() -> None:
    derived = tcgen.spin_integrated(
        spec("input w[o,o,v,v] from eri(physicist)\noutput e\ne = w[i,j,a,b]*w[i,j,a,b]"),
        "closed-shell",
    )
    assert [t.name for t in derived.inputs] == ["w"]
    assert derived.pretty().strip() == "e = sum(i,j,a,b) 4*w[i,j,a,b]*w[i,j,a,b]"


def test_rings_of_a_closed_shell_are_singlets() -> None:
    rings = read_spec_file(tcgen.spec_path("rpa_sosex_spin_orbital"))
    derived = tcgen.spin_integrated(rings, "closed-shell")
    assert [t.name for t in derived.inputs] == ["w", "e_o", "e_v", "t", "t_abba"]
    assert [t.name for t in derived.outputs] == ["r", "r_abba", "e", "e_sosex"]


def test_unknown_form_and_systems_without_spin() -> None:
    source = spec("input f[o,o]\noutput e\ne = f[i,i]")
    with pytest.raises(ArgumentError, match=mentions("'open' closed-shell unrestricted")):
        tcgen.spin_integrated(source, "open")
    plain = read_spec("space n\nindex i : n\ninput f[n,n]\noutput e\ne = f[i,i]")
    with pytest.raises(ArgumentError, match=mentions("n space o occupied")):
        tcgen.spin_integrated(plain, "closed-shell")


def test_contradicting_conservation_is_refused_at_its_term() -> None:
    source = spec(
        "input g[o,v,o,v], t[o,v]\noutput e\ne = g[i,a,i,a]\ne += g[i,a,j,b]*t[i,a]*t[j,b]"
    )
    facts = "test.spec:8 g[i,a,j,b] conserves (0,2)->(1,3)"
    with pytest.raises(SpecError, match=mentions(facts)):
        tcgen.spin_integrated(source, "closed-shell")


def test_output_that_breaks_its_declared_conservation() -> None:
    source = spec("input t[o,v]\noutput r conserves (0,1)->(2,3)\nr[i,a,j,b] = t[i,a]*t[j,b]")
    facts = "test.spec:7 i,a to j,b alpha beta conserves of r"
    for form in FORMS:
        with pytest.raises(SpecError, match=mentions(facts)):
            tcgen.spin_integrated(source, form)


@pytest.mark.parametrize(
    ("declaration", "facts"),
    [
        ("g[o,o,v]", "g[o,o,v] 3 axes conserves (0,1)->(2)"),
        ("g[n,o,v] conserves (0)->(1)", "axis 0 space n occupied"),
        ("g[o,o,v,v] conserves (0)->(2)", "axis 1 neither side"),
        ("g[o,o,o,o] symmetric (1,2)", "(0, 2, 1, 3) (0,1)->(2,3) conserves"),
        (
            "g[o,o,v,v] conserves (0,2)->(1,3) from eri(physicist)",
            "g[o,o,v,v] <pq|rs> 0 and 2 conserves (0,1)->(2,3)",
        ),
        (
            "g[o,o,v,v] antisymmetric (0,1) from eri(physicist)",
            "g[o,o,v,v] (1, 0, 2, 3) <pq|rs> (0, 2) eri(antisymmetric)",
        ),
    ],
)
def test_inputs_that_cannot_conserve_spin(declaration: str, facts: str) -> None:
    letters = {"o": iter("ijkl"), "v": iter("abcd"), "n": iter("z")}
    axes = declaration[2 : declaration.index("]")].split(",")
    indices = ",".join(next(letters[axis]) for axis in axes)
    source = spec(
        f"space n\nindex z : n\ninput {declaration}\noutput e\ne = g[{indices}]*g[{indices}]"
    )
    with pytest.raises(ArgumentError, match=mentions(facts)):
        tcgen.spin_integrated(source, "closed-shell")
