"""The report as plain data: the JSON contract of ``tcgen compile`` and ``tcgen report``.

Evaluates a plan (level 3), the manifest of its module and the module's operations at given extents,
which need not be the planning extents. All other reports show these numbers. Units: flops (multiply
+ add = 2), elements, bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import prod
from typing import Any

from ..artifact.manifest import Manifest, array_bytes, launches
from ..ir.cost import Poly
from ..ir.executed import Counts, Executed, Totals, totals
from ..ir.plan import ArrayPlan, FusionPlan, LoopId
from ..ir.pretty.equations import pretty_step
from ..ir.program import BEST_FOUND, Add, Contract, FormulaSequence, Map, Phase, Step
from ..ir.tensor import Index, Role, Tensor, element_bytes
from ..options import MOST
from ..records.loops import Access
from ..runtime.memory import memory_use
from .counts import Factor, array_product, product_value, whole_product
from .nest import nest_text

SCHEMA = 1

# Names of the operations in the order of tables; parts of a row are indented.
OPERATIONS = {
    "naive": "naive",
    "each_term": "each term alone",
    "sequence": "chosen",
    "contractions": "  contractions",
    "contractions_packed": "    symmetry-unique",
    "additions": "  additions",
    "maps": "  maps",
    "executed_per_call": "executed per call",
    "executed_once": "executed once",
}


def report_json(
    plan: FusionPlan, manifest: Manifest, executed: Executed, extents: Mapping[str, int]
) -> dict[str, Any]:
    """The report of a plan at the extents of the base spaces, without any wall time."""
    program = plan.program
    counted = totals(executed, extents)
    flops: dict[Poly, int] = {}
    for step in program.steps:
        if step.flops not in flops:
            flops[step.flops] = step.flops.value(extents)
    return {
        "schema": SCHEMA,
        "spec": program.name,
        "target": manifest.target,
        "dtype": manifest.dtype,
        **({"tf32": True} if manifest.tf32 else {}),
        "reproducible": True,
        "extents": dict(sorted(extents.items())),
        "operations": _operations(plan, counted, extents),
        "memory": _memory(plan, manifest, extents),
        "launches": launches(manifest, extents),
        # Extents and seconds are those of the search; a saved plan has no seconds.
        "fusion": {
            "objective": plan.solve.objective,
            "model": plan.solve.model,
            "status": plan.solve.status,
            "value": _number(plan.solve.value),
            "bound": _number(plan.solve.bound),
            "unit": plan.solve.unit,
            "extents": dict(plan.extents),
            "seconds": None,
            **({"nests": _nests(plan)} if manifest.target == "cuda" else {}),
        },
        "arrays": _arrays(plan, manifest, extents),
        "nest": nest_text(plan),
        "steps": [
            {"id": s.id, "text": pretty_step(s), "flops": flops[s.flops], **_executed(s, counted)}
            for s in program.steps
        ],
        "notes": list(program.notes),
        "kernels": [
            {
                "name": group.name,
                "steps": [plan.visits[v].step for v in group.visits],
                "loops": [str(loop) for loop in _loops(plan, group.visits)],
            }
            for group in plan.groups
        ],
    } | ({"library": _library(manifest, extents)} if manifest.target == "cuda" else {})


def _nests(plan: FusionPlan) -> list[dict[str, Any]]:
    """The form of each nest, and the predicted seconds of both forms."""
    return [
        {
            "steps": [plan.visits[n].step for n in nest.visits],
            "form": "kernel" if nest.kernel else "host",
            "seconds": _number(nest.seconds),
            "other_seconds": _number(nest.other),
        }
        for nest in plan.solve.nests
    ]


def _library(manifest: Manifest, extents: Mapping[str, int]) -> list[dict[str, Any]]:
    """The products that libraries compute, with the points of each group of variables."""
    rows = []
    for kernel in manifest.kernels:
        product = kernel.product
        if product is None:
            continue
        groups = {"batch": product.batch, "m": product.m, "n": product.n, "k": product.k}
        out, a, b = (_matrix(x) for x in (product.out, product.a, product.b))
        factor = "" if product.coeff == 1 else f"{product.coeff} * "
        sign = "+=" if product.accumulate else "="
        row: dict[str, Any] = {
            "kernel": kernel.name,
            "library": kernel.library,
            "product": f"{out} {sign} {factor}{a} * {b}",
        }
        for name, group in groups.items():
            lengths = (min(manifest.extent(v.space.name, extents), v.tile or MOST) for v in group)
            row[name] = prod(lengths)
        rows.append(row)
    return rows


def _matrix(entry: Access) -> str:
    """``t2[i,j,a,b]``; a subscript without a variable of the product is 0."""
    return f"{entry.buffer}[{','.join(s.variable or '0' for s in entry.subscripts)}]"


def counted_flops(program: FormulaSequence) -> dict[str, Poly]:
    """Flops of the equations and of the chosen steps, as polynomials."""
    return {
        "naive": program.naive,
        "each_term": program.each_term,
        "contractions": program.flops(Contract),
        "contractions_packed": program.packed_flops(),
        "additions": program.flops(Add),
        "maps": program.flops(Map),
        "sequence": program.flops(),
    }


def _operations(plan: FusionPlan, counted: Totals, extents: Mapping[str, int]) -> dict[str, Any]:
    """Flops of the equations, of the chosen steps, and of the code that executes them."""
    program = plan.program
    chosen = program.flops()
    searched = dict(plan.extents) == dict(extents)
    return {
        **{name: poly.value(extents) for name, poly in counted_flops(program).items()},
        "optimality": program.optimality if searched else BEST_FOUND,
        "polynomial": str(chosen),
        "leading": chosen.leading(extents),
        "executed_per_call": counted.per_call.flops,
        "executed_once": counted.once.flops,
        "executed_per_call_bytes": counted.per_call.bytes,
        "executed_once_bytes": counted.once.bytes,
    }


def _executed(step: Step, counted: Totals) -> dict[str, Any]:
    """Work of the code of a step; the caller computes generated inputs."""
    counts = counted.steps.get(step.id)
    if counts is None:
        counts = Counts()
        constant = step.phase is Phase.CONSTANT
    else:
        constant = step.id in counted.constant_steps
    return {"constant": constant, "executed": counts.flops, "executed_bytes": counts.bytes}


def _number(value: int | Fraction | None) -> int | float | None:
    """An integer unchanged, seconds as a float."""
    return float(value) if isinstance(value, Fraction) else value


def _loops(plan: FusionPlan, visits: tuple[int, ...]) -> tuple[LoopId, ...]:
    return tuple(dict.fromkeys(loop for v in visits for loop in plan.visits[v].loops))


def _memory(plan: FusionPlan, manifest: Manifest, extents: Mapping[str, int]) -> dict[str, Any]:
    program, dtype = plan.program, manifest.dtype

    def stored(role: Role) -> int:
        entries = (t for t in manifest.tensors if t.role is role)
        return sum(array_bytes(t, manifest, extents) for t in entries)

    def held(arrays: Iterable[tuple[Tensor, list[Factor]]]) -> int:
        return sum(
            product_value(product, extents) * element_bytes(tensor, dtype)
            for tensor, product in arrays
            if tensor.is_held
        )

    return {
        "inputs_bytes": stored(Role.INPUT),
        "outputs_bytes": stored(Role.OUTPUT),
        "intermediates_unfused_bytes": held(
            (tensor, whole_product(tensor)) for tensor in program.tensors
        ),
        "intermediates_static_bytes": held((a.tensor, array_product(a)) for a in plan.arrays),
        "peak_bytes": memory_use(manifest, extents, threads=1).peak,
        "limit_bytes": manifest.memory_limit,
    }


def _arrays(
    plan: FusionPlan, manifest: Manifest, extents: Mapping[str, int]
) -> list[dict[str, Any]]:
    program = plan.program
    stored = {t.name: t for t in manifest.tensors}
    letters = letters_of(program)
    rows = []
    for tensor in program.tensors:
        indices = letters.get(tensor) or tuple(s.name for s in tensor.spaces)
        instances = plan.instances(tensor)
        item = element_bytes(tensor, manifest.dtype)
        whole = (
            array_bytes(stored[tensor.name], manifest, extents) // item
            if tensor.name in stored
            else product_value(whole_product(tensor), extents)
        )
        for array in instances or (ArrayPlan(tensor),):
            count = product_value(array_product(array), extents) if array.contracted else whole
            if never_held(array, plan):
                count = 0
            contracted = dict(array.contracted)
            rows.append(
                {
                    "name": tensor.name,
                    "kind": tensor.role.value,
                    "indices": list(indices),
                    "fused": [indices[axis] for axis in contracted],
                    "tile": {indices[axis]: loop.tile or 1 for axis, loop in contracted.items()},
                    "elements_unfused": whole,
                    "elements": count,
                    "bytes": count * item,
                    "consumers": [s.id for s in program.consumers(tensor)],
                }
            )
    return rows


def never_held(array: ArrayPlan, plan: FusionPlan) -> bool:
    """True for a generated input that no step reads, so that no tile of it is made."""
    return array.tensor.role is Role.GENERATED and not plan.instances(array.tensor)


def letters_of(program: FormulaSequence) -> dict[Tensor, tuple[str, ...]]:
    """Index letters of each array, from its first producer or else its first reader."""
    letters: dict[Tensor, tuple[str, ...]] = {}
    for step in program.steps:
        for ref in (step.out, *step.operands):
            if ref.tensor not in letters:
                letters[ref.tensor] = tuple(i.name for i in _whole_axes(ref.indices, ref.tensor))
    return letters


def _whole_axes(indices: tuple[Index, ...], tensor: Tensor) -> tuple[Index, ...]:
    """The indices, an index of a part replaced by the name of the joined axis."""
    return tuple(
        i if i.space == s else Index(s.name, s) for i, s in zip(indices, tensor.spaces, strict=True)
    )
