"""Rules of thread mappings: blocks and threads of a GPU must compute the statements.

An epilogue is the statements after the products of a tile: each thread executes them for
the elements that it holds. Blocks run at once and in any order, so no element may depend on what
another thread writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from ...dtypes import BY_NAME
from ...errors import VerifyError
from ...hardware import COPY_BYTES, CUTENSOR, WARP_THREADS
from ..chains import numbered, separable
from ..expr import Access, leaves, two_factors
from ..loop_analysis import (
    added_to,
    contraction_of,
    is_total,
    is_total_target,
    operands_of,
    parallel_chain,
    statements,
    used_buffers,
    walked_in_step,
)
from ..loops import Assign, Buffer, Gemm, Kernel, Loop, Stmt, Zero
from ..thread_mapping import Library, Nest, Points, Sums, Term, ThreadNest, Tiles, Transpose

_MAX_BLOCK_THREADS = 1024  # CUDA


def check_thread_mapping(kernel: Kernel, buffers: Mapping[str, Buffer]) -> None:
    """Check the thread mapping of a kernel that has one; an error names the broken rule."""
    mapping = kernel.mapping
    match mapping:
        case None:
            raise VerifyError("the kernel has no thread mapping")
        case Points():
            _check_threads(mapping.threads)
            stmt = _only(kernel)
            if isinstance(stmt, Assign):
                _check_own_element(stmt)
            if mapping.lanes != 1:
                _check_lanes(stmt, mapping.lanes, buffers)
        case Sums():
            _check_threads(mapping.threads)
            stmt = _only(kernel)
            if not isinstance(stmt, Assign) or mapping.splits < 1:
                raise VerifyError(
                    "only an assignment can be summed by blocks, with at least one split"
                )
            if any(x.buffer == stmt.out.buffer for x in operands_of(stmt)):
                raise VerifyError("a sum over several threads reads its own target")
            if mapping.along:
                summed = {v.name for v in stmt.band} - set(stmt.out.variables)
                different = len(set(mapping.along)) == len(mapping.along) > 1
                if not different or not summed.issuperset(mapping.along):
                    raise VerifyError("warps walk a sum along different summed variables")
        case Transpose():
            _check_threads(mapping.threads)
            _check_transpose(_only(kernel), mapping, buffers)
        case Tiles():
            _check_threads(mapping.threads_m * mapping.threads_n)
            _check_tiles(kernel, mapping, buffers)
        case Nest():
            _check_threads(mapping.threads)
            for inner in kernel.body:
                _check_nest(inner)
            shared = any(isinstance(s, Loop) and s.parallel for s in kernel.body)
            if mapping.blocks < 1 or (mapping.blocks > 1 and len(kernel.body) > 1 and shared):
                raise VerifyError("blocks cannot synchronise between statements")
            _check_products(kernel, mapping, buffers)
            added = [n for s in kernel.body if isinstance(s, Loop) for n in added_to(s, buffers)]
            if mapping.summed and (len(kernel.body) > 1 or set(mapping.summed) - set(added)):
                raise VerifyError("blocks have copies of arrays that a nest does not only add to")
        case ThreadNest():
            _check_threads(mapping.threads)
            _check_thread_nest(kernel, buffers)
        case Library():
            _check_library(kernel, mapping, buffers)
        case _:
            assert_never(mapping)


def _check_lanes(stmt: Zero | Assign, lanes: int, buffers: Mapping[str, Buffer]) -> None:
    walked = walked_in_step(stmt, buffers) if isinstance(stmt, Assign) else frozenset()
    sizes = {lanes * BY_NAME[buffers[name].dtype].itemsize for name in walked}
    if sizes != {COPY_BYTES}:
        raise VerifyError(
            f"a thread computes {lanes} elements at once only if arrays are walked in step, "
            f"with {COPY_BYTES} bytes of each"
        )


def _check_library(kernel: Kernel, mapping: Library, buffers: Mapping[str, Buffer]) -> None:
    """The layouts of a product are those of every product of the BLAS, checked with the loops."""
    (stmt, *more) = kernel.body
    if mapping.name == CUTENSOR:
        product = contraction_of(stmt)
        if more or product is None:
            raise VerifyError("cuTENSOR computes one sum of products of two arrays")
        operands = (product.out, product.a, product.b)
        held = [buffers[x.buffer] for x in operands]
        if len({b.dtype for b in held}) > 1 or any(b.packed for b in held):
            raise VerifyError("cuTENSOR computes arrays of one element type that are not packed")
    else:
        if more or not isinstance(stmt, Gemm) or stmt.scheme is not None:
            raise VerifyError("a library computes one matrix product, without a scheme of packing")
        operands = (stmt.out, stmt.a, stmt.b)
    for access in operands:
        if buffers[access.buffer].place not in ("caller", "arena"):
            raise VerifyError(f"a library cannot read or write {access.buffer}: it has no address")


def _check_threads(threads: int) -> None:
    if threads % WARP_THREADS or not 0 < threads <= _MAX_BLOCK_THREADS:
        raise VerifyError(f"a block of {threads} threads is not a number of whole warps")


def _only(kernel: Kernel) -> Zero | Assign:
    (stmt, *more) = kernel.body
    if more or isinstance(stmt, Loop | Gemm):
        raise VerifyError("elements are mapped to threads for one statement outside loops only")
    return stmt


def _check_transpose(
    stmt: Zero | Assign, mapping: Transpose, buffers: Mapping[str, Buffer]
) -> None:
    if not isinstance(stmt, Assign) or mapping.source not in operands_of(stmt):
        raise VerifyError("the transposed source is not an operand of an assignment")
    names = [v.name for v in stmt.band]
    if stmt.orbit or any(v.below for v in stmt.band) or set(names) != set(stmt.out.variables):
        raise VerifyError("a transpose has neither sums nor triangles")
    if mapping.row == mapping.column or not {mapping.row, mapping.column} <= set(names):
        raise VerifyError("the tile of a transpose has two different variables of the band")
    if mapping.threads % mapping.tile:
        raise VerifyError("the threads of a block do not divide its tile")
    if any(buffers[a.buffer].packed for a in (stmt.out, mapping.source)):
        raise VerifyError("a packed array is transposed")
    _check_own_element(stmt)


def _check_own_element(stmt: Assign) -> None:
    """Elements are computed in any order, so none may read an element that another one writes."""
    if any(x.buffer == stmt.out.buffer and x != stmt.out for x in operands_of(stmt)):
        raise VerifyError(f"{stmt.out} reads other elements of its own array")


def _check_nest(stmt: Stmt) -> None:
    match stmt:
        case Loop(body=body):
            for inner in body:
                _check_nest(inner)
        case Zero():
            return
        case Assign():
            _check_own_element(stmt)
        case Gemm():
            raise VerifyError("a kernel for a GPU has a matrix product for a CPU")
        case _:
            assert_never(stmt)


def _check_products(kernel: Kernel, mapping: Nest, buffers: Mapping[str, Buffer]) -> None:
    """Check the tiles of the statements of a nest, each as a kernel of its own."""
    inside = [stmt for stmt, _ in statements(kernel.body)]
    if mapping.products and len(mapping.products) != len(inside):
        raise VerifyError("the products of a nest are not one entry for each of its statements")
    for stmt, tiles in zip(inside, mapping.products, strict=False):
        if tiles is None:
            continue
        alone = tiles.splits == len(tiles.terms) == 1
        if not alone or tiles.threads_m * tiles.threads_n != mapping.threads:
            raise VerifyError("a product of a nest has one term, no splits, and all its threads")
        _check_tiles(replace(kernel, body=(stmt,)), tiles, buffers)


def _check_thread_nest(kernel: Kernel, buffers: Mapping[str, Buffer]) -> None:
    (nest, *more) = kernel.body
    if more or not isinstance(nest, Loop) or not nest.parallel:
        raise VerifyError("threads divide one nest, whose outermost loop is parallel")
    chain = tuple(parallel_chain(nest))
    if any(loop.var.tile is not None for loop in chain):
        raise VerifyError("threads divide elements, and a loop of the nest is over tiles")
    inside = chain[-1]
    for inner in inside.body:
        _check_nest(inner)
        _check_single(inner, buffers)
    used = {name for s in kernel.body for name in used_buffers(s)}
    if any(buffers[name].place == "private" for name in used):
        raise VerifyError("a private buffer of a thread is not a register")


def _check_single(stmt: Stmt, buffers: Mapping[str, Buffer]) -> None:
    """Check that a statement of one thread has one element, and that its loops are serial."""
    match stmt:
        case Loop(body=body, parallel=parallel):
            if parallel:
                raise VerifyError("a loop inside a thread is parallel")
            for inner in body:
                _check_single(inner, buffers)
        case Zero(name):
            if buffers[name].place != "register":
                raise VerifyError(f"a thread zeroes {name}, which is not a register")
        case Assign(out, band=band):
            if any(v.name in out.variables for v in band):
                raise VerifyError(f"a thread of a nest assigns more than one element of {out}")
        case Gemm():
            return
        case _:
            assert_never(stmt)


def _check_tiles(kernel: Kernel, mapping: Tiles, buffers: Mapping[str, Buffer]) -> None:
    stmts = [s for s in kernel.body if isinstance(s, Assign)]
    if len(stmts) != len(kernel.body) or not 0 < len(mapping.terms) <= len(stmts):
        raise VerifyError("tiles need assignments only, and one term for each product")
    stmts, epilogue = stmts[: len(mapping.terms)], stmts[len(mapping.terms) :]
    if mapping.tile_m % mapping.threads_m or mapping.tile_n % mapping.threads_n:
        raise VerifyError("the threads of a block do not divide its tile")
    if mapping.stages < 2 or mapping.tile_k < 1 or mapping.splits < 1:
        raise VerifyError("tiles need at least two stages, one value of k and one split")
    if mapping.tensor_cores:
        each_m, each_n = mapping.per_thread
        whole = mapping.threads_m % 8 == mapping.threads_n % 4 == mapping.tile_k % 16 == 0
        pairs = each_m % 2 == each_n % 2 == 0
        dtype = BY_NAME[buffers[stmts[0].out.buffer].dtype]
        read = {BY_NAME[buffers[a.buffer].dtype] for s in stmts for a in operands_of(s)} - {dtype}
        real = all(d.c_real == dtype.c_real and d.parts < dtype.parts for d in read)
        taken = dtype.tensor_cores or all(s.tf32 for s in stmts)
        if not (whole and pairs and real and taken):
            raise VerifyError(
                "tensor cores multiply double precision, or TF32 if allowed, 16 (m) x 8 (n) x 8 "
                "(k) at a time, and two such products of k in turn"
            )
    if any(t.blocked for t in mapping.terms) and not (
        mapping.tensor_cores and mapping.tile_k == 16
    ):
        raise VerifyError("blocks of k of 4 x 4 points need tensor cores and 16 points at a time")
    m = {x for s in mapping.m for x in s.variables}
    n = {x for s in mapping.n for x in s.variables}
    free = [*mapping.batch, *(x for s in (*mapping.m, *mapping.n) for x in s.variables)]
    first = stmts[0].out
    for stmt, term in zip(stmts, mapping.terms, strict=True):
        if stmt.out != first or (stmt is not stmts[0] and not stmt.accumulate):
            raise VerifyError("the terms of a tile add to different elements")
        if sorted(free) != sorted(v.name for v in stmt.band if v.name in first.variables):
            raise VerifyError("batch, m and n are not the variables of the target")
        groups = (mapping.batch, *(s.variables for s in (*mapping.m, *mapping.n)), term.k)
        _check_term(stmt, term, m, n, groups, buffers)
    if epilogue:
        check_epilogue(tuple(stmts), tuple(epilogue), mapping, buffers)
    if stmts[0].accumulate and buffers[first.buffer].place == "tile":
        raise VerifyError(
            f"{first.buffer} is in registers only, so a tile cannot add to its old value"
        )


def _check_term(
    stmt: Assign,
    term: Term,
    m: set[str],
    n: set[str],
    groups: tuple[tuple[str, ...], ...],
    buffers: Mapping[str, Buffer],
) -> None:
    summed = [v.name for v in stmt.band if v.name not in stmt.out.variables]
    if sorted(term.k) != sorted(summed):
        raise VerifyError("the variables of k are not those that the statement sums")
    if term.blocked and not (len(term.k) > 1 and term.a_along_k and term.b_along_k):
        raise VerifyError("blocks of k need two variables, one for the unit stride of each factor")
    band = {v.name: v for v in stmt.band}
    divided = [tuple(band[name] for name in group) for group in groups]
    if stmt.orbit or not all(map(numbered, divided)):
        raise VerifyError("tiles over a triangle that is not whole in one of their groups")
    factors = two_factors(stmt.expr)
    if factors is None:
        raise VerifyError("a term of a tile is not a product of two elements of arrays")
    left, right = (f.access for f in (reversed(factors) if term.swapped else factors))
    if n & set(left.variables) or m & set(right.variables):
        raise VerifyError("a factor has variables of m and of n")
    for access in (stmt.out, left, right):
        buffer = buffers[access.buffer]
        if not separable(access, buffer, divided, written=access is stmt.out):
            raise VerifyError(f"tiles divide the packed axes of {access.buffer}")
    if stmt.out.buffer in (left.buffer, right.buffer):
        raise VerifyError(f"{stmt.out.buffer} is read and written")


def check_epilogue(
    terms: tuple[Assign, ...],
    epilogue: tuple[Assign, ...],
    mapping: Tiles,
    buffers: Mapping[str, Buffer],
) -> None:
    """Check the statements after the terms of a tile."""
    target = terms[0].out
    free = {v.name: v for v in terms[0].band if v.name in target.variables}
    for stmt in epilogue:
        if {v.name: v for v in stmt.band} != free:
            raise VerifyError("an epilogue runs over other points than the elements of its tile")
        if stmt.orbit or any(v.below is not None for v in stmt.band):
            raise VerifyError("an epilogue runs over a triangle")
        if buffers[stmt.out.buffer].packed:
            raise VerifyError(f"the epilogue of a tile writes the packed array {stmt.out.buffer}")
        if is_total(stmt):
            if mapping.splits > 1:
                raise VerifyError("a tile with several splits adds to a scalar")
        elif set(free) - set(stmt.out.variables):
            raise VerifyError("several elements of a tile write the same element")
    _check_one_element_each(terms, epilogue)


def _check_one_element_each(terms: tuple[Assign, ...], epilogue: tuple[Assign, ...]) -> None:
    """Check that only the thread that writes an element accesses it."""
    written: dict[str, Access] = {}
    for stmt in (*terms[:1], *epilogue):
        again = stmt.out.buffer in written and is_total(stmt)
        if written.setdefault(stmt.out.buffer, stmt.out) != stmt.out or again:
            raise VerifyError(f"two statements of a tile write {stmt.out.buffer}")
    for stmt in (*terms, *epilogue):
        for leaf in leaves(stmt.expr):
            if not isinstance(leaf, Access) or leaf.buffer not in written:
                continue
            own = leaf == written[leaf.buffer] and any(stmt is s for s in epilogue)
            if not own or is_total_target(leaf, epilogue):
                raise VerifyError(f"{leaf} is read in the launch that writes its array")
