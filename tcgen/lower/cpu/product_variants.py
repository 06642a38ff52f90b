"""The variants of one matrix product, and a program that measures them.

The variants are a call of the BLAS and the packing schemes of the kernel. All compute the same
target from the same operands in place; nothing is copied. ``kernel_scheme`` predicts the fastest
one, and ``tcgen.compiler.timings`` measures it.

Before: ``for x by 8: contract r[i,x,a] += v[i,x,c] * t[c,a]   packs t``, with r a tile of 8 x.
After: ``for n0: contract target[v0,v1,v2] += left[v0,v1,v3] * right[v3,v2]   packs right``, then
``for n1: ...`` by another variant, on arrays that are arguments. The variable of the tile has
extent 8, and ``left`` keeps its strides. No name of the module is used, so that equal products of
two programs are equal modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from ...dtypes import FLOAT64
from ...hardware import CACHE_LINE_BYTES
from ...ir.expr import Access, Prod, Subscript
from ...ir.loop_analysis import band_of
from ...ir.loops import (
    Axis,
    BandVar,
    Buffer,
    Gemm,
    Kernel,
    Launch,
    Loop,
    LoopVar,
    Module,
    PackingScheme,
    Stmt,
)
from ...ir.pretty.loops import format_variant
from ...ir.tensor import Role, Space, Storage, Tensor
from ..buffers import callers_buffer
from ..layout import CpuContext, GpuContext
from ..products import as_product
from ..statements import Statement
from .kernel_scheme import arranged, exchanged, packed_contraction


def variants_of(product: Gemm, context: CpuContext) -> tuple[Gemm, ...]:
    """Every variant of a product, each once, the given one first."""
    statement = Statement(
        out=product.out,
        expr=Prod((product.a, product.b)),
        factors=(product.a, product.b),
        band=band_of(product),
        coeff=product.coeff,
        accumulate=product.accumulate,
        orbit=(),
        home=None,
        position=0,
    )
    plain = packed_contraction(statement, context)
    if plain is None:
        # Only the BLAS can compute it.
        return (product,)
    schemes = [(plain, s) for s in _staged(plain, context)]
    schemes += [(p, s) for p in (plain, exchanged(plain)) for s in _packing(p, context)]
    variants = [arranged(p, s, context) for p, s in schemes]
    whole = as_product(statement, context)
    if whole is not None and not (whole.copy_a or whole.copy_b or whole.copy_out):
        batch, m, n, k = whole.batch, whole.m, whole.n, whole.k
        variants.append(replace(product, batch=batch, m=m, n=n, k=k, scheme=None))
    complete = (
        replace(variant, parallel=product.parallel, step=product.step) for variant in variants
    )
    return tuple(dict.fromkeys((product, *complete)))


def _packing(plain: Gemm, context: CpuContext) -> Iterator[PackingScheme]:
    """Schemes without staging; complex operands are packed, and A unless m ends on its lanes."""
    yield PackingScheme()
    if context.buffer(plain.out).dtype == "complex128":
        return
    yield PackingScheme(pack_b=False)
    if context.fastest(plain.a) == plain.m[-1].name:
        yield PackingScheme(pack_a=False)


def _staged(plain: Gemm, context: CpuContext) -> Iterator[PackingScheme]:
    """Schemes with staged tiles: real elements, and a k that a tile takes at once."""
    is_complex = context.buffer(plain.out).dtype == "complex128"
    if is_complex or context.elements(plain.k) > context.thresholds.staged_k:
        return
    yield PackingScheme(pack_b=False, stage=True)
    lanes = context.fastest(plain.a)
    if lanes in [v.name for v in plain.m[:-1]]:
        yield PackingScheme(pack_a=False, stage=True)


_LINE_ELEMENTS = CACHE_LINE_BYTES // FLOAT64.itemsize


@dataclass(frozen=True, slots=True)
class ProductBenchmark:
    """Variants of one product, as one program.

    Attributes:
        module: takes ``left``, ``right``, ``target`` and, for each variant, a vector ``times0``,
            ``times1`` and so on, whose elements are not read: for each of them that variant
            computes the product once.
        extents: extents of the plan by base space; the longest ones are shorter if the product
            would take too many flops or elements. Those of ``times0`` and so on are 0.
    """

    module: Module
    variants: tuple[str, ...]
    extents: tuple[tuple[str, int], ...]
    target: str = "cpu"


def product_benchmark(
    variants: Sequence[Gemm], context: CpuContext | GpuContext
) -> ProductBenchmark:
    """The program of variants of one product: one target, two operands, the same variables."""
    product = variants[0]
    names = _Names(context.extents)
    for var in band_of(product):
        names.add(var)
    roles = (("target", product.out), ("left", product.a), ("right", product.b))
    arguments = {x: names.array(name, x, context.buffer(x)) for name, x in roles}
    arrays = [buffer for buffer, _ in arguments.values()]
    repeats = [Space(f"n{number}") for number in range(len(variants))]
    tensors = (
        *(_tensor(b, Role.INPUT) for b in arrays[1:]),
        *(Tensor(f"times{n}", (space,), Role.INPUT) for n, space in enumerate(repeats)),
        _tensor(arrays[0], Role.OUTPUT, accumulate=product.accumulate),
    )
    renamed = [
        replace(
            variant,
            out=arguments[variant.out][1],
            a=arguments[variant.a][1],
            b=arguments[variant.b][1],
            batch=names.band(variant.batch),
            m=names.band(variant.m),
            n=names.band(variant.n),
            k=names.band(variant.k),
        )
        for variant in variants
    ]
    body: tuple[Stmt, ...] = tuple(
        Loop(LoopVar(f"{space.name}_", space), (variant,))
        for space, variant in zip(repeats, renamed, strict=True)
    )
    for name, space in reversed(names.around.values()):
        body = (Loop(LoopVar(name, space), body),)
    dtype = arrays[0].dtype
    module = Module(
        name="alone",
        dtype=dtype,
        spaces=(*names.extents, *repeats, *names.joined.values()),
        tensors=tensors,
        buffers=tuple(callers_buffer(t, dtype) for t in tensors),
        kernels=(Kernel("product", ("variants of one product",), (), body),),
        host_constant=(),
        host_volatile=(Launch("product"),),
    )
    held = context.with_buffers({b.name: b for b in arrays})
    inner = {held.unit_stride(place) for _, place in arguments.values()}
    short = _shortened(
        names.extents,
        [v.space for v in names.variables.values()],
        8 if dtype == "complex128" else 2,
        [[axis.space.bases for axis in b.axes] for b in arrays],
        {v.space for v in names.variables.values() if v.name in inner},
        context,
    )
    sizes = tuple((s.name, extent) for s, extent in (short | dict.fromkeys(repeats, 0)).items())
    return ProductBenchmark(module, tuple(map(format_variant, renamed)), sizes)


@dataclass(slots=True)
class _Names:
    """New variables and spaces for those of a product, numbered in order of appearance.

    Attributes:
        given: planning extents of the module.
        extents: extents of the new base spaces.
        variables: variables of the band by their old names.
        joined: axes with a variable that walks a part, by that part and the length of the whole.
        around: loops of one element for the loops around the product, by their old names.
    """

    given: Mapping[str, int]
    extents: dict[Space, int] = field(default_factory=dict)
    variables: dict[str, BandVar] = field(default_factory=dict)
    joined: dict[tuple[Space, int], Space] = field(default_factory=dict)
    around: dict[str, tuple[str, Space]] = field(default_factory=dict)

    def add(self, var: BandVar) -> None:
        """Add a variable over one tile; the columns of a triangle have the space of its rows."""
        whole = var.space.extent_in(self.given)
        row = None if var.below is None else self.variables[var.below]
        space = row.space if row else self._space(min(var.tile or whole, whole))
        name = f"v{len(self.variables)}"
        self.variables[var.name] = BandVar(
            name, space, below=row.name if row else None, strict=var.strict
        )

    def band(self, group: tuple[BandVar, ...]) -> tuple[BandVar, ...]:
        """A group of the product in new names."""
        return tuple(self.variables[v.name] for v in group)

    def array(self, name: str, access: Access, buffer: Buffer) -> tuple[Buffer, Access]:
        """An argument with the strides of a buffer, and the access to it."""
        used = [n for n, s in enumerate(access.subscripts) if s.variable is not None]
        order = [axis for axis in buffer.order if axis in used]
        pairs = tuple(replace(p, first=used.index(p.first)) for p in buffer.packed)
        axes, subscripts = [], []
        for axis in used:
            variable, space = self._walk(access.subscripts[axis].variable or "")
            length = buffer.axes[axis].length
            if length is None:
                length = buffer.axes[axis].space.extent_in(self.given)
            # The slowest axis may be shorter than that of the buffer: it changes no stride.
            if axis != order[0] or buffer.packed:
                space = self._axis(space, length)
            axes.append(Axis(space))
            subscripts.append(Subscript(variable))
        physical = tuple(used.index(axis) for axis in order)
        argument = Buffer(name, tuple(axes), physical, buffer.dtype, "caller", packed=pairs)
        return argument, Access(name, tuple(subscripts))

    def _walk(self, name: str) -> tuple[str, Space]:
        """New name and space of a variable: of the band, or of a loop around it."""
        if name in self.variables:
            return self.variables[name].name, self.variables[name].space
        if name not in self.around:
            self.around[name] = (f"l{len(self.around)}", self._space(1))
        return self.around[name]

    def _axis(self, walked: Space, length: int) -> Space:
        """An axis of some length, whose first elements a variable walks."""
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
    """The argument that a buffer holds."""
    spaces = tuple(axis.space for axis in buffer.axes)
    storage = Storage(buffer.order, buffer.packed)
    return Tensor(buffer.name, spaces, role, storage=storage, accumulate=accumulate)


def _shortened(
    extents: Mapping[Space, int],
    walked: Sequence[Space],
    flops: int,
    arrays: Sequence[Sequence[tuple[Space, ...]]],
    inner: set[Space],
    context: CpuContext | GpuContext,
) -> dict[Space, int]:
    """Extents by base space, the longest halved until the product is small enough.

    ``walked`` has the space of each variable, ``arrays`` the base spaces of each array's axes.
    Spaces of unit-stride axes, ``inner``, are halved last to keep long runs in memory. A
    multiply-add takes ``flops``.
    """
    short = dict(extents)

    def elements() -> int:
        return sum(prod(sum(short[s] for s in axis) for axis in axes) for axes in arrays)

    while True:
        if flops * prod(short[s] for s in walked) > context.thresholds.benchmark_flops:
            pool = list(walked)
        elif elements() > context.thresholds.benchmark_elements:
            pool = list(short)
        else:
            return short
        longest = max(pool, key=lambda s: (short[s] > 1, s not in inner, short[s]))
        if short[longest] == 1:
            return short
        short[longest] = _halved(short[longest])


def _halved(extent: int) -> int:
    """About half of an extent, with the same remainder of a cache line.

    Example:
        >>> _halved(72), _halved(71), _halved(9), _halved(3)
        (32, 39, 4, 1)
    """
    half = extent // 2 // _LINE_ELEMENTS * _LINE_ELEMENTS + extent % _LINE_ELEMENTS
    return half if _LINE_ELEMENTS <= half < extent else extent // 2
