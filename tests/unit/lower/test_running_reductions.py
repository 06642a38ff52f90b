"""Running reductions: the levels agree with NumPy, and their rules refuse what has no order."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from support.marks import slow
from support.messages import mentions
from tcgen.compiler.driver import Compilation, compile_system
from tcgen.distributed.slicing import sliced_stages
from tcgen.errors import PlanError, VerifyError
from tcgen.interp import evaluate_program, evaluate_system, run_module
from tcgen.ir.exchange_symmetry import tensor_sign
from tcgen.ir.expr import Const, Expr, Prod, Sum
from tcgen.ir.reduction import AnyReduction, Reduction, Running
from tcgen.ir.system import Apply, Equation, System, Term
from tcgen.ir.tensor import Index, Ref, Role, Space, Symmetry, Tensor
from tcgen.options import Options
from tcgen.runtime.program import Program

S, U = Space("s"), Space("u")
I, J, K = Index("i", S), Index("j", U), Index("k", S)
UFUNCS = {
    Running.SUM: np.add,
    Running.MAX: np.maximum,
    Running.MIN: np.minimum,
    Running.PROD: np.multiply,
}


def equation(
    left: Ref, value: Expr, sums: tuple[Index, ...] = (), by: AnyReduction = Reduction.SUM
) -> Equation:
    return Equation(left, (Term(Fraction(1), (Apply(value),), sums, reduction=by),))


def excess(along: Index, left: tuple[Index, ...], by: Running = Running.SUM) -> System:
    """t = cumsum x, m = cummin t, y = t - m, or the maximum of this over some indices."""
    x, t, m = (
        Tensor(n, (S, U), r) for n, r in (("x", Role.INPUT), ("t", Role.TEMP), ("m", Role.TEMP))
    )
    y = Tensor("y", tuple(i.space for i in left), Role.OUTPUT)
    at_t, at_m = Ref(t, (I, J)), Ref(m, (I, J))
    over = tuple(i for i in (I, J) if i not in left)
    equations = (
        equation(at_t, Ref(x, (I, J)), (along,), by),
        equation(at_m, at_t, (along,), Running.MIN),
        equation(
            Ref(y, left),
            Sum((at_t, Prod((Const(Fraction(-1)), at_m)))),
            over,
            Reduction.MAX if over else Reduction.SUM,
        ),
    )
    return System("excess", (S, U), (x, y, t, m), equations)


def wanted(x: Any, along: Index, left: tuple[Index, ...], by: Running = Running.SUM) -> Any:
    axis = (I, J).index(along)
    t = UFUNCS[by].accumulate(x, axis)
    over = tuple(n for n, i in enumerate((I, J)) if i not in left)
    result = t - np.minimum.accumulate(t, axis)
    return result.max(over, initial=-np.inf) if over else result


@cache
def compiled(
    along: Index, left: tuple[Index, ...], by: Running, objective: str, target: str, dtype: str
) -> Compilation:
    options = Options(
        extents=(("s", 50), ("u", 60)),
        target=target,
        dtype=dtype,
        objective=objective,
        optimize=False,
        round_each=True,
    )
    return compile_system(excess(along, left, by), options)


LEFT = {"y[i,j]": (I, J), "y[i]": (I,), "y[j]": (J,), "y": ()}


@pytest.mark.parametrize("objective", ["kernels", "none"])
@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("along", [I, J], ids=str)
@pytest.mark.parametrize("target", ["numpy", *slow("cpu")])
def test_all_levels_take_the_values_in_order(
    target: str, along: Index, left: str, objective: str
) -> None:
    for by in (Running.SUM, Running.PROD) if objective == "kernels" else (Running.MAX,):
        made = compiled(along, LEFT[left], by, objective, target, "float64")
        made.module.verify()
        for n, m in ((5, 7), (7, 1), (1, 1), (0, 3), (3, 0)):
            x, extents = np.random.default_rng(0).standard_normal((n, m)), {"s": n, "u": m}
            value = wanted(x, along, LEFT[left], by)
            for found in (
                evaluate_system(excess(along, LEFT[left], by), {"x": x}, extents, budget_bytes=64),
                evaluate_program(made.plan.program, {"x": x}, extents),
                run_module(made.module, {"x": x}, extents),
                Program(made.artifact)(x=x),
            ):
                np.testing.assert_array_equal(found["y"], value)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("along", [I, J], ids=str)
def test_values_in_c_by_threads(along: Index, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of running sums, and rows that threads divide."""
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    a, b = Tensor("a", (S, U), Role.INPUT), Tensor("b", (S, U), Role.OUTPUT)
    total = equation(Ref(b, (I, J)), Ref(a, (I, J)), (along,), Running.SUM)
    extents = (("s", 400), ("u", 60_000))
    options = Options(extents, dtype=dtype, objective="kernels", optimize=False)
    program = Program(compile_system(System("rows", (S, U), (a, b), (total,)), options).artifact)
    x = np.random.default_rng(0).standard_normal((70, 9000))
    array = (x * (1 + 2j) if dtype == "complex128" else x).astype(dtype)
    np.testing.assert_array_equal(program(a=array)["b"], np.cumsum(array, (I, J).index(along)))


def test_intermediates_are_registers_in_one_nest() -> None:
    for left in ((), (I,), (J,), (I, J)):
        plan = compiled(J, left, Running.SUM, "kernels", "numpy", "float64").plan
        assert len(plan.groups) == 1
        assert {a.place.value for a in plan.arrays if a.tensor.role is Role.TEMP} == {"register"}


@pytest.mark.parametrize(
    ("target", "objective"), [("cuda", "kernels"), ("cpu", "time"), ("numpy", "memory")]
)
def test_other_plans_are_refused(target: str, objective: str) -> None:
    with pytest.raises(PlanError, match=r"cumsum\(i\) x\[i,j\] .* target cpu .* objective kernels"):
        compiled(I, (), Running.SUM, objective, target, "float64")


def test_rules_of_the_levels() -> None:
    good = excess(I, ())
    first, *others = good.equations
    (term,) = first.terms
    for wrong in ((), (I, J), (K,)):
        bad = replace(first, terms=(replace(term, sums=wrong),))
        with pytest.raises(VerifyError, match="cumsum"):
            replace(good, equations=(bad, *others)).verify()
    plan = compiled(I, (), Running.SUM, "none", "numpy", "float64").plan
    visit, tile = plan.visits[0], replace(plan.loops[0], tile=2)
    tiled = replace(visit, bind=((I, tile),), loops=(tile,))
    with pytest.raises(VerifyError, match="i does not take its elements once and in order"):
        replace(plan, loops=(tile, *plan.loops[1:]), visits=(tiled, *plan.visits[1:])).verify()
    with pytest.raises(PlanError, match=mentions("t order")):
        sliced_stages(good, "u", {"s": 4, "u": 4}, 2)


def test_a_running_sum_of_a_symmetric_array_has_no_symmetry() -> None:
    """It has none along its index, neither proven nor declared; sums along two axes differ."""
    w, r = Tensor("w", (S, S), Role.INPUT), Tensor("r", (S, S), Role.OUTPUT)
    t, u = Tensor("t", (S, S), Role.TEMP), Tensor("u", (S, S), Role.TEMP)
    value = Sum((Ref(w, (I, K)), Ref(w, (K, I))))
    equations = (
        equation(Ref(t, (I, K)), value, (I,), Running.SUM),
        equation(Ref(u, (I, K)), value, (K,), Running.SUM),
        equation(Ref(r, (I, K)), Sum((Ref(t, (I, K)), Prod((Const(Fraction(2)), Ref(u, (I, K))))))),
    )
    system = System("both", (S,), (w, r, t, u), equations)
    made = compile_system(system, Options(extents=(("s", 9),), target="numpy", objective="kernels"))
    x = np.random.default_rng(0).standard_normal((5, 5))
    both = x + x.T
    found = Program(made.artifact)(w=x)["r"]
    np.testing.assert_allclose(found, np.cumsum(both, 0) + 2 * np.cumsum(both, 1))
    for tensor in (t, u):
        assert tensor_sign(made.plan.program, tensor, (1, 0)) is None
    declared = replace(t, symmetry=(Symmetry((1, 0)),))
    bad = equation(Ref(declared, (I, K)), value, (I,), Running.SUM)
    with pytest.raises(VerifyError, match="cumsum has a symmetry"):
        System("s", (S,), (w, declared), (bad,)).verify()
