"""Unfused steps in every layout: the module's values equal the program's."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from support.flat_programs import (
    LETTERS,
    O,
    P,
    V,
    a,
    b,
    c,
    check,
    check_plan_values,
    contraction,
    i,
    j,
    k,
    p,
    program_of,
    source,
    statements,
    step,
    unfused,
)
from support.messages import mentions
from tcgen.errors import PlanError
from tcgen.ir.expr import Call, Const, Delta, Expr, Prod, Quot, Sum
from tcgen.ir.loops import Assign, Fetch, Gemm
from tcgen.ir.plan import ArrayPlan, FusionPlan, GroupKind, KernelGroup, Place, Visit
from tcgen.ir.program import Add, Contract, FormulaSequence, Map, Phase, Produce, Step
from tcgen.ir.tensor import (
    Index,
    Packing,
    Ref,
    Role,
    Space,
    Storage,
    Tensor,
)
from tcgen.lower import lower_plan
from tcgen.options import Options
from tcgen.thresholds import Thresholds
from tcgen.thresholds.cpu import CpuThresholds


@pytest.mark.parametrize(
    ("out", "one", "two", "kinds"),
    [
        ("ij", "ik", "kj", "gemm"),
        ("ij", "ki", "kj", "gemm"),
        ("ij", "kj", "ik", "gemm"),
        ("ji", "ik", "jk", "gemm"),
        ("ijab", "ijcp", "abcp", "gemm"),
        ("iajb", "ick", "ckajb", "gemm"),
        ("iab", "iac", "icb", "gemm"),  # batch
        ("aib", "aic", "cib", "gemm"),  # batch between rows and columns
        ("abi", "aci", "cbi", "copy copy gemm copy"),  # batch on the fastest axis
        ("iajb", "ijk", "abk", "contract"),  # the result is permuted
        ("iajb", "ikj", "abk", "contract"),
        ("ijab", "ikja", "bk", "contract"),
        ("i", "ik", "k", "gemm"),
        ("k", "ik", "i", "gemm"),
        ("i", "kci", "kc", "gemm"),
        ("", "ik", "ik", "loops"),
        ("ij", "i", "j", "loops"),
        ("ij", "ij", "ij", "loops"),
        ("i", "ik", "ik", "loops"),
        ("ij", "kkj", "ik", "copy gemm"),  # repeated index: a diagonal
        ("ij", "ika", "kj", "copy gemm"),  # a is summed only in x
        ("ic", "ik", "ka", "loops"),  # broadcast over c of a matrix-vector product
    ],
)
def test_forms(out: str, one: str, two: str, kinds: str) -> None:
    module = check(contraction(out, one, two))
    found = [
        ("gemm" if s.scheme is None else "contract")
        if isinstance(s, Gemm)
        else "copy"
        if s.expr.__class__.__name__ == "Access"
        else "loops"
        for s in statements(module)
    ]
    assert " ".join(found) == kinds, module.pretty()


def test_a_permuted_result_is_blocked() -> None:
    module = check(contraction("iajb", "ijk", "abk"), target="numpy")
    copy = statements(module)[-1]
    assert isinstance(copy, Assign)
    assert copy.block == ()  # b is fastest on both sides
    add = check(
        program_of(
            step(
                0,
                Ref(Tensor("r", (O, V), Role.OUTPUT), (i, a)),
                Add(Ref(source("x", V, O), (a, i))),
            )
        )
    )
    (permutation,) = statements(add)
    assert isinstance(permutation, Assign)
    assert permutation.block == ("a", "i")
    assert permutation.parallel == 1


def test_an_intermediate_takes_the_order_that_needs_no_copy() -> None:
    """t[i,a,j,b] = x[i,j,k] y[a,b,k] lies as [i,j,a,b] and is read so."""
    t = Tensor("t", (O, V, O, V), Role.TEMP)
    r = Tensor("r", (O, O), Role.OUTPUT)
    x, y, z = source("x", O, O, O), source("y", V, V, O), source("z", V, V)
    module = check(
        program_of(
            step(0, Ref(t, (i, a, j, b)), Contract(Ref(x, (i, j, k)), Ref(y, (a, b, k)))),
            step(1, Ref(r, (i, j)), Contract(Ref(t, (i, a, j, b)), Ref(z, (a, b)))),
        )
    )
    assert module.buffer("t").order == (0, 2, 1, 3)
    assert all(isinstance(s, Gemm) for s in statements(module)), module.pretty()


def test_rows_and_columns_become_a_batch_where_the_copy_costs_more() -> None:
    """The ladder W[a,b,c,e] = x[p,a,c] y[p,b,e] at a large extent: no second array like W."""
    e = Index("e", V)
    x, y = source("x", P, V, V), source("y", P, V, V)
    r = Tensor("r", (V, V, V, V), Role.OUTPUT)
    ladder = Contract(Ref(x, (p, a, c)), Ref(y, (p, b, e)))
    plan = unfused(program_of(step(0, Ref(r, (a, b, c, e)), ladder)))
    numpy = Options(target="numpy")
    (product,) = statements(lower_plan(replace(plan, extents=(("o", 20), ("v", 80))), numpy))
    assert isinstance(product, Gemm)
    assert [v.name for v in product.batch] == ["a", "b"]
    free_calls = Thresholds(cpu=CpuThresholds(gemm_call=0))
    check_plan_values(plan, "float64", "numpy", free_calls)
    assert len(statements(lower_plan(plan, numpy))) == 2


def test_scratch_lives_from_its_copy_to_its_last_use() -> None:
    module = check(contraction("iajb", "ikj", "abk"), target="numpy")
    scratch = [b for b in module.buffers if b.tensor is None]
    assert [b.name for b in scratch] == ["tmp1", "tmp2"]
    assert {b.place for b in scratch} == {"arena"}
    assert [b.live for b in scratch] == [(0, 1), (1, 2)]  # copy, product, copy


def test_joined_slices() -> None:
    x, y = source("x", P, P), source("y", P, V)
    r = Tensor("r", (P, V), Role.OUTPUT)
    module = check(program_of(step(0, Ref(r, (i, a)), Contract(Ref(x, (i, b)), Ref(y, (b, a))))))
    assert "x[i,b+N_o]" in module.pretty()
    assert "zero r" in module.pretty()


@pytest.mark.parametrize("antisymmetric", [False, True])
def test_packed_operand_and_result(antisymmetric: bool) -> None:
    storage = Storage(packed=(Packing(1, antisymmetric),))
    x, y = source("x", O, V, V, storage=storage), source("y", O, V, V)
    r = Tensor("r", (O, V, V), Role.OUTPUT, storage=storage)
    product = Contract(Ref(x, (i, a, c)), Ref(y, (i, c, b)))
    module = check(program_of(step(0, Ref(r, (i, a, b)), product)))
    assert "r_dense" not in module.pretty()
    assert f"b:v{'<' if antisymmetric else '<='}a" in module.pretty()


def test_packed_result_that_accumulates() -> None:
    storage = Storage(order=(2, 0, 1), packed=(Packing(0),))
    x = source("x", V, V, O, storage=storage)
    r = Tensor("r", (V, V, O), Role.OUTPUT, storage=storage, accumulate=True)
    add = Add(Ref(x, (b, a, i)))
    check(program_of(step(0, Ref(r, (a, b, i)), add, accumulate=True, coeff=Fraction(1, 3))))


def test_two_producers_of_a_packed_result() -> None:
    storage = Storage(packed=(Packing(0),))
    x, y = source("x", V, O), source("y", V, V)
    r = Tensor("r", (V, V), Role.OUTPUT, storage=storage)
    check(
        program_of(
            step(0, Ref(r, (a, b)), Contract(Ref(x, (a, i)), Ref(x, (b, i)))),
            step(1, Ref(r, (a, b)), Add(Ref(y, (b, a))), accumulate=True, coeff=Fraction(-2)),
        )
    )


def test_real_operand_of_a_complex_product_is_converted() -> None:
    x, y = source("x", O, V, real=True), source("y", V, O)
    r = Tensor("r", (O, O), Role.OUTPUT)
    program = program_of(step(0, Ref(r, (i, j)), Contract(Ref(x, (i, a)), Ref(y, (a, j)))))
    module = check(program, "complex128")
    assert module.buffer("x").dtype == "float64"
    copy, product = statements(module)
    assert isinstance(copy, Assign)
    assert isinstance(product, Gemm)
    assert module.buffer(copy.out.buffer).dtype == "complex128"


@pytest.mark.parametrize(
    ("out", "given"),
    [("ij", "ji"), ("i", "ii"), ("", "ii"), ("ia", "i"), ("", "ia"), ("iab", "bia"), ("", "")],
)
def test_additions(out: str, given: str) -> None:
    x = source("x", *(LETTERS[l].space for l in given))
    r = Tensor("r", tuple(LETTERS[l].space for l in out), Role.OUTPUT)
    add = Add(Ref(x, tuple(LETTERS[l] for l in given)))
    check(program_of(step(0, Ref(r, tuple(LETTERS[l] for l in out)), add, coeff=Fraction(-1, 2))))


def delta_map(out: tuple[Index, ...], sums: tuple[Index, ...], expr: Expr) -> FormulaSequence:
    r = Tensor("r", tuple(x.space for x in out), Role.OUTPUT)
    return program_of(step(0, Ref(r, out), Map(expr), sums=sums))


def test_maps_and_deltas() -> None:
    e = source("e", P)
    denominator = Quot(Const(Fraction(1)), Sum((Ref(e, (i,)), Ref(e, (a,)))))
    check(delta_map((i, a), (), denominator))
    check(delta_map((), (i, a), Prod((denominator, Call("sqrt", Ref(e, (a,)))))))
    check(delta_map((p, i), (), Prod((Delta(p, i), Ref(e, (p,))))))
    check(delta_map((p, a), (), Delta(a, p)))
    check(delta_map((i, a), (), Sum((Delta(i, a), Ref(e, (a,))))))
    check(delta_map((i,), (j,), Prod((Delta(i, j), Ref(e, (j,))))))


def test_delta_that_is_no_single_equality() -> None:
    left = Index("q", Space("q", parts=(O, V)))
    right = Index("s", Space("s", parts=(Space("x"), V)))
    r = Tensor("r", (left.space, right.space), Role.OUTPUT)
    program = FormulaSequence(
        "test",
        (O, V, Space("x"), left.space, right.space),
        (r,),
        (Step(0, Ref(r, (left, right)), Map(Delta(left, right))),),
    )
    group = KernelGroup("k", GroupKind.MAP, (0,))
    arrays = (ArrayPlan(r, place=Place.CALLER),)
    plan = FusionPlan(program, (("o", 1), ("v", 1), ("x", 1)), (), (Visit(0),), arrays, (group,))
    with pytest.raises(PlanError, match=mentions("delta q s")):
        lower_plan(plan, Options())


def test_constant_steps_run_once_and_are_kept() -> None:
    x, y = source("x", O, V, volatile=False), source("y", V, O)
    t, r = Tensor("t", (O, O), Role.TEMP), Tensor("r", (O, O), Role.OUTPUT)
    module = check(
        program_of(
            step(0, Ref(t, (i, j)), Contract(Ref(x, (i, a)), Ref(x, (j, a))), phase=Phase.CONSTANT),
            step(1, Ref(r, (i, j)), Add(Ref(t, (j, i)))),
            step(2, Ref(r, (i, j)), Contract(Ref(x, (i, a)), Ref(y, (a, j))), accumulate=True),
        )
    )
    assert len(module.host_constant) == 1
    assert module.buffer("t").keep
    assert module.buffer("t").live == (0, 1)


def test_a_constant_output_is_computed_once() -> None:
    x, r = source("x", O, volatile=False), Tensor("r", (O,), Role.OUTPUT)
    module = check(program_of(step(0, Ref(r, (i,)), Add(Ref(x, (i,))), phase=Phase.CONSTANT)))
    assert len(module.host_constant) == 1
    assert not module.host_volatile


def test_a_generated_input_that_is_not_fused_is_fetched_whole() -> None:
    g, y = Tensor("g", (O, V), Role.GENERATED, volatile=False), source("y", V, O)
    r = Tensor("r", (O, O), Role.OUTPUT)
    fetch = Step(0, Ref(g, (i, a)), Produce(g), phase=Phase.CONSTANT)
    product = step(1, Ref(r, (i, j)), Contract(Ref(g, (i, a)), Ref(y, (a, j))))
    program = FormulaSequence("test", (O, V), (g, y, r), (fetch, product))
    program.verify()
    module = check(program)
    assert not module.buffer("g").keep  # a plan counts it while its reader runs
    assert isinstance(module.host_volatile[0], Fetch)
    assert "fetch g[:,:]" in module.pretty()
