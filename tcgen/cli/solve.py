"""``tcgen solve``: equations on a mean field that PySCF runs, or on integrals in a file."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from ..errors import ArgumentError, UnavailableError
from ..ir.system import System
from .arrays_in_files import read_arrays
from .options import (
    PATH,
    Command,
    Written,
    chosen_planning,
    chosen_target,
    json_option,
    option,
    output_option,
    planning_options,
    together,
)
from .output import StatusLine, print_json

if TYPE_CHECKING:
    from ..chem import Properties, Solution, SolveOptions

_MOLECULE = ("atom", "xyz", "basis", "ecp", "charge", "spin", "density_fit", "auxbasis")
_FILES = ("fcidump", "trexio", "integrals")
_OF_STATES = ("states", "properties", "polarizability")
_MOST_OCCUPIED = 10**6  # orbitals of a range in --occupied: more than any file has
# Fields of SolveOptions that have their names on the command line.
_OPTIONS = (
    *("frozen", "symmetry", "nroots", "irrep", "tolerance", "max_cycle", "diis", "level_shift"),
    *("damping", "orbitals", "checkpoint", "checkpoint_every", "precision", "memory"),
    *("dtype", "memory_limit"),
)


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


def _parsed_orbitals(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> list[Any] | None:
    """Numbers such as 0-4,6; two lists for alpha and beta electrons have / between them."""
    if value is None:
        return None
    spins = []
    for part in value.split("/"):
        numbers: list[int] = []
        for word in part.split(","):
            match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", word)
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            if not 0 <= last - first < _MOST_OCCUPIED:
                raise click.BadParameter(f"{value!r:.80} is not a list of orbitals such as 0-4,6")
            numbers += range(first, last + 1)
        spins.append(numbers)
    return spins if len(spins) > 1 else spins[0]


_solve_options = together(
    option("--atom", help="Atoms and coordinates in Angstrom: 'O 0 0 0.1; H 0 0.8 -0.5; ...'."),
    option("--xyz", type=PATH, help="File with atoms, in Angstrom."),
    option("--fcidump", type=PATH, help="FCIDUMP file with integrals over orbitals: no atoms."),
    option("--trexio", type=PATH, help="TREXIO file or folder with integrals over orbitals."),
    option(
        "--integrals",
        type=PATH,
        help="Integrals over orbitals by name, .npz or .h5: h, eri or cderi, nelec, and others of "
        "tcgen.chem.hamiltonian.",
    ),
    option(
        "--occupied",
        metavar="LIST",
        callback=_parsed_orbitals,
        help="Occupied orbitals of such a file, from 0: 0-4,6; of alpha and beta electrons: "
        "0-4/0-3.  [default: the lowest if it has energies, else the first]",
    ),
    option("--basis", default="cc-pvdz"),
    option("--ecp", help="Effective core potentials, as in PySCF; often the name of the basis."),
    option("--charge", default=0),
    option("--spin", type=click.IntRange(min=0), default=0, help="2S, as in PySCF."),
    option(
        "--reference",
        type=click.Choice(("rhf", "uhf", "rohf", "ghf")),
        help="Default: rhf for spin 0, uhf otherwise.",
    ),
    option(
        "--frozen",
        type=click.IntRange(min=0),
        default=0,
        help="Number of core orbitals (spatial) that are not correlated.",
    ),
    option("--df", "density_fit", is_flag=True, help="Fit densities, also in the mean field."),
    option("--auxbasis", help="Basis set of density fitting.  [default: PySCF's]"),
    option(
        "--symmetry",
        is_flag=True,
        help="Compute with blocks of the irreps of the molecule's abelian point group.",
    ),
    option(
        "--irrep",
        metavar="NAME",
        help="Irrep of the roots of eigenvalue problems, such as B1.  [default: all]",
    ),
    option(
        "--amplitudes",
        type=Written("solutions", dir_okay=False),
        help="File to start from if it exists; the solution is added at the end (.npz).",
    ),
    option(
        "--amplitudes-of",
        metavar="SPEC",
        help="Name of the equations whose amplitudes are read if several in the file have them.",
    ),
    output_option(
        "File for the results: .json (QCSchema), or .h5 or .npz, with amplitudes and densities.",
        holds="solutions",
    ),
    option("--inputs", type=PATH, help="Other inputs by name, .npz."),
    option(
        "--role",
        "roles",
        metavar="NAME=ROLE",
        multiple=True,
        callback=_parsed_roles,
        help="Role of an output (energy, value, residual of t1, update of t1, sigma of r1) or of "
        "an input ((pq|rs), <pq|rs>, <pq||rs>, df, fock, hcore, energies, dipole); repeatable.",
    ),
    option(
        "--orbitals",
        type=click.Choice(("spatial", "spin")),
        help="Default: spin orbitals if an input is antisymmetric or declares `conserves`.",
    ),
    option("--nroots", default=1, help="Number of roots of an eigenvalue problem."),
    option(
        "--states",
        type=click.IntRange(min=1),
        metavar="N",
        help="Then the N lowest excited states of this ground state, with oscillator strengths.",
    ),
    option(
        "--spectrum",
        type=Written(dir_okay=False),
        help="Draw the states of --states as a spectrum into this picture, with matplotlib.",
    ),
    option(
        "--properties",
        is_flag=True,
        help="Then dipole and quadrupole moments and natural occupations of this ground state.",
    ),
    option("--polarizability", is_flag=True, help="Then these, and the static polarisability."),
    option(
        "--tolerance", default=1e-9, help="Largest norm of a residual at convergence, in Hartree."
    ),
    option("--max-cycle", default=100, help="Largest number of iterations."),
    option("--diis", default=8, help="Number of vectors that DIIS stores."),
    option(
        "--level-shift",
        default=0.0,
        help="Energy added to virtual orbitals in denominators, in Hartree.",
    ),
    option("--damping", default=0.0, help="Fraction of the old amplitudes that remains."),
    option(
        "--memory",
        metavar="BYTES",
        help="Memory of the whole job after the mean field, such as 6GB.  [default: that of PySCF, "
        "beyond which a job may go]",
    ),
    option(
        "--precision",
        type=click.Choice(("mixed",)),
        help="mixed: iterate in float32 at first.  [default: all iterations in --dtype]",
    ),
    option(
        "--checkpoint",
        type=Written(dir_okay=False),
        help="File (.h5) with the state of the iteration; a job that finds it continues there.",
    ),
    option(
        "--checkpoint-every", default=1, help="Iterations after which the checkpoint is written."
    ),
    option(
        "--integral-file",
        type=Written(dir_okay=False),
        help="File (.h5) with the integrals over pairs of orbitals of the molecule: it is written, "
        "or read by a job that finds it.  [default: a temporary one for several SPECs]",
    ),
    option(
        "--timings",
        is_flag=True,
        help="Show the seconds, calls and bytes of each stage at the end.",
    ),
)


@click.command("solve", cls=Command)
@click.argument("sources", metavar="SPEC...", nargs=-1, required=True)
@_solve_options
@planning_options
@json_option
@click.pass_context
def solve_command(
    ctx: click.Context, /, sources: tuple[str, ...], as_json: bool, **chosen: Any
) -> None:
    """Solve the equations of SPEC, a file or a shipped name, for a molecule or integrals in a file.

    PySCF runs the mean field of a molecule. Several SPECs are solved one after the other on one
    reference, each with the amplitudes of those before it.
    """
    one_energy = len(sources) == 1 and chosen["states"] is None
    if not one_energy and chosen["output"] is not None and chosen["output"].suffix == ".json":
        raise click.UsageError(
            "QCSchema has the energy of one method: give one SPEC without --states, or write an "
            ".h5 file, or use --json"
        )
    from ..chem import SolveOptions  # noqa: PLC0415  (loads the interpreter)

    _refuse_files(chosen)
    quiet = ctx.obj["quiet"]
    # The error at the end says the same.
    warnings.filterwarnings("ignore", ".* is not converged: the largest residual")
    target = chosen_target(ctx, chosen)
    with StatusLine(quiet) as status:

        def show(line: str) -> None:
            status.clear()
            click.echo(line, err=as_json)

        solutions, found = _solve(
            ctx,
            sources,
            chosen,
            SolveOptions(
                **{name: chosen[name] for name in _OPTIONS},
                # That of a fitted mean field is its own.
                auxbasis=None if chosen["density_fit"] else chosen["auxbasis"],
                show=False if quiet else show,
                progress=status.show,
                extents=dict(chosen["extents"]),
                target=target,
                planning=chosen_planning(chosen),
            ),
        )
    if chosen["timings"]:
        for solution in solutions:
            click.echo(f"{'stage':<10} {'seconds':>10} {'calls':>8} {'bytes':>18}", err=as_json)
            for stage, seconds in (*solution.timings.items(), ("in all", solution.seconds)):
                counts = solution.work.get(stage, {})
                calls, size = (f"{counts[n]:,}" if n in counts else "" for n in ("calls", "bytes"))
                line = f"{stage:<10} {seconds:10.2f} {calls:>8} {size:>18}"
                click.echo(line.rstrip(), err=as_json)
            if "written" in solution.disk:
                click.echo(f"disk: {solution.disk['written']:,} bytes written", err=as_json)
    if as_json:
        records = [solution.as_json() for solution in solutions]
        if found is not None:
            records[0]["properties"] = found.as_json()
        several = {"solutions": records} if len(records) > 1 or len(sources) > 1 else records[0]
        print_json({"schema": 1, **several})
    solution = solutions[-1]
    if not solution.converged:
        worst = max(solution.residual_norms.values())
        click.echo(
            f"tcgen: error: {solution.name} is not converged: the largest residual norm is "
            f"{worst:.1e} after {solution.iterations} iterations: raise --max-cycle, or try "
            f"--damping 0.3",
            err=True,
        )
        ctx.exit(1)


def _solve(
    ctx: click.Context, sources: Sequence[str], chosen: Mapping[str, Any], options: SolveOptions
) -> tuple[list[Solution], Properties | None]:
    """Make the reference, solve the equations, and write the amplitudes.

    ``chosen`` has the options of the command line by parameter name. A solution that has not
    converged is the last one. States are a solution beside that of their ground state.
    """
    from ..chem import Hamiltonian, load, solve  # noqa: PLC0415
    from ..compiler.api import equations_of  # noqa: PLC0415

    systems = [equations_of(source) for source in sources]
    _refuse_roles(systems, chosen["roles"])
    _refuse_states(systems, chosen)
    follow = any(chosen[name] for name in _OF_STATES)
    others = read_arrays(chosen["inputs"]) if chosen["inputs"] is not None else {}
    every = _options_by_system(systems, options, chosen["roles"], others, follow=follow)
    file: Path | None = chosen["amplitudes"]
    if chosen["amplitudes_of"] is not None and file is None:
        raise ArgumentError("--amplitudes-of needs a file: add --amplitudes FILE")
    assert callable(options.progress)
    reference = _reference(ctx, chosen, options.progress)
    spin_orbitals = "GHF" in (str(chosen["reference"]).upper(), getattr(reference, "kind", ""))
    solutions: list[Solution] = []
    with TemporaryDirectory(prefix="tcgen-") as folder:
        # Equations find the amplitudes of those before them in a file.
        kept = file if file is not None or len(systems) == 1 else Path(folder) / "amplitudes.npz"
        # All equations of a job have one transform of integrals.
        integrals: Path | None = chosen["integral_file"]
        several = len(systems) > 1 or follow
        if integrals is None and several and not isinstance(reference, Hamiltonian):
            integrals = Path(folder) / "integrals.h5"
        for system, own in zip(systems, every, strict=True):
            earlier: Solution | Path | None = kept if kept is not None and kept.exists() else None
            if file is not None and chosen["amplitudes_of"] is not None:
                earlier = load(file, chosen["amplitudes_of"])
            checkpoint = own.checkpoint
            if checkpoint is not None and len(systems) > 1:
                path = Path(checkpoint)
                checkpoint = path.with_stem(f"{path.stem}_{system.name}")
            own = replace(
                own,
                frozen=chosen["frozen"] * (2 if spin_orbitals else 1),
                amplitudes=earlier,
                integral_file=integrals,
                checkpoint=checkpoint,
                # Nothing follows that would ask for them.
                release_integrals=system is systems[-1] and not follow,
            )
            solution = solve(system, reference, own)
            solutions.append(solution)
            # An error in what follows loses none.
            for written in (kept, chosen["output"]):
                if written is not None:
                    solution.save(written)
            if not solution.converged:
                return solutions, None
        return _with_states(solutions, systems[0], reference, own, chosen)


def _options_by_system(
    systems: Sequence[System],
    options: SolveOptions,
    roles: Mapping[str, str],
    others: Mapping[str, Any],
    *,
    follow: bool,
) -> list[SolveOptions]:
    """The options of each set of equations: their inputs and roles, and what acts on them.

    Raises:
        ArgumentError: an option acts on none of them, or they determine no states, and ``follow``
            says that these are asked for.
    """
    from ..chem.excited import derivable  # noqa: PLC0415
    from ..chem.options import acting, refuse_idle  # noqa: PLC0415
    from ..chem.setup import infer  # noqa: PLC0415

    every = []
    for system in systems:
        inputs = {tensor.name for tensor in system.inputs}
        outputs = {tensor.name for tensor in system.outputs}
        passed = others if len(systems) == 1 else {n: others[n] for n in others if n in inputs}
        every.append(
            replace(
                options,
                inputs={**passed, **{n: role for n, role in roles.items() if n in inputs}},
                outputs={n: role for n, role in roles.items() if n in outputs},
            )
        )
    found = [infer(system, own) for system, own in zip(systems, every, strict=True)]
    if follow:
        derivable(found[0].system, found[0].equations, found[0].integrals, every[0])
    parts = [(one.equations, one.integrals) for one in found]
    refuse_idle(options, [(s.name, *p) for s, p in zip(systems, parts, strict=True)])
    return [acting(own, *part) for own, part in zip(every, parts, strict=True)]


def _with_states(
    solutions: list[Solution],
    system: System,
    reference: Any,
    options: SolveOptions,
    chosen: Mapping[str, Any],
) -> tuple[list[Solution], Properties | None]:
    """States and properties of a ground state, if they are asked for."""
    from ..chem import excited_states, properties  # noqa: PLC0415

    own = replace(options, amplitudes=solutions[0], checkpoint=None, checkpoint_every=1)
    found = None
    if chosen["properties"] or chosen["polarizability"]:
        found = properties(system, reference, own, polarizability=chosen["polarizability"])
        if callable(own.show):
            for line in found.lines():
                own.show(line)
    if chosen["states"] is not None:
        states = excited_states(system, reference, own, nroots=chosen["states"])
        solutions.append(states)
        for written in (chosen["amplitudes"], chosen["output"]):
            if written is not None:
                states.save(written)
        if chosen["spectrum"] is not None:
            states.states.plot(chosen["spectrum"])
    return solutions, found


def _refuse_files(chosen: Mapping[str, Any]) -> None:
    """Refuse files that cannot be written at the end, before anything is computed."""
    from ..chem.result import load_all  # noqa: PLC0415
    from ..chem.states import figure_for  # noqa: PLC0415

    output: Path | None = chosen["output"]
    if chosen["spectrum"] is not None and chosen["states"] is not None:
        figure_for(chosen["spectrum"])
    files = ("amplitudes", "spectrum", "checkpoint", "integral_file")
    for path in (output, *(chosen[name] for name in files)):
        if path is not None and not path.parent.is_dir():
            raise UnavailableError(f"cannot write {path}: make the folder {path.parent}")
    if output is None:
        return
    if output.suffix not in (".json", ".h5", ".hdf5", ".npz"):
        raise click.UsageError(f"{output} is not named .json (QCSchema), .h5 or .npz: rename it")
    if output.suffix == ".json" and any(chosen[name] is not None for name in _FILES):
        raise click.UsageError(
            "QCSchema asks for a molecule, and integrals in a file have none: write an .h5 file"
        )
    if output.is_dir():
        raise UnavailableError(f"cannot write {output}: it is a folder: give another name")
    if output.suffix != ".json" and output.is_file() and output.stat().st_size:
        load_all(output)


def _refuse_states(systems: Sequence[System], chosen: Mapping[str, Any]) -> None:
    """Refuse states and properties of several sets of equations, and a spectrum of no states."""
    asked = [name for name in _OF_STATES if chosen[name]]
    if asked and len(systems) > 1:
        raise click.UsageError(
            f"--{asked[0]} is about one ground state: give one SPEC, such as ccsd_closed_shell"
        )
    files = [name for name in _FILES if chosen[name] is not None]
    if files and chosen["polarizability"]:
        raise click.UsageError(
            f"--polarizability needs integrals of coordinates, and --{files[0]} has none: give "
            f"--atom or --xyz"
        )
    if chosen["spectrum"] is not None and chosen["states"] is None:
        raise click.UsageError("--spectrum draws the states of --states N: add it")


def _reference(
    ctx: click.Context, chosen: Mapping[str, Any], progress: Callable[[str], None]
) -> Any:
    """The mean field of a molecule, or the Hamiltonian in a file."""
    from .. import chem  # noqa: PLC0415
    from ..chem.molecule import run_mean_field  # noqa: PLC0415

    def given(names: Sequence[str]) -> list[str]:
        source = click.core.ParameterSource.DEFAULT
        return [name for name in names if ctx.get_parameter_source(name) is not source]

    files = given(_FILES)
    if not files:
        if chosen["occupied"] is not None:
            raise click.UsageError("--occupied needs a file: --fcidump, --trexio or --integrals")
        progress("running the mean field")
        return run_mean_field(
            kind=chosen["reference"],
            symmetry=chosen["symmetry"],
            **{name: chosen[name] for name in _MOLECULE},
        )
    others = [*files[1:], *given([n for n in (*_MOLECULE, "reference") if n != "spin"])]
    if others:
        first, other = (f"--{n.replace('density_fit', 'df')}" for n in (files[0], others[0]))
        raise click.UsageError(f"{first} holds all integrals: leave out {other}")
    progress("reading integrals")
    keywords = {name: chosen[name] for name in given(("occupied", "spin"))}
    path = chosen[files[0]]
    if files[0] == "integrals":
        return chem.hamiltonian(**_by_keyword(path) | keywords)
    return getattr(chem, f"read_{files[0]}")(path, **keywords)


def _by_keyword(path: Path) -> dict[str, Any]:
    """Arrays and numbers in a file, as keywords of ``hamiltonian``."""
    from ..chem import hamiltonian  # noqa: PLC0415

    arrays = read_arrays(path)
    known = {*signature(hamiltonian).parameters} - {"memory", "origin"}
    if unknown := [name for name in arrays if name not in known]:
        raise ArgumentError(
            f"{path} has {', '.join(unknown)}, which is none of {', '.join(sorted(known))}: give "
            f"others another name in the file"
        )
    if missing := {"h", "nelec"} - {*arrays}:
        raise ArgumentError(f"{path} has no array {' or '.join(sorted(missing))}")
    values = {name: array if array.ndim else array.item() for name, array in arrays.items()}
    return values | {"origin": path.name}


def _refuse_roles(systems: Sequence[System], roles: Mapping[str, str]) -> None:
    """Refuse roles whose names are those of neither inputs nor outputs."""
    known = {tensor.name for system in systems for tensor in (*system.inputs, *system.outputs)}
    unknown = [name for name in roles if name not in known]
    if unknown:
        names = ", ".join(system.name for system in systems)
        raise ArgumentError(
            f"--role {unknown[0]}: {names} has no such input or output; it has "
            f"{', '.join(sorted(known))}"
        )
