"""System -> sliced systems: the same equations for a range of one space.

An output with an axis of the space is computed on a range of this axis; a number that is reduced
over the space (by a sum, a maximum, a minimum or a product) is reduced over the range, and the
numbers of all ranges are reduced likewise. What the range
needs is computed on the range too, and what does not depend on it is computed by each slice.
An intermediate that would cost too much twice is *exchanged*: one stage computes it slice by
slice, and the next stage reads it whole. An input that is packed along the space is taken with
plain axes, of which one has the range. Deltas over the space and diagonals are refused, since a
range of them is no array of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from ..errors import PlanError
from ..ir.reduction import Reduction
from ..ir.system import Equation, System, Term, factor_indices, factor_refs
from ..ir.tensor import Index, Packing, Ref, Role, Space, Storage, Tensor, symmetry_group
from ..ir.term_rewriting import (
    rename_factors,
    rename_term,
    replace_refs_of_term,
    resolve_deltas,
    without_perms,
)

# An intermediate is exchanged where the work that slices would repeat for it exceeds this share
# of all work, and this many multiply-adds for each byte of it: a core does about ten while a byte
# crosses a network of 1 GB/s.
_SHARE_OF_WORK = 0.01
_WORK_PER_BYTE = 16.0


@dataclass(frozen=True, slots=True)
class Restricted:
    """An array of a sliced system, and the whole array of which it is a range.

    Attributes:
        name: in the sliced system.
        source: name of the whole array.
        axis: logical axis that has the range; None where the array is whole.
        before: base spaces whose elements precede the range on this axis of the whole array.
        after: base spaces whose elements follow it.
        packed: group of the whole array that the axis is in, and that has plain axes here; None
            where the axis is one of the whole array.
    """

    name: str
    source: str
    axis: int | None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    packed: Packing | None = None


@dataclass(frozen=True, slots=True)
class SlicedOutput:
    """A result of a sliced system: placed at its range, reduced, or equal in all slices.

    ``reduction`` combines those that are reduced: the numbers of all ranges, or shares of parts.
    """

    name: str
    axis: int | None
    how: Literal["place", "reduce", "same"]
    reduction: Reduction = Reduction.SUM


@dataclass(frozen=True, slots=True)
class SlicedStage:
    """One system that runs for all ranges of ``space`` before the next stage begins.

    Attributes:
        system: whose base space ``here`` is the range.
        space: name of the space that is cut into ranges.
        here: name of the space of a range.
        inputs: of the system, with the arrays that they are ranges of: inputs of the whole program
            and results of earlier stages.
        outputs: of the system, which have the names of whole arrays.
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
        and all(_way(system.equation(t), space)[0] != "same" for t in system.outputs)
    )


def sliced_stages(
    system: System, space: str, extents: Mapping[str, int], slices: int
) -> tuple[SlicedStage, ...]:
    """Systems that together compute the outputs slice by slice.

    Args:
        system: the equations.
        space: name of the base space to cut.
        extents: of all base spaces, by which work is weighed.
        slices: number of ranges, each of which repeats what does not depend on it.

    Raises:
        PlanError: the equations cannot be cut along this space.
    """
    along = next(s for s in system.spaces if s.name == space and not s.parts)
    for tensor in system.outputs:
        if tensor.accumulate:
            raise PlanError(
                f"output {tensor.name} accumulates: each slice would add to it; write "
                f"{tensor.name} = ... in the equations and add the arrays afterwards"
            )
    system = _without_deltas(system)
    work = _work(system, extents)
    system = _with_favourable_terms(system, along, work)
    exchanged: set[str] = set()
    while True:
        stages = _stages(system, along, exchanged)
        excess = _excess(stages, work, slices)
        least = _SHARE_OF_WORK * sum(work.values())
        worth = [
            e.lhs.tensor.name
            for e in system.equations
            if excess.get(name := e.lhs.tensor.name, 0) > least
            and excess[name] > _WORK_PER_BYTE * 8 * _elements(e.lhs.indices, extents)
            and name not in exchanged
            and any(i.space == along for i in e.lhs.indices)
        ]
        if not worth:
            return tuple(stage.finished() for stage in stages)
        exchanged.add(worth[-1])  # what reads the others: they may then be needed in one way only


def _without_deltas(system: System) -> System:
    """The system without the deltas that renaming can replace.

    An index that a delta removes has no range, so that it must go before indices are chosen.
    """
    changed = []
    for equation in system.equations:
        resolved = [resolve_deltas(t) for t in equation.terms]
        terms = tuple(t for t in resolved if t is not None)
        changed.append(replace(equation, terms=terms))
    return replace(system, equations=tuple(changed))


def _way(equation: Equation, along: Space) -> tuple[Literal["place", "reduce", "same"], int | None]:
    """How an output is made from slices, and along which axis."""
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
    """Multiply-adds of each equation by the best order of products, brackets apart."""
    return {
        e.lhs.tensor.name: sum(
            max(1, len(t.perms)) * _term_work(t, e.lhs.indices, extents) for t in e.terms
        )
        for e in system.equations
    }


def _term_work(term: Term, left: tuple[Index, ...], extents: Mapping[str, int]) -> float:
    sets = [frozenset(factor_indices(f)) for f in term.factors]
    return _product_work(sets, frozenset(left), extents)


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
            kept = pair & left.union(*rest)
            here = _elements(pair, extents)
            if here < best:
                best = min(best, here + _product_work([*rest, kept], left, extents))
    return best


def _excess(stages: list[_Stage], work: Mapping[str, float], slices: int) -> dict[str, float]:
    """Work by tensor that all slices together do beyond doing it once."""
    done: dict[str, float] = {}
    for stage in stages:
        for name, axis in stage.equations:
            done[name] = done.get(name, 0) + work[name] * (slices if axis is None else 1)
    return {name: times - work[name] for name, times in done.items()}


# ---------------------------------------------------------------- terms under permutations


def _with_favourable_terms(system: System, along: Space, work: Mapping[str, float]) -> System:
    """The system where brackets under a sum of permutations read intermediates on the range.

    ``Y = S(ia,jb) X`` does not change if a term of X is exchanged with its image. The image is
    taken where fewer expensive intermediates lack the first index of the space.
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


def _stages(system: System, along: Space, exchanged: set[str]) -> list[_Stage]:
    """Stages with these exchanges; outputs that are read in two ways are added to them."""
    while True:
        levels = _levels(system, exchanged)
        stages = []
        try:
            for number in range(max(levels.values(), default=0) + 1):
                given = {
                    n: e.lhs.tensor
                    for e in system.equations
                    if levels[n := e.lhs.tensor.name] < number
                    and (n in exchanged or e.lhs.tensor.role is Role.OUTPUT)
                }
                stage = _Stage(system, along, given)
                for equation in system.equations:
                    tensor = equation.lhs.tensor
                    wanted = tensor.role is Role.OUTPUT or tensor.name in exchanged
                    if wanted and levels[tensor.name] == number:
                        stage.add_output(equation)
                if stage.outputs:
                    stage.check_ranges()
                    stages.append(stage)
        except _ReadInTwoWaysError as error:
            exchanged.add(error.name)
            continue
        return stages


def _levels(system: System, exchanged: set[str]) -> dict[str, int]:
    """The stage of each computed tensor: after all exchanges that it reads."""
    levels: dict[str, int] = {}
    for equation in system.equations:
        reads = [n for n in equation.reads if n in levels]
        name = equation.lhs.tensor.name
        levels[name] = max((levels[n] + (n in exchanged) for n in reads), default=0)
    return levels


class _ReadInTwoWaysError(Exception):
    """An output is read on another axis than the one that has the range."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Stage:
    """Builds one sliced system from the outputs backwards."""

    def __init__(self, system: System, along: Space, given: Mapping[str, Tensor]) -> None:
        self.system, self.along, self.given = system, along, given
        taken = {s.name for s in system.spaces}
        name = f"{along.name}_here"
        while name in taken:
            name += "_"
        self.here = Space(name, None, (), along.kind)
        self.tensors: dict[tuple[str, int | None], Tensor] = {}
        self.inputs: dict[tuple[str, int | None], Restricted] = {}
        self.equations: dict[tuple[str, int | None], Equation] = {}
        self.outputs: list[SlicedOutput] = []
        self.names = {t.name for t in system.tensors}

    def finished(self) -> SlicedStage:
        """The system, once all outputs are added."""
        inputs = [self.tensors[key] for key in self.inputs]
        computed = [e.lhs.tensor for e in self.equations.values()]
        system = replace(
            self.system,
            spaces=(*self.system.spaces, self.here),
            tensors=(*inputs, *computed),
            equations=tuple(self.equations.values()),
            warnings=(),
        )
        used = tuple(self.inputs.values())
        return SlicedStage(system, self.along.name, self.here.name, used, tuple(self.outputs))

    def add_output(self, equation: Equation) -> None:
        """Compute this tensor on the range."""
        tensor = equation.lhs.tensor
        how, axis = _way(equation, self.along)
        self.outputs.append(SlicedOutput(tensor.name, axis, how, equation.reduction))
        if how == "reduce":
            self._reduced(equation)
        else:
            self._computed(tensor, axis)

    def check_ranges(self) -> None:
        """Refuse results of whose inputs none has a range: a call could not tell its length."""
        if all(given.axis is None for given in self.inputs.values()):
            names = ", ".join(o.name for o in self.outputs)
            raise PlanError(
                f"no array that the equations of {names} read has an axis of space "
                f"{self.along.name}: distribute along another space"
            )

    def _reduced(self, equation: Equation) -> None:
        """A result of which each slice has its range of a reduced index."""
        tensor = replace(equation.lhs.tensor, role=Role.OUTPUT)
        self.tensors[tensor.name, -1] = tensor
        terms = []
        for term in equation.terms:
            for plain in without_perms(term, equation.lhs):
                index = next(i for i in plain.sums if i.space == self.along)
                terms.append(self._on_range(plain, index, equation))
        key = (tensor.name, -1)  # it has a range, and no axis
        self.equations[key] = Equation(replace(equation.lhs, tensor=tensor), tuple(terms))

    def _computed(self, tensor: Tensor, axis: int | None) -> Tensor:
        """The tensor with a range on an axis, or whole; its equation is written on first use."""
        key = (tensor.name, axis)
        if key in self.tensors:
            return self.tensors[key]
        if tensor.is_input or tensor.name in self.given:
            return self._input(tensor, axis)
        own = next((o for o in self.outputs if o.name == tensor.name), None)
        if own is not None and (own.how == "reduce" or own.axis != axis):
            raise _ReadInTwoWaysError(tensor.name)
        equation = next(e for e in self.system.equations if e.lhs.tensor.name == tensor.name)
        if own is None and tensor.role is Role.OUTPUT:
            raise _ReadInTwoWaysError(tensor.name)
        role = Role.TEMP if own is None else Role.OUTPUT
        made = self._restricted(tensor, axis, role, keep_name=own is not None)
        left = equation.lhs.indices
        terms: list[Term] = []
        index = None if axis is None else left[axis]
        for term in equation.terms:
            plain_terms = (term,) if index is None else without_perms(term, equation.lhs)
            terms.extend(self._on_range(plain, index, equation) for plain in plain_terms)
        if index is not None:
            left = tuple(self._index(i) if i == index else i for i in left)
        self.tensors[key] = made
        self.equations[key] = replace(equation, lhs=Ref(made, left), terms=tuple(terms))
        return made

    def _input(self, tensor: Tensor, axis: int | None) -> Tensor:
        key = (tensor.name, axis)
        role = Role.INPUT if tensor.name in self.given else tensor.role
        made = self._restricted(tensor, axis, role, keep_name=axis is None)
        bases = () if axis is None else tuple(b.name for b in tensor.spaces[axis].bases)
        place = 0 if axis is None else bases.index(self.along.name)
        self.tensors[key] = made
        self.inputs[key] = Restricted(
            made.name,
            tensor.name,
            axis,
            bases[:place],
            bases[place + 1 :],
            _group(tensor, axis),
        )
        return made

    def _restricted(
        self, tensor: Tensor, axis: int | None, role: Role, *, keep_name: bool
    ) -> Tensor:
        """The tensor as a tensor of its own, with a range on one axis."""
        spaces, symmetry = tensor.spaces, tensor.symmetry
        name, storage = tensor.name, tensor.storage
        if axis is not None:
            group = _group(tensor, axis)
            if group is not None:
                storage = _plain(storage, group)
            spaces = tuple(self.here if k == axis else s for k, s in enumerate(spaces))
            symmetry = tuple(s for s in symmetry if s.perm[axis] == axis)
            if not keep_name:
                name = f"{tensor.name}_{self.here.name}{axis}"
                while name in self.names:
                    name += "_"
                self.names.add(name)
        computed = role in (Role.TEMP, Role.OUTPUT)
        volatile = True if tensor.name in self.given or computed else tensor.volatile
        return replace(
            tensor,
            name=name,
            spaces=spaces,
            role=role,
            symmetry=() if computed else symmetry,
            volatile=volatile,
            storage=replace(storage, within=())
            if axis is None or role is not Role.TEMP
            else Storage(),
            family=None,
        )

    def _index(self, index: Index) -> Index:
        return Index(f"{index.name}_{self.here.name}", self.here)

    def _on_range(self, term: Term, index: Index | None, equation: Equation) -> Term:
        """The term with ``index`` on the range, and its tensors as this needs them."""
        if any(not factor_refs(f) and index in factor_indices(f) for f in term.factors):
            raise PlanError(
                f"the equation of {equation.lhs.tensor.name} has a delta over space "
                f"{self.along.name}: distribute along another space"
            )
        here = None if index is None else self._index(index)

        def change(ref: Ref) -> Ref:
            if here is None or here not in ref.indices:
                return Ref(self._computed(ref.tensor, None), ref.indices)
            ref = _first_axis(ref, here)
            if ref.indices.count(here) > 1:
                raise PlanError(
                    f"the equation of {equation.lhs.tensor.name} reads a diagonal of "
                    f"{ref.tensor.name} over space {self.along.name}: distribute along another "
                    f"space"
                )
            return Ref(self._computed(ref.tensor, ref.indices.index(here)), ref.indices)

        if index is not None and here is not None:
            term = rename_term(term, {index: here})
        return replace_refs_of_term(term, change)


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
