"""Flops and bytes of a program over blocks, from numbers of orbitals: for reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..dtypes import BY_NAME
from ..errors import ArgumentError
from ..grading import Grading
from ..ir.program import Contract, FormulaSequence
from ..ir.tensor import Role, Space, element_type
from .program import BlockedProgram
from .schedule import constant_tensors

_ORBITAL = ("occupied", "virtual")


def read_grading(text: str) -> tuple[Grading, dict[str, list[int]]]:
    """A group without orbitals, and the numbers of orbitals of its elements, by space.

    ``D2h`` and ``2x2x2`` are a point group and a mesh of k-points, ``8`` a group of as many
    elements; numbers of orbitals may follow, as in ``C2v:o=3,0,1,1,v=1,0,0,1``.

    Raises:
        ArgumentError: the text is something else, or has too few numbers.

    Example:
        >>> read_grading("Cs:o=4,1,v=6,2")
        (<Grading Cs (A' A")>, {'o': [4, 1], 'v': [6, 2]})
    """
    name, colon, rest = text.partition(":")
    name = name.strip()
    if re.fullmatch(r"\d+(x\d+)+", name):
        group = Grading.from_kmesh([int(n) for n in name.split("x")])
    elif name.isdecimal() and int(name):
        order = int(name)
        power = order.bit_length() - 1
        # Irreps of real orbitals are their own inverses, which more equations conserve.
        group = Grading((2,) * power if order == 1 << power else (order,), {})
    else:
        group = Grading.from_orbsym(name)
    counts: dict[str, list[int]] = {}
    for part in re.split(r",(?=\s*[A-Za-z_])", rest) if colon else ():
        space, equals, numbers = part.partition("=")
        words = numbers.split(",")
        if not equals or not all(word.strip().isdecimal() for word in words):
            raise ArgumentError(
                f"--grading {text}: {part!r} is not SPACE=N,N,...: give the number of orbitals of "
                f"each irrep, as in C2v:o=3,0,1,1,v=1,0,0,1"
            )
        if len(words) != len(group):
            raise ArgumentError(
                f"--grading {text}: {space.strip()} has {len(words)} numbers, and {group.name} has "
                f"the {len(group)} elements {', '.join(group.names[:8])}: give one for each"
            )
        counts[space.strip()] = [int(word) for word in words]
    return group, counts


def with_orbitals(
    group: Grading,
    counts: Mapping[str, Iterable[int]],
    spaces: Iterable[Space],
    extents: Mapping[str, int],
) -> Grading:
    """The group with numbers of orbitals, by default equal ones in all spaces of orbitals."""
    if not counts:
        bases = [space for space in spaces if not space.parts]
        orbital = [s for s in bases if s.graded or s.kind in _ORBITAL] or bases
        order = len(group)
        counts = {
            s.name: [(extents[s.name] + order - 1 - g) // order for g in range(order)]
            for s in orbital
        }
    orbitals = {s: np.repeat(np.arange(len(group)), [*n]).tolist() for s, n in counts.items()}
    return Grading(group.moduli, orbitals, group.names, name=group.name)


def forecast(
    sequence: FormulaSequence, grading: Grading, extents: Mapping[str, int], dtype: str
) -> dict[str, Any]:
    """Flops and bytes over blocks beside the dense flops, as entries of a report.

    Inputs with a charge have that of the neutral element.

    Raises:
        TcgenError: the program has no blocks, or the grading does not fit it.
    """
    charges = {t.charge: 0 for t in sequence.inputs if t.charge is not None}
    others = {n: e for n, e in extents.items() if n not in grading}
    program = BlockedProgram(sequence, grading, charges, others, dtype=dtype)
    constants = constant_tensors(sequence)
    dense = sum(
        step.flops.value(extents)
        for step in sequence.steps
        if isinstance(step.op, Contract) and step.out.tensor.name not in constants
    )
    held = {
        role: sum(
            program.elements(t.name) * BY_NAME[element_type(t, dtype)].itemsize
            for t in sequence.tensors
            if t.role is role
        )
        for role in (Role.INPUT, Role.OUTPUT)
    }
    return {
        "group": grading.name,
        "orbitals": {
            space: dict(zip(grading.names, grading[space], strict=True)) for space in grading.spaces
        },
        "products": program.flops,
        "dense_products": dense,
        "inputs_bytes": held[Role.INPUT],
        "outputs_bytes": held[Role.OUTPUT],
        "peak_bytes": program.peak_bytes(),
        "table_bytes": program.table_bytes,
    }
