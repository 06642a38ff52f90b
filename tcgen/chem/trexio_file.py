"""TREXIO files, text and HDF5: integrals over molecular orbitals, or atomic ones to transform.

``mo_2e_int_eri`` is <ij|kl>, one permutation of each, from 0; ``mo_2e_int_eri_cholesky`` has
(i, j, vector). Spin orbitals have the spins 0 and 1 in ``mo_spin``. Coefficients are rows of
``mo_coefficient``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, UnavailableError, pip_install
from ..ir.layouts import Array
from ..simplices import positions
from .hamiltonian import Hamiltonian, hamiltonian
from .pairs import SparsePairs, pair_numbers, refuse_many, transformed

_READ_AT_ONCE = 1 << 22  # integrals
_ORTHONORMAL = 1e-6  # largest deviation of overlaps of orbitals


def read_trexio(
    path: str | Path, *, nelec: Any = None, spin: int | None = None, **keywords: Any
) -> Hamiltonian:
    """The Hamiltonian in a TREXIO file, or folder of the text back end, for ``solve``.

    It has integrals over molecular orbitals, with four indices or Cholesky vectors; those over
    atomic orbitals are transformed if there are no others. Orbitals of both spins (``mo_spin``) are
    alpha and beta orbitals, or spin orbitals if these differ in number.

    Args:
        path: the file.
        nelec: number of electrons in place of that in the file, or those of both spins.
        spin: 2S in place of that in the file.
        keywords: further ones of :func:`hamiltonian`, such as ``occupied`` and ``frozen``.

    Raises:
        ArgumentError: something is missing, complex or contradictory, or orbitals are not
            orthonormal.
        UnavailableError: the package trexio is not installed.

    Example (tests/chem/test_trexio.py runs it):

        energy = tcgen.chem.solve("ccsd_closed_shell", tcgen.chem.read_trexio("water.h5")).e_tot
    """
    try:
        import trexio  # noqa: PLC0415  (optional)
    except ImportError:
        raise UnavailableError(
            f"{path} needs trexio: pip install trexio, or {pip_install('trexio')}"
        ) from None
    path = Path(path)
    if not path.exists():
        raise ArgumentError(f"cannot read {path}: no such file")
    try:
        with trexio.File(str(path), "r", trexio.TREXIO_AUTO) as file:
            read = _Fields(trexio, file, path)
            return _hamiltonian(read, nelec, spin, keywords)
    except trexio.Error as error:
        raise ArgumentError(f"cannot read {path} as TREXIO: {error}") from error


class _Fields:
    """The fields of a file by name."""

    def __init__(self, trexio: Any, file: Any, path: Path) -> None:
        self._trexio, self._file, self.path = trexio, file, path

    def __contains__(self, name: str) -> bool:
        return bool(getattr(self._trexio, f"has_{name}")(self._file))

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise ArgumentError(
                f"{self.path} has no {name}: write integrals (mo_1e_int_core_hamiltonian, and "
                f"mo_2e_int_eri or mo_2e_int_eri_cholesky) and numbers of electrons to it"
            )
        return getattr(self._trexio, f"read_{name}")(self._file)

    def sparse(self, name: str) -> tuple[Array, Array]:
        """Indices and values of a sparse field."""
        count = getattr(self._trexio, f"read_{name}_size")(self._file)
        read = getattr(self._trexio, f"read_{name}")
        starts = range(0, count, _READ_AT_ONCE)
        parts = [read(self._file, k, min(_READ_AT_ONCE, count - k))[:2] for k in starts]
        indices, values = zip(*parts, strict=True)
        return np.concatenate(indices).astype(np.int64), np.concatenate(values)


def _hamiltonian(
    read: _Fields, nelec: Any, spin: int | None, keywords: dict[str, Any]
) -> Hamiltonian:
    for name in ("mo_1e_int_core_hamiltonian_im", "mo_coefficient_im"):
        if name in read and np.any(read[name]):
            raise ArgumentError(
                f"{read.path} has {name}: orbitals are complex, and TREXIO 2.6 has no place for "
                f"their two-electron integrals: pass these to tcgen.chem.hamiltonian"
            )
    over_molecular = "mo_1e_int_core_hamiltonian" in read
    eri: Any
    cderi: Any
    h, eri, cderi = _integrals(read, "mo" if over_molecular else "ao")
    if not over_molecular:
        c = np.asarray(read["mo_coefficient"]).T
        deviation = c.T @ np.asarray(read["ao_1e_int_overlap"]) @ c - np.eye(c.shape[1])
        if not np.abs(deviation).max(initial=0.0) <= _ORTHONORMAL:
            raise ArgumentError(
                f"{read.path}: molecular orbitals are not orthonormal in the overlap of the atomic "
                f"ones: they deviate by {np.abs(deviation).max():.1e}: correct mo_coefficient or "
                f"ao_1e_int_overlap"
            )
        h = c.T @ h @ c
        eri = None if eri is None else transformed(eri, c)
        cderi = None if cderi is None else c.T @ cderi @ c
    up, down = (int(read[f"electron_{name}_num"]) for name in ("up", "dn"))
    chosen: dict[str, Any] = {"origin": f"TREXIO {read.path.name}", "spin": spin}
    nelec = ((up, down) if spin is None else up + down) if nelec is None else nelec
    if "nucleus_repulsion" in read:
        chosen["core"] = read["nucleus_repulsion"]
    elif "nucleus_num" in read:
        places, charges = np.asarray(read["nucleus_coord"]), np.asarray(read["nucleus_charge"])
        i, j = positions(len(charges), 2, strict=True)
        distances = np.linalg.norm(places[i] - places[j], axis=1)
        chosen["core"] = float((charges[i] * charges[j] / distances).sum())
    if "mo_energy" in read:
        chosen["orbital_energies"] = read["mo_energy"]
    if "mo_symmetry" in read:
        chosen["irreps"] = list(read["mo_symmetry"])
    spins = np.asarray(read["mo_spin"]) if "mo_spin" in read else np.zeros(len(h), int)
    own = [np.flatnonzero(spins == s) for s in range(2)]
    if not len(own[1]):
        return hamiltonian(h, eri, nelec, cderi=cderi, **chosen | keywords)
    if len(own[0]) != len(own[1]):
        chosen |= {"spin_orbitals": True, "spin": None}
        return hamiltonian(h, eri, nelec, cderi=cderi, **chosen | keywords)
    for name in ("orbital_energies", "irreps"):
        if name in chosen:
            both = [[chosen[name][k] for k in places] for places in own]
            chosen[name] = both[0] if name == "irreps" else both
    i, j = positions(len(own[0]), 2, strict=False)
    if eri is not None:
        pairs = [pair_numbers(places[i], places[j], len(h), real=True) for places in own]
        eri = [eri[np.ix_(pairs[x], pairs[y])] for x, y in ((0, 0), (0, 1), (1, 1))]
    if cderi is not None:
        cderi = [cderi[:, places[:, None], places] for places in own]
    return hamiltonian([h[np.ix_(k, k)] for k in own], eri, nelec, cderi=cderi, **chosen | keywords)


def _integrals(read: _Fields, kind: str) -> tuple[Array, Array | None, Array | None]:
    """h, and (pq|rs) over pairs or three-index integrals, over orbitals of a kind: mo or ao."""
    h = np.asarray(read[f"{kind}_1e_int_core_hamiltonian"])
    n, name = len(h), f"{kind}_2e_int_eri"
    if name in read:
        refuse_many(f"{read.path}: {name}", n, float)
        places, values = read.sparse(name)
        i, j, k, l = places.T
        pairs = SparsePairs(n, float, same=True)
        wrong = pairs.put(i, k, j, l, values)
        if wrong is not None:
            raise ArgumentError(
                f"{read.path}: {name} has several values of <ij|kl> for i, j, k, l = "
                f"{places[wrong].tolist()}, from 0, and its permutations: write one"
            )
        return h, pairs.filled(), None
    count = int(read[f"{name}_cholesky_num"])
    places, values = read.sparse(f"{name}_cholesky")
    cderi = np.zeros((count, n, n))
    p, q, vector = places.T
    cderi[vector, p, q] = values
    # Some programs write one triangle.
    cderi[vector, q, p] = np.where(cderi[vector, q, p] == 0, values, cderi[vector, q, p])
    return h, None, cderi
