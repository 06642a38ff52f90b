"""A statement with the names of another one, so that both speak of the same elements."""

from __future__ import annotations

from dataclasses import replace

from ...ir.expr import Access, Equal, Expr, Subscript, leaves, map_leaves
from ...ir.loops import Assign, BandVar
from ..names import unique


def renamed(
    stmt: Assign, access: Access, wanted: Access, band: tuple[BandVar, ...]
) -> Assign | None:
    """``stmt`` with other names of its band, by which its ``access`` reads ``wanted``.

    Args:
        stmt: outside loops of its own kernel.
        access: its target or one of its operands.
        wanted: the same buffer under the names of ``band``.
        band: variables of the other statement; those that ``wanted`` lacks are not met.

    Returns:
        None where the two walk the buffer in different ways.
    """
    if stmt.orbit or any(v.below is not None for v in stmt.band):
        return None
    mine = {v.name: v for v in band}
    own = {v.name: v for v in stmt.band}
    names: dict[str, str] = {}
    for a, b in zip(wanted.subscripts, access.subscripts, strict=True):
        if a.variable is None or b.variable is None or b.variable not in own:
            if a != b:
                return None
            continue
        if a.variable not in mine or names.setdefault(b.variable, a.variable) != a.variable:
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
    result = _with_names(stmt, names)
    found = [a for a in (result.out, *accesses_of(result.expr)) if a.buffer == wanted.buffer]
    return result if wanted in found else None


def _with_names(stmt: Assign, names: dict[str, str]) -> Assign:
    """A statement whose variables are named anew; variables of host loops keep their names."""

    def subscript(s: Subscript) -> Subscript:
        return replace(s, variable=names.get(s.variable or "", s.variable))

    def access(a: Access) -> Access:
        return Access(a.buffer, tuple(map(subscript, a.subscripts)))

    def leaf(node: object) -> Expr:
        match node:
            case Access():
                return access(node)
            case Equal(left, right):
                return Equal(subscript(left), subscript(right))
            case _:
                raise AssertionError(f"{node} is a leaf of an earlier level")

    band = tuple(replace(v, name=names[v.name]) for v in stmt.band)
    return replace(stmt, out=access(stmt.out), expr=map_leaves(stmt.expr, leaf), band=band)


def accesses_of(expr: Expr) -> tuple[Access, ...]:
    """Accesses in an expression, repeats included."""
    return tuple(leaf for leaf in leaves(expr) if isinstance(leaf, Access))
