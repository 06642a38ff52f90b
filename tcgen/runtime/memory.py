"""What a program allocates at given extents: shapes, arenas, scratch, outputs. Units: bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..arena import Block, Layout, aligned, place
from ..artifact import BufferEntry, HostEntry, LaunchEntry, LoopEntry, Manifest, TensorEntry
from ..errors import MemoryLimitError

ITEM_BYTES = {"float64": 8, "float32": 4, "complex128": 16}
PHASES = ("constant", "volatile")


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of one call.

    Attributes:
        kept: arena of what the constant phase leaves for the volatile one.
        phases: arena of each phase.
        scratch: of each phase: private buffers of the kernel that needs most, for all threads.
        shapes: of the arrays that are returned, by output name, in stored order.
        outputs: bytes of these arrays.
    """

    kept: Layout
    phases: tuple[Layout, Layout]
    scratch: tuple[int, int]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: int

    @property
    def peak(self) -> int:
        """Most bytes that are allocated at one time, beyond the inputs."""
        phase = max(a.total + s for a, s in zip(self.phases, self.scratch, strict=True))
        return self.kept.total + self.outputs + phase


def stored_shape(
    entry: TensorEntry | BufferEntry, manifest: Manifest, extents: Mapping[str, int]
) -> tuple[int, ...]:
    """Shape of the array in memory: stored order, a packed pair is one axis."""
    shape = []
    lengths = entry.lengths if isinstance(entry, BufferEntry) else (None,) * len(entry.spaces)
    for axis, pair in entry.stored():
        length = lengths[axis]
        n = manifest.extent(entry.spaces[axis], extents) if length is None else length
        if pair is not None:
            n = n * (n - 1) // 2 if pair.antisymmetric else n * (n + 1) // 2
        shape.append(n)
    return tuple(shape)


def array_bytes(
    entry: TensorEntry | BufferEntry, manifest: Manifest, extents: Mapping[str, int]
) -> int:
    """Bytes of a tensor's array or of a buffer."""
    count = ITEM_BYTES[entry.dtype]
    for n in stored_shape(entry, manifest, extents):
        count *= n
    return count


def launches(host: tuple[HostEntry, ...]) -> tuple[str, ...]:
    """Kernels in the order of the host program's text."""
    names: list[str] = []
    for item in host:
        if isinstance(item, LoopEntry):
            names += launches(item.body)
        elif isinstance(item, LaunchEntry):
            names.append(item.kernel)
    return tuple(names)


def memory_use(manifest: Manifest, extents: Mapping[str, int], *, threads: int) -> MemoryUse:
    """Bytes of a call at extents of the base spaces."""
    arena = [b for b in manifest.buffers if b.place == "arena"]
    last = len(launches(manifest.host_constant)) - 1  # of the constant phase

    def layout(buffers: list[BufferEntry], *, together: bool = False) -> Layout:
        blocks = (
            Block(b.name, array_bytes(b, manifest, extents), *((0, 0) if together else b.live))
            for b in buffers
        )
        return place(tuple(blocks))

    hosts = (manifest.host_constant, manifest.host_volatile)
    return MemoryUse(
        kept=layout([b for b in arena if b.keep], together=True),
        phases=(
            layout([b for b in arena if not b.keep and b.live[0] <= last]),
            layout([b for b in arena if not b.keep and b.live[0] > last]),
        ),
        scratch=(
            _scratch(manifest, extents, launches(hosts[0]), threads),
            _scratch(manifest, extents, launches(hosts[1]), threads),
        ),
        shapes=tuple(
            (t.name, stored_shape(t, manifest, extents))
            for t in manifest.tensors
            if t.role == "output"
        ),
        outputs=sum(
            array_bytes(t, manifest, extents) for t in manifest.tensors if t.role == "output"
        ),
    )


def _scratch(
    manifest: Manifest, extents: Mapping[str, int], names: tuple[str, ...], threads: int
) -> int:
    """Scratch of the kernel that needs most: the same sums as in the generated code."""
    buffers = {b.name: b for b in manifest.buffers}

    def total(group: tuple[str, ...]) -> int:
        return sum(aligned(array_bytes(buffers[n], manifest, extents)) for n in group)

    return max(
        (
            total(k.shared) + threads * (total(k.private) + 64 * k.reduces)
            for k in manifest.kernels
            if k.name in names
        ),
        default=0,
    )


def check_limit(
    manifest: Manifest, extents: Mapping[str, int], use: MemoryUse, bound: int = 0
) -> None:
    """Refuse a call that needs more than the program's limit.

    Args:
        manifest: of the program.
        extents: of all base spaces.
        use: what the call allocates at these extents.
        bound: bytes of results that a bound program keeps beside it.

    Raises:
        MemoryLimitError: with the bytes and the largest arrays.
    """
    limit, needed = manifest.memory_limit, use.peak + bound
    if limit is None or needed <= limit:
        return
    arrays = [
        (array_bytes(b, manifest, extents), b.name)
        for b in manifest.buffers
        if b.place in ("arena", "private")
    ]
    arrays += [
        (array_bytes(t, manifest, extents), t.name) for t in manifest.tensors if t.role == "output"
    ]
    largest = sorted(arrays, key=lambda a: -a[0])[:4]
    shown = ", ".join(f"{name} {count:,}" for count, name in largest)
    here = ", ".join(f"{name}={extents[name]}" for name in manifest.bases)
    raise MemoryLimitError(
        f"{manifest.name} needs {needed:,} bytes at {here}, but the memory limit is {limit:,} "
        f"bytes; its largest arrays are {shown}: raise memory_limit, or compile with another "
        f"objective for these extents"
    )
