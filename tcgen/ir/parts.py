"""Proof that the iterations of outermost loops can run apart, their results added up.

Reads level 4 without its parts, and says which parts it has, or why it has none. Lowering chooses a
chain of loops; the checker asks again for the same chain.

A buffer is *partial* if each part has only its share of it, and the shares add up to the whole: so
are outputs, what the chain leaves to later statements, and what is computed from these. A statement
behind the chain must therefore be linear in partial buffers. Where the iterations write elements of
their own, the shares of two parts have no element in common; then products of such elements with
the same place in the chain add up, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, assert_never

from .expr import (
    Access,
    Call,
    Calls,
    Const,
    Delta,
    Equal,
    Expr,
    Infinity,
    Pow,
    Prod,
    Quot,
    Subscript,
    Sum,
    leaves,
)
from .loop_analysis import band_of, blocks_parallel, used_buffers, written_buffers
from .loops import (
    Assign,
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
from .reduction import Reduction
from .tensor import Ref, Role

_Plain: TypeAlias = Zero | Assign | Gemm
_Place: TypeAlias = tuple[Subscript, ...]  # of an element among the iterations of the chain

_ADDITIVE = ("conj", "real", "imag")
_ZERO_AT_ZERO = (*_ADDITIVE, "sqrt", "abs", "sin", "tanh")


@dataclass(frozen=True, slots=True)
class Chain:
    """Outermost loops of the volatile phase, and everything around them.

    Attributes:
        variables: of loops directly inside each other, outermost first.
        kernel: that has the loops; None if they are loops of the host.
        body: statements of the innermost loop, in the order of the text; a launch is replaced by
            the statements of its kernel.
        before: other statements of the phase that precede the chain, each with its kernel.
        after: those that follow it.
    """

    variables: tuple[LoopVar, ...]
    kernel: str | None
    body: tuple[Stmt | Fetch, ...]
    before: tuple[tuple[str, _Plain], ...]
    after: tuple[tuple[str, _Plain], ...]


def chains(module: Module) -> Iterator[tuple[Loop | HostLoop, tuple[LoopVar, ...]]]:
    """Each outermost loop of the volatile phase, with the longest chain that begins with it."""
    for loop in _outermost(module):
        yield loop, tuple(variable for variable, _ in _nested(loop))


def find_chain(module: Module, variables: tuple[LoopVar, ...]) -> Chain | None:
    """The chain of these loops, or None if they are not the first ones of such a chain."""
    kernels = {k.name: k for k in module.kernels}
    for loop in _outermost(module):
        nested = _nested(loop)[: len(variables)]
        if not variables or tuple(variable for variable, _ in nested) != variables:
            continue
        body = tuple(_unfolded(nested[-1][1], kernels))
        before: list[tuple[str, _Plain]] = []
        after: list[tuple[str, _Plain]] = []
        now, home = before, None
        for name, stmt in _outer(module.host_volatile, kernels):
            if stmt is loop:
                now, home = after, name
            else:
                now += _named(stmt, name, kernels)
        return Chain(variables, home, body, tuple(before), tuple(after))
    return None


def parts_of(module: Module, variables: tuple[LoopVar, ...]) -> Parts | str:
    """The parts of the volatile phase along a chain of loops, or the reason why there are none.

    Args:
        module: verified loops.
        variables: of the chain, outermost first.
    """
    chain = find_chain(module, variables)
    names = ", ".join(v.name for v in variables)
    if chain is None:
        return f"{names} are not the outermost loops of the volatile phase"
    for stmt in (*(s for _, s in (*chain.before, *chain.after)), *chain.body):
        for plain in () if isinstance(stmt, Fetch) else _plain((stmt,)):
            if isinstance(plain, Assign) and plain.reduction is not Reduction.SUM:
                return f"{plain.out.buffer} is a {plain.reduction.value}: parts of it do not add up"
    outputs = {
        b.name
        for b in module.buffers
        if b.place == "caller" and b.tensor is not None and b.tensor.role is Role.OUTPUT
    }
    shared = _shared(module, chain, outputs)
    support: Mapping[str, tuple[int, ...]] = {}
    for name in _written(chain.body):
        if name not in shared:
            if not _begins(chain.body, name):
                return f"{name} is carried from one iteration of {names} to the next"
            continue
        axes = _own_axes(name, chain)
        if axes is not None:
            support = {**support, name: axes}
        elif not _only_adds(name, chain.body):
            return f"iterations of {names} write the same elements of {name}"
    partial = outputs | shared & set(_written(chain.body))
    outside = (*chain.before, *chain.after)
    elsewhere = {w for _, s in outside if not _sets_zero(s) for w in written_buffers(s)}
    support = {name: axes for name, axes in support.items() if name not in elsewhere}
    grown = True
    while grown:
        found = {w for _, s in outside if _reads(s) & partial for w in written_buffers(s)}
        grown = not found <= partial
        partial |= found
    for stmt in (s for s in chain.body if not isinstance(s, Fetch)):
        for name in sorted({n for plain in _plain((stmt,)) for n in _reads(plain)}):
            if name in partial and name not in support:
                return f"iterations of {names} need the whole of {name}"
    once: dict[str, None] = {}
    for name, stmt in outside:
        if _sets_zero(stmt) or not set(written_buffers(stmt)) & partial:
            continue
        if not _reads(stmt) & partial:
            once[name] = None
        elif not _is_linear(stmt, partial, support):
            return f"{written_buffers(stmt)[0]} is not linear in the results of {names}"
    reason = _once_obstacle(module, chain, tuple(once), partial, outputs)
    if reason is not None:
        return reason
    earlier = {w for _, s in chain.before for w in written_buffers(s)}
    cleared = tuple(
        name for name in _written(chain.body) if name in shared - outputs and name not in earlier
    )
    kernel = next((k for k in module.kernels if k.name == chain.kernel), None)
    if cleared and kernel is not None and kernel.mapping is not None:
        return f"{cleared[0]} is not zero before a launch on a GPU that has the loop {names}"
    return Parts(variables, cleared, tuple(once))


def _outermost(module: Module) -> Iterator[Loop | HostLoop]:
    """Loops of the volatile phase that no loop is around."""
    kernels = {k.name: k for k in module.kernels}
    for item in module.host_volatile:
        match item:
            case HostLoop():
                yield item
            case Launch(name):
                yield from (s for s in kernels[name].body if isinstance(s, Loop))
            case Fetch():
                continue
            case _:
                assert_never(item)


def _nested(loop: Loop | HostLoop) -> list[tuple[LoopVar, tuple[Stmt | Host, ...]]]:
    """Variables and bodies of loops directly inside each other, in a rectangle or a triangle.

    A loop for the vector unit is none of them: it has no place to skip iterations.
    """
    found: list[tuple[LoopVar, tuple[Stmt | Host, ...]]] = []
    inner: Stmt | Host = loop
    while isinstance(inner, Loop | HostLoop) and (
        not found or inner.var.below in (None, found[-1][0].name)
    ):
        if isinstance(inner, Loop) and inner.vector:
            break
        found.append((inner.var, inner.body))
        if len(inner.body) != 1:
            break
        inner = inner.body[0]
    return found


def _unfolded(
    items: Iterable[Stmt | Host], kernels: Mapping[str, Kernel]
) -> Iterator[Stmt | Fetch]:
    """Statements in the order of the text, without loops and launches of the host."""
    for item in items:
        match item:
            case HostLoop():
                yield from _unfolded(item.body, kernels)
            case Launch(name):
                yield from kernels[name].body
            case _:
                yield item


def _outer(
    host: tuple[Host, ...], kernels: Mapping[str, Kernel]
) -> Iterator[tuple[str | None, Stmt | Host]]:
    """Loops of the host and fetches, and statements with the names of their kernels."""
    for item in host:
        if isinstance(item, Launch):
            yield from ((item.kernel, stmt) for stmt in kernels[item.kernel].body)
        else:
            yield None, item


def _named(
    item: Stmt | Host, home: str | None, kernels: Mapping[str, Kernel]
) -> Iterator[tuple[str, _Plain]]:
    """Statements without loops, each with its kernel."""
    match item:
        case HostLoop():
            for inner in item.body:
                yield from _named(inner, home, kernels)
        case Launch(name):
            yield from ((name, stmt) for stmt in _plain(kernels[name].body))
        case Fetch():
            return
        case _:
            assert home is not None, "a statement is in a kernel"
            yield from ((home, stmt) for stmt in _plain((item,)))


def _plain(body: tuple[Stmt, ...]) -> Iterator[_Plain]:
    for stmt in body:
        if isinstance(stmt, Loop):
            yield from _plain(stmt.body)
        else:
            yield stmt


def _written(body: tuple[Stmt | Fetch, ...]) -> tuple[str, ...]:
    """Buffers that statements and fetches write, each once, in order."""
    names: dict[str, None] = {}
    for stmt in body:
        written = (stmt.buffer,) if isinstance(stmt, Fetch) else written_buffers(stmt)
        names.update(dict.fromkeys(written))
    return tuple(names)


def _shared(module: Module, chain: Chain, outputs: set[str]) -> set[str]:
    """Outputs, and buffers that statements outside of the chain use."""
    names = outputs | {n for _, s in (*chain.before, *chain.after) for n in used_buffers(s)}
    kernels = {k.name: k for k in module.kernels}
    for stmt in _unfolded(module.host_constant, kernels):
        names |= {stmt.buffer} if isinstance(stmt, Fetch) else set(used_buffers(stmt))
    return names


def _begins(body: tuple[Stmt | Fetch, ...], name: str) -> bool:
    """True if the first statement that uses a buffer sets it."""
    for stmt in body:
        if isinstance(stmt, Fetch):
            if stmt.buffer == name:
                return True
            continue
        for plain in _plain((stmt,)):
            if name in used_buffers(plain):
                adds = not isinstance(plain, Zero) and plain.accumulate
                return name in written_buffers(plain) and not adds and name not in _reads(plain)
    return False


def _own_axes(name: str, chain: Chain) -> tuple[int, ...] | None:
    """Axes on which iterations have elements of their own, one for each variable; else None."""
    if any(isinstance(s, Fetch) and s.buffer == name for s in chain.body):
        return None
    body = tuple(s for s in chain.body if not isinstance(s, Fetch))
    others = frozenset(w for s in body for w in written_buffers(s)) - {name}
    loops = (Loop(variable, body) for variable in chain.variables)
    if any(blocks_parallel(loop, others) is not None for loop in loops):
        return None
    axes = [_axis_of(name, variable, body) for variable in chain.variables]
    found = tuple(axis for axis in axes if axis is not None)
    return found if len(found) == len(axes) else None


def _axis_of(name: str, variable: LoopVar, body: tuple[Stmt, ...]) -> int | None:
    """The first axis of a buffer that has a variable, or the elements of its tile; else None."""
    for stmt in body:
        for plain in _plain((stmt,)):
            if name not in written_buffers(plain) or isinstance(plain, Zero):
                continue
            own = (v.name for v in band_of(plain) if v.base == variable.name)
            tile = {variable.name, *own}
            for axis, subscript in enumerate(plain.out.subscripts):
                if subscript.variable in tile and subscript.base is None:
                    return axis
    return None


def _only_adds(name: str, body: tuple[Stmt | Fetch, ...]) -> bool:
    """True if statements add to a buffer and do nothing else with it."""
    for stmt in body:
        if isinstance(stmt, Fetch):
            if stmt.buffer == name:
                return False
            continue
        for plain in _plain((stmt,)):
            if name in _reads(plain):
                return False
            if name in written_buffers(plain) and (isinstance(plain, Zero) or not plain.accumulate):
                return False
    return True


def _reads(stmt: _Plain) -> set[str]:
    """Buffers whose values a statement reads, besides the target that it adds to."""
    match stmt:
        case Zero():
            return set()
        case Assign(_, expr):
            return {leaf.buffer for leaf in leaves(expr) if isinstance(leaf, Access)}
        case Gemm(_, a, b):
            return {a.buffer, b.buffer}
        case _:
            assert_never(stmt)


def _sets_zero(stmt: _Plain) -> bool:
    return isinstance(stmt, Zero) or (isinstance(stmt, Assign) and stmt.expr == Const(Fraction(0)))


def _once_obstacle(
    module: Module, chain: Chain, once: tuple[str, ...], partial: set[str], outputs: set[str]
) -> str | None:
    """Why kernels with results of their own cannot belong to the part with iteration 0 alone."""
    outside = (*chain.before, *chain.after)
    for kernel in once:
        own = [s for name, s in outside if name == kernel]
        if kernel == chain.kernel or any(_reads(s) & partial for s in own):
            return f"kernel {kernel} has results of its own beside those of the chain"
        others = {n for name, s in outside if name != kernel for n in used_buffers(s)}
        others |= {n for s in chain.body if not isinstance(s, Fetch) for n in used_buffers(s)}
        for name in (w for s in own for w in written_buffers(s)):
            if name not in outputs and (name in others or module.buffer(name).keep):
                return f"kernel {kernel} computes {name} for others beside its own results"
    return None


def _is_linear(stmt: _Plain, partial: set[str], support: Mapping[str, tuple[int, ...]]) -> bool:
    """True if what a statement computes from the shares of parts adds up to the whole."""
    match stmt:
        case Zero():
            return True
        case Assign(_, expr):
            return _share(expr, partial, support) not in ((), None)
        case Gemm(_, a, b):
            return _share(Prod((a, b)), partial, support) not in ((), None)
        case _:
            assert_never(stmt)


# What a part has of the value of an expression: () the whole; a place: its own elements, the others
# are zero; "share": a number that adds up to the whole; None: nothing that adds up.
_Share: TypeAlias = tuple[()] | tuple[_Place] | str | None


def _share(expr: Expr, partial: set[str], support: Mapping[str, tuple[int, ...]]) -> _Share:
    def inner(part: Expr) -> _Share:
        return _share(part, partial, support)

    match expr:
        case Const() | Infinity() | Equal():
            return ()
        case Access(name, subscripts):
            if name in support:
                return (tuple(subscripts[axis] for axis in support[name]),)
            return "share" if name in partial else ()
        case Sum(args):
            kinds = {inner(arg) for arg in args}
            if len(kinds) == 1:
                return kinds.pop()
            return None if kinds & {(), None} else "share"
        case Prod(args):
            held = [kind for kind in map(inner, args) if kind != ()]
            if len(held) > 1 and (len(set(held)) > 1 or held[0] == "share"):
                return None
            return held[0] if held else ()
        case Quot(num, den):
            return inner(num) if inner(den) == () else None
        case Pow(base, exponent):
            kind = inner(base)
            if kind == () or exponent == 1:
                return kind
            return kind if isinstance(kind, tuple) and exponent > 0 else None
        case Call(function, arg):
            kind = inner(arg)
            if kind == "share":
                return kind if function in _ADDITIVE else None
            return kind if kind == () or function in _ZERO_AT_ZERO else None
        case Calls(_, args):
            return () if all(inner(arg) == () for arg in args) else None
        case Ref() | Delta():
            raise AssertionError(f"{expr} is a leaf of an earlier level")
        case _:
            assert_never(expr)
