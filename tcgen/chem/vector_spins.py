"""The spin of the vectors of an eigenvalue problem over the orbitals of a closed shell.

Singlets and triplets differ in the integrals (ia|jb) between single excitations: their matrix has
2(ia|jb) for singlets, and none for triplets. One electron more or less makes doublets.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import numpy as np

from ..ir.layouts import Array, pack, unpack
from ..ir.tensor import Tensor
from .equations import Amplitude, Equations
from .probe import Probe
from .quantities import INTEGRALS, Found
from .spaces import Kind, OrbitalSpaces

_CLOSE = 1e-6  # relative deviation of a coupling from that of singlets or of triplets


def multiplicity_of(probe: Probe, equations: Equations, found: Mapping[str, Found]) -> int | None:
    """2S + 1 of all vectors; None if the equations do not show it.

    The equations are linear in the amplitudes, and over spatial orbitals; ``found`` has integrals
    with their conventions.
    """
    spaces = probe.spaces
    charges = {_count(spaces, a.tensor, Kind.VIRTUAL) - _count(spaces, a.tensor, Kind.OCCUPIED)
               for a in equations.amplitudes}  # fmt: skip
    if charges in ({1}, {-1}):
        return 2
    single = [
        a
        for a in equations.amplitudes
        if _count(spaces, a.tensor, Kind.VIRTUAL) == _count(spaces, a.tensor, Kind.OCCUPIED) == 1
    ]
    if charges != {0} or len(single) != 1:
        return None
    coupling = _coupling(probe, single[0], found)
    if coupling is None:
        return None
    return {0: 3, 2: 1}.get(round(coupling)) if abs(coupling - round(coupling)) < _CLOSE else None


def _count(spaces: OrbitalSpaces, tensor: Tensor, kind: Kind) -> int:
    return sum(spaces.kind(space) is kind for space in tensor.spaces)


def _coupling(probe: Probe, amplitude: Amplitude, found: Mapping[str, Found]) -> float | None:
    """The coefficient of (ia|jb) in the matrix of single excitations; None for other couplings."""
    if amplitude.scale is None:
        return None
    only = copy(probe)
    only.factors = {spin: _off_diagonal(probe, f) for spin, f in probe.factors.items()}
    arrays = {n: np.zeros_like(a) for n, a in probe.random.items()}
    tensor = amplitude.tensor
    arrays[tensor.name] = probe.drawn(tensor)
    for name, one in found.items():
        if one.quantity in INTEGRALS or one.quantity.value == "df":
            arrays[name] = pack(one.tensor, only.integrals(one))
    value = only.evaluate(arrays)[amplitude.output.name]
    image = unpack(amplitude.output, value, probe.extents).transpose(amplitude.axes)
    vector = unpack(tensor, arrays[tensor.name], probe.extents)
    orbital = [k for k, s in enumerate(tensor.spaces) if probe.spaces.kind(s) is not Kind.OTHER]
    factor = only.factor(*(tensor.spaces[k] for k in orbital))
    # The axis of vectors comes last.
    image, vector = (np.moveaxis(a, orbital, (0, 1)) for a in (image, vector))
    weights = np.tensordot(factor, vector, axes=((1, 2), (0, 1)))
    expected = np.tensordot(factor, weights, axes=(0, 0))
    norm = float(np.vdot(expected, expected))
    coupling = float(np.vdot(expected, image)) / norm / -amplitude.scale
    rest = np.abs(image / -amplitude.scale - coupling * expected).max(initial=0.0)
    return coupling if rest <= _CLOSE * np.abs(expected).max() else None


def _off_diagonal(probe: Probe, factor: Array) -> Array:
    """Factors between occupied and virtual orbitals alone."""
    kinds: list[Kind] = []
    for name, kind in probe.spaces.kinds.items():
        if kind in (Kind.OCCUPIED, Kind.VIRTUAL):
            kinds += [kind] * probe.extents[name]
    occupied = np.array([kind is Kind.OCCUPIED for kind in kinds])
    coupled: Array = factor * (occupied[:, None] != occupied[None, :])
    return coupled
