"""Calls with dask arrays: inputs are computed on the workers, and results stay there.

A sliced result is a dask array with a chunk for each slice; a sum is one chunk, which a worker adds
in the order of the tasks, and so for other reductions. Only times and counts come back to the
client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any
from uuid import uuid4

import numpy as np

from ..errors import ArgumentError
from .dask_client import DaskEngine
from .handles import Handle, InMessage
from .plan import Plan
from .slicing import SlicedOutput
from .stage import Stage, Task, begin, put, source_names
from .stored import Stored
from .worker import Done, Job


class Recipe:
    """An array that a worker has or makes again."""

    moves = True
    holders = 1

    def __init__(self, future: Any, token: str) -> None:
        self.future, self.token = future, token

    def open(self) -> Any:
        """The array, fetched."""
        return self.future.result().open()


def is_dask_array(value: object) -> bool:
    """True for an array of dask, which is not loaded for the question."""
    return type(value).__module__.startswith("dask.") and hasattr(value, "chunks")


def check_chunks(name: str, array: Any) -> None:
    """Refuse an array whose shape is not known before it is computed.

    Raises:
        ArgumentError: with the call that finds it.
    """
    if any(isnan(n) for n in array.shape):
        raise ArgumentError(
            f"{name} is a dask array with chunks of unknown shape {array.shape}: call "
            f"{name}.compute_chunk_sizes() first"
        )


def run_on_dask_arrays(
    engine: DaskEngine,
    run: str,
    plan: Plan,
    stages: Sequence[Handle],
    held: Mapping[str, Stored | Handle],
    given: Mapping[str, Any],
    memory: int,
) -> tuple[dict[str, Any], dict[str, Handle], list[tuple[Task, Done]]]:
    """The results as dask arrays, the handles of all arrays, and what each task did.

    Args:
        engine: of the client.
        run: names the distributed program.
        plan: stages and tasks.
        stages: as they were sent.
        held: constants.
        given: arrays of the call, of NumPy or dask.
        memory: bytes of a worker.
    """
    handles: dict[str, Handle] = {}
    results: dict[str, Any] = {}
    done: list[tuple[Task, Done]] = []
    for stage, sent in zip(plan.stages, stages, strict=True):
        for name in source_names((stage,)):
            if name in given and name not in handles:
                handles[name] = _shared(engine, given[name])
            elif name in results and name not in handles:
                handles[name] = _shared(engine, results[name])
        needed = {n: handles[n] for n in source_names((stage,)) if n in handles}
        tasks = [t for t in plan.tasks if t.stage == stage.number]
        futures = engine.submit(Job(run, sent, held, needed, memory), tasks)
        short = engine.few_at_a_time(engine.client.submit(_head, f) for f in futures)
        heads = engine.client.gather(short, direct=True)
        done.extend(zip(tasks, heads, strict=True))
        program = plan.programs[stage.number]
        for output in stage.outputs:
            blocks = [stage.writings(program, t.first, t.last) for t in tasks]
            rectangles = [next(w for w in b if w.name == output.name).rectangles for b in blocks]
            results[output.name] = _result(engine, stage, output.name, futures, rectangles)
    return results, handles, done


def _shared(engine: DaskEngine, array: Any) -> Handle:
    if not is_dask_array(array):
        return engine.share(np.asarray(array, order="C"))
    import distributed  # noqa: PLC0415  (needs the extra)

    token = uuid4().hex
    computed = engine.client.compute(array)
    arrived = engine.client.submit(InMessage, computed, token, pure=False)
    # Else all tasks begin at once when it is there, and the scheduler sends them in one message.
    wait: Any = distributed.wait
    with engine.client.as_current():
        wait(arrived)
    return Recipe(arrived, token)


def _result(
    engine: DaskEngine, stage: Stage, name: str, futures: Sequence[Any], rectangles: Sequence[Any]
) -> Any:
    from dask import array  # noqa: PLC0415  (needs the extra)

    dask: Any = array
    output = next(o for o in stage.outputs if o.name == name)
    dtype, shape = np.dtype(stage.dtype(name)), stage.output_shape(name)
    submit = engine.client.submit
    if output.how != "place" or output.axis is None:
        whole = submit(_reduced, output, shape, dtype.str, list(futures), pure=False)
        return dask.from_delayed(whole, shape, dtype)
    shapes = []
    axis = 0
    for (rectangle,) in rectangles:
        lengths = tuple(s.stop - s.start for s in rectangle)
        axis = next((k for k, n in enumerate(lengths) if n != shape[k]), axis)
        shapes.append(lengths)
    blocks = engine.few_at_a_time(submit(_block, name, future, pure=False) for future in futures)
    chunks = [dask.from_delayed(b, n, dtype) for b, n in zip(blocks, shapes, strict=True)]
    return dask.concatenate(chunks, axis=axis)


def _head(done: Done) -> Done:
    return replace(done, blocks={})


def _block(name: str, done: Done) -> Any:
    return done.blocks[name][0][1]


def _reduced(output: SlicedOutput, shape: tuple[int, ...], dtype: str, done: Sequence[Done]) -> Any:
    result = np.empty(shape, dtype)
    begin(output, result)
    for part in done:
        for rectangle, block in part.blocks[output.name]:
            put(output, result, rectangle, block)
    return result
