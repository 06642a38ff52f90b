"""Neighbouring products that add to the same elements, joined in one kernel.

Before: launches of ``r = x*y`` and ``r += u*v`` with the same rows and columns. After: one launch
of both, so that r is touched once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir.expr import Access, Prod, Subscript
from ..ir.loops import Assign, BandVar, Buffer, Host, HostLoop, Kernel, Launch
from .gpu_tiles import Groups, groups_of, tiles_for
from .names import unique


def joined_terms(
    host: tuple[Host, ...],
    made: dict[str, Kernel],
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
) -> tuple[Host, ...]:
    """The host program with such launches joined; ``made`` loses what is joined to another."""
    result: list[Host] = []
    for item in host:
        if isinstance(item, HostLoop):
            result.append(replace(item, body=joined_terms(item.body, made, buffers, extents)))
            continue
        before = result[-1] if result else None
        if isinstance(item, Launch) and isinstance(before, Launch):
            joined = _joined(made[before.kernel], made[item.kernel], buffers, extents)
            if joined is not None:
                made[before.kernel] = joined
                del made[item.kernel]
                continue
        result.append(item)
    return tuple(result)


def _joined(
    one: Kernel, two: Kernel, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> Kernel | None:
    first = one.body[0]
    (second, *more) = two.body
    if more or not isinstance(first, Assign) or not isinstance(second, Assign):
        return None
    if not second.accumulate or first.out.buffer != second.out.buffer:
        return None
    renamed = _renamed(first, second)
    if renamed is None:
        return None
    here, there = groups_of(first, buffers), groups_of(renamed, buffers)
    if here is None or there is None or _kept(here) != _kept(there):
        return None
    dtypes = {
        buffers[a.buffer].dtype
        for s in (first, renamed)
        if isinstance(s.expr, Prod)
        for a in s.expr.args
        if isinstance(a, Access)
    }
    body = (*one.body, renamed)
    assigns = tuple(s for s in body if isinstance(s, Assign))
    if len(dtypes) > 1 or tiles_for(assigns, buffers, extents) is None:
        return None
    variables = dict.fromkeys((*one.host_vars, *two.host_vars))
    comment = dict.fromkeys((*one.comment, *two.comment))
    return replace(one, comment=tuple(comment), host_vars=tuple(variables), body=body)


def _kept(groups: Groups) -> tuple[frozenset[BandVar], ...]:
    return tuple(frozenset(g) for g in (groups.batch, groups.rows, groups.columns))


def _renamed(first: Assign, second: Assign) -> Assign | None:
    """The second statement with the first one's names on the target; None if they differ there."""
    names: dict[str, str] = {}
    mine = {v.name: v for v in first.band}
    own = {v.name: v for v in second.band}
    for a, b in zip(first.out.subscripts, second.out.subscripts, strict=True):
        if a.variable is None or b.variable is None or b.variable not in own:
            if a != b:
                return None
            continue
        if names.setdefault(b.variable, a.variable) != a.variable or a.variable not in mine:
            return None
        if replace(own[b.variable], name=a.variable) != mine[a.variable]:
            return None
    if len(set(names.values())) != len(names):
        return None
    taken = {*mine, *own, *names.values()}
    for name in own:
        if name not in names:
            names[name] = name if name not in mine else unique(name, taken)
            taken.add(names[name])

    def subscript(s: Subscript) -> Subscript:
        return replace(s, variable=names.get(s.variable or "", s.variable))

    def access(a: Access) -> Access:
        return Access(a.buffer, tuple(map(subscript, a.subscripts)))

    if not isinstance(second.expr, Prod):
        return None
    factors = tuple(access(a) for a in second.expr.args if isinstance(a, Access))
    if len(factors) != len(second.expr.args):
        return None
    band = tuple(replace(v, name=names[v.name]) for v in second.band)
    return replace(second, out=access(second.out), expr=Prod(factors), band=band)
