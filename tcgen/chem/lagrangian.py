"""Equations that follow from those of a ground state, as derivatives of its Lagrangian.

L is the energy plus each residual times a multiplier. Its derivatives by amplitudes determine the
multipliers, those by the Fock matrix are densities; second derivatives are the matrices of
excitations and of response. Nothing is assumed of the equations but that they have residuals, so
that all of these exist for a method of one's own as well.

Sources: H. Koch, P. Jorgensen, J. Chem. Phys. 93, 3333 (1990); T. Helgaker, P. Jorgensen, J. Olsen,
Molecular Electronic-Structure Theory, chapter 13 (2000).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..algebra.derivatives.equations import derivative, jvp
from ..algebra.equations.volatile import marked
from ..errors import ArgumentError
from ..ir.system import Equation, System, Term, with_tensors
from ..ir.tensor import Ref, Role, Tensor, symmetry_group
from ..records.quantity import Quantity
from .equations import Equations
from .quantities import Found

_OUTPUT = "L"  # name of the Lagrangian among the tensors of its system


@dataclass(frozen=True, slots=True, eq=False)
class Lagrangian:
    """The Lagrangian of a ground state, and the systems that follow from it.

    Attributes:
        ground: the equations of the ground state.
        equations: their roles.
        one_electron: inputs that a one-electron operator is added to, by name.
        left: the name of the multiplier of each amplitude, by name.
        right: the name of the change of each amplitude, by name.
    """

    ground: System
    equations: Equations
    one_electron: Mapping[str, Found]
    left: Mapping[str, str]
    right: Mapping[str, str]

    @property
    def amplitudes(self) -> tuple[str, ...]:
        """Names of the amplitudes."""
        return tuple(self.left)

    def multipliers(self) -> System:
        """Linear equations of the multipliers: dL/dt = 0."""
        return self._adjoint(with_energy=True, wrt=self.amplitudes)

    def right_product(self) -> System:
        """The matrix dr/dt times a change of the amplitudes; its roots are excitation energies."""
        outputs = [a.output.name for a in self.equations.amplitudes]
        return self._held(jvp(self.ground, self.right, of=outputs))

    def left_product(self) -> System:
        """Multipliers times the matrix dr/dt."""
        return self._adjoint(with_energy=False, wrt=self.amplitudes)

    def density(self, *, with_energy: bool) -> System:
        """dL/df, with or without the energy in L, for a vector of multipliers."""
        return self._adjoint(with_energy=with_energy, wrt=tuple(self.one_electron))

    def second_order(self) -> System:
        """The changes of dL/dt and of dL/df along a change of the amplitudes."""
        first = {name: f"first_{new}" for name, new in self._names.items()}
        system = derivative(self._system(with_energy=True), self._all, of=_OUTPUT, names=first)
        names = {first[name]: new for name, new in self._names.items()}
        return self._held(jvp(system, self.right, names=names), *self.left.values())

    def perturbed(self, names: Mapping[str, str]) -> System:
        """The change of the residuals by one-electron operators, in inputs of these names."""
        outputs = [a.output.name for a in self.equations.amplitudes]
        return self._held(jvp(self.ground, names, of=outputs))

    def of_amplitude(self, name: str) -> str:
        """The output of an adjoint system that is the derivative by this input."""
        return self._names[name]

    @property
    def _all(self) -> tuple[str, ...]:
        return (*self.amplitudes, *self.one_electron)

    @property
    def _names(self) -> dict[str, str]:
        return {name: f"d_{_OUTPUT}_{name}" for name in self._all}

    def _adjoint(self, *, with_energy: bool, wrt: Sequence[str]) -> System:
        system = self._system(with_energy=with_energy)
        return self._held(derivative(system, wrt, of=_OUTPUT))

    def _held(self, system: System, *others: str) -> System:
        """The system with the amplitudes constant, as far as it reads them, and others."""
        read = {t.name for t in system.inputs}
        return marked(system, [n for n in (*self.amplitudes, *others) if n in read])

    def _system(self, *, with_energy: bool) -> System:
        """The Lagrangian as the only output, with the residuals as intermediates."""
        system = self.ground
        by_name = {t.name: t for t in system.outputs}
        value, terms, multipliers = Tensor(_OUTPUT, (), Role.OUTPUT), list[Term](), list[Tensor]()
        if with_energy:
            terms += [_one(Ref(by_name[n], ())) for n in self.equations.correlation]
        for amplitude in self.equations.amplitudes:
            own = amplitude.tensor
            plain = replace(own, default=None, family=None, quantity=None, volatile=True)
            multipliers.append(replace(plain, name=self.left[own.name]))
            indices = system.equation(amplitude.output).lhs.indices
            axes = tuple(indices[k] for k in amplitude.axes)
            factors = (Ref(multipliers[-1], axes), Ref(amplitude.output, indices))
            terms.append(Term(Fraction(1, len(symmetry_group(own))), factors, indices))
        whole = replace(
            system,
            name=f"{system.name}_lagrangian",
            tensors=(
                *system.inputs, *multipliers, *(t for t in system.tensors if not t.is_input), value
            ),
            equations=(*system.equations, Equation(Ref(value, ()), tuple(terms))),
        )  # fmt: skip
        return with_tensors(whole, {t: replace(t, role=Role.TEMP) for t in system.outputs})


def lagrangian(system: System, equations: Equations, found: Mapping[str, Found]) -> Lagrangian:
    """The Lagrangian of equations for amplitudes, whose inputs ``found`` are integrals.

    Raises:
        ArgumentError: the equations have no residuals, read amplitudes of other equations, have no
            correlation energy, or read orbital energies in place of the Fock matrix.
    """
    name = system.name
    if equations.eigenvalue or not equations.amplitudes:
        raise ArgumentError(
            f"{name} has no amplitudes of a ground state to differentiate by: give equations such "
            f"as ccsd_closed_shell"
        )
    updated = [a.output.name for a in equations.amplitudes if a.scale is None]
    if updated:
        raise ArgumentError(
            f"{name}: {', '.join(updated)} are updated amplitudes, and multipliers belong to "
            f"residuals: write residuals as outputs"
        )
    if equations.given:
        raise ArgumentError(
            f"{name} reads {', '.join(t.name for t in equations.given)} and does not determine "
            f"them: give the equations that do"
        )
    if not equations.correlation:
        raise ArgumentError(f"{name}: no output is the correlation energy: name it e")
    energies = [n for n, f in found.items() if f.quantity is Quantity.ENERGIES]
    if energies:
        raise ArgumentError(
            f"{name} reads orbital energies, {', '.join(energies)}, which stand for a part of the "
            f"Fock matrix only, so that the change by an operator is not known: write f_oo and f_vv"
        )
    operators = (Quantity.FOCK, Quantity.HCORE)
    one_electron = {n: f for n, f in found.items() if f.quantity in operators}
    if not one_electron:
        raise ArgumentError(f"{name} reads no Fock matrix, which an operator could be added to")
    amplitudes = [a.tensor.name for a in equations.amplitudes]
    taken = {t.name for t in system.tensors}
    return Lagrangian(
        system,
        equations,
        one_electron,
        _named("l", amplitudes, taken),
        _named("x", amplitudes, taken),
    )


def _named(letter: str, amplitudes: Iterable[str], taken: set[str]) -> dict[str, str]:
    """A new name for each amplitude: l_t1, or l__t1 if that is taken."""
    names = {}
    for name in amplitudes:
        new = f"{letter}_{name}"
        while new in taken:
            new = new.replace("_", "__", 1)
        names[name] = new
    return names


def _one(ref: Ref) -> Term:
    return Term(Fraction(1), (ref,))
