"""The documents of an artifact: its equations, plan, executed work and reports.

Levels 1 to 3 are stored as JSON text, exactly. A source span has only the name of its file, so that
the text does not depend on the folder from which the file was read.

A file that someone has changed may pass its checksum, which can be computed anew. Reading therefore
checks everything on which reports and the interpreter rely.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from ..artifact.codec import from_table, table_text, to_table
from ..artifact.folder import Artifact
from ..artifact.manifest import Manifest
from ..errors import ArtifactError, Span, VerifyError
from ..ir.executed import Executed
from ..ir.iteration_domain import is_sound
from ..ir.level import Level
from ..ir.plan import FusionPlan
from ..ir.system import System
from ..ir.tensor import Ref, Role, Tensor
from ..ir.verify import verify
from ..options import Options, changed_options

if TYPE_CHECKING:
    from .tuning import Choice

L = TypeVar("L", System, FusionPlan)
T = TypeVar("T")

SCHEMA = 3

_RECORDS = ("reproducible", "options", "pareto", "pareto_plan", "tuning", "names")


def compile_records(system: System, options: Options, choices: Sequence[Choice]) -> dict[str, Any]:
    """Entries of a report that do not follow from the plan and the manifest.

    ``options`` has those that differ from their defaults, ``names`` the names of the source that
    are not identifiers, ``tuning`` the measured variants; ``reproducible`` is False after tuning.
    """
    records: dict[str, Any] = {}
    if changed := changed_options(options):
        records["options"] = changed
    if system.written:
        records["names"] = dict(system.written)
    if options.tune:
        rows = [choice.row(times=False) for choice in choices]
        records |= {"tuning": rows, "reproducible": False}
    return records


def with_documents(
    artifact: Artifact,
    system: System,
    plan: FusionPlan,
    executed: Executed,
    records: dict[str, Any],
) -> Artifact:
    """The artifact with its equations, plan, work, report and explanation beside the sources."""
    from ..report import explain_text, report_html, report_json  # noqa: PLC0415

    report = report_json(plan, artifact.manifest, executed, plan.extent_of) | records
    documents = (
        ("system.json", encode(system)),
        ("equations.tex", system.latex() + "\n"),
        ("plan.json", encode(plan)),
        ("executed.json", encode(executed)),
        ("report.json", json.dumps(report, indent=1) + "\n"),
        ("report.html", report_html(system, plan, artifact.manifest, executed, report)),
        ("explain.txt", explain_text(plan, report)),
    )
    return artifact.with_files(documents)


def is_artifact(path: Path) -> bool:
    """True for the folder of a compiled program."""
    return (path / "manifest.json").is_file()


def load_artifact(path: Path) -> Artifact:
    """Read a saved program; an ArtifactError if it is missing, damaged, or of another version."""
    if not path.is_dir():
        raise ArtifactError(
            f"folder {path} does not exist: give the folder that tcgen compile wrote"
        )
    return Artifact.load(path)


def read_artifact_system(artifact: Artifact) -> System:
    """The equations of an artifact; an ArtifactError if missing, damaged or of another program."""
    return _read_level(artifact, "system.json", System)


def read_plan(artifact: Artifact) -> FusionPlan:
    """The plan of an artifact; an ArtifactError if it is missing, damaged or of another program."""
    return _read_level(artifact, "plan.json", FusionPlan)


def read_compile_records(artifact: Artifact) -> dict[str, Any]:
    """The :func:`compile_records` in an artifact's report, with its time-memory trade-off."""
    report = artifact.json("report.json")
    return {key: report[key] for key in _RECORDS if key in report}


def report_of(artifact: Artifact, plan: FusionPlan, extents: Mapping[str, int]) -> dict[str, Any]:
    """The report of an artifact at given extents of the base spaces."""
    from ..report import report_json  # noqa: PLC0415

    executed = read_executed(artifact, plan)
    report = report_json(plan, artifact.manifest, executed, extents)
    return report | read_compile_records(artifact)


def _read_level(artifact: Artifact, name: str, kind: type[L]) -> L:
    """The level in an artifact's file; an ArtifactError if it is unsound or of another program."""
    level = decode(artifact.text(name), kind)
    try:
        parts = tuple(_parts(level, set()))
        tensors = tuple(part for part in parts if isinstance(part, Tensor))
        for tensor in tensors:
            _check_tensor(tensor)
        for part in parts:
            if isinstance(part, Ref) and len(part.indices) != part.tensor.rank:
                raise VerifyError(f"{part} has another number of axes than its tensor")
        _check_program(tensors, artifact.manifest)
        verify(level)
    except (VerifyError, LookupError, ArithmeticError, ValueError, RecursionError) as error:
        raise ArtifactError(
            f"{name} of the program {artifact.manifest.name} is inconsistent ({error}): "
            f"compile the program again"
        ) from error
    return level


def read_executed(artifact: Artifact, plan: FusionPlan) -> Executed:
    """The operations that an artifact executes; an ArtifactError unless they fit its ``plan``."""
    name = "executed.json"
    executed = decode(artifact.text(name), Executed)
    spaces = {space for space, _ in plan.extents}
    domains = {amount.domain for work in executed.statements for amount in work.amounts}
    steps = {work.step for work in executed.statements} - {None}
    if not all(is_sound(d, spaces) for d in domains) or steps - set(range(len(plan.program.steps))):
        raise ArtifactError(
            f"{name} of the program {artifact.manifest.name} does not fit its plan: "
            f"compile the program again"
        )
    return executed


def _parts(part: object, seen: set[int]) -> Iterator[object]:
    """All dataclasses in a level, itself included; parts that are one object come once."""
    if id(part) in seen:
        return
    seen.add(id(part))
    if isinstance(part, tuple):
        for item in part:
            yield from _parts(item, seen)
    elif is_dataclass(part):
        yield part
        for field in fields(part):
            yield from _parts(getattr(part, field.name), seen)


def _check_tensor(tensor: Tensor) -> None:
    """Check that symmetry and storage fit the tensor's axes."""
    rank, storage = tensor.rank, tensor.storage
    axes = list(range(rank))
    orders = [s.perm for s in tensor.symmetry] + ([storage.order] if storage.order else [])
    pairs = [axis for p in storage.packed for axis in p.axes]
    sound = (
        all(sorted(order) == axes for order in orders)
        and all(s.sign in (1, -1) for s in tensor.symmetry)
        and len(set(pairs)) == len(pairs)
        and set(pairs) <= set(axes)
        and len(storage.within) in (0, rank)
    )
    if not sound:
        raise VerifyError(f"symmetry or storage of {tensor.name} does not fit its {rank} axes")


def _check_program(tensors: tuple[Tensor, ...], manifest: Manifest) -> None:
    """Check that tensors agree with a program's manifest."""
    arguments = {t.name: t.spaces for t in manifest.tensors}
    for tensor in tensors:
        expected = arguments.get(tensor.name)
        if tensor.role is not Role.TEMP and expected not in (None, tensor.spaces):
            raise VerifyError(f"{tensor.name} has other axes in the manifest")
    here = {t.name for t in tensors if t.role is Role.OUTPUT}
    there = {t.name for t in manifest.tensors if t.role is Role.OUTPUT}
    if here != there:
        raise VerifyError(f"its outputs are {', '.join(sorted(here))}, those of another program")


def encode(level: object) -> str:
    """JSON text of a system, program or plan, or of a part of one.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> decode(encode(Space("o", 10)), Space).extent
        10
    """
    if isinstance(level, Level):  # the cache's file names and an artifact need the same text
        return level.derived("text", lambda: _encoded(level))
    return _encoded(level)


def _encoded(level: object) -> str:
    return f'{{"schema":{SCHEMA},{table_text(to_table(level, _without_folder))}}}\n'


def decode(text: str, kind: type[T]) -> T:
    """The object that :func:`encode` wrote.

    An ArtifactError refuses damaged text, another version of tcgen, and objects of another class.
    """
    try:
        data = json.loads(text)
        schema = data["schema"]
        if schema == SCHEMA:
            return from_table(kind, data)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(
            f"the text of a {kind.__name__} is damaged ({error!r}): compile again"
        ) from error
    raise ArtifactError(
        f"the text of a {kind.__name__} has schema {schema}, this tcgen reads {SCHEMA}: "
        f"compile again"
    )


def _without_folder(part: Any) -> Any:
    return replace(part, file=PurePath(part.file).name) if isinstance(part, Span) else part
