"""FCIDUMP: integrals over orbitals as lines "value i j k l", after a Fortran namelist.

The namelist has NORB, NELEC, MS2, ORBSYM, ISYM and flags of programs. Commas, blanks or new lines
separate its values, ``3*1`` repeats one, and ``&END``, ``$END`` or ``/`` ends it. A line has
(ij|kl), or h_ij with k = l = 0, or an orbital energy with i alone, or with zeros the core energy.

Orbitals with spin are written in three ways. Six *sections*, each closed by a line of zeros, have
(aa|aa), (bb|bb), (aa|bb), h of alpha and of beta orbitals, and the core energy (IUHF=1 or
UHF=.TRUE.). Or NORB spin orbitals are alpha and beta orbitals in turn (UHF=.TRUE.). Or beta
orbitals have the numbers NORB+1 to 2*NORB, without a flag.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..cache_files import whole_file
from ..errors import ArgumentError, UnavailableError
from ..ir.layouts import Array
from ..simplices import positions
from .frames import ALPHA, BETA, SPIN_ORBITAL, Block, Frozen
from .hamiltonian import Hamiltonian, hamiltonian, read_reference
from .integrals import Integrals
from .pairs import EQUAL, SparsePairs, pair_numbers, put, refuse_many
from .reference import core_energy, core_hamiltonian

_CHUNK = 1 << 24  # bytes of a file that are parsed at once
_LONGEST_HEADER = 1 << 22  # bytes in which a namelist ends: 100 000 orbitals take a tenth of it
_AS_IN_C = bytes.maketrans(b"dDqQ(),", b"eeee   ")  # exponents of Fortran, complex numbers
# A number with two digits of an exponent, or a complex one, and the indices behind it.
_FIXED = re.compile(rb"(\s*(?:\([^)]*\)|[-+.\d]+[EeDd][-+]\d\d))(.*)")
_NARROWEST = 3  # columns of an index in fixed format
# A name, and its values up to the next name.
_VALUES = r"([A-Za-z]\w*)\s*=\s*([^=]*)(?=[\s,][A-Za-z]\w*\s*=|$)"
_SECTIONS = ((0, 0), (1, 1), (0, 1), (0, 0), (1, 1), (0, 0))  # spins of the integrals in each


def read_fcidump(
    path: str | Path, *, nelec: Any = None, spin: int | None = None, **keywords: Any
) -> Hamiltonian:
    """The Hamiltonian in an FCIDUMP file, for ``solve``.

    Orbitals are spatial ones, alpha and beta orbitals, or spin orbitals; entries are real or
    complex, as ``(re,im)``. Missing entries are zero. An entry may stand in the file in several of
    its permutations; all must agree.

    Args:
        path: the file.
        nelec: number of electrons in place of NELEC, or those of alpha and beta electrons.
        spin: 2S in place of MS2.
        keywords: further ones of :func:`hamiltonian`, such as ``occupied`` and ``frozen``.

    Raises:
        ArgumentError: a line cannot be read, contradicts an earlier one, or the header does not fit
            the entries.
        MemoryLimitError: the machine cannot hold integrals over so many orbitals.

    Example (docs/solve.md runs it):

        energy = tcgen.chem.solve("ccsd_closed_shell", tcgen.chem.read_fcidump("FCIDUMP")).e_tot
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            return _Reader(path, file).hamiltonian(nelec, spin, keywords)
    except OSError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror or error}") from error


class _Reader:
    """One file: its header, and the arrays that its lines fill, by the spins of their axes."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._header_lines = 0
        self._header = self._namelist()
        self._n = self._integer("NORB")
        if self._n < 1:
            raise ArgumentError(f"{path}: NORB={self._n} in the header is not a number of orbitals")
        flags = [self._header.get(name, ["F"])[0] for name in ("IUHF", "UHF")]
        self._by_spin = any(flag.strip(".").upper() not in ("F", "FALSE", "0") for flag in flags)
        first = self._first_line()
        self._complex = "(" in first
        self._dtype = np.dtype(complex if self._complex else float)
        refuse_many(f"{path}: NORB={self._n}", self._n, self._dtype)
        self._pairs: dict[tuple[int, int], SparsePairs] = {}
        self._h: dict[int, Array] = {}
        self._energies = np.full((2, self._n), np.nan)
        self._zeros: list[tuple[int, Any]] = []  # number of the entry and value of each zero line
        self._entries = 0

    def hamiltonian(self, nelec: Any, spin: int | None, keywords: dict[str, Any]) -> Hamiltonian:
        """Read the lines, and tell the dialect."""
        for values, indices in self._lines():
            self._take(values, indices)
        if not self._entries:
            raise ArgumentError(f"{self._path} has no integrals behind its header: write it again")
        core = self._core()
        spins = max(max((*self._h, *(s for p in self._pairs for s in p)), default=0) + 1, 1)
        h = [self._filled_h(spin) for spin in range(spins)]
        eri = [self._of_spins(x, y).filled() for x, y in ((0, 0), (0, 1), (1, 1)) if y < spins]
        nelec = self._integer("NELEC") if nelec is None else nelec
        if spin is None and np.ndim(nelec) == 0 and "MS2" in self._header:
            spin = self._integer("MS2")
        chosen: dict[str, Any] = {
            "spin": spin,
            "core": core,
            "origin": f"FCIDUMP {self._path.name}",
        }
        energies = self._energies[:spins]
        if not np.isnan(energies).any():
            chosen["orbital_energies"] = energies
        if "ORBSYM" in self._header:
            chosen["irreps"] = self._integers("ORBSYM")
        if "ISYM" in self._header:
            chosen["isym"] = self._integer("ISYM")
        if spins == 2:
            return hamiltonian(h, eri, nelec, **chosen | keywords)
        if self._is_interleaved(h[0], eri[0]):
            return self._spin_orbitals(h[0], eri[0], nelec, chosen | keywords)
        return hamiltonian(h[0], eri[0], nelec, **chosen | keywords)

    def _namelist(self) -> dict[str, list[str]]:
        """The values of the header by upper-case name; the file is then at the first entry."""
        text, end = b"", None
        while end is None:
            line = self._file.readline()
            end = re.search(rb"(?i)[&$]END|/", line)
            text += b" " + (line[: end.start()] if end else line)
            self._header_lines += 1
            if end is None and (not line or len(text) > _LONGEST_HEADER):
                raise ArgumentError(
                    f"{self._path} is not an FCIDUMP: no &END or / ends its header &FCI NORB=..."
                )
        words = text.decode("ascii", "replace")
        words = re.sub(r"(?i)^\s*[&$]FCI", " ", words)
        values: dict[str, list[str]] = {}
        for name, value in re.findall(_VALUES, words):
            found = values.setdefault(name.upper(), [])
            for word in value.replace(",", " ").split():
                times, star, own = word.rpartition("*")
                found += [own] * (int(times) if star and times.isdigit() else 1)
        return values

    def _integer(self, name: str) -> int:
        try:
            return self._integers(name)[0]
        except (KeyError, IndexError):
            raise ArgumentError(f"{self._path}: the header has no number {name}=...") from None

    def _integers(self, name: str) -> list[int]:
        words = self._header[name]
        with suppress(ValueError):
            numbers = [float(word) for word in words]
            if all(number.is_integer() for number in numbers):
                return [int(number) for number in numbers]
        raise ArgumentError(
            f"{self._path}: {name}={' '.join(words):.60} in the header are not integers"
        )

    def _first_line(self) -> str:
        """The first entry, without moving on."""
        start = self._file.tell()
        line = next((line for line in self._file if line.strip()), b"")
        self._file.seek(start)
        return line.decode("ascii", "replace")

    def _lines(self) -> Iterator[tuple[Array, Array]]:
        """Values and indices of the lines, many at once."""
        columns = 6 if self._complex else 5
        while text := self._file.read(_CHUNK):
            text += self._file.readline()
            if not text.strip():
                continue
            table = self._table(text, columns)
            if table is None:
                spaced = _with_blanks(text)
                table = None if spaced is None else self._table(spaced, columns)
            if table is None or np.any(table[:, -4:] != np.rint(table[:, -4:])):
                self._refuse_lines(columns)
            assert table is not None
            values = table[:, 0] + 1j * table[:, 1] if self._complex else table[:, 0]
            yield values, table[:, -4:].astype(np.int64)
            self._entries += len(table)

    def _table(self, text: bytes, columns: int) -> Array | None:
        """The numbers of lines in rows; None unless each line has as many."""
        found = np.empty(0)
        with warnings.catch_warnings():
            # NumPy warns of text that is not a number, at which it ends.
            warnings.simplefilter("ignore", DeprecationWarning)
            with suppress(ValueError):
                found = np.fromstring(text.translate(_AS_IN_C), sep=" ")
        lines = text.count(b"\n") + (not text.endswith(b"\n"))
        if found.size != lines * columns:
            lines = sum(1 for line in text.split(b"\n") if line.strip())
        return found.reshape(-1, columns) if found.size == lines * columns else None

    def _take(self, values: Array, indices: Array) -> None:
        """Put entries into their arrays."""
        n = self._n
        used = indices != 0
        count = used.sum(axis=1)
        ordered = np.all(used == (np.arange(4) < count[:, None]), axis=1) & (count != 3)
        most = n if self._by_spin else 2 * n
        wrong = ~ordered | np.any((indices < 0) | (indices > most), axis=1) | ~np.isfinite(values)
        if wrong.any():
            self._refuse(int(np.argmax(wrong)), f"an entry of {n} orbitals")
        numbers = np.arange(self._entries, self._entries + len(values))
        zero = np.flatnonzero(count == 0)
        before = len(self._zeros)
        self._zeros += [(int(numbers[k]), values[k]) for k in zero]
        section = before + np.cumsum(count == 0) if self._by_spin else np.zeros(len(values), int)
        spins, places = np.divmod(indices - 1, n)
        if self._by_spin:
            late = (section > 5) & (count > 0)
            if late.any():
                self._refuse(int(np.argmax(late)), "more than the six sections of UHF")
            of_section = np.array(_SECTIONS)[np.minimum(section, 5)]
            spins = of_section[:, [0, 0, 1, 1]]
        own = (spins[:, 0] == spins[:, 1]) | (count < 2)
        own &= (spins[:, 2] == spins[:, 3]) | (count < 4)
        if not own.all():
            self._refuse(
                int(np.argmin(own)),
                f"an integral of alpha orbitals, 1 to {n}, and beta orbitals, {n + 1} to {2 * n}: "
                f"correct it, or NORB={n}",
            )
        for kind, x, y in product((1, 2, 4), (0, 1), (0, 1)):
            if y and kind < 4:
                continue
            at = np.flatnonzero(
                (count == kind) & (spins[:, 0] == x) & ((kind < 4) | (spins[:, 2] == y))
            )
            if len(at):
                self._set(kind, x, y, places[at], values[at], numbers[at])

    def _set(self, kind: int, x: int, y: int, places: Array, values: Array, numbers: Array) -> None:
        i, j, k, l = places.T
        wrong: int | None = None
        if kind == 1:
            self._energies[x, i] = values.real
        elif kind == 2:
            h = self._h.setdefault(x, np.full((self._n,) * 2, np.nan, self._dtype))
            images = ((i, j, values), (j, i, values.conj()))
            wrong = next((w for image in images if (w := put(h, *image)) is not None), None)
        else:
            if x > y:
                x, y, i, j, k, l = y, x, k, l, i, j
            wrong = self._of_spins(x, y).put(i, j, k, l, values)
        if wrong is not None:
            self._refuse_repeat(int(numbers[wrong]))

    def _of_spins(self, x: int, y: int) -> SparsePairs:
        if (x, y) not in self._pairs:
            self._pairs[x, y] = SparsePairs(self._n, self._dtype, same=x == y)
        return self._pairs[x, y]

    def _core(self) -> float:
        """The core energy, from the lines of zeros."""
        parts = (("core Hamiltonian", self._h), ("core energy", self._zeros))
        missing = [name for name, lines in parts if not lines]
        if missing:
            warnings.warn(
                f"{self._path} has no line with the {' and the '.join(missing)}, taken as zero: if "
                f"the file was cut off, integrals are missing as well",
                RuntimeWarning,
                stacklevel=4,
            )
        if not self._zeros:
            return 0.0
        if self._by_spin and len(self._zeros) == 1 and (1, 1) in self._pairs:
            self._refuse(
                self._zeros[0][0], "the last line, as it is unless sections end in zeros",
                absolute=True,
            )  # fmt: skip
        if self._by_spin and 1 < len(self._zeros) < 6:
            self._refuse(
                self._zeros[-1][0],
                "the end of the last of six sections (UHF): the file was cut off",
                absolute=True,
            )
        if self._by_spin and len(self._zeros) == 6:
            marks = [number for number, value in self._zeros[:5] if value != 0]
            if marks:
                self._refuse(marks[0], "the end of a section, whose value is zero", absolute=True)
        elif any(value != self._zeros[0][1] for _, value in self._zeros):
            self._refuse_repeat(next(n for n, v in self._zeros if v != self._zeros[0][1]))
        core = self._zeros[-1][1]
        if abs(np.imag(core)) > EQUAL:
            self._refuse(self._zeros[-1][0], "a real core energy", absolute=True)
        return float(np.real(core))

    def _filled_h(self, spin: int) -> Array:
        h = self._h.get(spin)
        return np.zeros((self._n,) * 2) if h is None else np.where(np.isnan(h), 0, h)

    def _is_interleaved(self, h: Array, eri: Array) -> bool:
        """True if the orbitals are alpha and beta orbitals in turn.

        No integral then has an odd and an even orbital in one charge density. Some programs leave
        out the flag for closed shells, whose alpha and beta orbitals are equal.
        """
        if self._complex or self._n % 2:
            return self._complex and self._by_spin
        i, j = positions(self._n, 2, strict=False)
        mixed = (i + j) % 2 == 1
        if h[i[mixed], j[mixed]].any() or eri[mixed].any():
            return False
        alpha, beta = (np.flatnonzero((i % 2 == s) & (j % 2 == s)) for s in range(2))
        return self._by_spin or (
            np.allclose(h[::2, ::2], h[1::2, 1::2], rtol=0, atol=EQUAL)
            and np.allclose(eri[alpha][:, alpha], eri[alpha][:, beta], rtol=0, atol=EQUAL)
        )

    def _spin_orbitals(
        self, h: Array, eri: Array, nelec: Any, chosen: dict[str, Any]
    ) -> Hamiltonian:
        """Alpha and beta orbitals in turn, each of their own; complex ones may mix spins."""
        if self._complex:
            return hamiltonian(h, eri, nelec, spin_orbitals=True, **chosen | {"spin": None})
        half = self._n // 2
        i, j = positions(half, 2, strict=False)
        pairs = [pair_numbers(2 * i + s, 2 * j + s, self._n, real=True) for s in range(2)]
        both = [eri[np.ix_(pairs[x], pairs[y])] for x, y in ((0, 0), (0, 1), (1, 1))]
        if "irreps" in chosen:
            chosen["irreps"] = chosen["irreps"][::2]
        if "orbital_energies" in chosen:
            chosen["orbital_energies"] = np.reshape(chosen["orbital_energies"], (half, 2)).T
        return hamiltonian([h[s::2, s::2] for s in range(2)], both, nelec, **chosen)

    def _refuse(self, place: int, expected: str, *, absolute: bool = False) -> None:
        number, line = self._line(place if absolute else self._entries + place)
        raise ArgumentError(f"{self._path}, line {number}: {line!r:.80} is not {expected}")

    def _refuse_repeat(self, entry: int) -> None:
        """Refuse an entry that differs from another one of the same integral."""
        found: list[tuple[object, int, str]] = []
        section = 0
        for number, line in self._all_lines():
            key = _canonical(line)
            found.append(((section, key), number, line))
            section += self._by_spin and key == _canonical("0 0 0 0 0")
        same = [(number, line) for key, number, line in found if key == found[entry][0]]
        first = same[0]
        number, line = next((x for x in same if x[1].split()[0] != first[1].split()[0]), first)
        others = f"line {first[0]}, {first[1]!r:.80}" if number != first[0] else "its conjugate"
        raise ArgumentError(
            f"{self._path}, line {number}: {line!r:.80} contradicts {others}: by the symmetry of "
            f"{'complex' if self._complex else 'real'} orbitals they are equal: correct one"
        )

    def _refuse_lines(self, columns: int) -> None:
        """Refuse the first line that is not an entry."""
        for number, line in self._all_lines():
            words = line.encode().translate(_AS_IN_C).split()
            with suppress(ValueError):
                numbers = [float(word) for word in words]
                if len(words) == columns and all(x.is_integer() for x in numbers[-4:]):
                    continue
            raise ArgumentError(
                f"{self._path}, line {number}: {line!r:.80} is not a value and four numbers of "
                f"orbitals, with blanks between them or all in equal columns: correct it"
            )

    def _all_lines(self) -> Iterator[tuple[int, str]]:
        """Number and text of the lines of entries."""
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number > self._header_lines and line.strip():
                    yield number, line.decode("ascii", "replace").strip()

    def _line(self, entry: int) -> tuple[int, str]:
        return next(found for k, found in enumerate(self._all_lines()) if k == entry)


def _with_blanks(text: bytes) -> bytes | None:
    """Lines in fixed format with blanks between their numbers; None if their widths differ.

    Indices of equal width run together, and into the number, where they are as long as that. A
    Fortran program writes two digits of an exponent.

    Example:
        >>> _with_blanks(b" 0.5000E+001000 100   1   1")
        b' 0.5000E+00 1000  100    1    1'
    """
    lines: list[bytes] = []
    widths = set()
    for line in text.split(b"\n"):
        line = line.rstrip()
        match = _FIXED.fullmatch(line)
        width, rest = divmod(len(match[2]), 4) if match else (0, 0)
        if match is None or rest or width < _NARROWEST:
            if line:
                return None
            lines.append(line)
            continue
        widths.add(width)
        parts = [match[2][k : k + width] for k in range(0, 4 * width, width)]
        if not all(part.strip().isdigit() and part[-1:].isdigit() for part in parts):
            return None
        lines.append(b" ".join([match[1], *parts]))
    return b"\n".join(lines) if len(widths) == 1 else None


def _canonical(line: str) -> object:
    """The same for entries of permuted indices."""
    line = (_with_blanks(line.encode()) or line.encode()).decode().replace(")", " ")
    i, j, k, l = (int(float(word)) for word in line.split()[-4:])
    return tuple(sorted((tuple(sorted((i, j))), tuple(sorted((k, l))))))


def write_fcidump(
    path: str | Path, reference: Any, frozen: Frozen = 0, *, tolerance: float = 1e-15
) -> None:
    """Write the integrals of a reference for other programs, and for :func:`read_fcidump`.

    Occupied orbitals come first. Frozen core orbitals are in the core Hamiltonian and energy. UHF
    has six sections (IUHF=1); orbitals of GHF are spin orbitals (UHF=.TRUE.) with complex entries.

    Args:
        path: the file.
        reference: a converged mean field of PySCF, or a Hamiltonian.
        frozen: orbitals that are left out, as in ``solve``.
        tolerance: integrals of at most this size are left out, in Hartree.

    Raises:
        ArgumentError: the reference does not fit, or alpha and beta orbitals differ in number.
        UnavailableError: the file cannot be written.

    Example (docs/solve.md runs it):

        tcgen.chem.write_fcidump("FCIDUMP", mf, frozen=1)
    """
    real = isinstance(tolerance, int | float | np.number) and not np.iscomplexobj(tolerance)
    if not real or not 0 <= tolerance < np.inf:
        raise ArgumentError(
            f"tolerance={tolerance!r:.80} is not an energy of at least 0, in Hartree"
        )
    found = read_reference(reference, frozen)
    integrals = found.integrals()
    general = found.kind == "GHF"
    names = (SPIN_ORBITAL,) if general else (ALPHA, BETA)
    frames = [found.frames[name] for name in names]
    places = [np.arange(frames[0].count)]
    if not general:
        places = [frame.parts[name].places for name, frame in zip(names, frames, strict=True)]
    orders = [tuple(range(frame.count)) for frame in frames]
    if found.kind == "ROHF":
        doubly = {*places[1][: frames[1].occupied].tolist()}
        orders[0] = tuple(sorted(orders[0], key=lambda k: places[0][k] not in doubly))
    if len({frame.count for frame in frames}) > 1 or (
        found.kind == "ROHF" and {*places[0]} != {*places[1]}
    ):
        raise ArgumentError(
            f"frozen={frozen!r} leaves other alpha than beta orbitals, which an FCIDUMP does not "
            f"have: freeze the same for both"
        )
    cores = {name: core_hamiltonian(name, found, integrals) for name in names}
    core = core_energy(found, cores)
    electrons = [frame.occupied for frame in frames]
    n, unpaired = frames[0].count, 0 if general else electrons[0] - electrons[1]
    labels, isym = [1] * n, 1
    if isinstance(reference, Hamiltonian) and reference.irreps is not None:
        own = [reference.irreps[place] for place in places[0][list(orders[0])]]
        if all(isinstance(label, int) for label in own):
            labels, isym = [int(label) for label in own], reference.isym or 1
        else:
            warnings.warn(
                f"an FCIDUMP holds numbers of irreps, and {own[0]!r:.20} is a text: all orbitals "
                f"are written with the label 1, which means no symmetry; make the Hamiltonian with "
                f"irreps=[1, ...] for others",
                RuntimeWarning,
                stacklevel=2,
            )
    flag = {"UHF": " IUHF=1,", "GHF": " UHF=.TRUE.,"}.get(found.kind, "")
    try:
        with whole_file(Path(path)) as file:
            file.write(
                f" &FCI NORB={n},NELEC={sum(electrons)},MS2={unpaired},\n"
                f"  ORBSYM={','.join(map(str, labels))},\n  ISYM={isym},{flag}\n &END\n".encode()
            )
            several = found.kind == "UHF"
            zero = np.zeros(1, complex if general else float)
            for x, y in ((0, 0), (1, 1), (0, 1)) if several else ((0, 0),):
                blocks = [Block(names[k], orders[k]) for k in (x, y)]
                _write_pairs(file, integrals, blocks, zero.dtype, tolerance)
                _write_entries(file, zero, (), -several)
            for name, order in list(zip(names, orders, strict=True))[: 2 if several else 1]:
                matrix = cores[name][np.ix_(order, order)].astype(zero.dtype, copy=False)
                i, j = positions(n, 2, strict=False)
                _write_entries(file, matrix[i, j], (i, j), tolerance)
                _write_entries(file, zero, (), -several)
            _write_entries(file, zero + core, (), -1)
    except OSError as error:
        raise UnavailableError(f"cannot write {path}: {error.strerror}") from error


def _write_pairs(
    file: BinaryIO, integrals: Integrals, blocks: Sequence[Block], dtype: Any, tolerance: float
) -> None:
    """Write (pq|rs) with p, q of one block and r, s of another, each once."""
    (p, r), n = blocks, len(blocks[0].places)
    real = np.dtype(dtype).kind == "f"
    i, j = positions(n, 2, strict=False) if real else np.indices((n, n)).reshape(2, -1)
    matrix = integrals.triangles(p, r) if real else None
    if matrix is None:
        matrix = integrals.chemist(p, p, r, r)[i, j][:, i, j].astype(dtype, copy=False)
    for row, values in enumerate(matrix):
        own = slice(row + 1 if p == r else None)
        whole = np.broadcast_arrays(i[row], j[row], i[own], j[own])
        _write_entries(file, values[own], whole, tolerance)


def _write_entries(
    file: BinaryIO, values: Array, indices: Sequence[Array], tolerance: float
) -> None:
    """Write a line for each value that is not negligible."""
    kept = np.abs(values) > tolerance
    columns = [index[kept] + 1 for index in indices]
    columns += [np.zeros(kept.sum(), int)] * (4 - len(columns))
    own = values[kept]
    number = "(%.16E,%.16E)" if np.iscomplexobj(values) else "%24.16E"
    numbers = [own.real, own.imag] if np.iscomplexobj(values) else [own]
    rows = np.column_stack([*numbers, *columns]).ravel().tolist()
    file.write(((f" {number} %d %d %d %d\n" * len(own)) % tuple(rows)).encode())
