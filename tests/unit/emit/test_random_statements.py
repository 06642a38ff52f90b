"""Random expressions, assignments and matrix products, printed for every target and compared."""

from __future__ import annotations

import re
import subprocess
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

import tcgen
from support import hand_modules as hand
from support.messages import mentions
from tcgen.emit import emit_artifact
from tcgen.emit.printing import literal
from tcgen.emit.scope import C_RESERVED, CUDA_RESERVED, PYTHON_RESERVED, legal, unique
from tcgen.errors import UnavailableError, VerifyError
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_system
from tcgen.interp.modules import run_module
from tcgen.ir.expr import Call, Const, Expr, Pow, Prod, Quot, Sum
from tcgen.ir.loops import Assign, BandVar, Gemm, Module, Stmt
from tcgen.ir.tensor import Space, Storage
from tcgen.resources import fill, template_text
from tcgen.runtime.cpu.toolchain import find_compiler
from tcgen.runtime.program import Program
from tcgen.testing import random_arrays

TARGETS = ["cpu", "numpy"]
EXTENTS = {"o": 3, "v": 5}


def compare(module: Module, target: str, extents: dict[str, int], seed: int) -> None:
    program = Program(emit_artifact(module, target=target, planning_extents=tuple(extents.items())))
    random = np.random.default_rng(seed)
    inputs: dict[str, Any] = {}
    for t in module.tensors:
        if t.is_input:
            shape = tuple(extents[t.spaces[axis].name] for axis in t.stored_order)
            inputs[t.name] = random.uniform(0.5, 1.5, shape).astype(module.dtype)
            if module.dtype == "complex128":
                inputs[t.name] += 1j * random.uniform(-1, 1, shape)
    expected = run_module(module, inputs, extents)
    actual = program(**inputs)
    for name, reference in expected.items():
        assert np.allclose(actual[name], reference, rtol=1e-11, atol=1e-11), (name, program.source)


def random_expr(random: Random, leaf: list[Expr], depth: int) -> Expr:
    if depth == 0 or random.random() < 0.15:
        if random.random() < 0.3:
            return Const(Fraction(random.choice((-3, -1, 1, 2, 5)), random.choice((1, 2, 3))))
        return random.choice(leaf)

    def deeper() -> Expr:
        return random_expr(random, leaf, depth - 1)

    match random.randrange(6):
        case 0:
            return Sum(tuple(deeper() for _ in range(random.randint(2, 3))))
        case 1:
            return Prod(tuple(deeper() for _ in range(random.randint(2, 3))))
        case 2:
            return Prod((Const(Fraction(-1)), deeper()))
        case 3:
            # never near zero, so that the comparison means something
            return Quot(deeper(), Sum((Const(Fraction(20)), Call("sin", random.choice(leaf)))))
        case 4:
            return Pow(Call("cos", random.choice(leaf)), random.randint(0, 3))
        case _:
            return Call(random.choice(("sin", "cos", "real", "conj", "abs")), deeper())


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("target", TARGETS)
def test_precedence_of_random_expressions(target: str, dtype: str) -> None:
    random = Random(11)
    x, y = hand.tensor("x", hand.O, hand.V), hand.tensor("y", hand.V)
    i, a = BandVar("i", hand.O), BandVar("a", hand.V)
    leaf: list[Expr] = [hand.at("x", "i", "a"), hand.at("y", "a")]
    outputs = tuple(hand.output(f"r{n}", hand.O, hand.V) for n in range(40))
    body = tuple(
        Assign(
            hand.at(t.name, "i", "a"),
            random_expr(random, leaf, 4),
            Fraction(random.choice((1, -1, 2)), random.choice((1, 3))),
            band=(i, a),
            parallel=random.randint(0, 2),
        )
        for t in outputs
    )
    compare(hand.module("random", (x, y, *outputs), body, dtype=dtype), target, EXTENTS, 1)


def random_assign(random: Random, number: int) -> tuple[tuple[Any, ...], Stmt]:
    """Tensors of a random sum of products, and the statement."""
    letters = [("i", hand.O), ("a", hand.V), ("j", hand.O), ("b", hand.V)]
    letters = random.sample(letters, random.randint(1, 4))
    held = random.sample(letters, random.randint(0, len(letters)))
    summed = [pair for pair in letters if pair not in held]
    order = [*random.sample(held, len(held)), *summed]
    parallel = random.randint(0, len(held)) if held else random.randint(0, len(summed))
    block: tuple[str, ...] = ()
    if len(held) > 1 and random.random() < 0.5:
        block = tuple(name for name, _ in random.sample(held, 2))

    def array(name: str, axes: list[tuple[str, Space]], **more: Any) -> Any:
        storage = Storage(tuple(random.sample(range(len(axes)), len(axes))))
        return hand.tensor(name, *(s for _, s in axes), storage=storage, **more)

    first = random.sample(letters, random.randint(1, len(letters)))
    second = [*[p for p in letters if p not in first], *random.sample(first, 1)]
    p, q = array(f"p{number}", first), array(f"q{number}", second)
    out = array(f"r{number}", held, role=hand.Role.OUTPUT)
    product = Prod(
        (hand.at(p.name, *(n for n, _ in first)), hand.at(q.name, *(n for n, _ in second)))
    )
    stmt = Assign(
        hand.at(out.name, *(n for n, _ in held)),
        product,
        Fraction(random.choice((1, -1, 3)), 2),
        band=tuple(BandVar(n, s) for n, s in order),
        parallel=parallel,
        block=block,
    )
    return (p, q, out), stmt


@pytest.mark.parametrize(
    "extents", [EXTENTS, {"o": 34, "v": 3}, {"o": 2, "v": 35}, {"o": 0, "v": 2}]
)
@pytest.mark.parametrize("target", TARGETS)
def test_random_assignments(target: str, extents: dict[str, int]) -> None:
    random = Random(5)
    made = [random_assign(random, n) for n in range(40)]
    tensors = tuple(t for ts, _ in made for t in ts)
    module = hand.module("random", tensors, tuple(s for _, s in made))
    compare(module, target, extents, 2)


@pytest.mark.parametrize("block", [("i", "j"), ("i", "a"), ("i", "b"), ("a", "b"), ("j", "b")])
@pytest.mark.parametrize("extents", [EXTENTS, {"o": 34, "v": 35}])
@pytest.mark.parametrize("target", TARGETS)
def test_parallel_sums_over_blocks(
    target: str, extents: dict[str, int], block: tuple[str, str]
) -> None:
    """Blocked variables stand anywhere in the band of a sum to one number."""
    p, q = (hand.tensor(name, hand.O, hand.O, hand.V, hand.V) for name in "pq")
    e = hand.output("e")
    stmt = Assign(
        hand.at("e"),
        Prod((hand.at("p", "i", "j", "a", "b"), hand.at("q", "j", "i", "b", "a"))),
        band=(
            BandVar("i", hand.O),
            BandVar("a", hand.V),
            BandVar("j", hand.O),
            BandVar("b", hand.V),
        ),
        parallel=4,
        block=block,
    )
    compare(hand.module("sums", (p, q, e), (stmt,)), target, extents, 3)


def random_product(random: Random, number: int) -> tuple[tuple[Any, ...], Stmt]:
    """A product of random groups in a random legal layout."""
    pool = [
        (f"{n}{k}", s)
        for k, (n, s) in enumerate(
            ("i", hand.O) if random.random() < 0.5 else ("a", hand.V) for _ in range(4)
        )
    ]
    groups: dict[str, list[tuple[str, Space]]] = {"m": [], "n": [], "k": []}
    for pair in pool:
        groups[random.choice("mnk")].append(pair)
    batch = [("x", hand.O)] if random.random() < 0.5 else []

    def array(name: str, one: str, two: str, **more: Any) -> tuple[Any, Any]:
        blocks = [groups[one], groups[two]]
        random.shuffle(blocks)
        if batch:
            # a batch axis may stand anywhere but fastest
            last = next((b for b in reversed(blocks) if b), None)
            blocks.insert(random.randrange(0, blocks.index(last) + 1) if last else 0, batch)
        axes = [pair for block in blocks for pair in block]
        return hand.tensor(name, *(s for _, s in axes), **more), hand.at(
            name, *(n for n, _ in axes)
        )

    a, at_a = array(f"p{number}", "m", "k")
    b, at_b = array(f"q{number}", "k", "n")
    out, at_out = array(f"r{number}", "m", "n", role=hand.Role.OUTPUT)
    m, n, k = (tuple(BandVar(x, s) for x, s in groups[g]) for g in "mnk")
    stmt = Gemm(
        at_out,
        at_a,
        at_b,
        tuple(BandVar(x, s) for x, s in batch),
        m,
        n,
        k,
        Fraction(random.choice((1, -2)), 3),
        parallel=random.random() < 0.5,
    )
    return (a, b, out), stmt


@pytest.mark.few(6)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("extents", [EXTENTS, {"o": 1, "v": 2}, {"o": 0, "v": 2}])
@pytest.mark.parametrize("target", TARGETS)
def test_random_products(target: str, extents: dict[str, int], dtype: str) -> None:
    random = Random(3)
    made = [random_product(random, n) for n in range(40)]
    tensors = tuple(t for ts, _ in made for t in ts)
    module = hand.module("random", tensors, *((s,) for _, s in made), dtype=dtype)
    compare(module, target, extents, 3)


def test_literals_are_the_nearest_numbers() -> None:
    assert literal(Fraction(1, 10) + Fraction(2, 10), "float64") == "0.3"
    assert literal(Fraction(0.1) + Fraction(0.2), "float64") == "0.30000000000000004"
    assert float(literal(Fraction(2, 3), "float64")) == 2 / 3
    assert literal(Fraction(-1, 3), "float32") == "-0.3333333333333333f"
    with pytest.raises(VerifyError, match=mentions("float64")):
        literal(Fraction(10**400), "float64")


def test_names_are_legal_and_unique() -> None:
    assert unique(["I", "lambda", "double", "e", "e", "2x", "tc_a", "N_o", "_q"], C_RESERVED) == [
        "I_",
        "lambda",
        "double_",
        "e",
        "e_2",
        "x_2x",
        "x_tc_a",
        "x_N_o",
        "x__q",
    ]
    assert unique(["I", "lambda", "np", "sum"], PYTHON_RESERVED) == ["I", "lambda_", "np_", "sum_"]


def test_no_macro_of_the_headers_is_a_name() -> None:
    """A preprocessor would replace a parameter named SIZE_MAX, and the text would not compile."""
    command = find_compiler()
    if command is None:
        pytest.skip("no C compiler")
    head = template_text("c/head.c")
    lines = [line for line in head.split("\n") if line.startswith("#include")]
    listed = subprocess.run(
        [*command, "-fopenmp", "-dM", "-E", "-x", "c", "-"],
        input="\n".join(
            ["#define _GNU_SOURCE", *lines, "#include <limits.h>", "#include <float.h>"]
        ),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    macros = {line.split()[1].partition("(")[0] for line in listed.splitlines()}
    macros |= set(re.findall(r"#define (\w+)", head))
    assert {"SIZE_MAX", "HUGE_VAL", "TC_STOP", "unix"} <= macros
    assert [name for name in sorted(macros) if legal(name, C_RESERVED) == name] == []
    assert [name for name in sorted(macros) if legal(name, CUDA_RESERVED) == name] == []
    assert [legal(name, C_RESERVED) for name in ("W", "T_2", "OV", "t2AB")] == [
        "W",
        "T_2",
        "OV",
        "t2AB",
    ]


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_arrays_and_indices_may_have_names_of_headers(target: str) -> None:
    names = ("INT64_MAX", "TC_STOP", "M_E", "CMPLX", "omp_get_num_threads", "fmax", "isnan", "NULL")
    system = read_spec(
        f"space o\nindex SIZE_MAX TC_ROWS I : o\ninput {', '.join(f'{n}[o,o]' for n in names)}\n"
        f"output HUGE_VAL\nHUGE_VAL[SIZE_MAX,I] = "
        + " + ".join(f"exp({n}[SIZE_MAX,TC_ROWS])*{m}[TC_ROWS,I]" for n, m in pairwise(names))
    )
    arrays = random_arrays(system, {"o": 3})
    program = tcgen.compile(system, extents={"o": 3}, target=target)
    wanted = evaluate_system(system, arrays, {"o": 3})["HUGE_VAL"]
    np.testing.assert_allclose(program(**arrays)["HUGE_VAL"], wanted, rtol=1e-12)


def test_templates_are_filled_exactly() -> None:
    with pytest.raises(VerifyError, match=mentions("c/phase.c body phase")):
        fill("c/phase.c", phase="x")
    with pytest.raises(VerifyError, match=mentions("body more phase")):
        fill("c/phase.c", phase="x", body="y", more="z")
    with pytest.raises(UnavailableError, match=r"tcgen/templates/no\b"):
        template_text("no")
