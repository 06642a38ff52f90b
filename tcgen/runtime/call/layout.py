"""What the extents and threads of a call settle: worked out once, for all calls that share them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from ...artifact.arena import Layout
from ...artifact.manifest import HostEntry, Manifest, TensorEntry
from ...artifact.sizes import array_bytes
from ..host_program import has_fetch
from ..memory.footprint import MemoryUse
from ..memory.usage import memory_use, packs


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """An array that a call returns.

    Attributes:
        tensor: its entry in the manifest.
        shape: in stored order.
        dtype: of its elements.
        bytes: that it takes.
    """

    tensor: TensorEntry
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """One phase of the host program, and where the entries of its table of addresses come from.

    Attributes:
        name: ``constant`` or ``volatile``.
        host: what runs.
        fetches: tiles of generated inputs are asked for.
        arena: layout of its arena.
        table: type of the table; entries that none of the following names stay null.
        callers: entries that are arrays of the caller: place in the table, name of the tensor.
        kept: entries in the arena that outlives the phases: place in the table, offset in bytes.
        own: entries in the phase's arena, likewise.
    """

    name: str
    host: tuple[HostEntry, ...]
    fetches: bool
    arena: Layout
    table: type[ctypes.Array[ctypes.c_void_p]]
    callers: tuple[tuple[int, str], ...]
    kept: tuple[tuple[int, int], ...]
    own: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Everything about a call but its arrays.

    Attributes:
        manifest: of the program.
        extents: of the base spaces, in their order.
        threads: that the kernels use.
        use: layout of the arenas.
        outputs: arrays that are returned.
        phases: the constant one, the volatile one.
        extent_table: the extents as generated code takes them.
        stride_table: from one thread's own arrays to the next thread's, likewise, by kernel.
    """

    manifest: Manifest
    extents: Mapping[str, int]
    threads: int
    use: MemoryUse
    outputs: tuple[Output, ...]
    phases: tuple[Phase, Phase]
    extent_table: ctypes.Array[ctypes.c_int64]
    stride_table: ctypes.Array[ctypes.c_int64]


def settle(manifest: Manifest, values: tuple[int, ...], threads: int) -> Setting:
    """What calls at these extents share.

    Args:
        manifest: of the program.
        values: extents of the base spaces, in their order.
        threads: that the kernels use.
    """
    extents = MappingProxyType(dict(zip(manifest.bases, values, strict=True)))
    use = memory_use(manifest, extents, threads=threads)
    tensors = {t.name: t for t in manifest.tensors}
    outputs = tuple(
        Output(
            tensors[name],
            shape,
            np.dtype(tensors[name].dtype),
            array_bytes(tensors[name], manifest, extents),
        )
        for name, shape in use.shapes
    )
    return Setting(
        manifest,
        extents,
        threads,
        use,
        outputs,
        (
            _phase(manifest, "constant", manifest.host_constant, use.kept, use.phases[0]),
            _phase(manifest, "volatile", manifest.host_volatile, use.kept, use.phases[1]),
        ),
        (ctypes.c_int64 * len(values))(*values),
        (ctypes.c_int64 * len(use.strides))(*use.strides),
    )


def _phase(
    manifest: Manifest, name: str, host: tuple[HostEntry, ...], kept: Layout, arena: Layout
) -> Phase:
    """A phase whose table has the order of the generated code's: buffers, then packed blocks."""
    addressed = [b for b in manifest.buffers if b.place != "register"]
    names = [None if b.place == "caller" else b.name for b in addressed]
    names += [packs(k) for k in manifest.kernels if k.contractions]
    lasting, own = dict(kept.offsets), dict(arena.offsets)
    callers = [(n, b.tensor or b.name) for n, b in enumerate(addressed) if b.place == "caller"]
    return Phase(
        name,
        host,
        has_fetch(host),
        arena,
        ctypes.c_void_p * len(names),
        tuple(callers),
        tuple((n, lasting[b]) for n, b in enumerate(names) if b in lasting and b not in own),
        tuple((n, own[b]) for n, b in enumerate(names) if b in own),
    )
