"""Parts of a program: the number of an iteration as text, and the entries of the manifest.

Reads level 4. The printers of all targets print the same formula of the number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import factorial
from typing import TYPE_CHECKING, TypeAlias, assert_never

from ..artifact.manifest import (
    ByBlock,
    OperandEntry,
    Share,
    SpanEntry,
    StatementEntry,
    TouchEntry,
)
from ..ir.expr import Subscript, operation_count
from ..ir.loop_analysis import band_of, contraction_of, operands_of, statements
from ..ir.loops import (
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
    Parts,
    Stmt,
    Zero,
)
from ..records.parts import triangles
from .printing import extent, product
from .scope import Scope

if TYPE_CHECKING:
    from .cuda.work import GpuStatement

_Plain: TypeAlias = Zero | Assign | Gemm | Fetch

FIRST, LAST = "tc_first", "tc_last"  # first number and end of a part in the source


def numbered(var: LoopVar, scope: Scope) -> bool:
    """True for the innermost loop of the chain, whose iterations have the numbers."""
    return scope.parts is not None and var == scope.parts.chain[-1]


def starts_chain(stmt: Stmt, scope: Scope) -> bool:
    """True for the outermost loop of the chain, before which buffers are cleared."""
    return isinstance(stmt, Loop) and scope.parts is not None and stmt.var == scope.parts.chain[0]


def skip_lines(scope: Scope, integer: str) -> list[str]:
    """Lines of C that skip an iteration of another part."""
    assert scope.parts is not None, "the kernel has the chain"
    number = number_text(scope.parts, scope.variables)
    return [
        f"const {integer} tc_number = {number};",
        f"if (tc_number < {FIRST} || tc_number >= {LAST}) continue;",
    ]


def number_text(parts: Parts, words: Mapping[str, str], divide: str = "/") -> str:
    """The number of an iteration: ``(i0/3)*((i0/3) + 1)/2 + (j0/3)``.

    ``words`` names the loop variables in the source; ``divide`` is the division of integers.
    """
    chain = parts.chain
    text, place = "", 0
    for depth in triangles(chain):
        steps = [
            words[v.name] if v.tile is None else f"({words[v.name]}{divide}{v.tile})"
            for v in chain[place : place + depth]
        ]
        rank = " + ".join(_binomial(s, depth - n, divide) for n, s in enumerate(steps))
        if text:
            var = chain[place]
            count = extent(var.space)
            if var.tile is not None:
                count = f"(({count} + {var.tile - 1}){divide}{var.tile})"
            rank = f"({text})*{_binomial(count, depth, divide)} + {rank}"
        text, place = rank, place + depth
    return text


def _binomial(n: str, depth: int, divide: str) -> str:
    """C(n + depth - 1, depth)."""
    factors = [n, *(f"({n} + {k})" for k in range(1, depth))]
    text = product(factors)
    return text if depth == 1 else f"{text}{divide}{factorial(depth)}"


def touch_entries(module: Module) -> tuple[TouchEntry, ...]:
    """The elements of arguments and results that a module with parts reads and writes."""
    return () if module.parts is None else tuple(dict.fromkeys(_Walk(module).touches()))


def statement_entries(module: Module) -> tuple[StatementEntry, ...]:
    """The statements of the volatile phase, for the prediction of time."""
    return tuple(_Walk(module).statements())


class _Walk:
    """The statements of the volatile phase with the loops around them."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.buffers: Mapping[str, Buffer] = {b.name: b for b in module.buffers}
        self.kernels = {k.name: k for k in module.kernels}
        parts = module.parts
        self.chain = () if parts is None else tuple(v.name for v in parts.chain)
        self.once = () if parts is None else parts.once
        # Statements of nests that blocks of a GPU walk: their number in the kernel, and if each
        # is a product by tiles.
        self.by_blocks: dict[_Plain, tuple[int, bool]] = {}
        # What a GPU does with each statement outside of nests.
        self.on_gpu: dict[_Plain, GpuStatement] = {}
        for kernel in module.kernels:
            if kernel.mapping is not None:
                from .cuda.work import gpu_statements  # noqa: PLC0415  (loaded for GPUs)

                self.by_blocks |= dict(_statements_of_blocks(kernel))
                self.on_gpu |= dict(gpu_statements(kernel, self.buffers))

    def all(self, host: tuple[Host, ...]) -> Iterator[tuple[_Plain, tuple[LoopVar, ...], Share]]:
        """Statements and fetches of a phase, the loops around each, and the parts that run it."""

        def walk(
            items: tuple[Host | Stmt, ...], around: tuple[LoopVar, ...], share: Share
        ) -> Iterator[tuple[_Plain, tuple[LoopVar, ...], Share]]:
            for item in items:
                match item:
                    case HostLoop(var, body) | Loop(var, body):
                        inside = share if var.name not in self.chain else "iteration"
                        yield from walk(body, (*around, var), inside)
                    case Launch(name):
                        own: Share = "first" if name in self.once else share
                        yield from walk(self.kernels[name].body, around, own)
                    case _:
                        yield item, around, share

        yield from walk(host, (), "every")

    def touches(self) -> Iterator[TouchEntry]:
        """Accesses of arguments and results.

        Every part needs the arrays of the constant phase, and the first one has its results.
        """
        for touch in self.touches_of(self.module.host_constant):
            yield replace(touch, share="first") if touch.written else touch
        yield from self.touches_of(self.module.host_volatile)

    def touches_of(self, host: tuple[Host, ...]) -> Iterator[TouchEntry]:
        """Accesses of a phase."""
        for item, around, share in self.all(host):
            ranges = {v.name: self.loop_span(v) for v in around}
            match item:
                case Fetch(name, variables):
                    tensor = self.buffers[name].tensor
                    assert tensor is not None, f"{name} holds a tile of an input"
                    spans = tuple(
                        SpanEntry(space) if v is None else ranges[v.name]
                        for space, v in zip(tensor.spaces, variables, strict=True)
                    )
                    yield TouchEntry(tensor.source, False, share, spans)
                case Zero():
                    continue
                case Assign() | Gemm():
                    # Tiles of loops outside of the chain together are the whole space.
                    spans_of = ranges | {
                        v.name: self.span(v) if v.base in self.chain else SpanEntry(v.space)
                        for v in band_of(item)
                    }
                    yield from self.accesses(item, spans_of, share)
                case _:
                    assert_never(item)

    def accesses(
        self, stmt: Assign | Gemm, spans: Mapping[str, SpanEntry], share: Share
    ) -> Iterator[TouchEntry]:
        """The elements of the caller's arrays that a statement uses."""
        for access, written in ((stmt.out, True), *((r, False) for r in operands_of(stmt))):
            buffer = self.buffers[access.buffer]
            if buffer.place != "caller" or buffer.tensor is None:
                continue
            # A part may read its own results.
            if not written and not buffer.tensor.is_input:
                continue
            axes = tuple(self.axis(s, spans) for s in access.subscripts)
            yield TouchEntry(buffer.tensor.source, written, share, axes)

    @staticmethod
    def axis(subscript: Subscript, spans: Mapping[str, SpanEntry]) -> SpanEntry:
        """The elements of an axis of a whole array that an access walks."""
        assert subscript.variable is not None, "a caller's buffer has whole axes"
        span = spans[subscript.variable]
        return replace(span, offset=subscript.offset)

    def loop_span(self, var: LoopVar) -> SpanEntry:
        """The elements of an iteration of a loop of the chain; of another loop all elements."""
        if var.name in self.chain:
            return SpanEntry(var.space, var.name, var.tile or 1)
        return SpanEntry(var.space)

    def statements(self) -> Iterator[StatementEntry]:
        """Work and traffic of each statement."""
        items = (item for item, _, _ in self.all(self.module.host_volatile))
        for item, entry in zip(items, self._entries(), strict=True):
            number, _ = self.by_blocks.get(item, (None, False))
            form: ByBlock = "next" if number else "first"
            yield entry if number is None else replace(entry, by_block=form)

    def _entries(self) -> Iterator[StatementEntry]:
        for item, around, share in self.all(self.module.host_volatile):
            outside = [v for v in around if v.name not in self.chain]
            loops = tuple(SpanEntry(v.space, None, v.tile) for v in outside)
            halves = sum(v.below is not None for v in outside)
            match item:
                case Fetch(name) | Zero(name):
                    axes = self.buffers[name].axes
                    own = tuple(SpanEntry(a.space, None, a.length) for a in axes)
                    flops = None if isinstance(item, Fetch) else 0
                    operand = OperandEntry(name, tuple(range(len(own))), 1)
                    yield StatementEntry(share, loops, (own,), halves, flops, (operand,))
                case Assign() | Gemm():
                    yield self.statement(item, loops, halves, share)
                case _:
                    assert_never(item)

    def statement(
        self, stmt: Assign | Gemm, loops: tuple[SpanEntry, ...], halves: int, share: Share
    ) -> StatementEntry:
        """Work and traffic of one statement."""
        band, gpu = band_of(stmt), self.on_gpu.get(stmt)
        place = {v.name: n for n, v in enumerate(band)}
        if isinstance(stmt, Gemm):
            groups: tuple[tuple[BandVar, ...], ...] = (stmt.batch, stmt.m, stmt.n, stmt.k)
            flops = 2
        else:
            groups, held = (stmt.band,), stmt.out.variables
            product = contraction_of(stmt) if self.by_blocks.get(stmt, (0, False))[1] else None
            if product is not None:
                groups = (product.batch, product.m, product.n, product.k)
            elif gpu is not None and gpu.groups:
                groups = gpu.groups
            adds = stmt.accumulate or any(v.name not in held for v in stmt.band)
            scaled = abs(stmt.coeff) != 1
            flops = operation_count(stmt.expr) + adds + scaled + len(stmt.orbit)
            place = {v.name: n for n, v in enumerate(v for group in groups for v in group)}
        passes = {stmt.out: 2 if stmt.accumulate else 1}
        passes |= {r: 1 for r in operands_of(stmt) if r != stmt.out}
        if gpu is not None:
            passes = {a: count for a, count in passes.items() if a.buffer not in gpu.held}
        operands = [
            OperandEntry(
                a.buffer,
                tuple(place[n] for n in a.variables if n in place),
                count,
                across=gpu is not None and a in gpu.across,
            )
            for a, count in passes.items()
            if self.buffers[a.buffer].place not in ("register", "tile")
        ]
        return StatementEntry(
            share,
            loops,
            tuple(tuple(self.span(v) for v in group) for group in groups),
            halves + sum(v.below is not None for v in band),
            flops,
            tuple(operands if gpu is None else _once(operands)),
            shares=gpu is not None and gpu.shares,
            tile=None if gpu is None else gpu.tile,
        )

    def span(self, var: BandVar) -> SpanEntry:
        """A variable of a band; inside a tile it takes as many values as the tile has."""
        if var.base in self.chain:
            return SpanEntry(var.space, var.base, var.tile)
        return SpanEntry(var.space, None, var.tile)


def _once(operands: list[OperandEntry]) -> list[OperandEntry]:
    """Operands of which the last cache of a GPU keeps what other accesses read in another order.

    Those accesses still take their lines.
    """
    found: list[OperandEntry] = []
    for operand in operands:
        again = any(
            o.buffer == operand.buffer and set(o.spans) == set(operand.spans) for o in found
        )
        if not again or operand.across:
            found.append(replace(operand, passes=0) if again else operand)
    return found


def _statements_of_blocks(kernel: Kernel) -> Iterator[tuple[_Plain, tuple[int, bool]]]:
    """The statements of a nest that blocks of a GPU walk, numbered, and which go by tiles."""
    from ..ir.thread_mapping import Nest  # noqa: PLC0415  (loaded for GPUs)

    if isinstance(kernel.mapping, Nest):
        inside = [stmt for stmt, _ in statements(kernel.body)]
        products = kernel.mapping.products or (None,) * len(inside)
        for number, (stmt, tiles) in enumerate(zip(inside, products, strict=True)):
            yield stmt, (number, tiles is not None)
