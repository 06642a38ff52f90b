"""Equations for complex orbitals: those of real orbitals are refused.

A phase of each orbital changes integrals and amplitudes by phases, and no energy. Equations that
read <ij||ab> where complex orbitals have <ab||ij>, its conjugate, fail this test.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from ..errors import ArgumentError
from ..ir.layouts import Array, pack, unpack
from ..ir.system import with_axes
from ..ir.tensor import Tensor, symmetry_group
from ..probes import random_arrays
from ..records.quantity import Quantity
from .equations import Equations
from .probe import Probe
from .quantities import Found

_DEVIATION = 1e-9  # largest relative deviation of numbers that are equal


def refuse_real(probe: Probe, found: Mapping[str, Found], equations: Equations) -> None:
    """Refuse equations that hold for real orbitals only.

    ``found`` are the inputs with the conventions of integrals.

    Raises:
        ArgumentError: with the inputs whose symmetry complex integrals lack, or the outputs that
            phases of orbitals change.
    """
    rng = np.random.default_rng(11)
    extents = {spin: len(factor[0]) for spin, factor in probe.factors.items()}
    factors = {}
    for spin, n in extents.items():
        draw = rng.random((len(probe.factors[spin]), n, n, 2)) @ (1, 1j)
        factors[spin] = draw + draw.transpose(0, 2, 1).conj()
    phases = {spin: np.exp(2j * np.pi * rng.random(n)) for spin, n in extents.items()}
    first = _Phased(probe, found, factors)
    for name, one in found.items():
        dense = first.dense(one)
        for s in symmetry_group(one.tensor):
            image = s.sign * dense.transpose(s.perm)
            if not np.allclose(dense, image.conj() if s.conj else image, atol=_DEVIATION):
                raise ArgumentError(
                    f"{with_axes(one.tensor)} has a symmetry of real orbitals, and those of this "
                    f"reference are complex: leave it out, or declare {name} hermitian in place of "
                    f"symmetric where bra and ket are exchanged"
                )
    turned = {
        spin: factor * phases[spin].conj()[:, None] * phases[spin]
        for spin, factor in factors.items()
    }
    second = _Phased(probe, found, turned)
    given = (*equations.given, *equations.passed)
    amplitudes = [*(a.tensor for a in equations.amplitudes), *given]
    kinds = sorted({t.name[0] for t in amplitudes})
    # Amplitudes of excitations come with phases of occupied orbitals; those of Lambda and of left
    # vectors with their conjugates.
    wrong: list[str] = []
    before = first.outputs({})
    for signs in product((1, -1), repeat=len(kinds)):
        chosen = dict(zip(kinds, signs, strict=True))
        factor = {t.name: probe.phase(t, phases, chosen[t.name[0]]) for t in amplitudes}
        failing = _failing(probe, equations, before, second.outputs(factor), factor)
        if not failing:
            return
        wrong = wrong or failing
    raise ArgumentError(
        f"{', '.join(wrong)} of {probe.system.name} hold for real orbitals, and those of this "
        f"reference are complex: read <ab||ij> and f_ai from blocks of their own, such as "
        f"v_vvoo[a,b,i,j] and f_vo[a,i], not as v_oovv[i,j,a,b] and f_ov[i,a], and keep the order "
        f"of bra and ket in all others"
    )


class _Phased:
    """Inputs of a probe with complex integrals from given factors."""

    def __init__(
        self, probe: Probe, found: Mapping[str, Found], factors: Mapping[str, Array]
    ) -> None:
        self._probe, self._found = copy.copy(probe), found
        self._probe.factors = dict(factors)
        self._random = random_arrays(probe.system.inputs, probe.extents, "complex128", seed=7)

    def dense(self, found: Found) -> Array:
        """The array of a quantity."""
        if found.quantity is Quantity.ENERGIES:
            return self._probe.simple(found)
        if found.quantity in (Quantity.FOCK, Quantity.HCORE, Quantity.DIPOLE):
            orbital = [s for k, s in enumerate(found.tensor.spaces) if k != found.other_axis]
            matrix = self._probe.factor(*orbital)
            if found.other_axis is None:
                return np.asarray(matrix[0])
            return np.moveaxis(np.stack([matrix[0]] * 3), 0, found.other_axis)
        return self._probe.integrals(found)

    def outputs(self, factors: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs, with amplitudes times these factors."""
        arrays = dict(self._random)
        arrays |= {n: pack(f.tensor, self.dense(f)) for n, f in self._found.items()}
        tensors = {t.name: t for t in self._probe.system.inputs}
        for name, factor in factors.items():
            dense = unpack(tensors[name], arrays[name], self._probe.extents)
            arrays[name] = pack(tensors[name], dense * factor)
        return self._probe.evaluate(arrays)


def _failing(
    probe: Probe,
    equations: Equations,
    before: Mapping[str, Array],
    after: Mapping[str, Array],
    factors: Mapping[str, Array],
) -> list[str]:
    """Energies and residuals that phases change otherwise than the amplitudes."""
    outputs = {t.name: t for t in probe.system.outputs}
    expected: list[tuple[Tensor, Array]] = [(outputs[n], np.ones(())) for n in equations.energies]
    for one in equations.amplitudes:
        back: Sequence[int] = [int(k) for k in np.argsort(one.axes)]
        expected.append((one.output, factors[one.tensor.name].transpose(back)))
    failing = []
    for tensor, factor in expected:
        old, new = (unpack(tensor, x[tensor.name], probe.extents) for x in (before, after))
        scale = np.abs(old).max(initial=0.0)
        if not np.abs(new - old * factor).max(initial=0.0) <= _DEVIATION * max(scale, 1.0):
            failing.append(tensor.name)
    return failing
