"""The grid of each kernel as plain data for the runtime, from its thread mapping."""

from __future__ import annotations

from typing import assert_never

from ...artifact.grid import GridEntry, StripEntry
from ...dtypes import BY_NAME, COMPLEX128, FLOAT64
from ...ir.chains import chains, is_strict
from ...ir.loop_analysis import parallel_chain, statements
from ...ir.loops import Assign, BandVar, Kernel, Loop, Zero
from ...ir.thread_mapping import Library, Nest, Points, Strip, Sums, ThreadNest, Tiles, Transpose
from ..scope import Scope
from .expressions import free_and_summed
from .kernels import assigns, finish_symbol, threads, totals
from .nest import nest_shared_bytes
from .tile_epilogue import PART
from .tiles import tiles_shared_bytes

# Most blocks of element-wise kernels; each takes further points in turn.
_MOST_BLOCKS = 1 << 20


def make_grid(scope: Scope) -> GridEntry:
    """The grid of a kernel that has a thread mapping."""
    kernel, mapping = scope.kernel, scope.kernel.mapping
    finish = finish_symbol(kernel)
    return GridEntry(
        arguments=scope.outside(),
        strips=_strips(scope),
        splits=mapping.splits if isinstance(mapping, Sums | Tiles) else 1,
        most=_most_blocks(kernel),
        threads=threads(kernel),
        finish=finish,
        once=bool(totals(kernel)),
        part_bytes=_part_bytes(scope) if finish else 0,
        shared_bytes=_shared_bytes(scope),
        ranges=_ranges(scope),
        copies=mapping.summed if isinstance(mapping, Nest) else (),
    )


def _most_blocks(kernel: Kernel) -> int | None:
    """Upper bound of the blocks, which then take further points in turn; or None."""
    match kernel.mapping:
        case Points() | ThreadNest():
            return _MOST_BLOCKS
        case Nest(blocks=most):
            return most
        case _:
            return None


def _shared_bytes(scope: Scope) -> int:
    """Bytes of the tiles of operands in dynamic shared memory."""
    match scope.kernel.mapping:
        case Tiles() as mapping:
            return tiles_shared_bytes(assigns(scope.kernel), mapping, scope)
        case Nest() as mapping:
            return nest_shared_bytes(mapping, scope)
        case _:
            return 0


def _part_bytes(scope: Scope) -> int:
    """Bytes of the partial sums that a block leaves for the second pass."""
    kernel, mapping = scope.kernel, scope.kernel.mapping
    if isinstance(mapping, Nest):
        return 0
    dtypes = {buffer.dtype for buffer in scope.buffers.values()}
    if not isinstance(mapping, Tiles):
        return (COMPLEX128 if COMPLEX128.name in dtypes else FLOAT64).itemsize
    item = BY_NAME[scope.buffers[assigns(kernel)[0].out.buffer].dtype].itemsize
    return totals(kernel) * PART or mapping.tile_m * mapping.tile_n * item


def _strips(scope: Scope) -> tuple[StripEntry, ...]:
    """The strips; each combination of their tiles has a block."""
    kernel, mapping = scope.kernel, scope.kernel.mapping
    stmt = kernel.body[0]
    match mapping:
        case Points():
            if isinstance(stmt, Zero):
                axes = scope.buffers[stmt.buffer].axes
                lengths = tuple((a.space.name, a.length, None) for a in axes)
                return (StripEntry(lengths, mapping.threads * mapping.lanes),)
            return (_strip(_free(stmt), mapping.threads * mapping.lanes),)
        case Sums():
            return (_strip(_free(stmt), 1),)
        case Tiles():
            band = {v.name: v for s in assigns(kernel) for v in s.band}
            strips = (*mapping.n, *mapping.m, Strip(mapping.batch, 1))
            return tuple(_strip(tuple(band[n] for n in s.variables), s.tile) for s in strips)
        case Transpose():
            free = {v.name: v for v in _free(stmt)}
            column, row = free.pop(mapping.column), free.pop(mapping.row)
            tiles = (_strip((v,), mapping.tile) for v in (column, row))
            return (*tiles, _strip(tuple(free.values()), 1))
        case ThreadNest():
            assert isinstance(stmt, Loop), "the verifier admits only loops"
            spaces = (loop.var.space.name for loop in parallel_chain(stmt))
            return (StripEntry(tuple((name, None, None) for name in spaces), mapping.threads),)
        case Nest():
            # A strip for each parallel loop, whose points are tiles of a tile loop.
            loops = parallel_chain(stmt) if isinstance(stmt, Loop) and len(kernel.body) == 1 else ()
            return tuple(
                StripEntry(((v.space.name, None, None),), v.tile or 1)
                for v in (loop.var for loop in loops)
            )
        case None | Library():
            raise AssertionError(f"kernel {kernel.name} is not launched on a grid")
        case _:
            assert_never(mapping)


def _ranges(scope: Scope) -> tuple[tuple[tuple[str, int | None], ...], ...]:
    """Elements of the arrays; points of each target, of each sum and of the loops around them.

    Packed axes count as whole ones: a place in them is at most half of the product.
    """
    found = {tuple((a.space.name, a.length) for a in b.axes): None for b in scope.buffers.values()}
    for stmt, around in statements(scope.kernel.body):
        counted: list[tuple[Loop | BandVar, ...]] = [around]
        if isinstance(stmt, Assign):
            counted += free_and_summed(stmt)
        for variables in counted:
            found[tuple(_length(v) for v in variables)] = None
    return tuple(found)


def _length(counted: Loop | BandVar) -> tuple[str, int | None]:
    if isinstance(counted, Loop):
        return counted.var.space.name, None
    return counted.space.name, counted.tile if counted.base is not None else None


def _free(stmt: object) -> tuple[BandVar, ...]:
    assert isinstance(stmt, Assign)
    return free_and_summed(stmt)[0]


def _strip(variables: tuple[BandVar, ...], tile: int) -> StripEntry:
    found = chains(variables)
    single = tuple((v.space.name, v.tile, v.base) for v, *others in found if not others)
    several = tuple((c[0].space.name, len(c), is_strict(c[-1])) for c in found if len(c) > 1)
    return StripEntry(single, tile, several)
