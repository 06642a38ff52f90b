"""Mutants of valid inputs of each front end: a verified System or a TcgenError, within seconds."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.physics.secondquant import AntiSymmetricTensor, PermutationOperator

import tcgen
from support.campaigns import numbers
from support.mutations import NASTY, TooSlowError, alarm, mutant, mutant_data, words
from tcgen.errors import TcgenError
from tcgen.frontend import read_spec, read_terms, spec_text
from tcgen.frontend.einsum import subscripts_system
from tcgen.frontend.importers.pdaggerq import from_pdaggerq
from tcgen.frontend.importers.sympy_indexed import from_sympy
from tcgen.frontend.importers.wicked import from_wicked
from tcgen.ir.system import System

FULL = 20_000

SPECS = [
    """space o occupied = 3
space v virtual
space p = o + v
index i j k l : o
index a b c : v
input t2[o,o,v,v] antisymmetric (0,1) (2,3), f[p,p] symmetric (0,1) blocks oo ov vv
input v[o,o,v,v] constant, e_o[o], e_v[v], s = 1/2
output e, r2[o,o,v,v]
e = 1/4*sum(i,j,a,b) v[i,j,a,b]*t2[i,j,a,b] + f[i,a]*f[i,a]
r2[i,j,a,b] = P(i,j) f[i,k]*t2[k,j,a,b]/(e_o[i] - e_v[a])""",
    """space x
space o = 4
index i j k : o
index Q : x
input B[x,o,o] generated, C[x,o,o] packed (1,2), A[o,o] stored (1,0)
input h[o,o] hermitian (0)<->(1) real
output r accumulate, w
m[i,j] = (A[i,k] + 2*h[i,k])*(A[k,j] - exp(-h[k,j]**2))
r[i,j] = S(i,j) m[i,j] - sqrt(abs(A[i,j]))/3e-1 + delta[i,j]*m[k,k]
w = sum(i) log(2 + A[i,i]) + B[Q,i,j]*C[Q,i,j]""",
    """# third-order term
space o
space v
index i j k m : o
index a b c d : v
input g[o,o,v,v] symmetry (0)<->(1), t[o,o,o,v,v,v]
output x[o,o,o,v,v,v]
x[i,j,k,a,b,c] = P(i/jk) P(a/bc) S(ia,jb,kc) g[i,m,a,d]*t[m,j,k,d,b,c]""",
]
SPEC_TOKENS = words("""
space index input output include o v p i j k a b t2 f e r2 P( S( sum( sum(i) P(i,j) P(i/jk) S(ia,jb)
symmetric antisymmetric symmetry hermitian packed stored blocks real constant volatile generated
accumulate (0,1) (0)<->(1) delta[i,j] exp( sqrt( **2 **(-1) [i,j] t2[i,j,a,b] f[i,a] = += -= 1/2
""")

TERMS = [
    {
        "name": "ccd",
        "ranges": {"o": ["i", "j", "k"], "v": ["a", "b", "c"]},
        "tensors": {
            "t2": {"axes": ["o", "o", "v", "v"], "antisym": [[0, 1], [2, 3]], "constant": True},
            "v": {"sym": ["antisym(0,1) swap(01,23)", "pqrs=qpsr"]},
        },
        "targets": [
            {"out": "e", "terms": [{"coef": 0.25, "factors": ["v[i,j,a,b]", "t2[i,j,a,b]"]}]},
            {
                "out": "r2[i,j,a,b]",
                "terms": [
                    {
                        "coef": "1/2",
                        "factors": ["f[j,k]", "t2[i,k,a,b]", "delta[a,b]"],
                        "denom": ["eo[i]", "-ev[a]"],
                        "perms": [[1, ["i", "j", "a", "b"]], [-1, ["j", "i", "a", "b"]]],
                    }
                ],
            },
        ],
    },
    {
        "targets": [
            {"out": "w[i]", "terms": [{"coef": 2, "factors": ["x[i]", "x[j]", "-x[j]"]}]},
            {
                "out": "u[i,j]",
                "antisymmetrize": [["i", "j"]],
                "terms": [{"coef": 1, "factors": ["y[i,j]"]}],
            },
        ]
    },
]
TERM_TOKENS = words("""
"name" "ranges" "tensors" "targets" "out" "terms" "coef" "factors" "denom" "perms" "antisymmetrize"
"axes" "antisym" "sym" "constant" "o" "v" "r[i,j]" "t2[i,j,a,b]" "-eo[i]" [] {} null true 0.25 "1/2"
[[0,1]] [1,["i"]] "sym(0,1)" "8-fold"
""")

STRINGS = [
    [["+0.250", "<i,j||a,b>", "t2(a,b,i,j)"], ["+1.0", "f(i,a)", "t1(a,i)"]],
    {
        "e": [["-0.0833333", "<i,j||a,b>", "t2(a,b,i,j)", "w0"]],
        "r2(a,b,i,j)": [
            ["-1.00", "P(i,j)", "P(a,b)", "<k,a||c,j>", "t2(c,b,i,k)"],
            ["+1.00", "PP2(i,a,j,b)", "d(k,i)", "t2(a,b,k,j)"],
        ],
    },
    [["+1.0", "<i,j||a,b>_abab", "t2_abab(a,b,i,j)"], ["0.5", "f_bb(i,a)", "t1_bb(a,i)"]],
    [["+1.0", "PP3(i,a,j,b,k,c)", "x1(i,a)", "y1(j,b)", "y1(k,c)"], ["1", "t3(a,b,c,i,j,k)"]],
]
STRING_TOKENS = words("""
e r1(a,i) r2(a,b,i,j) = : <i,j||a,b> <k,a||c,j> t1(a,i) t2(a,b,i,j) f(i,a) d(i,j) w0 d+(i,a) P(i,j)
P(a,b) PP2(i,a,j,b) PP3( PP6( _aa _abab _bb _1110 i j a b o1 v1 I A a*(i) B+ +0.250 -1.00 1/3
""")


def printed(strings: Any) -> str:
    """Strings as a program prints them."""
    groups = strings if isinstance(strings, dict) else {"": strings}
    return "\n".join(
        line
        for name, held in groups.items()
        for line in ([f"{name} ="] if name else []) + list(map(str, held))
    )


def ir_tensor(name: str, indices: str, classes: str, **more: object) -> dict[str, object]:
    return {"name": name, "indices": list(indices), "classes": list(classes), **more}


IR = [
    {
        "target": ir_tensor("r2", "abij", "vvoo", is_intermediate=False),
        "is_assignment": True,
        "coeff": 0.25,
        "coeff_rational": "1/4",
        "operands": [ir_tensor('eri["vvoo"]', "abij", "vvoo"), ir_tensor("t0", "", "")],
    },
    {
        "target": ir_tensor('tmps_["1_vo"]', "ai", "vo", is_intermediate=True),
        "is_assignment": True,
        "coeff": -0.4999999999999998,
        "operands": [ir_tensor('t1["aa"]', "ai", "vo"), ir_tensor('Id["oo"]', "ij", "oo")],
        "perm": {"type": 1},
    },
]

WICKED = [
    """# residual
r^{o0}_{v0} +=  f^{o0}_{v0}
r^{o0}_{v0} += - f^{o0}_{o1} t^{o1}_{v0}
r^{o0,o1}_{v0,v1} += 1/8 t^{o0,o1}_{v2,v3} v^{v2,v3}_{v0,v1}
r^{}_{} += 1/4 v^{o0,o1}_{v0,v1} t^{v0,v1}_{o0,o1}""",
    """r^{a0}_{c0} += - eta1^{a2}_{a1} t^{c1}_{a2} v^{a0,a1}_{c0,c1}
r^{a0,a1}_{c0,v0} += 1/2 t^{a0}_{v0} t^{a1}_{v1} f^{v1}_{c0}""",
]
WICKED_TOKENS = words("""
r^{o0}_{v0} t^{o0}_{v0} t^{o0,o1}_{v0,v1} f^{o0}_{v0} v^{v2,v3}_{v0,v1} o0 v0 o1 v1 a0 += - 1/2 1/0
^{ }_{ r^{}_{}
""")

SUBSCRIPTS = [
    "ij,jk->ik",
    "ij,jk",
    "ii->",
    "...ij,...jk->...ik",
    "abcd,cd,d->ab",
    "i,i,i->i",
    "ij->ji",
]
SUBSCRIPT_TOKENS = ["i", "j", "k", "z", "A", "é", ",", "->", "...", "..", " ", "ii", "ij,"]


def check(read: Callable[[], object]) -> bool:
    """Whether it is read; what is read is a system that obeys the rules of its level."""
    with alarm():
        try:
            system = read()
        except TcgenError:
            return False
        if isinstance(system, System):
            system.verify()
    return True


def spec(number: int) -> object:
    system = read_spec(mutant(SPECS, SPEC_TOKENS, f"spec {number}"))
    if number % 2:
        text = spec_text(system)
        try:
            again = read_spec(text)
        except TcgenError as error:
            raise AssertionError(text) from error
        assert [t.spaces for t in again.outputs] == [t.spaces for t in system.outputs]
    return system


def terms(number: int) -> object:
    if number % 2:
        return read_terms(json.dumps(mutant_data(TERMS, DATA_ATOMS, f"data {number}")), "t.json")
    texts = [json.dumps(data, indent=1) for data in TERMS]
    return read_terms(mutant(texts, TERM_TOKENS, f"terms {number}"), "t.json")


def pdaggerq(number: int) -> object:
    match number % 4:
        case 0:
            return from_pdaggerq(mutant_data(STRINGS, DATA_ATOMS, f"strings {number}"))
        case 1:
            return from_pdaggerq(json.dumps(mutant_data(IR, DATA_ATOMS, f"lines {number}")))
        case 2:
            lines = ["\n".join(map(json.dumps, IR)), *map(json.dumps, IR)]
            return from_pdaggerq(mutant(lines, TERM_TOKENS, f"ir {number}"))
        case _:
            texts = [printed(strings) for strings in STRINGS]
            return from_pdaggerq(mutant(texts, STRING_TOKENS, f"printed {number}"))


def wicked(number: int) -> object:
    return from_wicked(mutant(WICKED, WICKED_TOKENS, f"wicked {number}"))


def einsum(number: int) -> object:
    text = mutant(SUBSCRIPTS, SUBSCRIPT_TOKENS, f"einsum {number}")
    if number % 2:
        return subscripts_system(text)
    ranks = [sum(c.isalpha() for c in part) for part in text.partition("->")[0].split(",")]
    return tcgen.einsum(text, *(np.ones((2,) * min(rank, 6)) for rank in ranks[:20]))


DATA_ATOMS = [
    *(
        None,
        True,
        0,
        -1,
        2,
        0.5,
        0.01,
        1e308,
        10**400,
        [],
        {},
        [[]],
        "",
        "i",
        "a",
        "I",
        "1/2",
        "-1",
    ),
    *(
        "t2(a,b,i,j)",
        "P(i,j)",
        "r[i,j]",
        "x[i]",
        "delta[i,j]",
        "v[i,j,a,b]",
        "antisym(0,1)",
        "8-fold",
    ),
    *("o", "v", "O", "Q", 't2["abab"]', "axes", "terms", "out", "factors", "operands", "indices"),
    *(token for token in NASTY if token != "\ud800"),
]

N, M = sp.symbols("n m", integer=True)
PLAIN = (
    *sp.symbols("p q n c"),
    sp.Dummy("p"),
    sp.Symbol("N_{occ}"),
    sp.Symbol('x"'),
    sp.Symbol("5"),
)
INDICES = (
    *(sp.Idx(x, N) for x in "ij"),
    sp.Idx("i", M),
    sp.Idx("k", (1, N)),
    sp.Idx("r", 3),
    *PLAIN,
)
NUMBERS = (1, 2, 0, 0.1, sp.Rational(1, 3), sp.pi)
HUGE = (sp.Float("1e4000"), sp.Float("1e-4000"), sp.oo, sp.nan, sp.zoo, sp.I, 10**400)
BASES = [sp.IndexedBase(x) for x in ("A", "x", "A^{(1)}", 'y"\n')]
BASES += [sp.IndexedBase("S", shape=s) for s in ((N,), (N, M), (3,))]
LEVELS = sp.symbols("i j", below_fermi=True) + sp.symbols("a b", above_fermi=True) + PLAIN[:2]
HALVES = (0, 1, 2, -1, 3, sp.Rational(1, 2), sp.Rational(-5, 2), 40, 1001, sp.Rational(1, 3), sp.I)


def leaf(draw: random.Random, pick: Callable[[Any], Any]) -> Any:
    match draw.randrange(8):
        case 0:
            return pick(NUMBERS)
        case 1:
            return pick(PLAIN)
        case 2:
            return sp.KroneckerDelta(pick(INDICES), pick(INDICES))
        case 3:
            return pick(INDICES)
        case _:
            base = pick(BASES)
            rank = draw.randint(1, 2) if base.shape is None else len(base.shape)
            return base[tuple(pick((*INDICES, *INDICES, 0, N - 1)) for _ in range(rank))]


def is_number(part: Any) -> bool:
    """SymPy itself would compute functions of large numbers."""
    return isinstance(part, int | float) or bool(part.is_number)


def tree(draw: random.Random, depth: int) -> Any:
    """A random expression: products of elements more often than what is refused."""
    pick = draw.choice
    if depth == 0:
        return leaf(draw, pick)
    parts = [tree(draw, depth - 1) for _ in range(draw.randint(1, 3))]
    match draw.randrange(10):
        case 0 | 1:
            return sp.Add(*parts)
        case 2:
            return parts[0] ** (2 if is_number(parts[0]) else pick(HALVES))
        case 3:
            function = pick((sp.exp, sp.log, sp.sin, sp.Abs, sp.conjugate, sp.gamma, sp.re))
            return function(parts[0], evaluate=False)  # SymPy itself takes long for some
        case 4 | 5:
            symbol = pick((*INDICES, *PLAIN))
            bounds = pick(((0, N - 1), (0, N - 1), (0, M - 1), (0, 2), (1, N), (0, PLAIN[0])))
            return sp.Sum(sp.Mul(*parts), (symbol, *bounds))
        case _:
            return sp.Mul(*parts)


def fermions(draw: random.Random) -> Any:
    pick = draw.choice
    factors = [sp.sympify(pick((1, -2, 0.5, sp.Rational(1, 4), sp.sqrt(2), sp.I)))]
    for _ in range(draw.randint(1, 4)):
        upper, lower = (tuple(pick(LEVELS) for _ in range(pick((1, 2)))) for _ in range(2))
        factors.append(AntiSymmetricTensor(pick("tvf"), upper, lower) ** pick((1, 1, 1, 2, -1)))
    factors += [
        pick((PermutationOperator, sp.KroneckerDelta))(pick(LEVELS), pick(LEVELS))
        for _ in range(draw.randint(0, 3))
    ]
    return sp.Mul(*factors)


def sympy_objects(number: int) -> object:
    """Objects cannot be changed as texts are: trees are drawn from valid and broken parts."""
    draw = random.Random(f"sympy {number}")
    try:
        if number % 4 == 0:
            right = sp.Add(*(fermions(draw) for _ in range(draw.randint(1, 3))))
            left = draw.choice(("e", "r1(a,i)", "r2(a,b,i,j)", sp.Symbol("e"), "5", "r(", BASES[0]))
        else:
            right = tree(draw, draw.randint(1, 3))
            right *= draw.choice((1, 1, 1, 1, 1, 1, 1, 1, 1, draw.choice(HUGE)))
            left = draw.choice((leaf(draw, draw.choice), "e", BASES[0][INDICES[0]], PLAIN[3]))
        equations = draw.choice(({left: right}, {left: right}, right, [sp.Eq(left, right)]))
    except Exception:
        return None  # SymPy itself refuses it, or fails
    return from_sympy(equations, spaces=draw.choice((None, {"o": "p q"}, {"n": "p"}, {"o": "p i"})))


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("read", "few"),
    [
        (spec, 300),
        (terms, 300),
        (pdaggerq, 400),
        (wicked, 300),
        (einsum, 300),
        (sympy_objects, 150),
    ],
)
def test_a_mutant_is_a_system_or_an_error(read: Callable[[int], object], few: int) -> None:
    valid = 0
    for number in numbers(few, FULL):
        try:
            valid += check(partial(read, number))
        except BaseException as error:
            error.add_note(f"{read.__name__}({number})")
            raise
    assert valid > few // 50  # mutants that are valid try what follows the reader


def test_the_inputs_that_are_mutated_are_valid() -> None:
    for text in SPECS:
        read_spec(text).verify()
        assert text.count("\n") < 10
    for data in TERMS:
        read_terms(json.dumps(data), "t.json").verify()
    for strings in STRINGS:
        assert from_pdaggerq(printed(strings)).pretty() == from_pdaggerq(strings).pretty()
    for line in IR:
        from_pdaggerq(json.dumps(line)).verify()
    for text in WICKED:
        from_wicked(text).verify()


def test_the_alarm_stops_what_takes_long() -> None:
    def forever() -> None:
        while True:
            pass

    with pytest.raises(TooSlowError), alarm(0.05):
        forever()
