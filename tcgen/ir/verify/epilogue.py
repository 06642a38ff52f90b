"""Rules of the epilogue of tiles: each thread may do it alone, with the elements that it holds.

Blocks run at once and in any order, so no element may depend on what another thread writes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import VerifyError
from ..expr import Access, leaves
from ..loop_analysis import is_total, is_total_target
from ..loops import Assign, Buffer
from ..thread_mapping import Tiles


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
    one_element_each(terms, epilogue)


def one_element_each(terms: tuple[Assign, ...], epilogue: tuple[Assign, ...]) -> None:
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
