"""Equations integrated over spins as a .spec with a comment on each input.

Comments have integrals in physicists' and chemists' notation with the expression of PySCF, and
amplitudes with the spins of their indices.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

from ..algebra.spin.blocks import Block
from ..algebra.spin.integrate import FORMS, SpinIntegration, integrate
from ..algebra.spin.labels import UNLABELLED, has_labels
from ..frontend.spec.writer import spec_text
from ..ir.system import System, with_tensors
from ..ir.tensor import Index, Space, Tensor
from ..records.quantity import Quantity
from .conventions import is_over_spin_orbitals
from .quantities import INTEGRALS, recognise
from .spaces import Kind, classify

_CLOSED = """\
mf is a PySCF RHF object of nmo orbitals, nocc of them occupied, and mycc = pyscf.cc.CCSD(mf)
mo, o, v = mf.mo_coeff, slice(0, nocc), slice(nocc, nmo)
eri = pyscf.ao2mo.restore(1, pyscf.ao2mo.full(mf.mol, mo), nmo)  # (pq|rs)
fock = mo.T @ mf.get_fock() @ mo"""
_OPEN = """\
Lower case is alpha, upper case beta.
mf is a PySCF UHF object of nmo orbitals, nalpha and nbeta occupied, and mycc = pyscf.cc.UCCSD(mf)
a, b = mf.mo_coeff
o, v, O, V = slice(0, nalpha), slice(nalpha, nmo), slice(0, nbeta), slice(nbeta, nmo)
eri_aa, eri_ab, eri_bb = (pyscf.ao2mo.general(mf.mol, (x, x, y, y), compact=False)
                          .reshape(nmo, nmo, nmo, nmo) for x, y in ((a, a), (a, b), (b, b)))
fock_a, fock_b = a.T @ mf.get_fock()[0] @ a, b.T @ mf.get_fock()[1] @ b"""
_SPINS = {"a": "alpha", "b": "beta"}
# PySCF's amplitudes by the name of the tensor and the spins of its axes.
_AMPLITUDES = {
    FORMS[0]: {("t1", "aa"): "mycc.t1", ("t2", "abab"): "mycc.t2"},
    FORMS[1]: {
        ("t1", "aa"): "mycc.t1[0]",
        ("t1", "bb"): "mycc.t1[1]",
        ("t2", "aaaa"): "mycc.t2[0]",
        ("t2", "abab"): "mycc.t2[1]",
        ("t2", "bbbb"): "mycc.t2[2]",
    },
    FORMS[2]: {("t1", "aa"): "mycc.t1", ("t2", "abab"): "mycc.t2"},
}


def warn_of_spatial(system: System) -> None:
    """Warn that equations may have been integrated over spins before, by the rule of ``solve``."""
    if not is_over_spin_orbitals(system.inputs, classify(system)):
        warnings.warn(
            f"{system.name} is integrated over spins, though no input shows that its orbitals are "
            f"spin orbitals: over spatial orbitals the result is wrong. If they are spin orbitals, "
            f"declare inputs antisymmetric, or which axes an input conserves",
            RuntimeWarning,
            stacklevel=2,
        )


def annotated_spec(system: System, form: str) -> str:
    """The text of :func:`tcgen.spin_integrated`, with comments on its inputs."""
    integration = integrate(_with_quantities(system), form)
    warn_of_spatial(system)
    spaces = classify(integration.source)
    notes = {}
    for block in integration.blocks:
        if not block.source.is_input or not any(map(has_labels, block.source.spaces)):
            continue
        sliced = all(spaces.kind(s) in (Kind.OCCUPIED, Kind.VIRTUAL) for s in block.source.spaces)
        quantity = block.source.quantity if sliced else None
        notes[block.tensor.name] = _note(integration, block, quantity)
    heading = [f"{integration.source.name} over {_WORDS[form]}, from equations over spin orbitals."]
    if any(tensor.quantity for tensor in integration.system.inputs):
        heading += (_OPEN if form == FORMS[1] else _CLOSED).splitlines()
    return spec_text(integration.system, heading=heading, notes=notes)


def _with_quantities(system: System) -> System:
    """The system with a declared quantity for each input that is recognised by its name."""
    named = recognise(system, classify(system), {})
    new = {}
    for tensor in system.inputs:
        one = named.get(tensor.name)
        if tensor.quantity is None and tensor.conserves is None and one is not None:
            quantity = Quantity.ANTISYMMETRISED if one.quantity in INTEGRALS else one.quantity
            new[tensor] = replace(tensor, quantity=quantity)
    return with_tensors(system, new)


_WORDS = {
    FORMS[0]: "the spatial orbitals of a closed shell",
    FORMS[1]: "alpha and beta orbitals",
    FORMS[2]: "the spatial orbitals of a closed shell, for triplets",
}


def _note(integration: SpinIntegration, block: Block, quantity: Quantity | None) -> str:
    letters = _letters(integration, block.tensor)
    spins = "".join(block.pattern[k] for k in block.axes)
    frame = f"_{spins[0]}" if integration.form == FORMS[1] else ""
    slices = [space.name for space in block.tensor.spaces]
    if quantity in INTEGRALS:
        return _integrals(integration, block.tensor, letters, spins)
    if quantity is Quantity.FOCK:
        return f"Fock matrix: fock{frame}[{','.join(slices)}]"
    if quantity is Quantity.ENERGIES:
        number = "" if not frame else f"[{'ab'.index(spins[0])}]"
        return f"orbital energies: mf.mo_energy{number}[{slices[0]}]"
    amplitude = _AMPLITUDES[integration.form].get((block.source.name, spins))
    kinds = [space.kind for space in block.source.spaces]
    # PySCF's amplitudes have occupied axes before virtual ones.
    in_order = kinds == sorted(kinds, key=str)
    text = _block_of(block, letters, spins)
    return f"{text}: {amplitude}" if amplitude and in_order else text


def _integrals(integration: SpinIntegration, tensor: Tensor, letters: list[str], spins: str) -> str:
    """A block (pq|rs), <pq|rs> or <pq||rs>."""
    slices = [space.name for space in tensor.spaces]
    assert tensor.quantity is not None, "a block of integrals"
    one, other = tensor.quantity.electrons or Quantity.PHYSICIST.electrons
    frame = ""
    if integration.form == FORMS[1]:
        frame = f"_{spins[one[0]]}{spins[other[0]]}"
    direct = f"({_word(letters, one)}|{_word(letters, other)})"
    if frame == "_ba":
        value = _pyscf("eri_ab", slices, (*other, *one))
    else:
        value = _pyscf(f"eri{frame}", slices, (*one, *other))
    if tensor.quantity is Quantity.CHEMIST:
        return f"{direct}: {value}"
    p, q, r, s = letters
    if tensor.quantity is Quantity.PHYSICIST:
        return f"<{p}{q}|{r}{s}> = {direct}: {value}"
    exchange = _pyscf(f"eri{frame}", slices, (0, 3, 1, 2))
    return f"<{p}{q}||{r}{s}> = {direct} - ({p}{s}|{q}{r}): {value} - {exchange}"


def _word(letters: list[str], axes: tuple[int, int]) -> str:
    return "".join(letters[k] for k in axes)


def _pyscf(name: str, slices: list[str], axes: tuple[int, ...]) -> str:
    """A block of ``name``, an array of all (pq|rs), with its axes in the order of ``slices``.

    ``axes`` are the axes of the block that are p, q, r and s.
    """
    text = f"{name}[{','.join(slices[k] for k in axes)}]"
    order = [axes.index(k) for k in range(len(axes))]
    return text if order == sorted(order) else f"{text}.transpose({','.join(map(str, order))})"


def _block_of(block: Block, letters: list[str], spins: str) -> str:
    """The block in terms of the tensor over spin orbitals, with the spin of each index."""
    source = block.source
    order = [letters[block.axes.index(k)] for k in range(source.rank)]
    sign = "-" if block.sign < 0 else ""
    by_spin = [
        f"{','.join(x for x, s in zip(letters, spins, strict=True) if s == spin)} {_SPINS[spin]}"
        for spin in dict.fromkeys(spins)
        if spin != UNLABELLED
    ]
    whole = f"{sign}{source.name}[{','.join(order)}]"
    return f"{whole} with {', '.join(by_spin)}"


def _letters(integration: SpinIntegration, tensor: Tensor) -> list[str]:
    """A different letter for each axis, from the indices of the equations."""
    known: dict[Space, list[str]] = {}
    for index in _indices(integration.system):
        names = known.setdefault(index.space, [])
        if index.name not in names:
            names.append(index.name)
    used: dict[Space, int] = {}
    letters = []
    for space in tensor.spaces:
        names = known.get(space, [])
        number = used.get(space, 0)
        used[space] = number + 1
        letters.append(names[number] if number < len(names) else f"{space.name}{number + 1}")
    return letters


def _indices(system: System) -> list[Index]:
    return [i for e in system.equations for t in e.terms for i in (*e.lhs.indices, *t.indices)]
