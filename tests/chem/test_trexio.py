"""TREXIO files of both back ends, written by the package from arrays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.command_line import invoke
from support.messages import mentions
from tcgen.chem import hamiltonian, read_trexio

trexio = pytest.importorskip("trexio")
pytestmark = [
    pytest.mark.filterwarnings("ignore:the orbitals of .* are not canonical:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:an occupied orbital:RuntimeWarning"),
]
N, CORE = 4, 1.5
BACK_ENDS = [trexio.TREXIO_TEXT, trexio.TREXIO_HDF5]


def real(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """h and three-index integrals."""
    rng = np.random.default_rng(8)
    h, b = rng.random((n, n)), rng.random((n * n + 1, n, n))
    return h + h.T, b + b.transpose(0, 2, 1)


H, B = real()
ERI = np.einsum("xpq,xrs->pqrs", B, B)


def write(
    path: Path, back_end: int = trexio.TREXIO_HDF5, *, leave_out: str = "", **fields: Any
) -> Path:
    """A file with fields by name; sparse ones are (indices, values)."""
    given = {
        "electron_up_num": 2, "electron_dn_num": 2, "mo_num": N, "nucleus_repulsion": CORE,
        "mo_1e_int_core_hamiltonian": H, "mo_2e_int_eri": sparse(ERI.transpose(0, 2, 1, 3)),
    } | fields  # fmt: skip
    with trexio.File(str(path), "w", back_end) as file:
        for name, value in given.items():
            put = getattr(trexio, f"write_{name}")
            if name in leave_out.split():
                continue
            if isinstance(value, tuple):
                put(file, 0, len(value[1]), *value)
            else:
                put(file, value)
    return path


def sparse(array: np.ndarray, unique: bool = True) -> tuple[Any, Any]:
    """Indices and values of <ij|kl>, one of eight, or of all elements."""
    rows = [
        x
        for x in np.ndindex(array.shape)
        if not unique or (x[0] >= x[2] and x[1] >= x[3] and (x[0], x[2]) >= (x[1], x[3]))
    ]
    return np.array(rows, np.int32), np.array([array[x] for x in rows])


CHOLESKY = {
    "mo_2e_int_eri_cholesky_num": len(B),
    "mo_2e_int_eri_cholesky": sparse(B.transpose(1, 2, 0), False),
    "leave_out": "mo_2e_int_eri",
}


@pytest.mark.parametrize("back_end", BACK_ENDS)
@pytest.mark.parametrize("kind", ["eri", "cholesky"])
def test_molecular_orbitals(kind: str, back_end: int, tmp_path: Path) -> None:
    more = {"mo_symmetry": ["A1", "B2", "A1", "A1"], "mo_energy": np.arange(N) * 1.0}
    found = read_trexio(
        write(tmp_path / "file", back_end, **more, **(CHOLESKY if kind != "eri" else {}))
    )
    expected = hamiltonian(H, ERI, 4, core=CORE)
    assert (found.kind, found.nelec, found.core) == ("RHF", (2, 2), CORE)
    assert found.irreps == ("A1", "B2", "A1", "A1")
    assert found.e_hf == pytest.approx(expected.e_hf, abs=1e-10)
    np.testing.assert_allclose(found.fock[0], expected.fock[0], rtol=0, atol=1e-10)
    assert found.origin == "TREXIO file"
    assert bool(found.factors) == (kind == "cholesky")


def test_the_repulsion_of_nuclei(tmp_path: Path) -> None:
    """It is in the file, or follows from charges and places in Bohr."""
    places = [[0.0, 0, 0], [0, 0, 2.5]]
    nuclei = {"nucleus_num": 2, "nucleus_charge": [3.0, 1.0], "nucleus_coord": places}
    for leave_out, core in (("", CORE), ("nucleus_repulsion", 1.2)):
        path = write(tmp_path / f"file{core}", **nuclei, leave_out=leave_out)
        assert read_trexio(path).core == pytest.approx(core)
    without = read_trexio(write(tmp_path / "model", leave_out="nucleus_repulsion"))
    assert without.core == 0.0


@pytest.mark.parametrize("kind", ["eri", "cholesky"])
def test_atomic_orbitals_are_transformed(kind: str, tmp_path: Path) -> None:
    """Orbitals over functions that are not orthonormal, one of which is left out."""
    rng = np.random.default_rng(5)
    a = rng.random((N, N)) + 2 * np.eye(N)
    back = np.linalg.inv(a)  # functions are a.T times orthonormal ones
    overlap = a.T @ a
    over = {x: x.replace("mo_2e", "ao_2e") for x in CHOLESKY}
    b = a.T @ B @ a
    eri = np.einsum("xpq,xrs->pqrs", b, b)
    path = write(
        tmp_path / "file", ao_num=N, mo_num=N - 1, ao_1e_int_overlap=overlap,
        ao_1e_int_core_hamiltonian=a.T @ H @ a, mo_coefficient=back.T[: N - 1],
        leave_out="mo_1e_int_core_hamiltonian mo_2e_int_eri",
        **{"ao_2e_int_eri": sparse(eri.transpose(0, 2, 1, 3))} if kind == "eri" else {
            over["mo_2e_int_eri_cholesky_num"]: len(B),
            over["mo_2e_int_eri_cholesky"]: sparse(b.transpose(1, 2, 0), False),
        },
    )  # fmt: skip
    found = read_trexio(path)
    m = N - 1
    expected = hamiltonian(H[:m, :m], ERI[:m, :m, :m, :m], 4, core=CORE)
    np.testing.assert_allclose(found.fock[0], expected.fock[0], rtol=0, atol=1e-9)
    path = write(
        tmp_path / "other", ao_num=N, ao_1e_int_overlap=overlap, mo_coefficient=np.eye(N),
        ao_1e_int_core_hamiltonian=a.T @ H @ a, ao_2e_int_eri=sparse(eri),
        leave_out="mo_1e_int_core_hamiltonian mo_2e_int_eri",
    )  # fmt: skip
    with pytest.raises(tcgen.ArgumentError, match=mentions("orthonormal ao_1e_int_overlap")):
        read_trexio(path)


@pytest.mark.parametrize("fitted", [False, True])
def test_spins(fitted: bool, tmp_path: Path) -> None:
    """Alpha and beta orbitals in any order; spin orbitals where these differ in number."""
    n, spins = 5, np.array([0, 1, 1, 0, 0])
    h, b = real(n)
    apart = spins[:, None] != spins
    h[apart], b[:, apart] = 0, 0
    eri = np.einsum("xpq,xrs->pqrs", b, b)

    def file(k: Any, up: int, down: int) -> Path:
        part = b[:, k][:, :, k]
        two = (
            {"mo_2e_int_eri_cholesky_num": len(b), "leave_out": "mo_2e_int_eri",
             "mo_2e_int_eri_cholesky": sparse(part.transpose(1, 2, 0), False)}
            if fitted else {"mo_2e_int_eri": sparse(eri[np.ix_(k, k, k, k)].transpose(0, 2, 1, 3))}
        )  # fmt: skip
        return write(
            tmp_path / f"{len(k)}", mo_num=len(k), electron_up_num=up, electron_dn_num=down,
            mo_spin=spins[k].tolist(), mo_energy=np.arange(len(k)) * 1.0,
            mo_1e_int_core_hamiltonian=h[np.ix_(k, k)], **two,
        )  # fmt: skip

    k, own = np.arange(4), ([0, 3], [1, 2])
    found = read_trexio(file(k, 1, 1))
    blocks = [eri[np.ix_(own[x], own[x], own[y], own[y])] for x, y in ((0, 0), (0, 1), (1, 1))]
    expected = hamiltonian([h[np.ix_(x, x)] for x in own], blocks, (1, 1), core=CORE)
    assert found.kind == "UHF"
    assert found.e_hf == pytest.approx(expected.e_hf, abs=1e-10)
    general = read_trexio(file(np.arange(5), 1, 1))
    expected = hamiltonian(h, eri, 2, core=CORE, spin_orbitals=True)
    assert general.kind == "GHF"
    assert general.e_hf == pytest.approx(expected.e_hf, abs=1e-10)


def test_files_that_are_wrong(tmp_path: Path) -> None:
    indices, values = sparse(ERI.transpose(0, 2, 1, 3))
    twice = np.vstack([indices, [[2, 0, 1, 0]]]), np.append(values, 9.0)
    over = "mo_1e_int_core_hamiltonian"
    more = {"mo_1e_int_core_hamiltonian_im": H - np.triu(2 * H)}
    for name, path, words in (
        ("a", write(tmp_path / "a", mo_2e_int_eri=twice), "mo_2e_int_eri permutations write one"),
        ("b", write(tmp_path / "b", **more), "complex TREXIO 2.6 two-electron hamiltonian"),
        ("c", write(tmp_path / "c", leave_out="mo_2e_int_eri"), "mo_2e_int_eri_cholesky"),
        ("d", write(tmp_path / "d", leave_out=over), over.replace("mo", "ao")),
        ("e", write(tmp_path / "e", electron_up_num=5), "nelec (5, 2) 4 orbitals"),
        ("f", tmp_path / "nothing", "nothing no such file"),
    ):
        with pytest.raises(tcgen.ArgumentError, match=mentions(words)):
            read_trexio(path)
        assert path.name in (name, "nothing")
    (tmp_path / "text").write_text("no TREXIO")
    with pytest.raises(tcgen.ArgumentError, match="TREXIO"):
        read_trexio(tmp_path / "text")


def test_more_orbitals_than_fit_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcgen.chem.pairs.memory_of_node", lambda: 8 * 10**2 - 1)
    path = write(tmp_path / "file.h5")
    with pytest.raises(tcgen.MemoryLimitError, match=mentions("file.h5 mo_2e_int_eri 4 800 799")):
        read_trexio(path)


def test_the_command_line(tmp_path: Path) -> None:
    path = write(tmp_path / "file.h5")
    options = ("--target", "numpy", "--no-optimize", "--json")
    result = invoke("solve", "mp2_closed_shell", "--trexio", path, *options)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["integrals"] == "TREXIO file.h5"
    assert found["e_hf"] == pytest.approx(read_trexio(path).e_hf, abs=1e-12)


def test_trexio_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "trexio", None)
    with pytest.raises(tcgen.UnavailableError, match=mentions("pip install trexio")):
        read_trexio("file")
