"""Queries of a program that need no call: its report, its memory, and the work of its parts.

Programs and bound programs answer them alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from ..artifact.manifest import Manifest
from ..errors import ExtentError
from ..options import parse_extents
from .execution import Execution
from .part_work import executed_flops, predicted_seconds
from .parts import Rectangle, checked_part, count_parts, touched
from .report import PAGE, Report

EQUATIONS = "equations.tex"  # file of an artifact: the body of an ``aligned`` environment


class ProgramQueries:
    """Base class of programs and bound programs.

    An argument ``extents`` has the extents of base spaces; the planning extents complete it.
    """

    _execution: Execution

    @property
    def allocated_bytes(self) -> int:
        """Peak of the latest call of the program, bound or not, in bytes beyond its inputs."""
        return self._execution.allocated_bytes

    @property
    def report(self) -> Report:
        """Operations, memory, arrays and loops at the planning extents: ``tcgen report --json``.

        Raises:
            ArtifactError: the file of the report is missing or damaged.
        """
        artifact = self._execution.artifact
        page = artifact.text(PAGE) if artifact.has(PAGE) else None
        return Report(artifact.json("report.json"), page=page)

    def explain(self) -> str:
        """The formula sequence with the cost of each line."""
        return self._execution.artifact.text("explain.txt")

    def peak_bytes(self, extents: Mapping[str, int] | None = None) -> int:
        """Peak memory of a call in bytes beyond the inputs, with this machine's threads.

        For a bound program it includes all that is held between calls. It is ``allocated_bytes`` of
        a call at these extents whose arrays are in C order.

        Args:
            extents: extents by base space; by default the planning extents.

        Raises:
            ExtentError: an extent is missing, is negative, or is of no base space.
            BuildError: the first call cannot compile the source.
        """
        execution = self._execution
        chosen = self._chosen_extents(extents)
        layout, between = execution.layout(chosen), self._bytes_between_calls(chosen)
        layout = execution.layout_within_limit(layout, layout.use.outputs + between)
        return layout.use.peak + between

    def parts(self, extents: Mapping[str, int] | None = None) -> int:
        """Number of parts into which a call can be divided: ``program(..., part=(first, last))``.

        Parts are the iterations of the outermost loops of the volatile phase, in their order. A
        program has one part if it has no such loops that can run apart. That includes programs with
        a maximum, minimum or product over indices, since the results of parts are added.

        Args:
            extents: extents by base space; by default the planning extents.

        Raises:
            ExtentError: an extent is missing, is negative, or is of no base space.
        """
        return count_parts(self._manifest, self._chosen_extents(extents))

    def touches(
        self, first: int, last: int, extents: Mapping[str, int] | None = None
    ) -> dict[str, tuple[Rectangle, ...]]:
        """Rectangles of each input and output that the parts ``first .. last - 1`` read and write.

        A call of these parts needs no other elements of its inputs, and its results are zero
        elsewhere.

        Args:
            first: number of the first part.
            last: number after the last part, at most :meth:`parts`.
            extents: extents by base space; by default the planning extents.

        Returns:
            Rectangles by the name of the array: tuples of slices, one for each axis of the array
            that is passed. An array that the parts do not touch has none.

        Raises:
            ArgumentError: a number is not that of a part.
            ExtentError: an extent is missing, is negative, or is of no base space.
        """
        return touched(self._manifest, *self._part(first, last, extents))

    def seconds(self, first: int, last: int, extents: Mapping[str, int] | None = None) -> float:
        """Predicted time of a call of the parts ``first .. last - 1`` in seconds.

        It is the time of the volatile phase by the model of the objective ``time``, whose constants
        are those of the option ``machine``; it includes the statements that every part repeats.
        Arguments and errors are those of :meth:`touches`.
        """
        return predicted_seconds(self._manifest, *self._part(first, last, extents))

    def flops(self, first: int, last: int, extents: Mapping[str, int] | None = None) -> int:
        """Flops that a call of the parts ``first .. last - 1`` executes in its volatile phase.

        Several calls repeat the statements outside of the outermost loops: the sum of their flops
        less those of all parts at once.
        Arguments and errors are those of :meth:`touches`.
        """
        return executed_flops(self._manifest, *self._part(first, last, extents))

    def _repr_html_(self) -> str:
        """The equations in LaTeX and the costs, as far as the artifact has them."""
        artifact = self._execution.artifact
        blocks = [f"<p><b>{escape(repr(self))}</b></p>"]
        if artifact.has(EQUATIONS):
            body = escape(artifact.text(EQUATIONS).rstrip(), quote=False)
            equations = f"$$\\begin{{aligned}}\n{body}\n\\end{{aligned}}$$"
            blocks.append(f"<details open><summary>equations</summary>{equations}</details>")
        if artifact.has("report.json"):
            blocks.append(self.report._repr_html_())
        return "\n".join(blocks)

    @property
    def _manifest(self) -> Manifest:
        return self._execution.manifest

    def _bytes_between_calls(self, extents: Mapping[str, int]) -> int:
        """Bytes outside the arenas that are held from call to call."""
        del extents
        return 0

    def _part(
        self, first: int, last: int, given: Mapping[str, int] | None
    ) -> tuple[int, int, dict[str, int]]:
        """The checked numbers of some parts, and the extents of a call."""
        extents = self._chosen_extents(given)
        return (*checked_part(self._manifest, (first, last), extents), extents)

    def _chosen_extents(self, given: Mapping[str, int] | None) -> dict[str, int]:
        """Given extents, completed by the planning extents.

        Raises:
            ExtentError: an extent is missing, is negative, or is of no base space.
        """
        manifest, extents = self._manifest, dict(parse_extents(given))
        for base, extent in extents.items():
            if base not in manifest.bases or extent < 0:
                raise ExtentError(
                    f"extent {base}={extent}: give extents of at least 0 for "
                    f"{', '.join(manifest.bases)}"
                )
        chosen = {**dict(manifest.planning_extents), **extents}
        missing = [b for b in manifest.bases if b not in chosen]
        if missing:
            keywords = ", ".join(f'"{b}": 10' for b in missing)
            raise ExtentError(
                f"{manifest.name} was compiled without extents of {', '.join(missing)}: "
                f"pass extents={{{keywords}}}"
            )
        return chosen
