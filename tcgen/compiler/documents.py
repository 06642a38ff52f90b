"""The equations, plan and work that lie beside a saved program: consistent, and of this program.

A file that someone has changed may pass its checksum, which can be computed anew. What is read here
is therefore checked as far as reports and the interpreter rely on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import TypeVar

from ..artifact.folder import Artifact
from ..artifact.manifest import Manifest
from ..errors import ArtifactError, VerifyError
from ..ir.executed import Executed
from ..ir.iteration_domain import is_sound
from ..ir.plan import FusionPlan
from ..ir.system import System
from ..ir.tensor import Ref, Role, Tensor
from ..ir.verify import verify
from .serialize import decode

L = TypeVar("L", System, FusionPlan)


def read_document(artifact: Artifact, name: str, kind: type[L]) -> L:
    """The level in a file of an artifact.

    Args:
        artifact: with the file.
        name: of the file.
        kind: class of the level.

    Raises:
        ArtifactError: the file is missing or damaged, the level breaks a rule of its class, or it
            is that of another program.
    """
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
    """What the module of an artifact executes.

    Args:
        artifact: with the file.
        plan: of the artifact.

    Raises:
        ArtifactError: the file is missing or damaged, or is of another program.
    """
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
    """A level and all dataclasses in it; parts that are one object come once."""
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
    """Check that symmetry and storage speak of the axes that there are."""
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
    """Check that the tensors are those of a program."""
    arguments = {t.name: t.spaces for t in manifest.tensors}
    for tensor in tensors:
        wanted = arguments.get(tensor.name)
        if tensor.role is not Role.TEMP and wanted not in (None, tensor.spaces):
            raise VerifyError(f"{tensor.name} has other axes in the manifest")
    here = {t.name for t in tensors if t.role is Role.OUTPUT}
    there = {t.name for t in manifest.tensors if t.role is Role.OUTPUT}
    if here != there:
        raise VerifyError(f"its outputs are {', '.join(sorted(here))}, those of another program")
