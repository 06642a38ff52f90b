"""Arrays as Fortran indexes them: ``t2[i,j,a,b]`` of the equations is ``t2(i,j,a,b)``."""

from __future__ import annotations

from dataclasses import replace

from ..ir.system import System
from ..ir.tensor import Ref, Role, Tensor
from ..ir.term_rewriting import replace_refs


def in_fortran_order(system: System) -> System:
    """The system whose arguments and results are stored with reversed axes.

    The axes of a packed group stay together, in their order; tensors that the equations store in
    another order than the declared one keep it.
    """
    changed = {t.name: _reversed(t) for t in system.tensors}

    def ref(old: Ref) -> Ref:
        return Ref(changed[old.tensor.name], old.indices)

    return replace(
        system,
        tensors=tuple(changed[t.name] for t in system.tensors),
        equations=tuple(replace_refs(equation, ref) for equation in system.equations),
    )


def _reversed(tensor: Tensor) -> Tensor:
    if tensor.role is Role.TEMP or tensor.storage.order or tensor.rank < 2:
        return tensor
    order: list[int] = []
    for axis, pack in reversed(tensor.stored()):
        order += [axis] if pack is None else pack.axes
    if order == list(range(tensor.rank)):
        return tensor
    return replace(tensor, storage=replace(tensor.storage, order=tuple(order)))
