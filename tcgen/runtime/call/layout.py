"""The memory layout of calls at some extents and threads, resolved once for all such calls."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from ...artifact.manifest import Manifest, array_bytes
from ...records.arena import Layout
from ...records.loops import Buffer, Host, Launch, stored_shape
from ...records.tensors import Tensor, element_type
from ..host_program import on_host
from ..memory import MemoryUse, memory_use, packs
from ..parts import Part

_UNKNOWN = -1  # stands in the table for an extent that the constant phase does not read


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """An array that a call returns; its shape is in stored order."""

    tensor: Tensor
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class ArenaArray:
    """A buffer in an arena, or in the one that outlives the phases if ``lasting``.

    ``offset`` counts bytes; the shape is in stored order.
    """

    lasting: bool
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """One phase of the host program, and the sources of its table of addresses.

    Attributes:
        name: ``constant`` or ``volatile``.
        on_host: the runtime walks its loops, not a function of the source.
        offsets: offsets of its blocks in bytes.
        arrays: buffers that have memory in an arena in this phase.
        table: type of the table; entries that none of the following fills stay null.
        callers: entries that are arrays of the caller: place in the table, name of the tensor.
        lasting: entries in the arena that outlives the phases: place in the table, offset in bytes.
        own: entries in the phase's arena: place in the table, offset in bytes.
        whole: all parts of the phase; None where it is not divided.
        launches: kernels in their order, if the host program has nothing else; else ().
    """

    name: str
    host: tuple[Host, ...]
    on_host: bool
    arena: Layout
    offsets: Mapping[str, int]
    arrays: Mapping[str, ArenaArray]
    table: type[ctypes.Array[ctypes.c_void_p]]
    callers: tuple[tuple[int, str], ...]
    lasting: tuple[tuple[int, int], ...]
    own: tuple[tuple[int, int], ...]
    whole: Part | None
    launches: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CallLayout:
    """Everything about a call except its arrays.

    ``extents`` has the known ones of the base spaces, in their order; ``phases`` are the constant
    one and the volatile one. Generated C takes ``extent_table``, and ``stride_table``: bytes from
    one thread's private arrays to the next thread's, for each kernel.
    """

    manifest: Manifest
    buffers: Mapping[str, Buffer]
    extents: Mapping[str, int]
    threads: int
    use: MemoryUse
    outputs: tuple[Output, ...]
    phases: tuple[Phase, Phase]
    extent_table: ctypes.Array[ctypes.c_int64]
    stride_table: ctypes.Array[ctypes.c_int64]


def resolve_layout(manifest: Manifest, values: tuple[int | None, ...], threads: int) -> CallLayout:
    """The layout of calls at the extents ``values`` of the base spaces, in their order.

    If one is None, the layout is that of the constant phase only, which must not need the extent.
    """
    known = {b: n for b, n in zip(manifest.bases, values, strict=True) if n is not None}
    extents = MappingProxyType(known)
    constant_only = len(known) < len(values)
    use = memory_use(manifest, extents, threads=threads, constant_only=constant_only)
    tensors = {t.name: t for t in manifest.tensors}
    outputs = tuple(
        Output(
            tensors[name],
            shape,
            np.dtype(element_type(tensors[name], manifest.dtype)),
            array_bytes(tensors[name], manifest, extents),
        )
        for name, shape in use.shapes
    )
    return CallLayout(
        manifest,
        {b.name: b for b in manifest.buffers},
        extents,
        threads,
        use,
        outputs,
        (
            _phase(manifest, extents, "constant", use.lasting, use.phases[0]),
            _phase(manifest, extents, "volatile", use.lasting, use.phases[1]),
        ),
        (ctypes.c_int64 * len(values))(*(_UNKNOWN if n is None else n for n in values)),
        (ctypes.c_int64 * len(use.strides))(*use.strides),
    )


def _phase(
    manifest: Manifest, extents: Mapping[str, int], name: str, lasting: Layout, arena: Layout
) -> Phase:
    """A phase; its table has the order of generated code: buffers, then packed blocks."""
    addressed = [b for b in manifest.buffers if b.place != "register"]
    names = [None if b.place == "caller" else b.name for b in addressed]
    names += [packs(k) for k in manifest.kernels if k.contractions]
    before, own = dict(lasting.offsets), dict(arena.offsets)
    host = manifest.host_constant if name == "constant" else manifest.host_volatile
    arrays = {
        b.name: ArenaArray(
            b.name in before,
            before[b.name] if b.name in before else own[b.name],
            stored_shape(b, extents),
            np.dtype(b.dtype),
        )
        for b in manifest.buffers
        if b.name in before or b.name in own
    }
    callers = [(n, b.source) for n, b in enumerate(addressed) if b.place == "caller"]
    launches = [item.kernel for item in host if isinstance(item, Launch)]
    return Phase(
        name,
        host,
        on_host(manifest, host),
        arena,
        own,
        arrays,
        ctypes.c_void_p * len(names),
        tuple(callers),
        tuple((n, before[b]) for n, b in enumerate(names) if b in before and b not in own),
        tuple((n, own[b]) for n, b in enumerate(names) if b in own),
        Part(manifest.parts) if manifest.parts is not None and name == "volatile" else None,
        tuple(launches) if len(launches) == len(host) else (),
    )
