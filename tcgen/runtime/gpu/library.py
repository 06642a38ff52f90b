"""Products of a program that a library of the GPU computes.

An entry of the manifest names variables; here they become numbers: extents, strides in elements and
offsets. Variables of a group count as one. Variables of the batch whose points are equally far
apart in all operands also count as one; the longest is a strided batch, and the others are loops
around the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product as combinations
from math import prod

from ...artifact.manifest import KernelEntry, Manifest
from ...errors import ExtentError
from ...hardware import CUTENSOR
from ...records.loops import Access, BandVar, Buffer, Gemm, stored_shape
from ..call.host_loops import PhaseBuffers
from ..device_protocol import Contraction, Gpu, Matrix, MatrixProduct, Operand
from ..host_program import Values

LARGEST = 2**31 - 1  # rows, columns, and elements between them, as cuBLAS counts them
_Numbers = tuple[int, int, int]  # one each for the result, a and b


@dataclass(frozen=True, slots=True)
class LibraryLaunch:
    """A product at some extents; ``strides`` has those of each buffer, in elements."""

    kernel: KernelEntry
    entry: Gemm
    device: Gpu
    dtype: str
    extent: Callable[[str], int]
    strides: Mapping[str, tuple[int, ...]]

    def resolved(self, buffers: PhaseBuffers) -> Callable[[Values], None]:
        """A function of host variables that queues the calls; it holds arrays of ``buffers``."""
        entry = self.entry
        operands = tuple([buffers.named(x.buffer) for x in (entry.out, entry.a, entry.b)])

        def multiply(values: Values) -> None:
            for product in self.products(values):
                self.device.multiply(product, *operands)

        def contract(values: Values) -> None:
            self.device.contract(self.contraction(values), *operands)

        return contract if self.kernel.library == CUTENSOR else multiply

    def contraction(self, values: Values) -> Contraction:
        """The only call of a library that takes axes in any order."""
        entry = self.entry
        variables = (*entry.batch, *entry.m, *entry.n, *entry.k)

        def operand(matrix: Access) -> Operand:
            held = {s.variable for s in matrix.subscripts}
            modes = tuple(mode for mode, v in enumerate(variables) if v.name in held)
            strides = tuple(self.stride(matrix, variables[mode].name) for mode in modes)
            return Operand(self.start(matrix, values), modes, strides)

        return Contraction(
            self.dtype,
            tuple(self.length(v, values) for v in variables),
            float(entry.coeff),
            entry.accumulate,
            *(operand(x) for x in (entry.out, entry.a, entry.b)),
        )

    def products(self, values: Values) -> Iterator[MatrixProduct]:
        """The calls at values of host variables; ExtentError if the library cannot count so far."""
        entry = self.entry
        m, n, k = (self.count(group, values) for group in (entry.m, entry.n, entry.k))
        batch = self.batch(values)
        if 0 in (m, n, *(length for length, _ in batch)):
            return
        matrices = (
            (entry.out, entry.m, entry.n),
            (entry.a, entry.m, entry.k),
            (entry.b, entry.k, entry.n),
        )
        starts = [self.start(x, values) for x, _, _ in matrices]
        steps = [(self.step(x, rows), self.step(x, columns)) for x, rows, columns in matrices]
        if max(m, n, k, *(step for pair in steps for step in pair)) > LARGEST:
            raise ExtentError(
                f"kernel {self.kernel.name} multiplies matrices of {m:,} x {k:,} x {n:,} elements, "
                f"and cuBLAS counts to {LARGEST:,}: compile with library=False (--no-library)"
            )
        batch.sort(key=lambda dimension: dimension[0])
        count, apart = batch.pop() if batch else (1, (0, 0, 0))
        for point in combinations(*(range(length) for length, _ in batch)):
            moved = [
                sum(at * strides[which] for at, (_, strides) in zip(point, batch, strict=True))
                for which in range(3)
            ]
            out, a, b = (
                Matrix(starts[x] + moved[x], *steps[x], apart[x] if count > 1 else 0)
                for x in range(3)
            )
            factor = float(entry.coeff)
            yield MatrixProduct(self.dtype, m, n, k, count, factor, entry.accumulate, out, a, b)

    def count(self, group: tuple[BandVar, ...], values: Values) -> int:
        """Points of a group."""
        return prod(self.length(v, values) for v in group)

    def length(self, variable: BandVar, values: Values) -> int:
        """Values of a variable; the last tile of a space may be shorter."""
        extent = self.extent(variable.space.name)
        if variable.tile is None or variable.base is None:
            return extent
        return min(variable.tile, extent - values[variable.base])

    def start(self, matrix: Access, values: Values) -> int:
        """Offset of the first element."""
        entry = self.entry
        groups = (entry.batch, entry.m, entry.n, entry.k)
        first = {v.name: v.base for group in groups for v in group}
        offset = 0
        for subscript, stride in zip(matrix.subscripts, self.strides[matrix.buffer], strict=True):
            place = sum(self.extent(space.name) for space in subscript.offset)
            name = subscript.variable
            if name is not None:
                begin = first.get(name, name)  # a variable of the host is its own value
                place += 0 if begin is None else values[begin]
            if subscript.base is not None:
                place -= values[subscript.base]
            offset += stride * place
        return offset

    def stride(self, matrix: Access, name: str) -> int:
        """Elements between two values of a variable; 0 in an operand without it."""
        pairs = zip(matrix.subscripts, self.strides[matrix.buffer], strict=True)
        return sum(stride for subscript, stride in pairs if subscript.variable == name)

    def step(self, matrix: Access, group: tuple[BandVar, ...]) -> int:
        """Elements between two points of a group, whose variables are adjacent axes."""
        return self.stride(matrix, group[-1].name) if group else 1

    def batch(self, values: Values) -> list[tuple[int, _Numbers]]:
        """Lengths and strides of the batch, with variables as one where their points allow it."""
        entry = self.entry
        merged: list[tuple[int, _Numbers]] = []
        dimensions = [
            (
                self.length(v, values),
                (
                    self.stride(entry.out, v.name),
                    self.stride(entry.a, v.name),
                    self.stride(entry.b, v.name),
                ),
            )
            for v in entry.batch
        ]
        for length, strides in sorted(dimensions, key=lambda d: d[1], reverse=True):
            if merged and merged[-1][1] == tuple(length * s for s in strides):
                merged[-1] = (merged[-1][0] * length, strides)
            else:
                merged.append((length, strides))
        return merged


def prepare_product(
    kernel: KernelEntry, manifest: Manifest, extents: Mapping[str, int], device: Gpu
) -> LibraryLaunch:
    """The launch of a kernel that is a product of the library."""
    entry = kernel.product
    assert entry is not None, f"kernel {kernel.name} is a generated function"
    buffers = {b.name: b for b in manifest.buffers}
    held = (entry.out.buffer, entry.a.buffer, entry.b.buffer)
    return LibraryLaunch(
        kernel,
        entry,
        device,
        buffers[entry.out.buffer].dtype,
        partial(manifest.extent, extents=extents),
        {name: _strides(buffers[name], extents) for name in held},
    )


def _strides(buffer: Buffer, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Elements between neighbours on each logical axis."""
    shape = stored_shape(buffer, extents)
    strides = [0] * len(buffer.axes)
    for place, (axis, _) in enumerate(buffer.stored()):
        strides[axis] = prod(shape[place + 1 :])
    return tuple(strides)
