"""From a module (level 4) to an artifact: sources, manifest, and the runtime that they need.

Modules in their order of work: ``scope`` (buffers and variables of a kernel, with legal names),
``manifest`` and ``parts`` (plain data for the runtime), ``printing`` (text for all targets), the
printers ``c``, ``cuda`` and ``python``, and ``package`` (the Python side of an artifact). Generated
control flow stands in ``templates/c/kernels`` and ``templates/cuda/kernels``: a printer chooses a
part and fills its places.
"""

from __future__ import annotations

from .._version import __version__
from ..artifact.folder import Artifact
from ..artifact.kernel_abi import ROUND_EACH
from ..artifact.manifest import SOURCES
from ..dtypes import fits
from ..errors import ArgumentError, VerifyError
from ..ir.expr import Const, nodes
from ..ir.loop_analysis import statements, written_buffers
from ..ir.loops import Assign, Module, Zero
from ..records.loops import launched
from ..thresholds.cpu import CpuThresholds
from ..thresholds.time_model import Machine
from .c.contraction import contraction_libraries
from .c.kernels import c_source
from .manifest import make_manifest
from .package import package_text, runtime_files

__all__ = ["emit_artifact", "make_manifest"]


def emit_artifact(
    module: Module,
    *,
    target: str,
    planning_extents: tuple[tuple[str, int], ...] = (),
    memory_limit: int | None = None,
    machine: Machine = Machine(),
    round_each: bool = False,
    thresholds: CpuThresholds = CpuThresholds(),
    with_runtime: bool = True,
    counted: bool = False,
) -> Artifact:
    """Print a verified module for a target; equal modules and options give equal bytes anywhere.

    Args:
        module: verified loops.
        target: ``cpu`` (C with OpenMP), ``cuda`` (of a module that is bound to a GPU) or ``numpy``.
        planning_extents: extents by base space, for spaces that occur in no array.
        memory_limit: bytes the program may allocate beyond its inputs, or None.
        machine: constants of predicted times.
        round_each: loops round each product before it is added, as NumPy does.
        thresholds: thresholds for loops of the target ``cpu``.
        with_runtime: the folder has the runtime, so that it runs without tcgen.
        counted: the C counts the flops that it executes, by step, in its array ``tc_counted``.

    Raises:
        ArgumentError: the target is unknown, an input is named ``out``, or factoring multiplied
            numbers of the equations to one that the element type cannot hold.
        VerifyError: an accumulating output is written in the constant phase.
    """
    if target not in SOURCES:
        raise ArgumentError(f"target {target!r} is not one of {', '.join(SOURCES)}")
    manifest = make_manifest(
        module,
        target=target,
        planning_extents=planning_extents,
        memory_limit=memory_limit,
        machine=machine,
    )
    _check_accumulation(module)
    _check_numbers(module)
    if target == "cpu":
        extents = dict(planning_extents)
        text = c_source(module, __version__, thresholds, extents, machine, counted=counted)
    else:
        text = _source(module, target)
    if round_each and target != "numpy":
        text = f"{ROUND_EACH}\n{text}"
    libraries = contraction_libraries(module, __version__) if target == "cpu" else ()
    files = (
        ("__init__.py", package_text(manifest)),
        *libraries,
        (SOURCES[target], text),
        *(runtime_files() if with_runtime else ()),
    )
    return Artifact(manifest, tuple(sorted(files)))


def _source(module: Module, target: str) -> str:
    """The text of the kernels for other targets than cpu; a printer is loaded when it is used."""
    if target == "cuda":
        from .cuda.kernels import cuda_source  # noqa: PLC0415

        return cuda_source(module, __version__)
    from .python.kernels import numpy_source  # noqa: PLC0415

    return numpy_source(module, __version__)


def _check_accumulation(module: Module) -> None:
    """Refuse an output that adds to the caller's array in the constant phase, before any call."""
    kernels = {k.name: k for k in module.kernels}
    for name in launched(module.host_constant):
        for stmt in kernels[name].body:
            for written in written_buffers(stmt):
                tensor = module.buffer(written).tensor
                if tensor is not None and tensor.accumulate:
                    raise VerifyError(
                        f"kernel {name} writes {tensor.name} in the constant phase, but "
                        f"{tensor.name} adds to the array of each call"
                    )


def _check_numbers(module: Module) -> None:
    """Refuse numbers that are infinite or zero in the element type."""
    for kernel in module.kernels:
        for stmt, _ in statements(kernel.body):
            if isinstance(stmt, Zero):
                continue
            numbers = [stmt.coeff]
            if isinstance(stmt, Assign):
                numbers += [n.value for n in nodes(stmt.expr) if isinstance(n, Const)]
            for number in numbers:
                if not fits(number, module.dtype):
                    raise ArgumentError(
                        f"the equations multiply numbers to one outside the range of "
                        f"{module.dtype}: scale the equations"
                    )
