"""Programs over blocks against dense arrays: random systems, shipped specs, memory, repeats."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest

import tcgen
from support.blocked_systems import (
    GROUPS,
    compare_with_dense,
    random_grading,
    random_inputs,
    random_spec,
)
from support.campaigns import numbers
from tcgen.interp import evaluate_system
from tcgen.ir.layouts import pack, unpack
from tcgen.testing import random_arrays
from tcgen.thresholds import CpuThresholds

DTYPES = ("float64", "complex128", "float32")


@pytest.mark.campaign
@pytest.mark.parametrize("number", numbers(12, 200))
def test_random_systems_equal_dense_arrays(number: int) -> None:
    rng = np.random.default_rng(number)
    dtype = DTYPES[number // len(GROUPS) % 3]
    spec = random_spec(rng, complex_numbers=dtype == "complex128")
    grading = random_grading(GROUPS[number % len(GROUPS)], rng)
    compare_with_dense(spec, grading, dtype, rng, charge=int(rng.integers(len(grading))))


def shipped(
    name: str, moduli: tuple[int, ...], o: int, v: int, *, optimize: bool, dtype: str = "float64"
) -> tuple[tcgen.System, tcgen.BlockedProgram, dict[str, np.ndarray]]:
    """A shipped spec with random inputs that have its symmetry and zeros of a grading."""
    rng = np.random.default_rng(o)
    order = int(np.prod(moduli))
    grading = tcgen.Grading(
        moduli, {"o": rng.integers(0, order, o), "v": rng.integers(0, order, v)}
    )
    extents = {"o": o, "v": v}
    system = tcgen.read_spec_file(tcgen.spec_path(name))
    program = tcgen.compile(
        system, extents=extents, objective="none", optimize=optimize, dtype=dtype
    )
    blocks = tcgen.blocked(program, grading)
    arrays = random_arrays(system, extents, dtype, seed=o)
    for tensor in system.inputs:
        allowed = blocks.empty(tensor.name)
        allowed.data[...] = 1
        dense = unpack(tensor, arrays[tensor.name], extents)
        zeros = np.zeros(1, dense.dtype)
        arrays[tensor.name] = pack(tensor, np.where(allowed.dense() == 1, dense, zeros))
    return system, blocks, arrays


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "moduli", "o", "v", "optimize", "dtype"),
    [
        ("mp2_closed_shell", (2, 2, 2), 5, 7, True, "float64"),
        ("ccsd_closed_shell", (2, 2), 4, 7, False, "float64"),
        ("ccsd_closed_shell", (2, 2, 2), 5, 8, True, "float64"),
        ("ccsd_closed_shell", (1,), 3, 5, True, "float64"),
        ("ccsd_spin_orbital", (2, 2), 5, 6, True, "float64"),
        ("t_closed_shell", (2, 2), 3, 5, False, "float64"),
        ("dcsd_closed_shell", (2, 2), 4, 6, True, "float64"),
        ("cc2_spin_orbital", (2,), 4, 5, True, "float64"),
        ("t_spin_orbital", (2, 2), 3, 4, False, "float64"),
        ("t_complex_spin_orbital", (3,), 3, 4, False, "complex128"),
        ("t_complex_closed_shell", (2, 3), 4, 5, False, "complex128"),
        ("lccsd_spin_orbital", (2,), 4, 6, True, "float64"),
        ("ccsd_complex_spin_orbital", (3,), 5, 6, True, "complex128"),
        ("ccsd_complex_spin_orbital", (4,), 4, 7, True, "complex128"),
        ("ccsd_complex_spin_orbital", (2, 3), 4, 7, False, "complex128"),
    ],
)
def test_shipped_specs_equal_the_interpreter(
    name: str, moduli: tuple[int, ...], o: int, v: int, optimize: bool, dtype: str
) -> None:
    system, blocks, arrays = shipped(name, moduli, o, v, optimize=optimize, dtype=dtype)
    expected = evaluate_system(system, arrays, {"o": o, "v": v}, dtype=dtype)
    found = blocks(**arrays)
    for output, value in expected.items():
        made = found[output].dense() if value.ndim else found[output]
        tolerance = 1e-12 * max(1.0, np.abs(value).max())
        np.testing.assert_allclose(made, value, rtol=0, atol=tolerance)


@pytest.mark.parametrize("sign", [1, -1])
def test_one_order_of_a_pair_is_enough(sign: int) -> None:
    """Products that an exchange of indices leaves unchanged, or turns into their negative."""
    kind = "symmetric" if sign > 0 else "antisymmetric"
    spec = f"""
    space o
    space v
    index i j : o
    index a b c d : v
    input v_vvvv[v,v,v,v] {kind} (0,1) (2,3) constant, t[o,o,v,v] {kind} (0,1) (2,3)
    output r
    r[i,j,a,b] = t[i,j,a,b] + 1/2*t[i,j,c,d]*v_vvvv[a,b,c,d]
    """
    extents = {"o": 7, "v": 9}
    system = tcgen.read_spec(spec)
    program = tcgen.compile(system, extents=extents, objective="none")
    for moduli in ((1,), (2, 2), (3,)):
        rng = np.random.default_rng(0)
        order = int(np.prod(moduli))
        orbitals = {s: rng.integers(0, order, n) for s, n in extents.items()}
        grading = tcgen.Grading(moduli, orbitals)
        every = CpuThresholds(pair_flops=1, pair_copy_flops=0)
        blocks = tcgen.BlockedProgram(program, grading, thresholds=every)
        whole = tcgen.BlockedProgram(program, grading, thresholds=CpuThresholds())
        assert blocks.flops < 0.8 * whole.flops
        arrays = random_arrays(system, extents, seed=1)
        for name, array in arrays.items():
            allowed = blocks.empty(name)
            allowed.data[...] = 1
            arrays[name] = array * allowed.dense()
        expected = evaluate_system(system, arrays, extents)["r"]
        np.testing.assert_allclose(blocks(**arrays)["r"].dense(), expected, rtol=0, atol=1e-12)


SPEC = """
space o graded
space v graded
index i j : o
index a b : v
input f[v,v] constant, t[o,v], e_o[o] constant, e_v[v] constant
output r, e
r[i,a] = (f[a,b]*t[i,b] + sum(j,b) t[i,b]*t[j,b]*t[j,a])/(e_o[i] - e_v[a])
e = f[a,b]*t[i,a]*t[i,b]
"""


def test_bytes_of_a_call_are_those_predicted() -> None:
    # Without a limit, memory may come from the pool, which the tracer does not see.
    program = tcgen.compile(SPEC, extents={"o": 30, "v": 60}, memory_limit="1GiB")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        order = (2, 4, 8)[seed % 3]
        grading = tcgen.Grading(
            (2,) * (order.bit_length() - 1),
            {"o": rng.integers(0, order, 60).tolist(), "v": rng.integers(0, order, 90).tolist()},
        )
        blocks = tcgen.blocked(program, grading)
        bound = blocks.bind(**random_inputs(blocks, ["f", "e_o", "e_v"], rng))
        inputs = random_inputs(blocks, ["t"], rng)
        bound(**inputs)  # compiles and loads what it needs
        assert blocks.allocated_bytes == blocks.peak_bytes()
        tracemalloc.start()
        results = bound(**inputs)
        measured = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        predicted = blocks.peak_bytes() - bound.kept_bytes
        assert predicted <= measured <= predicted + 30_000
        assert results["r"].nbytes < blocks.peak_bytes()


def test_two_threads_give_what_one_does() -> None:
    rng = np.random.default_rng(4)
    grading = tcgen.Grading((2, 2), {"o": rng.integers(0, 4, 12), "v": rng.integers(0, 4, 30)})
    program = tcgen.compile(LADDER, extents={"o": 12, "v": 30}, objective="none")
    blocks = tcgen.blocked(program, grading)
    arrays = random_inputs(blocks, [t.name for t in program.manifest.tensors if t.is_input], rng)
    found = []
    for threads in (1, 2):
        tcgen.set_threads(threads)
        found.append(blocks(**arrays))
    tcgen.set_threads(None)
    for name in ("r", "w"):
        np.testing.assert_allclose(found[0][name].data, found[1][name].data, rtol=0, atol=1e-12)
    assert repr(blocks).startswith(f"<{program.manifest.name}(")


def test_programs_are_pickled() -> None:
    grading = tcgen.Grading((2,), {"o": [0, 1, 1], "v": [0, 0, 1, 1]})
    blocks = tcgen.blocked(tcgen.compile(SPEC, extents={"o": 3, "v": 4}), grading)
    arrays = random_inputs(blocks, ["f", "t", "e_o", "e_v"], np.random.default_rng(0))
    again = pickle.loads(pickle.dumps(blocks))
    expected = blocks(**arrays)
    assert repr(again) == repr(blocks)
    np.testing.assert_array_equal(again(**arrays)["r"].data, expected["r"].data)


TRIPLES = """
space o
space v
index i j k : o
index a b c : v
input g[o,v,o,v] SYMMETRY conserves (0,2)->(1,3), t[o,v], e_o[o] label, e_v[v] label
output e, n
w[i,j,k,a,b,c] = g[i,a,j,b]*t[k,c] + g[j,b,k,c]*t[i,a] + g[i,a,k,c]*t[j,b]
e = 1/6*w[i,j,k,a,b,c]*w[i,j,k,c,b,a]/(e_o[i] + e_o[j] + e_o[k] - e_v[a] - e_v[b] - e_v[c])
n = w[i,j,k,a,b,c]*w[i,j,k,a,b,c]
"""


@pytest.mark.parametrize("symmetry", ["", "symmetry (0,1)<->(2,3)"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_over_large_intermediates_run_inside_loops(symmetry: str, dtype: str) -> None:
    """Loops take all orders of orbitals where exchanging them changes the sum."""
    spec = TRIPLES.replace("SYMMETRY", symmetry)
    rng = np.random.default_rng(0)
    extents = {"o": 3, "v": 4}
    program = tcgen.compile(spec, extents=extents, objective="none", dtype=dtype)
    for moduli, o, v in (
        *(((2, 2), 3, 7), ((3,), 4, 3), ((2,), 0, 3)),
        *(((2,), 2, 0), ((1,), 1, 5), ((2,), 2, 19)),
    ):
        irreps = {s: rng.integers(0, np.prod(moduli), n) for s, n in (("o", o), ("v", v))}
        blocks = tcgen.blocked(program, tcgen.Grading(moduli, irreps))
        arrays = {}
        for name in ("g", "t", "e_o", "e_v"):
            array = blocks.empty(name)
            array.data[...] = rng.standard_normal(array.data.shape)
            arrays[name] = array.dense()
        arrays["e_o"] -= 10
        if symmetry:
            arrays["g"] = arrays["g"] + arrays["g"].transpose(2, 3, 0, 1)
        system = tcgen.read_spec(spec)
        expected = evaluate_system(system, arrays, {"o": o, "v": v}, dtype=dtype)
        found = blocks(**arrays)
        for name, value in expected.items():
            np.testing.assert_allclose(
                found[name], value, rtol=1e-4 if dtype == "float32" else 1e-11
            )


MAPS = """
space o graded
space v graded
index i j : o
index a b : v
input g[o,v,o,v] conserves (0,2)->(1,3), t[v,v], u[v], x[v]
output r, s, p, e
r[a,b] = u[a]*x[b]
s[a,b] = sin(t[b,a])*t[a,b] + delta[a,b]*t[a,a]
p[i,a] = (g[i,a,j,b] - 1/2*g[i,b,j,a])*g[i,b,j,a]*t[a,b]*u[b]
e = (2*g[i,a,j,b] - g[i,b,j,a])*g[i,a,j,b]/(3 + t[a,a])
"""


@pytest.mark.parametrize("dtype", DTYPES)
def test_axes_of_element_wise_steps_have_more_orbitals_than_a_tile(dtype: str) -> None:
    """Arrays differ in their fastest axis; blocks that are not stored are read as zeros."""
    system, extents = tcgen.read_spec(MAPS), {"o": 3, "v": 80}
    program = tcgen.compile(system, extents=extents, objective="none", dtype=dtype)
    rng = np.random.default_rng(3)
    grading = tcgen.Grading((2,), {"o": [0, 1, 0], "v": rng.permutation([0] * 9 + [1] * 71)})
    blocks = tcgen.blocked(program, grading)
    arrays = {n: a.dense() for n, a in random_inputs(blocks, ["g", "t", "u", "x"], rng).items()}
    expected = evaluate_system(system, arrays, extents, dtype=dtype)
    found = blocks(**arrays)
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    for name, value in expected.items():
        made = found[name].dense() if value.ndim else found[name]
        np.testing.assert_allclose(
            made, value, rtol=tolerance, atol=tolerance * np.abs(value).max(initial=0)
        )


JOINED = """
space o occupied graded
space v virtual graded
space all = o + v
index i j k l : o
index a b c d : v
index p q r s : all
input f[all,all] symmetric (0,1) constant, g[all,all,all,all] constant conserves (0,2)->(1,3)
input t1[o,v], t2[o,o,v,v]
output r1, r2, e, K
X[a,p] = delta[a,p] - t1[k,a]*delta[k,p]
Y[p,i] = delta[p,i] + delta[p,c]*t1[i,c]
F[p,q] = f[p,q] + (2*g[p,q,k,c] - g[p,c,k,q])*t1[k,c]
K[p,q] = F[p,q] + g[p,k,k,q] - delta[p,q]*e
e = f[i,a]*t1[i,a] + g[i,a,j,b]*t2[i,j,a,b]
r1[i,a] = X[a,p]*F[p,q]*Y[q,i]
r2[i,j,a,b] = X[a,p]*X[b,r]*g[p,q,r,s]*Y[q,i]*Y[s,j]
"""


@pytest.mark.parametrize("optimize", [True, False])
def test_parts_of_joined_axes_are_read_and_written(optimize: bool) -> None:
    system = tcgen.read_spec(JOINED)
    program = tcgen.compile(system, extents={"o": 3, "v": 5}, objective="none", optimize=optimize)
    for moduli in ((2, 2), (2,)):
        rng = np.random.default_rng(moduli[0])
        grading = random_grading(moduli, rng)
        extents = {s: len(grading.orbitals(s)) for s in grading.spaces}
        every = CpuThresholds(pair_flops=1, pair_copy_flops=0)
        blocks = tcgen.BlockedProgram(program, grading, thresholds=every)
        arrays = {
            n: a.dense() for n, a in random_inputs(blocks, ["f", "g", "t1", "t2"], rng).items()
        }
        arrays["f"] += arrays["f"].T
        expected = evaluate_system(system, arrays, extents)
        found = blocks(**arrays)
        for name, value in expected.items():
            made = found[name].dense() if value.ndim else found[name]
            np.testing.assert_allclose(
                made, value, rtol=0, atol=1e-12 * np.abs(value).max(initial=1)
            )


def test_large_intermediates_of_sums_are_not_stored() -> None:
    blocks = tcgen.blocked(
        tcgen.compile(TRIPLES.replace("SYMMETRY", ""), extents={"o": 12, "v": 20}),
        tcgen.Grading((2,), {"o": [0, 1] * 6, "v": [0, 1] * 10}),
    )
    assert blocks.peak_bytes() < 8 * 12**3 * 20**3 / 50


def test_irreps_and_spaces_without_orbitals() -> None:
    program = tcgen.compile(SPEC, extents={"o": 3, "v": 4})
    for irreps in ({"o": [], "v": [0, 1, 1]}, {"o": [1, 1], "v": []}, {"o": [1], "v": [0, 0]}):
        blocks = tcgen.blocked(program, tcgen.Grading((2,), irreps))
        found = blocks(**random_inputs(blocks, ["f", "t", "e_o", "e_v"], np.random.default_rng(0)))
        assert found["r"].dense().shape == (len(irreps["o"]), len(irreps["v"]))
        assert found["e"] == 0 or found["r"].data.size


def test_spaces_without_a_grading_have_extents() -> None:
    spec = """
    space o graded
    space x
    index i j : o
    index P : x
    input B[x,o,o]
    output K
    K[i,j] = B[P,i,j]*B[P,j,i]
    """
    program = tcgen.compile(spec, extents={"o": 5, "x": 4})
    grading = tcgen.Grading((2,), {"o": [0, 1, 0, 1, 1]})
    blocks = tcgen.blocked(program, grading, extents={"x": 7})
    array = random_inputs(blocks, ["B"], np.random.default_rng(0))["B"]
    dense = array.dense()
    assert dense.shape == (7, 5, 5)
    found = blocks(B=array)["K"].dense()
    np.testing.assert_allclose(found, np.einsum("Pij,Pji->ij", dense, dense), atol=1e-12)


def test_real_constants_of_complex_programs() -> None:
    # They are read as they are, in a product, under a denominator, and through an intermediate.
    spec = """
    space o graded
    space v graded
    index i j : o
    index a b : v
    input f[v,v] real constant, u[o] real constant, z[v] constant, t[o,v], s[o] real
    input e_o[o] real constant label
    output r, w, q
    r[i,a] = f[a,b]*t[i,b] + t[i,a]/(e_o[i] + 1)
    w[i,a] = u[i]*z[a] + s[i]*z[a]
    q[i,j] = u[i]*u[j]*s[i]
    """
    for moduli in ((2, 2), (3,)):
        rng = np.random.default_rng(moduli[0])
        compare_with_dense(spec, random_grading(moduli, rng), "complex128", rng)


LADDER = """
space o occupied graded
space v virtual graded
index i j k : o
index a b c d : v
input v_oovv[o,o,v,v], v_vvvv[v,v,v,v], t2[o,o,v,v], e_o[o] real from energies
input e_v[v] real from energies
output r, w, e
w[i,k,a,c] = t2[i,j,a,b]*conj(t2[k,j,c,b])
r[i,j,a,b] = (v_oovv[i,j,a,b] + t2[i,j,c,d]*v_vvvv[c,d,a,b])/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
e = conj(v_oovv[i,j,a,b])*t2[i,j,a,b]
"""


def test_complex_orbitals_conserve_momentum() -> None:
    for moduli in ((3,), (4,)):
        rng = np.random.default_rng(moduli[0])
        grading = random_grading(moduli, rng)
        compare_with_dense(LADDER, grading, "complex128", rng)
