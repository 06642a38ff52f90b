"""Programs of a few steps, the plan that fuses none of them, and what its module means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tcgen.interp import evaluate_program, run_module
from tcgen.ir.loops import Assign, Gemm, Module
from tcgen.ir.plan import ArrayPlan, FusionPlan, GroupKind, KernelGroup, Place, Visit
from tcgen.ir.program import Contract, FormulaSequence, Operation, Step
from tcgen.ir.tensor import (
    Index,
    Ref,
    Role,
    Space,
    Tensor,
    distinct,
    element_type,
)
from tcgen.lower import lower_plan
from tcgen.options import Options
from tcgen.records.loops import stored_shape
from tcgen.thresholds import Thresholds

O, V = Space("o"), Space("v")
P = Space("p", parts=(O, V))
EXTENTS = {"o": 3, "v": 4}
LETTERS = {
    name: Index(name, space) for name, space in zip("ijkabcp", (O, O, O, V, V, V, P), strict=True)
}
i, j, k, a, b, c, p = LETTERS.values()


def source(name: str, *spaces: Space, **fields: object) -> Tensor:
    return Tensor(name, spaces, Role.INPUT, **fields)  # type: ignore[arg-type]


def step(n: int, out: Ref, op: Operation, **fields: object) -> Step:
    refs = Step(n, out, op).operands
    indices = [x for r in refs for x in r.indices]
    sums = tuple(x for x in distinct(tuple(indices)) if x not in out.indices)
    return Step(n, out, op, **{"sums": sums, **fields})  # type: ignore[arg-type]


def program_of(*steps: Step) -> FormulaSequence:
    tensors = dict.fromkeys(
        t.tensor for s in steps for t in s.operands if t.tensor.role is Role.INPUT
    )
    for s in steps:
        tensors.setdefault(s.out.tensor)
    result = FormulaSequence("test", (O, V, P), tuple(tensors), steps)
    result.verify()
    return result


def unfused(program: FormulaSequence) -> FusionPlan:
    arrays = []
    for tensor in program.tensors:
        uses = [
            s.id for s in program.steps if tensor in (s.out.tensor, *(r.tensor for r in s.operands))
        ]
        if tensor.role is not Role.INPUT:
            place = Place.CALLER if tensor.role is Role.OUTPUT else Place.ARENA
            arrays.append(ArrayPlan(tensor, place=place, live=(uses[0], uses[-1])))
    kinds = {Contract: GroupKind.LIBRARY}
    groups = tuple(
        KernelGroup(f"step_{s.id}", kinds.get(type(s.op), GroupKind.MAP), (s.id,))
        for s in program.steps
    )
    visits = tuple(Visit(s.id) for s in program.steps)
    plan = FusionPlan(program, tuple(sorted(EXTENTS.items())), (), visits, tuple(arrays), groups)
    plan.verify()
    return plan


def values(tensor: Tensor, extents: Mapping[str, int], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(tensor.name) + 3 * ord(tensor.name[-1]))
    array = rng.random(stored_shape(tensor, extents)) + 0.5
    if element_type(tensor, dtype) == "complex128":
        array = array + 1j * rng.random(array.shape)
    return np.asarray(array, element_type(tensor, dtype))


def check(program: FormulaSequence, dtype: str = "float64", target: str = "cpu") -> Module:
    return check_plan_values(unfused(program), dtype, target)


def check_plan_values(
    plan: FusionPlan, dtype: str, target: str = "cpu", thresholds: Thresholds = Thresholds()
) -> Module:
    program = plan.program
    module = lower_plan(plan, Options(dtype=dtype, target=target, thresholds=thresholds))
    module.verify()
    for extents in (EXTENTS, {"o": 1, "v": 2}, {"o": 0, "v": 2}):
        arrays = {t.name: values(t, extents, dtype) for t in program.inputs}
        start = {t.name: values(t, extents, dtype) for t in program.outputs if t.accumulate}
        wanted = evaluate_program(program, arrays, extents, start, dtype)
        found = run_module(module, arrays, extents, start)
        for name, value in wanted.items():
            assert found[name].dtype == value.dtype
            np.testing.assert_allclose(found[name], value, atol=1e-10, err_msg=module.pretty())
    return module


def statements(module: Module) -> list[Assign | Gemm]:
    return [s for kernel in module.kernels for s in kernel.body]  # type: ignore[misc]


def contraction(out: str, one: str, two: str, **fields: object) -> FormulaSequence:
    """A contraction of plain inputs from letters."""
    x, y = (
        Ref(source(name, *(LETTERS[l].space for l in text)), tuple(LETTERS[l] for l in text))
        for name, text in (("x", one), ("y", two))
    )
    r = Tensor("r", tuple(LETTERS[l].space for l in out), Role.OUTPUT)
    return program_of(step(0, Ref(r, tuple(LETTERS[l] for l in out)), Contract(x, y), **fields))
