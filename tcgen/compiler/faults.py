"""Faults of tcgen in a stage of a compilation, and the plainer plans that are tried after one.

A fault is a check of a level that fails, or an error that no stage raises on purpose.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from ..errors import CheckError, TcgenError, VerifyError
from ..options import Options, changed_options
from .tracer import Tracer

T = TypeVar("T")


def without_fault(make: Callable[[Options], T], name: str, options: Options, tracer: Tracer) -> T:
    """What ``make`` returns for the options of a program, or after a fault for a plainer plan.

    A RuntimeWarning describes the fault and names the plan that takes the place of the other.

    Raises:
        VerifyError: a stage has a fault, and no plainer plan is made.
    """
    try:
        return make(options)
    except Exception as error:
        if not _is_fault(error) or error is tracer.of_progress:
            raise
        fault, stage = error, tracer.stage
    given = {"target": options.target, "dtype": options.dtype, **changed_options(options)}
    text = (
        f"tcgen has a fault in the stage {stage} of {name} ({type(fault).__name__}: {fault}): "
        f"please report it with the spec, its extents and the options "
        f"{' '.join(f'--{option} {value}'.rstrip() for option, value in given.items())}"
    )
    for plainer in _plainer(options, stage):
        try:
            made = make(plainer)
        except Exception as error:
            if error is tracer.of_progress:
                raise
            continue
        order = "" if plainer.optimize == options.optimize else " and the factoring as written"
        taken = f"the objective {plainer.objective}{order}"
        warnings.warn(f"{text}. The program has {taken} instead", RuntimeWarning, stacklevel=4)
        return made
    raise VerifyError(text) from fault


def _is_fault(error: Exception) -> bool:
    """Whether an error is neither raised on purpose nor due to the machine or a warning filter."""
    others = (TcgenError, OSError, MemoryError, ImportError, Warning)
    return isinstance(error, VerifyError | CheckError) or not isinstance(error, others)


def _plainer(options: Options, stage: str) -> Iterator[Options]:
    """Requests for plans that share fewer loops, then for the factoring as written."""
    last = options
    if stage != "program":
        tight = options.memory_limit is not None or options.sliced
        for objective in ("peak", "none") if tight else ("none",):
            if objective != last.objective:
                last = replace(options, objective=objective, machine=None, pareto=False)
                yield last
    if options.optimize:
        yield replace(last, optimize=False)
