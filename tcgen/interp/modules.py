"""Interpreter of modules: the loops one after another, the bands point by point.

It is the oracle of lowering and of generated code. Memory with undefined contents is filled with
NaN: new buffers, private buffers at each launch and at each iteration of a parallel loop, and
buffers that are not live while a statement runs. A missing initialisation or a live range that is
too short therefore shows in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import assert_never

import numpy as np

from ..errors import VerifyError
from ..ir.expr import Access, Equal, Subscript
from ..ir.loop_analysis import positions, used_buffers, written_buffers
from ..ir.loops import (
    Assign,
    BandVar,
    Buffer,
    Fetch,
    Gemm,
    Host,
    HostLoop,
    Launch,
    Loop,
    LoopVar,
    Module,
    Stmt,
    Zero,
)
from ..ir.tensor import Role, Space, element_type
from .elements import Array, combine, combine_at, evaluate_expr, filled, reduced
from .storage import (
    Source,
    check_extents,
    check_inputs,
    image_sign,
    read_block,
    starting_values,
    to_caller,
    to_logical,
)

Points = dict[str, Array]  # value of each band variable at each point, all of one length


def run_module(
    module: Module,
    arrays: Mapping[str, Source],
    extents: Mapping[str, int],
    out: Mapping[str, Array] | None = None,
    executed: Callable[[Assign | Gemm, int], None] | None = None,
    part: tuple[int, int] | None = None,
) -> dict[str, Array]:
    """Outputs of a verified module: runs the constant phase, then the volatile one or a part of it.

    ``executed`` is called with each executed statement and the number of points of its loops.
    ``part`` has the first and the end of the numbers of a part, half open; None for the whole
    phase. A module without parts is one part. Other arguments and errors are those of
    :func:`~tcgen.interp.evaluate_system`; results are in stored order, packed if the tensor is.
    """
    check_extents(module.spaces, extents)
    machine = _Machine(module, check_inputs(module.tensors, arrays, extents), extents, executed)
    outputs = [t for t in module.tensors if t.role is Role.OUTPUT]
    starts = starting_values(outputs, out, extents, module.dtype)
    for name, start in starts.items():
        machine.memory[name][...] = start
    fresh = [] if part is None else [t.name for t in outputs if t.name not in starts]
    machine.clear(fresh)
    with np.errstate(all="ignore"):
        machine.host(module.host_constant, {})
        machine.part = part
        if part is not None and not part[0] == 0 < part[1]:
            # Results of the constant phase belong to the part with iteration 0.
            machine.clear(fresh)
        if part is None or part[0] < part[1]:
            machine.host(module.host_volatile, {})
    return {t.name: to_caller(t, machine.memory[t.name]) for t in outputs}


@dataclass
class _Machine:
    """The memory of all buffers, on logical axes, and the statements that change it."""

    module: Module
    sources: Mapping[str, Source]
    extents: Mapping[str, int]
    executed: Callable[[Assign | Gemm, int], None] | None
    lengths: dict[int, int] = field(default_factory=dict)
    written: dict[str, None] = field(default_factory=dict)
    memory: dict[str, Array] = field(default_factory=dict)
    part: tuple[int, int] | None = None
    number: int = 0

    def __post_init__(self) -> None:
        module = self.module
        self.buffers = {b.name: b for b in module.buffers}
        self.kernels = {k.name: k for k in module.kernels}
        self.kernel_positions = positions(module).kernels
        for buffer in module.buffers:
            tensor = buffer.tensor
            if buffer.place == "caller" and tensor is not None and tensor.is_input:
                values = to_logical(tensor, self.sources[tensor.name], self.extents)
                self.memory[buffer.name] = values.astype(element_type(tensor, module.dtype))
                self.memory[buffer.name].flags.writeable = False
            else:
                shape = [a.length or a.space.extent_in(self.extents) for a in buffer.axes]
                self.memory[buffer.name] = np.full(shape, np.nan, buffer.dtype)

    def clear(self, names: Iterable[str]) -> None:
        """Set buffers to zero."""
        for name in names:
            self.memory[name][...] = 0
            self.written[name] = None

    def iterations(self, var: LoopVar, env: dict[str, int]) -> Iterator[int]:
        """The values of a loop variable; of numbered loops, those of the part.

        The innermost one of them counts its iterations.
        """
        parts = self.module.parts
        chain = () if parts is None or self.part is None else parts.chain
        if parts is not None and chain and var == chain[0]:
            self.clear(parts.cleared)
            self.number = 0
        for value in self.values(var, env):
            if self.part is not None and chain and var == chain[-1]:
                self.number += 1
                if not self.part[0] < self.number <= self.part[1]:
                    continue
            yield value

    def host(self, items: tuple[Host, ...], env: dict[str, int]) -> None:
        """Run host statements; ``env`` gives the values of the loop variables."""
        for item in items:
            match item:
                case HostLoop(var, body):
                    for value in self.iterations(var, env):
                        self.host(body, {**env, var.name: value})
                case Launch(kernel):
                    self.launch(kernel, env)
                case Fetch(buffer, ranges):
                    self.fetch(buffer, ranges, env)
                case _:
                    assert_never(item)

    def launch(self, name: str, env: dict[str, int]) -> None:
        """Run a kernel with fresh private buffers, if the part has it."""
        parts, part = self.module.parts, self.part
        if parts is not None and part is not None and part[0] > 0 and name in parts.once:
            return
        kernel = self.kernels[name]
        self.forget(s for s in kernel.body)
        given = {v.name: env[v.name] for v in kernel.host_vars}
        self.run_body(kernel.body, given, self.kernel_positions[name][0])

    def fetch(self, name: str, ranges: tuple[LoopVar | None, ...], env: dict[str, int]) -> None:
        """Produce a tile of a generated input in its buffer."""
        tensor = self.buffers[name].tensor
        assert tensor is not None
        block = tuple(
            self.tile(space, None, None)
            if var is None
            else self.tile(space, env[var.name], var.tile or 1)
            for space, var in zip(tensor.spaces, ranges, strict=True)
        )
        memory = self.memory[name]
        memory[...] = np.nan
        self.written[name] = None
        tile = read_block(tensor, self.sources[tensor.source], block, memory.dtype)
        memory[tuple(slice(0, n) for n in tile.shape)] = tile

    def forget(self, body: Iterator[Stmt]) -> None:
        """Fill the private buffers of some statements with NaN."""
        for stmt in body:
            for name in used_buffers(stmt):
                if self.buffers[name].place in ("private", "register", "tile"):
                    self.memory[name][...] = np.nan

    def run_body(self, body: tuple[Stmt, ...], env: dict[str, int], position: int) -> None:
        """Run statements one after another."""
        for stmt in body:
            self.run(stmt, env, position)
            position += self.length(stmt)

    def length(self, stmt: Stmt) -> int:
        """Number of positions of a statement: 1, or those of the body of a loop."""
        if not isinstance(stmt, Loop):
            return 1
        if id(stmt) not in self.lengths:
            self.lengths[id(stmt)] = sum(self.length(inner) for inner in stmt.body)
        return self.lengths[id(stmt)]

    def run(self, stmt: Stmt, env: dict[str, int], position: int) -> None:
        """Run a statement of a kernel; ``position`` is its place in the order of the module."""
        match stmt:
            case Loop(var, body, parallel):
                for value in self.iterations(var, env):
                    if parallel:
                        self.forget(s for s in body)
                    self.run_body(body, {**env, var.name: value}, position)
                return
            case Zero(buffer, reduction=reduction):
                self.memory[buffer][...] = filled(reduction, (), np.float64)
            case Assign():
                self.assign(stmt, env)
            case Gemm():
                self.multiply(stmt, env)
            case _:
                assert_never(stmt)
        self.written.update(dict.fromkeys(written_buffers(stmt)))
        self.overwrite_dead(position)

    def overwrite_dead(self, position: int) -> None:
        """Fill buffers that are not live at a position with NaN: others may use their memory."""
        for name in tuple(self.written):
            buffer = self.buffers[name]
            reused = buffer.place in ("arena", "private") and not buffer.keep
            if not reused:
                del self.written[name]
            elif not buffer.live[0] <= position <= buffer.live[1]:
                self.memory[name][...] = np.nan
                del self.written[name]

    def assign(self, stmt: Assign, env: dict[str, int]) -> None:
        """Run an assignment over its band, with its weights of symmetric orbits."""
        target = self.memory[stmt.out.buffer]
        points = self.points(stmt.band, env)
        if not stmt.accumulate:
            outer = tuple(v for v in stmt.band if v.name in stmt.out.variables)
            start = filled(stmt.reduction, (), np.float64)
            target[self.where(stmt.out, self.points(outer, env), env)] = start
        place = self.where(stmt.out, points, env)
        if self.executed is not None:
            self.executed(stmt, self.stored_points(stmt.out, points, place))
        packed = bool(self.buffers[stmt.out.buffer].packed)
        if packed:
            self.check_triangle(stmt.out, place)

        def leaf(node: object) -> Array:
            match node:
                case Access(buffer):
                    return np.asarray(self.memory[buffer][self.where(node, points, env)])
                case Equal(left, right):
                    same = self.at(left, points, env) == self.at(right, points, env)
                    return np.asarray(same, dtype=np.float64)
                case _:
                    raise VerifyError(f"{node} cannot occur in a module")

        value = np.asarray(evaluate_expr(stmt.expr, leaf, self.module.dtype)) * float(stmt.coeff)
        for chain in stmt.orbit:
            value = value * _arrangements([self.at(Subscript(v), points, env) for v in chain])
        if not np.iscomplexobj(target):
            value = value.real
        if not stmt.out.subscripts:
            total = reduced(stmt.reduction, np.broadcast_to(value, _count(points)), None)
            target[...] = combine(stmt.reduction, target, total)
        else:
            values = np.broadcast_to(value, _count(points))
            combine_at(stmt.reduction, target, place, values)
        if packed:
            self.write_images(stmt.out.buffer)

    def multiply(self, stmt: Gemm, env: dict[str, int]) -> None:
        """Run a matrix product."""
        band = (*stmt.batch, *stmt.m, *stmt.n, *stmt.k)
        letter = {v.name: k for k, v in enumerate(band)}
        out, out_axes = self.block(stmt.out, band, letter, env)
        a, a_axes = self.block(stmt.a, band, letter, env)
        b, b_axes = self.block(stmt.b, band, letter, env)
        if self.executed is not None:
            points = self.points(band, env)
            self.executed(stmt, len(next(iter(points.values()))) if points else 1)
        if any(v.below is not None for v in band):
            a, b = (
                np.where(self.walked(x, band, env), y, 0) for x, y in ((stmt.a, a), (stmt.b, b))
            )
        value = np.einsum(a, a_axes, b, b_axes, out_axes) * float(stmt.coeff)
        inside = self.walked(stmt.out, band, env)
        out[...] = np.where(inside, out + value if stmt.accumulate else value, out)
        if self.buffers[stmt.out.buffer].packed:
            self.write_images(stmt.out.buffer)

    def walked(self, access: Access, band: tuple[BandVar, ...], env: dict[str, int]) -> Array:
        """Which elements of the block of an access the triangles of a band contain."""
        ranges = {v.name: np.arange(*self.band_range(v, env)) for v in band}
        held = [s.variable for s in access.subscripts if s.variable in ranges]
        grid = np.meshgrid(*(ranges[name or ""] for name in held), indexing="ij")
        points = dict(zip(held, grid, strict=True))
        inside = np.ones(np.shape(grid[0]) if grid else (), dtype=bool)
        for var in band:
            if var.below is not None and var.name in points and var.below in points:
                here, bound = points[var.name], points[var.below]
                inside &= here < bound if var.strict else here <= bound
        return inside

    def write_images(self, name: str) -> None:
        """Give the images of the stored elements of a packed buffer their values."""
        buffer, memory = self.buffers[name], self.memory[name]
        for packing in buffer.packed:
            axes = [axis for axis in buffer.order if axis in packing.axes]
            front = np.moveaxis(memory, axes, range(len(axes)))
            for element in np.ndindex(front.shape[: len(axes)]):
                sign = image_sign(packing, element)
                stored = front[tuple(sorted(element, reverse=True))]
                front[element] = sign * stored if sign else 0

    def block(
        self, access: Access, band: tuple[BandVar, ...], letter: dict[str, int], env: dict[str, int]
    ) -> tuple[Array, list[int]]:
        """A view of the elements of an access with distinct variables, and its axis numbers."""
        ranges = {v.name: self.band_range(v, env) for v in band}
        parts: list[slice | int] = []
        axes: list[int] = []
        for subscript in access.subscripts:
            shift = self.shift(subscript, env)
            name = subscript.variable
            if name in letter:
                start, stop = ranges[name]
                parts.append(slice(start + shift, stop + shift))
                axes.append(letter[name])
            else:
                parts.append(shift + (0 if name is None else env[name]))
        return self.memory[access.buffer][(*parts, ...)], axes

    def points(self, band: tuple[BandVar, ...], env: dict[str, int]) -> Points:
        """All points of a band, in the order of its loops."""
        ranges = [self.band_range(v, env) for v in band]
        if not band:
            return {}
        grid = np.meshgrid(*(np.arange(*r) for r in ranges), indexing="ij")
        points = {v.name: g.ravel() for v, g in zip(band, grid, strict=True)}
        for var in band:
            if var.below is not None:
                bound = self.at(Subscript(var.below), points, env)
                inside = points[var.name] < bound if var.strict else points[var.name] <= bound
                points = {name: values[inside] for name, values in points.items()}
        return points

    def where(self, access: Access, points: Points, env: dict[str, int]) -> tuple[Array, ...]:
        """The position on each axis of a buffer, at each point."""
        count = _count(points)
        return tuple(np.broadcast_to(self.at(s, points, env), count) for s in access.subscripts)

    def at(self, subscript: Subscript, points: Points, env: dict[str, int]) -> Array:
        """The position that a subscript gives, at each point."""
        shift = self.shift(subscript, env)
        name = subscript.variable
        if name is None:
            return np.asarray(shift)
        return np.asarray(points[name] if name in points else env[name]) + shift

    def shift(self, subscript: Subscript, env: dict[str, int]) -> int:
        """The constant part of a subscript: offsets of spaces less the base of a tile."""
        offset = sum(space.extent_in(self.extents) for space in subscript.offset)
        return offset - (env[subscript.base] if subscript.base is not None else 0)

    def values(self, var: LoopVar, env: dict[str, int]) -> range:
        """The values of a loop variable."""
        stop = var.space.extent_in(self.extents)
        if var.below is not None:
            stop = min(stop, env[var.below] + 1)
        return range(0, stop, var.tile or 1)

    def band_range(self, var: BandVar, env: dict[str, int]) -> tuple[int, int]:
        """First position and end of a band variable."""
        return self.tile(var.space, None if var.base is None else env[var.base], var.tile)

    def tile(self, space: Space, base: int | None, tile: int | None) -> tuple[int, int]:
        """First position and end of a tile, or of the whole space."""
        extent = space.extent_in(self.extents)
        if base is None or tile is None:
            return 0, extent
        return base, min(base + tile, extent)

    def stored_points(self, out: Access, points: Points, place: tuple[Array, ...]) -> int:
        """Number of points whose target is stored: antisymmetric axes have no diagonal."""
        stored = np.ones(_count(points), dtype=bool)
        for pair in self.buffers[out.buffer].packed:
            if pair.antisymmetric:
                for one, two in combinations(pair.axes, 2):
                    stored &= place[one] != place[two]
        return int(np.sum(stored))

    def check_triangle(self, access: Access, place: tuple[Array, ...]) -> None:
        """Check that a packed target is written in its triangle only."""
        buffer: Buffer = self.buffers[access.buffer]
        for pair in buffer.packed:
            rows = [k for k in buffer.order if k in pair.axes]
            if any(np.any(place[one] < place[two]) for one, two in pairwise(rows)):
                raise VerifyError(f"{access} writes outside the stored triangle")


def _count(points: Points) -> tuple[int, ...]:
    """Shape of the values at all points; () without a band."""
    return np.shape(next(iter(points.values()))) if points else ()


def _arrangements(chain: list[Array]) -> Array:
    """Number of distinct arrangements of a chain of values i >= j >= ..., at each point."""
    count = np.ones(np.broadcast_shapes(*(np.shape(c) for c in chain)))
    run = np.ones_like(count)
    for n in range(1, len(chain)):
        run = np.where(chain[n] == chain[n - 1], run + 1, 1)
        count = count * (n + 1) / run
    return np.asarray(count)
