"""How many kernels a call launches, from the manifest alone."""

from __future__ import annotations

from collections.abc import Mapping

from .manifest import FetchEntry, HostEntry, LaunchEntry, LoopEntry, Manifest


def launches(manifest: Manifest, extents: Mapping[str, int]) -> int:
    """Launches of the volatile phase at given extents of the base spaces.

    The second pass of a kernel on a GPU, which adds partial sums, counts with the kernel.
    """
    return _Counter(manifest, extents).count(manifest.host_volatile, {})


def constant_launches(manifest: Manifest, extents: Mapping[str, int]) -> int:
    """Launches of the constant phase, which a bound program runs once."""
    return _Counter(manifest, extents).count(manifest.host_constant, {})


class _Counter:
    """Counts the launches of host loops without walking through their iterations."""

    def __init__(self, manifest: Manifest, extents: Mapping[str, int]) -> None:
        self.manifest, self.extents = manifest, extents
        self.known: dict[tuple[int, int], int] = {}  # by loop and by its trips

    def count(self, items: tuple[HostEntry, ...], last: Mapping[str, int]) -> int:
        """Launches of some items.

        Args:
            items: of the host program.
            last: number of the present iteration of each loop around them.
        """
        total = 0
        for item in items:
            match item:
                case LoopEntry():
                    total += self._loop(item, last)
                case LaunchEntry():
                    total += 1
                case FetchEntry():
                    pass
        return total

    def _loop(self, loop: LoopEntry, last: Mapping[str, int]) -> int:
        extent = self.manifest.extent(loop.space, self.extents)
        trips = -(-extent // (loop.tile or 1))
        if loop.below is not None:
            trips = min(trips, last[loop.below] + 1)
        bounds = _bounds(loop.body)
        if loop.variable not in bounds:
            return trips * self.count(loop.body, last)
        if not bounds <= {loop.variable}:  # an outer loop bounds one inside as well
            return sum(self.count(loop.body, {**last, loop.variable: n}) for n in range(trips))
        if (id(loop), trips) not in self.known:
            counts = (self.count(loop.body, {loop.variable: n}) for n in range(trips))
            self.known[id(loop), trips] = sum(counts)
        return self.known[id(loop), trips]


def _bounds(items: tuple[HostEntry, ...]) -> set[str]:
    """Variables that bound loops in some items and are none of their own."""
    found: set[str] = set()
    for item in items:
        if isinstance(item, LoopEntry):
            found |= _bounds(item.body) - {item.variable}
            found |= set() if item.below is None else {item.below}
    return found
