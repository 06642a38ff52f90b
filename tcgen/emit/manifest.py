"""A module as plain data for the runtime: level 4 in, manifest out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, assert_never

from .._version import __version__
from ..artifact.manifest import (
    BufferEntry,
    ContractionEntry,
    FetchEntry,
    HostEntry,
    KernelEntry,
    LaunchEntry,
    LoopEntry,
    Manifest,
    PackingEntry,
    SpaceEntry,
    SymmetryEntry,
    TensorEntry,
)
from ..ir.loop_analysis import Positions, positions
from ..ir.loops import Assign, Buffer, Fetch, Gemm, Host, HostLoop, Kernel, Launch, Module
from ..ir.tensor import Packing, Space, Tensor, element_type
from ..thresholds.time_model import Machine
from .names import C_RESERVED
from .parts import parts_entry, statement_entries
from .printing import symbol
from .scope import Scope, contractions, make_scope, private_buffers, statements


def make_manifest(
    module: Module,
    *,
    target: str,
    planning_extents: tuple[tuple[str, int], ...],
    memory_limit: int | None,
    machine: Machine = Machine(),
) -> Manifest:
    """The manifest of a verified module; ``machine`` predicts the time of its parts."""
    where = positions(module)
    return Manifest(
        name=module.name,
        tcgen_version=__version__,
        target=target,
        dtype=module.dtype,
        memory_limit=memory_limit,
        planning_extents=planning_extents,
        spaces=_spaces(module),
        tensors=tuple(_tensor(t, module.dtype) for t in module.tensors),
        buffers=tuple(_buffer(b) for b in module.buffers),
        kernels=tuple(_kernel(k, module, where) for k in module.kernels),
        host_constant=_host(module.host_constant),
        host_volatile=_host(module.host_volatile),
        constant_positions=where.constant,
        tight=module.tight,
        parts=parts_entry(module),
        statements=statement_entries(module),
        machine=tuple(
            (constant.name, getattr(machine, constant.name)) for constant in fields(machine)
        ),
        tf32=any(
            isinstance(stmt, Assign) and stmt.tf32
            for kernel in module.kernels
            for stmt, _ in statements(kernel.body)
        ),
    )


def _spaces(module: Module) -> tuple[SpaceEntry, ...]:
    spaces: dict[Space, None] = {}

    def visit(space: Space) -> None:
        for part in space.parts:
            visit(part)
        spaces.setdefault(space)

    for space in module.spaces:
        visit(space)
    return tuple(SpaceEntry(s.name, s.extent, tuple(p.name for p in s.parts)) for s in spaces)


def _packed(pairs: tuple[Packing, ...]) -> tuple[PackingEntry, ...]:
    return tuple(PackingEntry(p.first, p.antisymmetric, p.count) for p in pairs)


def _tensor(tensor: Tensor, dtype: str) -> TensorEntry:
    return TensorEntry(
        name=tensor.name,
        role=tensor.role.value,
        spaces=tuple(s.name for s in tensor.spaces),
        order=tensor.stored_order,
        packed=_packed(tensor.storage.packed),
        gaps=_gaps(tensor),
        dtype=element_type(tensor, dtype),
        real=tensor.real,
        default=None if tensor.default is None else str(tensor.default),
        accumulate=tensor.accumulate,
        volatile=tensor.volatile,
        symmetry=tuple(SymmetryEntry(s.perm, s.sign, s.conj) for s in tensor.symmetry),
    )


def _gaps(tensor: Tensor) -> tuple[str | None, ...]:
    """Base space that follows a tensor's own part of each axis, or None."""
    if not tensor.storage.within:
        return ()
    pairs = zip(tensor.spaces, tensor.storage.within, strict=True)
    left = (whole.bases[len(own.bases) :] for own, whole in pairs)
    return tuple(bases[0].name if bases else None for bases in left)


def _buffer(buffer: Buffer) -> BufferEntry:
    return BufferEntry(
        name=buffer.name,
        spaces=tuple(a.space.name for a in buffer.axes),
        lengths=tuple(a.length for a in buffer.axes),
        order=buffer.order,
        dtype=buffer.dtype,
        place=buffer.place,
        tensor=None if buffer.tensor is None else buffer.tensor.source,
        packed=_packed(buffer.packed),
        live=buffer.live,
        keep=buffer.keep,
        rank=buffer.rank,
    )


def _kernel(kernel: Kernel, module: Module, where: Positions) -> KernelEntry:
    scope = make_scope(kernel, module, C_RESERVED)
    read, written, outside = scope.read(), scope.written(), scope.outside()
    first, end = where.kernels[kernel.name]
    return KernelEntry(
        name=kernel.name,
        symbol=symbol(kernel),
        host=tuple(v.name for v in kernel.host_vars),
        spaces=tuple(s.name for s in scope.extents),
        reads=tuple(n for n in outside if n in read),
        writes=tuple(n for n in outside if n in written),
        private=scope.owned() if kernel.mapping is None else private_buffers(scope),
        live=(first, end - 1),
        contractions=tuple(_contraction(s, scope) for s in contractions(kernel)),
        **_on_gpu(scope),
    )


def _on_gpu(scope: Scope) -> dict[str, Any]:
    """The grid of a kernel with a thread mapping, or its product; {} for a CPU."""
    if scope.kernel.mapping is None:
        return {}
    from .cuda.grid import make_grid  # noqa: PLC0415
    from .cuda.library import library_product, make_product  # noqa: PLC0415

    product = library_product(scope.kernel)
    return {"grid": make_grid(scope)} if product is None else {"product": make_product(*product)}


def _contraction(stmt: Gemm, scope: Scope) -> ContractionEntry:
    groups = tuple(tuple((v.space.name, v.tile) for v in g) for g in (stmt.m, stmt.n, stmt.k))
    assert stmt.scheme is not None, "a product of the BLAS packs in memory of its own"
    return scope.buffers[stmt.out.buffer].dtype, groups, stmt.scheme.stages_rows


def _host(items: tuple[Host, ...]) -> tuple[HostEntry, ...]:
    result: list[HostEntry] = []
    for item in items:
        match item:
            case HostLoop(var, body):
                entry = LoopEntry(
                    "loop", var.name, var.space.name, var.tile, var.below, _host(body)
                )
                result.append(entry)
            case Launch(kernel):
                result.append(LaunchEntry("launch", kernel))
            case Fetch(buffer, ranges):
                names = tuple(None if v is None else v.name for v in ranges)
                result.append(FetchEntry("fetch", buffer, names))
            case _:
                assert_never(item)
    return tuple(result)
