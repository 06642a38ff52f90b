"""FCIDUMP files as programs write them, made here from their layouts, and files that are wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.chem import read_fcidump
from tcgen.chem.fcidump import _with_blanks
from tcgen.simplices import positions

pytestmark = [
    pytest.mark.filterwarnings("ignore:the orbitals of .* are not canonical:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:an occupied orbital:RuntimeWarning"),
]
Array = np.ndarray
N, CORE = 3, 2.75


def real(seed: int, n: int = N) -> tuple[Array, Array]:
    """h and (pq|rs) with the symmetries of real orbitals, some of them zero."""
    rng = np.random.default_rng(seed)
    h = rng.random((n, n))
    b = rng.random((3, n, n))
    b += b.transpose(0, 2, 1)
    eri = np.einsum("xpq,xrs->pqrs", b, b)
    # An irrep of its own for the last orbital makes elements vanish.
    odd = np.arange(n) == n - 1
    h[odd[:, None] ^ odd] = 0
    eri[odd[:, None, None, None] ^ odd[:, None, None] ^ odd[:, None] ^ odd] = 0
    return h + h.T, eri


H, ERI = real(1)
HB, BB = real(2)
AB = np.einsum("pq,rs->pqrs", H, HB)
ENERGIES = np.arange(N) - 1.5


def permutations(key: str, n: int = N) -> Iterator[tuple[int, int, int, int]]:
    """The indices of the integrals that are written, from 0."""
    for p, q, r, s in product(range(n), repeat=4):
        left, right = p * (p + 1) // 2 + q, r * (r + 1) // 2 + s
        if (
            key == "all"
            or (p >= q and r >= s and key == "4")
            or (p >= q and r >= s and left >= right)
        ):
            yield p, q, r, s


def lines(
    h: Array, eri: Array, key: str = "8", number: str = "{:24.16E}", shift: tuple[int, int] = (0, 0)
) -> list[str]:
    """Entries; ``shift`` is added to the numbers of the orbitals of both pairs."""
    n = len(h)
    form = number + " {:3d} {:3d} {:3d} {:3d}"
    rows = [
        form.format(
            eri[p, q, r, s], *(np.array([p, q]) + 1 + shift[0]), *(np.array([r, s]) + 1 + shift[1])
        )
        for p, q, r, s in permutations(key, n)
        if eri[p, q, r, s] != 0
    ]
    whole = ((p, q) for p in range(n) for q in range(n if key == "all" else p + 1))
    return rows + [
        form.format(h[p, q], p + 1 + shift[0], q + 1 + shift[0], 0, 0)
        for p, q in whole
        if h.any() and (h[p, q] != 0 or key == "all")
    ]


def core(number: str = "{:24.16E}", value: float = CORE) -> list[str]:
    return [number.format(value) + " 0 0 0 0"]


def energies(number: str = "{:24.16E}", values: Array = ENERGIES) -> list[str]:
    return [f"{number.format(e)} {k} 0 0 0" for k, e in enumerate(values, 1)]


NONE = np.zeros((N, N))
SECTIONS = [
    *lines(NONE, ERI), *core(value=0), *lines(NONE, BB), *core(value=0), *lines(NONE, AB, "4"),
    *core(value=0), *lines(H, 0 * ERI), *core(value=0), *lines(HB, 0 * ERI), *core(value=0),
    *core(),
]  # fmt: skip


def interleaved(equal: bool) -> tuple[Array, Array]:
    """Spin orbitals, alpha and beta in turn."""
    h, eri = np.zeros((2 * N,) * 2), np.zeros((2 * N,) * 4)
    blocks = ((H, ERI), (H if equal else HB, ERI if equal else BB))
    mixed = ERI if equal else AB
    for x in range(2):
        h[x::2, x::2], eri[x::2, x::2, x::2, x::2] = blocks[x]
    eri[::2, ::2, 1::2, 1::2] = mixed
    eri[1::2, 1::2, ::2, ::2] = mixed.transpose(2, 3, 0, 1)
    return h, eri


GAMESS = [line.replace("E", "D") for line in lines(H, ERI) + core()]
BLOCK2 = " &FCI NORB=3,NELEC=4,MS2=0,\n  ORBSYM=1,1,2,\n  ISYM=1,{}\n &END\n"
# name: header, lines, kind
DIALECTS: dict[str, tuple[str, list[str], str]] = {
    "PySCF, both orders of pairs": (
        "&FCI NORB=   3,NELEC= 4,MS2=0,\n  ORBSYM=1,1,1,\n  ISYM=1,\n &END\n",
        lines(H, ERI, "4", "{:.16g}") + core("{:.16g}"),
        "RHF",
    ),
    "PySCF, symmetry from 0, no comma": (
        "&FCI NORB=   3,NELEC= 4,MS2=0,\n  ORBSYM=0,0,3\n  ISYM=1,\n &END\n",
        lines(H, ERI, "4", "{:.16g}") + core("{:.16g}"),
        "RHF",
    ),
    "block2": (BLOCK2.format("IUHF=0"), lines(H, ERI) + core(), "RHF"),
    "block2, all permutations": (
        BLOCK2.format("IGENERAL=1,ITGENERAL=1"), lines(H, ERI, "all") + core(), "RHF",
    ),
    "block2, unrestricted": (
        BLOCK2.format("IUHF=1").replace("NELEC=4,MS2=0", "NELEC=3,MS2=1"), SECTIONS, "UHF",
    ),
    "Molpro": (
        "&FCI NORB=  3,NELEC=  4,MS2= 0,OCC=2,0,CLOSED=0,0,\nORBSYM=1,1,2,\n ISYM=1\n/\n",
        lines(H, ERI) + core(),
        "RHF",
    ),
    "Molpro, unrestricted": (
        "&FCI NORB=  3,NELEC=  3,MS2= 1,\n  ORBSYM=1,1,2,\n  ISYM=1, IUHF=1\n/\n", SECTIONS, "UHF",
    ),
    "qiskit-nature": (
        "&FCI NORB=3,NELEC=4,MS2=0,IPRTIM=-1,\n ORBSYM=1,1,1,\n ISYM=1,\n&END\n",
        lines(H, ERI) + core(),
        "RHF",
    ),
    "qiskit-nature, beta orbitals behind": (
        "&FCI NORB=3,NELEC=3,MS2=1,\n ORBSYM=1,1,1,\n ISYM=1,\n&END\n",
        lines(H, ERI)
        + lines(NONE, AB.transpose(2, 3, 0, 1), "4", shift=(N, 0))
        + lines(HB, BB, shift=(N, N))
        + core(),
        "UHF",
    ),
    "trexio-tools, open shell": (
        "&FCI NORB=3, NELEC=3, MS2=1, UHF=.TRUE.,\n ISYM=1,\n&END\n",
        lines(H, ERI) + core(),
        "ROHF",
    ),
    "trexio-tools, spin orbitals of a singlet": (
        "&FCI NORB=6, NELEC=4, MS2=0,\n ISYM=1,\n&END\n",
        lines(*interleaved(True)) + core(),
        "spin",
    ),
    "HANDE": (
        " &FCI\n  norb = 3, nelec = 4, ms2 = 0,\n  orbsym = 1,1,2,\n  isym = 1, syml = 3*0, "
        "symlz = 3*0, nprop=1,1,1, propbitlen=15 /\n",
        lines(H, ERI) + energies() + core(),
        "RHF",
    ),
    "HANDE, NECI, spin orbitals": (
        " &FCI NORB=6,NELEC=3,MS2=1,ORBSYM=6*0,ISYM=1,UHF=.TRUE. &END\n",
        lines(*interleaved(False)) + core(),
        "UHF",
    ),
    "NECI, sections": (
        " &FCI NORB=3,NELEC=3,MS2=1,ORBSYM=3*1,ISYM=1,UHF=T,\n &END\n", SECTIONS, "UHF",
    ),
    "OpenMolcas": (
        " &FCI NORB= 3,NELEC= 4,MS2= 0,\n  ORBSYM=1,1,2,\n  ISYM=0,\n /\n",
        lines(H, ERI, "8", "{:20.10E}") + energies("{:20.10E}") + core("{:20.10E}"),
        "RHF",
    ),
    "GAMESS": (
        " &FCI NORB=3 NELEC=4 MS2=0\n ORBSYM=1 1 1\n ISYM=1 UHF=.FALSE.\n &END\n", GAMESS, "RHF",
    ),
    "Psi4": (
        "&FCI\nNORB=3,\nNELEC=4,\nMS2=0,\nUHF=.FALSE.,\nORBSYM=1,1,3,\nISYM=0,\n&END\n",
        lines(H, ERI) + energies() + core(),
        "RHF",
    ),
    "Quantum Package, any order": (
        "&FCI NORB=3, NELEC=4, MS2=0,\nORBSYM=1,1,1,\nISYM=0,\n/\n",
        [*core("{:.17g}"), *reversed(lines(H, ERI, "8", "{:.17g}"))],
        "RHF",
    ),
    "qc-iodata": (
        " &FCI NORB=3,NELEC=4,MS2=0,\n  ORBSYM= 1,1,1\n  ISYM=1\n &END\n",
        lines(H, ERI, "8", "{:23.16e}") + core(),
        "RHF",
    ),
    "$END, blank lines, no energy of the core": (
        "\n$fci norb=3 nelec=4\n$end\n\n", ["", *lines(H, ERI), "", "0.0 0 0 0 0", ""], "bare",
    ),
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    def write(header: str, entries: list[str]) -> Path:
        path = tmp_path / "FCIDUMP"
        path.write_text(header + "\n".join(entries) + "\n")
        return path

    return write


def over_pairs(eri: Array) -> Array:
    i, j = positions(N, 2, strict=False)
    return eri[i, j][:, i, j]


@pytest.mark.parametrize("name", DIALECTS)
def test_files_of_programs(name: str, file: Any) -> None:
    header, entries, kind = DIALECTS[name]
    found = read_fcidump(file(header, entries))
    digits = 1e-9 if name == "OpenMolcas" else 1e-14
    close = {"rtol": 0, "atol": digits}
    assert abs(found.core - (0.0 if kind == "bare" else CORE)) < digits
    beta = kind not in ("RHF", "ROHF", "bare")
    assert found.kind == ("UHF" if beta else kind.replace("bare", "RHF"))
    assert found.nelec == ((2, 1) if "NELEC=3" in header.replace(" ", "") else (2, 2))
    h = [H, H if kind == "spin" else HB] if beta else [H]
    for one, expected in zip(found.h, h, strict=True):
        np.testing.assert_allclose(one, expected, **close)
    pairs = {(0, 0): ERI, (0, 1): AB, (1, 1): BB} if beta else {(0, 0): ERI}
    pairs = dict.fromkeys(pairs, ERI) if kind == "spin" else pairs
    assert found.pairs.keys() == pairs.keys()
    for place, expected in pairs.items():
        np.testing.assert_allclose(found.pairs[place], over_pairs(expected), **close)
    labels = {
        "HANDE": (1, 1, 2),
        "PySCF, symmetry from 0, no comma": (0, 0, 3),
        "qiskit-nature": (1,) * 3,
    }
    assert found.irreps == labels.get(name, found.irreps)


def test_complex_entries(file: Any) -> None:
    rng = np.random.default_rng(3)
    n = 4
    b = rng.random((3, n, n)) + 1j * rng.random((3, n, n))
    b = b + b.transpose(0, 2, 1).conj()
    eri, h = np.einsum("xpq,xrs->pqrs", b, b), b[0]
    rows = [
        f"({eri[x].real:.16e},{eri[x].imag:.16e}) {' '.join(str(k + 1) for k in x)}"
        for x in np.ndindex(eri.shape)
        if x[0] * n + x[1] >= x[2] * n + x[3]
    ]
    rows += [
        f"({h[x].real:.16e},{h[x].imag:.16e}) {x[0] + 1} {x[1] + 1} 0 0"
        for x in np.ndindex(h.shape)
    ]
    header = " &FCI NORB=4,NELEC=2,MS2=0,UHF=.TRUE.,\n &END\n"
    found = read_fcidump(file(header, [*rows, "(2.75,0.0) 0 0 0 0"]))
    assert (found.kind, found.core, found.nelec) == ("GHF", CORE, (2, 0))
    np.testing.assert_allclose(found.h[0], h, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.pairs[0, 0].reshape(eri.shape), eri, rtol=0, atol=1e-15)


HEADER = " &FCI NORB=3,NELEC=4,MS2=0,\n  ORBSYM=1,1,1,\n  ISYM=1,\n &END\n"


@pytest.mark.parametrize(
    ("header", "entries", "words"),
    [
        (HEADER, ["0.5 2 1 1 1", "", "0.1 3 3 0 0", "0.6 1 1 1 2"], "line 8 contradicts line 5"),
        (HEADER, ["0.5 2 1 0 0", "0.25 1 2 0 0"], "line 6 contradicts line 5"),
        (HEADER, ["1.5 0 0 0 0", "0.25 0 0 0 0", "1 1 1 0 0"], "line 6 contradicts line 5"),
        (HEADER, ["0.5 2 1 1 1", "0.5 2 1 1"], "line 6 0.5 2 1 1 four numbers"),
        (HEADER, ["0.5 2 1 1 1", "0.5 2 1 1 1.5"], "line 6 1.5 four numbers"),
        (HEADER, ["abc 2 1 1 1"], "line 5 abc"),
        (HEADER, ["0.5 2 1 1 7"], "line 5 3 orbitals"),
        (HEADER, ["0.5 2 1 1 -1"], "line 5 3 orbitals"),
        (HEADER, ["0.5 2 0 1 1"], "line 5"),
        (HEADER, ["0.5 2 1 1 0"], "line 5"),
        (HEADER, ["nan 2 1 1 1"], "line 5"),
        (HEADER, ["0.5 4 1 1 1"], "line 5 alpha 1 to 3 beta 4 to 6 NORB"),
        (HEADER.replace("NELEC=4", "NELEC=3"), ["1 1 1 0 0", *core()], "nelec 3 spin 0"),
        (HEADER.replace("NELEC=4", "NELEC=8"), ["1 1 1 0 0", *core()], "nelec 8 3 orbitals"),
        (HEADER.replace("NELEC", "ELEC"), ["1 1 1 0 0", *core()], "NELEC"),
        (HEADER.replace("NELEC=4", "NELEC=4.5"), ["1 1 1 0 0", *core()], "NELEC=4.5 integers"),
        (HEADER, [], "no integrals"),
        (HEADER.replace("NORB=3", "NORB=100000"), [*core()], "NORB=100000 100,000 bytes number"),
        (HEADER.replace("1,1,1", "1,A,1"), ["1 1 1 0 0", *core()], "ORBSYM"),
        (HEADER.replace("MS2=0", "UHF=T"), ["1 1 1 0 0", *["1 0 0 0 0"] * 6], "line 6 section"),
        (HEADER.replace("MS2=0", "IUHF=1"), [*core(), *lines(H, ERI)], "line 5 last"),
        (HEADER, ["(0,1) 1 1 0 0"], "line 5 conjugate"),
        (HEADER, ["(0,1) 2 1 0 0", "(0,1) 1 2 0 0"], "line 5 complex"),
        ("3 4 0\n", ["1 1 1 0 0"], "FCIDUMP END"),
    ],
)  # fmt: skip
def test_files_that_are_wrong(header: str, entries: list[str], words: str, file: Any) -> None:
    with pytest.raises(tcgen.TcgenError, match=mentions(words)):
        read_fcidump(file(header, entries))


@pytest.mark.parametrize("dialect", ["block2", "block2, unrestricted"])
def test_files_that_were_cut_off(dialect: str, file: Any) -> None:
    """No part of a file is read as a whole one without a word, wherever it ends."""
    header, rows, _ = DIALECTS[dialect]
    rows = list(rows)
    whole = read_fcidump(file(header, rows))
    assert whole.core == CORE
    for count in range(1, len(rows)):
        with pytest.raises((tcgen.ArgumentError, RuntimeWarning), match=mentions("cut off")):
            read_fcidump(file(header, rows[:count]))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(tcgen.ArgumentError, match="nothing"):
        read_fcidump(tmp_path / "nothing")
    held = tcgen.chem.hamiltonian(H, ERI, 4)
    with pytest.raises(tcgen.UnavailableError, match="nowhere"):
        tcgen.chem.write_fcidump(tmp_path / "nowhere" / "FCIDUMP", held)


@pytest.mark.parametrize("kind", ["RHF", "ROHF", "UHF", "GHF", "fitted"])
def test_what_is_written_is_read(kind: str, tmp_path: Path, monkeypatch: Any) -> None:
    keywords: dict[str, Any] = {"core": CORE, "irreps": [1, 1, 3], "isym": 3}
    arrays: tuple[Any, ...] = (H, ERI, 4)
    if kind == "ROHF":
        arrays = (H, ERI, 3)
    elif kind == "UHF":
        arrays = ([H, HB], [ERI, AB, BB], (2, 1))
    elif kind == "GHF":
        arrays, keywords["spin_orbitals"] = (H + 1j * (np.tri(3) - np.tri(3).T), ERI + 0j, 2), True
    elif kind == "fitted":
        arrays, keywords["cderi"] = (H, None, 4), np.stack([H, HB])
    held = tcgen.chem.hamiltonian(*arrays, **keywords)
    # Lines are parsed in several parts.
    monkeypatch.setattr("tcgen.chem.fcidump._CHUNK", 200)
    tcgen.chem.write_fcidump(tmp_path / "FCIDUMP", held)
    found = read_fcidump(tmp_path / "FCIDUMP")
    assert (found.kind, found.nelec, found.irreps, found.isym) == (
        held.kind, held.nelec, held.irreps, held.isym,
    )  # fmt: skip
    assert found.e_hf == pytest.approx(held.e_hf, abs=1e-12)
    for one, other in zip(found.fock, held.fock, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_occupied_and_frozen_orbitals_of_a_file(tmp_path: Path) -> None:
    """Occupied orbitals are written first; those that are frozen are in the core."""
    held = tcgen.chem.hamiltonian(H, ERI, 4, core=CORE, occupied=[0, 2], frozen=[2])
    with pytest.raises(tcgen.ArgumentError, match=mentions("frozen=1 frozen=[2]")):
        held.reference(frozen=1)
    tcgen.chem.write_fcidump(tmp_path / "FCIDUMP", held)
    found = read_fcidump(tmp_path / "FCIDUMP")
    assert found.nelec == (1, 1)
    assert len(found.h[0]) == 2
    assert found.e_hf == pytest.approx(held.e_hf, abs=1e-12)
    np.testing.assert_allclose(found.fock[0], held.fock[0][:2, :2], atol=1e-12)


@pytest.mark.parametrize("kind", ["RHF", "ROHF", "UHF"])
def test_mean_fields_and_the_files_of_pyscf(kind: str, blocks: Any, tmp_path: Path) -> None:
    from pyscf.tools import fcidump

    spin = int(kind != "RHF")
    atoms = "Be 0 0 0; H 0 0 1.3426" if spin else "Li 0 0 0; H 0 0 1.5957"
    field = blocks.mean_field(blocks.molecule(atoms, "sto-3g", spin=spin), kind)
    path = tmp_path / "FCIDUMP"
    for frozen in (0, 1, [0, 5]):
        tcgen.chem.write_fcidump(path, field, frozen)
        found = read_fcidump(path)
        assert found.kind == kind
        assert found.e_hf == pytest.approx(field.e_tot, abs=1e-9)
    if kind == "UHF":
        with pytest.raises(tcgen.ArgumentError, match=mentions("frozen alpha beta FCIDUMP")):
            tcgen.chem.write_fcidump(path, field, [[0], []])
        return
    read = fcidump.read(str(path), verbose=False)
    assert (read["NORB"], read["MS2"]) == (4, spin)
    np.testing.assert_allclose(read["H1"], found.h[0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(
        read["H2"].ravel(), found.pairs[0, 0][np.tril_indices(10)], atol=1e-15
    )
    fcidump.from_scf(field, str(path))
    assert read_fcidump(path).e_hf == pytest.approx(field.e_tot, abs=1e-9)


@pytest.mark.parametrize("tolerance", ["x", -1.0, float("nan"), float("inf"), 1j, None])
def test_a_tolerance_that_is_none(tolerance: object, tmp_path: Path) -> None:
    held = tcgen.chem.hamiltonian(np.diag([-1.0, 1.0]), np.zeros((2,) * 4), nelec=2)
    with pytest.raises(tcgen.ArgumentError, match="tolerance"):
        tcgen.chem.write_fcidump(tmp_path / "F", held, tolerance=tolerance)  # type: ignore[arg-type]
    assert not (tmp_path / "F").exists()


@pytest.mark.parametrize("labels", [["A1", "B1"], [2, "B1"], [2, 3]])
def test_labels_are_written_as_they_can_be_read(labels: list[int | str], tmp_path: Path) -> None:
    h = np.diag([-1.0, 1.0])
    held = tcgen.chem.hamiltonian(h, np.zeros((2,) * 4), nelec=2, irreps=labels)
    if labels == [2, 3]:
        tcgen.chem.write_fcidump(tmp_path / "F", held)
    else:
        with pytest.warns(RuntimeWarning, match="label 1, which means no symmetry"):
            tcgen.chem.write_fcidump(tmp_path / "F", held)
    read = tcgen.chem.read_fcidump(tmp_path / "F").irreps
    assert read == ((2, 3) if labels == [2, 3] else (1, 1))


@pytest.mark.parametrize("width", [3, 4, 5])
@pytest.mark.parametrize("number", ["{:23.16E}", "{:.10E}", "({0:.16E},{0:.16E})"])
def test_indices_of_fixed_format_are_told_apart(width: int, number: str) -> None:
    """Orbitals of numbers as wide as their columns; a Fortran program leaves no blank."""
    most = 10**width - 1
    rows = [(0.5, most, most - 1, 1, 2), (-0.25, 1, 1, 1, 1), (-1.0, most, 2, 0, 0)]
    lines = [number.format(x) + "".join(f"{n:{width}d}" for n in own) for x, *own in rows]
    fixed = "\n".join(lines) + "\n"
    spaced = _with_blanks(fixed.encode())
    assert spaced is not None
    words = [line.split() for line in spaced.splitlines()]
    assert [[int(x) for x in line[1:]] for line in words] == [list(row[1:]) for row in rows]
    assert [line[0].decode() for line in words] == [number.format(row[0]).strip() for row in rows]


@pytest.mark.slow
def test_a_file_in_fixed_format(tmp_path: Path) -> None:
    rows = [(0.5, 101, 100, 1, 2), (0.25, 1, 1, 1, 1), (-1.0, 101, 2, 0, 0), (3.0, 0, 0, 0, 0)]
    head = " &FCI NORB=101,NELEC=2,MS2=0,\n &END\n"
    for name, form in (("fixed", "{:23.16E}" + "{:3d}" * 4), ("free", "{} {} {} {} {}")):
        (tmp_path / name).write_text(head + "".join(form.format(*r) + "\n" for r in rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = (read_fcidump(tmp_path / name) for name in ("fixed", "free"))
    assert one.e_hf == two.e_hf
    assert np.array_equal(one.h[0], two.h[0])
    assert np.array_equal(one.pairs[0, 0], two.pairs[0, 0])
    assert one.h[0][100, 1] == -1.0


@pytest.mark.parametrize(
    "line", ["0.5 1 1 1", "0.5 1 1 111", "0.5E+00 1 1 1", " 0.5E+00   1  1  1", "0.5E+00 1 1 1 x"]
)
def test_a_line_that_lacks_a_number_is_not_fixed_format(line: str, tmp_path: Path) -> None:
    path = tmp_path / "F"
    path.write_text(f" &FCI NORB=2,NELEC=2,MS2=0,\n &END\n{line}\n1.0 1 1 0 0\n")
    with pytest.raises(tcgen.ArgumentError, match=mentions("line 3 four numbers")):
        read_fcidump(path)


@pytest.mark.slow
def test_contradictions_in_fixed_format_have_lines(tmp_path: Path) -> None:
    path = tmp_path / "F"
    entries = " 0.5E+00101  1  1  1\n 0.7E+00  1101  1  1\n"
    path.write_text(f" &FCI NORB=101,NELEC=2,MS2=0,\n &END\n{entries}")
    with pytest.raises(tcgen.ArgumentError, match=mentions("line 3 4")):
        read_fcidump(path)
