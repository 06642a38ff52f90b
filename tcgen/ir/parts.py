"""Prove that outermost iterations are independent up to a sum reduction.

A *part* of a program runs some iterations of its outermost loops. The outputs of the whole program
must be the sums of those of the parts. This module reads level 4 without its parts, and returns the
parts, or the reason why the loops cannot be divided. Lowering tries some loops; the checker proves
those of a module again. The words of the proof:

chain
    The divided loops, each directly inside the one before it.
partial buffer
    A buffer with a summand in each part; their sum is the value in the whole program. Outputs are
    partial, buffers that the chain writes and later statements read, and buffers that are computed
    from partial ones. So statements after the chain must be linear in partial buffers.
owned buffer
    A partial buffer whose elements are each written by one iteration of the chain. In other parts
    the element is zero, so that also products of elements of the same iteration add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, assert_never

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
)
from .loop_analysis import band_of, blocks_parallel, operands_of, used_buffers, written_buffers
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

# The value of an expression in a part: the same in all parts; a summand; neither; or elements of
# the iteration that these subscripts select, and zero in other parts.
_Kind: TypeAlias = Literal["whole", "summand", "nonlinear"] | tuple[Subscript, ...]

_ADDITIVE = ("conj", "real", "imag")
_ZERO_AT_ZERO = (*_ADDITIVE, "sqrt", "abs", "sin", "tanh")


@dataclass(frozen=True, slots=True)
class _Chain:
    """Outermost loops of the volatile phase, and all statements ``before`` and ``after`` them.

    Each of these comes with its kernel. ``variables`` are outermost first. ``kernel`` is the one
    with the loops; None for loops of the host. ``body`` has the statements of the innermost loop,
    in the order of the text; a launch is replaced by the statements of its kernel.
    """

    variables: tuple[LoopVar, ...]
    kernel: str | None
    body: tuple[Stmt | Fetch, ...]
    before: tuple[tuple[str, _Plain], ...]
    after: tuple[tuple[str, _Plain], ...]

    @property
    def outside(self) -> tuple[tuple[str, _Plain], ...]:
        """Statements around the chain, each with its kernel."""
        return (*self.before, *self.after)

    @property
    def inside(self) -> tuple[_Plain | Fetch, ...]:
        """Statements of the body without its loops."""
        return tuple(_without_loops(self.body))

    @property
    def written(self) -> tuple[str, ...]:
        """Buffers that the body writes, each once, in order."""
        return tuple(dict.fromkeys(name for s in self.inside for name in _writes(s)))


def chains(module: Module) -> Iterator[tuple[Loop | HostLoop, tuple[LoopVar, ...]]]:
    """Each outermost loop of the volatile phase, with the longest chain that begins with it."""
    for _, item in _outermost(module):
        if isinstance(item, Loop | HostLoop):
            yield item, tuple(variable for variable, _ in _nested(item))


def parts_of(module: Module, variables: tuple[LoopVar, ...]) -> Parts | str:
    """Parts of a verified module along loops, outermost first, or the reason why it has none."""
    chain = _find_chain(module, variables)
    names = ", ".join(v.name for v in variables)
    if chain is None:
        return f"{names} are not the outermost loops of the volatile phase"
    for stmt in (*(s for _, s in chain.outside), *chain.inside):
        if isinstance(stmt, Assign) and stmt.reduction is not Reduction.SUM:
            return f"{stmt.out.buffer} is a {stmt.reduction.value}: parts of it do not add up"
    outputs = {
        b.name
        for b in module.buffers
        if b.place == "caller" and b.tensor is not None and b.tensor.role is Role.OUTPUT
    }
    shared = _shared(module, chain, outputs)
    owned = _owned(chain, shared, names)
    if isinstance(owned, str):
        return owned
    partial = _partial(chain, outputs | shared & set(chain.written))
    for name in sorted({n for s in chain.inside for n in _reads(s)} & partial):
        if name not in owned:
            return f"iterations of {names} need the whole of {name}"
    once: dict[str, None] = {}
    for kernel, stmt in chain.outside:
        if _sets_zero(stmt) or not set(_writes(stmt)) & partial:
            continue
        if not _reads(stmt) & partial:
            once[kernel] = None
        elif not _is_linear(stmt, partial, owned):
            return f"{_writes(stmt)[0]} is not linear in the results of {names}"
    reason = _once_obstacle(module, chain, tuple(once), partial, outputs)
    if reason is not None:
        return reason
    earlier = {w for _, s in chain.before for w in _writes(s)}
    cleared = tuple(n for n in chain.written if n in shared - outputs and n not in earlier)
    kernel_of_chain = next((k for k in module.kernels if k.name == chain.kernel), None)
    if cleared and kernel_of_chain is not None and kernel_of_chain.mapping is not None:
        return f"{cleared[0]} is not zero before a launch on a GPU that has the loop {names}"
    return Parts(variables, cleared, tuple(once), chain.kernel)


# ---------------------------------------------------------------- statements


def _outermost(module: Module) -> Iterator[tuple[str | None, Stmt | Host]]:
    """Loops of the host and fetches, and the statements of launched kernels with their kernels."""
    bodies = {k.name: k.body for k in module.kernels}
    for item in module.host_volatile:
        if isinstance(item, Launch):
            yield from ((item.kernel, stmt) for stmt in bodies[item.kernel])
        else:
            yield None, item


def _find_chain(module: Module, variables: tuple[LoopVar, ...]) -> _Chain | None:
    """The chain of these loops, or None if they are not the first ones of such a chain."""
    kernels = {k.name: k for k in module.kernels}
    for kernel, loop in _outermost(module):
        if not variables or not isinstance(loop, Loop | HostLoop):
            continue
        nested = _nested(loop)[: len(variables)]
        if tuple(variable for variable, _ in nested) != variables:
            continue
        body = tuple(stmt for _, stmt in _unfolded(nested[-1][1], kernels, kernel))
        before: list[tuple[str, _Plain]] = []
        after: list[tuple[str, _Plain]] = []
        side = before
        for home, stmt in _outermost(module):
            if stmt is loop:
                side = after
            else:
                side += _with_kernels(_unfolded((stmt,), kernels, home))
        return _Chain(variables, kernel, body, tuple(before), tuple(after))
    return None


def _nested(loop: Loop | HostLoop) -> list[tuple[LoopVar, tuple[Stmt | Host, ...]]]:
    """Variables and bodies of loops directly inside each other, in a rectangle or a triangle.

    A loop for the vector unit is not one of them: it cannot skip iterations.
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
    items: Iterable[Stmt | Host], kernels: Mapping[str, Kernel], home: str | None = None
) -> Iterator[tuple[str | None, Stmt | Fetch]]:
    """Statements with their kernels, in the order of the text; host loops and launches are gone."""
    for item in items:
        match item:
            case HostLoop():
                yield from _unfolded(item.body, kernels, home)
            case Launch(name):
                yield from ((name, stmt) for stmt in kernels[name].body)
            case _:
                yield home, item


def _with_kernels(
    items: Iterable[tuple[str | None, Stmt | Fetch]],
) -> Iterator[tuple[str, _Plain]]:
    """Statements without loops and fetches, each with its kernel."""
    for kernel, item in items:
        for stmt in _without_loops((item,)):
            if not isinstance(stmt, Fetch):
                assert kernel is not None, "a statement is in a kernel"
                yield kernel, stmt


def _without_loops(body: Iterable[Stmt | Fetch]) -> Iterator[_Plain | Fetch]:
    for stmt in body:
        if isinstance(stmt, Loop):
            yield from _without_loops(stmt.body)
        else:
            yield stmt


def _writes(stmt: _Plain | Fetch) -> tuple[str, ...]:
    return (stmt.buffer,) if isinstance(stmt, Fetch) else written_buffers(stmt)


def _uses(stmt: Stmt | Fetch) -> tuple[str, ...]:
    return (stmt.buffer,) if isinstance(stmt, Fetch) else used_buffers(stmt)


def _reads(stmt: _Plain | Fetch) -> set[str]:
    """Buffers whose values a statement reads, besides the target that it adds to."""
    return set() if isinstance(stmt, Fetch) else {x.buffer for x in operands_of(stmt)}


def _sets_zero(stmt: _Plain) -> bool:
    return isinstance(stmt, Zero) or (isinstance(stmt, Assign) and stmt.expr == Const(Fraction(0)))


# ---------------------------------------------------------------- buffers


def _shared(module: Module, chain: _Chain, outputs: set[str]) -> set[str]:
    """Outputs, and buffers that statements outside of the chain use."""
    kernels = {k.name: k for k in module.kernels}
    constant = (stmt for _, stmt in _unfolded(module.host_constant, kernels))
    return outputs.union(*map(_uses, (*(s for _, s in chain.outside), *constant)))


def _owned(chain: _Chain, shared: set[str], names: str) -> dict[str, tuple[int, ...]] | str:
    """Owned buffers with the axes that select the iteration; or why iterations depend."""
    owned = {}
    for name in chain.written:
        if name not in shared:
            if not _begins(chain.inside, name):
                return f"{name} is carried from one iteration of {names} to the next"
            continue
        axes = _own_axes(name, chain)
        if axes is not None:
            owned[name] = axes
        elif not _only_adds(name, chain.inside):
            return f"iterations of {names} write the same elements of {name}"
    elsewhere = {w for _, s in chain.outside if not _sets_zero(s) for w in _writes(s)}
    return {name: axes for name, axes in owned.items() if name not in elsewhere}


def _partial(chain: _Chain, partial: set[str]) -> set[str]:
    """These buffers, and those that are computed from them outside of the chain."""
    while True:
        found = {w for _, s in chain.outside if _reads(s) & partial for w in _writes(s)}
        if found <= partial:
            return partial
        partial = partial | found


def _begins(body: Iterable[_Plain | Fetch], name: str) -> bool:
    """True if the first statement that uses a buffer sets it."""
    first = next((stmt for stmt in body if name in _uses(stmt)), None)
    if first is None or isinstance(first, Fetch):
        return first is not None
    adds = not isinstance(first, Zero) and first.accumulate
    return name in written_buffers(first) and not adds and name not in _reads(first)


def _own_axes(name: str, chain: _Chain) -> tuple[int, ...] | None:
    """Axes of the elements that an iteration owns, one for each variable; None if it owns none."""
    if any(isinstance(s, Fetch) and s.buffer == name for s in chain.body):
        return None
    body = tuple(s for s in chain.body if not isinstance(s, Fetch))
    others = frozenset(w for s in body for w in written_buffers(s)) - {name}
    loops = (Loop(variable, body) for variable in chain.variables)
    if any(blocks_parallel(loop, others) is not None for loop in loops):
        return None
    axes = [_axis_of(name, variable, chain.inside) for variable in chain.variables]
    found = tuple(axis for axis in axes if axis is not None)
    return found if len(found) == len(axes) else None


def _axis_of(name: str, variable: LoopVar, body: tuple[_Plain | Fetch, ...]) -> int | None:
    """The first axis of a buffer with a variable or the elements of its tile, or None."""
    for stmt in body:
        if isinstance(stmt, Zero | Fetch) or name not in written_buffers(stmt):
            continue
        tile = {variable.name, *(v.name for v in band_of(stmt) if v.base == variable.name)}
        for axis, subscript in enumerate(stmt.out.subscripts):
            if subscript.variable in tile and subscript.base is None:
                return axis
    return None


def _only_adds(name: str, body: Iterable[_Plain | Fetch]) -> bool:
    """True if statements only add to a buffer."""
    uses = [stmt for stmt in body if name in _uses(stmt)]
    return all(
        not isinstance(stmt, Zero | Fetch) and stmt.accumulate and name not in _reads(stmt)
        for stmt in uses
    )


def _once_obstacle(
    module: Module, chain: _Chain, once: tuple[str, ...], partial: set[str], outputs: set[str]
) -> str | None:
    """Why kernels with results of their own cannot run only in the part with iteration 0."""
    for kernel in once:
        own = [s for name, s in chain.outside if name == kernel]
        if kernel == chain.kernel or any(_reads(s) & partial for s in own):
            return f"kernel {kernel} has results of its own beside those of the chain"
        others = {n for name, s in chain.outside if name != kernel for n in used_buffers(s)}
        others |= {n for s in chain.inside if not isinstance(s, Fetch) for n in used_buffers(s)}
        for name in (w for s in own for w in _writes(s)):
            if name not in outputs and (name in others or module.buffer(name).keep):
                return f"kernel {kernel} computes {name} for others beside its own results"
    return None


# ---------------------------------------------------------------- linearity


def _is_linear(stmt: _Plain, partial: set[str], owned: Mapping[str, tuple[int, ...]]) -> bool:
    """True if the values of a statement in all parts add up to its value in the whole."""
    match stmt:
        case Zero():
            return True
        case Assign(_, expr):
            return _kind(expr, partial, owned) not in ("whole", "nonlinear")
        case Gemm(_, a, b):
            return _kind(Prod((a, b)), partial, owned) not in ("whole", "nonlinear")
        case _:
            assert_never(stmt)


def _kind(expr: Expr, partial: set[str], owned: Mapping[str, tuple[int, ...]]) -> _Kind:
    """The value of an expression in a part."""

    def inner(operand: Expr) -> _Kind:
        return _kind(operand, partial, owned)

    match expr:
        case Const() | Infinity() | Equal():
            return "whole"
        case Access(name, subscripts):
            if name in owned:
                return tuple(subscripts[axis] for axis in owned[name])
            return "summand" if name in partial else "whole"
        case Sum(args):
            kinds = {inner(arg) for arg in args}
            if len(kinds) == 1:
                return kinds.pop()
            return "nonlinear" if kinds & {"whole", "nonlinear"} else "summand"
        case Prod(args):
            divided = [kind for kind in map(inner, args) if kind != "whole"]
            if len(divided) > 1 and (len(set(divided)) > 1 or divided[0] == "summand"):
                return "nonlinear"
            return divided[0] if divided else "whole"
        case Quot(num, den):
            return inner(num) if inner(den) == "whole" else "nonlinear"
        case Pow(base, exponent):
            kind = inner(base)
            if kind == "whole" or exponent == 1:
                return kind
            return kind if isinstance(kind, tuple) and exponent > 0 else "nonlinear"
        case Call(function, arg):
            kind = inner(arg)
            if kind == "summand":
                return kind if function in _ADDITIVE else "nonlinear"
            return kind if kind == "whole" or function in _ZERO_AT_ZERO else "nonlinear"
        case Calls(_, args):
            return "whole" if all(inner(arg) == "whole" for arg in args) else "nonlinear"
        case Ref() | Delta():
            raise AssertionError(f"{expr} is a leaf of an earlier level")
        case _:
            assert_never(expr)
