"""From recipes to a program: chooses the stored arrays and sets order, names and phases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from ...ir.expr import Const
from ...ir.program import (
    FormulaSequence,
    Map,
    Phase,
    Produce,
    Step,
    map_operation,
)
from ...ir.system import System
from ...ir.tensor import Index, Ref, Role, Tensor
from .brackets import stored_nodes
from .common_products import Recipe, Workspace
from .fuse_maps import inline_into_maps


def build_program(
    system: System, workspace: Workspace, recipes: tuple[Recipe, ...], keep: frozenset[str]
) -> FormulaSequence:
    """The program that computes the recipes, those of all arrays in order of definition.

    The user's intermediates in ``keep`` must stay arrays.
    """
    arrays = _steps_of_arrays(workspace, recipes)
    outputs = tuple(t.name for t in system.tensors if t.role is Role.OUTPUT)
    arrays = inline_into_maps(arrays, keep | frozenset(outputs), workspace.thresholds.map_depth)
    names = _AliasNames({t.name for t in system.tensors})
    arrays = {array: tuple(map(names.apart, steps)) for array, steps in arrays.items()}
    steps = _numbered(_named(_scheduled(arrays, outputs), frozenset(names.taken)))
    tensors = (*system.inputs, *_written(steps, system.inputs))
    return FormulaSequence(system.name, system.spaces, tensors, steps)


def _written(steps: tuple[Step, ...], inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The tensors that steps write, in order: aliases are among them, inputs are not."""
    return tuple(dict.fromkeys(s.out.tensor for s in steps if s.out.tensor not in inputs))


class _AliasNames:
    """Second names of generated inputs, for steps that read two tiles of one at the same time."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self._aliases: dict[tuple[str, int], Tensor] = {}

    def apart(self, step: Step) -> Step:
        """The step, where an input that it reads with several sets of indices has as many names.

        A tile of ``B[P,i,a]`` is not a tile of ``B[P,j,b]``: with one name, the step would need
        the whole input.
        """
        readings: dict[str, list[tuple[Index, ...]]] = {}

        def change(ref: Ref) -> Ref:
            if ref.tensor.role is not Role.GENERATED:
                return ref
            known = readings.setdefault(ref.tensor.name, [])
            if ref.indices not in known:
                known.append(ref.indices)
            number = known.index(ref.indices)
            return Ref(self._alias(ref.tensor, number + 1) if number else ref.tensor, ref.indices)

        return replace(step, op=map_operation(step.op, change))

    def _alias(self, tensor: Tensor, number: int) -> Tensor:
        key = (tensor.name, number)
        if key not in self._aliases:
            name = f"{tensor.name}_{number}"
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            self._aliases[key] = replace(tensor, name=name, alias=tensor.name)
        return self._aliases[key]


def _steps_of_arrays(
    workspace: Workspace, recipes: tuple[Recipe, ...]
) -> dict[str, tuple[Step, ...]]:
    """The steps that make each stored array, in order."""
    stored = stored_nodes(workspace, recipes)
    arrays: dict[str, tuple[Step, ...]] = {
        name: (node.step,) for name, node in workspace.nodes.items() if name in stored
    }
    for recipe in recipes:
        steps = tuple(
            t.stored if t.stored is not None and t.node in stored else t.direct
            for t in recipe.terms
        )
        zero = Step(0, recipe.lhs, Map(Const(Fraction(0))))
        arrays[recipe.lhs.tensor.name] = steps or (zero,)
    return arrays


def _scheduled(arrays: Mapping[str, tuple[Step, ...]], outputs: Iterable[str]) -> tuple[Step, ...]:
    """The steps in the order of the outputs; each array is made right before its first reader."""
    ordered: list[Step] = []
    started: set[str] = set()
    for output in outputs:
        if output in started:
            continue
        started.add(output)
        pending: list[tuple[str, int]] = [(output, 0)]
        while pending:
            name, position = pending.pop()
            if position == len(arrays[name]):
                continue
            step = arrays[name][position]
            pending.append((name, position))
            for ref in step.operands:
                if ref.tensor.name in started:
                    continue
                if ref.tensor.role is Role.GENERATED:
                    started.add(ref.tensor.name)
                    ordered.append(_produced(ref))
                elif ref.tensor.name in arrays:
                    started.add(ref.tensor.name)
                    pending.append((ref.tensor.name, 0))
                    break
            else:
                ordered.append(step)
                pending[-1] = (name, position + 1)
    return tuple(ordered)


def _produced(ref: Ref) -> Step:
    """The step that produces a generated input, with a distinct index for each whole axis."""
    tensor = ref.tensor
    indices = tuple(
        replace(index, name=f"{index.name.rstrip('0123456789')}{axis + 1}", space=space)
        for axis, (index, space) in enumerate(zip(ref.indices, tensor.spaces, strict=True))
    )
    return Step(0, Ref(tensor, indices), Produce(tensor))


def _named(steps: tuple[Step, ...], taken: frozenset[str]) -> tuple[Step, ...]:
    """The steps with names x1, x2, .. for the nodes, in the order of their first steps."""
    names: dict[str, str] = {}
    used = set(taken)
    number = 0
    for step in steps:
        name = step.out.tensor.name
        if name.startswith("#") and name not in names:
            number += 1
            while f"x{number}" in used:
                number += 1
            names[name] = f"x{number}"

    def ref(old: Ref) -> Ref:
        name = names.get(old.tensor.name)
        return old if name is None else Ref(replace(old.tensor, name=name), old.indices)

    return tuple(replace(s, out=ref(s.out), op=map_operation(s.op, ref)) for s in steps)


def with_constants(program: FormulaSequence, inputs: tuple[Tensor, ...]) -> FormulaSequence:
    """The same steps for other constant inputs: steps that read only constants run once."""
    by_name = {t.name: t for t in inputs}
    for tensor in program.tensors:
        if tensor.alias is not None:
            by_name[tensor.name] = replace(tensor, volatile=by_name[tensor.alias].volatile)
    varies = {name: tensor.volatile for name, tensor in by_name.items()}
    for step in program.steps:
        reads = any(varies[r.tensor.name] for r in step.operands)
        name = step.out.tensor.name
        if not step.out.tensor.is_input:
            varies[name] = varies.get(name, False) or reads or step.out.tensor.accumulate

    def mark(tensor: Tensor) -> Tensor:
        return by_name.get(tensor.name) or replace(tensor, volatile=varies[tensor.name])

    steps = _numbered(_with_tensors(program.steps, mark))
    return replace(program, tensors=(*inputs, *_written(steps, inputs)), steps=steps)


def without_constant_phase(program: FormulaSequence) -> FormulaSequence:
    """The same steps, all of which run in each call, so that loops of a call may be around them."""

    def mark(tensor: Tensor) -> Tensor:
        return tensor if tensor.is_input else replace(tensor, volatile=True)

    steps = _with_tensors(program.steps, mark)
    steps = tuple(replace(step, phase=Phase.VOLATILE) for step in steps)
    return replace(program, tensors=tuple(map(mark, program.tensors)), steps=steps)


def _with_tensors(steps: tuple[Step, ...], new: Callable[[Tensor], Tensor]) -> tuple[Step, ...]:
    """Steps with other tensors in the place of theirs."""

    def ref(old: Ref) -> Ref:
        return Ref(new(old.tensor), old.indices)

    changed = []
    for step in steps:
        op = step.op
        op = Produce(new(op.tensor)) if isinstance(op, Produce) else map_operation(op, ref)
        changed.append(replace(step, out=ref(step.out), op=op))
    return tuple(changed)


def _numbered(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with numbers, accumulation flags and phases; all steps of an array have one phase.

    An array is constant if its steps read constant arrays alone and it does not accumulate on an
    array of the caller.
    """
    constant: dict[str, bool] = {}
    for step in steps:
        name = step.out.tensor.name
        if isinstance(step.op, Produce):
            fixed = not step.op.tensor.volatile
        else:
            fixed = not step.out.tensor.accumulate and all(
                constant.get(r.tensor.name, r.tensor.is_input and not r.tensor.volatile)
                for r in step.operands
            )
        constant[name] = constant.get(name, True) and fixed
    written: set[Tensor] = set()
    numbered = []
    for position, step in enumerate(steps):
        tensor = step.out.tensor
        phase = Phase.CONSTANT if constant[tensor.name] else Phase.VOLATILE
        added = tensor in written or tensor.accumulate
        numbered.append(replace(step, id=position, accumulate=added, phase=phase))
        written.add(tensor)
    return tuple(numbered)
