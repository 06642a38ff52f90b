"""Derivatives of systems: finite differences, chain rules, and messages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from support.messages import mentions
from tcgen.errors import ArgumentError
from tcgen.frontend import read_spec, read_spec_file, spec_text
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.ir.tensor import Role, Storage
from tcgen.testing import (
    assert_same_values,
    extents_for,
    random_arrays,
    split_starts,
    systems,
)

Arrays = dict[str, np.ndarray]
HEAD = "space o\nspace v\nindex i j k l : o\nindex a b c d : v\n"
STEP = 1e-5


def moved(arrays: Arrays, change: Arrays, step: float) -> Arrays:
    return {n: x + step * change[n] if n in change else x for n, x in arrays.items()}


def slope(system: System, arrays: Arrays, change: Arrays, extents: dict[str, int]) -> Arrays:
    """Central differences of fourth order."""
    found = [
        evaluate_system(system, moved(arrays, change, h * STEP), extents) for h in (2, 1, -1, -2)
    ]
    return {
        n: (-found[0][n] + 8 * found[1][n] - 8 * found[2][n] + found[3][n]) / (12 * STEP)
        for n in found[0]
    }


def check(system: System, wrt: tuple[str, ...], extents: dict[str, int]) -> None:
    """jvp against finite differences, and the derivative against jvp."""
    arrays, starts = split_starts(system, random_arrays(system, extents))
    assert not starts
    change = {n: x for n, x in random_arrays(system, extents, seed=7).items() if n in wrt}
    directions = {n: f"change_{n}" for n in wrt}
    linear = tcgen.jvp(system, directions)
    linear.verify()
    given_arrays = {**arrays, **{directions[n]: x for n, x in change.items()}}
    inputs = {t.name: given_arrays[t.name] for t in linear.inputs}
    got = evaluate_system(linear, inputs, extents)
    wanted = slope(system, arrays, change, extents)
    for name, value in wanted.items():
        scale = (
            1
            + np.abs(value).max(initial=0)
            + np.abs(evaluate_system(system, arrays, extents)[name]).max(initial=0)
        )
        np.testing.assert_allclose(got[f"d_{name}"], value, rtol=0, atol=1e-6 * scale)
    for output in system.outputs:
        if output.storage != Storage():
            continue
        gradient = tcgen.derivative(system, wrt, of=output.name)
        gradient.verify()
        inputs = {t.name: arrays[t.name] for t in gradient.inputs}
        parts = evaluate_system(gradient, inputs, extents)
        total = sum(
            np.tensordot(parts[f"d_{output.name}_{n}"], x, x.ndim) for n, x in change.items()
        )
        assert_same_values(np.asarray(total), got[f"d_{output.name}"], rtol=1e-9, atol=1e-9)


@cases(40, 800)
@given(st.data())
def test_random_systems(data: st.DataObject) -> None:
    check_random(data)


def check_random(data: st.DataObject) -> None:
    system = data.draw(systems(generated=False, accumulate=False, max_rank=3, max_indices=5))
    assume(not any(_not_analytic(system)))
    extents = data.draw(extents_for(system, 3))
    plain = [t.name for t in system.inputs if t.storage == Storage() and t.role is Role.INPUT]
    assume(plain)
    wrt = data.draw(st.lists(st.sampled_from(plain), min_size=1, max_size=2, unique=True))
    check(system, tuple(wrt), extents)


def _not_analytic(system: System) -> list[bool]:
    functions = ("conj", "real", "imag", "abs")
    text = system.pretty()
    return [f"{f}(" in text for f in functions]


def test_functions_have_their_derivatives() -> None:
    system = read_spec(
        HEAD
        + """input x[o], y[v]
        output e, r
        e = sum(i,a) exp(x[i])*log(2 + y[a]**2) + sum(i,a) sqrt(x[i]**2 + 1)*tanh(y[a])
        e += sin(x[i])*cos(y[a])/(1 + x[i]**2*y[a]**2) + sum(i,a) (1 + x[i]**2)**(-1)*y[a]**3
        r[i,a] = sum(j) (x[i] - y[a])**2/(4 + x[i]*y[a])*x[j]
        """
    )
    check(system, ("x", "y"), {"o": 2, "v": 3})


def test_a_summed_index_that_the_derivative_loses_still_counts() -> None:
    """d/dt of sum(i,j) sqrt(x[i]) * (u[j] + t[k])**1 keeps the extents of i and j."""
    system = read_spec(HEAD + "input u[o], t[o]\noutput r\nr[k] = sum(j) (u[j] + t[k])**1")
    check(system, ("t",), {"o": 3, "v": 1})


def test_jvp_of_modulus_is_right_for_complex_values() -> None:
    system = read_spec(HEAD + "input x[o]\noutput e\ne = sum(i) abs(x[i])*real(x[i])*imag(x[i])")
    linear = tcgen.jvp(system, {"x": "y"})
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4))
    got = evaluate_system(linear, {"x": x, "y": y}, {"o": 4, "v": 1})["d_e"]
    wanted = slope(system, {"x": x}, {"x": y}, {"o": 4, "v": 1})["e"]
    np.testing.assert_allclose(got, wanted, atol=1e-8)
    with pytest.raises(ArgumentError, match=mentions("complex derivative jvp")):
        tcgen.derivative(system, "x")


def ccsd() -> System:
    return read_spec_file(tcgen.spec_path("ccsd_spin_orbital"))


def lagrangian() -> System:
    text = (
        'include "ccsd_spin_orbital.spec"\n'
        "input l1[o,v], l2[o,o,v,v] antisymmetric (0,1) (2,3)\noutput L\n"
        "L = e + l1[i,a]*r1[i,a] + 1/4*l2[i,j,a,b]*r2[i,j,a,b]\n"
    )
    return read_spec(text, "lagrangian.spec", folder=tcgen.spec_path("ccsd_spin_orbital").parent)


def test_ccsd_residuals_and_lagrangian() -> None:
    check(tcgen.jvp(ccsd(), {"f_ov": "g"}, of=("r1", "r2")), ("t1", "t2"), {"o": 2, "v": 3})
    system = tcgen.derivative(lagrangian(), ("t1", "t2"), of="L")
    assert [t.name for t in system.outputs] == ["d_L_t1", "d_L_t2"]
    extents = {"o": 3, "v": 3}
    whole = lagrangian()
    arrays = random_arrays(whole, extents)
    change = {n: x for n, x in random_arrays(whole, extents, seed=5).items() if n in ("t1", "t2")}
    inputs = {t.name: arrays[t.name] for t in system.inputs}
    got = evaluate_system(system, inputs, extents)
    total = sum(float(np.sum(got[f"d_L_{n}"] * x)) for n, x in change.items())
    wanted = slope(whole, arrays, change, extents)["L"]
    assert abs(total - float(wanted)) < 1e-7 * (1 + abs(float(wanted)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: tcgen.jvp(ccsd(), {"t1": "x1", "t2": "x2"}),
        lambda: tcgen.derivative(lagrangian(), ("t1", "t2"), of="L"),
    ],
)
def test_the_new_system_prints_as_a_spec(make: object) -> None:
    system = make()
    again = read_spec(spec_text(system), f"{system.name}.spec")
    extents = {"o": 3, "v": 3}
    arrays = random_arrays(system, extents)
    wanted = evaluate_system(system, arrays, extents)
    assert_same_values(evaluate_system(again, arrays, extents), wanted)


def test_names_can_be_given() -> None:
    system = tcgen.jvp(
        ccsd(), {"t1": "r1", "t2": "r2"}, of=("r1", "r2"), names={"r1": "s1", "r2": "s2"}
    )
    assert [t.name for t in system.outputs] == ["s1", "s2"]
    assert {"r1", "r2"} <= {t.name for t in system.inputs}
    symmetry = {t.name: t.symmetry for t in system.inputs}
    assert symmetry["r2"] == symmetry["t2"]


def test_an_output_that_does_not_depend_is_zero() -> None:
    system = read_spec(HEAD + "input x[o], y[o]\noutput r, s\nr[i] = x[i]\ns[i] = y[i]")
    linear = tcgen.jvp(system, {"x": "dx"})
    out = evaluate_system(linear, {"dx": np.ones(2)}, {"o": 2, "v": 1})
    assert_same_values(out, {"d_r": np.ones(2), "d_s": np.zeros(2)})
    jacobian = tcgen.derivative(system, "x", of="s")
    assert_same_values(evaluate_system(jacobian, {}, {"o": 2, "v": 1})["d_s_x"], np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: tcgen.jvp(s, {"q": "dq"}), "q input ccsd_spin_orbital"),
        (lambda s: tcgen.jvp(s, {"t1": "t2"}), "name t2"),
        (lambda s: tcgen.jvp(s, {"t1": "x"}, of=("z",)), "z output"),
        (lambda s: tcgen.derivative(s, "t1", of="tau"), "tau output"),
        (lambda s: tcgen.derivative(s, "t1", names={"t1": "t2"}), "name t2"),
    ],
)
def test_messages(call: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=mentions(message)):
        call(ccsd())


def test_text_is_not_a_system() -> None:
    for call in (lambda: tcgen.derivative("e = x", "x"), lambda: tcgen.jvp("a.spec", {"x": "y"})):
        with pytest.raises(ArgumentError, match=mentions("str system read_spec")):
            call()


def test_several_outputs_need_a_choice() -> None:
    system = read_spec(HEAD + "input x[o]\noutput r, s\nr[i] = x[i]\ns[i] = 2*x[i]")
    with pytest.raises(ArgumentError, match=mentions("of= ['r', 's']")):
        tcgen.derivative(system, "x")
