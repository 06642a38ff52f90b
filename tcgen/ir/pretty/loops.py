"""Level 4 as indented pseudo-code, for people and golden tests."""

from __future__ import annotations

from typing import assert_never

from ..expr import format_expr
from ..loops import (
    Assign,
    BandVar,
    Buffer,
    Fetch,
    Gemm,
    Host,
    HostLoop,
    Kernel,
    Launch,
    Loop,
    LoopVar,
    Module,
    PackingScheme,
    Parts,
    Stmt,
    Zero,
)
from ..reduction import Reduction


def pretty_module(module: Module) -> str:
    """The whole module: buffers, kernels, then the host program of each phase."""
    lines = [f"module {module.name} ({module.dtype})", "", "buffers"]
    lines += [f"  {format_buffer(b)}" for b in module.buffers]
    for kernel in module.kernels:
        lines += ["", *_kernel_lines(kernel)]
    for phase, host in (("constant", module.host_constant), ("volatile", module.host_volatile)):
        lines += ["", f"host {phase}", *(f"  {line}" for line in _host_lines(host))]
    if module.parts is not None:
        lines += ["", _parts_text(module.parts)]
    return "\n".join(lines) + "\n"


def _parts_text(parts: Parts) -> str:
    """One line: ``parts i0:o by 3, j0:o by 3<=i0 clear x4 once product_1``."""
    text = f"parts {', '.join(map(_loop_text, parts.chain))}"
    if parts.cleared:
        text += f" clear {', '.join(parts.cleared)}"
    return text + (f" once {', '.join(parts.once)}" if parts.once else "")


def format_buffer(buffer: Buffer) -> str:
    """One line: ``tau[o,o,v,v] float64 arena order (2,3,0,1) statements 0..2``."""
    axes = ",".join(a.space.name if a.length is None else str(a.length) for a in buffer.axes)
    text = f"{buffer.name}[{axes}] {buffer.dtype} {buffer.place}"
    if buffer.tensor is not None and buffer.tensor.name != buffer.name:
        text += f" of {buffer.tensor.name}"
    if buffer.order != tuple(range(len(buffer.axes))):
        text += f" order ({','.join(map(str, buffer.order))})"
    for pair in buffer.packed:
        kind = "antisymmetric" if pair.antisymmetric else "packed"
        text += f" {kind} ({','.join(map(str, pair.axes))})"
    if buffer.place == "arena":
        text += f" statements {buffer.live[0]}..{buffer.live[1]}"
    return text + (" keep" if buffer.keep else "")


def format_statement(stmt: Stmt) -> str:
    """A statement as text; loops are indented by two spaces."""
    return "\n".join(_stmt_lines(stmt))


def _kernel_lines(kernel: Kernel) -> list[str]:
    arguments = ", ".join(_loop_text(v) for v in kernel.host_vars)
    lines = [f"kernel {kernel.name}({arguments})"]
    lines += [f"  # {line}" for line in kernel.comment]
    if kernel.mapping is not None:
        lines.append(f"  mapped to {kernel.mapping}")
    for stmt in kernel.body:
        lines += [f"  {line}" for line in _stmt_lines(stmt)]
    return lines


def _stmt_lines(stmt: Stmt) -> list[str]:
    match stmt:
        case Loop(var, body, parallel):
            inner = [f"  {line}" for s in body for line in _stmt_lines(s)]
            return [f"{'parallel ' if parallel else ''}for {_loop_text(var)}:", *inner]
        case Zero(buffer):
            neutral = format_expr(stmt.reduction.neutral)
            return [f"zero {buffer}" if neutral == "0" else f"fill {buffer} with {neutral}"]
        case Assign():
            return [_assign_text(stmt)]
        case Gemm():
            return [_gemm_text(stmt)]
        case _:
            assert_never(stmt)


def _assign_text(stmt: Assign) -> str:
    factor = "" if stmt.coeff == 1 else f"{stmt.coeff} * "
    expr = format_expr(stmt.expr)
    if factor and not expr.replace("_", "").isalnum():
        expr = f"({expr})"
    weight = "".join(f"orbit({','.join(chain)}) * " for chain in stmt.orbit)
    text = f"{stmt.out} {'+=' if stmt.accumulate else '='} {factor}{weight}{expr}"
    if stmt.reduction is not Reduction.SUM:
        word = stmt.reduction.value
        text = f"{stmt.out} {word + '=' if stmt.accumulate else '= ' + word} {expr}"
    if stmt.band:
        text += f"   for {_band_text(stmt.band)}"
    if stmt.parallel:
        text += f"   parallel {stmt.parallel}"
    if stmt.block:
        text += f"   block {','.join(stmt.block)}"
    return text


def format_product(stmt: Gemm) -> str:
    """A matrix product as a formula: ``r[i,a] += f[i,c] * t[c,a]``."""
    factor = "" if stmt.coeff == 1 else f"{stmt.coeff} * "
    return f"{stmt.out} {'+=' if stmt.accumulate else '='} {factor}{stmt.a} * {stmt.b}"


def format_variant(stmt: Gemm) -> str:
    """How a product is computed: ``the BLAS`` or ``rows of v, packs v, t``."""
    if stmt.scheme is None:
        return "the BLAS"
    same = stmt.a.buffer == stmt.b.buffer
    a, b = (str(x) if same else x.buffer for x in (stmt.a, stmt.b))
    return f"rows of {a}, {_scheme_text(stmt.scheme, a, b)}"


def _gemm_text(stmt: Gemm) -> str:
    name = "gemm" if stmt.scheme is None else "contract"
    text = f"{name} {format_product(stmt)}  "
    for name, group in (("batch", stmt.batch), ("m", stmt.m), ("n", stmt.n), ("k", stmt.k)):
        if group:
            text += f" {name}({_band_text(group)})"
    if stmt.scheme is not None:
        text += f"   {_scheme_text(stmt.scheme, stmt.a.buffer, stmt.b.buffer)}"
    return text + ("   parallel" if stmt.parallel else "")


def _scheme_text(scheme: PackingScheme, a: str, b: str) -> str:
    packed = [name for name, packs in ((a, scheme.pack_a), (b, scheme.pack_b)) if packs]
    return f"packs {', '.join(packed) or 'nothing'}" + (" staged" if scheme.stage else "")


def _band_text(band: tuple[BandVar, ...]) -> str:
    return ", ".join(_variable_text(v) for v in band)


def _variable_text(var: BandVar) -> str:
    text = f"{var.name}:{var.space.name}"
    if var.base is not None:
        text += f"[{var.base}+{var.tile}]"
    return text + (f"{'<' if var.strict else '<='}{var.below}" if var.below else "")


def _loop_text(var: LoopVar) -> str:
    text = f"{var.name}:{var.space.name}"
    if var.tile is not None:
        text += f" by {var.tile}"
    return text + (f"<={var.below}" if var.below else "")


def _host_lines(host: tuple[Host, ...]) -> list[str]:
    lines: list[str] = []
    for item in host:
        match item:
            case HostLoop(var, body):
                lines.append(f"for {_loop_text(var)}:")
                lines += [f"  {line}" for line in _host_lines(body)]
            case Launch(kernel):
                lines.append(f"launch {kernel}")
            case Fetch(buffer, ranges):
                axes = ",".join(":" if v is None else v.name for v in ranges)
                lines.append(f"fetch {buffer}[{axes}]")
            case _:
                assert_never(item)
    return lines
