"""Phases whose loops run on the host: functions of C that read tiles and launch kernels."""

from __future__ import annotations

from typing import assert_never

from ..emit.printing import indented, nest
from ..records.loops import Fetch, Host, HostLoop, Launch
from ..records.parts import Parts
from ..runtime.host_program import on_host
from .sources import NativeProgram


def walked_phases(program: NativeProgram) -> list[str]:
    """A function ``NAME_constant`` or ``NAME_volatile`` for each phase that the host walks."""
    manifest = program.manifest
    lines: list[str] = []
    for phase, host, parts in (
        ("constant", manifest.host_constant, None),
        ("volatile", manifest.host_volatile, manifest.parts),
    ):
        if on_host(manifest, host):
            body = [*_Walk(program, parts).lines(host), "return TCGEN_OK;"]
            head = f"static int {program.name}_{phase}(const tcr_call *c)"
            lines += [head, "{", *indented(body), "}"]
    return lines


class _Walk:
    """Prints one phase; loop variables are numbered in the order of their loops."""

    def __init__(self, program: NativeProgram, parts: Parts | None) -> None:
        self.manifest, self.parts = program.manifest, parts
        self.spaces = {s.name: n for n, s in enumerate(self.manifest.spaces)}
        self.buffers = {b.name: n for n, b in enumerate(self.manifest.buffers)}
        self.tensors = {t.name: n for n, t in enumerate(self.manifest.tensors)}
        self.kernels = {k.name: n for n, k in enumerate(self.manifest.kernels)}
        self.words: dict[str, str] = {}

    def lines(self, host: tuple[Host, ...]) -> list[str]:
        text: list[str] = []
        for item in host:
            match item:
                case HostLoop():
                    text += self._loop(item)
                case Launch(name):
                    entry = self.manifest.kernels[self.kernels[name]]
                    values = [self.words[v] for v in entry.host]
                    if self.parts is not None and self.parts.kernel == name:
                        values += ["c->first", "c->last"]
                    given = ", ".join(values or ["0"])
                    text.append(f"TCR_LAUNCH({self.kernels[name]}, {given});")
                case Fetch(name, ranges):
                    buffer = self.manifest.buffers[self.buffers[name]]
                    words = [self.words[v.name] if v else "-1" for v in ranges]
                    starts = ", ".join([words[axis] for axis in buffer.order] or ["-1"])
                    source = self.tensors[buffer.source]
                    text.append(f"TCR_FETCH({self.buffers[name]}, {source}, {starts});")
                case _:
                    assert_never(item)
        return text

    def _loop(self, loop: HostLoop) -> list[str]:
        var, parts = loop.var, self.parts
        if parts is not None and parts.kernel is None and var.name == parts.chain[0].name:
            return self._chain(loop, parts)
        word = self.words[var.name] = f"i{len(self.words)}"
        stop = f"tcr_extent(c->program, {self.spaces[var.space.name]}, c->extents)"
        if var.below is not None:
            stop = f"tc_min({stop}, {self.words[var.below]} + 1)"
        head = f"for (int64_t {word} = 0; {word} < {stop}; {word} += {var.tile or 1})"
        return nest(head, self.lines(loop.body))

    def _chain(self, loop: HostLoop, parts: Parts) -> list[str]:
        """The loops whose iterations are numbered, as one loop over the numbers of the call."""
        body = loop.body
        for _ in parts.chain[1:]:
            (inner,) = body
            assert isinstance(inner, HostLoop), "the loops of a chain are inside each other"
            body = inner.body
        values = f"values{len(self.words)}"
        for n, var in enumerate(parts.chain):
            self.words[var.name] = f"{values}[{n}]"
        cleared = [f"tcr_clear(c, {self.buffers[name]});" for name in parts.cleared]
        inside = [
            f"int64_t {values}[{len(parts.chain)}];",
            f"tcr_iteration(c, number, {values});",
            *self.lines(body),
        ]
        head = "for (int64_t number = c->first; number < last; ++number)"
        return [
            *(nest("if (c->part)", cleared) if cleared else []),
            "const int64_t last = tc_min(c->last, tcr_iterations(c->program, c->extents, 0));",
            *nest(head, inside),
        ]
