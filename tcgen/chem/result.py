"""The result of ``solve``, its file, and its amplitudes as the start of a later calculation."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..cache_files import whole_file
from ..errors import ArgumentError, ShapeError, UnavailableError
from ..ir.cost import extent_of
from ..ir.layouts import Array
from ..ir.system import with_axes
from ..ir.tensor import Tensor
from .spaces import Kind, OrbitalSpaces, matched_axes

_NUMBERS = "solution.json"  # name of the array with all other fields
_ARRAYS = ("amplitudes", "values")
_BESIDE = ("letters",)  # internal fields of the file


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Solution:
    """Energies in Hartree, amplitudes, and how they were found.

    Attributes:
        name: name of the equations.
        reference: "RHF", "ROHF", "UHF" or "GHF".
        converged: every residual norm, or every root, is within the tolerance.
        e_hf: energy of the reference.
        e_corr: correlation energy; None if it cannot be inferred which output it is.
        energies: every scalar output by name.
        roots: eigenvalues of an eigenvalue problem, lowest first.
        amplitudes: solved and passed amplitudes by name, in declared order of axes. Eigenvectors
            have an axis for the roots, the first one unless the equations declare it.
        values: other outputs with axes by name, such as density matrices.
        letters: classes of the axes of each amplitude: o and v, upper case for beta.
        iterations: evaluations of the equations.
        residual_norms: 2-norms by the name of the residual.
        seconds: wall time of ``solve``.
    """

    name: str
    reference: str
    converged: bool
    e_hf: float
    e_corr: float | None
    energies: dict[str, float]
    roots: tuple[float, ...] = ()
    amplitudes: dict[str, Array] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)
    letters: dict[str, str] = field(default_factory=dict)
    iterations: int = 0
    residual_norms: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def e_tot(self) -> float | None:
        """Energy of the reference and correlation energy."""
        return None if self.e_corr is None else self.e_hf + self.e_corr

    def __repr__(self) -> str:
        state = "converged" if self.converged else "NOT converged"
        found = [f"E(corr) = {self.e_corr:.10f}"] if self.e_corr is not None else []
        found += [f"roots = {', '.join(f'{x:.8f}' for x in self.roots)}"] if self.roots else []
        if not found:
            found = [f"{name} = {value:.10f}" for name, value in self.energies.items()]
        if not found:
            found = list(self.values or self.amplitudes)
        return f"<{self.name} on {self.reference}, {state}, {', '.join(found)}>"

    def _repr_html_(self) -> str:
        """Energies and residual norms as a table, for a notebook."""
        rows: list[tuple[str, str]] = [("E(HF)", f"{self.e_hf:.10f}")]
        if self.e_corr is not None and self.e_tot is not None:
            rows += [("E(corr)", f"{self.e_corr:.10f}"), ("E(total)", f"{self.e_tot:.10f}")]
        rows += [(name, f"{value:.10f}") for name, value in self.energies.items()]
        rows += [(f"root {n}", f"{value:.8f}") for n, value in enumerate(self.roots, 1)]
        rows += [(f"|{name}|", f"{norm:.1e}") for name, norm in self.residual_norms.items()]
        cells = "".join(f"<tr><td>{escape(n)}</td><td>{v}</td></tr>" for n, v in rows)
        state = "converged" if self.converged else "NOT converged"
        title = f"{self.name} on {self.reference}, {state}, {self.iterations} iterations"
        return f"<p><b>{escape(title)}</b> (Hartree)</p><table><tbody>{cells}</tbody></table>"

    def as_json(self) -> dict[str, Any]:
        """Everything but arrays; the keys are those of ``tcgen solve --json``."""
        hidden = (*_ARRAYS, *_BESIDE)
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in hidden}
        return {**numbers, "e_tot": self.e_tot, "roots": list(self.roots)}

    def save(self, path: str | Path) -> Path:
        """Write everything to an .npz file of exactly this name, for a later ``amplitudes=``.

        Raises:
            UnavailableError: the file cannot be written.
        """
        path = Path(path)
        numbers = self.as_json() | {name: getattr(self, name) for name in _BESIDE}
        arrays: dict[str, Any] = {_NUMBERS: np.asarray(json.dumps(numbers))}
        for kind in _ARRAYS:
            arrays |= {f"{kind}.{name}": a for name, a in getattr(self, kind).items()}
        try:
            with whole_file(path) as file:
                np.savez(file, **arrays)
        except OSError as error:
            raise UnavailableError(f"cannot write {path}: {error.strerror}") from error
        return path


def load(path: str | Path) -> Solution:
    """The solution that :meth:`Solution.save` wrote.

    Raises:
        ArgumentError: the file cannot be read, or ``save`` has not written it.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> found = Solution("mp2", "RHF", True, -74.96, -0.04, {"e": -0.04})
        >>> load(found.save(f"{folder.name}/mp2.npz")).e_corr
        -0.04
        >>> folder.cleanup()
    """
    arrays = _read(Path(path))
    try:
        numbers = json.loads(str(arrays.pop(_NUMBERS)))
        numbers.pop("e_tot")
        kinds: dict[str, dict[str, Array]] = {kind: {} for kind in _ARRAYS}
        for name, array in arrays.items():
            kind, _, own = name.partition(".")
            kinds[kind][own] = array
        everything: dict[str, Any] = {**numbers, **kinds, "roots": tuple(numbers["roots"])}
        return Solution(**everything)
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"{path} is not a file that Solution.save wrote: solve the equations again"
        ) from error


def _read(path: Path) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise ArgumentError(f"cannot read {path}: it is not an .npz file of arrays") from error
    except OSError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror or error}") from error


Source = Solution | Mapping[str, Any] | str | Path | None


class Earlier:
    """Dense arrays by name, and classes of their axes if they are known.

    They come from a solution, its file or a dictionary, for equations over these spaces.
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

        With ``roots_first`` it has an axis for roots before those that are declared. An array with
        other extents or classes of axes is refused.
        """
        array = self.arrays.get(tensor.name)
        if array is None:
            return None
        needed, letters = self._spaces.letters(tensor), self.letters.get(tensor.name)
        needed = f"x{needed}" if roots_first else needed
        if letters is not None and letters != needed:
            array = self._reordered(tensor, array, letters, needed)
        expected = [
            None if self._spaces.kind(space) is Kind.OTHER else extent_of(space, self._extents)
            for space in tensor.spaces
        ]
        expected = [None, *expected] if roots_first else expected
        shape = array.shape
        if len(shape) != len(expected) or any(
            n is not None and n != m for n, m in zip(expected, shape, strict=True)
        ):
            raise ShapeError(
                f"amplitudes: {with_axes(tensor)} needs shape "
                f"{tuple('any' if n is None else n for n in expected)}, found {shape}: they must "
                f"come from the same basis, frozen orbitals and kind of orbitals"
            )
        return array

    def _reordered(self, tensor: Tensor, array: Array, letters: str, needed: str) -> Array:
        """The array with its axes in another order."""
        axes = matched_axes(letters, needed)
        if axes is None:
            raise ShapeError(
                f"amplitudes: {tensor.name} has axes {needed!r} in these equations and {letters!r} "
                f"in the earlier solution: its equations must be over the same kind of orbitals; "
                f"pass other amplitudes or another file"
            )
        return array.transpose(axes)
