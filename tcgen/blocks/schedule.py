"""A formula sequence as operations on whole arrays of blocks, each with its table.

The operations of one grading are sums and products of matrices, copies of blocks into other
storages, and element-wise maps. Those that depend on constants only run once for a bound program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np

from ..errors import VerifyError
from ..ir.conserved_factors import Product as Factors
from ..ir.conserved_factors import common_factors, products_of
from ..ir.exchange_symmetry import exchange_images
from ..ir.expr import Delta, Expr, leaves
from ..ir.pretty.equations import pretty_step
from ..ir.program import Contract, FormulaSequence, Map, Step
from ..ir.tensor import Index, Ref, Role, Space, Tensor
from ..records.signature import Signature
from ..thresholds import CpuThresholds
from .layout import Axes, BlockLayout, Group, Numbers, PartLayout, SlicedLayout, Storage
from .nest import Nest, charge_of_loop
from .operations import Inside, Kind, Operation, Schedule
from .products import Indices, Product, Storages, is_part, relation, signs_of
from .tables import Table, Walked, copies, make_table, product_table, walks

# Share of the time of a product that is lost if its target has more rows than columns, of which the
# BLAS computes fewer at a time. Source: benzene in cc-pVDZ, 2026-11-30.
_TALL = 0.25
_ALIGNED = 16  # elements to whose multiples buffers inside of a nest are aligned
# Flops of a product of matrices above which several threads divide it.
_SHARED_FLOPS = 4e6


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Half:
    """A product that is computed for one order of a pair of indices only.

    Attributes:
        pair: the indices, which are all of one side of the product.
        images: new names of the target's indices that give the other order.
        sign: sign of the other order.
    """

    pair: Indices
    images: dict[Index, Index]
    sign: int


@dataclass(frozen=True, slots=True)
class MapFunction:
    """An element-wise step as a function in C.

    Attributes:
        step: the step.
        expr: the expression.
        refs: references that it reads, each once.
        deltas: its Kronecker deltas, each once.
        number: its place among the functions of the library.
        needed: references and deltas of which each one makes the expression zero where it is zero.
        fastest: loop whose stride is one element, for the target and each reference, or -1.
    """

    step: Step
    expr: Expr
    refs: tuple[Ref, ...]
    deltas: tuple[Delta, ...]
    number: int
    needed: frozenset[Ref | Delta]
    fastest: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NestPlan:
    """Loops over orbitals, and what is known of the arrays and steps inside."""

    nest: Nest
    signatures: Mapping[str, Signature]
    storages: Storages
    functions: Mapping[int, MapFunction]


def map_functions(
    sequence: FormulaSequence,
    storages: Storages,
    factor: Callable[[Ref | Delta], Factors],
    first: int = 0,
) -> dict[int, MapFunction]:
    """The steps that are neither products of matrices nor copies of blocks, by their ids.

    ``factor`` says what a reference or a delta conserves.
    """
    found: dict[int, MapFunction] = {}
    for step in sequence.steps:
        if storages.groups(step) is not None or storages.copied(step):
            continue
        expr = step.summand
        if expr is None:
            raise VerifyError(f"step {pretty_step(step)} has no expression")
        parts = tuple(dict.fromkeys(leaves(expr)))
        refs = tuple(leaf for leaf in parts if isinstance(leaf, Ref))
        deltas = tuple(leaf for leaf in parts if isinstance(leaf, Delta))
        needed = common_factors(products_of(expr, factor))
        fastest = tuple(
            -1 if index is None else step.indices.index(index)
            for index in map(storages.fastest, (step.out, *refs))
        )
        made = MapFunction(step, expr, refs, deltas, first + len(found), needed, fastest)
        found[step.id] = made
    return found


def constant_tensors(sequence: FormulaSequence) -> frozenset[str]:
    """Names of the arrays that depend on constants only; outputs are none of them."""
    constant = {t.name for t in sequence.inputs if not t.volatile}
    for tensor in sequence.tensors:
        steps = sequence.producers(tensor)
        if tensor.role is Role.TEMP and all(
            ref.tensor.name in constant for step in steps for ref in step.operands
        ):
            constant.add(tensor.name)
    return frozenset(constant)


class Scheduler:
    """Makes the schedule of a sequence for one grading.

    Args:
        sequence: the sequence.
        signatures: signs and charges of all tensors.
        storages: storages of all tensors.
        functions: the element-wise steps.
        group: the group of the irreps.
        dims: orbitals by irrep of each base space.
        charges: values of named charges.
        thresholds: thresholds from which half of a product is computed.
        complex_numbers: the program's numbers are complex, so that real arrays need their real
            parts taken.
        nest: loops over orbitals, and the storages and functions inside.
        known: tables and layouts, of the same sequence for other charges.
    """

    def __init__(
        self,
        sequence: FormulaSequence,
        signatures: Mapping[str, Signature],
        storages: Storages,
        functions: Mapping[int, MapFunction],
        group: Group,
        dims: Mapping[str, Numbers],
        charges: Mapping[str, int],
        thresholds: CpuThresholds,
        *,
        complex_numbers: bool,
        nest: NestPlan | None = None,
        known: dict[object, Any] | None = None,
    ) -> None:
        self._group = group
        self._dims = dims
        self._signatures = signatures
        self._storages = storages
        self._functions = functions
        self._charges = charges
        self._known: dict[object, Any] = {} if known is None else known
        self._constants = self._once("constants", lambda: constant_tensors(sequence))
        self._complex = complex_numbers
        layouts = {t.name: self._layout(t) for t in sequence.tensors if t.name in storages.of}
        self._made = Schedule(layouts, {name: layout.size for name, layout in layouts.items()})
        self._sequence = sequence
        self._thresholds = thresholds
        self._sorted: dict[tuple[object, ...], str] = {}
        # Products in other storages than that of the array, or of the part of it, to which they are
        # added later, and the arrays that none has overwritten so far.
        self._partial: dict[str, dict[tuple[BlockLayout, Storage], str]] = {}
        self._unwritten: set[str] = set()
        self._constant = False
        self._real = {t.name for t in sequence.tensors if complex_numbers and t.real}
        for step in sequence.steps:
            if nest is not None and step.id > nest.nest.last:
                self._loop(nest)
                nest = None
            self._step(step)
        if nest is not None:
            self._loop(nest)
        for name in [*self._partial]:
            self._gather(name)

    @property
    def schedule(self) -> Schedule:
        """The finished schedule."""
        return self._made

    def _layout(self, tensor: Tensor) -> BlockLayout:
        signature = self._signatures[tensor.name]
        charge = charge_of(signature, self._group, self._charges)

        def make() -> BlockLayout:
            dims = [self._dims[s.name] for s in tensor.spaces]
            storage = self._storages.of[tensor.name]
            return BlockLayout(self._group, dims, signature.signs, charge, storage)

        return self._once((tensor.name, charge), make)

    def _layout_of(self, ref: Ref) -> BlockLayout:
        """The layout of what a reference reads: the array, or a part of it on joined axes."""
        whole = self._made.layouts[ref.tensor.name]
        if not is_part(ref):
            return whole
        spaces = tuple(i.space for i in ref.indices)

        def make() -> BlockLayout:
            dims = [self._dims[space.name] for space in spaces]
            pairs = zip(spaces, ref.tensor.spaces, strict=True)
            return PartLayout(whole, dims, [self._before(part, space) for part, space in pairs])

        return self._once((ref.tensor.name, whole.charge, spaces), make)

    def _before(self, part: Space, joined: Space) -> Numbers:
        """By irrep, the orbitals of a joined space that lie before those of a part."""
        dims = (self._dims[base.name] for base in joined.before(part) or ())
        return sum(dims, start=np.zeros(self._group.order, np.int64))

    def _overwritten(self, ref: Ref, *, accumulate: bool) -> bool:
        """Whether what a step writes is added; a part is, to an array that was zeroed whole."""
        if not is_part(ref):
            return accumulate
        name = ref.tensor.name
        if name in self._unwritten:
            self._gather(name)
        if accumulate:
            return True
        self._add(Kind.ZERO, (name,), elements=self._made.sizes[name])
        return True

    def _table(self, step: Step, make: Callable[[], _T], *more: object) -> _T:
        """Make something of the layouts of a step's arrays, once for equal charges."""
        layouts = self._made.layouts
        charges = (layouts[r.tensor.name].charge for r in (step.out, *self._operands(step)))
        return self._once((step.id, *charges, *more), make)

    def _operands(self, step: Step) -> tuple[Ref, ...]:
        return self._once(("operands", step.id), lambda: step.operands)

    def _once(self, key: object, make: Callable[[], _T]) -> _T:
        """Call ``make``, once for all charges."""
        if key not in self._known:
            self._known[key] = make()
        found: _T = self._known[key]
        return found

    def _stored(self, layout: BlockLayout, storage: Storage, pair: Axes) -> BlockLayout:
        key = "stored", layout, storage, pair
        return self._once(key, lambda: layout.stored(storage, pair))

    def _step(self, step: Step) -> None:
        name = step.out.tensor.name
        operands = self._operands(step)
        for ref in operands:
            self._gather(ref.tensor.name)
        self._constant = name in self._constants
        product = self._once(("product", step.id), lambda: self._storages.product(step))
        if product is not None:
            self._multiply(step, product)
        elif self._storages.copied(step):
            self._gather(name)
            self._copy(step)
        else:
            self._gather(name)
            self._map(self._functions[step.id])
        # Sorted copies of what the step wrote are outdated.
        self._sorted = {key: copy for key, copy in self._sorted.items() if key[0] != name}
        mixed = any(not ref.tensor.real for ref in operands)
        whole = name in self._real and name not in self._partial
        if whole and mixed and not isinstance(step.op, Map):
            self._add(Kind.REAL, (name,), elements=self._made.sizes[name])

    def _add(
        self,
        kind: Kind,
        arrays: tuple[str, ...],
        coefficient: float = 1.0,
        accumulate: bool = False,
        table: Table | None = None,
        *,
        elements: int = 0,
        number: int = 0,
        flops: int = 0,
    ) -> None:
        operation = Operation(
            kind, arrays, coefficient, accumulate, table, elements, number, self._constant, flops
        )
        self._made.operations.append(operation)

    def _copies(
        self, target: BlockLayout, source: BlockLayout, axes: Axes, *, strict: bool = False
    ) -> Table:
        """The table of a copy; equal layouts have the same one."""
        key = (
            *(
                x
                for layout in (target, source)
                for x in (
                    (layout,)
                    if isinstance(layout, PartLayout)
                    else (layout.signs, layout.charge, layout.storage, layout.pair)
                )
            ),
            *(tuple(id(dim) for dim in source.dims), axes, strict),
        )
        return self._once(key, lambda: copies(target, source, axes, strict=strict))

    def _copy(self, step: Step) -> None:
        source, target = step.operands[0], step.out
        one, other = (self._layout_of(r) for r in (source, target))
        arrays = (target.tensor.name, source.tensor.name)
        coefficient = float(step.coeff)
        accumulate = self._overwritten(target, accumulate=step.accumulate)
        axes = tuple(target.indices.index(i) for i in source.indices)
        same = one.storage == other.storage and one.signs == other.signs
        same &= not is_part(source) and not is_part(target)
        if axes == tuple(range(one.rank)) and same and one.charge == other.charge:
            self._add(Kind.ADD, arrays, coefficient, accumulate, elements=one.size)
            return
        table = self._copies(other, one, axes)
        self._add(Kind.COPY, arrays, coefficient, accumulate, table)

    def _operand(
        self, ref: Ref, rows: Indices, columns: Indices, pair: Indices = (), *, sort: bool
    ) -> tuple[str, BlockLayout]:
        """The buffer and the layout of a factor in a storage, sorted if it has another one."""
        name = ref.tensor.name
        layout = self._layout_of(ref)
        if not sort and not pair:
            return name, layout
        storage = _axes(ref, rows), _axes(ref, columns)
        key = (name, layout, storage, _axes(ref, pair))
        wanted = self._stored(layout, storage, _axes(ref, pair))
        if key not in self._sorted:
            copy = f"{name} sorted {len(self._made.sizes)}"
            self._sorted[key] = copy
            self._made.sizes[copy] = wanted.size
            table = self._copies(wanted, layout, tuple(range(layout.rank)))
            constant, self._constant = self._constant, name in self._constants
            self._add(Kind.COPY, (copy, name), table=table)
            self._constant = constant
        return self._sorted[key], wanted

    def _multiply(self, step: Step, product: Product) -> None:
        assert isinstance(step.op, Contract)
        a, b, c = step.op.a, step.op.b, step.out
        m, n, k = product.m, product.n, product.k
        sort_a, sort_b, sort_c = product.sorts
        coefficient = float(step.coeff)
        if product.dot is not None:
            self._dot(step, product)
            return
        half = self._table(step, lambda: self._half(step, product), "half")
        pair = () if half is None else half.pair
        name_a, one = self._operand(a, m, k, pair if pair == m else (), sort=sort_a)
        name_b, other = self._operand(b, k, n, pair if pair == n else (), sort=sort_b)
        name_c, target = c.tensor.name, self._layout_of(c)
        whole = target
        tall = self._table(step, lambda: self._is_tall(step, product), "tall")
        sort_c = sort_c or half is not None or tall
        accumulate = self._overwritten(c, accumulate=step.accumulate)
        added = accumulate
        if sort_c:
            # Rows are the shorter side: the BLAS walks columns.
            sides = sorted((m, n), key=self._count)
            sides_c = _axes(c, sides[0]), _axes(c, sides[1])
            target = self._stored(target, sides_c, _axes(c, pair))
            summed = self._partial.setdefault(c.tensor.name, {}) if half is None else {}
            key = whole, target.storage
            name_c = summed.get(key, f"{name_c} product {len(self._made.sizes)}")
            accumulate = key in summed
            summed[key] = name_c
            self._made.sizes[name_c] = target.size
            if not added:
                self._unwritten.add(c.tensor.name)
        elif c.tensor.name in self._unwritten:
            accumulate = False
            self._unwritten.remove(c.tensor.name)
        table, flops, swapped = self._table(
            step,
            lambda: product_table(
                (one, _axes(a, m), _axes(a, k)),
                (other, _axes(b, k), _axes(b, n)),
                (target, _axes(c, m), _axes(c, n)),
                accumulate=accumulate,
            ),
            accumulate,
        )
        arrays = (name_c, name_b, name_a) if swapped else (name_c, name_a, name_b)
        largest = int((2 * table.steps[:, :3].astype(np.int64).prod(axis=1)).max(initial=0))
        alone = int(largest < _SHARED_FLOPS)
        self._add(Kind.PRODUCT, arrays, coefficient, accumulate, table, number=alone, flops=flops)
        if half is not None:
            copy = self._copies(whole, target, tuple(range(whole.rank)))
            both = (c.tensor.name, name_c)
            written = c.tensor.name not in self._unwritten
            self._unwritten.discard(c.tensor.name)
            self._add(Kind.COPY, both, 1.0, written, copy)
            images = tuple(c.indices.index(half.images.get(i, i)) for i in c.indices)
            copy = self._copies(whole, target, images, strict=True)
            self._add(Kind.COPY, both, float(half.sign), written, copy)

    def _gather(self, name: str) -> None:
        """Add up the products of an array that were computed in other storages."""
        partial = self._partial.pop(name, {})
        constant, self._constant = self._constant, name in self._constants
        for (whole, storage), product in partial.items():
            table = self._copies(whole, self._stored(whole, storage, ()), tuple(range(whole.rank)))
            self._add(Kind.COPY, (name, product), 1.0, name not in self._unwritten, table)
            self._unwritten.discard(name)
        if partial and name in self._real:
            self._add(Kind.REAL, (name,), elements=self._made.sizes[name])
        self._constant = constant

    def _loop(self, plan: NestPlan) -> None:
        """The operations of a nest: slices, and those inside for all irreps of its orbitals."""
        nest, inner = plan.nest, plan.nest.sequence
        dim = self._dims[nest.space.name]
        orbitals, weights = _tuples(int(dim.sum()), nest.ordered)
        irrep = np.repeat(np.arange(self._group.order), dim)
        place = np.arange(len(irrep)) - (np.cumsum(dim) - dim)[irrep]
        irreps = irrep[orbitals]
        chosen, number = np.unique(irreps, axis=0, return_inverse=True)
        results = [t.name for t in inner.outputs]
        self._constant = False
        for name in results:
            self._add(Kind.ZERO, (name,), elements=1)
        if not len(chosen):
            return
        buffers, starts = [], []
        for tensor in inner.inputs:
            piece = nest.slices[tensor.name]
            self._gather(piece.tensor.name)
            loops = list(piece.loops)
            buffer, layout = self._slices(piece.tensor, piece.axes, plan.storages.of[tensor.name])
            buffers.append(buffer)
            at = place[orbitals[:, loops]]
            for n, axis in enumerate(piece.axes):
                before = self._before(nest.space, piece.tensor.spaces[axis])
                at[:, n] += before[irreps[:, loops[n]]]
            starts.append(layout.starts(irreps[:, loops], at))
        known: dict[object, Any] = {}
        schedules = []
        for row in chosen:
            charges = {charge_of_loop(n): int(g) for n, g in enumerate(row)}
            scheduler = Scheduler(
                *(inner, plan.signatures, plan.storages, plan.functions, self._group, self._dims),
                *(dict(self._charges) | charges, self._thresholds),
                complex_numbers=self._complex,
                known=known,
            )
            schedules.append(scheduler.schedule)
        names = [t.name for t in inner.inputs] + results
        names = list(dict.fromkeys(names + [n for s in schedules for n in s.sizes]))
        own = names[len(inner.inputs) :]
        sizes = [max(s.sizes.get(n, 0) for s in schedules) for n in own]
        rounded = -(-np.array([max(1, n) for n in sizes]) // _ALIGNED) * _ALIGNED
        offsets = np.cumsum(rounded) - rounded
        scratch = f"scratch of {inner.name}"
        self._made.sizes[scratch] = int(rounded.sum())
        flops = np.array([s.flops for s in schedules], np.int64)
        operation = Operation(
            Kind.NEST,
            (*results, *buffers, scratch),
            table=make_table(np.stack(starts, axis=1), np.stack([number, weights], axis=1)),
            elements=len(results),
            flops=int(flops[number].sum()),
            inside=Inside(tuple(schedules), {n: k for k, n in enumerate(names)}, offsets),
        )
        self._made.operations.append(operation)

    def _slices(self, tensor: Tensor, axes: Axes, storage: Storage) -> tuple[str, SlicedLayout]:
        """The buffer and the layout of an array whose slices lie one after the other."""
        name, whole = tensor.name, self._made.layouts[tensor.name]
        layout = SlicedLayout(whole, axes, storage)
        if not axes and storage == whole.storage:
            return name, layout
        key = name, axes, storage
        if key not in self._sorted:
            self._sorted[key] = f"{name} slices {len(self._made.sizes)}"
            self._made.sizes[self._sorted[key]] = layout.size
            self._constant = name in self._constants
            table = copies(layout, whole, tuple(range(whole.rank)))
            self._add(Kind.COPY, (self._sorted[key], name), table=table)
            self._constant = False
        return self._sorted[key], layout

    def _half(self, step: Step, product: Product) -> Half | None:
        """A pair of the target's indices of which one order is enough; None if none pays."""
        assert isinstance(step.op, Contract)
        target = self._layout_of(step.out).size
        pairs = ((step.op.a, product.m), (step.op.b, product.n))
        if not any(len(pair) == 2 for _, pair in pairs):
            return None
        flops = self._flops(step, product)
        if flops < self._thresholds.pair_flops:
            return None
        best: tuple[float, Half] | None = None
        for factor, pair in pairs:
            name = factor.tensor.name
            if len(pair) != 2 or pair[0].space != pair[1].space or not self._alike(factor, pair):
                continue
            # Half of the factor is copied, once if it is constant, and the target is twice.
            size = 0 if name in self._constants else self._layout_of(factor).size
            moved = 2 * target + size // 2
            saved = flops // 2 - self._thresholds.pair_copy_flops * moved
            if saved <= (0 if best is None else best[0]):
                continue
            proven = exchange_images(self._sequence, step, pair)
            if proven is not None and {proven[0].get(i) for i in pair} == set(pair):
                best = saved, Half(pair, proven[0], proven[1])
        return None if best is None else best[1]

    def _alike(self, ref: Ref, pair: Indices) -> bool:
        """Whether both indices of a pair enter with the same sign."""
        first, second = signs_of(ref, pair, self._signatures[ref.tensor.name])
        return first == second

    def _is_tall(self, step: Step, product: Product) -> bool:
        """Whether a target is stored with so many rows that its transpose is worth a copy."""
        layout = self._layout_of(step.out)
        rows, columns = (self._count([step.out.indices[a] for a in s]) for s in layout.storage)
        if columns == 1 or rows <= 2 * columns:
            return False
        copied = 2 * layout.size * self._thresholds.pair_copy_flops
        return self._flops(step, product) * _TALL > copied

    def _count(self, indices: Iterable[Index]) -> int:
        """The number of tuples of orbitals."""
        return prod(int(self._dims[i.space.name].sum()) for i in indices)

    def _flops(self, step: Step, product: Product) -> int:
        """Flops of a product that is computed whole."""
        sides = (product.m, product.k), (product.k, product.n), (product.m, product.n)
        operands = []
        for ref, (rows, columns) in zip((*step.operands, step.out), sides, strict=True):
            storage = _axes(ref, rows), _axes(ref, columns)
            operands.append((self._stored(self._layout_of(ref), storage, ()), *storage))
        a, b, c = operands
        return product_table(a, b, c, accumulate=True)[1]

    def _dot(self, step: Step, product: Product) -> None:
        assert isinstance(step.op, Contract)
        assert product.dot is not None
        rows, columns = product.dot
        a, b = step.op.a, step.op.b
        name_a, one = self._operand(a, rows, columns, sort=product.sorts[0])
        name_b, other = self._operand(b, rows, columns, sort=product.sorts[1])
        group = self._group
        irreps = np.arange(group.order)
        signs = (signs_of(r, rows, self._signatures[r.tensor.name]) for r in (a, b))
        partner = group.signed(irreps, relation(*signs))
        count = one.rows.counts * one.widths
        # Of charges that differ, no block is in both.
        signs = (signs_of(r, columns, self._signatures[r.tensor.name]) for r in (a, b))
        same = group.signed(one.opposite, relation(*signs)) == other.opposite[partner]
        count = np.where(same, count, 0)
        used = np.flatnonzero(count)
        if not len(used) and not step.accumulate:
            used = irreps[:1]
        width = count[used]
        ones, zeros = np.ones_like(width), np.zeros_like(width)
        places = np.stack([zeros, one.bases[used], other.bases[partner[used]]], axis=1)
        lengths = np.maximum(width, 1)
        steps = np.stack([ones, ones, width, ones, lengths, ones, zeros, zeros], axis=1)
        # The first row overwrites the scalar, the others add to it.
        for first in (True, False):
            part = slice(0, 1) if first else slice(1, None)
            if len(places[part]):
                arrays = (step.out.tensor.name, name_a, name_b)
                table = make_table(places[part], steps[part])
                accumulate = step.accumulate or not first
                flops = int(2 * width[part].sum())
                self._add(Kind.PRODUCT, arrays, float(step.coeff), accumulate, table, flops=flops)

    def _map(self, function: MapFunction) -> None:
        step = function.step
        loops = step.indices
        number = {index: n for n, index in enumerate(loops)}

        def walked(ref: Ref) -> Walked:
            return Walked(self._layout_of(ref), tuple(number[i] for i in ref.indices))

        refs = (step.out, *function.refs)
        arrays = [walked(ref) for ref in refs]
        pairs = [ordered(delta) for delta in function.deltas]
        deltas = [(number[i], number[j], self._before(i.space, j.space)) for i, j in pairs]
        needed: list[int | tuple[int, int]] = [0]
        own = len(step.out.indices)
        name = step.out.tensor.name
        accumulate = self._overwritten(step.out, accumulate=step.accumulate)
        found = function.needed
        needed += [n for n, ref in enumerate(refs) if n and ref in found]
        needed += [p[:2] for p, d in zip(deltas, function.deltas, strict=True) if d in found]
        dims = [self._dims[i.space.name] for i in loops]
        table = self._table(step, lambda: walks(dims, arrays, deltas, needed))
        if not accumulate:
            # Few blocks are added to zeros; else all are written.
            blocks = int(arrays[0].layout.filled.sum())
            added = bool(step.sums) or 2 * len(table.places) < blocks
            if added:
                self._add(Kind.ZERO, (name,), elements=self._made.sizes[name])
            elif len(table.places) < blocks:
                table = self._table(step, lambda: walks(dims, arrays, deltas, [0]), "all")
            accumulate = added
        self._add(
            Kind.MAP,
            tuple(ref.tensor.name for ref in refs),
            float(step.coeff),
            accumulate,
            table,
            elements=int(own == len(loops)),
            number=function.number,
        )


def ordered(delta: Delta) -> tuple[Index, Index]:
    """The indices of a delta; the space of the second one has that of the first as a part."""
    left, right = delta.left, delta.right
    return (right, left) if right.space.before(left.space) is None else (left, right)


def _tuples(count: int, ordered: Sequence[bool]) -> tuple[Numbers, Numbers]:
    """Tuples of orbitals, one a row, and for how many each one stands.

    A loop that is ``ordered`` takes orbitals up to that of the loop before.
    """
    tuples = np.zeros((1, 0), np.int64)
    weights, run, place = (np.ones(1, np.int64) for _ in range(3))
    for follows in ordered:
        last = tuples[:, -1] if follows else np.full(len(tuples), count - 1)
        times = last + 1
        again = np.repeat(np.arange(len(tuples)), times)
        orbital = np.arange(len(again)) - np.repeat(np.cumsum(times) - times, times)
        equal = follows & (orbital == last[again])
        place = place[again] + 1 if follows else np.ones(len(again), np.int64)
        run = np.where(equal, run[again] + 1, 1)
        # The number of orders of a multiset, one element after the other.
        weights = weights[again] * place // run
        tuples = np.concatenate([tuples[again], orbital[:, None]], axis=1)
    return tuples, weights


def charge_of(signature: Signature, group: Group, charges: Mapping[str, int]) -> int:
    """The charge of a tensor as a number of the group."""
    total = 0
    for name, times in signature.charge:
        for _ in range(abs(times)):
            total = int(group.sums[total, group.signed(charges[name], times)])
    return total


def _axes(ref: Ref, indices: Indices) -> tuple[int, ...]:
    return tuple(ref.indices.index(i) for i in indices)
