"""The comment that opens each kernel: its equations, inputs, outputs, flops and bytes."""

from __future__ import annotations

from ..ir.loops import Buffer
from .kernel_comment import bytes_moved, flops
from .scope import Scope


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
