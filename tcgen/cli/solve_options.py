"""Options of ``tcgen solve``: the molecule, the reference, and how equations are iterated."""

from __future__ import annotations

from pathlib import Path

import click

from .options import together


def _parsed_roles(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    roles = {}
    for value in values:
        name, equals, role = value.partition("=")
        if not equals or not role.strip():
            raise click.BadParameter(
                f"{value!r} is not NAME=ROLE; write for example 'r1=residual of t1'"
            )
        roles[name.strip()] = role.strip()
    return roles


solve_options = together(
    click.option(
        "--atom", help="Atoms and coordinates in Angstrom: 'O 0 0 0.1; H 0 0.8 -0.5; ...'."
    ),
    click.option("--xyz", type=click.Path(path_type=Path), help="File with atoms, in Angstrom."),
    click.option("--basis", default="cc-pvdz", show_default=True),
    click.option("--charge", type=int, default=0, show_default=True),
    click.option(
        "--spin", type=click.IntRange(min=0), default=0, show_default=True, help="2S, as in PySCF."
    ),
    click.option(
        "--reference",
        type=click.Choice(("rhf", "uhf", "rohf", "ghf")),
        help="Default: rhf for spin 0, uhf otherwise.",
    ),
    click.option(
        "--frozen",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Number of core orbitals (spatial) that are not correlated.",
    ),
    click.option("--df", "density_fit", is_flag=True, help="Fit densities, in the mean field too."),
    click.option("--auxbasis", help="Basis set of density fitting.  [default: PySCF's]"),
    click.option(
        "--amplitudes",
        type=click.Path(path_type=Path, dir_okay=False),
        help="File to start from if it exists, written at the end (.npz).",
    ),
    click.option("--inputs", type=click.Path(path_type=Path), help="Other inputs by name, .npz."),
    click.option(
        "--role",
        "roles",
        metavar="NAME=ROLE",
        multiple=True,
        callback=_parsed_roles,
        help="What an output is (energy, value, residual of t1, update of t1, sigma of r1) or an "
        "input ((pq|rs), <pq|rs>, <pq||rs>, df, fock, hcore, energies, dipole); repeatable.",
    ),
    click.option(
        "--orbitals",
        type=click.Choice(("spatial", "spin")),
        help="Default: spin orbitals if an input is antisymmetric or declares `conserves`.",
    ),
    click.option(
        "--nroots",
        type=int,
        default=1,
        show_default=True,
        help="Number of roots of an eigenvalue problem.",
    ),
    click.option(
        "--tolerance",
        type=float,
        default=1e-9,
        show_default=True,
        help="Largest norm of a residual at convergence, in Hartree.",
    ),
    click.option(
        "--max-cycle",
        type=int,
        default=100,
        show_default=True,
        help="Largest number of iterations.",
    ),
    click.option(
        "--diis", type=int, default=8, show_default=True, help="Number of vectors that DIIS keeps."
    ),
    click.option(
        "--level-shift",
        type=float,
        default=0.0,
        show_default=True,
        help="Hartree added to virtual energies in denominators.",
    ),
    click.option(
        "--damping",
        type=float,
        default=0.0,
        show_default=True,
        help="Part of the old amplitudes that remains.",
    ),
)
