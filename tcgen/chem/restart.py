"""Amplitudes of an earlier solution, in the layout of other equations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ShapeError
from ..ir.cost import extent_of
from ..ir.tensor import Tensor
from .result import Solution, load
from .spaces import Kind, OrbitalSpaces

Array = npt.NDArray[Any]
Source = Solution | Mapping[str, Any] | str | Path | None


class Earlier:
    """Arrays by name, from a solution, its file or a dictionary.

    Attributes:
        arrays: by name.
        letters: classes of their axes by name, where they are known.

    Args:
        source: where they come from; None for no amplitudes.
        spaces: of the equations that will read them.
        extents: of these spaces.

    Raises:
        ArgumentError: the file cannot be read.
    """

    def __init__(self, source: Source, spaces: OrbitalSpaces, extents: Mapping[str, int]) -> None:
        if isinstance(source, str | Path):
            source = load(source)
        self.letters = dict(source.letters) if isinstance(source, Solution) else {}
        arrays = source.amplitudes if isinstance(source, Solution) else source or {}
        self.arrays = {name: np.asarray(array) for name, array in arrays.items()}
        self._spaces, self._extents = spaces, extents

    def get(self, tensor: Tensor, *, roots_first: bool = False) -> Array | None:
        """The dense array of an amplitude in declared order, or None if there is none.

        With ``roots_first`` it has an axis for roots before those that are declared.

        Raises:
            ShapeError: the array of this name has other extents or classes of axes.
        """
        array = self.arrays.get(tensor.name)
        if array is None:
            return None
        wanted, letters = self._spaces.letters(tensor), self.letters.get(tensor.name)
        wanted = f"x{wanted}" if roots_first else wanted
        if letters is not None and letters != wanted:
            array = self._reordered(tensor, array, letters, wanted)
        expected = [
            None if self._spaces.kind(space) is Kind.OTHER else extent_of(space, self._extents)
            for space in tensor.spaces
        ]
        expected = [None, *expected] if roots_first else expected
        shape = array.shape
        if len(shape) != len(expected) or any(
            n is not None and n != m for n, m in zip(expected, shape, strict=True)
        ):
            axes = ",".join(space.name for space in tensor.spaces)
            raise ShapeError(
                f"amplitudes: {tensor.name}[{axes}] needs shape "
                f"{tuple('any' if n is None else n for n in expected)}, found {shape}: they must "
                f"come from the same basis, frozen orbitals and kind of orbitals"
            )
        return array

    def _reordered(self, tensor: Tensor, array: Array, letters: str, wanted: str) -> Array:
        """The array with its axes in another order; of equal classes the first stays first."""
        left = list(range(len(letters)))
        axes = []
        for letter in wanted:
            axis = next((k for k in left if letters[k] == letter), None)
            if axis is None:
                break
            axes.append(axis)
            left.remove(axis)
        if left or len(axes) != len(wanted):
            raise ShapeError(
                f"amplitudes: {tensor.name} has axes {wanted!r} in these equations and {letters!r} "
                f"in the earlier solution: its equations must be over the same kind of orbitals; "
                f"pass other amplitudes, or another file, if they are not meant"
            )
        return array.transpose(axes)
