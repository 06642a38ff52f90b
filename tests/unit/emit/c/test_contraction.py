"""The generated contraction kernel against the interpreter: layouts, edges, types, memory."""

from __future__ import annotations

import ctypes
import math
import mmap
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

import tcgen
from support import hand_modules as hand
from support.contraction_programs import contraction_of, program_for
from support.marks import slow_where
from support.messages import mentions
from tcgen.artifact.kernel_abi import packing_bytes
from tcgen.emit import emit_artifact
from tcgen.errors import VerifyError
from tcgen.interp import run_module
from tcgen.ir.loops import BandVar, Gemm, Module, PackingScheme, Stmt
from tcgen.ir.tensor import Role, Space, Storage
from tcgen.runtime.program import Program

Letters = list[tuple[str, Space]]
SCHEMES = (
    PackingScheme(),
    PackingScheme(pack_a=False),
    PackingScheme(pack_b=False),
    PackingScheme(pack_a=False, stage=True),
    PackingScheme(pack_b=False, stage=True),
)


def random_contraction(random: Random, number: int) -> tuple[tuple[Any, ...], Stmt]:
    """Random groups, a random layout of each array, a scheme that may or may not suit them."""
    pool: Letters = [
        (f"{n}{k}", s)
        for k, (n, s) in enumerate(
            random.choice((("i", hand.O), ("a", hand.V))) for _ in range(random.randint(2, 5))
        )
    ]
    groups: dict[str, Letters] = {g: [] for g in "bmnk"}
    for pair in pool:
        groups[random.choice("mmnnkkb")].append(pair)

    def array(name: str, held: str, **more: Any) -> tuple[Any, Any]:
        axes = [pair for g in held for pair in groups[g]]
        random.shuffle(axes)
        storage = Storage(tuple(random.sample(range(len(axes)), len(axes))))
        tensor = hand.tensor(name, *(s for _, s in axes), storage=storage, **more)
        return tensor, hand.at(name, *(n for n, _ in axes))

    a, at_a = array(f"p{number}", "bmk")
    b, at_b = array(f"q{number}", "bkn")
    out, at_out = array(f"r{number}", "bmn", role=Role.OUTPUT)
    batch, m, n, k = (tuple(BandVar(x, s) for x, s in groups[g]) for g in "bmnk")
    coeff = Fraction(random.choice((1, -2)), 3)
    scheme, parallel = random.choice(SCHEMES), random.random() < 0.7
    stmt = Gemm(at_out, at_a, at_b, batch, m, n, k, coeff, False, parallel, scheme)
    again = replace(stmt, accumulate=True, coeff=Fraction(1, 2))
    return (a, b, out), (stmt, again) if random.random() < 0.3 else (stmt,)


def compare(program: Program, module: Module, extents: dict[str, int]) -> None:
    random = np.random.default_rng(3)
    inputs: dict[str, Any] = {}
    for t in module.tensors:
        if t.is_input:
            shape = tuple(extents[t.spaces[axis].name] for axis in t.stored_order)
            inputs[t.name] = random.uniform(-1, 1, shape).astype(module.dtype)
            if module.dtype == "complex128":
                inputs[t.name] += 1j * random.uniform(-1, 1, shape)
    tolerance = 2e-4 if module.dtype == "float32" else 1e-11
    expected = run_module(module, inputs, extents)
    actual = program(**inputs)
    for name, reference in expected.items():
        assert np.allclose(actual[name], reference, rtol=tolerance, atol=tolerance), name
    assert program.allocated_bytes == program.peak_bytes(extents)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_random_contractions(dtype: str) -> None:
    random = Random(11)
    made = [random_contraction(random, n) for n in range(60)]
    tensors = tuple(t for ts, _ in made for t in ts)
    module = hand.module("random", tensors, *(body for _, body in made), dtype=dtype)
    program = Program(emit_artifact(module, target="cpu", planning_extents=(("o", 3), ("v", 4))))
    for o, v in ((3, 4), (1, 2), (0, 2), (2, 0), (13, 5), (7, 11)):
        compare(program, module, {"o": o, "v": v})


def test_the_numpy_target_runs_contractions_of_any_layout() -> None:
    random = Random(5)
    made = [random_contraction(random, n) for n in range(30)]
    tensors = tuple(t for ts, _ in made for t in ts)
    module = hand.module("random", tensors, *(body for _, body in made))
    program = Program(emit_artifact(module, target="numpy"))
    compare(program, module, {"o": 3, "v": 4})


LABELS = {
    "in place": "deba,ce->dcba",
    "elements in place": "dcbe,ae->dcba",
    "rows transposed": "aebd,ce->dcba",
    "columns transposed": "dabe,ec->dcba",
    "both packed": "aged,cbfg->fedcba",
    "batch": "xaeb,xec->xcba",
    "batch between": "aexb,xec->cxba",
    "fastest operand axis is neither": "acdb,be->eadc",
}


@pytest.mark.parametrize(
    "labels",
    slow_where(lambda labels: labels == LABELS["both packed"], LABELS.values()),
    ids=LABELS.keys(),
)
def test_large_operands(labels: str) -> None:
    """Extents at which the operands are read in place and tiles are staged, and odd ones."""
    letters = sorted(set(labels) - {",", "-", ">"})
    operands = labels.split("->")[0].split(",")
    large = max(operands, key=len)
    few = 70 if len(large) < 4 else 23
    plan = {c: few if c in large and len(large) < 5 else 9 for c in letters}
    program, module = program_for(labels, plan, "float64")
    assert contraction_of(module).scheme is not None
    random = np.random.default_rng(0)
    for shift in (0, 1, -3):
        extents = {c: n + shift * (1 + k % 3) for k, (c, n) in enumerate(plan.items())}
        arrays = [random.standard_normal([extents[c] for c in text]) for text in operands]
        expected = np.einsum(labels, *arrays, optimize=True)
        for offset in (0, 1):  # a result that starts on a cache line, and one that does not
            memory = np.zeros(expected.size + 8)
            start = -memory.ctypes.data % 64 // 8 + offset
            out = memory[start : start + expected.size].reshape(expected.shape)
            program(x0=arrays[0], x1=arrays[1], out={"y": out})
            np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-11)
            assert np.count_nonzero(memory) <= expected.size


@pytest.mark.few(6)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize(
    ("labels", "extents"),
    [
        ("eba,ce->cba", {"a": 31, "b": 57, "c": 307, "e": 5}),  # runs of many panels
        ("aged,cbfg->fedcba", {"a": 23, "b": 9, "c": 8, "d": 11, "e": 7, "f": 5, "g": 3}),
        ("badg,cgfe->fedcba", {"a": 21, "b": 10, "c": 9, "d": 7, "e": 11, "f": 4, "g": 1}),
        # Panels of several runs, the last one of fewer.
        ("aged,cbfg->fedcba", {"a": 10, "b": 9, "c": 13, "d": 11, "e": 7, "f": 12, "g": 5}),
        ("aged,cbfg->fedcba", {"a": 5, "b": 17, "c": 13, "d": 11, "e": 7, "f": 13, "g": 40}),
        ("dabe,ec->dcba", {"a": 30, "b": 29, "c": 13, "d": 53, "e": 17}),  # staged
    ],
)
def test_non_temporal_stores(labels: str, extents: dict[str, int], dtype: str) -> None:
    """Targets of 4 MB and more, whose runs are no whole lines, or begin within one."""
    program, _ = program_for(labels, extents, dtype)
    random = np.random.default_rng(5)
    operands = [
        random.standard_normal([extents[c] for c in text]).astype(dtype)
        for text in labels.split("->")[0].split(",")
    ]
    expected = np.einsum(labels, *operands, optimize=True)
    assert expected.nbytes >= 4_000_000 or dtype == "float32"
    for offset in (0, 1, 3):
        memory = np.zeros(expected.size + 64, dtype)
        start = -memory.ctypes.data % 64 // memory.itemsize + offset
        out = memory[start : start + expected.size].reshape(expected.shape)
        program(x0=operands[0], x1=operands[1], out={"y": out})
        tolerance = 1e-4 if dtype == "float32" else 1e-11
        np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
        out[...] = 0
        assert not memory.any()


@pytest.mark.few(4)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("labels", ["fbea,cedf->dcba", "bfae,ecfd->dcba", "afbe,fced->dcba"])
def test_sums_of_several_blocks(labels: str, dtype: str) -> None:
    """Rows, columns and summed points whose runs end within panels, squares and blocks."""
    extents = {"a": 13, "b": 11, "c": 7, "d": 10, "e": 21, "f": 37}
    program, _ = program_for(labels, extents, dtype)
    random = np.random.default_rng(8)
    for shift in (0, -1, 3):
        operands = [
            random.standard_normal([extents[c] + shift for c in text]).astype(dtype)
            for text in labels.split("->")[0].split(",")
        ]
        if dtype == "complex128":
            operands = [x + 1j * x[::-1] for x in operands]
        expected = np.einsum(labels, *operands, optimize=True)
        tolerance = 1e-3 if dtype == "float32" else 1e-11
        found = program(x0=operands[0], x1=operands[1])["y"]
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=30 * tolerance)


def test_schemes_follow_the_layout() -> None:
    chosen = {}
    for name, labels in LABELS.items():
        extents = {c: 72 if c in "abde" else 24 for c in labels if c.isalpha()}
        _, module = program_for(labels, extents, "float64")
        chosen[name] = contraction_of(module).scheme
    assert chosen["rows transposed"] == PackingScheme(pack_a=False, stage=True)
    assert chosen["columns transposed"] == PackingScheme(pack_b=False, stage=True)
    assert chosen["both packed"] == PackingScheme()
    assert chosen["elements in place"] == PackingScheme(pack_b=False)


PARTS = {
    "aged,cbfg->fedcba": {"blocks", "packed"},
    "aebd,ce->dcba": {"fallback", "packed", "left", "staged"},
    "dabe,ec->dcba": {"fallback", "right", "staged"},
    "deba,ce->dcba": {"blocks", "packed", "left"},
}


@pytest.mark.parametrize("labels", PARTS)
def test_a_program_holds_the_parts_of_the_kernel_that_it_needs(labels: str) -> None:
    extents = {c: 72 if c in "abde" else 24 for c in labels if c.isalpha()}
    program, _ = program_for(labels, extents, "float64")
    files = [path for path, _ in program.artifact.files if path.startswith("contract_")]
    assert set(files) == {f"contract_{part}_float64.c" for part in PARTS[labels]}


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_thin_products_leave_the_blas(dtype: str) -> None:
    """A real product in C order leaves the BLAS if it is large and one side is short."""
    found = {}
    for n in (72, 600):
        _, module = program_for("ik,jk->ij", {"i": 9000, "j": n, "k": n}, dtype)
        (product,) = module.kernels[0].body
        assert isinstance(product, Gemm)
        found[n] = product.scheme
    assert found[600] is None
    assert (found[72] is None) == (dtype == "complex128")


def test_packing_memory_grows_with_the_product_up_to_a_block() -> None:
    sizes = [packing_bytes("float64", n, n, n) for n in (1, 10, 100, 1000, 10000)]
    assert sizes == sorted(sizes)
    assert packing_bytes("float64", 10**6, 10**6, 10**6) < 10 * 2**20
    assert packing_bytes("float64", 10**6, 100, 300, staged_a=True) < 3.2 * 2**20


def test_an_operand_of_a_contraction_holds_each_variable_once() -> None:
    a, b = hand.tensor("a", hand.O, hand.O), hand.tensor("b", hand.O, hand.V)
    r = hand.tensor("r", hand.O, hand.V, role=Role.OUTPUT)
    i, v, k = BandVar("i", hand.O), BandVar("v", hand.V), BandVar("k", hand.O)
    stmt = Gemm(
        hand.at("r", "i", "v"),
        hand.at("a", "k", "k"),  # a diagonal
        hand.at("b", "k", "v"),
        (),
        (i,),
        (v,),
        (k,),
        scheme=PackingScheme(),
    )
    with pytest.raises(VerifyError, match=mentions("a[k,k]")):
        hand.module("twice", (a, b, r), (stmt,))


@pytest.mark.slow
def test_threads_share_the_target_or_the_batch() -> None:
    """Extents above those for which threads are started; any number of threads, more than tiles."""
    random = np.random.default_rng(1)
    for labels in ("aebd,ce->dcba", "xaeb,xec->xcba", "dabe,ec->dcba", "aged,cbfg->fedcba"):
        letters = sorted(c for c in set(labels) if c.isalpha())
        extents = {c: 14 + n % 3 for n, c in enumerate(letters)}
        operands, _ = labels.split("->")
        arrays = [random.standard_normal([extents[c] for c in t]) for t in operands.split(",")]
        expected = np.einsum(labels, *arrays, optimize=True)
        program, _ = program_for(labels, extents, "float64")
        for count in (1, 2, 3, 5):
            tcgen.set_threads(count)
            try:
                found = program(x0=arrays[0], x1=arrays[1])["y"]
                assert program.allocated_bytes == program.peak_bytes()
            finally:
                tcgen.set_threads(None)
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_set_threads_refuses_other_than_counts() -> None:
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(tcgen.ArgumentError, match="set_threads"):
            tcgen.set_threads(wrong)  # type: ignore[arg-type]


def test_rows_in_place_are_not_read_beyond_the_end_of_the_operand() -> None:
    shape = (3, 16, 9, 31, 47)
    size = math.prod(shape) * 8
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + pages), mmap.PAGESIZE, 0) == 0
    a = np.frombuffer(memory, np.float64, math.prod(shape), pages - size).reshape(shape)
    a[...] = np.random.default_rng(0).standard_normal(shape)
    b = np.random.default_rng(1).standard_normal((31, 24))
    found = tcgen.einsum("dabfe,fc->edcba", a, b)
    np.testing.assert_allclose(found, np.einsum("dabfe,fc->edcba", a, b, optimize=True), atol=1e-11)


@pytest.mark.parametrize(
    ("labels", "summed", "rows"),
    [
        ("ae,edcb->cdab", 80, "dcb"),  # as they are read
        ("ae,edcb->cadb", 80, "cdb"),  # d and b follow each other in the target
        ("ae,edcb->cdab", 10, "cdb"),  # as they are stored
    ],
)
def test_rows_of_long_sums_are_packed_in_their_order(labels: str, summed: int, rows: str) -> None:
    extents = {"a": 100, "b": 2, "c": 5, "d": 7, "e": summed}
    program, module = program_for(labels, extents, "float64")
    product = contraction_of(module)
    names = dict(zip(product.a.variables, "edcb", strict=True))
    assert "".join(names[v.name] for v in product.m) == rows
    random = np.random.default_rng(5)
    one, two = random.standard_normal((100, summed)), random.standard_normal((summed, 7, 5, 2))
    np.testing.assert_allclose(
        program(x0=one, x1=two)["y"], np.einsum(labels, one, two), rtol=1e-11, atol=1e-11
    )
