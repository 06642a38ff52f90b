"""The result of ``solve``, its file, and its amplitudes as the start of a later calculation."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..blocks.arrays import BlockedArray
from ..cache_files import save_text, whole_file
from ..errors import ArgumentError, ShapeError, UnavailableError
from ..ir.layouts import Array
from ..ir.system import with_axes
from ..ir.tensor import Tensor
from .spaces import Kind, OrbitalSpaces, matched_axes
from .states import States, states_from_json

_NUMBERS = "solution.json"  # name of the array with all other fields
_ARRAYS = ("amplitudes", "values")
_BLOCKS = "blocks"  # first part of the name of JSON about the elements of blocks
_BESIDE = ("letters", "fingerprint", "molecule", "solved")  # internal fields of the file
_HDF5 = (".h5", ".hdf5")
_CLOSE = 1e-4  # largest difference of equal numbers of two fingerprints, in atomic units


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
            have an axis for the roots, the first one unless the equations declare it. They are
            NumPy's arrays, and :class:`BlockedArray` for k-points.
        values: other outputs with axes by name, such as density matrices.
        letters: classes of the axes of each amplitude: o and v, upper case for beta.
        fingerprint: atoms, basis, orbitals and energy of the reference.
        molecule: the atoms as QCSchema has them, and the basis; {} for integrals without atoms.
        solved: names of the amplitudes that the equations determine; None if they are not known.
        states: the roots as states, with their spins, oscillator strengths and leading amplitudes.
        integrals: source of the integrals, in words.
        symmetry: point group, numbers of orbitals by irrep, blocks and bytes of the inputs, or why
            there is one block; {} unless it was asked for.
        iterations: evaluations of the equations.
        residual_norms: 2-norms by the name of the residual.
        seconds: wall time of ``solve``.
        timings: wall seconds of integrals, planning and compiling (what is left of both after
            them, unless the job is large) and iterations (with the constants that follow from
            integrals); also ``disk``, the seconds in which the program waited for a file of
            integrals.
        work: ``calls`` and ``bytes`` by stage: programs that were planned, inputs that were made
            and their bytes, calls of the program and bytes that it allocates, reads of a file.
        disk: bytes that were ``written`` to this file and ``read`` from it, and the number of
            ``reads``; {} without a file.
    """

    name: str
    reference: str
    converged: bool
    e_hf: float
    e_corr: float | None
    energies: dict[str, float]
    roots: tuple[float, ...] = ()
    amplitudes: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)
    letters: dict[str, str] = field(default_factory=dict)
    fingerprint: dict[str, Any] = field(default_factory=dict)
    molecule: dict[str, Any] = field(default_factory=dict)
    solved: Sequence[str] | None = None
    states: States = field(default_factory=States)
    integrals: str = ""
    symmetry: dict[str, Any] = field(default_factory=dict)
    iterations: int = 0
    residual_norms: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    timings: dict[str, float] = field(default_factory=dict)
    work: dict[str, dict[str, int]] = field(default_factory=dict)
    disk: dict[str, int] = field(default_factory=dict)

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
        hidden = (*_ARRAYS, *_BESIDE, *(() if self.disk else ("disk",)))
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in hidden}
        states = [state.as_json() for state in self.states]
        return {**numbers, "e_tot": self.e_tot, "roots": list(self.roots), "states": states}

    def as_qcschema(self) -> dict[str, Any]:
        """The energy as a record of QCSchema (qcschema_output, version 1), in atomic units.

        ``extras`` has all numbers of :meth:`as_json`.

        Raises:
            ArgumentError: the total energy or the molecule is not known.
        """
        if self.e_tot is None or not self.molecule:
            lacks = "molecule" if self.e_tot is not None else "total energy"
            raise ArgumentError(
                f"{self.name} has no {lacks}, which QCSchema asks for: write an .h5 file, or the "
                f"record of as_json() (--json)"
            )
        atoms = {"schema_name": "qcschema_molecule", "schema_version": 2, **self.molecule}
        record = {
            "schema_name": "qcschema_output",
            "schema_version": 1,
            "model": {"method": self.name, "basis": atoms.pop("basis")},
            "molecule": atoms,
            "driver": "energy",
            "keywords": {},
            "return_result": self.e_tot,
            "properties": {"return_energy": self.e_tot, "scf_total_energy": self.e_hf},
            "provenance": {"creator": "tcgen", "version": __version__, "routine": "solve"},
            "success": self.converged,
            "extras": self.as_json(),
        }
        if not self.converged:
            message = f"the residuals are {self.residual_norms}"
            record["error"] = {"error_type": "convergence_error", "error_message": message}
        return record

    def save(self, path: str | Path) -> Path:
        """Write everything to a file of exactly this name, for a later ``amplitudes=``.

        The file is HDF5 if its name ends in .h5 or .hdf5, else .npz. The solutions of other
        equations in this file remain; that of these equations is replaced. A file .json has the
        record of QCSchema in their place, and cannot be read again.

        Raises:
            ArgumentError: the file exists, and ``save`` has not written it; or QCSchema has no
                place for this solution.
            UnavailableError: the file cannot be written, or h5py is not installed.
        """
        path = Path(path)
        if path.suffix == ".json":
            save_text(path, json.dumps(self.as_qcschema(), indent=1) + "\n")
            return path
        groups = _groups(path) if path.is_file() and path.stat().st_size else {}
        groups.pop(self.name, None)
        numbers = self.as_json() | {name: getattr(self, name) for name in _BESIDE}
        own: dict[str, Any] = {_NUMBERS: np.asarray(json.dumps(numbers))}
        for kind in _ARRAYS:
            for name, array in getattr(self, kind).items():
                own |= _plain(f"{kind}.{name}", array)
        groups[self.name] = own
        arrays: dict[str, Any] = {
            f"{name}/{k}": a for name, group in groups.items() for k, a in group.items()
        }
        try:
            with whole_file(path) as file:
                if path.suffix in _HDF5:
                    file.write(_as_hdf5(groups))
                else:
                    np.savez(file, **arrays)
        except OSError as error:
            raise UnavailableError(f"cannot write {path}: {error.strerror}") from error
        return path


def load(path: str | Path, name: str | None = None) -> Solution:
    """The solution of the equations ``name`` that :meth:`Solution.save` wrote.

    Without a name, it is the last one that was solved for amplitudes, else the last one.

    Raises:
        ArgumentError: the file cannot be read, ``save`` has not written it, or it has no solution
            of these equations.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> found = Solution("mp2", "RHF", True, -74.96, -0.04, {"e": -0.04})
        >>> load(found.save(f"{folder.name}/mp2.npz")).e_corr
        -0.04
        >>> folder.cleanup()
    """
    solutions = load_all(path)
    if name is None:
        return next((s for s in solutions if s.residual_norms), solutions[0])
    found = next((s for s in solutions if s.name == name), None)
    if found is None:
        names = ", ".join(s.name for s in solutions)
        raise ArgumentError(f"{path} has no solution of {name}: it has those of {names}")
    return found


def load_all(path: str | Path) -> list[Solution]:
    """All solutions in a file, the last one first."""
    return [_solution(Path(path), group) for group in reversed(_groups(Path(path)).values())]


def _groups(path: Path) -> dict[str, dict[str, Array]]:
    """The arrays of each solution in a file by its name, in the order in which they were saved."""
    groups: dict[str, dict[str, Array]] = {}
    for key, array in _read(path).items():
        name, _, own = key.rpartition("/")
        groups.setdefault(name, {})[own] = array
    if not groups or any(_NUMBERS not in group for group in groups.values()):
        raise _not_saved(path)
    # A file of version 0.2.0 has one solution without a group.
    return {_solution(path, group).name: group for group in groups.values()}


def _solution(path: Path, group: Mapping[str, Array]) -> Solution:
    try:
        numbers = json.loads(str(group[_NUMBERS]))
        numbers.pop("e_tot")
        kinds: dict[str, dict[str, Array]] = {kind: {} for kind in _ARRAYS}
        for name, array in group.items():
            kind, _, own = name.partition(".")
            if kind in kinds:
                kinds[kind][own] = _with_blocks(array, group.get(f"{_BLOCKS}.{name}"), name)
        # Files of version 0.2.0 have no states.
        states = states_from_json(numbers.pop("states", ()))
        everything: dict[str, Any] = {**numbers, **kinds, "roots": tuple(numbers["roots"])}
        everything["states"] = states
        return Solution(**everything)
    except (KeyError, TypeError, ValueError) as error:
        raise _not_saved(path) from error


def _plain(name: str, array: Any) -> dict[str, Array]:
    """An array as arrays of NumPy by name: of blocked ones the elements, and JSON about them.

    Vectors of several roots are a list of blocked arrays.
    """
    if not isinstance(array, BlockedArray | list):
        return {name: array}
    every = array if isinstance(array, list) else [array]
    records = [x.description() | {"size": x.data.size} for x in every]
    text = json.dumps({"list": array is every, "arrays": records})
    data = np.concatenate([x.data for x in every])
    return {name: data, f"{_BLOCKS}.{name}": np.asarray(text)}


def _with_blocks(data: Array, text: Array | None, name: str) -> Any:
    if text is None:
        return data
    record = json.loads(str(text))
    found, start = [], 0
    for own in record["arrays"]:
        found.append(BlockedArray.described(data[start : start + own["size"]], own, name))
        start += own["size"]
    return found if record["list"] else found[0]


def _not_saved(path: Path) -> ArgumentError:
    return ArgumentError(
        f"{path} is not a file that Solution.save wrote: solve the equations again, or give "
        f"another file"
    )


def _as_hdf5(groups: Mapping[str, Mapping[str, Array]]) -> bytes:
    """A group for each solution, with groups of arrays and the numbers as JSON."""
    buffer = io.BytesIO()
    with _h5py().File(buffer, "w") as file:
        for name, group in groups.items():
            for key, array in group.items():
                text = np.asarray(array).dtype.kind == "U"
                place = key if key == _NUMBERS else key.replace(".", "/")
                file[f"{name}/{place}"] = str(array) if text else array
    return buffer.getvalue()


def _from_hdf5(path: Path) -> dict[str, Array]:
    """The arrays by the names that they have in an .npz file."""
    found: dict[str, Array] = {}

    def read(place: str, item: Any) -> None:
        if hasattr(item, "shape"):
            name, *own = place.split("/")
            text = item.dtype.kind == "O"
            value = item.asstr()[()] if text else item[...]
            found[f"{name}/{'.'.join(own)}"] = np.asarray(value)

    with _h5py().File(path, "r") as file:
        file.visititems(read)
    return found


def _h5py() -> Any:
    try:
        import h5py  # noqa: PLC0415  (PySCF brings it)
    except ImportError:
        raise UnavailableError("files .h5 need h5py: pip install h5py") from None
    return h5py


def _read(path: Path) -> dict[str, Array]:
    try:
        if path.suffix in _HDF5:
            return _from_hdf5(path)
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (zipfile.BadZipFile, ValueError, EOFError, TypeError) as error:
        raise ArgumentError(f"cannot read {path}: it is not an .npz file of arrays") from error
    except OSError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror or error}") from error


Source = Solution | Mapping[str, Any] | str | Path | None


def _same(one: Any, other: Any) -> bool:
    """Whether two arrays have the same elements, in the same blocks."""
    if isinstance(one, BlockedArray) and isinstance(other, BlockedArray):
        same = one.description() == other.description()
        return same and np.array_equal(one.data, other.data)
    return np.array_equal(one, other)


class Earlier:
    """Dense arrays by name, and classes of their axes if they are known.

    They come from a solution, its file or a dictionary, for equations ``name`` over these spaces.
    A file may have several solutions: that of these equations is the start, or else the last one,
    as far as it fits. Inputs ``given``, which the equations read and do not determine, come from
    the only solution that determines some of them and has all.
    """

    def __init__(
        self,
        source: Source,
        name: str,
        spaces: OrbitalSpaces,
        extents: Mapping[str, int],
        given: Sequence[Tensor],
        fingerprint: Mapping[str, Any],
    ) -> None:
        self._spaces, self._extents = spaces, extents
        self.arrays: dict[str, Any] = {}
        self.letters: dict[str, str] = {}
        # Arrays that are left out if they do not fit.
        self._optional: set[str] = set()
        if source is None:
            return
        if isinstance(source, Mapping):
            self.arrays = {
                name: array if isinstance(array, BlockedArray) else np.asarray(array)
                for name, array in source.items()
            }
            return
        if not isinstance(source, Solution | str | Path):
            raise ArgumentError(
                f"amplitudes= is a {type(source).__name__}: pass a Solution, its file, or arrays "
                f'by name, {{"t1": t1, "t2": t2}}; those of a solver of PySCF or ebcc are '
                f"tcgen.chem.amplitudes_of(solver)"
            )
        solutions = [source] if isinstance(source, Solution) else load_all(source)
        needed = {tensor.name for tensor in given}
        own = next((s for s in solutions if s.name == name), None)
        read = self._offered(solutions, given) if needed else own
        read = read or next((s for s in solutions if s.amplitudes), solutions[0])
        if needed & read.amplitudes.keys():
            _check_given(read, sorted(needed), fingerprint)
        start = set() if own is None else _solved(own) - needed
        for solution, names in ((read, read.amplitudes.keys()), (own or read, start)):
            self.arrays |= {n: solution.amplitudes[n] for n in names}
            self.letters |= {n: x for n, x in solution.letters.items() if n in names}
        if needed or not isinstance(source, Solution):
            self._optional = self.arrays.keys() - needed - start

    def _offered(self, solutions: Sequence[Solution], given: Sequence[Tensor]) -> Solution | None:
        """The solution that has all of ``given``; ArgumentError if several differ in them."""
        names = {tensor.name for tensor in given}
        offers = [s for s in solutions if names <= s.amplitudes.keys()]
        fitting = [s for s in offers if self._fits(s, given)] or offers[:1]
        # Others have the amplitudes only because they were given.
        some = [s for s in fitting if names & _solved(s)] or fitting
        if not all(_same(s.amplitudes[n], some[0].amplitudes[n]) for s in some for n in names):
            found = ", ".join(s.name for s in some)
            raise ArgumentError(
                f"amplitudes: several solutions in the file have {', '.join(sorted(names))}: "
                f"{found}: choose one: --amplitudes-of {some[0].name} "
                f'(amplitudes=tcgen.chem.load(path, "{some[0].name}"))'
            )
        return some[0] if some else None

    def _fits(self, solution: Solution, given: Sequence[Tensor]) -> bool:
        try:
            for t in given:
                self._fitted(t, solution.amplitudes[t.name], solution.letters.get(t.name))
        except ShapeError:
            return False
        return True

    def get(self, tensor: Tensor, *, roots_first: bool = False) -> Array | None:
        """The dense array of an amplitude in declared order, or None if there is none.

        With ``roots_first`` it has an axis for roots before those that are declared. An array with
        other extents or classes of axes is refused.
        """
        array = self.arrays.get(tensor.name)
        try:
            letters = self.letters.get(tensor.name)
            return None if array is None else self._fitted(tensor, array, letters, roots_first)
        except ShapeError:
            if tensor.name not in self._optional:
                raise
            return None

    def _fitted(
        self, tensor: Tensor, array: Array, letters: str | None, roots_first: bool = False
    ) -> Array:
        """The array in declared order; ShapeError for other extents or classes of axes."""
        needed = self._spaces.letters(tensor)
        needed = f"x{needed}" if roots_first else needed
        if letters is not None and letters != needed:
            array = self._reordered(tensor, array, letters, needed)
        expected = [
            None if self._spaces.kind(space) is Kind.OTHER else space.extent_in(self._extents)
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


def _solved(solution: Solution) -> set[str]:
    """Amplitudes that the equations determine; all of them in a file without a list."""
    names = solution.amplitudes if solution.solved is None else solution.solved
    return solution.amplitudes.keys() & set(names)


def _check_given(solution: Solution, names: Sequence[str], fingerprint: Mapping[str, Any]) -> None:
    """Refuse amplitudes of another reference, which the equations do not determine."""
    for part, value in fingerprint.items():
        if not equal_parts(solution.fingerprint.get(part, value), value):
            raise ArgumentError(
                f"amplitudes: {', '.join(names)} of {solution.name} belong to another reference, "
                f"with other {part}: solve {solution.name} on this reference first"
            )
    if not solution.converged:
        warnings.warn(
            f"{', '.join(names)} of {solution.name} are not converged: solve these equations with "
            f"more iterations first",
            RuntimeWarning,
            stacklevel=6,
        )


def equal_parts(one: Any, other: Any, close: float = _CLOSE) -> bool:
    """True for equal parts of two fingerprints, whose numbers may differ by ``close``."""
    if isinstance(one, str | dict) or isinstance(other, str | dict) or one is None:
        return bool(one == other)
    one, other = np.asarray(one), np.asarray(other)
    return one.shape == other.shape and np.allclose(one, other, rtol=0, atol=close)
