"""System -> systems for a range of one space, which are compiled in its place.

A range of a space is a range of the iterations of one loop: an output with an axis of the space is
computed on the range of this axis, and a number that is reduced over the space (by a sum, a
maximum, a minimum or a product) is reduced over the range, then over all ranges. The array that a
range needs is computed on the range if possible, else each range computes all of it.

An intermediate that would cost too much twice is *exchanged*: one stage computes it range by
range, and the next stage reads it whole. An input that is packed along the space gets plain axes,
one of which has the range. Deltas over the space and diagonals are refused, since a range of them
is not an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, TypeAlias

from ..errors import PlanError
from ..ir.reduction import Reduction, Running
from ..ir.system import Equation, System, Term, factor_indices, factor_refs
from ..ir.tensor import Index, Packing, Ref, Role, Space, Storage, Tensor, symmetry_group
from ..ir.term_rewriting import (
    rename_factors,
    rename_term,
    replace_refs_of_term,
    resolve_deltas,
    without_perms,
)

# An intermediate is exchanged if the work that ranges would repeat exceeds this share of all work
# and this many multiply-adds for each byte of it: a core does about ten while a byte crosses a
# network of 1 GB/s.
_SHARE_OF_WORK = 0.01
_WORK_PER_BYTE = 16.0

# Name of an array, and the axis of it that has the range. The axis is None for a whole array, and
# _REDUCED for a result without an axis of the space, which is reduced over the range.
_Key: TypeAlias = tuple[str, int | None]
_REDUCED = -1


@dataclass(frozen=True, slots=True)
class Restricted:
    """An input of a system for a range, and the whole array ``source`` that it is a range of.

    ``axis`` is the logical axis that has the range; None for a whole array. On this axis of the
    whole array, the base spaces ``before`` precede the range, and those of ``after`` follow it.
    ``packed`` is the packed group of the whole array that contains the axis, and has plain axes
    here; None for an axis that is not packed.
    """

    name: str
    source: str
    axis: int | None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    packed: Packing | None = None


@dataclass(frozen=True, slots=True)
class SlicedOutput:
    """How the results of all ranges become one: placed on an axis, reduced, or all the same."""

    name: str
    axis: int | None
    how: Literal["place", "reduce", "same"]
    reduction: Reduction = Reduction.SUM


@dataclass(frozen=True, slots=True)
class SlicedStage:
    """One system that runs for all ranges of ``space`` before the next stage begins.

    Its base space ``here`` is the range. Its inputs are ranges of inputs and of results of earlier
    stages, its outputs are named like the whole arrays.
    """

    system: System
    space: str
    here: str
    inputs: tuple[Restricted, ...]
    outputs: tuple[SlicedOutput, ...]


def sliceable_spaces(system: System) -> tuple[str, ...]:
    """Base spaces along which :func:`sliced_stages` can cut: each output has an axis of it.

    A number counts if all its terms are reduced over the space. An input must have the space too.
    """
    system = _without_deltas(system)
    read = {base for t in system.inputs for s in t.spaces for base in s.bases}
    return tuple(
        space.name
        for space in system.spaces
        if space in read
        and all(_combination(system.equation(t), space)[0] != "same" for t in system.outputs)
    )


def sliced_stages(
    system: System, space: str, extents: Mapping[str, int], slices: int
) -> tuple[SlicedStage, ...]:
    """Systems that together compute the outputs range by range.

    ``extents``, of all base spaces, weigh work. Each of ``slices`` ranges repeats the work that
    does not depend on its range.
    """
    along = next(s for s in system.spaces if s.name == space and not s.parts)
    for tensor in system.outputs:
        if tensor.accumulate:
            raise PlanError(
                f"output {tensor.name} accumulates: each slice would add to it; write "
                f"{tensor.name} = ... in the equations and add the arrays afterwards"
            )
    for equation in system.equations:
        if isinstance(equation.reduction, Running):
            raise PlanError(f"{equation.lhs.tensor.name} takes its values in order: run it whole")
    system = _without_deltas(system)
    work = _work(system, extents)
    system = _with_favourable_terms(system, along, work)
    name = _new_name(f"{along.name}_here", {space.name for space in system.spaces})
    here = Space(name, None, (), along.kind)
    exchanged: frozenset[str] = frozenset()
    while True:
        exchanged, stages = _stages(system, along, here, exchanged)
        excess = _excess(stages, work, slices)
        least = _SHARE_OF_WORK * sum(work.values())
        costly = [
            e.lhs.tensor.name
            for e in system.equations
            if excess.get(name := e.lhs.tensor.name, 0) > least
            and excess[name] > _WORK_PER_BYTE * 8 * _elements(e.lhs.indices, extents)
            and name not in exchanged
            and any(i.space == along for i in e.lhs.indices)
        ]
        if not costly:
            return tuple(_finished(system, along, here, stage) for stage in stages)
        # Exchange the last one first: the others may then be needed in one layout only.
        exchanged |= {costly[-1]}


def _without_deltas(system: System) -> System:
    """The system without the deltas that renaming can replace.

    An index that a delta removes has no range, so it must go before indices are chosen.
    """
    changed = []
    for equation in system.equations:
        resolved = [resolve_deltas(t) for t in equation.terms]
        terms = tuple(t for t in resolved if t is not None)
        changed.append(replace(equation, terms=terms))
    return replace(system, equations=tuple(changed))


def _total(equation: Equation) -> Reduction:
    reduction = equation.reduction
    assert isinstance(reduction, Reduction), "running reductions are refused"
    return reduction


def _combination(
    equation: Equation, along: Space
) -> tuple[Literal["place", "reduce", "same"], int | None]:
    """How the results of all ranges become one, and along which axis."""
    indices = equation.lhs.indices
    for axis, index in enumerate(indices):
        if index.space == along and _group(equation.lhs.tensor, axis) is None:
            return "place", axis
    if equation.terms and all(any(i.space == along for i in t.sums) for t in equation.terms):
        return "reduce", None
    return "same", None


def _group(tensor: Tensor, axis: int | None) -> Packing | None:
    """The packed group that has the axis."""
    return next((p for p in tensor.storage.packed if axis in p.axes), None)


def _plain(storage: Storage, group: Packing) -> Storage:
    """The storage with plain axes, in logical order, in place of a packed group."""
    order = [a for a in storage.order if a not in group.axes]
    if order:
        place = next(k for k, a in enumerate(storage.order) if a in group.axes)
        order[place:place] = group.axes
    elif storage.order:
        order = list(group.axes)
    packed = tuple(p for p in storage.packed if p != group)
    return replace(storage, order=tuple(order), packed=packed)


# ---------------------------------------------------------------- work


def _work(system: System, extents: Mapping[str, int]) -> dict[str, float]:
    """Multiply-adds of each equation in the best order of its products, without its brackets."""
    return {
        e.lhs.tensor.name: sum(
            max(1, len(t.perms))
            * _product_work(
                [frozenset(factor_indices(f)) for f in t.factors], frozenset(e.lhs.indices), extents
            )
            for t in e.terms
        )
        for e in system.equations
    }


def _elements(indices: Iterable[Index], extents: Mapping[str, int]) -> float:
    return prod(float(sum(extents.get(b.name, 1) for b in i.space.bases)) for i in indices)


def _product_work(
    sets: list[frozenset[Index]], left: frozenset[Index], extents: Mapping[str, int]
) -> float:
    if len(sets) <= 2:
        return _elements(left.union(*sets), extents)
    best = float("inf")
    for k in range(len(sets)):
        for m in range(k):
            rest = [s for n, s in enumerate(sets) if n not in (k, m)]
            pair = sets[k] | sets[m]
            result = pair & left.union(*rest)
            cost = _elements(pair, extents)
            if cost < best:
                best = min(best, cost + _product_work([*rest, result], left, extents))
    return best


def _excess(stages: Iterable[_Demand], work: Mapping[str, float], slices: int) -> dict[str, float]:
    """Work by tensor that all ranges together do beyond doing it once."""
    done: dict[str, float] = {}
    for stage in stages:
        for name, axis in stage.computed:
            done[name] = done.get(name, 0) + work[name] * (slices if axis is None else 1)
    return {name: times - work[name] for name, times in done.items()}


# ---------------------------------------------------------------- terms under permutations


def _with_favourable_terms(system: System, along: Space, work: Mapping[str, float]) -> System:
    """The system whose brackets under a sum of permutations read intermediates on the range.

    ``Y = S(ia,jb) X`` does not change if a term of X is replaced by its image. The image is taken
    if fewer expensive intermediates then lack the first index of the space.
    """
    uses: dict[str, list[tuple[Equation, Term]]] = {}
    for equation in system.equations:
        for term in equation.terms:
            for ref in term.refs:
                uses.setdefault(ref.tensor.name, []).append((equation, term))
    changed = []
    for equation in system.equations:
        readers = uses.get(equation.lhs.tensor.name, [])
        if equation.lhs.tensor.role is Role.TEMP and len(readers) == 1:
            reader, term = readers[0]
            whole = len(term.factors) == 1 and isinstance(term.factors[0], Ref)
            if whole and term.perms and term.refs[0].indices == reader.lhs.indices:
                equation = _favourable(equation, term, along, work)
        changed.append(equation)
    return replace(system, equations=tuple(changed))


def _favourable(
    equation: Equation, reader: Term, along: Space, work: Mapping[str, float]
) -> Equation:
    left = equation.lhs.indices
    first = next((i for i in left if i.space == along), None)
    if first is None:
        return equation

    def cost(term: Term) -> float:
        lacking = [r for r in term.refs if not r.tensor.is_input and first not in r.indices]
        return sum(work[r.tensor.name] for r in lacking)

    terms = []
    for term in equation.terms:
        images = [term]
        for perm in reader.perms:
            names = {left[k]: left[image] for k, image in enumerate(perm.images)}
            moved = replace(
                term,
                coeff=term.coeff * perm.sign,
                factors=rename_factors(term.factors, names),
            )
            images.append(moved)
        terms.append(term if term.perms else min(images, key=cost))
    return replace(equation, terms=tuple(terms))


# ---------------------------------------------------------------- stages


@dataclass(frozen=True, slots=True)
class _Demand:
    """The arrays that one stage computes and reads, found from its outputs backwards.

    ``computed`` has the terms of each array, operands first. Their references name whole arrays,
    and have an index of the range. ``read`` has the whole array of each input, ``given`` names
    results of earlier stages.
    """

    outputs: tuple[SlicedOutput, ...]
    computed: dict[_Key, tuple[Term, ...]]
    read: dict[_Key, Tensor]
    given: frozenset[str]


def _stages(
    system: System, along: Space, here: Space, exchanged: frozenset[str]
) -> tuple[frozenset[str], list[_Demand]]:
    """The stages with these exchanges, and with those of outputs that are read on another axis."""
    while True:
        levels = _levels(system, exchanged)
        stages: list[_Demand] = []
        for number in range(max(levels.values(), default=0) + 1):
            shared = [
                (e, levels[e.lhs.tensor.name])
                for e in system.equations
                if e.lhs.tensor.name in exchanged or e.lhs.tensor.role is Role.OUTPUT
            ]
            demand = _Demand(
                tuple(
                    SlicedOutput(e.lhs.tensor.name, axis, how, _total(e))
                    for e, level in shared
                    if level == number
                    for how, axis in (_combination(e, along),)
                ),
                {},
                {},
                frozenset(e.lhs.tensor.name for e, level in shared if level < number),
            )
            conflict = _fill(demand, system, along, here)
            if conflict is not None:
                exchanged |= {conflict}
                break
            if demand.outputs:
                stages.append(demand)
        else:
            return exchanged, stages


def _levels(system: System, exchanged: frozenset[str]) -> dict[str, int]:
    """The stage of each computed tensor: after all exchanges that it reads."""
    levels: dict[str, int] = {}
    for equation in system.equations:
        reads = [n for n in equation.reads if n in levels]
        name = equation.lhs.tensor.name
        levels[name] = max((levels[n] + (n in exchanged) for n in reads), default=0)
    return levels


def _fill(demand: _Demand, system: System, along: Space, here: Space) -> str | None:
    """Add the arrays that the outputs of a stage need; or the output read on another axis."""
    outputs = {output.name: output for output in demand.outputs}

    def add(tensor: Tensor, axis: int | None) -> str | None:
        key = (tensor.name, axis)
        if key in demand.computed or key in demand.read:
            return None
        if tensor.is_input or tensor.name in demand.given:
            demand.read[key] = tensor
            return None
        own = outputs.get(tensor.name)
        made_as = None if own is None else _REDUCED if own.how == "reduce" else own.axis
        if (own is not None and made_as != axis) or (own is None and tensor.role is Role.OUTPUT):
            return tensor.name
        equation = system.equation(tensor)
        terms = tuple(_terms_on_range(equation, axis, along, here))
        for ref in (ref for term in terms for ref in term.refs):
            conflict = add(ref.tensor, _axis_on_range(ref, here))
            if conflict is not None:
                return conflict
        demand.computed[key] = terms
        return None

    for output in demand.outputs:
        tensor = next(t for t in system.tensors if t.name == output.name)
        conflict = add(tensor, _REDUCED if output.how == "reduce" else output.axis)
        if conflict is not None:
            return conflict
    if outputs and all(axis is None for _, axis in demand.read):
        raise PlanError(
            f"no array that the equations of {', '.join(outputs)} read has an axis of space "
            f"{along.name}: distribute along another space"
        )
    return None


def _terms_on_range(
    equation: Equation, axis: int | None, along: Space, here: Space
) -> Iterable[Term]:
    """The terms of an equation with one index on the range: that of an axis, or a summed one."""
    for term in equation.terms:
        if axis is None:
            yield term
            continue
        for plain in without_perms(term, equation.lhs):
            if axis == _REDUCED:
                index = next(i for i in plain.sums if i.space == along)
            else:
                index = equation.lhs.indices[axis]
            yield _on_range(plain, index, here, equation.lhs.tensor.name)


def _on_range(term: Term, index: Index, here: Space, name: str) -> Term:
    """The term with an index on the range, which each reference has on its first possible axis."""
    if any(not factor_refs(f) and index in factor_indices(f) for f in term.factors):
        raise PlanError(
            f"the equation of {name} has a delta over space {index.space.name}: distribute along "
            f"another space"
        )
    ranged = _index_on_range(index, here)

    def change(ref: Ref) -> Ref:
        if ref.indices.count(ranged) > 1:
            raise PlanError(
                f"the equation of {name} reads a diagonal of {ref.tensor.name} over space "
                f"{index.space.name}: distribute along another space"
            )
        return _first_axis(ref, ranged) if ranged in ref.indices else ref

    return replace_refs_of_term(rename_term(term, {index: ranged}), change)


def _index_on_range(index: Index, here: Space) -> Index:
    return Index(f"{index.name}_{here.name}", here)


def _axis_on_range(ref: Ref, here: Space) -> int | None:
    return next((axis for axis, i in enumerate(ref.indices) if i.space == here), None)


def _finished(system: System, along: Space, here: Space, demand: _Demand) -> SlicedStage:
    """The system of a stage, whose arrays have the range in place of the space."""
    whole = {t.name: t for t in system.tensors}
    outputs = {output.name for output in demand.outputs}
    taken = set(whole)
    tensors: dict[_Key, Tensor] = {}
    for key in (*demand.read, *demand.computed):
        tensor, axis = whole[key[0]], key[1]
        role = tensor.role if tensor.is_input else Role.INPUT
        if key in demand.computed:
            role = Role.OUTPUT if tensor.name in outputs else Role.TEMP
        made = _restricted(tensor, axis, here, role, volatile=not tensor.is_input)
        if axis is not None and role is not Role.OUTPUT:
            made = replace(made, name=_new_name(f"{tensor.name}_{here.name}{axis}", taken))
        tensors[key] = made

    def placed(ref: Ref) -> Ref:
        return Ref(tensors[ref.tensor.name, _axis_on_range(ref, here)], ref.indices)

    equations = []
    for key, terms in demand.computed.items():
        equation = system.equation(whole[key[0]])
        left = tuple(
            _index_on_range(i, here) if axis == key[1] else i
            for axis, i in enumerate(equation.lhs.indices)
        )
        own = tuple(replace_refs_of_term(term, placed) for term in terms)
        equations.append(replace(equation, lhs=Ref(tensors[key], left), terms=own))
    inputs = tuple(
        _described(tensors[key].name, tensor, key[1], along) for key, tensor in demand.read.items()
    )
    system_of_range = replace(
        system,
        spaces=(*system.spaces, here),
        tensors=tuple(tensors.values()),
        equations=tuple(equations),
        warnings=(),
    )
    return SlicedStage(system_of_range, along.name, here.name, inputs, demand.outputs)


def _new_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _described(name: str, whole: Tensor, axis: int | None, along: Space) -> Restricted:
    """The input of a stage that is a range of an array, or all of it."""
    bases = () if axis is None else tuple(b.name for b in whole.spaces[axis].bases)
    place = 0 if axis is None else bases.index(along.name)
    return Restricted(
        name, whole.name, axis, bases[:place], bases[place + 1 :], _group(whole, axis)
    )


def _restricted(
    tensor: Tensor, axis: int | None, here: Space, role: Role, *, volatile: bool
) -> Tensor:
    """The tensor with a range on one axis."""
    if axis == _REDUCED:
        return replace(tensor, role=role)
    spaces, symmetry, storage = tensor.spaces, tensor.symmetry, tensor.storage
    if axis is not None:
        group = _group(tensor, axis)
        if group is not None:
            storage = _plain(storage, group)
        spaces = tuple(here if k == axis else s for k, s in enumerate(spaces))
        symmetry = tuple(s for s in symmetry if s.perm[axis] == axis)
    return replace(
        tensor,
        spaces=spaces,
        role=role,
        symmetry=() if role in (Role.TEMP, Role.OUTPUT) else symmetry,
        volatile=volatile or tensor.volatile,
        storage=Storage()
        if axis is not None and role is Role.TEMP
        else replace(storage, within=()),
        family=None,
    )


def _first_axis(ref: Ref, index: Index) -> Ref:
    """The same element with the index on the earliest axis that a symmetry allows."""
    if not ref.tensor.symmetry or not ref.tensor.is_input:
        return ref
    best = ref
    for s in symmetry_group(ref.tensor):
        if s.sign != 1 or s.conj:
            continue
        indices = tuple(ref.indices[p] for p in s.perm)
        if indices.index(index) < best.indices.index(index):
            best = Ref(ref.tensor, indices)
    return best
