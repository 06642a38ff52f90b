"""Spin-orbital integrals of a closed shell from its spatial ones. Needs NumPy alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

Arrays = dict[str, np.ndarray]
GIVEN = ("oooo", "ovoo", "oovv", "ovov", "ovvv", "vvvv")
AXES_8_FOLD = [
    (*left, *right)
    for pairs in (((0, 1), (2, 3)), ((2, 3), (0, 1)))
    for left in (pairs[0], pairs[0][::-1])
    for right in (pairs[1], pairs[1][::-1])
]


def spin_orbital_blocks(closed: Mapping[str, np.ndarray], names: Iterable[str]) -> Arrays:
    """Blocks such as f_ov and v_oovv[i,j,a,b] = <ij||ab>, and the energies e_o and e_v.

    Args:
        closed: f_oo, f_ov, f_vv, e_o, e_v and chemist's v_oooo .. v_vvvv over spatial orbitals.
        names: of the blocks wanted; others are passed over.

    Returns:
        Arrays over spin orbitals, alpha and beta of each spatial orbital side by side, in Hartree.
    """
    occupied, virtual = closed["f_ov"].shape
    part = {"o": slice(0, occupied), "v": slice(occupied, None)}
    chemist = np.zeros((occupied + virtual,) * 4)
    for block in GIVEN:
        for axes in AXES_8_FOLD:
            place = tuple(part[block[k]] for k in axes)
            chemist[place] = closed[f"v_{block}"].transpose(axes)
    fock = np.block([[closed["f_oo"], closed["f_ov"]], [closed["f_ov"].T, closed["f_vv"]]])
    spin = np.eye(2)
    # (pr|qs) with equal spins in p, r and in q, s, then <pq||rs> = <pq|rs> - <pq|sr>
    whole = np.einsum("prqs,xz,yw->pxqyrzsw", chemist, spin, spin, optimize=True)
    physicist = whole.reshape((2 * (occupied + virtual),) * 4)
    tensors = {"f": np.kron(fock, spin), "v": physicist - physicist.transpose(0, 1, 3, 2)}
    part = {"o": slice(0, 2 * occupied), "v": slice(2 * occupied, None)}
    arrays = {f"e_{x}": np.repeat(closed[f"e_{x}"], 2) for x in "ov"}
    for name in names:
        tensor, _, block = name.partition("_")
        if tensor in tensors:
            arrays[name] = tensors[tensor][tuple(part[x] for x in block)].copy()
    return arrays
