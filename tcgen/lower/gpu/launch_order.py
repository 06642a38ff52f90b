"""Launches of a GPU in an order in which they can be joined.

Before: one launch for each statement, in the order of the plan. After: launches that
:mod:`gpu_join` makes one stand together. A launch changes places with another one only if neither
writes what the other one uses; two that only add to an array may always, since sums have no order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ...ir.loop_analysis import used_buffers, written_buffers
from ...ir.loops import Assign, Buffer, Fetch, Host, HostLoop, Kernel, Launch, Loop, Stmt
from .fuse_launches import inlined, joined, terms_of, with_epilogue
from .rename import accesses_of

Join = Callable[[Kernel, Kernel], Kernel | None]


@dataclass(frozen=True, slots=True)
class _Uses:
    """What a piece of a host program does to memory."""

    reads: frozenset[str]
    writes: frozenset[str]
    adds: frozenset[str]  # only adds to: neither reads otherwise nor overwrites

    def meets(self, other: _Uses) -> bool:
        """True where the order of the two matters."""
        return bool(
            self.writes & (other.reads | other.writes | other.adds)
            or other.writes & (self.reads | self.adds)
            or self.adds & other.reads
            or other.adds & self.reads
        )


@dataclass(slots=True)
class Joiner:
    """Joins the launches of a host program.

    Attributes:
        kernels: by name; those that are joined to another one leave.
        buffers: by name.
        extents: planning extents.
        passing: arena arrays that do not outlive a call: one that a launch writes and only one
            other launch reads need not be stored where its values can be put in their place.
        moving: a launch may change places with others; else only neighbours are joined.
        parts: for each joined kernel the kernels that it was made of, in their first order.
    """

    kernels: dict[str, Kernel]
    buffers: Mapping[str, Buffer]
    extents: Mapping[str, int]
    passing: frozenset[str]
    moving: bool = True
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def all(self, host: tuple[Host, ...]) -> tuple[Host, ...]:
        """The host program with everything joined that may be."""
        for join in (self._same_target, self._epilogue, self._inlined):
            host = self._pass(host, join)
        return host

    def _same_target(self, one: Kernel, two: Kernel) -> Kernel | None:
        return joined(one, two, self.buffers, self.extents)

    def _epilogue(self, one: Kernel, two: Kernel) -> Kernel | None:
        return with_epilogue(one, two, self.buffers, self.extents)

    def _inlined(self, one: Kernel, two: Kernel) -> Kernel | None:
        first = one.body[0]
        if not isinstance(first, Assign) or first.out.buffer not in self.passing or terms_of(two):
            return None
        name = first.out.buffer
        users = sum(any(name in used_buffers(s) for s in k.body) for k in self.kernels.values())
        return inlined(one, two, self.buffers) if users == 2 else None

    def _pass(self, host: tuple[Host, ...], join: Join) -> tuple[Host, ...]:
        result: list[Host] = []
        for item in host:
            if isinstance(item, HostLoop):
                result.append(replace(item, body=self._pass(item.body, join)))
            elif not (isinstance(item, Launch) and self._placed(result, item.kernel, join)):
                result.append(item)
        return tuple(result)

    def _placed(self, before: list[Host], name: str, join: Join) -> bool:
        """Join a launch with an earlier one, if there is one and the order between allows it."""
        two = self.kernels[name]
        if isinstance(two.body[0], Loop):
            return False
        between: list[_Uses] = []
        later = uses_of(Launch(name), self.kernels)
        for place in range(len(before) - 1, -1, -1):
            item = before[place]
            own = uses_of(item, self.kernels)
            shared = (own.writes | own.adds) & (later.reads | later.adds | later.writes)
            if isinstance(item, Launch) and shared:
                made = join(self.kernels[item.kernel], two)
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
    """What a host statement does to memory, with all that it encloses."""
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
        if isinstance(stmt, Assign) and stmt.accumulate:
            adds |= written
            reads_ |= set(_operands(stmt))
        elif isinstance(stmt, Loop):
            reads_ |= set(used_buffers(stmt))
            writes |= written
        else:
            writes |= written
            reads_ |= set(_operands(stmt))
    # What a kernel overwrites before it adds to it, or reads as well, is not only added to.
    return _Uses(
        frozenset(reads_), frozenset(writes | (adds & reads_)), frozenset(adds - writes - reads_)
    )


def _operands(stmt: Stmt) -> tuple[str, ...]:
    return tuple(a.buffer for a in accesses_of(stmt.expr)) if isinstance(stmt, Assign) else ()
