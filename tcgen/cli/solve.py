"""Equations on a mean field that PySCF runs: ``tcgen solve``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..chem import Solution
from ..chem import solve as solve_equations
from ..chem.driver import read_equations
from ..chem.mean_field import run_mean_field
from ..errors import ArgumentError
from ..ir.system import System
from .arrays_in_files import read_arrays

_MOLECULE = ("atom", "xyz", "basis", "charge", "spin", "density_fit", "auxbasis")
_ITERATION = ("nroots", "tolerance", "max_cycle", "diis", "level_shift", "damping", "orbitals")


def solve(
    source: str,
    chosen: Mapping[str, Any],
    show: Callable[[str], None] | bool,
    progress: Callable[[str], None],
    **compilation: Any,
) -> Solution:
    """Run the mean field, solve the equations, and write the amplitudes.

    Args:
        source: a path or the name of a shipped spec.
        chosen: values of ``solve_options``.
        show: as for :func:`tcgen.chem.solve`.
        progress: as for it; the mean field is told of, too.
        compilation: keywords of it that shape the program.
    """
    system = read_equations(source)
    roles_of_inputs, roles_of_outputs = _split_roles(system, chosen["roles"])
    others = read_arrays(chosen["inputs"]) if chosen["inputs"] is not None else {}
    file: Path | None = chosen["amplitudes"]
    progress("running the mean field")
    reference = run_mean_field(
        kind=chosen["reference"], **{name: chosen[name] for name in _MOLECULE}
    )
    spin_orbitals = chosen["reference"] == "ghf"
    solution = solve_equations(
        system,
        reference,
        frozen=chosen["frozen"] * (2 if spin_orbitals else 1),
        amplitudes=file if file is not None and file.exists() else None,
        inputs={**others, **roles_of_inputs},
        outputs=roles_of_outputs,
        auxbasis=chosen["auxbasis"],
        show=show,
        progress=progress,
        **{name: chosen[name] for name in _ITERATION},
        **compilation,
    )
    if file is not None:
        solution.save(file)
    return solution


def _split_roles(system: System, roles: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Roles of inputs and of outputs."""
    inputs = {tensor.name for tensor in system.inputs}
    outputs = {tensor.name for tensor in system.outputs}
    unknown = [name for name in roles if name not in inputs | outputs]
    if unknown:
        raise ArgumentError(
            f"--role {unknown[0]}: {system.name} has no such input or output; it has "
            f"{', '.join([*sorted(inputs), *sorted(outputs)])}"
        )
    return (
        {name: role for name, role in roles.items() if name in inputs},
        {name: role for name, role in roles.items() if name in outputs},
    )
