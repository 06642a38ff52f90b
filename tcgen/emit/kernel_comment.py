"""The comment that opens each kernel: its equations, inputs, outputs, executed flops and bytes.

Flops and bytes are polynomials in the extents, in all launches of a call: those of the reports
(:mod:`tcgen.ir.executed`), so that the source is the same for all extents.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.executed import StatementWork, as_polynomial
from ..ir.loops import Buffer
from .scope import Scope


def kernel_comment(
    scope: Scope, work: Sequence[StatementWork], first: str, other: str, end: str
) -> list[str]:
    """Lines of the comment, with the marks of the language before and after them.

    Args:
        scope: of the kernel.
        work: of its statements.
        first: mark of the first line.
        other: mark of the other lines.
        end: after the last line; may be empty.
    """
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
    flops = as_polynomial(w.flops for w in work if w.flops is not None)
    loaded = as_polynomial(amount for w in work for amount in w.read)
    stored = as_polynomial(amount for w in work for amount in w.written)
    lines.append(f"flops   {flops}")
    lines.append(f"bytes   {loaded} read, {stored} written")
    safe = [line.replace("*/", "* /").replace("\n", " ") for line in lines]
    text = [f"{first}{safe[0]}", *(f"{other}{line}".rstrip() for line in safe[1:])]
    return [*text, end] if end else text


def _shape(buffer: Buffer) -> str:
    """``t2[o,o,v,v]``; a contracted axis shows its length."""
    axes = [a.space.name if a.length is None else str(a.length) for a in buffer.axes]
    return f"{buffer.name}[{','.join(axes)}]" if axes else buffer.name
