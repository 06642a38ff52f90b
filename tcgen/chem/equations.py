"""Roles of outputs: energies, residuals, updated amplitudes, sigma vectors.

A residual is found by evaluation, not by its name. With integrals set to zero and a diagonal Fock
matrix, the residual of an amplitude t changes by c*D*t in each element, where D is the difference
of orbital energies; the test runs at small extents in the interpreter and gives c. If all residuals
vanish without amplitudes, the equations are an eigenvalue problem. An updated amplitude is found by
its name, such as t1_new.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..algebra.equations.inline import keep_needed
from ..errors import ArgumentError
from ..ir.expr import Const, Expr, map_leaves
from ..ir.layouts import Array, unpack
from ..ir.system import Apply, System, with_axes, with_tensors
from ..ir.tensor import Ref, Role, Space, Symmetry, Tensor, exchanged
from .probe import Probe
from .spaces import Kind, OrbitalSpaces, matched_axes

_UPDATED = re.compile(r"(?P<after>\w+?)_?(new|next|updated)|(new|next|updated)_?(?P<before>\w+)")
_CORRELATION = re.compile(r"(?i)(e|energy|e_?corr|e_?c)")
_ORDER = re.compile(r"(?i)e_?[2-9]")  # an energy of perturbation theory
_ROLE = re.compile(r"(residual|update|sigma) of (\w+)|energy|value")
_DEVIATION = 1e-9  # largest relative deviation of a residual from c*D*t


@dataclass(frozen=True, slots=True)
class Amplitude:
    """An input that is solved for, with the symmetry that its residual needs.

    ``output`` is its residual, or the updated amplitude; ``axes`` are those of ``output`` in the
    order of the input's. A residual begins with c*D*t: ``scale`` is c, or None for an updated
    amplitude and for products with any other matrix. ``with_reference`` is true for products with
    a matrix that has the energy of the reference on its diagonal.
    """

    tensor: Tensor
    output: Tensor
    axes: tuple[int, ...]
    scale: float | None
    with_reference: bool = False


@dataclass(frozen=True, slots=True)
class Equations:
    """Roles of inputs and outputs.

    The ``amplitudes``, in declared order, are solved for; in an ``eigenvalue`` problem, their
    residuals are products of a matrix with them. The caller must pass the inputs ``given``, among
    them amplitudes that do not change; ``passed`` are those over orbitals that came as inputs. The
    sum of the outputs ``correlation`` is the correlation energy; () if they are not known. If it is
    not zero without amplitudes, it may contain the energy of the reference (``with_reference``).
    ``values`` are results with axes, such as densities.
    """

    amplitudes: tuple[Amplitude, ...]
    eigenvalue: bool
    given: tuple[Tensor, ...]
    passed: tuple[Tensor, ...]
    energies: tuple[str, ...]
    correlation: tuple[str, ...]
    with_reference: bool
    values: tuple[str, ...]


def infer_roles(
    probe: Probe, inputs: Sequence[str], quantities: Collection[str], roles: Mapping[str, str]
) -> Equations:
    """Infer the roles of the inputs and outputs of a system.

    The caller passes ``inputs`` as arrays, of which those among the ``quantities`` stand for
    integrals. ``roles`` are those of outputs that the user named, such as
    ``{"omega": "residual of t1"}``; one that does not fit is refused.
    """
    system = probe.system
    _refuse_roles(system, roles)
    taken = {*probe.found, *inputs}
    free = [t for t in system.inputs if t.name not in taken and t.default is None]
    updated = _updated(system, free, roles)
    residuals = _residuals(system, free, probe, roles)
    amplitudes = []
    for tensor in free:
        one = residuals.get(tensor.name) or updated.get(tensor.name)
        if one is not None:
            amplitudes.append(one)
    solved = {a.tensor.name for a in amplitudes}
    products = [a.output.name for a in amplitudes]
    sigma = any(role.startswith("sigma") for role in roles.values())
    eigenvalue = (
        bool(amplitudes)
        and (sigma or all(a.scale is not None for a in amplitudes))
        and probe.vanishes(solved, products)
    )
    if sigma and not (eigenvalue and probe.is_linear(solved, products)):
        raise ArgumentError(
            f"outputs: {', '.join(products)} are given as sigma vectors, but are not linear in "
            f"{', '.join(solved)}: leave out their other terms"
        )
    for one in amplitudes:
        if one.with_reference and not eigenvalue:
            raise ArgumentError(
                f"{one.output.name} has {one.tensor.name} times the energy of the reference: leave "
                f"out these terms, such as f[i,i]*{one.tensor.name}"
            )
    used = {a.output.name for a in (*residuals.values(), *updated.values())}
    scalars = [t.name for t in system.outputs if not t.rank and roles.get(t.name) != "value"]
    declared = tuple(name for name in scalars if roles.get(name) == "energy")
    named = tuple(name for name in scalars if _CORRELATION.fullmatch(name))
    given = tuple(t for t in free if t.name not in solved)
    passed = tuple(
        t
        for t in system.inputs
        if t.name in inputs and t.name not in quantities and not probe.is_other(t)
    )
    only = tuple(scalars) if len(scalars) == 1 and not (given or passed) else ()
    orders = tuple(scalars) if all(_ORDER.fullmatch(name) for name in scalars) else ()
    correlation = declared or (named if len(named) == 1 else orders or only)
    return Equations(
        amplitudes=tuple(amplitudes),
        eigenvalue=eigenvalue,
        given=given,
        passed=passed,
        energies=tuple(t.name for t in system.outputs if not t.rank),
        correlation=correlation,
        with_reference=bool(amplitudes) and not probe.vanishes(solved, correlation),
        values=tuple(t.name for t in system.outputs if t.rank and t.name not in used),
    )


def differences(
    tensor: Tensor, spaces: OrbitalSpaces, energies: Mapping[str, Array], shift: float = 0.0
) -> Array:
    """D: occupied less virtual energies, these plus ``shift``, broadcast to the axes; Hartree."""
    result = np.zeros((1,) * tensor.rank)
    for axis, space in enumerate(tensor.spaces):
        kind = spaces.kind(space)
        if kind is Kind.OCCUPIED:
            values = energies[space.name]
        elif kind is Kind.VIRTUAL:
            values = -(energies[space.name] + shift)
        else:
            continue
        result = result + values.reshape(-1, *(1,) * (tensor.rank - axis - 1))
    return result


def _refuse_roles(system: System, roles: Mapping[str, str]) -> None:
    outputs = {t.name: t for t in system.outputs}
    for name, role in roles.items():
        if name not in outputs:
            raise ArgumentError(
                f"outputs: {system.name} has no output {name}; there are {', '.join(outputs)}"
            )
        if not isinstance(role, str) or not _ROLE.fullmatch(role):
            raise ArgumentError(
                f"outputs: {role!r} for {name} is not a role: write 'energy', 'value', "
                f"'residual of t1', 'update of t1' or 'sigma of r1'"
            )
        if (role == "energy") == bool(outputs[name].rank):
            kind = "has axes" if outputs[name].rank else "is a number"
            if role != "value":
                raise ArgumentError(f"outputs: {name} {kind} and cannot be {role!r}")
    accumulated = [t.name for t in system.outputs if t.accumulate]
    if accumulated:
        raise ArgumentError(
            f"{system.name}: {', '.join(accumulated)} is declared accumulate: remove the word, "
            f"since solve has no array to add to"
        )


def _updated(
    system: System, free: Sequence[Tensor], roles: Mapping[str, str]
) -> dict[str, Amplitude]:
    """Updated amplitudes, found by name, by the amplitude that they update."""
    result = {}
    by_name = {t.name: t for t in free}
    for output in system.outputs:
        role = roles.get(output.name)
        match = _UPDATED.fullmatch(output.name) if role is None else None
        name = match["after"] or match["before"] if match else None
        if role is not None and role.startswith("update"):
            name = _target(output, role, by_name)
        if name not in by_name:
            continue
        axes = matched_axes(output.spaces, by_name[name].spaces)
        if axes is None:
            raise _other_axes(output, by_name[name])
        result[name] = Amplitude(by_name[name], output, axes, None)
    return result


def _residuals(
    system: System, free: Sequence[Tensor], probe: Probe, roles: Mapping[str, str]
) -> dict[str, Amplitude]:
    """Residuals by the amplitude that they belong to."""
    by_name = {t.name: t for t in free}
    result: dict[str, Amplitude] = {}
    for output in system.outputs:
        role = roles.get(output.name, "")
        if role.startswith(("residual", "sigma")):
            tensor = by_name[_target(output, role, by_name)]
            axes = matched_axes(output.spaces, tensor.spaces)
            if axes is None:
                raise _other_axes(output, tensor)
            found = _found_residuals(tensor, [output], probe)
            if not found and role.startswith("sigma"):
                found = [Amplitude(tensor, output, axes, None)]
            if not found:
                raise ArgumentError(
                    f"outputs: {output.name} is given as the {role}, but without integrals it is "
                    f"not a multiple of orbital-energy differences times {tensor.name}: write the "
                    f"terms with the Fock matrix into it, or write an output {tensor.name}_new"
                )
            result[tensor.name] = found[0]
    for tensor in free:
        if tensor.name in result:
            continue
        outputs = [t for t in system.outputs if t.rank and t.name not in roles]
        found = _found_residuals(tensor, outputs, probe)
        if len(found) > 1:
            names = ", ".join(one.output.name for one in found)
            first, role = found[0].output.name, f"residual of {tensor.name}"
            raise ArgumentError(
                f"{system.name}: each of {names} could be the residual of {tensor.name}: say which "
                f'one is, such as outputs={{"{first}": "{role}"}} (--role "{first}={role}")'
            )
        if found:
            result[tensor.name] = found[0]
    return result


def _found_residuals(tensor: Tensor, outputs: Sequence[Tensor], probe: Probe) -> list[Amplitude]:
    """The outputs that could be the residual of an amplitude.

    Equations may rely on a symmetry of an amplitude that is not declared. If no output is a
    residual at an amplitude with only the declared symmetry, the usual symmetries are tried.
    """
    matching = [
        (t, axes) for t in outputs if (axes := matched_axes(t.spaces, tensor.spaces)) is not None
    ]
    if not matching:
        return []
    for assumed in (tensor, *_with_usual_symmetry(tensor)):
        values = probe.change_with(assumed)
        found = []
        for output, axes in matching:
            found += _begins_with_differences(probe, values, output, axes, assumed)
        if found:
            return found
    return []


def _with_usual_symmetry(tensor: Tensor) -> list[Tensor]:
    """The amplitude with equal pairs of electrons, and antisymmetric, if it declares neither."""
    groups: dict[Space, list[int]] = {}
    for axis, space in enumerate(tensor.spaces):
        groups.setdefault(space, []).append(axis)
    several = [axes for axes in groups.values() if len(axes) > 1]
    if tensor.symmetry or not several:
        return []
    exchanges = [
        [(axes[k], axes[k + 1]) for axes in several if len(axes) > k + 1]
        for k in range(max(map(len, several)) - 1)
    ]
    paired = tuple(Symmetry(exchanged(tensor.rank, *pairs)) for pairs in exchanges)
    single = [pair for pairs in exchanges for pair in pairs]
    antisymmetric = tuple(Symmetry(exchanged(tensor.rank, pair), -1) for pair in single)
    return [replace(tensor, symmetry=paired), replace(tensor, symmetry=antisymmetric)]


def _begins_with_differences(
    probe: Probe, values: Mapping[str, Array], output: Tensor, axes: tuple[int, ...], tensor: Tensor
) -> list[Amplitude]:
    """The role of an output that is c*D*t, or c*(D - E)*t with the energy E of the reference."""
    t = unpack(tensor, probe.drawn(tensor), probe.extents)
    change = differences(tensor, probe.spaces, probe.energies)
    found = unpack(output, values[output.name], probe.extents).transpose(axes)
    for energy in (0.0, probe.occupied_energy, 2 * probe.occupied_energy):
        scale = _scale(found, (change - energy) * t)
        if scale is not None:
            return [Amplitude(tensor, output, axes, scale, with_reference=bool(energy))]
    return []


def at_zero(system: System, amplitudes: Set[str], outputs: Set[str]) -> System:
    """The equations of some outputs at zero amplitudes; outputs that vanish have none."""
    unused = [t for t in system.outputs if t.name not in outputs]
    system = with_tensors(system, {t: replace(t, role=Role.TEMP) for t in unused})
    zero = {t for t in system.inputs if t.name in amplitudes}

    def value(leaf: Any) -> Expr:
        return Const(Fraction(0)) if isinstance(leaf, Ref) and leaf.tensor in zero else leaf

    equations = []
    for equation in system.equations:
        terms = []
        for term in equation.terms:
            if not any(isinstance(f, Ref) and f.tensor in zero for f in term.factors):
                factors = tuple(
                    Apply(map_leaves(f.expr, value)) if isinstance(f, Apply) else f
                    for f in term.factors
                )
                terms.append(replace(term, factors=factors))
        if terms:
            equations.append(replace(equation, terms=tuple(terms)))
        else:
            zero.add(equation.lhs.tensor)
    system = keep_needed(
        replace(
            system,
            tensors=tuple(t for t in system.tensors if t not in zero),
            equations=tuple(equations),
        )
    )
    read = {name for equation in system.equations for name in equation.reads}
    tensors = tuple(t for t in system.tensors if not t.is_input or t.name in read)
    return replace(system, tensors=tensors)


def _scale(found: Array, expected: Array) -> float | None:
    """The number c if the first array is c times the second, else None."""
    norm = float(np.vdot(expected, expected).real)
    if norm == 0.0 or not np.all(np.isfinite(found)):
        return None
    scale = float(np.vdot(expected, found).real) / norm
    deviation = float(np.abs(found - scale * expected).max())
    limit = _DEVIATION * abs(scale) * float(np.abs(expected).max())
    return scale if deviation < limit else None


def _target(output: Tensor, role: str, by_name: Mapping[str, Tensor]) -> str:
    name = role.rpartition(" ")[2]
    if name not in by_name:
        raise ArgumentError(
            f"outputs: {output.name} is given as the {role}, but {name} is not among the inputs "
            f"that can be solved for: {', '.join(by_name) or 'there are none'}"
        )
    return name


def _other_axes(output: Tensor, tensor: Tensor) -> ArgumentError:
    one, two = with_axes(output), with_axes(tensor)
    return ArgumentError(f"outputs: {one} and {two} have different axes")
