"""A module as plain data for the runtime: level 4 in, manifest out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from .._version import __version__
from ..artifact.manifest import ContractionEntry, KernelEntry, Manifest
from ..ir.loop_analysis import Positions, positions, statements
from ..ir.loops import Assign, Gemm, Kernel, Module
from ..ir.tensor import Space
from ..thresholds.time_model import Machine
from .parts import statement_entries, touch_entries
from .printing import symbol
from .scope import C_RESERVED, Scope, contractions, make_scope, private_buffers


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
        tensors=module.tensors,
        buffers=module.buffers,
        kernels=tuple(_kernel(k, module, where) for k in module.kernels),
        host_constant=module.host_constant,
        host_volatile=module.host_volatile,
        constant_positions=where.constant,
        tight=module.tight,
        parts=module.parts,
        touches=touch_entries(module),
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


def _spaces(module: Module) -> tuple[Space, ...]:
    """Spaces of the module, each after those that it joins."""
    spaces: dict[Space, None] = {}

    def visit(space: Space) -> None:
        for part in space.parts:
            visit(part)
        spaces.setdefault(space)

    for space in module.spaces:
        visit(space)
    return tuple(spaces)


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
    from .cuda.kernels import library_product  # noqa: PLC0415

    found = library_product(scope.kernel)
    if found is None:
        return {"grid": make_grid(scope)}
    product, library = found
    return {"product": product, "library": library.name}


def _contraction(stmt: Gemm, scope: Scope) -> ContractionEntry:
    groups = tuple(tuple((v.space.name, v.tile) for v in g) for g in (stmt.m, stmt.n, stmt.k))
    assert stmt.scheme is not None, "a product of the BLAS packs in memory of its own"
    return scope.buffers[stmt.out.buffer].dtype, groups, stmt.scheme.stages_rows
