"""Checks that the parts of a manifest fit each other: names that exist, axes, phases, variables.

``codec`` checks the type of each field. What is checked here is what the runtime relies on when it
looks up a name or an axis, so that a manifest that was changed is refused when it is read, and not
somewhere in a call. Whether the sources do what the manifest says, nothing can check.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import assert_never

from ..dtypes import BY_NAME
from ..hardware import GPU_LIBRARIES
from ..options import MOST, TARGETS
from ..thresholds.time_model import POSITIVE, Machine
from .grid import LARGEST_GRID, GridEntry
from .manifest import (
    BufferEntry,
    FetchEntry,
    HostEntry,
    KernelEntry,
    LaunchEntry,
    LoopEntry,
    Manifest,
    PackingEntry,
    SpaceEntry,
    TensorEntry,
)
from .parts import PartsEntry, SpanEntry, StatementEntry
from .product import MatrixEntry, ProductEntry, VariableEntry

ROLES = ("input", "generated", "output")
PLACES = ("caller", "arena", "private", "register", "tile")
MOST_PARTS = 64  # base spaces of a joined space
MOST_LOOPS = 64  # around a statement
MOST_THREADS = 1024  # of a block, on every GPU
_NUMBER = re.compile(r"-?[0-9]{1,400}(/[0-9]{1,400})?")


class InconsistentManifestError(ValueError):
    """A part of a manifest does not fit the others; the message names its place."""


def check_manifest(manifest: Manifest) -> None:
    """Check that everything the manifest names is there, and that axes and phases fit.

    Raises:
        InconsistentManifestError: at the first part that does not fit.
    """
    _Checker(manifest).check()


def _need(condition: bool, place: str, expected: str) -> None:
    if not condition:
        raise InconsistentManifestError(f"{place}: {expected} is expected")


def _one_of(value: str, names: Collection[str], place: str, what: str) -> None:
    if value not in names:
        raise InconsistentManifestError(f"{place}: there is no {what} {value!r}")


def _check_names(names: Iterable[str], place: str) -> None:
    seen: set[str] = set()
    for name in names:
        _need(name.isprintable() and bool(name), place, "a name that can be printed")
        _need(name not in seen, place, f"another name than {name!r}, which is there already,")
        seen.add(name)


class _Checker:
    """The names of a manifest, and the checks of its parts."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.tensors = {t.name: t for t in manifest.tensors}
        self.buffers = {b.name: b for b in manifest.buffers}
        self.kernels = {k.name: k for k in manifest.kernels}
        self.bases: dict[str, int] = {}  # how many base spaces each space has
        self.base_names = frozenset(s.name for s in manifest.spaces if not s.parts)

    def check(self) -> None:
        manifest = self.manifest
        _check_names((manifest.name,), "name")
        _one_of(manifest.target, TARGETS, "target", "target")
        _one_of(manifest.dtype, BY_NAME, "dtype", "element type")
        _need((manifest.memory_limit or 0) >= 0, "memory_limit", "no negative number")
        _need(manifest.constant_positions >= 0, "constant_positions", "no negative number")
        for number, space in enumerate(manifest.spaces):
            self.space(space, f"spaces[{number}]")
        _check_names((name for name, _ in manifest.planning_extents), "planning_extents")
        for name, extent in manifest.planning_extents:
            _one_of(name, self.base_names, "planning_extents", "base space")
            _need(0 <= extent <= MOST, f"planning_extents.{name}", f"an extent up to {MOST}")
        _check_names(self._names(manifest.tensors), "tensors")
        for number, tensor in enumerate(manifest.tensors):
            self.tensor(tensor, f"tensors[{number}]")
        _check_names(self._names(manifest.buffers), "buffers")
        for number, buffer in enumerate(manifest.buffers):
            self.buffer(buffer, f"buffers[{number}]")
        _check_names(self._names(manifest.kernels), "kernels")
        for number, kernel in enumerate(manifest.kernels):
            self.kernel(kernel, f"kernels[{number}]")
        self.host(manifest.host_constant, "host_constant", {}, constant=True)
        self.host(manifest.host_volatile, "host_volatile", {}, constant=False)
        if manifest.parts is not None:
            self.parts(manifest.parts)
        chain = () if manifest.parts is None else manifest.parts.chain
        variables = frozenset(loop.variable for loop in chain)
        for number, statement in enumerate(manifest.statements):
            self.statement(statement, f"statements[{number}]", variables)
        names = {constant.name for constant in fields(Machine)}
        _need({n for n, _ in manifest.machine} == names, "machine", f"{', '.join(sorted(names))}")
        for name, value in manifest.machine:
            least = int(name in POSITIVE)
            _need(least <= value <= MOST, f"machine.{name}", f"a number of at least {least}")

    def parts(self, parts: PartsEntry) -> None:
        """Check that the numbered loops are there, and what their iterations use."""
        _need(bool(parts.chain), "parts.chain", "a loop")
        for number, loop in enumerate(parts.chain):
            place = f"parts.chain[{number}]"
            self.range(loop.space, loop.tile, place)
            before = parts.chain[number - 1] if number else None
            alike = before is not None and (before.space, before.tile) == (loop.space, loop.tile)
            _need(alike or not loop.below, place, "a loop like the one before it")
        _check_names((loop.variable for loop in parts.chain), "parts.chain")
        if parts.kernel is not None:
            _one_of(parts.kernel, self.kernels, "parts.kernel", "kernel")
        else:
            _need(self._on_host(parts), "parts.chain", "loops of the host inside each other")
        for name in parts.cleared:
            _one_of(name, self.buffers, "parts.cleared", "buffer")
            _need(self.buffers[name].place == "arena", "parts.cleared", "a buffer of the arena")
        for name in parts.once:
            _one_of(name, self.kernels, "parts.once", "kernel")
        variables = frozenset(loop.variable for loop in parts.chain)
        for number, touch in enumerate(parts.touches):
            place = f"parts.touches[{number}]"
            _one_of(touch.tensor, self.tensors, place, "tensor")
            rank = len(self.tensors[touch.tensor].spaces)
            _need(len(touch.axes) == rank, place, f"a span for each of {rank} axes")
            inside = touch.share == "iteration"
            self.spans(touch.axes, place, variables if inside else frozenset())

    def _on_host(self, parts: PartsEntry) -> bool:
        """True if the volatile phase has the numbered loops."""
        for item in self.manifest.host_volatile:
            found: list[tuple[str, str, int | None, bool]] = []
            inner: HostEntry = item
            while isinstance(inner, LoopEntry) and len(found) < len(parts.chain):
                found.append((inner.variable, inner.space, inner.tile, inner.below is not None))
                if len(inner.body) != 1:
                    break
                inner = inner.body[0]
            if found == [(c.variable, c.space, c.tile, c.below) for c in parts.chain]:
                return True
        return False

    def spans(self, spans: Iterable[SpanEntry], place: str, variables: frozenset[str]) -> None:
        for span in spans:
            self.range(span.space, span.length, place)
            for base in span.offset:
                _one_of(base, self.base_names, place, "base space")
            if span.variable is not None:
                _one_of(span.variable, variables, place, "variable of the chain")

    def statement(self, statement: StatementEntry, place: str, variables: frozenset[str]) -> None:
        inside = variables if statement.share == "iteration" else frozenset()
        self.spans(statement.loops, place, frozenset())
        for group in statement.groups:
            self.spans(group, place, inside)
        count = sum(map(len, statement.groups))
        _need(0 <= statement.halves <= MOST_LOOPS, f"{place}.halves", "a number of triangles")
        flops = statement.flops
        _need(flops is None or 0 <= flops <= MOST, f"{place}.flops", "a number of flops")
        for operand in statement.operands:
            _one_of(operand.buffer, self.buffers, place, "buffer")
            _need(0 <= operand.passes <= 2, place, "one or two passes")
            _need(all(0 <= n < count for n in operand.spans), place, "numbers of its spans")

    @staticmethod
    def _names(entries: Iterable[TensorEntry | BufferEntry | KernelEntry]) -> list[str]:
        return [entry.name for entry in entries]

    def space(self, space: SpaceEntry, place: str) -> None:
        _check_names((space.name,), place)
        _need(space.name not in self.bases, place, "a space that is not there already")
        _need(space.extent is None or 0 <= space.extent <= MOST, place, f"an extent up to {MOST}")
        for part in space.parts:
            _one_of(part, self.bases, f"{place}.parts", "space before it that is named")
        count = sum(self.bases[part] for part in space.parts) or 1
        _need(count <= MOST_PARTS, place, f"a space of at most {MOST_PARTS} base spaces")
        self.bases[space.name] = count

    def axes(
        self,
        spaces: tuple[str, ...],
        order: tuple[int, ...],
        packed: tuple[PackingEntry, ...],
        place: str,
    ) -> None:
        rank = len(spaces)
        for space in spaces:
            _one_of(space, self.bases, f"{place}.spaces", "space")
        _permutation(order, rank, f"{place}.order")
        taken: set[int] = set()
        for pair in packed:
            axes = set(pair.axes) if 2 <= pair.count <= rank else set()
            fits = axes and 0 <= pair.first <= rank - pair.count and not axes & taken
            _need(bool(fits), f"{place}.packed", "the first of two or more neighbouring axes")
            same = len({spaces[axis] for axis in axes}) == 1
            _need(same, f"{place}.packed", "axes of one space")
            taken |= axes

    def tensor(self, tensor: TensorEntry, place: str) -> None:
        self.axes(tensor.spaces, tensor.order, tensor.packed, place)
        rank = len(tensor.spaces)
        _one_of(tensor.role, ROLES, f"{place}.role", "role")
        _one_of(tensor.dtype, BY_NAME, f"{place}.dtype", "element type")
        _need(len(tensor.gaps) in (0, rank), f"{place}.gaps", f"one entry for each of {rank} axes")
        for base in tensor.gaps:
            if base is not None:
                _one_of(base, self.base_names, f"{place}.gaps", "base space")
        _need(not (tensor.gaps and tensor.packed), f"{place}.gaps", "no packed pair beside gaps")
        if tensor.default is not None:
            _need(not rank, f"{place}.default", "a tensor without axes")
            _need(_is_number(tensor.default), f"{place}.default", "a number such as -1/2")
        for symmetry in tensor.symmetry:
            _permutation(symmetry.perm, rank, f"{place}.symmetry")
            _need(symmetry.sign in (-1, 1), f"{place}.symmetry", "a sign of 1 or -1")

    def buffer(self, buffer: BufferEntry, place: str) -> None:
        self.axes(buffer.spaces, buffer.order, buffer.packed, place)
        rank = len(buffer.spaces)
        _need(len(buffer.lengths) == rank, f"{place}.lengths", f"one entry for each of {rank} axes")
        for length in buffer.lengths:
            _need(
                length is None or 0 < length <= MOST, f"{place}.lengths", "a length of at least 1"
            )
        for pair in buffer.packed:
            whole = all(buffer.lengths[axis] is None for axis in pair.axes)
            _need(whole, f"{place}.packed", "whole axes")
        _one_of(buffer.dtype, BY_NAME, f"{place}.dtype", "element type")
        _one_of(buffer.place, PLACES, f"{place}.place", "place")
        _live(buffer.live, f"{place}.live")
        _need(not buffer.keep or buffer.place == "arena", f"{place}.keep", "a buffer of the arena")
        if buffer.place == "caller":
            tensor = self.tensors.get(buffer.tensor or buffer.name)
            _need(tensor is not None, place, "the tensor that the caller passes")
            assert tensor is not None
            stored = (tensor.order, tensor.packed, tensor.dtype)
            same = stored == (buffer.order, buffer.packed, buffer.dtype)
            # The buffer of a part has the axes of the larger array.
            same = same and (bool(tensor.gaps) or tensor.spaces == buffer.spaces)
            same = same and not any(buffer.lengths)
            _need(same, place, f"the axes and the element type of {tensor.name}")

    def kernel(self, kernel: KernelEntry, place: str) -> None:
        _live(kernel.live, f"{place}.live")
        _check_names(kernel.host, f"{place}.host")
        for space in kernel.spaces:
            _one_of(space, self.base_names, f"{place}.spaces", "base space")
        constant = kernel.live[0] < self.manifest.constant_positions
        for name in (*kernel.reads, *kernel.writes, *kernel.private):
            _one_of(name, self.buffers, place, "buffer")
            buffer = self.buffers[name]
            placed = buffer.place == "caller" or buffer.keep
            here = (buffer.live[0] < self.manifest.constant_positions) == constant
            _need(placed or here, place, f"a buffer that is live in its phase, not {name},")
        _check_names(kernel.private, f"{place}.private")
        for name in kernel.private:
            own = self.buffers[name]
            _need(
                own.place in ("arena", "private") and not own.keep,
                f"{place}.private",
                f"a buffer of the arena, not {name},",
            )
        for dtype, groups, _ in kernel.contractions:
            _one_of(dtype, BY_NAME, f"{place}.contractions", "element type")
            _need(len(groups) == 3, f"{place}.contractions", "one group each of m, n and k")
            for space, tile in (variable for group in groups for variable in group):
                self.range(space, tile, f"{place}.contractions")
        on_gpu = self.manifest.target == "cuda"
        _need(on_gpu or kernel.product is None, f"{place}.product", "a product for a GPU alone")
        computed = on_gpu and kernel.product is None
        _need((kernel.grid is not None) == computed, f"{place}.grid", "a grid for a GPU alone")
        if kernel.grid is not None:
            self.grid(kernel, kernel.grid, f"{place}.grid")
        if kernel.product is not None:
            self.product(kernel, kernel.product, f"{place}.product")

    def grid(self, kernel: KernelEntry, grid: GridEntry, place: str) -> None:
        for name in grid.arguments:
            known = {*kernel.reads, *kernel.writes}
            _one_of(name, known, f"{place}.arguments", "buffer of the kernel")
        for strip in grid.strips:
            _need(strip.tile > 0, f"{place}.strips", "a tile of at least 1")
            for space, tile, start in strip.lengths:
                self.range(space, tile, f"{place}.strips")
                if start is not None:
                    _one_of(start, kernel.host, f"{place}.strips", "host variable")
        for space, tile in (length for lengths in grid.ranges for length in lengths):
            self.range(space, tile, f"{place}.ranges")
        _need(0 < grid.splits <= LARGEST_GRID, f"{place}.splits", "a positive number")
        _need(grid.most is None or grid.most > 0, f"{place}.most", "a positive number")
        _need(0 < grid.threads <= MOST_THREADS, f"{place}.threads", f"up to {MOST_THREADS}")
        _need(0 <= grid.part_bytes <= MOST, f"{place}.part_bytes", "a number of bytes")
        _need(0 <= grid.shared_bytes <= MOST, f"{place}.shared_bytes", "a number of bytes")

    def product(self, kernel: KernelEntry, product: ProductEntry, place: str) -> None:
        groups = (product.batch, product.m, product.n, product.k)
        variables = {v.name: v for group in groups for v in group}
        _check_names((v.name for group in groups for v in group), place)
        for name, variable in variables.items():
            _need(name not in kernel.host, place, "another variable than those of the host")
            self.range(variable.space, variable.tile, place)
            _need(
                (variable.start is None) == (variable.tile is None), place, "a tile and its start"
            )
            if variable.start is not None:
                _one_of(variable.start, kernel.host, place, "host variable")
        _need(_is_number(product.coefficient), f"{place}.coefficient", "a number such as -1/2")
        _one_of(product.library, GPU_LIBRARIES, f"{place}.library", "library")
        outer = (*product.batch, *product.m, *product.n)
        self.matrix(kernel, product.out, kernel.writes, variables, outer, f"{place}.out")
        for name, matrix, needed in (
            ("a", product.a, (*product.m, *product.k)),
            ("b", product.b, (*product.k, *product.n)),
        ):
            self.matrix(kernel, matrix, kernel.reads, variables, needed, f"{place}.{name}")
        dtypes = {self.buffers[m.buffer].dtype for m in (product.out, product.a, product.b)}
        _need(len(dtypes) == 1, place, "one element type")

    def matrix(
        self,
        kernel: KernelEntry,
        matrix: MatrixEntry,
        buffers: tuple[str, ...],
        variables: Mapping[str, VariableEntry],
        needed: tuple[VariableEntry, ...],
        place: str,
    ) -> None:
        """Check one operand of a product: its buffer, and the variables of its axes."""
        _one_of(matrix.buffer, buffers, place, "buffer of the kernel")
        buffer = self.buffers[matrix.buffer]
        _need(not buffer.packed, place, "an array without packed pairs")
        rank = len(buffer.spaces)
        _need(len(matrix.subscripts) == rank, place, f"a subscript for each of {rank} axes")
        for subscript in matrix.subscripts:
            if subscript.variable is not None:
                known = {*variables, *kernel.host}
                _one_of(subscript.variable, known, place, "variable of the product or the host")
            if subscript.base is not None:
                _one_of(subscript.base, kernel.host, place, "host variable")
            for space in subscript.offset:
                _one_of(space, self.base_names, place, "base space")
        held = {s.variable for s in matrix.subscripts}
        _need(all(v.name in held for v in needed), place, "every variable of its groups")

    def range(self, space: str, tile: int | None, place: str) -> None:
        _one_of(space, self.bases, place, "space")
        _need(tile is None or 0 < tile <= MOST, place, "a tile of at least 1")

    def host(
        self, items: tuple[HostEntry, ...], place: str, outer: Mapping[str, str], *, constant: bool
    ) -> None:
        """Check a host program; ``outer`` has the space of each variable that is bound there."""
        for number, item in enumerate(items):
            here = f"{place}[{number}]"
            match item:
                case LoopEntry():
                    self.range(item.space, item.tile, here)
                    _check_names((item.variable, *outer), here)
                    if item.below is not None:
                        _one_of(item.below, outer, f"{here}.below", "outer variable")
                    inside = {**outer, item.variable: item.space}
                    self.host(item.body, f"{here}.body", inside, constant=constant)
                case LaunchEntry():
                    _one_of(item.kernel, self.kernels, here, "kernel")
                    kernel = self.kernels[item.kernel]
                    for variable in kernel.host:
                        _one_of(variable, outer, here, "outer variable")
                    phase = kernel.live[0] < self.manifest.constant_positions
                    _need(phase == constant, here, "a kernel of this phase")
                case FetchEntry():
                    self.fetch(item, here, outer, constant=constant)
                case _:
                    assert_never(item)

    def fetch(
        self, item: FetchEntry, place: str, outer: Mapping[str, str], *, constant: bool
    ) -> None:
        _one_of(item.buffer, self.buffers, place, "buffer")
        buffer = self.buffers[item.buffer]
        tensor = self.tensors.get(buffer.tensor or buffer.name)
        _need(tensor is not None and tensor.role != "output", place, "a buffer of an input")
        assert tensor is not None
        _need(not (constant and tensor.volatile), place, "an input of the constant phase")
        _need(tensor.spaces == buffer.spaces, place, f"a buffer with the axes of {tensor.name}")
        _need(buffer.place == "arena" and not buffer.packed, place, "a buffer of the arena")
        here = (buffer.live[0] < self.manifest.constant_positions) == constant
        _need(buffer.keep or here, place, "a buffer that is live in this phase")
        _need(len(item.ranges) == len(buffer.spaces), place, "a range for each axis")
        for variable, space, length in zip(item.ranges, buffer.spaces, buffer.lengths, strict=True):
            if variable is None:
                _need(length is None, place, f"a variable for a part of {space}")
            else:
                _one_of(variable, outer, place, "outer variable")
                _need(outer[variable] == space, place, f"a variable of {space}")


def _permutation(axes: tuple[int, ...], rank: int, place: str) -> None:
    _need(sorted(axes) == list(range(rank)), place, f"a permutation of {rank} axes")


def _live(live: tuple[int, int], place: str) -> None:
    _need(0 <= live[0] <= live[1], place, "a first and a last position")


def _is_number(text: str) -> bool:
    """Whether a text is an exact number in the range of floating-point numbers."""
    if _NUMBER.fullmatch(text) is None:
        return False
    try:
        float(Fraction(text))
    except (ZeroDivisionError, OverflowError):
        return False
    return True
