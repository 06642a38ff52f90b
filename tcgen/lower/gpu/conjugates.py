"""Arrays of complex conjugates that are never stored: their readers conjugate.

Before: ``x[i,a] = conj(t[i,a])`` as a launch, and ``r[i,j] += x[i,a] * w[a,j]``. After:
``r[i,j] += conj(t[i,a]) * w[a,j]``. The sign of an imaginary part costs a product nothing, and the
array x a pass over memory.

An array is read so if all of its readers can be: launches of assignments, on the way to the last of
which nobody writes the array that is conjugated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...ir.expr import Access, Call, Expr, accesses_of, factor_of, map_leaves, nodes
from ...ir.loop_analysis import used_buffers
from ...ir.loops import Assign, Host, HostLoop, Kernel, Launch, Module
from ...records.loops import launched
from ..names import renamed_access
from .fuse_launches import is_pointwise, united
from .launch_order import uses_of
from .liveness import with_lives


def with_conjugates(module: Module) -> Module:
    """The module without the arrays of conjugates that their readers can do without."""
    while True:
        found = (_folded(module, place) for place in _places(module))
        folded = next((m for m in found if m is not None), None)
        if folded is None:
            return module
        module = folded


@dataclass(frozen=True, slots=True)
class _Place:
    """A launch that conjugates ``source``, and the launches after it in the same body."""

    kernel: Kernel
    stmt: Assign
    source: Access
    later: tuple[Host, ...]


def _places(module: Module) -> Iterator[_Place]:
    kernels = {k.name: k for k in module.kernels}

    def walk(host: tuple[Host, ...]) -> Iterator[_Place]:
        for number, item in enumerate(host):
            if isinstance(item, HostLoop):
                yield from walk(item.body)
            elif isinstance(item, Launch):
                kernel = kernels[item.kernel]
                stmt = kernel.body[0]
                if len(kernel.body) > 1 or not isinstance(stmt, Assign) or stmt.accumulate:
                    continue
                factor = factor_of(stmt.expr)
                if factor is not None and factor.conjugated and is_pointwise(stmt):
                    yield _Place(kernel, stmt, factor.access, host[number + 1 :])

    yield from walk(module.host_constant)
    yield from walk(module.host_volatile)


def _folded(module: Module, place: _Place) -> Module | None:
    """The module without the array of conjugates; None if that is still read."""
    own, target = place.kernel, place.stmt.out.buffer
    held, source = module.buffer(target), module.buffer(place.source.buffer)
    if (
        held.place != "arena"
        or held.keep
        or source.place not in ("arena", "caller")
        or held.packed
        or source.packed
        or source.dtype != held.dtype
        or place.stmt.coeff != 1
    ):
        return None
    kernels = {k.name: k for k in module.kernels}
    users = [k.name for k in module.kernels if any(target in used_buffers(s) for s in k.body)]
    uses = [uses_of(item, kernels) for item in place.later]
    ends = [n for n, u in enumerate(uses) if target in u.reads | u.writes | u.adds]
    readers = [name for name in launched(place.later) if name in users]
    if not ends or len(readers) + 1 < len(users):
        return None
    if any({target, source.name} & (u.writes | u.adds) for u in uses[: ends[-1] + 1]):
        return None
    changed = {name: _reading(kernels[name], place) for name in readers}
    made = {name: kernel for name, kernel in changed.items() if kernel is not None}
    if len(made) < len(readers):
        return None
    life = (min(source.live[0], held.live[0]), max(source.live[1], held.live[1]))
    buffers = (replace(b, live=life) if b.name == source.name else b for b in module.buffers)
    both = replace(
        module,
        buffers=tuple(buffers),
        kernels=tuple(made.get(k.name, k) for k in module.kernels),
    )
    alone = replace(
        both,
        kernels=tuple(k for k in both.kernels if k.name != own.name),
        host_constant=_without(own.name, both.host_constant),
        host_volatile=_without(own.name, both.host_volatile),
    )
    return with_lives(both, alone, {readers[0]: (own.name, readers[0])})


def _reading(kernel: Kernel, place: _Place) -> Kernel | None:
    """A kernel that conjugates its reads of the array of conjugates; None if it cannot."""
    (stmt, *more) = kernel.body
    if more or not isinstance(stmt, Assign):
        return None
    values: dict[Expr, Expr] = {}
    for access in accesses_of(stmt.expr):
        if access.buffer == place.stmt.out.buffer:
            read = _element(place, access)
            if read is None or Call("conj", access) in nodes(stmt.expr):
                return None
            values[access] = Call("conj", read)
    expr = map_leaves(stmt.expr, lambda leaf: values.get(leaf, leaf))
    both = united(place.kernel, kernel, (replace(stmt, expr=expr),))
    return replace(both, name=kernel.name)


def _element(place: _Place, access: Access) -> Access | None:
    """The element whose conjugate stands where a reader looks; None if no variables name it."""
    names: dict[str, str] = {}
    own = {v.name for v in place.stmt.band}
    for made, read in zip(place.stmt.out.subscripts, access.subscripts, strict=True):
        if made.variable in own and read.variable is not None:
            if names.setdefault(made.variable, read.variable) != read.variable:
                return None
            made = replace(made, variable=read.variable)
        if made != read:
            return None
    return renamed_access(place.source, names)


def _without(name: str, host: tuple[Host, ...]) -> tuple[Host, ...]:
    """A host program without one launch."""
    return tuple(
        replace(item, body=_without(name, item.body)) if isinstance(item, HostLoop) else item
        for item in host
        if item != Launch(name)
    )
