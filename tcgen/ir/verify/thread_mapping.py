"""Rules of shares: what a GPU's blocks and threads do must be what the statements say.

An epilogue is the statements behind the products of a tile: each thread executes them alone, for
the elements that it holds. Blocks run at once and in any order, so no element may depend on what
another thread writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from ...errors import VerifyError
from ..expr import Access, Prod, leaves
from ..loop_analysis import is_total, is_total_target, used_buffers
from ..loops import Assign, Buffer, Gemm, Kernel, Loop, Stmt, Zero
from ..thread_mapping import Nest, Points, Sums, Term, Tiles, Turned

_WARP = 32
_MOST_THREADS = 1024


def check_share(kernel: Kernel, buffers: Mapping[str, Buffer]) -> None:
    """Check the share of a kernel, if it has one.

    Raises:
        VerifyError: naming the rule that is broken.
    """
    share = kernel.share
    if not isinstance(share, Tiles):
        for name in dict.fromkeys(n for s in kernel.body for n in used_buffers(s)):
            if name in buffers and buffers[name].place == "tile":
                raise VerifyError(f"{name} lies in the tile of a kernel without tiles")
    match share:
        case None:
            return
        case Points():
            _check_threads(share.threads)
            stmt = _only(kernel)
            if isinstance(stmt, Assign):
                _check_own_element(stmt)
        case Sums():
            _check_threads(share.threads)
            stmt = _only(kernel)
            if not isinstance(stmt, Assign) or share.splits < 1:
                raise VerifyError("only an assignment is summed by blocks, in at least one part")
            if any(x.buffer == stmt.out.buffer for x in _reads(stmt)):
                raise VerifyError("a sum that several threads share reads its own target")
        case Turned():
            _check_threads(share.threads)
            _check_turned(_only(kernel), share, buffers)
        case Tiles():
            _check_threads(share.high * share.wide)
            _check_tiles(kernel, share, buffers)
        case Nest():
            _check_threads(share.threads)
            for inner in kernel.body:
                _check_nest(inner)
            shared = any(isinstance(s, Loop) and s.parallel for s in kernel.body)
            if share.blocks < 1 or (share.blocks > 1 and len(kernel.body) > 1 and shared):
                raise VerifyError("blocks cannot wait for each other between statements")
        case _:
            assert_never(share)


def _check_threads(threads: int) -> None:
    if threads % _WARP or not 0 < threads <= _MOST_THREADS:
        raise VerifyError(f"a block of {threads} threads is no number of whole warps")


def _only(kernel: Kernel) -> Zero | Assign:
    (stmt, *more) = kernel.body
    if more or isinstance(stmt, Loop | Gemm):
        raise VerifyError("elements are shared out among threads in one statement outside loops")
    return stmt


def _reads(stmt: Assign) -> list[Access]:
    return [x for x in leaves(stmt.expr) if isinstance(x, Access)]


def _check_turned(stmt: Zero | Assign, share: Turned, buffers: Mapping[str, Buffer]) -> None:
    if not isinstance(stmt, Assign) or share.source not in _reads(stmt):
        raise VerifyError("what is turned is no operand of an assignment")
    names = [v.name for v in stmt.band]
    if stmt.orbit or any(v.below for v in stmt.band) or set(names) != set(stmt.out.variables):
        raise VerifyError("only elements without sums and triangles are turned")
    if share.row == share.column or not {share.row, share.column} <= set(names):
        raise VerifyError("a tile that is turned has two variables")
    if share.threads % share.tile:
        raise VerifyError("the threads of a block do not divide its tile")
    if any(buffers[a.buffer].packed for a in (stmt.out, share.source)):
        raise VerifyError("a packed array is turned")
    _check_own_element(stmt)


def _check_own_element(stmt: Assign) -> None:
    """Elements run in any order, so none may read what another one writes."""
    if any(x.buffer == stmt.out.buffer and x != stmt.out for x in _reads(stmt)):
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
            raise VerifyError("a matrix product for a CPU in a kernel for a GPU")
        case _:
            assert_never(stmt)


def _check_tiles(kernel: Kernel, share: Tiles, buffers: Mapping[str, Buffer]) -> None:
    stmts = [s for s in kernel.body if isinstance(s, Assign)]
    if len(stmts) != len(kernel.body) or not 0 < len(share.terms) <= len(stmts):
        raise VerifyError("tiles need one term for each product, and assignments only")
    stmts, epilogue = stmts[: len(share.terms)], stmts[len(share.terms) :]
    if share.height % share.high or share.width % share.wide:
        raise VerifyError("the threads of a block do not divide its tile")
    if share.stages < 2 or share.deep < 1 or share.splits < 1:
        raise VerifyError("tiles need two stages, a depth and a split")
    if share.tensor_cores:
        whole = share.high % 8 == 0 and share.wide % 4 == 0 and share.deep % 8 == 0
        pairs = share.height // share.high % 2 == 0 and share.width // share.wide % 2 == 0
        real = {buffers[a.buffer].dtype for s in stmts for a in (s.out, *_reads(s))} == {"float64"}
        if not (whole and pairs and real):
            raise VerifyError("tensor cores multiply float64, 16 rows x 8 columns x 8 at a time")
    rows = {n for s in share.rows for n in s.variables}
    columns = {n for s in share.columns for n in s.variables}
    kept = [*share.batch, *(n for s in (*share.rows, *share.columns) for n in s.variables)]
    first = stmts[0].out
    for stmt, term in zip(stmts, share.terms, strict=True):
        if stmt.out != first or (stmt is not stmts[0] and not stmt.accumulate):
            raise VerifyError("the terms of a tile add to different elements")
        if sorted(kept) != sorted(v.name for v in stmt.band if v.name in first.variables):
            raise VerifyError("batch, rows and columns are not the variables of the target")
        _check_term(stmt, term, rows, columns, buffers)
    if epilogue:
        check_epilogue(tuple(stmts), tuple(epilogue), share, buffers)
    if stmts[0].accumulate and buffers[first.buffer].place == "tile":
        raise VerifyError(f"{first.buffer} is in no memory, so nothing can be added to it")


def _check_term(
    stmt: Assign, term: Term, rows: set[str], columns: set[str], buffers: Mapping[str, Buffer]
) -> None:
    summed = [v.name for v in stmt.band if v.name not in stmt.out.variables]
    if sorted(term.depth) != sorted(summed):
        raise VerifyError("the depth of a term is not what its statement sums")
    if stmt.orbit or any(v.below is not None for v in stmt.band):
        raise VerifyError("tiles over a triangle")
    if not isinstance(stmt.expr, Prod) or len(stmt.expr.args) != 2:
        raise VerifyError("a term of a tile is no product of two factors")
    left, right = reversed(stmt.expr.args) if term.swapped else stmt.expr.args
    if not isinstance(left, Access) or not isinstance(right, Access):
        raise VerifyError("a factor of a tile is no array")
    if columns & set(left.variables) or rows & set(right.variables):
        raise VerifyError("a factor holds rows and columns")
    for access in (stmt.out, left, right):
        if buffers[access.buffer].packed:
            raise VerifyError(f"tiles of the packed array {access.buffer}")
    if stmt.out.buffer in (left.buffer, right.buffer):
        raise VerifyError(f"{stmt.out.buffer} is read and written")


def check_epilogue(
    terms: tuple[Assign, ...],
    epilogue: tuple[Assign, ...],
    share: Tiles,
    buffers: Mapping[str, Buffer],
) -> None:
    """Check the statements behind the terms of a tile.

    Raises:
        VerifyError: naming the rule that is broken.
    """
    target = terms[0].out
    kept = {v.name: v for v in terms[0].band if v.name in target.variables}
    for stmt in epilogue:
        if {v.name: v for v in stmt.band} != kept:
            raise VerifyError("an epilogue walks other points than the elements of its tile")
        if stmt.orbit or any(v.below is not None for v in stmt.band):
            raise VerifyError("an epilogue over a triangle")
        if buffers[stmt.out.buffer].packed:
            raise VerifyError(f"the epilogue of a tile writes the packed array {stmt.out.buffer}")
        if is_total(stmt):
            if share.splits > 1:
                raise VerifyError("a tile that several blocks share adds to a number")
        elif set(kept) - set(stmt.out.variables):
            raise VerifyError("elements of a tile share an element of the array that they write")
    _check_one_element_each(terms, epilogue)


def _check_one_element_each(terms: tuple[Assign, ...], epilogue: tuple[Assign, ...]) -> None:
    """Check that what is written is touched by the thread that writes it alone.

    Raises:
        VerifyError: naming the array that threads would share.
    """
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
