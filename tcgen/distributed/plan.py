"""Cut a program into stages and tasks for workers with a given amount of memory.

A program that numbers its iterations runs ranges of them. Any other program is compiled again for
ranges of a space. Shorter ranges need less memory; the plan takes the longest that fit, or names
the smallest memory that works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

from ..artifact.folder import Artifact
from ..artifact.manifest import array_bytes
from ..compiler.documents import read_artifact_system, read_plan
from ..compiler.driver import compile_system
from ..dtypes import BY_NAME
from ..errors import ArgumentError, MemoryLimitError, PlanError
from ..ir.cost import Poly
from ..options import Options
from ..records.loops import LoopVar
from ..records.tensors import Space
from ..runtime.program import Program
from .slicing import Restricted, SlicedOutput, SlicedStage, sliceable_spaces, sliced_stages
from .stage import Stage, Task, lean, rectangle_bytes

PARTS_PER_SLOT = 8  # short last tasks balance the workers; more tasks only cost messages


@dataclass(frozen=True, slots=True)
class Cluster:
    """The workers that a plan is for.

    ``slots``, ``slots_per_worker``, ``ranks`` and ``on_gpus`` are those of ``executor.Engine``. A
    worker has ``memory`` bytes, and a task takes at least ``task_seconds`` by prediction.
    """

    slots: int
    slots_per_worker: int
    memory: int
    task_seconds: float = 0.2
    ranks: int = 0
    on_gpus: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Stages in order, with their programs and tasks.

    Attributes:
        stages: stages as the workers receive them.
        programs: program of each stage.
        tasks: tasks of all stages, in order.
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
    """No cut fits: a worker needs at least ``min_bytes``, which work with the tasks ``cut``."""

    min_bytes: int
    cut: str


def make_plan(
    program: Program,
    extents: Mapping[str, int],
    held: Mapping[str, int],
    cluster: Cluster,
    along: str | None = None,
) -> Plan:
    """The plan of fewest tasks that fit into the memory of a worker.

    ``held`` has bytes by name of whole inputs that workers store between calls; 0 for references.
    ``along`` names the space to cut; None chooses.

    Raises:
        MemoryLimitError: no plan fits; the message has the smallest memory that works.
        PlanError: neither the iterations nor the equations of the program can be cut.
    """
    found = find_plan(program, extents, held, cluster, along)
    if isinstance(found, Plan):
        return found
    advice = f"give memory={found.min_bytes}, "
    if cluster.on_gpus:
        advice += "where GPUs have so much, smaller extents, or cut another space (along=...)"
    else:
        advice += "fewer threads a worker, or more of the inputs as references (tcgen.stored)"
    who = "GPU" if cluster.on_gpus else "worker"
    raise MemoryLimitError(
        f"{program.manifest.name}: a {who} needs at least {found.min_bytes:,} bytes (with "
        f"{found.cut}), and {cluster.memory:,} are allowed: {advice}"
    )


def find_plan(
    program: Program,
    extents: Mapping[str, int],
    held: Mapping[str, int],
    cluster: Cluster,
    along: str | None = None,
) -> Plan | Shortage:
    """The plan of :func:`make_plan`, or the memory that it lacks."""
    if any(extents[base] == 0 for base in extents):
        raise PlanError(
            f"{program.manifest.name} has a space of extent 0, which leaves nothing to "
            f"distribute: call the program itself"
        )
    small = _seconds(program, extents) < 2 * cluster.task_seconds
    if along is None and (program.parts(extents) > 1 or small):
        candidate = _of_iterations(program, extents, cluster)
    else:
        candidate = _of_space(program, extents, cluster, along)
    return _fitted(candidate, held, cluster)


# ---------------------------------------------------------------- stages


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Stages that could run, and the number of their tasks if memory does not matter.

    Tasks of all stages are ranges of as many iterations; ``single`` names one of a single
    iteration. ``flops`` are those of a task of each stage, by the first and the end of its range;
    ``whole_flops`` are those of the program in one piece.
    """

    stages: tuple[Stage, ...]
    programs: tuple[Program, ...]
    flops: tuple[Callable[[int, int], float], ...]
    whole_flops: float
    tasks: int
    single: str


def _of_iterations(program: Program, extents: Mapping[str, int], cluster: Cluster) -> _Candidate:
    """The program itself, which runs ranges of the iterations of its outermost loops."""
    manifest, count = program.manifest, program.parts(extents)
    stage = Stage(
        lean(program.artifact),
        tuple(sorted(extents.items())),
        () if manifest.parts is None else manifest.parts.chain,
        tuple(Restricted(t.name, t.name, None) for t in manifest.tensors if t.is_input),
        tuple(SlicedOutput(t.name, None, "reduce") for t in manifest.outputs),
    )
    return _Candidate(
        (stage,),
        (program,),
        (lambda first, last: program.flops(first, last, extents),),
        program.flops(0, count, extents),
        _task_count(_seconds(program, extents), count, cluster, PARTS_PER_SLOT),
        "tasks of one iteration",
    )


def _of_space(
    program: Program, extents: Mapping[str, int], cluster: Cluster, along: str | None
) -> _Candidate:
    """Programs for ranges of a space, compiled from the equations."""
    system = read_artifact_system(program.artifact)
    space = _chosen(program, sliceable_spaces(system), extents, along)
    whole = read_plan(program.artifact)
    # More ranges than tasks at one time would only repeat more work.
    tasks = _task_count(_seconds(program, extents), extents[space], cluster, 1)
    objective = whole.solve.objective if whole.solve is not None else "none"
    stages, programs, flops = [], [], []
    for number, sliced in enumerate(sliced_stages(system, space, extents, tasks)):
        length = -(-extents[space] // tasks)
        options = _options(program.artifact, objective, sliced, extents, length)
        compiled = compile_system(sliced.system, options)
        stage = Stage(
            lean(compiled.artifact),
            tuple(sorted(extents.items())),
            (LoopVar(space, Space(space)),),
            sliced.inputs,
            sliced.outputs,
            sliced.here,
            number,
        )
        stages.append(stage)
        programs.append(Program(compiled.artifact))
        flops.append(partial(_flops_of_range, compiled.program.flops(), stage))
    return _Candidate(
        tuple(stages),
        tuple(programs),
        tuple(flops),
        whole.program.flops().value(dict(extents)),
        tasks,
        f"slices of one element of {space}",
    )


def _flops_of_range(flops: Poly, stage: Stage, first: int, last: int) -> float:
    return float(flops.value(stage.extents_of(first, last)))


def _fitted(found: _Candidate, held: Mapping[str, int], cluster: Cluster) -> Plan | Shortage:
    """The plan with the fewest tasks that fit into a worker's memory."""
    count = found.stages[0].iterations
    need = 0
    for number in _growing(found.tasks, count):
        ranges = _ranges(count, number)
        need = _results(found.stages, cluster) + max(
            _need(program, stage, ranges, held, cluster)
            for program, stage in zip(found.programs, found.stages, strict=True)
        )
        if need <= cluster.memory:
            return _planned(found, ranges, need)
    return Shortage(need, f"{count} {found.single} each")


def _planned(found: _Candidate, ranges: tuple[tuple[int, int], ...], need: int) -> Plan:
    tasks, executed = [], 0.0
    for stage, program, flops in zip(found.stages, found.programs, found.flops, strict=True):
        for n, (first, last) in enumerate(ranges):
            executed += flops(first, last)
            tasks.append(Task(stage.number, n, first, last, stage.seconds(program, first, last)))
    repeated = executed / found.whole_flops if found.whole_flops else 1.0
    text = tuple(_described(stage, len(ranges)) for stage in found.stages)
    return Plan(found.stages, found.programs, tuple(tasks), need, repeated, text)


def _chosen(
    program: Program, spaces: tuple[str, ...], extents: Mapping[str, int], along: str | None
) -> str:
    """The space to cut: the given one, else the largest."""
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
    if not stage.here:
        name = stage.artifact.manifest.name
        return f"parts of {name}: {stage.iterations} iterations in {number} tasks"
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
    """Bytes of a worker for the task that needs most: its allocations, and all its arrays.

    Ranges of a space with equal lengths need the same. Ranges of the program's own iterations may
    read more or less of an array; one that needs too much ends the search.
    """
    longest = max(ranges, key=lambda r: r[1] - r[0])
    need = _task_need(program, stage, *longest, held, cluster)
    for first, last in () if stage.here else ranges:
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
            own += reading.array_bytes
            if reading.unpacking is not None:
                # Each rectangle is read before it is unpacked.
                own += max(
                    (rectangle_bytes(r, reading.itemsize) for r in reading.rectangles), default=0
                )
        # Of an array that is cut, the rest stays in the memory of the CPU.
        if cluster.on_gpus and reading.shrunk:
            continue
        if reading.source in held and held[reading.source] == 0 and not cluster.on_gpus:
            # Only the read elements of a reference are in memory.
            read += 0 if reading.shrunk else reading.nbytes
        elif reading.source not in counted:
            counted.add(reading.source)
            sent += reading.whole_bytes
    if stage.here:
        constant = [t for t in program.manifest.tensors if not t.volatile]
        extents = stage.extents_of(first, last)
        results = program.manifest.constant_outputs
        if constant:
            own += sum(array_bytes(t, program.manifest, extents) for t in results)
    return read + _share(sent, cluster) + own * cluster.slots_per_worker


def _results(stages: Iterable[Stage], cluster: Cluster) -> int:
    """Bytes of the whole results in the memory of a worker."""
    results = {o.name: stage for stage in stages for o in stage.outputs}
    total = 0
    for name, stage in results.items():
        count = BY_NAME[stage.dtype(name)].itemsize
        total += count * prod(stage.output_shape(name))
    if cluster.on_gpus:
        # With the blocks that another GPU sends.
        return total * (2 if cluster.slots > 1 else 1)
    return _share(total, cluster) if cluster.ranks else 0


def _share(count: int, cluster: Cluster) -> int:
    return -(-count // max(1, cluster.ranks))


def _task_count(seconds: float, most: int, cluster: Cluster, a_slot: int) -> int:
    """Number of tasks: some for each slot, unless they become shorter than ``task_seconds``."""
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
