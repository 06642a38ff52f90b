"""``tcgen.blocked``: arrays and programs over blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from ..errors import ArgumentError
from ..grading import Grading
from ..runtime.program import Program
from .arrays import BlockedArray, blocked_array
from .program import BlockedProgram


@overload
def blocked(
    source: Program,
    grading: Grading,
    *,
    charges: Mapping[str, Any] | None = None,
    extents: Mapping[str, int] | None = None,
) -> BlockedProgram: ...
@overload
def blocked(
    source: Any,
    grading: Grading,
    spaces: str | Sequence[str],
    *,
    signs: Sequence[int] | None = None,
    charge: Any = 0,
    tolerance: float | None = None,
) -> BlockedArray: ...
def blocked(
    source: Any,
    grading: Grading,
    spaces: str | Sequence[str] | None = None,
    *,
    signs: Sequence[int] | None = None,
    charge: Any = 0,
    tolerance: float | None = None,
    charges: Mapping[str, Any] | None = None,
    extents: Mapping[str, int] | None = None,
) -> Any:
    """The blocks of an array that a group allows, or a program that computes with such arrays.

    Args:
        source: a dense array, or a compiled program.
        grading: the group, and the irreps of the orbitals in the order of the array.
        spaces: space of each axis of an array: ``"oovv"``, or a list of longer names.
        signs: sign with which the irrep of each axis of an array enters, 0 for an axis that takes
            no part; by default 1 for the first half of the axes and -1 for the others. They
            have no effect where each element is its own inverse, as irreps of point groups are.
        charge: element to which the irreps of each block of an array add up.
        tolerance: largest absolute value of an element of an array that should be zero; by
            default 1e-8, and 1e-4 in single precision.
        charges: values of the charges that inputs of a program declare, by name.
        extents: extents of spaces of a program that have no grading, by name.

    Returns:
        A :class:`BlockedArray` or a :class:`BlockedProgram`.

    Raises:
        CheckError: a forbidden element exceeds the tolerance; the largest is named.
        ShapeError: the shape contradicts the grading.
        ArgumentError: an argument does not fit, or the grading lacks a space.
        PlanError: the program has what cannot run over blocks.

    Example:
        >>> import numpy as np
        >>> import tcgen
        >>> grading = tcgen.Grading.from_orbsym("C2v", i=[0, 0, 2], j=[0, 2, 3], k=[2, 2])
        >>> f = np.zeros((3, 3))
        >>> f[0, 0], f[1, 0], f[2, 1] = 0.1, 0.2, 0.3
        >>> x = tcgen.blocked(f, grading, "ij")
        >>> x
        <BlockedArray [i,j] float64: 2 blocks, 3 of 9 elements: (A1, A1) 2x1; (B1, B1) 1x1>
        >>> float(x.block("B1", "B1")[0, 0])
        0.3
        >>> program = tcgen.compile("ij,jk->ik", extents={"i": 3, "j": 3, "k": 2})
        >>> product = tcgen.blocked(program, grading)
        >>> g = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]])
        >>> product(x0=x, x1=g)["y"].dense().round(6)
        array([[0. , 0. ],
               [0. , 0. ],
               [0.3, 0.6]])
    """
    if not isinstance(grading, Grading):
        raise ArgumentError(
            f"grading={grading!r:.80} is not a tcgen.Grading: make one with "
            f"tcgen.Grading.from_orbsym or tcgen.Grading.from_kmesh"
        )
    if isinstance(source, Program):
        if spaces is not None or signs is not None or charge != 0 or tolerance is not None:
            raise ArgumentError(
                "spaces, signs, charge and tolerance are those of an array, not of a program: "
                "leave them out"
            )
        return BlockedProgram(source, grading, charges, extents)
    if spaces is None:
        raise ArgumentError('the space of each axis is missing: tcgen.blocked(t2, grading, "oovv")')
    if charges is not None or extents is not None:
        raise ArgumentError("charges and extents are those of a program: give an array its charge")
    return blocked_array(source, grading, spaces, signs, charge, tolerance)
