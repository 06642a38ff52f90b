"""One matrix product of a module as a module of its own, in several ways, for whoever times it.

Before: ``for x by 8: contract r[i,x,a] += v[i,x,c] * t[c,a]   packs t``, with r a tile of 8 x.
After: ``for n0: contract target[v0,v1,v2] += left[v0,v1,v3] * right[v3,v2]   packs right``, then
``for n1: ...`` in another way, on arrays that are arguments. The variable of the tile has extent 8,
and ``left`` keeps its strides. No name is that of the module, so that equal products of two
programs are equal modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from ...ir.cost import extent_of
from ...ir.expr import Access, Subscript
from ...ir.loop_analysis import band_of
from ...ir.loops import Axis, BandVar, Buffer, Gemm, Kernel, Launch, Loop, LoopVar, Module, Stmt
from ...ir.pretty.loops import format_way
from ...ir.tensor import Role, Space, Storage, Tensor
from ..layout import fastest

_FLOPS = 4 * 10**9  # that one product may take
_ELEMENTS = 2**26  # that its arrays may hold together
_LINE = 8  # elements of a cache line, on which extents that are made shorter end as before


@dataclass(frozen=True, slots=True)
class Alone:
    """Ways to compute one product, as one program.

    Attributes:
        module: takes ``left``, ``right``, ``target`` and, for each way, a vector ``times0``,
            ``times1``, ...: nobody reads its elements, but for each of them the product is computed
            once in that way.
        ways: as text.
        extents: of the base spaces, those of the plan; where that takes more than 4 Gflop or 2^26
            elements, the longest of them are shorter. No way is taken.
    """

    module: Module
    ways: tuple[str, ...]
    extents: tuple[tuple[str, int], ...]


def alone(ways: Sequence[Gemm], buffers: Mapping[str, Buffer], extents: Mapping[str, int]) -> Alone:
    """The program of some ways to compute one product.

    Args:
        ways: of one target, two operands and the same variables.
        buffers: of the module, by name.
        extents: planning extents.
    """
    product = ways[0]
    names = _Names(extents)
    for var in band_of(product):
        names.add(var)
    roles = (("target", product.out), ("left", product.a), ("right", product.b))
    found = {access: names.array(name, access, buffers[access.buffer]) for name, access in roles}
    made = [buffer for buffer, _ in found.values()]
    again = [Space(f"n{number}") for number in range(len(ways))]
    tensors = (
        *(_tensor(b, Role.INPUT) for b in made[1:]),
        *(Tensor(f"times{n}", (space,), Role.INPUT) for n, space in enumerate(again)),
        _tensor(made[0], Role.OUTPUT, accumulate=product.accumulate),
    )
    renamed = [
        replace(
            way,
            out=found[way.out][1],
            a=found[way.a][1],
            b=found[way.b][1],
            batch=names.band(way.batch),
            m=names.band(way.m),
            n=names.band(way.n),
            k=names.band(way.k),
        )
        for way in ways
    ]
    body: tuple[Stmt, ...] = tuple(
        Loop(LoopVar(f"{space.name}_", space), (way,))
        for space, way in zip(again, renamed, strict=True)
    )
    for name, space in reversed(names.around.values()):
        body = (Loop(LoopVar(name, space), body),)
    dtype = made[0].dtype
    module = Module(
        name="alone",
        dtype=dtype,
        spaces=(*names.extents, *again, *names.joined.values()),
        tensors=tensors,
        buffers=tuple(_buffer(t, dtype) for t in tensors),
        kernels=(Kernel("product", ("one product in several ways",), (), body),),
        host_constant=(),
        host_volatile=(Launch("product"),),
    )
    ends = {fastest(place, buffer) for buffer, place in found.values()}
    kept = {v.space for v in names.variables.values() if v.name in ends}
    walked = [v.space for v in names.variables.values()]
    arrays = [[axis.space.bases for axis in b.axes] for b in made]
    flops = 8 if dtype == "complex128" else 2
    shorter = _shortened(names.extents, walked, flops, arrays, kept) | dict.fromkeys(again, 0)
    sizes = tuple((space.name, extent) for space, extent in shorter.items())
    return Alone(module, tuple(map(format_way, renamed)), sizes)


@dataclass(slots=True)
class _Names:
    """New variables and spaces for those of a product, numbered as they turn up.

    Attributes:
        given: planning extents of the module.
        extents: of the new base spaces.
        variables: of the band, by their old names.
        joined: axes of which a variable walks a part, by that part and the length of the whole.
        around: loops of one element for those that stood around the product, by their old names.
    """

    given: Mapping[str, int]
    extents: dict[Space, int] = field(default_factory=dict)
    variables: dict[str, BandVar] = field(default_factory=dict)
    joined: dict[tuple[Space, int], Space] = field(default_factory=dict)
    around: dict[str, tuple[str, Space]] = field(default_factory=dict)

    def add(self, var: BandVar) -> None:
        """A variable over all that it takes at a time; one below another has the other's space."""
        whole = extent_of(var.space, self.given)
        row = None if var.below is None else self.variables[var.below]
        space = row.space if row else self._space(min(var.tile or whole, whole))
        name = f"v{len(self.variables)}"
        self.variables[var.name] = BandVar(name, space, below=row.name if row else None)

    def band(self, group: tuple[BandVar, ...]) -> tuple[BandVar, ...]:
        """A group of the product in new names."""
        return tuple(self.variables[v.name] for v in group)

    def array(self, name: str, access: Access, buffer: Buffer) -> tuple[Buffer, Access]:
        """An argument that lies as a buffer does, and the place that an access means in it."""
        kept = [n for n, s in enumerate(access.subscripts) if s.variable is not None]
        order = [axis for axis in buffer.order if axis in kept]
        pairs = tuple(replace(p, first=kept.index(p.first)) for p in buffer.packed)
        axes, subscripts = [], []
        for axis in kept:
            variable, space = self._walk(access.subscripts[axis].variable or "")
            length = buffer.axes[axis].length
            if length is None:
                length = extent_of(buffer.axes[axis].space, self.given)
            if (
                axis != order[0] or buffer.packed
            ):  # the slowest axis may be short: it changes no stride
                space = self._axis(space, length)
            axes.append(Axis(space))
            subscripts.append(Subscript(variable))
        turned = tuple(kept.index(axis) for axis in order)
        made = Buffer(name, tuple(axes), turned, buffer.dtype, "caller", packed=pairs)
        return made, Access(name, tuple(subscripts))

    def _walk(self, name: str) -> tuple[str, Space]:
        """New name and space of a variable: of the band, or of a loop around it."""
        if name in self.variables:
            return self.variables[name].name, self.variables[name].space
        if name not in self.around:
            self.around[name] = (f"l{len(self.around)}", self._space(1))
        return self.around[name]

    def _axis(self, walked: Space, length: int) -> Space:
        """An axis of some length of which a variable walks the first elements."""
        extent = self.extents[walked]
        if extent == length:
            return walked
        key = (walked, length)
        if key not in self.joined:
            rest = self._space(length - extent)
            self.joined[key] = Space(f"j{len(self.joined)}", parts=(walked, rest))
        return self.joined[key]

    def _space(self, extent: int) -> Space:
        space = Space(f"s{len(self.extents)}")
        self.extents[space] = extent
        return space


def _tensor(buffer: Buffer, role: Role, *, accumulate: bool = False) -> Tensor:
    """The argument whose array is a buffer."""
    spaces = tuple(axis.space for axis in buffer.axes)
    storage = Storage(buffer.order, buffer.packed)
    return Tensor(buffer.name, spaces, role, storage=storage, accumulate=accumulate)


def _buffer(tensor: Tensor, dtype: str) -> Buffer:
    """The buffer that is an argument's array."""
    axes = tuple(Axis(space) for space in tensor.spaces)
    packed = tensor.storage.packed
    return Buffer(tensor.name, axes, tensor.stored_order, dtype, "caller", tensor, packed)


def _shortened(
    extents: Mapping[Space, int],
    walked: Sequence[Space],
    flops: int,
    arrays: Sequence[Sequence[tuple[Space, ...]]],
    kept: set[Space],
) -> dict[Space, int]:
    """Extents of which the longest are halved until the product is no longer too large.

    Args:
        extents: of the base spaces.
        walked: space of each variable.
        flops: of a multiply-add.
        arrays: base spaces of each axis of each array.
        kept: spaces with stride 1 somewhere, which are halved last: runs in memory stay as long.
    """
    short = dict(extents)

    def elements() -> int:
        return sum(prod(sum(short[s] for s in axis) for axis in axes) for axes in arrays)

    while True:
        if flops * prod(short[s] for s in walked) > _FLOPS:
            pool = list(walked)
        elif elements() > _ELEMENTS:
            pool = list(short)
        else:
            return short
        longest = max(pool, key=lambda s: (short[s] > 1, s not in kept, short[s]))
        if short[longest] == 1:
            return short
        short[longest] = _halved(short[longest])


def _halved(extent: int) -> int:
    """About half of an extent, which ends at the same place of a cache line.

    Example:
        >>> _halved(72), _halved(71), _halved(9), _halved(3)
        (32, 39, 4, 1)
    """
    half = extent // 2 // _LINE * _LINE + extent % _LINE
    return half if _LINE <= half < extent else extent // 2
