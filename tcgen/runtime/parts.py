"""Parts of the volatile phase: their number, and the elements that they read and write.

A part is a half-open range of the numbered iterations of the outermost loops. A program whose
volatile phase is not divided has one part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TypeAlias

from ..artifact.manifest import Manifest, Share, SpanEntry, packed_run
from ..errors import ArgumentError
from ..options import MOST
from ..records.loops import stored_shape
from ..records.parts import Parts, count_iterations, iterations
from ..records.tensors import Tensor

Rectangle: TypeAlias = tuple[slice, ...]
_Range: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """A range of the volatile phase: the iterations ``first .. last - 1`` of its chain.

    ``entry`` has the chain, its kernels and its buffers; the whole phase ends at ``MOST``.
    """

    entry: Parts
    first: int = 0
    last: int = MOST

    @property
    def is_whole(self) -> bool:
        """True for a call of all parts."""
        return self.last == MOST

    def runs(self, kernel: str) -> bool:
        """False for a kernel whose results belong to the part with number 0."""
        return self.first == 0 or kernel not in self.entry.once


def count_parts(manifest: Manifest, extents: Mapping[str, int]) -> int:
    """Number of parts at some extents of the base spaces, at least 1."""
    if manifest.parts is None:
        return 1
    return max(1, count_iterations(manifest.parts.chain, extents))


def checked_part(manifest: Manifest, part: object, extents: Mapping[str, int]) -> tuple[int, int]:
    """The numbers of a part; ArgumentError unless it is a pair of integers within the parts."""
    count = count_parts(manifest, extents)
    try:
        if isinstance(part, str | bytes | Mapping):
            raise TypeError
        first, last = map(index, part)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{manifest.name}: part={part!r:.80} is not a pair of integers: give "
            f"part=(first, last), which runs the parts first to last - 1 of {count}"
        ) from None
    if not 0 <= first <= last <= count:
        here = ", ".join(f"{b}={extents[b]}" for b in manifest.bases if b in extents)
        raise ArgumentError(
            f"{manifest.name}: part=({first}, {last}) is outside of its {count} parts at {here}: "
            f"give 0 <= first <= last <= {count}, as program.parts(extents) says"
        )
    return int(first), int(last)


def touched(
    manifest: Manifest, first: int, last: int, extents: Mapping[str, int]
) -> dict[str, tuple[Rectangle, ...]]:
    """Rectangles of the caller's arrays that the parts ``first .. last - 1`` read and write.

    A rectangle of an input or output has a slice for each axis of the array, a packed pair being
    one axis. They do not overlap along one axis; () if nothing is touched.
    """
    tensors = {t.name: t for t in manifest.tensors}
    found: dict[str, set[tuple[_Range, ...]]] = {name: set() for name in tensors}
    if first < last and manifest.parts is None:
        for name, tensor in tensors.items():
            found[name].add(tuple((0, n) for n in stored_shape(tensor, extents)))
    elif first < last and manifest.parts is not None:
        values = list(iterations(manifest.parts.chain, extents, first, last))
        for touch in manifest.touches:
            if not runs_in(touch.share, first):
                continue
            names = sorted({span.variable for span in touch.axes if span.variable is not None})
            starts: Iterable[tuple[int, ...]] = ((),)
            if touch.share == "iteration":
                starts = dict.fromkeys(tuple(v[n] for n in names) for v in values)
            tensor = tensors[touch.tensor]
            for start in starts:
                at = dict(zip(names, start, strict=True))
                logical = [_range(span, at, extents) for span in touch.axes]
                found[touch.tensor].add(_stored(tensor, logical))
    return {name: _rectangles(ranges) for name, ranges in found.items()}


def runs_in(share: Share, first: int) -> bool:
    """True if a part that begins at a number runs statements with this share."""
    return share != "first" or first == 0


def _range(span: SpanEntry, at: Mapping[str, int], extents: Mapping[str, int]) -> _Range:
    """Elements of a logical axis."""
    before = sum(extents[base.name] for base in span.offset)
    end = span.space.extent_in(extents)
    if span.variable is None:
        return before, before + end
    low = at[span.variable]
    return before + low, before + min(low + (span.length or end), end)


def _stored(tensor: Tensor, logical: Sequence[_Range]) -> tuple[_Range, ...]:
    """Ranges of the axes of the caller's array; of a packed pair the smallest run of elements."""
    return tuple(
        logical[axis] if pair is None else packed_run(pair, [logical[n] for n in pair.axes])
        for axis, pair in tensor.stored()
    )


def _rectangles(ranges: set[tuple[_Range, ...]]) -> tuple[Rectangle, ...]:
    """Rectangles without empty ones; neighbours along an axis are joined."""
    left = {r for r in ranges if all(low < high for low, high in r)}
    rank = len(next(iter(left))) if left else 0
    for axis in reversed(range(rank)):
        lines: dict[tuple[_Range, ...], list[_Range]] = {}
        for rectangle in sorted(left):
            others = (*rectangle[:axis], *rectangle[axis + 1 :])
            runs = lines.setdefault(others, [])
            low, high = rectangle[axis]
            if runs and low <= runs[-1][1]:
                runs[-1] = (runs[-1][0], max(high, runs[-1][1]))
            else:
                runs.append((low, high))
        left = {
            (*others[:axis], run, *others[axis:]) for others, runs in lines.items() for run in runs
        }
    return tuple(tuple(slice(*run) for run in rectangle) for rectangle in sorted(left))
