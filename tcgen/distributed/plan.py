"""How a program is cut for a number of workers with so much memory each: stages and tasks.

A program whose iterations are numbered is cut into parts. Any other one is compiled again for
slices of a space. More slices need less memory each; the plan takes the fewest that fit, and says
what the least memory is where none do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from ..artifact.folder import Artifact
from ..artifact.manifest import array_bytes
from ..compiler.driver import compile_system, read_artifact_system, read_plan
from ..dtypes import BY_NAME
from ..errors import ArgumentError, MemoryLimitError, PlanError
from ..options import Options
from ..runtime.program import Program
from .slicing import Restricted, SlicedOutput, SlicedStage, sliceable_spaces, sliced_stages
from .stage import Stage, Task, lean, rectangle_bytes

PARTS_PER_SLOT = 8  # enough that the last task of a worker is short; more only cost messages


@dataclass(frozen=True, slots=True)
class Cluster:
    """The workers that a plan is for.

    Attributes:
        slots: tasks that run at one time.
        slots_per_worker: of these in one process, which share arrays.
        memory: bytes of a worker.
        task_seconds: the least predicted seconds of a task.
        ranks: workers of a node that have one copy of arrays and results; 0 where each worker has
            its own arrays, and none has the results.
    """

    slots: int
    slots_per_worker: int
    memory: int
    task_seconds: float = 0.2
    ranks: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Stages in order, each with its program, its tasks, and what a worker needs for it.

    Attributes:
        stages: as the workers receive them.
        programs: of the stages.
        tasks: of all stages, in order.
        need: bytes of a worker.
        repeated: flops of all tasks over those of the whole program.
        text: a line for each stage.
    """

    stages: tuple[Stage, ...]
    programs: tuple[Program, ...]
    tasks: tuple[Task, ...]
    need: int
    repeated: float
    text: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shortage:
    """No cut fits into the memory of a worker.

    Attributes:
        least: bytes of a worker that suffice.
        how: the tasks for which they do.
    """

    least: int
    how: str


def make_plan(
    program: Program,
    extents: Mapping[str, int],
    held: Mapping[str, int],
    cluster: Cluster,
    along: str | None = None,
) -> Plan:
    """The plan of fewest tasks that fit into the memory of a worker.

    Args:
        program: the user's.
        extents: of all base spaces.
        held: bytes by name of the inputs that workers keep between calls, of whole arrays.
        cluster: the workers.
        along: name of the space to slice, for programs without parts; None chooses.

    Raises:
        MemoryLimitError: no plan fits; the message has the least memory that does.
        PlanError: the program has no parts, and its equations cannot be sliced.
        ArgumentError: ``along`` is no space of the program.
    """
    found = find_plan(program, extents, held, cluster, along)
    if isinstance(found, Plan):
        return found
    raise MemoryLimitError(
        f"{program.manifest.name}: a worker needs at least {found.least:,} bytes (with "
        f"{found.how}), and {cluster.memory:,} are allowed: give memory={found.least}, fewer "
        f"threads a worker, or more of the inputs as references (tcgen.stored)"
    )


def find_plan(
    program: Program,
    extents: Mapping[str, int],
    held: Mapping[str, int],
    cluster: Cluster,
    along: str | None = None,
) -> Plan | Shortage:
    """The plan of :func:`make_plan`, or what is missing.

    Raises:
        PlanError: the program has no parts, and its equations cannot be sliced.
        ArgumentError: ``along`` is no space of the program.
    """
    if any(extents[base] == 0 for base in extents):
        raise PlanError(
            f"{program.manifest.name} has a space of extent 0, which leaves nothing to "
            f"distribute: call the program itself"
        )
    small = _seconds(program, extents) < 2 * cluster.task_seconds
    if along is None and (program.parts(extents) > 1 or small):
        return _parts(program, extents, held, cluster)
    return _slices(program, extents, held, cluster, along)


# ---------------------------------------------------------------- parts


def _parts(
    program: Program, extents: Mapping[str, int], held: Mapping[str, int], cluster: Cluster
) -> Plan | Shortage:
    count = program.parts(extents)
    manifest = program.manifest
    stage = Stage(
        lean(program.artifact),
        "parts",
        tuple(sorted(extents.items())),
        tuple(Restricted(t.name, t.name, None) for t in manifest.tensors if t.is_input),
        tuple(SlicedOutput(t.name, None, "reduce") for t in manifest.outputs),
    )
    total = program.seconds(0, count, extents)
    wanted = _tasks_wanted(total, count, cluster, PARTS_PER_SLOT)
    need = 0
    for number in _growing(wanted, count):
        ranges = _ranges(count, number)
        need = _need(program, stage, ranges, held, cluster) + _results((stage,), cluster)
        if need <= cluster.memory:
            tasks = tuple(
                Task(0, n, first, last, program.seconds(first, last, extents))
                for n, (first, last) in enumerate(ranges)
            )
            text = f"parts of {manifest.name}: {count} iterations in {number} tasks"
            executed = sum(program.flops(first, last, extents) for first, last in ranges)
            whole = program.flops(0, count, extents)
            repeated = executed / whole if whole else 1.0
            return Plan((stage,), (program,), tasks, need, repeated, (text,))
    return Shortage(need, f"{count} tasks of one iteration each")


# ---------------------------------------------------------------- slices


def _slices(
    program: Program,
    extents: Mapping[str, int],
    held: Mapping[str, int],
    cluster: Cluster,
    along: str | None,
) -> Plan | Shortage:
    system = read_artifact_system(program.artifact)
    space = _chosen(program, sliceable_spaces(system), extents, along)
    whole = read_plan(program.artifact)
    whole_flops = whole.program.flops().value(dict(extents))
    extent = extents[space]
    wanted = _tasks_wanted(_seconds(program, extents), extent, cluster, 1)  # slices repeat work
    made = sliced_stages(system, space, extents, wanted)
    here = -(-extent // wanted)
    objective = whole.solve.objective if whole.solve is not None else "none"
    stages, programs, flops = [], [], []
    for number, sliced in enumerate(made):
        compiled = compile_system(
            sliced.system, _options(program.artifact, objective, sliced, extents, here)
        )
        stages.append(
            Stage(
                lean(compiled.artifact),
                "slices",
                tuple(sorted(extents.items())),
                sliced.inputs,
                sliced.outputs,
                space,
                sliced.here,
                number,
            )
        )
        programs.append(Program(compiled.artifact))
        flops.append(compiled.program.flops())
    need = 0
    for number in _growing(wanted, extent):
        ranges = _ranges(extent, number)
        need = max(
            _need(p, s, ranges, held, cluster) for p, s in zip(programs, stages, strict=True)
        ) + _results(stages, cluster)
        if need <= cluster.memory:
            tasks, executed = [], 0.0
            for stage, own, polynomial in zip(stages, programs, flops, strict=True):
                for n, (first, last) in enumerate(ranges):
                    here_now = stage.extents_of(first, last)
                    executed += float(polynomial.value(here_now))
                    tasks.append(Task(stage.number, n, first, last, _seconds(own, here_now)))
            repeated = executed / whole_flops if whole_flops else 1.0
            text = tuple(_described(s, number) for s in stages)
            return Plan(tuple(stages), tuple(programs), tuple(tasks), need, repeated, text)
    return Shortage(need, f"{extent} slices of one element of {space} each")


def _chosen(
    program: Program, spaces: tuple[str, ...], extents: Mapping[str, int], along: str | None
) -> str:
    """The space to slice: the one that was asked for, else the largest."""
    name = program.manifest.name
    if along is not None:
        if along not in program.manifest.bases:
            raise ArgumentError(
                f"along={along!r} is not a base space of {name}: choose one of "
                f"{', '.join(program.manifest.bases)}"
            )
        return along
    if not spaces:
        raise PlanError(
            f"{name} cannot be distributed: its iterations cannot run apart, since it is not a "
            f"single nest of loops, and no space is walked by every output, as an axis or in a "
            f"sum, maximum, minimum or product. "
            f"Name a space with along=..., or run the program on one machine"
        )
    return max(spaces, key=lambda s: extents[s])


def _options(
    artifact: Artifact,
    objective: str,
    sliced: SlicedStage,
    extents: Mapping[str, int],
    here: int,
) -> Options:
    manifest = artifact.manifest
    used = {b.name for t in sliced.system.tensors for s in t.spaces for b in s.bases}
    chosen = {**extents, sliced.here: here}
    bases = [s.name for s in sliced.system.spaces if not s.parts]
    return Options(
        extents=tuple(sorted((b, chosen[b]) for b in bases if b in used or b in chosen)),
        target=manifest.target,
        dtype=manifest.dtype,
        objective=objective,
    )


def _described(stage: Stage, number: int) -> str:
    results = ", ".join(o.name for o in stage.outputs)
    whole = [i.source for i in stage.inputs if i.axis is None]
    return (
        f"slices of {stage.along}: {number} tasks make {results}"
        f"{'; each reads all of ' + ', '.join(dict.fromkeys(whole)) if whole else ''}"
    )


# ---------------------------------------------------------------- memory, tasks


def _need(
    program: Program,
    stage: Stage,
    ranges: tuple[tuple[int, int], ...],
    held: Mapping[str, int],
    cluster: Cluster,
) -> int:
    """Bytes of a worker for the task that needs most: what it allocates, and all its arrays.

    Equal slices need the same. Parts that have as many iterations read more or less of an array; a
    part that needs too much already ends the search.
    """
    longest = max(ranges, key=lambda r: r[1] - r[0])
    need = _task_need(program, stage, *longest, held, cluster)
    for first, last in ranges if stage.kind == "parts" else ():
        if need > cluster.memory:
            break
        need = max(need, _task_need(program, stage, first, last, held, cluster))
    return need


def _task_need(
    program: Program,
    stage: Stage,
    first: int,
    last: int,
    held: Mapping[str, int],
    cluster: Cluster,
) -> int:
    own = program.peak_bytes(stage.extents_of(first, last))
    read = sent = 0
    counted = set()
    for reading in stage.readings(program, first, last):
        if stage.entry(reading.name).role == "generated":
            continue
        if reading.shrunk:
            own += reading.kept_bytes
            if reading.unpacking is not None:  # each rectangle is read before it is unpacked
                own += max(
                    (rectangle_bytes(r, reading.itemsize) for r in reading.rectangles), default=0
                )
        if reading.source in held and held[reading.source] == 0:  # a reference: only what is read
            read += 0 if reading.shrunk else reading.nbytes
        elif reading.source not in counted:
            counted.add(reading.source)
            count = reading.itemsize
            for n in reading.shape:
                count *= n
            sent += count
    if stage.kind == "slices":
        constant = [t for t in program.manifest.tensors if not t.volatile]
        extents = stage.extents_of(first, last)
        results = program.manifest.constant_outputs
        if constant:
            own += sum(array_bytes(t, program.manifest, extents) for t in results)
    return read + _share(sent, cluster) + own * cluster.slots_per_worker


def _results(stages: Iterable[Stage], cluster: Cluster) -> int:
    """Bytes of the whole results that a worker has."""
    results = {o.name: stage for stage in stages for o in stage.outputs}
    total = 0
    for name, stage in results.items():
        count = BY_NAME[stage.dtype(name)].itemsize
        total += count * prod(stage.output_shape(name))
    return _share(total, cluster) if cluster.ranks else 0


def _share(count: int, cluster: Cluster) -> int:
    return -(-count // max(1, cluster.ranks))


def _tasks_wanted(seconds: float, most: int, cluster: Cluster, a_slot: int) -> int:
    """As many tasks a slot as asked for, as long as each is worth its message."""
    most = min(most, cluster.slots * a_slot)
    if cluster.task_seconds <= 0:
        return most
    return max(1, min(most, int(seconds / cluster.task_seconds)))


def _seconds(program: Program, extents: Mapping[str, int]) -> float:
    """Predicted seconds of a call of the program."""
    return program.seconds(0, program.parts(extents), extents)


def _growing(first: int, most: int) -> Iterator[int]:
    number = first
    while number < most:
        yield number
        number = min(most, max(number + 1, number * 5 // 4))
    yield most


def _ranges(count: int, number: int) -> tuple[tuple[int, int], ...]:
    return tuple((k * count // number, (k + 1) * count // number) for k in range(number))
