"""Refuses programs for a GPU that launch so many kernels that the host is all that works."""

from __future__ import annotations

from collections.abc import Iterator

from ..artifact.manifest import Manifest, constant_launches, launches
from ..errors import PlanError
from ..options import Options
from ..records.loops import Host, HostLoop

MOST_LAUNCHES = 100_000  # of a call; they take the host about a second


def refuse_many_launches(manifest: Manifest, options: Options) -> None:
    """Refuse a program for a GPU whose loops on the host launch too many kernels.

    Args:
        manifest: of the program.
        options: that it was compiled with.

    Raises:
        PlanError: with the number, the loops, and what needs fewer.
    """
    if manifest.target != "cuda":
        return
    phases = (
        ("a call", launches, manifest.host_volatile),
        ("its constant phase", constant_launches, manifest.host_constant),
    )
    for phase, counted, host in phases:
        count = counted(manifest, options.extent_of)
        if count > MOST_LAUNCHES:
            shown = ", ".join(dict.fromkeys(_loops(host)))
            raise PlanError(
                f"this plan launches {count:,} kernels in {phase}, more than {MOST_LAUNCHES:,}: "
                f"its loops on the host are over tiles of {shown}. {_advice(options)}"
            )


def _advice(options: Options) -> str:
    """What leads to larger tiles, or to none."""
    if options.sliced:
        return "Pass one of the sliced inputs whole, or raise the memory limit"
    if options.memory_limit is not None:
        larger = f"Raise the memory limit of {options.memory_limit:,} bytes: tiles get larger"
        return larger if options.objective == "time" else f"{larger}; or use the objective time"
    if options.objective == "time":
        return "Use the objective none, which has no loops on the host, or a GPU of more memory"
    return "Use the objective time, which chooses tiles for a GPU, or none, which has no loops"


def _loops(items: tuple[Host, ...]) -> Iterator[str]:
    """Space and tile of each loop."""
    for item in items:
        if isinstance(item, HostLoop):
            yield f"{item.var.space.name} by {item.var.tile or 1}"
            yield from _loops(item.body)
