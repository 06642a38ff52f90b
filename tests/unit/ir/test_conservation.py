"""What tensors over graded spaces conserve: signs, charges, labels, and equations that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen import Grading, SpecError
from tcgen.compiler.driver import compile_system
from tcgen.frontend import read_spec
from tcgen.frontend.einsum import subscripts_system
from tcgen.interp import evaluate_system
from tcgen.ir.conservation import axis_signs, conservation
from tcgen.ir.system import System, with_inputs_on_disk
from tcgen.ir.tensor import symmetry_group
from tcgen.options import Options
from tcgen.records.signature import Signature
from tcgen.resources import shipped_specs

HEAD = (
    "space o occupied graded\nspace v virtual graded\nspace x auxiliary\n"
    "index i j k l m n : o\nindex a b c d e f : v\nindex Q : x\n"
)
INPUTS = (
    "input f_oo[o,o], f_ov[o,v], f_vv[v,v], t1[o,v], t2[o,o,v,v], w[o,o,v,v]\n"
    "input e_o[o], e_v[v], g[o,v,o,v] from eri(chemist), B[x,o,v]\n"
)


def system(text: str) -> System:
    return read_spec(HEAD + INPUTS + text, "test.spec")


def signature(text: str, name: str = "r") -> Signature:
    return axis_signs(system(f"output {name}\n{text}"))[name]


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("r[i,a] = f_ov[i,b]*f_vv[b,a]", (1, -1)),
        ("r[a,i] = t1[i,a]", (-1, 1)),
        ("r[i,j,a,b] = t1[i,a]*t1[j,b]", (1, 1, -1, -1)),
        ("r[i,a,j,b] = t1[i,a]*t1[j,b]", (1, -1, 1, -1)),
        ("r[i,a,j,b] = g[i,a,j,b] - 2*t2[i,j,a,b]*0", (1, -1, 1, -1)),
        ("r[i,a,b,j] = g[i,a,j,b]", (1, -1, -1, 1)),
        ("r[i,j] = P(i,j) t1[i,a]*f_ov[j,a]", (1, -1)),
        ("r[i,j,a,b] = P(i,j) P(a,b) t1[i,a]*t1[j,b]", (1, 1, -1, -1)),
        ("r[i,a] = t1[i,a]/(e_o[i] - e_v[a])", (1, -1)),
        ("r[i,a] = tanh(t1[i,a])*exp(e_o[i])", (1, -1)),
        ("r[i,a] = (t1[i,a] + f_ov[i,a])**1*e_o[i]", (1, -1)),
        ("r[i,a] = where(less(e_o[i], 0), t1[i,a], f_ov[i,a])", (1, -1)),
        ("r[Q,i,a] = B[Q,i,b]*f_vv[b,a]", (0, 1, -1)),
        ("r[i,j] = f_oo[i,k]*delta[k,j]", (1, -1)),
        ("r[i,j] = f_oo[i,j] + delta[i,j]", (1, -1)),
        # labels: all blocks exist
        ("r[i,a] = e_o[i] - e_v[a]", (0, 0)),
        ("r[i] = f_oo[i,i]", (0,)),
        ("r[i,a] = f_oo[i,i] - f_vv[a,a] + e_o[i]", (0, 0)),
        ("r[i,j] = t2[i,j,a,b]*w[i,j,a,b]", (0, 0)),
        ("r[i] = t1[i,a]*f_ov[i,a]", (0,)),
        ("r[i] = exp(e_o[i])", (0,)),
        # an axis beside what is conserved
        ("r[i,j,a] = t1[i,a]*e_o[j]", (1, 0, -1)),
        ("r[i,j,a] = t1[i,a]*f_oo[j,j]", (1, 0, -1)),
        # both factors are zero outside the same blocks
        ("r[i,a] = t1[i,a]*f_ov[i,a]", (1, -1)),
        ("r[i,a] = t1[i,a]**2", (1, -1)),
    ],
)
def test_signs_of_left_sides(text: str, signs: tuple[int, ...]) -> None:
    wanted = Signature(signs)
    assert signature(text) in (wanted, wanted.negative())


def test_inputs_and_their_declarations() -> None:
    found = axis_signs(
        read_spec(
            HEAD + "input t2[o,o,v,v], g[i,a,j,b] conserves (i,j)->(a,b), B[x,o,v], e_o[o], q[o,v] "
            "label\ninput d[x,o,o] from dipole, r1[o] charge y, r2[o,o,v] conserves (0,1)->(2) "
            "charge y, u[o,o] conserves (0,1)->() charge z\noutput e\n"
            "e = t2[i,j,a,b]*g[i,a,j,b] + B[Q,i,a]*q[i,a]*d[Q,i,i]*e_o[i]*r1[i]*r2[i,i,a]*u[i,i]*0"
        )
    )
    assert found["t2"].signs == (1, 1, -1, -1)
    assert found["g"].signs == (1, -1, 1, -1)
    assert found["B"].signs == (0, 1, -1)
    assert found["r1"] == Signature((1,), (("y", 1),))
    assert found["r2"] == Signature((1, 1, -1), (("y", 1),))
    assert found["u"] == Signature((1, 1), (("z", 1),))
    assert all(found[name].label for name in ("e_o", "q", "d", "e"))


def test_charges_of_intermediates() -> None:
    text = (
        HEAD + "input r1[o,v] charge x, l1[o,v] charge y, f_oo[o,o], t1[o,v]\n"
        "output s, n, p, c\ns[i,a] = f_oo[j,i]*r1[j,a]\nn = r1[i,a]*l1[i,a]\n"
        "p[i,a,j,b] = r1[i,a]*l1[j,b]\nc = r1[i,a]*t1[i,a]"
    )
    found = axis_signs(read_spec(text))
    assert found["s"] == Signature((1, -1), (("x", 1),))
    assert found["n"].charge in ((("x", 1), ("y", -1)), (("x", -1), ("y", 1)))
    assert found["p"] == Signature((1, -1, 1, -1), (("x", 1), ("y", 1)))
    assert found["c"].charge == (("x", 1),)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "r[i,j,a,b] = z[k,c,i,a]*t2[k,j,c,b]\ninput z[o,v,o,v]",
            "test.spec:10 momentum t2[k,j,c,b] (k,j)->(c,b) conserves (0,2)->(1,3)",
        ),
        ("r[i,a] = f_ov[i,a] + e_o[i]*e_v[a]", "test.spec:10 e_o[i]*e_v[a] nothing (i)->(a)"),
        ("r[i,a] = f_ov[i,a] + exp(t1[i,a])", "test.spec:10 exp(t1[i,a]) not zero at zero label"),
        ("r[i,a] = 1/t1[i,a]", "test.spec:10 denominator t1[i,a] label"),
        ("r[i] = max(a) t1[i,a]", "test.spec:10 max zeros t1[i,a] label"),
        ("r[i] = prod(a) abs(t1[i,a])", "test.spec:10 prod zeros t1[i,a]"),
        ("r[i,a] = e_o[i]*e_v[a]/(1 + t1[i,a])", "test.spec:10 denominator t1[i,a]"),
        ("r[a] = sum(i) t1[i,b]*f_vv[b,a]", "test.spec:10 index i t1[i,b] no other factor label"),
        (
            "r[i,a] = f_ov[i,a]\nr[i,a] += t1[j,b]*w[i,j,a,b] + t1[j,a]*w[i,j,c,c]",
            "test.spec:11 momentum t1[j,a]*w[i,j,c,c]",
        ),
    ],
)
def test_terms_that_conserve_nothing(text: str, facts: str) -> None:
    with pytest.raises(SpecError, match=mentions(facts)):
        system(f"output r\n{text}")


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "space p = o + x\nindex q r : p\ninput h[p,p]\noutput e\ne = h[q,r]*h[r,q]",
            "test.spec:11 h[p,p] joins o graded x not declare",
        ),
        (
            "input G[v,v,v,v] generated\noutput r\nr[i,j,a,b] = G[a,b,c,d]*t2[i,j,c,d]",
            "test.spec:9 G generated graded whole",
        ),
        (
            "input z[o,o,v]\noutput r\nr[i,j,a] = z[i,j,a]",
            "test.spec:9 z[o,o,v] 3 graded axes conserves (0,1)->(2)",
        ),
        (
            "input z[o,o,v] conserves (0)->(2)\noutput r\nr[i,j,a] = z[i,j,a]",
            "test.spec:9 axis 1 z[o,o,v] neither side",
        ),
        (
            "input z[o,o,o,o] symmetric (1,2)\noutput r\nr[i,j,k,l] = z[i,j,k,l]",
            "test.spec:9 z symmetry (0,1)->(2,3)",
        ),
        (
            "output r charge y\nr[i,a] = t1[i,a]",
            "test.spec:10 t1[i,a] declared charge y",
        ),
        (
            "output r[o,v,o,v] conserves (0,2)->(1,3)\nr[i,a,j,b] = t2[i,j,a,b]*1",
            "no error",
        ),
    ],
)
def test_declarations_that_cannot_be_graded(text: str, facts: str) -> None:
    if facts == "no error":
        assert axis_signs(system(text))["r"].signs == (1, -1, 1, -1)
        return
    with pytest.raises(SpecError, match=mentions(facts)):
        system(text)


def test_outputs_declared_as_labels_may_be_anything() -> None:
    found = system("output r label\nr[i,a] = f_ov[i,a] + e_o[i]*e_v[a]")
    assert axis_signs(found)["r"].label


def test_axes_in_any_order_for_groups_whose_elements_are_their_own_inverses() -> None:
    text = (tcgen.spec_path("mp2_closed_shell")).read_text()
    mp2 = read_spec(text)
    assert conservation(mp2, graded=["o", "v"])[1]
    found = axis_signs(mp2, graded=["o", "v"], own_inverse=True)
    assert found["g"].signs == (1, 1, 1, 1)
    with pytest.raises(SpecError, match=mentions("g[i,b,j,a] conserves (0,2)->(1,3)")):
        read_spec(text.replace("occupied", "occupied graded").replace("virtual", "virtual graded"))
    assert axis_signs(mp2)["g"].label


def test_intermediates_that_may_be_turned_around_in_several_ways() -> None:
    # y is read with t1[j,b] as it is, and with k and b exchanged in place of its conjugate
    text = "output e\ny[i,a,j,b] = t1[i,a]*t1[j,b]\ne = y[i,a,j,b]*w[i,b,a,j]"
    text = text.replace("w[i,b,a,j]", "q[i,b,j,a]").replace("output", "input q[o,v,o,v]\noutput")
    assert axis_signs(system(text))["y"].signs in ((1, -1, -1, 1), (-1, 1, 1, -1))


GROUPS = (
    ((2,), ((0, 1, 1), (0, 1, 0, 1))),
    ((3,), ((0, 1, 2), (2, 1, 0, 2))),
    ((2, 3), ((0, 4, 5), (1, 2, 0, 5))),
)


def masked(shape: list[int], spaces: tuple[str, ...], given: Signature, g: Grading, x: int) -> Any:
    total = np.zeros(shape, dtype=int)
    for axis, (space, sign) in enumerate(zip(spaces, given.signs, strict=True)):
        if sign:
            own = np.array(g.orbitals(space))
            own = own if sign > 0 else g.negation[own]
            total = g.addition[
                total, own.reshape([-1 if k == axis else 1 for k in range(len(shape))])
            ]
    charge = 0
    for _, factor in given.charge:
        for _ in range(abs(factor)):
            charge = g.addition[charge, x if factor > 0 else g.negation[x]]
    return total == charge


@pytest.mark.parametrize(("moduli", "elements"), GROUPS)
@pytest.mark.parametrize("kind", ["written", "ccsd", "t", "ip"])
def test_elements_outside_the_blocks_are_zero(
    kind: str, moduli: tuple[int, ...], elements: tuple[tuple[int, ...], ...]
) -> None:
    """The signatures of all outputs, by the interpreter with arrays that have no other elements."""
    names = {"ccsd": "ccsd_complex_spin_orbital", "t": "t_complex_spin_orbital"}
    names["ip"] = "eom_ip_ccsd_complex_spin_orbital"
    if kind == "written":
        equations = system(
            "output r, s, u, y, z\nr[i,a] = t1[i,b]*f_vv[b,a]/(e_o[i] + 3)\n"
            "s[i,a,j,b] = g[i,a,k,c]*g[k,c,j,b]\nu[i,j] = t2[i,j,a,b]*w[i,j,a,b]\n"
            "y[i,j,a] = t1[i,a]*f_oo[j,j]\nz[j,i] = t1[i,b]*f_ov[j,b]"
        )
    else:
        equations = tcgen.read_spec_file(tcgen.spec_path(names[kind]))
    g = Grading(moduli, dict(zip("ov", elements, strict=True)))
    x = g.element(1)
    found = axis_signs(equations)
    extents = {"o": len(elements[0]), "v": len(elements[1]), "x": 2}
    rng = np.random.default_rng(5)
    arrays = {}
    for tensor in equations.inputs:
        spaces = tuple(s.name for s in tensor.spaces)
        shape = [extents[s] for s in spaces]
        draw = rng.random(shape)
        if not tensor.real:
            draw = draw + 1j * rng.random(shape)
        group = symmetry_group(tensor)
        parts = [s.sign * draw.transpose(s.perm) for s in group]
        whole = sum(p.conj() if s.conj else p for s, p in zip(group, parts, strict=True))
        arrays[tensor.name] = np.where(masked(shape, spaces, found[tensor.name], g, x), whole, 0)
    values = evaluate_system(equations, arrays, extents)
    for tensor in equations.outputs:
        spaces = tuple(s.name for s in tensor.spaces)
        allowed = masked([extents[s] for s in spaces], spaces, found[tensor.name], g, x)
        assert np.any(values[tensor.name]) or tensor.rank == 1, tensor.name
        assert np.all(np.abs(values[tensor.name][~allowed]) < 1e-13), tensor.name


@pytest.mark.parametrize("name", ["ccd_complex_spin_orbital", "t_complex_spin_orbital"])
def test_sequences_conserve_what_their_system_does(name: str) -> None:
    equations = tcgen.read_spec_file(tcgen.spec_path(name))
    options = Options(extents=(("o", 4), ("v", 7)), target="numpy", objective="none")
    sequence = compile_system(equations, options).program
    written, made = axis_signs(equations), axis_signs(sequence)
    for tensor in (*equations.inputs, *equations.outputs):
        one, other = written[tensor.name], made[tensor.name]
        assert one in (other, other.negative())
    assert set(made) == {t.name for t in sequence.tensors}


def test_einsum_of_graded_spaces() -> None:
    made = subscripts_system("ij,jk->ik")
    spaces = [s.name for s in made.spaces]
    found = axis_signs(made, graded=spaces)
    assert all(found[t.name].signs == (1, -1) for t in made.tensors)


@pytest.mark.parametrize("form", ["closed-shell", "unrestricted"])
@pytest.mark.parametrize("method", ["cepa0", "ccd", "mp2", "eom_ip_ccsd", "eom_ea_ccsd"])
def test_spin_integration_keeps_what_is_conserved(method: str, form: str) -> None:
    equations = tcgen.read_spec_file(tcgen.spec_path(f"{method}_complex_spin_orbital"))
    made = tcgen.spin_integrated(equations, form)
    assert all(s.graded and s.strict for s in made.spaces)
    found = axis_signs(made)
    whole = axis_signs(equations)
    for tensor in made.inputs:
        if tensor.name in whole:
            assert found[tensor.name] == whole[tensor.name]
        assert sum(found[tensor.name].signs) in (-1, 0, 1)
        assert bool(found[tensor.name].charge) == tensor.name.startswith("r")
    again = read_spec(tcgen.spec_text(made))
    assert axis_signs(again) == found


def test_derivatives_keep_what_is_conserved() -> None:
    lagrangian = tcgen.read_spec_file(tcgen.spec_path("ccsd_lagrangian_complex_spin_orbital"))
    made = tcgen.derivative(lagrangian, ["t1", "l2", "f_oo"], of="L")
    found = axis_signs(made)
    assert found["d_L_t1"].signs in ((1, -1), (-1, 1))
    assert found["d_L_l2"].signs in ((1, 1, -1, -1), (-1, -1, 1, 1))
    assert found["d_L_f_oo"].signs in ((1, -1), (-1, 1))
    tangent = tcgen.jvp(lagrangian, {"t1": "r1"})
    assert not conservation(tangent)[1]
    shipped = tcgen.spec_path("ccsd_lambda_complex_spin_orbital").read_text(encoding="utf-8")
    text = tcgen.spec_text(tcgen.derivative(lagrangian, ["t1", "t2"], of="L"))
    body = [line for line in shipped.splitlines() if not line.startswith("#")]
    assert body == [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.slow
def test_shipped_equations_conserve_irreps_of_point_groups() -> None:
    """All but those with generated inputs, and vectors without a charge."""
    found = {}
    for name, path in shipped_specs().items():
        equations = tcgen.read_spec_file(path)
        kinds = ("occupied", "virtual")
        graded = [s.name for s in equations.spaces if s.kind in kinds and not s.parts]
        faults = conservation(equations, graded=graded, own_inverse=True)[1]
        if faults:
            found[name] = faults[0].message
    assert {n for n, message in found.items() if "generated" in message} == {"a3a"}
    assert set(found) == {"a3a", "eom_ea_ccsd_spin_orbital", "eom_ip_ccsd_spin_orbital"}


def test_sliced_inputs_cannot_be_graded() -> None:
    equations = tcgen.read_spec_file(tcgen.spec_path("cepa0_complex_spin_orbital"))
    sliced = with_inputs_on_disk(equations, ("v_vvvv",))
    with pytest.raises(SpecError, match=mentions("v_vvvv sliced graded whole")):
        axis_signs(sliced)


def test_artifacts_hold_what_is_declared(tmp_path: Path) -> None:
    text = HEAD + "input f_ov[o,v], e_o[o] from energies, w[x]\noutput r\n"
    equations = read_spec(text + "r[i,a] = sum(Q) f_ov[i,a]*e_o[i]*w[Q]")
    tcgen.compile(equations, extents={"o": 2, "v": 3, "x": 1}, target="numpy").save(tmp_path / "a")
    manifest = (tmp_path / "a" / "manifest.json").read_text()
    assert '["Space","o",null,[],"occupied",true]' in manifest
    assert '["Space","x",null,[],"auxiliary"]' in manifest
    values = {"f_ov": np.ones((2, 3)), "e_o": np.array([1.0, 2.0]), "w": np.ones(1)}
    found = tcgen.load(tmp_path / "a")(**values)
    assert np.array_equal(found["r"], [[1, 1, 1], [2, 2, 2]])


def test_graded_auxiliary_functions() -> None:
    head = HEAD.replace("auxiliary", "auxiliary graded") + "output r\n"
    declared = "input B[x,o,v] from df, C[x,v,o] from df, g[o,v,o,v] from eri(chemist)\n"
    found = axis_signs(read_spec(head + declared + "r[i,a,j,b] = B[Q,i,a]*C[Q,b,j] + g[i,a,j,b]"))
    assert found["B"].signs == (-1, 1, -1)
    assert found["r"].signs == (1, -1, 1, -1)
    with pytest.raises(SpecError, match=mentions("g[i,a,j,b] (i,b)->(a,j) momentum")):
        read_spec(head + declared + "r[i,a,j,b] = B[Q,i,a]*B[Q,j,b]\nr[i,a,j,b] += g[i,a,j,b]")
    with pytest.raises(SpecError, match=mentions("B[x,o,v] 3 graded axes conserves")):
        read_spec(
            head + declared.replace("v] from df, C", "v], C") + "r[i,a,j,b] = B[Q,i,a]*C[Q,b,j]"
        )
