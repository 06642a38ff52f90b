"""Point groups in ``solve``: irreps of orbitals, and amplitudes that are held in blocks.

Labels of orbitals are those of PySCF, which it also gives to orbitals without symmetry. They are
used if each orbital lies in one irrep and no element between irreps remains in the Hamiltonian and
in the Fock matrix; integrals are checked as they are cut into blocks. Otherwise there is one block.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from ..blocks.arrays import BlockedArray
from ..blocks.program import BlockedProgram
from ..errors import ArgumentError, CheckError, PlanError, SpecError
from ..grading import Grading
from ..ir.conservation import axis_signs
from ..ir.layouts import Array
from ..ir.program import FormulaSequence
from ..ir.system import System, with_tensors
from ..ir.tensor import Space, Tensor, element_type, symmetry_group
from ..records.quantity import Quantity
from .bound_program import as_dense
from .checkpoint import Checkpoint
from .crystal import Crystal
from .eigen import Independent, Multiply, estimated_diagonal, independent_of
from .equations import Amplitude
from .frames import ALPHA, BETA, SPIN_ORBITAL, Frame
from .inputs import IN_MEMORY, MeanFieldInputs, in_layout
from .integrals import Irreps
from .iterate import Amplitudes, Iterated, Step
from .mean_field import MeanField
from .problem import Problem
from .quantities import Found
from .reference import Reference
from .result import Earlier
from .spaces import ORBITAL, Kind, OrbitalSpaces

# Largest element between irreps that rounding explains, in Hartree, as in integrals over blocks.
_FORBIDDEN = 1e-8
# Norm of the part of an orbital outside its irrep above which the orbital is said to be mixed.
_MIXED = 1e-5
_SHOWN = 4  # orbitals that a message names
_NAMED = 8  # most elements of a group by which orbitals are counted in a table
# Groups of linear molecules and atoms: PySCF's numbers are those of the abelian group modulo 10.
_MODULO = 10
_ADVICE = (
    "run the mean field of a molecule with symmetry=True (mol.symmetry), and do not change its "
    "orbitals"
)


class OneBlock(Exception):  # noqa: N818  (no error: the job goes on with dense arrays)
    """Why a job has one block; ``warn`` if the caller could not expect it."""

    def __init__(self, why: str, *, warn: bool = True) -> None:
        super().__init__(why)
        self.warn = warn


@contextmanager
def symmetric() -> Iterator[None]:
    """A context in which an array that is not symmetric raises OneBlock."""
    try:
        yield
    except CheckError as error:
        raise OneBlock(f"{error} ({_ADVICE})") from error


@dataclass(frozen=True, slots=True)
class Labels:
    """A group, and the number of the element of each orbital, by set of the reference.

    With ``spins``, spin orbitals also have the projection of their spin.
    """

    group: Grading
    elements: tuple[tuple[int, ...], ...]
    spins: bool = False

    def of(self, frame: Frame, places: Iterable[int]) -> list[int]:
        """The elements of orbitals of a frame."""
        found = []
        for place in places:
            part = next(p for p in frame.parts.values() if p.places[place] >= 0)
            found.append(self.elements[part.number][part.places[place]])
        return found

    @property
    def irreps(self) -> Irreps:
        """The elements as arrays, and their products."""
        return Irreps([np.array(own, int) for own in self.elements], self.group.addition)

    def conserved(self, system: System, graded: Sequence[str]) -> Labels:
        """The labels without spins, if equations over real orbitals conserve irreps only.

        Raises:
            OneBlock: they do not conserve spins, and the orbitals have no irreps.
        """
        if not self.spins or not self.group.own_inverse:
            return self
        try:
            axis_signs(system, graded=graded)
        except SpecError as error:
            if len(self.group) == 1:
                raise OneBlock(str(error)) from error
            return replace(self, spins=False)
        return self


def labels_of(mean_field: Any, reference: Reference, frames: Iterable[Frame]) -> Labels:
    """The momenta or irreps of the orbitals of frames, and their spins if each has one.

    Raises:
        OneBlock: the orbitals have none of these.
    """
    spins = all(_has_spins(frame) for frame in frames)
    if isinstance(reference, Crystal):
        return Labels(reference.group(), reference.elements(), spins)
    try:
        return replace(point_group(mean_field, reference), spins=spins)
    except OneBlock as reason:
        if not spins:
            raise
        if reason.warn:
            warnings.warn(f"blocks are those of spins: {reason}", RuntimeWarning, stacklevel=4)
        counts: dict[int, int] = {}
        for part in (p for frame in reference.frames.values() for p in frame.parts.values()):
            last = int(part.places.max(initial=-1))
            counts[part.number] = max(counts.get(part.number, 0), last + 1)
        elements = tuple((0,) * counts[number] for number in sorted(counts))
        return Labels(Grading((), {}, name="C1"), elements, spins=True)


def _has_spins(frame: Frame) -> bool:
    """True if each orbital of a frame has one of two spins: the other part is exactly zero."""
    if {*frame.parts} != {ALPHA, BETA}:
        return False
    has = [part.places >= 0 for part in frame.parts.values()]
    return bool(np.all(has[0] != has[1]))


def point_group(mean_field: Any, reference: Reference) -> Labels:
    """The point group of a mean field, whose labels of orbitals are checked.

    Raises:
        OneBlock: the molecule is C1, or the orbitals do not have irreps.
    """
    # An attribute of the class: for a missing one of the object PySCF imports all its modules.
    labels = getattr(type(mean_field), "get_orbsym", None)
    if not isinstance(reference, MeanField) or labels is None or not reference.mol.symmetry:
        raise OneBlock(
            f"{reference.origin}: orbitals have no irreps: the molecule has none, or was made "
            f"without mol.symmetry=True",
            warn=False,
        )
    if reference.complex_orbitals:
        raise OneBlock("orbitals are complex: leave out symmetry")
    mol = reference.mol
    found = labels(mean_field)
    by_set = found if isinstance(found, tuple) else [found] * len(reference.of_set)
    raw = [np.asarray(one)[kept] for one, kept in zip(by_set, reference.of_set, strict=True)]
    modulus = _MODULO if mol.groupname in ("Dooh", "Coov", "SO3") else 1 << 30
    elements = tuple(tuple(int(x) % modulus for x in one) for one in raw)
    labels = Labels(Grading.from_orbsym(mol.groupname), elements)
    _check_pure(mean_field, reference, labels, modulus)
    _check_coupling(mean_field, reference, labels)
    return labels


def _check_pure(mean_field: Any, reference: MeanField, own: Labels, modulus: int) -> None:
    """OneBlock if orbitals have parts in several irreps."""
    mol = reference.mol
    overlap = mol.intor_symmetric("int1e_ovlp")
    energies = np.atleast_2d(np.asarray(mean_field.mo_energy))
    for number, (c, kept) in enumerate(zip(reference.coefficients, reference.of_set, strict=True)):
        norms = np.einsum("pi,pq,qi->i", c, overlap, c, optimize=True)
        labels = np.array(own.elements[number])
        inside = np.zeros(len(kept))
        for irrep, basis in zip(mol.irrep_id, mol.symm_orb, strict=True):
            projected = basis.T @ overlap @ c
            weights = projected * np.linalg.solve(basis.T @ overlap @ basis, projected)
            inside += np.where(labels == irrep % modulus, weights.sum(axis=0), 0.0)
        outside = np.sqrt(np.maximum(norms - inside, 0.0))
        mixed = np.flatnonzero(outside > _MIXED)
        if len(mixed):
            levels = energies[min(number, len(energies) - 1)]
            shown = [f"{kept[k]} ({levels[kept[k]]:.6f} Hartree)" for k in mixed[:_SHOWN]]
            more = f" and {len(mixed) - _SHOWN} more" if len(mixed) > _SHOWN else ""
            raise OneBlock(
                f"orbitals {', '.join(shown)}{more} have parts in several irreps of "
                f"{mol.groupname}, up to {outside.max():.1e} (an SCF without symmetry mixes those "
                f"of equal energy, and localisation and averaging mix others): {_ADVICE}"
            )


def _check_coupling(mean_field: Any, reference: MeanField, labels: Labels) -> None:
    """OneBlock if the Fock matrix or the core Hamiltonian has elements between irreps."""
    frame = reference.frames[SPIN_ORBITAL]
    irreps = np.array(labels.of(frame, range(frame.count)), int)
    parts = reference.by_spin(frame)
    core = np.asarray(mean_field.get_hcore())
    if len(core) == sum(len(c) for c in parts) and len(parts) > 1:
        parts = [np.concatenate(parts)]
    cores = core if core.ndim == 3 else [core] * len(parts)
    own = sum(
        (c.T @ x @ c for c, x in zip(parts, cores, strict=True)), start=np.zeros_like(frame.fock)
    )
    for name, matrix in (("Fock matrix", frame.fock), ("core Hamiltonian", own)):
        between = np.abs(np.where(irreps[:, None] == irreps, 0.0, matrix))
        worst = float(between.max(initial=0.0))
        if not worst <= _FORBIDDEN:
            p, q = map(int, np.unravel_index(int(between.argmax()), between.shape))
            raise OneBlock(
                f"the {name} has an element of {worst:.1e} Hartree between orbitals of "
                f"{labels.group.names[irreps[p]]} ({frame.energies[p]:.6f} Hartree) and "
                f"{labels.group.names[irreps[q]]} ({frame.energies[q]:.6f} Hartree): {_ADVICE}"
            )


def auxiliary_irreps(
    system: System,
    spaces: OrbitalSpaces,
    labels: Labels,
    inputs: MeanFieldInputs,
    found: Mapping[str, Found],
    reference: Reference,
) -> tuple[System, dict[str, list[int]]]:
    """The irreps of auxiliary functions by space, and the system whose integrals conserve them.

    Raises:
        OneBlock: an array over auxiliary functions is not one of the mean field's integrals.
    """
    auxiliary = [space for space in system.spaces if spaces.kind(space) is Kind.AUXILIARY]
    fitted = {n for n, one in found.items() if one.quantity is Quantity.THREE_INDEX}
    if not auxiliary or isinstance(reference, Crystal):
        return system, {}
    for tensor in (*system.inputs, *system.outputs):
        if tensor.name not in fitted and {*tensor.spaces} & {*auxiliary}:
            raise OneBlock(
                f"{tensor.name} is over auxiliary functions, and blocks are over sums of these"
            )
    graded = [space for space in system.spaces if spaces.kind(space) in ORBITAL]
    if inputs.bytes_of_pairs(graded) > reference.memory * IN_MEMORY:
        raise OneBlock("three-index integrals do not fit into memory: raise mf.max_memory")
    own = inputs.auxiliary_irreps(
        graded, lambda f: np.array(labels.of(f, range(f.count)), int), labels.group.addition
    )
    if not own.forbidden <= _FORBIDDEN:
        raise OneBlock(
            f"fitted integrals that irreps of {labels.group.name} forbid have a norm of "
            f"{own.forbidden:.1e} Hartree: {_ADVICE}"
        )

    def conserving(tensor: Tensor) -> Tensor:
        if tensor.name not in fitted:
            return tensor
        first, *others = (k for k, s in enumerate(tensor.spaces) if s not in auxiliary)
        rest = [k for k, s in enumerate(tensor.spaces) if s in auxiliary]
        return replace(tensor, conserves=((first,), (*others, *rest)))

    system = with_tensors(system, {t: conserving(t) for t in system.inputs})
    return system, {space.name: own.irreps for space in auxiliary}


def grading_of(
    labels: Labels,
    frames: Mapping[str, tuple[Frame, Sequence[int]]],
    functions: Mapping[str, Sequence[int]],
) -> Grading:
    """The grading of spaces by the frame and the places of their orbitals.

    Auxiliary ``functions`` have irreps and no spin.
    """
    group = labels.group
    orbitals: dict[str, Sequence[int]] = {s: labels.of(*own) for s, own in frames.items()}
    orbitals |= functions
    grading = Grading(group.moduli, orbitals, group.names, name=group.name)
    if not labels.spins:
        return grading
    spins = {
        space: [int(frame.parts[ALPHA].places[k] < 0) for k in places]
        for space, (frame, places) in frames.items()
    }
    # Sums of the spins of up to five axes do not wrap around; more axes have a few more blocks.
    spin = Grading.spin(order=3, **spins)
    if functions:
        every: dict[str, Sequence[int]] = {s: spin.orbitals(s) for s in spins}
        every |= {s: [0] * len(irreps) for s, irreps in functions.items()}
        spin = Grading(spin.moduli, every, spin.names, name=spin.name)
    return grading * spin if len(group) > 1 else spin


def blocked_program(
    sequence: FormulaSequence,
    grading: Grading,
    extents: Mapping[str, int],
    dtype: str,
    element: int | None = None,
) -> BlockedProgram:
    """The program over blocks, whose inputs with a charge have that of an element of the group.

    Raises:
        OneBlock: the equations cannot run over blocks.
    """
    others = {name: extent for name, extent in extents.items() if name not in grading}
    names = dict.fromkeys(t.charge for t in sequence.inputs if t.charge is not None)
    charges = {} if element is None else dict.fromkeys(names, element)
    try:
        return BlockedProgram(sequence, grading, charges, others, dtype=dtype)
    except (PlanError, SpecError, ArgumentError) as error:
        raise OneBlock(str(error)) from error


def check_integrals(inputs: MeanFieldInputs, group: Grading, irreps: Irreps) -> None:
    """OneBlock if an integral over all pairs of orbitals that the irreps forbid is not zero."""
    worst = inputs.largest_between(irreps)
    if not worst <= _FORBIDDEN:
        raise OneBlock(
            f"integrals that irreps of {group.name} forbid are up to {worst:.1e} Hartree: {_ADVICE}"
        )


def input_in_blocks(
    program: BlockedProgram, inputs: MeanFieldInputs, found: Found, dtype: str
) -> BlockedArray:
    """An input of the mean field; integrals over all pairs, if they were made, are checked.

    Raises:
        CheckError: an element that the irreps forbid is not zero.
    """
    tensor, array = found.tensor, program.empty(found.tensor.name)
    grading = array.grading
    if all(space.name in grading for space in tensor.spaces):
        by_irrep = []
        for axis, space in enumerate(tensor.spaces):
            places = grading.order(space.name)
            if axis != found.other_axis:
                places = np.array(inputs.frame(space)[2], int)[places]
            by_irrep.append(np.split(places, grading.starts(space.name)[1:-1]))
        if any(fill(found, array, by_irrep) for fill in (inputs.fill_crystal, inputs.fill_fitted)):
            return array
        parts = (
            ([own[g].tolist() for own, g in zip(by_irrep, irreps, strict=True)], view)
            for irreps, view in array.blocks()
        )
        if inputs.fill(found, parts):
            return array
    return program.blocked(tensor.name, inputs.array(found, dtype))


def independent_blocks(tensor: Tensor, blocks: BlockedArray) -> Independent:
    """The elements of blocks that the symmetry of a tensor leaves independent."""
    numbers = BlockedArray(
        np.arange(blocks.layout.size), blocks.grading, blocks.spaces, blocks.layout
    )
    images = []
    for symmetry in symmetry_group(tensor):
        image = numbers.copy()
        for irreps, view in image.blocks():
            back = [0] * tensor.rank
            for axis, source in enumerate(symmetry.perm):
                back[source] = irreps[axis]
            view[...] = numbers.block(*back).transpose(symmetry.perm)
        images.append((image.data, symmetry.sign))
    return independent_of(numbers.data, images)


def summary(
    program: BlockedProgram, arrays: Mapping[str, BlockedArray], amplitudes: Iterable[str]
) -> dict[str, Any]:
    """Group, numbers of orbitals by irrep, and blocks and bytes of inputs."""
    grading = program.grading
    held = [*arrays.values(), *(program.empty(name) for name in amplitudes)]
    return {
        "group": grading.name,
        "orbitals": {
            space: dict(zip(grading.names, grading[space], strict=True)) for space in grading.spaces
        },
        "blocks": sum(int(array.layout.filled.sum()) for array in held),
        "bytes": sum(array.nbytes for array in held),
        "dense_bytes": sum(prod(array.shape) * array.dtype.itemsize for array in held),
        "program_bytes": program.peak_bytes(),
    }


def in_words(symmetry: Mapping[str, Any]) -> str:
    """One line about blocks; numbers of orbitals of each element of a small group.

    Example:
        >>> orbitals = {"o": {"Ag": 4, "Bg": 0, "Au": 1}}
        >>> counts = {"blocks": 8, "bytes": 1000, "dense_bytes": 1900}
        >>> in_words({"group": "C2h", "orbitals": orbitals, **counts})
        'C2h, o = 4 Ag + 1 Au, 8 blocks, 1,000 bytes for 1,900'
    """
    sizes = [
        f"{space} = {' + '.join(f'{n} {name}' for name, n in counts.items() if n) or 0}"
        for space, counts in symmetry["orbitals"].items()
        if len(counts) <= _NAMED
    ]
    words = f"{symmetry['blocks']} blocks, {symmetry['bytes']:,} bytes"
    return ", ".join([symmetry["group"], *sizes, f"{words} for {symmetry['dense_bytes']:,}"])


@dataclass(frozen=True, slots=True, eq=False)
class BlockedProblem(Problem):
    """The same equations with amplitudes as the flat elements of their blocks."""

    program: BlockedProgram | None = None
    dense_results: bool = True

    def iterate(
        self,
        earlier: Earlier,
        show: Callable[[int, Step], None],
        *,
        diis_on_disk: bool = False,
        checkpoint: Checkpoint | None = None,
    ) -> Iterated:
        """Solve for the amplitudes; the results are dense arrays, if these are wanted."""
        found = Problem.iterate(
            self, earlier, show, diis_on_disk=diis_on_disk, checkpoint=checkpoint
        )
        amplitudes = {n: self.array(n, x) for n, x in found.amplitudes.items()}
        if not self.dense_results:
            return replace(found, amplitudes=amplitudes)
        outputs = {t.name: t for t in self.system.outputs}
        return replace(
            found,
            amplitudes={n: array.dense() for n, array in amplitudes.items()},
            last=replace(
                found.last,
                outputs={n: as_dense(outputs[n], x) for n, x in found.last.outputs.items()},
            ),
        )

    def matrix(
        self, show: Callable[[int], None]
    ) -> tuple[Multiply, dict[str, Independent], dict[str, Array]]:
        """The matrix that the equations multiply with amplitudes, over the elements of blocks."""
        products = 0

        def multiply(vectors: Amplitudes) -> Mapping[str, Array]:
            nonlocal products
            number = len(next(iter(vectors.values())))
            show(products := products + number)
            images: dict[str, list[Array]] = {name: [] for name in vectors}
            for k in range(number):
                outputs = self._evaluate({name: v[k] for name, v in vectors.items()})
                for amplitude in self.equations.amplitudes:
                    value = self._in_order(amplitude, outputs, self.extents)
                    value = value / -(amplitude.scale or -1.0)
                    images[amplitude.tensor.name].append(value)
            return {name: np.stack(own) for name, own in images.items()}

        tensors = [a.tensor for a in self.equations.amplitudes]
        parts = {t.name: independent_blocks(t, self._program.empty(t.name)) for t in tensors}
        if any(a.scale is None for a in self.equations.amplitudes):
            diagonal = estimated_diagonal(multiply, parts)
        else:
            diagonal = {t.name: -self._denominators(t, 0.0) for t in tensors}
        return multiply, parts, diagonal

    def array(self, name: str, data: Array) -> BlockedArray:
        """The blocks of an amplitude with these elements."""
        array = self._program.empty(name)
        return BlockedArray(data, array.grading, array.spaces, array.layout)

    @property
    def _program(self) -> BlockedProgram:
        assert self.program is not None
        return self.program

    def _zero(self, tensor: Tensor) -> Array:
        return np.zeros(self._program.empty(tensor.name).layout.size)

    def _held(self, tensor: Tensor, array: Any) -> Array:
        given = array if isinstance(array, BlockedArray) else in_layout(tensor, array, self.dtype)
        return self._program.blocked(tensor.name, given).data

    def _denominators(self, tensor: Tensor, shift: float) -> Array:
        array = self._program.empty(tensor.name)
        made = BlockedArray(np.zeros(array.data.shape), array.grading, array.spaces, array.layout)
        parts = [self._by_irrep(space, shift) for space in tensor.spaces]
        for irreps, view in made.blocks():
            for axis, (g, own) in enumerate(zip(irreps, parts, strict=True)):
                view += own[g].reshape(-1, *(1,) * (tensor.rank - axis - 1))
        return made.data

    def _by_irrep(self, space: Space, shift: float) -> list[Array]:
        """Energies of the orbitals of each irrep, as they enter denominators."""
        grading = self._program.grading
        if space.name not in grading:
            return [np.zeros(self.extents[space.name])] * len(grading)
        energies = self.energies[space.name][grading.order(space.name)]
        signed = energies if self.spaces.kind(space) is Kind.OCCUPIED else -(energies + shift)
        return np.split(signed, grading.starts(space.name)[1:-1])

    def _evaluate(self, now: Amplitudes) -> Mapping[str, Array]:
        given = {a.tensor.name: a.tensor for a in self.equations.amplitudes}
        arrays = {}
        for name, data in now.items():
            element = element_type(given[name], self.dtype)
            arrays[name] = self.array(name, data.astype(element, copy=False))
        return self.run(**arrays)

    def _in_order(
        self, amplitude: Amplitude, outputs: Mapping[str, Any], extents: Mapping[str, int]
    ) -> Array:
        """An output as the elements of blocks with the axes of the amplitude."""
        tensor, value = amplitude.tensor, outputs[amplitude.output.name]
        if not isinstance(value, BlockedArray):
            return self._held(tensor, Problem._in_order(self, amplitude, outputs, extents))
        made = self._program.empty(tensor.name)
        same = amplitude.axes == tuple(range(tensor.rank))
        if same and value.signs == made.signs and value.charge == made.charge:
            return value.data
        for irreps, view in made.blocks():
            of_output = [irreps[amplitude.axes.index(k)] for k in range(tensor.rank)]
            view[...] = value.block(*of_output).transpose(amplitude.axes)
        return made.data
