"""The comment that opens each kernel: its equations, inputs, outputs, flops and bytes.

Flops and bytes are polynomials in the extents.
A multiply and an add are 2 flops. Bytes count each element that one launch touches once for
reading and once for writing, as if caches were perfect.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..ir.cost import ZERO, Poly
from ..ir.expr import Access, Prod, operation_count
from ..ir.loop_analysis import accesses, band_of
from ..ir.loops import Assign, BandVar, Buffer, Gemm, Loop, LoopVar, Zero
from .scope import Scope, statements


def kernel_comment(scope: Scope, first: str, other: str, end: str) -> list[str]:
    """Lines of the comment, with the marks of the language before and after them."""
    kernel = scope.kernel
    written, read = scope.written(), scope.read()
    lines = [f"kernel {kernel.name}", *(f"  {line}" for line in kernel.comment)]
    for title, names in (("inputs ", read), ("outputs", written)):
        shown = [_shape(scope.buffers[n]) for n in scope.outside() if n in names]
        lines.append(f"{title} {', '.join(shown) or '(none)'}")
    own = ("private", "register", "tile")
    local = [_shape(b) for b in scope.buffers.values() if b.place in own]
    if local:
        lines.append(f"private {', '.join(local)}")
    lines.append(f"flops   {flops(scope)}")
    lines.append(f"bytes   {bytes_moved(scope, read)} read, {bytes_moved(scope, written)} written")
    safe = [line.replace("*/", "* /").replace("\n", " ") for line in lines]
    text = [f"{first}{safe[0]}", *(f"{other}{line}".rstrip() for line in safe[1:])]
    return [*text, end] if end else text


def _shape(buffer: Buffer) -> str:
    """``t2[o,o,v,v]``; a contracted axis shows its length."""
    axes = [a.space.name if a.length is None else str(a.length) for a in buffer.axes]
    return f"{buffer.name}[{','.join(axes)}]" if axes else buffer.name


def flops(scope: Scope) -> Poly:
    """Flops of one launch; a tile counts as full."""
    total = ZERO
    for stmt, around in statements(scope.kernel.body):
        total = total + _points(stmt, around) * Poly.of(_operations(stmt, scope))
    return total


def _operations(stmt: Zero | Assign | Gemm, scope: Scope) -> int:
    """Flops at each point of a statement's loops."""
    match stmt:
        case Zero():
            return 0
        case Gemm() | Assign(expr=Prod(args=(Access(), Access()))):
            return 2  # a contraction, an outer product too, and whatever its factor
        case Assign(expr=Access(buffer)) if scope.buffers[buffer].tensor is None:
            return 0  # scratch on its way to the array: the product counted this addition
        case Assign():
            held = stmt.out.variables
            adds = stmt.accumulate or any(v.name not in held for v in stmt.band)
            scales = abs(stmt.coeff) != 1
            return operation_count(stmt.expr) + adds + scales + len(stmt.orbit)


def _points(stmt: Zero | Assign | Gemm, around: tuple[Loop, ...]) -> Poly:
    own = () if isinstance(stmt, Zero) else band_of(stmt)
    based = {v.base for v in own}
    depth: dict[str, int] = {}
    total = Poly.of(1)
    variables: tuple[LoopVar | BandVar, ...] = (*(loop.var for loop in around), *own)
    for var in variables:
        if isinstance(var, LoopVar) and var.tile is not None:
            # The elements of its tiles stand for the loop; without them it runs N/T times.
            if var.name not in based:
                total = total * Poly.of(Fraction(1, var.tile), (var.space,))
            continue
        rank = depth[var.name] = depth.get(var.below or "", 0) + 1
        # The r-th variable of a chain multiplies N (N+1)/2 ... by (N + r - 1)/r.
        factor = Poly.of(Fraction(1, rank), (var.space,)) + Poly.of(Fraction(rank - 1, rank))
        total = total * (factor if var.below is not None else Poly.of(1, (var.space,)))
    return total


def bytes_moved(scope: Scope, names: frozenset[str]) -> Poly:
    """Bytes of those buffers, of what one launch touches of each."""
    total = ZERO
    for name in scope.outside():
        if name in names:
            total = total + _touched(scope, name)
    return total


def _touched(scope: Scope, name: str) -> Poly:
    """Bytes of a buffer within the host loops' present element or tile."""
    buffer = scope.buffers[name]
    host = {v.name: v for v in scope.kernel.host_vars}
    tiles = {
        v.name: v.tile
        for stmt, _ in statements(scope.kernel.body)
        if not isinstance(stmt, Zero)
        for v in band_of(stmt)
        if isinstance(v, BandVar) and v.base in host
    }
    total = Poly.of(np.dtype(buffer.dtype).itemsize)
    for pair in buffer.packed:
        space = buffer.axes[pair.first].space
        total = total * (
            Poly.of(Fraction(1, 2), (space,))
            + Poly.of(Fraction(-1 if pair.antisymmetric else 1, 2))
        )
    second = {p.first + 1 for p in buffer.packed}
    first = {p.first for p in buffer.packed}
    found = [a for s in scope.kernel.body for a in accesses(s) if a.buffer == name]
    for number, axis in enumerate(buffer.axes):
        if number in second:
            continue
        space = axis.space if buffer.tensor is None else buffer.tensor.spaces[number]
        if number in first or not found:
            total = total * _length(axis.length, Poly.of(1, (space,)))
            continue
        variables = {a.subscripts[number].variable for a in found}
        if axis.length is None and all(v in host for v in variables):
            continue
        if axis.length is None and len(variables) == 1 and variables <= set(tiles):
            total = total * Poly.of(tiles[variables.pop() or ""] or 1)
            continue
        total = total * _length(axis.length, Poly.of(1, (space,)))
    return total


def _length(length: int | None, whole: Poly) -> Poly:
    return whole if length is None else Poly.of(length)
