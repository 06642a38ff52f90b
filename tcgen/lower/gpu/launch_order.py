"""The order of the launches of a GPU, in which launches can be fused.

Before: one launch for each statement, in the order of the plan. After: launches that
:mod:`~tcgen.lower.gpu.fuse_launches` can fuse are one launch. Two launches may be reordered if
neither writes an array that the other uses; two that only add to an array always may, since the
order of a sum does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ...ir.loop_analysis import operands_of, used_buffers, written_buffers
from ...ir.loops import Assign, Fetch, Host, HostLoop, Kernel, Launch, Loop, Zero
from ...ir.reduction import Reduction
from ..layout import GpuContext
from .fuse_launches import inlined, terms_of, with_addition, with_epilogue

Fuse = Callable[[Kernel, Kernel, GpuContext], Kernel | None]


@dataclass(frozen=True, slots=True)
class _Uses:
    """Arrays that a piece of a host program reads, writes, or only adds to."""

    reads: frozenset[str]
    writes: frozenset[str]
    adds: frozenset[str]  # neither read otherwise nor overwritten

    def meets(self, other: _Uses) -> bool:
        """True if the order of the two matters."""
        return bool(
            self.writes & (other.reads | other.writes | other.adds)
            or other.writes & (self.reads | self.adds)
            or self.adds & other.reads
            or other.adds & self.reads
        )


@dataclass(slots=True)
class LaunchFuser:
    """Fuses the launches of a host program.

    Attributes:
        kernels: kernels by name; a kernel that is fused into another one is removed.
        inlinable: arena arrays that do not outlive a call: if one launch writes such an array and
            only one other launch reads it, its values may be computed where they are read.
        moving: launches may be reordered; else only neighbours are fused.
        parts: original kernels of each fused kernel, in their first order.
    """

    kernels: dict[str, Kernel]
    context: GpuContext
    inlinable: frozenset[str]
    moving: bool = True
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def all(self, host: tuple[Host, ...]) -> tuple[Host, ...]:
        """The host program with all launches fused that can be."""
        for fuse in (with_addition, with_epilogue, self._inlined):
            host = self._pass(host, fuse)
        return host

    def _inlined(self, one: Kernel, two: Kernel, context: GpuContext) -> Kernel | None:
        first = one.body[0]
        if not isinstance(first, Assign) or first.out.buffer not in self.inlinable or terms_of(two):
            return None
        name = first.out.buffer
        users = sum(any(name in used_buffers(s) for s in k.body) for k in self.kernels.values())
        return inlined(one, two, context) if users == 2 else None

    def _pass(self, host: tuple[Host, ...], fuse: Fuse) -> tuple[Host, ...]:
        result: list[Host] = []
        for item in host:
            if isinstance(item, HostLoop):
                result.append(replace(item, body=self._pass(item.body, fuse)))
            elif not (isinstance(item, Launch) and self._fused(result, item.kernel, fuse)):
                result.append(item)
        return tuple(result)

    def _fused(self, before: list[Host], name: str, fuse: Fuse) -> bool:
        """Fuse a launch into an earlier one, if there is one and launches between them allow it."""
        two = self.kernels[name]
        if isinstance(two.body[0], Loop):
            return False
        between: list[_Uses] = []
        later = uses_of(Launch(name), self.kernels)
        for place in range(len(before) - 1, -1, -1):
            item = before[place]
            own = uses_of(item, self.kernels)
            common = (own.writes | own.adds) & (later.reads | later.adds | later.writes)
            if isinstance(item, Launch) and common:
                made = fuse(self.kernels[item.kernel], two, self.context)
                up = not any(later.meets(u) for u in between)
                if made is not None and (up or not any(own.meets(u) for u in between)):
                    self._replace(item.kernel, name, made)
                    if not up:
                        before.append(before.pop(place))
                    return True
            if not self.moving:
                return False
            between.append(own)
        return False

    def _replace(self, one: str, two: str, made: Kernel) -> None:
        self.kernels[one] = made
        del self.kernels[two]
        self.parts[one] = (*self.parts.get(one, (one,)), *self.parts.pop(two, (two,)))


def uses_of(item: Host, kernels: Mapping[str, Kernel]) -> _Uses:
    """Arrays that a host statement uses, with all statements inside it."""
    if isinstance(item, Fetch):
        return _Uses(frozenset(), frozenset((item.buffer,)), frozenset())
    if isinstance(item, HostLoop):
        inner = [uses_of(i, kernels) for i in item.body]
        reads = frozenset().union(*(u.reads | u.adds for u in inner))
        return _Uses(reads, frozenset().union(*(u.writes | u.adds for u in inner)), frozenset())
    reads_: set[str] = set()
    writes: set[str] = set()
    adds: set[str] = set()
    for stmt in kernels[item.kernel].body:
        written = set(written_buffers(stmt))
        if isinstance(stmt, Loop):
            reads_ |= set(used_buffers(stmt))
            writes |= written
            continue
        reads_ |= {x.buffer for x in operands_of(stmt)}
        adding = not isinstance(stmt, Zero) and stmt.accumulate
        other = isinstance(stmt, Assign) and stmt.reduction is not Reduction.SUM
        if adding and not other:
            adds |= written
        else:
            writes |= written
            reads_ |= written if adding else set()
    # An array that a kernel also overwrites or reads is not only added to.
    return _Uses(
        frozenset(reads_), frozenset(writes | (adds & reads_)), frozenset(adds - writes - reads_)
    )
