"""Programs over blocks: ``tcgen.blocked(program, grading)``, and their calls.

A program over blocks executes the formula sequence of a compiled program. Its C library serves
every group; the tables are those of one grading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiler.documents import read_plan
from ..dtypes import BY_NAME
from ..errors import ArgumentError, DtypeError, MemoryLimitError, PlanError, ShapeError
from ..grading import Grading
from ..ir.conservation import axis_signs
from ..ir.conserved_factors import Product, factor_of
from ..ir.expr import Delta, format_expr, leaves
from ..ir.layouts import unpack
from ..ir.pretty.equations import pretty_step
from ..ir.program import FormulaSequence, Produce
from ..ir.reduction import Reduction
from ..ir.tensor import Role, Tensor, element_type
from ..records.arena import Block, Layout, place
from ..records.loops import stored_shape
from ..records.signature import Signature
from ..runtime.arguments import check_names
from ..runtime.host_device import HostDevice
from ..runtime.program import Program
from ..thresholds import CpuThresholds
from .arrays import BlockedArray, blocks_of, check_declared, plain_array
from .layout import BlockLayout, Group
from .library import Library, Steps
from .nest import Nest, apart, find_nest, outside
from .operations import Operation, Schedule
from .orbitals import Orbitals, same_orbitals
from .products import Storages
from .schedule import NestPlan, Scheduler, map_functions
from .source import blocks_source

Array = npt.NDArray[Any]


class BlockedProgram:
    """A program over the blocks of one grading; :func:`tcgen.blocked` makes it.

    Arguments and results are blocked arrays. A dense array is divided into blocks first.

    Args:
        program: the compiled program, or a formula sequence.
        grading: the group, and the irreps of the orbitals.
        charges: values of the charges that inputs declare, by name.
        extents: extents of spaces without a grading.
        thresholds: thresholds of products of which half is computed; by default those of the CPU.
        dtype: element type of a formula sequence.

    Attributes:
        grading: the grading.
        allocated_bytes: bytes that the latest call allocated beyond its inputs.
    """

    def __init__(
        self,
        program: Program | FormulaSequence,
        grading: Grading,
        charges: Mapping[str, Any] | None = None,
        extents: Mapping[str, int] | None = None,
        thresholds: CpuThresholds | None = None,
        dtype: str = "float64",
    ) -> None:
        self.grading = grading
        self.allocated_bytes = 0
        self._made_of = (program, grading, charges, extents, thresholds, dtype)
        self._limit: int | None = None
        self._compared: set[str] = set()  # inputs whose declared symmetry has been checked
        if isinstance(program, FormulaSequence):
            sequence, target = program, "cpu"
            self._name, self._dtype = sequence.name, dtype
            self._device = HostDevice()
        else:
            manifest = program.manifest
            sequence, target = read_plan(program.artifact).program, manifest.target
            self._name, self._dtype = manifest.name, manifest.dtype
            self._limit = manifest.memory_limit
            self._device = HostDevice(reuse=manifest.reuses_memory)
        _refuse(sequence, target)
        self._orbitals = Orbitals(sequence.spaces, grading, extents, self._name)
        dims = self._orbitals.dims
        signatures = axis_signs(
            sequence,
            graded=frozenset(self._orbitals.grading.spaces),
            own_inverse=grading.own_inverse,
        )
        self._inputs = sequence.inputs
        self._outputs = sequence.outputs
        self._charges = _charges(signatures.values(), grading, charges or {}, self._name)
        constants = frozenset(t.name for t in sequence.inputs if not t.volatile)
        totals = {name: int(dim.sum()) for name, dim in dims.items()}
        nest = find_nest(sequence, totals)
        sequence = sequence if nest is None else outside(sequence, nest)
        storages = Storages(sequence, signatures, totals, constants)
        factor = partial(
            factor_of, graded=self._orbitals.grading.spaces, own_inverse=grading.own_inverse
        )
        functions = map_functions(sequence, storages, partial(factor, signatures=signatures))
        every = [*functions.values()]
        plan = None
        if nest is not None:
            plan = _nest_plan(
                nest, signatures, totals, factor, len(functions), split=len(grading) > 1
            )
            every += plan.functions.values()
        self._source = blocks_source(self._name, every, self._dtype)
        self._library: Library | None = None
        self._schedule = Scheduler(
            sequence,
            signatures,
            storages,
            functions,
            Group(grading),
            dims,
            self._charges,
            CpuThresholds() if thresholds is None else thresholds,
            complex_numbers=self._dtype == "complex128",
            nest=plan,
        ).schedule
        self._memory = _Memory(self._schedule, sequence, self._dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        # Tables and the library are made again: they hold addresses.
        return BlockedProgram, self._made_of

    def __repr__(self) -> str:
        inputs = ", ".join(t.name for t in self._inputs)
        outputs = ", ".join(t.name for t in self._outputs)
        return f"<{self._name}({inputs}) -> {outputs}, {self.grading.name}, {self._dtype}>"

    @property
    def source(self) -> str:
        """The C source, which is the same for all groups of its kind."""
        return self._source

    @property
    def flops(self) -> int:
        """Flops of the products of matrices in a call of the bound program."""
        return self._schedule.flops

    @property
    def table_bytes(self) -> int:
        """Bytes of the tables of blocks, which the program keeps."""
        return self._schedule.table_bytes

    @property
    def workspace_bytes(self) -> int:
        """Bytes of intermediates and scratch that a call allocates, beyond inputs and results."""
        return self._memory.arenas

    def peak_bytes(self) -> int:
        """Bytes that a call allocates beyond its inputs: workspace and results."""
        return self._memory.peak

    def elements(self, name: str) -> int:
        """The number of elements in the blocks of an array."""
        return self._schedule.sizes[name]

    def build(self) -> None:
        """Compile the library, which the first call does otherwise.

        Raises:
            BuildError: there is no C compiler, or it fails.
        """
        if self._library is None:
            self._library = Library(self._source)

    def empty(self, name: str) -> BlockedArray:
        """A blocked array of an input, whose elements are to be filled in.

        Raises:
            ArgumentError: the program has no such input.
        """
        tensor = self._input(name)
        layout = self._schedule.layouts[name]
        data = np.empty(layout.size, element_type(tensor, self._dtype))
        return BlockedArray(data, self._all, [s.name for s in tensor.spaces], layout)

    def blocked(self, name: str, array: Any) -> BlockedArray:
        """The blocks of an input, from a dense array as the compiled program takes it.

        Raises:
            ArgumentError, ShapeError, DtypeError: the array does not fit the input.
            CheckError: an element that the grading forbids is not zero; the largest is named.
        """
        return self._blocked(self._input(name), array)

    def _input(self, name: str) -> Tensor:
        tensor = next((t for t in self._inputs if t.name == name), None)
        if tensor is None:
            known = ", ".join(t.name for t in self._inputs)
            raise ArgumentError(f"{self._name} has no input {name}: its inputs are {known}")
        return tensor

    def __call__(self, /, **arrays: Any) -> dict[str, Any]:
        """Run the program.

        Args:
            arrays: each input by its name, as a blocked array or a dense one.

        Returns:
            The outputs by name: blocked arrays, and scalars as arrays without axes.

        Raises:
            ArgumentError, DtypeError, ShapeError: an array does not fit the input.
            CheckError: an element that the grading forbids is not zero.
            MemoryLimitError: the program needs more than its limit.
            BuildError: the first call cannot compile the source.
        """
        check_names(self._name, self._inputs, arrays)
        given = self._given(self._inputs, arrays)
        volatile = {t.name: given[t.name] for t in self._inputs if t.volatile}
        return _State(self, given).run(volatile)

    def bind(self, /, **constants: Any) -> BoundBlockedProgram:
        """Fix the constant inputs, and compute once all that depends only on them.

        Blocked arrays are not copied: leave their data as they are while the bound program is in
        use, or bind again.

        Raises:
            ArgumentError: a constant is missing, or an input is volatile.
        """
        expected = tuple(t for t in self._inputs if not t.volatile)
        volatile = [n for n in constants if any(t.name == n and t.volatile for t in self._inputs)]
        if volatile:
            raise ArgumentError(
                f"{self._name}: {', '.join(volatile)} may change at each call: pass it to the "
                f"bound program, or declare it constant"
            )
        check_names(f"{self._name}.bind", expected, constants)
        return BoundBlockedProgram(self, _State(self, self._given(expected, constants)))

    def _given(self, tensors: Iterable[Tensor], arrays: Mapping[str, Any]) -> dict[str, Array]:
        """The elements of inputs in the program's layouts."""
        given = {}
        for tensor in tensors:
            array = arrays.get(tensor.name, tensor.default)
            array = np.asarray(array, float) if array is tensor.default else array
            blocks = self._blocked(tensor, array)
            if tensor.symmetry and tensor.name not in self._compared:
                check_declared(tensor.name, blocks, tensor)
                self._compared.add(tensor.name)
            given[tensor.name] = blocks.data
        return given

    def _blocked(self, tensor: Tensor, array: Any) -> BlockedArray:
        layout = self._schedule.layouts[tensor.name]
        wanted = element_type(tensor, self._dtype)
        where = f"{self._name}: input {tensor.name}"
        if isinstance(array, BlockedArray):
            _check_dtype(where, array.dtype, wanted)
            return _fitting(where, array, tensor, layout, self._all)
        dense = plain_array(array, where)
        if dense.ndim or dense.dtype != np.float64:
            _check_dtype(where, dense.dtype, wanted)
        extents = self._orbitals.extents
        stored = stored_shape(tensor, extents)
        if dense.shape != stored:
            orbitals = ", ".join(
                f"{s.name}={s.extent_in(extents)}" for s in dict.fromkeys(tensor.spaces)
            )
            raise ShapeError(
                f"{where} has the shape {dense.shape}, but the grading has {orbitals} orbitals, "
                f"so that it should be {stored}: grade the orbitals that the array has"
            )
        spaces = [s.name for s in tensor.spaces]
        dense = unpack(tensor, dense, extents).astype(wanted, copy=False)
        return blocks_of(dense, self._all, spaces, layout, where)

    @property
    def _all(self) -> Grading:
        """The grading of all spaces, joined ones included."""
        return self._orbitals.grading

    def _run(self, steps: Steps, addresses: npt.NDArray[np.uintp]) -> None:
        self.build()
        assert self._library is not None
        self._library.run(steps, addresses)


class BoundBlockedProgram:
    """A program over blocks with fixed constants: ``bound(**volatile)``."""

    def __init__(self, program: BlockedProgram, state: _State) -> None:
        self._program = program
        self._state = state

    @property
    def kept_bytes(self) -> int:
        """Bytes of all that was computed from the constants."""
        return self._program._memory.lasting.total

    def __call__(self, /, **arrays: Any) -> dict[str, Any]:
        """Run the program on its volatile inputs; arguments and results are a program's."""
        program = self._program
        volatile = tuple(t for t in program._inputs if t.volatile)
        check_names(f"{program._name}, bound", volatile, arrays)
        return self._state.run(program._given(volatile, arrays))

    def __repr__(self) -> str:
        takes = ", ".join(t.name for t in self._program._inputs if t.volatile)
        return f"<{self._program._name}, bound({takes}), {self._program.grading.name}>"


class _Memory:
    """The buffers of a schedule: numbers, and places in the arenas.

    Attributes:
        numbers: the number of each buffer.
        lasting: arena of what the constant operations leave for the others.
        phases: arenas of the constant and of the other operations.
        outputs: bytes of the results.
        steps: the constant operations and the others.
    """

    def __init__(self, schedule: Schedule, sequence: FormulaSequence, dtype: str) -> None:
        self.itemsize = BY_NAME[dtype].itemsize
        self.numbers = {name: n for n, name in enumerate(schedule.sizes)}
        parts = (
            [op for op in schedule.operations if op.constant],
            [op for op in schedule.operations if not op.constant],
        )
        self.steps = tuple(Steps(part, self.numbers) for part in parts)
        # Real arrays of complex programs are converted, to and from the program's element type.
        direct = {
            t.name
            for t in sequence.tensors
            if t.role in (Role.INPUT, Role.OUTPUT) and element_type(t, dtype) == dtype
        }
        converted = {t.name: t for t in sequence.inputs if t.name not in direct}
        lives = [_lifetimes(part) for part in parts]
        kept = set(lives[0]) & set(lives[1])
        kept |= {n for n, t in converted.items() if not t.volatile and n in lives[1]}

        def block(name: str, first: int, last: int) -> Block:
            count = max(1, schedule.sizes[name]) * self.itemsize
            return Block(name, count, first, last)

        lasting = sorted(kept - direct, key=self.numbers.__getitem__)
        self.lasting = place(tuple(block(name, 0, 0) for name in lasting))
        self.phases: list[Layout] = []
        for live, part in zip(lives, parts, strict=True):
            blocks = []
            for name, (first, last) in live.items():
                if name in direct or name in kept:
                    continue
                start = 0 if name in converted else first
                end = len(part) if any(t.name == name for t in sequence.outputs) else last
                blocks.append(block(name, start, end))
            self.phases.append(place(tuple(blocks)))
        self.outputs = sum(
            max(1, schedule.sizes[t.name]) * BY_NAME[element_type(t, dtype)].itemsize
            for t in sequence.outputs
        )

    @property
    def arenas(self) -> int:
        """Most bytes of the arenas at one time."""
        return self.lasting.total + max(layout.total for layout in self.phases)

    @property
    def peak(self) -> int:
        """Most bytes of the arenas and the results at one time."""
        constant, volatile = self.phases
        return self.lasting.total + max(constant.total, volatile.total + self.outputs)


def _lifetimes(operations: Sequence[Operation]) -> dict[str, tuple[int, int]]:
    live: dict[str, tuple[int, int]] = {}
    for position, op in enumerate(operations):
        for name in op.arrays:
            live[name] = (live.get(name, (position, 0))[0], position)
    return live


class _State:
    """Memory that the constant operations leave, and addresses of buffers."""

    def __init__(self, program: BlockedProgram, given: Mapping[str, Array]) -> None:
        memory = program._memory
        if program._limit is not None and memory.peak > program._limit:
            raise MemoryLimitError(
                f"{program._name} over blocks of {program.grading.name} needs {memory.peak:,} "
                f"bytes, but the memory limit is {program._limit:,} bytes: raise memory_limit, or "
                f"use a larger group"
            )
        self._program = program
        self._constants = dict(given)
        self._lasting = program._device.arena(memory.lasting)
        self._addresses = np.zeros(len(memory.numbers), np.uintp)
        self._fill(self._lasting, self._addresses, memory.lasting)
        arena = program._device.arena(memory.phases[0])
        self._fill(arena, self._addresses, memory.phases[0])
        self._pass(
            given, self._addresses, (memory.lasting, self._lasting), (memory.phases[0], arena)
        )
        if len(memory.steps[0].table):
            program._run(memory.steps[0], self._addresses)

    def run(self, given: Mapping[str, Array]) -> dict[str, Any]:
        """The results of the operations that depend on the volatile inputs, which are ``given``."""
        program, memory = self._program, self._program._memory
        addresses = self._addresses.copy()
        layout = memory.phases[1]
        arena = program._device.arena(layout)
        self._fill(arena, addresses, layout)
        self._pass(given, addresses, (layout, arena))
        schedule, dtype = program._schedule, program._dtype
        results: dict[str, Array] = {}
        placed = dict(layout.offsets)
        for tensor in program._outputs:
            size = schedule.sizes[tensor.name]
            wanted = element_type(tensor, dtype)
            made = program._device.empty((max(1, size),), np.dtype(wanted))
            if tensor.name not in placed:
                addresses[memory.numbers[tensor.name]] = made.ctypes.data
            results[tensor.name] = made
        program._run(memory.steps[1], addresses)
        volatile = layout.total + sum(r.nbytes for r in results.values())
        program.allocated_bytes = memory.lasting.total + max(memory.phases[0].total, volatile)
        outputs: dict[str, Any] = {}
        for tensor in program._outputs:
            made = results[tensor.name]
            if tensor.name in placed:
                made[...] = _view(arena, placed[tensor.name], len(made), dtype).real
            outputs[tensor.name] = self._result(tensor, made)
        return outputs

    def _result(self, tensor: Tensor, made: Array) -> Any:
        layout = self._program._schedule.layouts[tensor.name]
        if tensor.rank == 0:
            return made[0] if layout.size else made.dtype.type(0)
        spaces = [s.name for s in tensor.spaces]
        return BlockedArray(made[: layout.size], self._program._all, spaces, layout)

    def _fill(self, arena: Array, addresses: npt.NDArray[np.uintp], layout: Layout) -> None:
        for name, offset in layout.offsets:
            addresses[self._program._memory.numbers[name]] = arena.ctypes.data + offset

    def _pass(
        self,
        given: Mapping[str, Array],
        addresses: npt.NDArray[np.uintp],
        *arenas: tuple[Layout, Array],
    ) -> None:
        """Set the addresses of inputs, or convert those of another element type."""
        dtype = self._program._dtype
        for name, array in given.items():
            for layout, arena in arenas:
                offset = dict(layout.offsets).get(name)
                if offset is not None:
                    _view(arena, offset, len(array), dtype)[...] = array
                    break
            else:
                addresses[self._program._memory.numbers[name]] = array.ctypes.data


def _view(arena: Array, offset: int, count: int, dtype: str) -> Array:
    """Elements of an arena that begin at an offset in bytes."""
    return arena[offset : offset + count * np.dtype(dtype).itemsize].view(dtype)


def _nest_plan(
    nest: Nest,
    outside: Mapping[str, Signature],
    extents: Mapping[str, int],
    factor: partial[Product],
    first: int,
    *,
    split: bool,
) -> NestPlan:
    inner, signatures = nest.sequence, nest.signatures(outside)
    slices = frozenset(t.name for t in inner.inputs)
    of = partial(factor, signatures=signatures)
    if split:
        inner = apart(inner, signatures, of)
    storages = Storages(inner, signatures, extents, frozenset(), slices)
    functions = map_functions(inner, storages, of, first)
    return NestPlan(replace(nest, sequence=inner), signatures, storages, functions)


def _refuse(sequence: FormulaSequence, target: str) -> None:
    """Refuse what cannot run over blocks, with what to do instead."""
    instead = "call the program with dense arrays"
    if target == "cuda":
        raise PlanError("programs over blocks run on the CPU: compile for the target cpu")
    for step in sequence.steps:
        if isinstance(step.op, Produce) or step.out.tensor.role is Role.GENERATED:
            raise PlanError(
                f"{step.out.tensor.source} is generated or sliced, and has no blocks: pass it "
                f"whole, or {instead}"
            )
        if step.reduction is not Reduction.SUM:
            raise PlanError(
                f"{pretty_step(step)} is not a sum, and only sums have blocks: {instead}"
            )
        if step.summand is not None:
            for leaf in leaves(step.summand):
                if isinstance(leaf, Delta) and not _nested(leaf):
                    raise PlanError(
                        f"{pretty_step(step)}: the spaces of {format_expr(leaf)} overlap, and none "
                        f"is a part of the other: {instead}"
                    )
    for tensor in sequence.outputs:
        if tensor.accumulate:
            raise PlanError(
                f"output {tensor.name} accumulates: write {tensor.name} = ... in the equations, "
                f"and add the data of blocked arrays afterwards"
            )


def _nested(delta: Delta) -> bool:
    one, other = delta.left.space, delta.right.space
    return one.before(other) is not None or other.before(one) is not None


def _charges(
    signatures: Iterable[Any], grading: Grading, given: Mapping[str, Any], program: str
) -> dict[str, int]:
    """The charges as numbers of elements."""
    declared = dict.fromkeys(name for s in signatures for name, _ in s.charge)
    unknown = [n for n in given if n not in declared]
    missing = [n for n in declared if n not in given]
    if unknown or missing:
        what = f"unknown charge {', '.join(unknown)}" if unknown else ""
        lacks = f"charge {', '.join(missing)} is missing" if missing else ""
        known = ", ".join(declared) or "none"
        raise ArgumentError(
            f"{program}: {'; '.join(filter(None, (what, lacks)))}: its charges are {known}; give "
            f"them as charges={{name: irrep}}"
        )
    return {name: grading.element(value) for name, value in given.items()}


def _check_dtype(where: str, found: Any, wanted: str) -> None:
    if found != np.dtype(wanted):
        raise DtypeError(
            f"{where} has elements of type {found}, but the program takes {wanted}: convert it "
            f"with .astype({wanted!r}), or compile with dtype={str(found)!r}"
        )


def _fitting(
    where: str, array: BlockedArray, tensor: Tensor, layout: BlockLayout, grading: Grading
) -> BlockedArray:
    """A blocked array whose layout is that of the program; it is converted if its signs differ."""
    spaces = tuple(s.name for s in tensor.spaces)
    if array.spaces != spaces:
        raise ShapeError(
            f"{where} has axes [{','.join(array.spaces)}], but should have [{','.join(spaces)}]"
        )
    if not same_orbitals(array.grading, grading, spaces):
        raise ArgumentError(
            f"{where} has the grading {array.grading!r}, but the program has {grading!r}: use one "
            f"grading for all arrays"
        )
    extents = tuple(int(dim.sum()) for dim in layout.dims)
    if array.shape != extents or array.data.shape != (array.layout.size,):
        raise ShapeError(
            f"{where} has the shape {array.shape} and {array.data.size:,} elements, but should "
            f"have the shape {extents} and {array.layout.size:,} elements"
        )
    if array.signs == layout.signs and array.charge == layout.charge:
        data = np.require(array.data, requirements=("C", "A"))
        return BlockedArray(data, grading, spaces, layout)
    return blocks_of(array.dense(), grading, spaces, layout, where)
