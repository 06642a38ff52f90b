"""The interpreter of systems against NumPy written by hand, feature by feature."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from support.messages import mentions
from tcgen.algebra import form_sequence
from tcgen.compiler.driver import compile_system
from tcgen.errors import ArgumentError, ExtentError, ShapeError, SpecError
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_program, evaluate_system
from tcgen.ir.expr import Call, Const, Delta, Pow, Prod, Quot, Sum
from tcgen.ir.system import Apply, Equation, Permutation, System, Term
from tcgen.ir.tensor import Index, Packing, Ref, Role, Space, Storage, Symmetry, Tensor
from tcgen.options import Options

O, V = Space("o"), Space("v")
X = Space("x")
P = Space("p", parts=(O, V))
SPACES = {"o": O, "v": V, "x": X, "p": P}
LETTERS = dict.fromkeys("ijklmn", O) | dict.fromkeys("abcdef", V)
LETTERS |= dict.fromkeys("xyz", X) | dict.fromkeys("pqrs", P)
EXTENTS = {"o": 3, "v": 2, "x": 4}
RNG = np.random.default_rng(7)


def idx(letters: str) -> tuple[Index, ...]:
    return tuple(Index(letter, LETTERS[letter]) for letter in letters)


def tensor(name: str, spaces: str, role: Role = Role.INPUT, **fields: object) -> Tensor:
    return Tensor(name, tuple(SPACES[s] for s in spaces), role, **fields)  # type: ignore[arg-type]


def term(coeff: str, *factors, sums: str = "", perms=()) -> Term:
    return Term(Fraction(coeff), factors, idx(sums), tuple(Permutation(s, p) for s, p in perms))


def ref(t: Tensor, letters: str = "") -> Ref:
    return Ref(t, idx(letters))


def system(*equations: Equation) -> System:
    found: dict[Tensor, None] = {}
    for equation in equations:
        for t in (r.tensor for e in equation.terms for r in e.refs):
            found.setdefault(t)
        found.setdefault(equation.lhs.tensor)
    tensors = sorted(found, key=lambda t: not t.is_input)
    result = System("test", (O, V, X, P), tuple(tensors), equations)
    result.verify()
    return result


def random(t: Tensor, seed: int = 0) -> np.ndarray:
    lengths = {"o": 3, "v": 2, "x": 4, "p": 5}
    return np.random.default_rng(seed + len(t.name)).normal(
        size=[lengths[s.name] for s in t.spaces]
    )


def check(s: System, arrays: dict, expected: np.ndarray, out=None, extents=EXTENTS) -> None:
    name = s.outputs[0].name
    for budget in (2**28, 200, 1):
        actual = evaluate_system(s, arrays, extents, out=out, budget_bytes=budget)[name]
        assert actual.shape == np.shape(expected)
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13)


def one_term(out: str, letters: str, *args, **fields) -> System:
    r = tensor("r", out, Role.OUTPUT)
    return system(Equation(ref(r, letters), (term(*args, **fields),)))


x, y, z = tensor("x", "oo"), tensor("yy", "ov"), tensor("zzz", "vx")


def test_product_of_three_factors() -> None:
    s = one_term("ox", "ix", "-2/3", ref(x, "ij"), ref(y, "ja"), ref(z, "ax"), sums="ja")
    a = {t.name: random(t) for t in (x, y, z)}
    check(s, a, -2 / 3 * a["x"] @ a["yy"] @ a["zzz"])


def test_hyper_index_stays_through_the_product() -> None:
    s = one_term("o", "i", "1", ref(x, "ik"), ref(x, "ki"), ref(y, "ka"), ref(y, "ka"), sums="ka")
    a = {t.name: random(t) for t in (x, y)}
    check(s, a, np.einsum("ik,ki,ka,ka->i", a["x"], a["x"], a["yy"], a["yy"]))


def test_trace_and_diagonal() -> None:
    a = {"x": random(x)}
    check(one_term("", "", "1", ref(x, "ii"), sums="i"), a, np.trace(a["x"]))
    check(one_term("o", "i", "1", ref(x, "ii")), a, np.diag(a["x"]))
    t = tensor("t", "ooo")
    check(one_term("o", "i", "1", ref(t, "iii")), {"t": random(t)}, np.einsum("iii->i", random(t)))


def test_left_index_in_no_factor_broadcasts() -> None:
    r = tensor("r", "ov", Role.OUTPUT)
    d, e = tensor("d", "o"), tensor("ee", "v")
    s = system(
        Equation(
            ref(r, "ia"),
            (
                term("1", ref(d, "i")),
                term("-1", ref(e, "a")),
                term("1/4"),
                term("3", ref(x, "kk"), sums="k"),
            ),
        )
    )
    a = {t.name: random(t) for t in (d, e, x)}
    expected = a["d"][:, None] - a["ee"][None, :] + 0.25 + 3 * np.trace(a["x"])
    check(s, a, expected)


def test_an_index_that_only_sums() -> None:
    s = one_term("o", "i", "1", ref(y, "ia"), ref(x, "kl"), sums="akl")
    a = {t.name: random(t) for t in (x, y)}
    check(s, a, a["yy"].sum(1) * a["x"].sum())


def test_two_permutations() -> None:
    t = tensor("t", "oovv")
    swap = ((1, (0, 1, 2, 3)), (-1, (1, 0, 2, 3)), (-1, (0, 1, 3, 2)), (1, (1, 0, 3, 2)))
    s = one_term("oovv", "ijab", "1", ref(x, "ik"), ref(t, "kjab"), sums="k", perms=swap)
    a = {t.name: random(t) for t in (x, t)}
    w = np.einsum("ik,kjab->ijab", a["x"], a["t"])
    w = w - w.transpose(1, 0, 2, 3)
    check(s, a, w - w.transpose(0, 1, 3, 2))


def test_cyclic_permutation_renames_left_letters() -> None:
    t = tensor("t", "ooo")
    # the second copy is the term with i -> j, j -> k, k -> i
    s = one_term("ooo", "ijk", "1", ref(t, "ijk"), perms=((1, (0, 1, 2)), (-1, (1, 2, 0))))
    a = random(t)
    check(s, {"t": a}, a - np.einsum("jki->ijk", a))


def test_delta_between_base_and_joined_spaces() -> None:
    w = tensor("w", "pp")
    a = random(w)
    s = one_term("pp", "pq", "1", Delta(*idx("pq")), ref(w, "pq"))
    check(s, {"w": a}, np.diag(np.diag(a)))
    s = one_term("pv", "pa", "1", Delta(*idx("pa")), ref(w, "rr"), sums="r")
    check(s, {"w": a}, np.eye(5)[:, 3:] * np.trace(a))
    s = one_term("ov", "ia", "1", Delta(*idx("ia")), ref(w, "ia"))
    check(s, {"w": a}, np.zeros((3, 2)))
    check(
        one_term("", "", "1", Delta(*idx("kk")), ref(w, "rr"), sums="kr"), {"w": a}, 3 * np.trace(a)
    )


def test_index_of_a_part_means_that_slice() -> None:
    w = tensor("w", "ppp")
    a = random(w)
    s = one_term("vo", "ai", "1", ref(w, "aip"), ref(w, "pbb"), sums="pb")
    check(s, {"w": a}, np.einsum("aip,pbb->ai", a[3:, :3, :], a[:, 3:, 3:]))


def test_denominator_function_and_power() -> None:
    d, e = tensor("d", "o"), tensor("ee", "v")
    den = Sum((ref(d, "i"), Prod((Const(Fraction(-1)), ref(e, "a"))), Const(Fraction(1, 3))))
    s = one_term("o", "i", "2", ref(y, "ia"), Apply(Quot(Const(Fraction(1)), den)), sums="a")
    a = {t.name: random(t) for t in (y, d, e)}
    check(s, a, (2 * a["yy"] / (a["d"][:, None] - a["ee"] + 1 / 3)).sum(1))
    expr = Prod(
        (Call("exp", ref(x, "ii")), Pow(Sum((ref(x, "ij"), ref(x, "ji"))), -2), Delta(*idx("ij")))
    )
    s = one_term("oo", "ij", "1", Apply(expr))
    a = {"x": random(x)}
    check(s, a, np.diag(np.exp(np.diag(a["x"])) / (2 * np.diag(a["x"])) ** 2))


@pytest.mark.parametrize(
    "name", ["sqrt", "exp", "log", "abs", "sin", "cos", "tanh", "conj", "real", "imag"]
)
def test_every_function(name: str) -> None:
    a = np.abs(random(y)) + 0.5 + 0.25j
    s = one_term("ov", "ia", "1", Apply(Call(name, ref(y, "ia"))))
    check(s, {"yy": a}, getattr(np, name)(a).astype(complex))


def test_conj_of_a_contraction_named_first() -> None:
    h, r = tensor("h", "oo", Role.TEMP), tensor("r", "", Role.OUTPUT)
    a = random(x) + 1j * random(x, 5)
    s = system(
        Equation(ref(h, "ij"), (term("1", ref(x, "ik"), ref(x, "kj"), sums="k"),)),
        Equation(ref(r), (term("1", Apply(Call("conj", ref(h, "ij"))), ref(x, "ij"), sums="ij"),)),
    )
    check(s, {"x": a}, (np.conj(a @ a) * a).sum())


def test_division_by_zero_follows_ieee_without_a_warning() -> None:
    s = one_term("o", "i", "1", Apply(Quot(Const(Fraction(1)), ref(tensor("d", "o"), "i"))))
    value = evaluate_system(s, {"d": np.array([0.0, -0.0, 4.0])}, EXTENTS)["r"]
    assert value.tolist() == [np.inf, -np.inf, 0.25]


def test_named_intermediate_used_with_permuted_indices_is_its_own_sum() -> None:
    h, r = tensor("h", "oo", Role.TEMP), tensor("r", "oo", Role.OUTPUT)
    s = system(
        Equation(
            ref(h, "ij"), (term("1", ref(y, "ia"), ref(y, "ja"), sums="a"), term("1", ref(x, "ij")))
        ),
        Equation(
            ref(r, "ij"),
            (term("2", ref(h, "ji"), ref(h, "kk"), sums="k"), term("-1", ref(h, "ij"))),
        ),
    )
    a = {t.name: random(t) for t in (x, y)}
    w = a["yy"] @ a["yy"].T + a["x"]
    check(s, a, 2 * w.T * np.trace(w) - w)


def test_df_ladder_is_sliced_and_right() -> None:
    b, tau = tensor("b", "xvv"), tensor("tau", "oovv")
    w, r = tensor("w", "vvvv", Role.TEMP), tensor("r", "oovv", Role.OUTPUT)
    s = system(
        Equation(ref(w, "abef"), (term("1", ref(b, "xae"), ref(b, "xbf"), sums="x"),)),
        Equation(ref(r, "ijab"), (term("1", ref(w, "abef"), ref(tau, "ijef"), sums="ef"),)),
    )
    a = {t.name: random(t) for t in (b, tau)}
    check(s, a, np.einsum("xae,xbf,ijef->ijab", a["b"], a["b"], a["tau"], optimize=True))


def test_triples_energy_is_sliced_and_right() -> None:
    t2, v = tensor("t2", "oovv"), tensor("v", "ovvv")
    eo, ev = tensor("eo", "o"), tensor("ev", "v")
    w, r = tensor("w", "ooovvv", Role.TEMP), tensor("r", "", Role.OUTPUT)
    images = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    six = tuple((1, p + tuple(3 + k for k in p)) for p in images)
    minus = Const(Fraction(-1))
    den = Sum(tuple(ref(eo, i) for i in "ijk") + tuple(Prod((minus, ref(ev, a))) for a in "abc"))
    s = system(
        Equation(
            ref(w, "ijkabc"), (term("1", ref(v, "iabf"), ref(t2, "kjcf"), sums="f", perms=six),)
        ),
        Equation(
            ref(r),
            (
                term(
                    "4/3",
                    ref(w, "ijkabc"),
                    ref(w, "ijkabc"),
                    Apply(Quot(Const(Fraction(1)), den)),
                    sums="ijkabc",
                ),
                term(
                    "1/3",
                    ref(w, "ijkbca"),
                    ref(w, "ijkabc"),
                    Apply(Quot(Const(Fraction(1)), den)),
                    sums="ijkabc",
                ),
            ),
        ),
    )
    a = {t.name: random(t) for t in (t2, v)} | {
        "eo": -1 - random(eo) ** 2,
        "ev": 1 + random(ev) ** 2,
    }
    raw = np.einsum("iabf,kjcf->ijkabc", a["v"], a["t2"])
    full = sum(np.einsum(raw, [0, 1, 2, 3, 4, 5], list(p) + [3 + k for k in p]) for p in images)
    o, u = a["eo"], a["ev"]
    d = np.add.outer(np.add.outer(np.add.outer(o, o), o), -np.add.outer(np.add.outer(u, u), u))
    expected = ((4 * full + np.einsum("ijkbca->ijkabc", full)) * full / d).sum() / 3
    for budget in (2**28, 1000):
        actual = evaluate_system(s, a, EXTENTS, budget_bytes=budget)["r"]
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_no_array_above_the_budget_is_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcgen.interp import systems

    b, g = tensor("b", "xov"), tensor("g", "ovov", Role.TEMP)
    r = tensor("r", "", Role.OUTPUT)
    s = system(
        Equation(ref(g, "iajb"), (term("1", ref(b, "xia"), ref(b, "xjb"), sums="x"),)),
        Equation(ref(r), (term("1", ref(g, "iajb"), ref(g, "ibja"), sums="iajb"),)),
    )
    seen = []
    define = systems._Evaluation.define

    def spy(self, t, block):
        value = define(self, t, block)
        seen.append((t.name, value.nbytes))
        return value

    monkeypatch.setattr(systems._Evaluation, "define", spy)
    a = np.random.default_rng(0).normal(size=(4, 6, 6))
    budget = 8 * 100
    value = evaluate_system(s, {"b": a}, {"o": 6, "v": 6, "x": 4}, budget_bytes=budget)["r"]
    w = np.einsum("xia,xjb->iajb", a, a)
    np.testing.assert_allclose(value, np.einsum("iajb,ibja->", w, w), rtol=1e-12)
    assert max(n for name, n in seen if name == "g") <= budget


def test_stored_order_packed_and_joined_inputs() -> None:
    t = tensor(
        "t", "voo", storage=Storage((1, 2, 0), (Packing(1),)), symmetry=(Symmetry((0, 2, 1)),)
    )
    n = tensor(
        "nn", "ooo", storage=Storage((), (Packing(0, True),)), symmetry=(Symmetry((1, 0, 2), -1),)
    )
    dense = random(t)
    dense = dense + dense.transpose(0, 2, 1)
    anti = random(n)
    anti = anti - anti.transpose(1, 0, 2)
    packed = np.array([dense[:, p, q] for p in range(3) for q in range(p + 1)])
    triangle = np.array([anti[p, q] for p in range(3) for q in range(p)])
    s = one_term(
        "v", "a", "1", ref(t, "aij"), ref(n, "ijk"), ref(n, "ljk"), ref(x, "lk"), sums="ijkl"
    )
    a = {"t": packed, "nn": triangle, "x": random(x)}
    expected = np.einsum("aij,ijk,ljk,lk->a", dense, anti, anti, a["x"])
    check(s, a, expected)


def test_outputs_come_in_stored_order_and_packed() -> None:
    r = tensor(
        "r",
        "voo",
        Role.OUTPUT,
        storage=Storage((1, 2, 0), (Packing(1),)),
        accumulate=True,
        symmetry=(Symmetry((0, 2, 1)),),
    )
    s = system(Equation(ref(r, "aij"), (term("1", ref(y, "ia"), ref(y, "ja")),)))
    a, start = random(y), np.arange(12.0).reshape(6, 2)
    dense = np.einsum("ia,ja->ija", a, a)
    expected = start + np.array([dense[p, q] for p in range(3) for q in range(p + 1)])
    check(s, {"yy": a}, expected, out={"r": start})
    assert start.tolist() == np.arange(12.0).reshape(6, 2).tolist()
    with pytest.raises(ArgumentError, match=mentions('out={"r": array}')):
        evaluate_system(s, {"yy": a}, EXTENTS)
    anti = tensor("r", "oo", Role.OUTPUT, storage=Storage((), (Packing(0, True),)))
    s = system(
        Equation(ref(anti, "ij"), (term("1", ref(x, "ij"), perms=((1, (0, 1)), (-1, (1, 0)))),))
    )
    b = random(x)
    check(s, {"x": b}, (b - b.T)[np.tril_indices(3, -1)])


def test_accumulating_output_that_is_read_counts_its_start() -> None:
    r, e = tensor("r", "o", Role.OUTPUT, accumulate=True), tensor("e", "", Role.OUTPUT)
    s = system(
        Equation(ref(r, "i"), (term("1", ref(x, "ii")),)),
        Equation(ref(e), (term("1", ref(r, "i"), sums="i"),)),
    )
    a = np.eye(3)
    value = evaluate_system(s, {"x": a}, EXTENTS, out={"r": np.ones(3)}, budget_bytes=1)
    assert value["e"] == 6
    assert value["r"].tolist() == [2, 2, 2]


def test_accumulating_scalar() -> None:
    e = tensor("e", "", Role.OUTPUT, accumulate=True)
    s = system(Equation(ref(e), (term("1", ref(x, "ii"), sums="i"),)))
    check(s, {"x": np.eye(3)}, np.array(5.0), out={"e": np.array(2.0)})
    check(s, {"x": np.eye(3)}, np.array(5.0), out={"e": 2.0})


@pytest.mark.parametrize("kind", ["callable", "array"])
def test_generated_input_is_read_in_tiles(kind: str) -> None:
    g = tensor("g", "vpp", Role.GENERATED, storage=Storage((1, 2, 0)))
    a = random(g)
    calls = []

    def produce(out: np.ndarray, ranges: tuple[slice, ...]) -> None:
        assert out.flags.c_contiguous
        calls.append(out.nbytes)
        out[...] = a[ranges]

    source = produce if kind == "callable" else a.transpose(1, 2, 0)
    s = one_term(
        "v", "a", "1", ref(g, "bci"), ref(y, "ia"), ref(g, "bpc"), ref(g, "cpp"), sums="bcip"
    )
    expected = np.einsum("bci,ia,bpc,cpp->a", a[:, 3:, :3], random(y), a[:, :, 3:], a)
    check(s, {"g": source, "yy": random(y)}, expected)
    if kind == "callable":
        assert min(calls) == 8


def test_packed_generated_array_is_sliced() -> None:
    g = tensor("g", "vv", Role.GENERATED, storage=Storage((), (Packing(0, True),)))
    a = np.random.default_rng(1).normal(size=(5, 5))
    a = a - a.T
    s = one_term("v", "a", "1", ref(g, "ab"), ref(tensor("d", "v"), "b"), sums="b")
    for n in (1, 2, 5):
        d = np.arange(1.0, n + 1)
        arrays = {"g": a[:n, :n][np.tril_indices(n, -1)], "d": d}
        check(s, arrays, a[:n, :n] @ d, extents=EXTENTS | {"v": n})


def test_extent_zero_gives_empty_sums() -> None:
    s = one_term("oo", "ij", "1", ref(y, "ia"), ref(y, "ja"), sums="a")
    check(s, {"yy": np.zeros((3, 0))}, np.zeros((3, 3)), extents={"o": 3, "v": 0, "x": 1})
    check(s, {"yy": np.zeros((0, 2))}, np.zeros((0, 0)), extents={"o": 0, "v": 2, "x": 1})


def test_scalars_defaults_and_element_types() -> None:
    c = tensor("c", "", default=Fraction(1, 4))
    s = one_term("o", "i", "2", ref(c), ref(x, "ii"))
    a = random(x)
    check(s, {"x": a}, np.diag(a) / 2)
    check(s, {"x": a, "c": 3}, np.diag(a) * 6)
    single = evaluate_system(s, {"x": a.astype("f4"), "c": 3}, EXTENTS)["r"]
    assert single.dtype == np.float32
    assert evaluate_system(s, {"x": a, "c": 1j}, EXTENTS)["r"].dtype == np.complex128
    assert evaluate_system(s, {"x": a}, EXTENTS, dtype="complex128")["r"].dtype == np.complex128


def test_real_tensors_stay_real() -> None:
    r = tensor("r", "o", Role.OUTPUT, real=True)
    s = system(
        Equation(
            ref(r, "i"), (term("1", ref(x, "ij"), Apply(Call("conj", ref(x, "ij"))), sums="j"),)
        )
    )
    a = random(x) + 1j
    value = evaluate_system(s, {"x": a}, EXTENTS)["r"]
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, (abs(a) ** 2).sum(1))


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ({}, ArgumentError, "x missing"),
        ({"x": np.eye(3), "y2": 1}, ArgumentError, "y2 x"),
        (
            {"x": np.eye(4)},
            ShapeError,
            "x[o,o] (3, 3) (4, 4)",
        ),
        ({"x": lambda out, ranges: None}, ArgumentError, "generated"),
    ],
)
def test_what_the_caller_did_wrong(arrays: dict, error: type[Exception], message: str) -> None:
    s = one_term("o", "i", "1", ref(x, "ii"))
    with pytest.raises(error, match=mentions(message)):
        evaluate_system(s, arrays, EXTENTS)
    with pytest.raises(ExtentError, match=mentions("extent v v=")):
        evaluate_system(s, arrays, {"o": 3})
    with pytest.raises(ExtentError, match=mentions("x=-1 negative")):
        evaluate_system(s, arrays, EXTENTS | {"x": -1})


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("1j", 1j),
        ("sqrt(-2)", 1j * 2**0.5),
        ("log(1/2 - 3)", np.log(-2.5 + 0j)),
        ("2/(1 + 3j)", 2 / (1 + 3j)),
        ("sqrt(-sqrt(2))", 1j * 2**0.25),
        ("log(cos(3))", np.log(np.cos(3) + 0j)),
        ("sqrt(pow(-2,3))", 1j * 8**0.5),
        ("exp(2)*sqrt(arccos(0) - 2)", 1j * np.exp(2) * (2 - np.pi / 2) ** 0.5),
        ("sqrt(where(less(1,2), -4, 9))", 2j),
    ],
)
def test_complex_numbers_make_a_complex_program(number: str, value: complex) -> None:
    """Real arrays gave NaN, in the equations and in the steps that are made from them."""
    equations = read_spec(
        f"space o\nindex i j : o\ninput x[o,o]\noutput r\nr[i,j] = {number}*x[i,j]"
    )
    x = np.arange(4.0).reshape(2, 2)
    sequence = form_sequence(equations, Options(extents=(("o", 2),), dtype="complex128"))
    for found in (
        evaluate_system(equations, {"x": x}, {"o": 2}),
        evaluate_program(sequence, {"x": x}, {"o": 2}),
    ):
        np.testing.assert_allclose(found["r"], value * x, rtol=1e-15)
    with pytest.raises(ArgumentError, match=mentions("not real complex128")):
        evaluate_system(equations, {"x": x}, {"o": 2}, dtype="float64")


@pytest.mark.parametrize(
    "number",
    ["arccos(2)", "arcsin(-1 - sqrt(2))", "pow(-1,1/2)", "2*exp(pow(-sqrt(2),0.5))", "arccos(1j)"],
)
def test_real_functions_of_numbers_are_real_or_refused(number: str) -> None:
    """They gave NaN, or the function of the real part, in every program."""
    text = f"space o = 2\nindex i : o\ninput x[o]\noutput r\nr[i] = {number}*x[i]"
    equations = read_spec(text)
    for dtype in (None, "float64", "complex128"):
        with pytest.raises(ArgumentError, match=mentions("not real sqrt log")):
            evaluate_system(equations, {"x": np.ones(2)}, {"o": 2}, dtype=dtype)
    for dtype in ("float64", "complex128"):
        with pytest.raises(SpecError, match=r"5:8: .*(not real|may be complex)"):
            compile_system(equations, Options(dtype=dtype, target="numpy"))
