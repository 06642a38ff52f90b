"""The rules of level 4: names, scopes, bands, layouts of products, parallel loops, liveness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from ...errors import VerifyError
from ...records.loops import host_items
from ..expr import Access, Delta, Equal, Subscript, leaves
from ..loop_analysis import (
    band_of,
    blocks_parallel,
    contraction_obstacle,
    gemm_obstacle,
    operands_of,
    parallel_chain,
    positions,
    private_to,
    summed_numbers,
    used_buffers,
    vector_obstacle,
)
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
    Stmt,
    Zero,
)
from ..parts import parts_of
from ..pretty.loops import format_buffer, format_statement
from ..reduction import Reduction
from ..tensor import Ref, Space

_PLACES = ("caller", "arena", "private", "register", "tile")


def check_module(module: Module) -> None:
    """Check every rule of level 4; an error names the kernel, the statement and the rule."""
    buffers = {b.name: b for b in module.buffers}
    try:
        _check_names(module)
        for buffer in module.buffers:
            _check_buffer(buffer)
        for kernel in module.kernels:
            _check_kernel(kernel, buffers)
        _check_host(module, buffers)
        _check_lives(module)
        _check_parts(module)
    except VerifyError as error:
        raise VerifyError(f"module {module.name}: {error}") from None


def _check_parts(module: Module) -> None:
    """The iterations of the chain can run apart, and their results add up."""
    if module.parts is None:
        return
    proven = parts_of(module, module.parts.chain)
    if isinstance(proven, str):
        raise VerifyError(f"the parts of the volatile phase do not add up: {proven}")
    if proven != module.parts:
        raise VerifyError(
            f"parts need cleared ({', '.join(proven.cleared)}), once ({', '.join(proven.once)}) "
            f"and kernel {proven.kernel}"
        )


def _check_lives(module: Module) -> None:
    """Every buffer is live at each statement that uses it."""
    numbered = positions(module)
    spans = numbered.kernels.values()
    tiled = [numbered.kernels[k.name] for k in module.kernels if _computes_tiles(k)]
    for buffer in module.buffers:
        uses = numbered.uses.get(buffer.name, ())
        if not uses or buffer.place == "caller":
            continue
        if buffer.place in ("private", "register", "tile"):
            launched = sum(any(first <= n < end for n in uses) for first, end in spans)
            if launched > 1:
                raise VerifyError(f"{buffer.place} buffer {buffer.name} is used in two launches")
        if buffer.place in ("register", "tile"):
            continue
        uses = _whole_launches(uses, tiled)
        if not (buffer.live[0] <= uses[0] and uses[-1] <= buffer.live[1]):
            raise VerifyError(
                f"buffer {buffer.name} is live at statements {buffer.live[0]}..{buffer.live[1]} "
                f"but is used at {uses[0]}..{uses[-1]}"
            )
        if uses[0] < numbered.constant <= uses[-1] and not buffer.keep:
            raise VerifyError(
                f"buffer {buffer.name} is used in both phases but does not have keep set"
            )


def _check_mapping(kernel: Kernel, buffers: Mapping[str, Buffer]) -> None:
    """Check the thread mapping, and that kernels without tiles use no buffers of place tile."""
    if not _computes_tiles(kernel):
        for name in dict.fromkeys(n for s in kernel.body for n in used_buffers(s)):
            if name in buffers and buffers[name].place == "tile":
                raise VerifyError(f"{name} has place tile in a kernel without tiles")
    if kernel.mapping is not None:
        from .thread_mapping import check_thread_mapping  # noqa: PLC0415  (loaded for GPUs)

        check_thread_mapping(kernel, buffers)


def _computes_tiles(kernel: Kernel) -> bool:
    """True for a matrix product on a GPU."""
    if kernel.mapping is None:
        return False
    from ..thread_mapping import Tiles  # noqa: PLC0415  (loaded for GPUs)

    return isinstance(kernel.mapping, Tiles)


def _whole_launches(uses: tuple[int, ...], tiled: list[tuple[int, int]]) -> tuple[int, ...]:
    """Positions of uses; a buffer used by a kernel of tiles is used at all of its statements.

    Its blocks run concurrently: one may be at the epilogue while another one begins.
    """
    around = [(a, b) for a, b in tiled if any(a <= n < b for n in uses)]
    return tuple(sorted({*uses, *(n for a, b in around for n in (a, b - 1))}))


def _repeated(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _check_names(module: Module) -> None:
    for what, names in (
        ("buffers", [b.name for b in module.buffers]),
        ("kernels", [k.name for k in module.kernels]),
        ("loop variables", [v.name for v in _loop_variables(module)]),
    ):
        if _repeated(names):
            raise VerifyError(f"two {what} are named {_repeated(names)[0]}")


def _loop_variables(module: Module) -> Iterator[LoopVar]:
    def of_body(body: tuple[Stmt, ...]) -> Iterator[LoopVar]:
        for stmt in body:
            if isinstance(stmt, Loop):
                yield stmt.var
                yield from of_body(stmt.body)

    host = host_items((*module.host_constant, *module.host_volatile))
    yield from (item.var for item in host if isinstance(item, HostLoop))
    for kernel in module.kernels:
        yield from of_body(kernel.body)


def _check_buffer(buffer: Buffer) -> None:
    def fault(rule: str) -> VerifyError:
        return VerifyError(f"buffer {format_buffer(buffer)}: {rule}")

    if buffer.place not in _PLACES:
        raise fault(f"place {buffer.place} is not one of {', '.join(_PLACES)}")
    if sorted(buffer.order) != list(range(len(buffer.axes))):
        raise fault("its order is not a permutation of its axes")
    if buffer.place == "register" and any(a.length != 1 for a in buffer.axes):
        raise fault("a register holds one element")
    for pair in buffer.packed:
        rows = [k for k, axis in enumerate(buffer.order) if axis in pair.axes]
        if len(rows) < 2 or rows != list(range(rows[0], rows[0] + pair.count)):
            raise fault(f"the packed axes from {pair.first} on are not adjacent in its order")
        if len({buffer.axes[axis] for axis in pair.axes}) > 1:
            raise fault(f"the packed axes from {pair.first} on differ")
    if buffer.place == "caller" and any(a.length is not None for a in buffer.axes):
        raise fault("a caller's buffer has whole axes")


@dataclass(frozen=True, slots=True)
class _Scope:
    """Scope of a statement; ``chain``: it is alone in perfectly nested outer parallel loops."""

    buffers: Mapping[str, Buffer]
    loops: Mapping[str, LoopVar]
    parallel: bool
    depth: int
    chain: bool = False

    def inside(self, loop: Loop) -> _Scope:
        return _Scope(
            self.buffers,
            {**self.loops, loop.var.name: loop.var},
            self.parallel or loop.parallel,
            self.depth + 1,
            loop.parallel and len(loop.body) == 1 and (self.chain or not self.depth),
        )


def _check_kernel(kernel: Kernel, buffers: Mapping[str, Buffer]) -> None:
    try:
        _check_mapping(kernel, buffers)
    except VerifyError as error:
        raise VerifyError(f"kernel {kernel.name}: {error}") from None
    scope = _Scope(buffers, {v.name: v for v in kernel.host_vars}, False, 0)
    for stmt in kernel.body:
        try:
            _check_stmt(stmt, scope)
            if isinstance(stmt, Loop):
                _check_vectors(stmt, kernel, buffers)
                private = private_to(stmt, kernel, buffers)
                private |= _added_apart(stmt, kernel, buffers)
                for loop in parallel_chain(stmt):
                    reason = blocks_parallel(loop, private)
                    if reason:
                        raise VerifyError(f"loop {loop.var.name} cannot be parallel: {reason}")
        except VerifyError as error:
            raise VerifyError(f"kernel {kernel.name}: {error}") from None


def _added_apart(loop: Loop, kernel: Kernel, buffers: Mapping[str, Buffer]) -> frozenset[str]:
    """Arrays of which each thread of a CPU, or each block of a GPU, adds up a copy."""
    if kernel.mapping is None:
        return summed_numbers(loop, buffers)
    from ..thread_mapping import Nest  # noqa: PLC0415  (loaded for GPUs)

    return frozenset(kernel.mapping.summed if isinstance(kernel.mapping, Nest) else ())


def _check_vectors(loop: Loop, kernel: Kernel, buffers: Mapping[str, Buffer]) -> None:
    reason = vector_obstacle(loop, kernel, buffers) if loop.vector else None
    if reason:
        raise VerifyError(f"loop {loop.var.name} cannot use the vector unit: {reason}")
    for inner in loop.body:
        if isinstance(inner, Loop):
            _check_vectors(inner, kernel, buffers)


def _check_stmt(stmt: Stmt, scope: _Scope) -> None:
    if isinstance(stmt, Loop):
        if stmt.parallel and scope.depth and not scope.chain:
            raise VerifyError(f"parallel loop {stmt.var.name} is not outermost")
        below = stmt.var.below
        if below is not None and not _same_range(stmt.var, scope.loops.get(below)):
            raise VerifyError(
                f"loop {stmt.var.name} has below {below}, which is not a loop like it around it"
            )
        for inner in stmt.body:
            _check_stmt(inner, scope.inside(stmt))
        return
    try:
        match stmt:
            case Zero(buffer):
                if buffer not in scope.buffers:
                    raise VerifyError(f"{buffer} is not a buffer")
            case Assign():
                _check_assign(stmt, scope)
            case Gemm():
                _check_gemm(stmt, scope)
            case _:
                assert_never(stmt)
    except VerifyError as error:
        raise VerifyError(f"{error}\nwhile checking: {format_statement(stmt)}") from None


def _same_range(var: LoopVar, outer: LoopVar | None) -> bool:
    """True if an outer loop may bound a loop: same space, same tile."""
    return outer is not None and (outer.space, outer.tile) == (var.space, var.tile)


def _check_band(band: tuple[BandVar, ...], scope: _Scope) -> None:
    seen: set[str] = set()
    for var in band:
        if var.name in scope.loops or var.name in seen:
            raise VerifyError(f"variable {var.name} is used twice in one nest")
        if (var.base is None) != (var.tile is None):
            raise VerifyError(f"variable {var.name} has only one of base and tile")
        if var.base is not None:
            loop = scope.loops.get(var.base)
            if loop is None or (loop.tile, loop.space) != (var.tile, var.space):
                raise VerifyError(
                    f"variable {var.name} does not run over a tile of loop {var.base}"
                )
        if var.below is not None and var.below not in seen and var.below not in scope.loops:
            raise VerifyError(f"variable {var.name} has below {var.below}, which is not around it")
        if var.strict and var.below is None:
            raise VerifyError(f"variable {var.name} is strict without a variable above it")
        seen.add(var.name)


def _check_access(access: Access, band: tuple[BandVar, ...], scope: _Scope) -> None:
    buffer = scope.buffers.get(access.buffer)
    if buffer is None:
        raise VerifyError(f"{access.buffer} is not a buffer")
    if len(access.subscripts) != len(buffer.axes):
        raise VerifyError(f"{access} needs {len(buffer.axes)} subscripts")
    walked = {v.name: v for v in band}
    for axis, subscript in zip(buffer.axes, access.subscripts, strict=True):
        if subscript.variable is None:
            if axis.length != 1:
                raise VerifyError(f"{access} has one element of an axis that is not contracted")
            continue
        space = _space_of(subscript, walked, scope)
        if subscript.base is not None:
            var = walked.get(subscript.variable)
            if var is None or var.base != subscript.base or axis.length != var.tile:
                raise VerifyError(f"{subscript} in {access} does not run over a tile of that axis")
        elif axis.length is not None:
            raise VerifyError(f"{subscript} in {access} runs over a contracted axis")
        elif axis.space.before(space) != subscript.offset:
            raise VerifyError(
                f"{subscript} in {access}: {space.name} does not start there on an axis of "
                f"{axis.space.name}"
            )


def _space_of(subscript: Subscript, walked: Mapping[str, BandVar], scope: _Scope) -> Space:
    name = subscript.variable
    if name is not None and name in walked:
        return walked[name].space
    if name is None or name not in scope.loops:
        raise VerifyError(f"variable {name} is not in scope")
    if scope.loops[name].tile is not None:
        raise VerifyError(f"{name} is the base of a tile, not an element")
    return scope.loops[name].space


def _check_assign(stmt: Assign, scope: _Scope) -> None:
    _check_band(stmt.band, scope)
    _check_access(stmt.out, stmt.band, scope)
    for leaf in leaves(stmt.expr):
        match leaf:
            case Access():
                _check_access(leaf, stmt.band, scope)
            case Equal(left, right):
                walked = {v.name: v for v in stmt.band}
                _space_of(left, walked, scope)
                _space_of(right, walked, scope)
            case Ref() | Delta():
                raise VerifyError(f"{leaf} is a leaf of an earlier level")
            case _:
                assert_never(leaf)
    if stmt.reduction is not Reduction.SUM and (stmt.coeff != 1 or stmt.orbit or stmt.block):
        raise VerifyError(f"{stmt.reduction.value} has a coefficient, an orbit or a block")
    free = [v.name in stmt.out.variables for v in stmt.band]
    if not stmt.accumulate and free != sorted(free, reverse=True):
        raise VerifyError("a summed variable is outside a variable of the overwritten target")
    names = [v.name for v in stmt.band]
    for chain in stmt.orbit:
        if len(chain) < 2 or any(n not in names and n not in scope.loops for n in chain):
            raise VerifyError(f"orbit {','.join(chain)} has a variable that is not in scope")
    if not 0 <= stmt.parallel <= len(names):
        raise VerifyError(f"{stmt.parallel} loops of a band of {len(names)} are parallel")
    if stmt.parallel and any(free) and not all(free[: stmt.parallel]):
        raise VerifyError("a parallel variable is not in the target")
    if stmt.parallel and scope.parallel:
        raise VerifyError("a parallel statement is inside a parallel loop")
    if stmt.block and (
        len(stmt.block) != 2 or _repeated(list(stmt.block)) or not set(stmt.block) <= set(names)
    ):
        raise VerifyError("block must be two different variables of the band")
    read = {x.buffer for x in operands_of(stmt)}
    if scope.buffers[stmt.out.buffer].packed and stmt.out.buffer in read:
        raise VerifyError("a packed target is read")


def _check_gemm(stmt: Gemm, scope: _Scope) -> None:
    band = band_of(stmt)
    _check_band(band, scope)
    outer = {v.name for v in stmt.batch}
    if any(v.below is not None and (not stmt.scheme or v.name in outer) for v in band):
        raise VerifyError("a variable of batch, or of a product of the BLAS, is triangular")
    if stmt.out.buffer in (stmt.a.buffer, stmt.b.buffer):
        raise VerifyError(f"{stmt.out.buffer} is read and written")
    if stmt.parallel and scope.parallel:
        raise VerifyError("a parallel statement is inside a parallel loop")
    dtypes = []
    for access, groups, foreign in (
        (stmt.out, (stmt.m, stmt.n), stmt.k),
        (stmt.a, (stmt.m, stmt.k), stmt.n),
        (stmt.b, (stmt.k, stmt.n), stmt.m),
    ):
        _check_access(access, band, scope)
        if any(v.name in access.variables for v in foreign):
            raise VerifyError(f"{access} has a variable of the third group")
        obstacle = gemm_obstacle if stmt.scheme is None else contraction_obstacle
        reason = obstacle(access, scope.buffers[access.buffer], groups)
        if reason:
            raise VerifyError(reason)
        dtypes.append(scope.buffers[access.buffer].dtype)
    for var in stmt.batch:
        held = [var.name in x.variables for x in (stmt.out, stmt.a, stmt.b)]
        if not held[0] or not any(held[1:]):
            raise VerifyError(f"batch variable {var.name} is not in the target and an operand")
        for access in (stmt.out, stmt.a, stmt.b):
            if [s.variable for s in access.subscripts].count(var.name) > 1 and stmt.scheme:
                raise VerifyError(f"batch variable {var.name} is twice in {access}")
    if len(set(dtypes)) != 1:
        raise VerifyError(f"a matrix product has arrays of types {', '.join(dtypes)}")


def _check_host(module: Module, buffers: Mapping[str, Buffer]) -> None:
    kernels = {k.name: k for k in module.kernels}
    launched: list[str] = []

    def walk(host: tuple[Host, ...], around: tuple[LoopVar, ...]) -> None:
        for item in host:
            match item:
                case HostLoop(var, body):
                    outer = next((v for v in around if v.name == var.below), None)
                    if var.below is not None and not _same_range(var, outer):
                        raise VerifyError(
                            f"host loop {var.name} has below {var.below}, which is not a loop like "
                            f"it around it"
                        )
                    walk(body, (*around, var))
                case Launch(name):
                    launched.append(name)
                    if name not in kernels:
                        raise VerifyError(f"the launch of {name} names no kernel")
                    if any(v not in around for v in kernels[name].host_vars):
                        raise VerifyError(
                            f"kernel {name} needs a host variable that is not in scope"
                        )
                case Fetch(name, ranges):
                    _check_fetch(name, ranges, buffers, around)
                case _:
                    assert_never(item)

    walk(module.host_constant, ())
    walk(module.host_volatile, ())
    if sorted(launched) != sorted(kernels):
        raise VerifyError("the host does not launch every kernel once")


def _check_fetch(
    name: str,
    ranges: tuple[LoopVar | None, ...],
    buffers: Mapping[str, Buffer],
    around: tuple[LoopVar, ...],
) -> None:
    buffer = buffers.get(name)
    if buffer is None or buffer.tensor is None or buffer.place != "arena":
        raise VerifyError(f"the fetch into {name} needs an arena buffer of a tensor")
    if len(ranges) != len(buffer.axes):
        raise VerifyError(f"fetch into {name} needs {len(buffer.axes)} ranges")
    for axis, var in zip(buffer.axes, ranges, strict=True):
        wanted = None if var is None else (var.tile or 1)
        if axis.length != wanted:
            raise VerifyError(f"fetch into {name}: a range does not fill its axis")
        if var is not None and (var not in around or var.space != axis.space):
            raise VerifyError(
                f"fetch into {name}: host variable {var.name} does not run over this axis"
            )
