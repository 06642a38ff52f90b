"""One set of equations on one mean field: evaluate once, iterate, or diagonalise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..ir.layouts import Array, dense_shape, unpack
from ..ir.system import System
from ..ir.tensor import Symmetry, Tensor, symmetry_group
from .checkpoint import Checkpoint
from .eigen import (
    Independent,
    Multiply,
    Roots,
    estimated_diagonal,
    independent_elements,
    lowest_roots,
)
from .equations import Amplitude, Equations, differences
from .inputs import in_layout
from .iterate import (
    SINGLE_TOLERANCE,
    Amplitudes,
    Iterated,
    State,
    Step,
    iterate,
    single_suffices,
)
from .options import SolveOptions
from .result import Earlier
from .spaces import Kind, OrbitalSpaces

# Largest relative deviation of the reference energy that fitted integrals explain.
_OF_REFERENCE = 1e-2
# Largest imaginary part of an energy that rounding explains, in Hartree, or of larger ones in them.
_IMAGINARY = 1e-8
Run = Callable[..., Mapping[str, Array]]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Equations with all their data except amplitudes.

    Extents, and orbital energies in Hartree, are by base space. ``run`` calls the program with
    amplitudes by name in the caller's layout. ``at_zero`` are the outputs for the amplitudes at
    zero amplitudes, without those that vanish. ``single`` has the program in single precision until
    it has done its part; then it is empty, and the first call of ``run`` may bind constants.
    ``of_reference`` is the energy of the reference that
    the equations contain, or 0.0.
    """

    system: System
    spaces: OrbitalSpaces
    equations: Equations
    extents: Mapping[str, int]
    energies: Mapping[str, Array]
    dtype: str
    run: Run
    at_zero: dict[str, Array]
    options: SolveOptions
    single: list[Run]
    of_reference: float = 0.0

    def iterate(
        self,
        earlier: Earlier,
        show: Callable[[int, Step], None],
        *,
        diis_on_disk: bool = False,
        checkpoint: Checkpoint | None = None,
    ) -> Iterated:
        """Solve for the amplitudes; without amplitudes, evaluate once."""
        if not self.equations.amplitudes:
            return Iterated({}, Step({}, {}, self.run()), 0, True)
        shift = self.options.level_shift
        updated = [a.output.name for a in self.equations.amplitudes if a.scale is None]
        if shift and updated:
            raise ArgumentError(
                f"level_shift={shift} cannot act on {', '.join(updated)}, whose denominators are "
                f"inside the equations: use damping, or write residuals as outputs"
            )
        denominators = {
            a.tensor.name: self._denominators(a.tensor, shift) for a in self.equations.amplitudes
        }

        def step(now: Amplitudes, norms: Sequence[float]) -> Step:
            if not single_suffices(norms, self.options.tolerance):
                self.single.clear()
            made = self._step(now, self._evaluate(now), denominators)
            if not self.single:
                return made
            # Programs check the symmetry of double precision, and rely on it.
            tensors = {a.tensor.name: a.tensor for a in self.equations.amplitudes}
            exact = {n: _symmetrised(tensors[n], array) for n, array in made.updated.items()}
            return replace(made, updated=exact, single=True)

        options = self.options
        state = None if checkpoint is None else checkpoint.load()
        return iterate(
            step,
            state or State(self._start(earlier, denominators)),
            diis_on_disk=diis_on_disk,
            keeper=checkpoint,
            tolerance=options.tolerance,
            max_cycle=options.max_cycle,
            diis=options.diis,
            damping=options.damping,
            show=show,
        )

    def roots(self, earlier: Earlier, show: Callable[[int], None]) -> Roots:
        """Lowest eigenvalues of the matrix that the equations multiply with the amplitudes.

        ``show`` is called with the number of products so far.
        """
        axes = self.root_axes()
        multiply, parts, diagonal = self.matrix(show)
        start = {}
        for amplitude in self.equations.amplitudes:
            name, axis = amplitude.tensor.name, axes[amplitude.tensor.name]
            array = earlier.get(amplitude.tensor, roots_first=axis is None)
            if array is not None:
                start[name] = np.moveaxis(array, axis or 0, 0)
        solve = partial(
            lowest_roots, multiply, parts, diagonal,
            count=self.options.nroots, max_cycle=self.options.max_cycle,
        )  # fmt: skip
        start = start if len(start) == len(parts) else {}
        first = 0
        if self.single:
            found = solve(start, tolerance=max(SINGLE_TOLERANCE, self.options.tolerance))
            start, first = found.amplitudes, found.products
            self.single.clear()
        found = solve(start, tolerance=self.options.tolerance)
        found = replace(found, products=first + found.products)
        moved = {n: np.moveaxis(a, 0, axes[n] or 0) for n, a in found.amplitudes.items()}
        return replace(found, amplitudes=moved)

    def matrix(
        self, show: Callable[[int], None]
    ) -> tuple[Multiply, dict[str, Independent], dict[str, Array]]:
        """The matrix that the equations multiply with amplitudes, for :mod:`.eigen`.

        It is the product with vectors on a first axis, the elements that symmetry leaves
        independent, and an approximate diagonal, each by amplitude.
        """
        products = 0
        axes = self.root_axes()
        vector = {
            a.tensor.name: without_axis(a.tensor, axes[a.tensor.name])
            for a in self.equations.amplitudes
        }
        together = None not in axes.values()

        def multiply(vectors: Amplitudes) -> Mapping[str, Array]:
            nonlocal products
            number = len(next(iter(vectors.values())))
            show(products := products + number)
            if together:
                return self._product(vectors, axes, number)
            one = [
                self._product({n: v[k : k + 1] for n, v in vectors.items()}, axes, 1)
                for k in range(number)
            ]
            return {name: np.concatenate([part[name] for part in one]) for name in vectors}

        shapes = {name: dense_shape(t, self.extents) for name, t in vector.items()}
        parts = {name: independent_elements(t, shapes[name]) for name, t in vector.items()}
        if any(a.scale is None for a in self.equations.amplitudes):
            diagonal = estimated_diagonal(multiply, parts)
        else:
            diagonal = {
                name: np.broadcast_to(-differences(t, self.spaces, self.energies), shapes[name])
                for name, t in vector.items()
            }
        return multiply, parts, diagonal

    def values(self, **vectors: Array) -> dict[str, Array]:
        """Dense outputs for dense arrays of volatile inputs; others are left out."""
        inputs = {t.name: t for t in self.system.inputs}
        read = {n: a for n, a in vectors.items() if n in inputs}
        arrays = {n: in_layout(inputs[n], a, self.dtype) for n, a in read.items()}
        outputs = self.run(**arrays)
        return {
            t.name: unpack(t, outputs[t.name], self.extents) if t.rank else outputs[t.name]
            for t in self.system.outputs
        }

    def root_axes(self) -> dict[str, int | None]:
        """The axis of each amplitude that numbers vectors, or None."""
        return {a.tensor.name: self._root_axis(a.tensor) for a in self.equations.amplitudes}

    def energy_of_reference(self) -> float:
        """The energy without amplitudes if it is that of the reference, up to fitting, else 0.0."""
        expected = self.of_reference
        zero = {a.tensor.name: self._zero(a.tensor) for a in self.equations.amplitudes}
        outputs = self._evaluate(zero)
        found = sum(
            real_number(name, outputs[name], self.options.tolerance)
            for name in self.equations.correlation
        )
        return found if abs(found - expected) <= _OF_REFERENCE * abs(expected) else 0.0

    def letters(self, amplitude: Amplitude) -> str:
        """Classes of the axes of an amplitude's array in the solution."""
        letters = self.spaces.letters(amplitude.tensor)
        leading = self.equations.eigenvalue and self._root_axis(amplitude.tensor) is None
        return f"x{letters}" if leading else letters

    def _start(self, earlier: Earlier, denominators: Mapping[str, Array]) -> Amplitudes:
        """Earlier amplitudes; the others are those of first order."""
        tensors = [a.tensor for a in self.equations.amplitudes]
        zero = {t.name: self._zero(t) for t in tensors}
        start = self._step(zero, self.at_zero, denominators).updated
        # They may be as large as amplitudes, and are not needed again.
        self.at_zero.clear()
        found = {t: earlier.get(t) for t in tensors}
        return start | {t.name: self._held(t, x) for t, x in found.items() if x is not None}

    def _zero(self, tensor: Tensor) -> Array:
        """Amplitudes that are zero."""
        return np.zeros(dense_shape(tensor, self.extents))

    def _held(self, _tensor: Tensor, array: Any) -> Any:
        """Given amplitudes as they are iterated."""
        return array

    def _denominators(self, tensor: Tensor, shift: float) -> Array:
        return differences(tensor, self.spaces, self.energies, shift)

    def _step(
        self, now: Amplitudes, outputs: Mapping[str, Array], denominators: Mapping[str, Array]
    ) -> Step:
        """The update of amplitudes by their residuals; a missing output is zero."""
        new, norms = {}, {}
        for amplitude in self.equations.amplitudes:
            name, output = amplitude.tensor.name, amplitude.output.name
            if output not in outputs:
                new[name], norms[output] = now[name], 0.0
                continue
            value = self._in_order(amplitude, outputs, self.extents)
            if amplitude.scale is None:
                new[name], change = value, value - now[name]
                norms[output] = float(np.linalg.norm(change))
            else:
                value = value / amplitude.scale
                new[name] = now[name] - value / denominators[name]
                norms[output] = float(np.linalg.norm(value))
        return Step(new, norms, outputs)

    def _evaluate(self, now: Amplitudes) -> Mapping[str, Array]:
        given = {a.tensor.name: a.tensor for a in self.equations.amplitudes}
        run, dtype = (self.single[0], "float32") if self.single else (self.run, self.dtype)
        return run(**{name: in_layout(given[name], array, dtype) for name, array in now.items()})

    def _in_order(
        self, amplitude: Amplitude, outputs: Mapping[str, Array], extents: Mapping[str, int]
    ) -> Array:
        """An output as a dense array with its axes in the order of the amplitude's."""
        output = amplitude.output
        return unpack(output, outputs[output.name], extents).transpose(amplitude.axes)

    def _product(
        self, vectors: Amplitudes, axes: Mapping[str, int | None], number: int
    ) -> dict[str, Array]:
        """The matrix times some vectors, which stand on the first axis."""
        extents = dict(self.extents)
        arrays = {}
        for amplitude in self.equations.amplitudes:
            name, axis = amplitude.tensor.name, axes[amplitude.tensor.name]
            if axis is None:
                arrays[name] = vectors[name][0]
            else:
                extents[amplitude.tensor.spaces[axis].name] = number
                arrays[name] = np.moveaxis(vectors[name], 0, axis)
        outputs = self._evaluate(arrays)
        products = {}
        for amplitude in self.equations.amplitudes:
            name, axis = amplitude.tensor.name, axes[amplitude.tensor.name]
            value = self._in_order(amplitude, outputs, extents) / -(amplitude.scale or -1.0)
            value = value[None] if axis is None else np.moveaxis(value, axis, 0)
            of_reference = self.of_reference if amplitude.with_reference else 0.0
            products[name] = value - of_reference * vectors[name]
        return products

    def _root_axis(self, tensor: Tensor) -> int | None:
        """The axis that numbers vectors, or None."""
        return next(
            (k for k, s in enumerate(tensor.spaces) if self.spaces.kind(s) is Kind.OTHER), None
        )


def real_number(name: str, value: Any, tolerance: float) -> float:
    """The value of an energy; ArgumentError if it is complex beyond rounding and ``tolerance``."""
    if abs(np.imag(value)) > max(_IMAGINARY, tolerance) * max(1.0, abs(value)):
        raise ArgumentError(
            f"{name} has the imaginary part {float(np.imag(value)):.1e}: tcgen.chem returns real "
            f"energies; tcgen.compile makes a program for complex ones"
        )
    return float(np.real(value))


def _symmetrised(tensor: Tensor, array: Array) -> Array:
    """The mean of an array's images by the symmetry of a tensor of real elements."""
    group = symmetry_group(tensor)
    images = (s.sign * array.transpose(s.perm) for s in group)
    return np.asarray(sum(images, start=np.zeros_like(array)) / len(group))


def without_axis(tensor: Tensor, axis: int | None) -> Tensor:
    """The tensor of one vector."""
    if axis is None:
        return tensor
    others = [k for k in range(tensor.rank) if k != axis]
    symmetry = tuple(
        Symmetry(tuple(others.index(s.perm[k]) for k in others), s.sign, s.conj)
        for s in tensor.symmetry
    )
    return replace(tensor, spaces=tuple(tensor.spaces[k] for k in others), symmetry=symmetry)
