"""``tcgen list``, ``convert``, ``spin`` and ``derive``: commands that list and write specs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from ..cache_files import save_text
from ..compiler.driver import read_system
from ..resources import shipped_specs
from .compile import read_equations
from .options import PATH, Command, json_option, option, output_option, together
from .output import print_json, print_text, print_warnings

_spin_options = together(
    option("--closed-shell", is_flag=True, help="For an RHF reference."),
    option("--unrestricted", is_flag=True, help="For a UHF or ROHF reference."),
    option("--triplet", is_flag=True, help="For triplets of an RHF reference, as in EOM-EE."),
)


@click.command("list", cls=Command)
@json_option
def list_command(as_json: bool) -> None:
    """List the specs that ship with tcgen; commands take their names as SPEC."""
    # The first line of a spec is a comment that describes it.
    first = {n: p.read_text("utf-8").partition("\n")[0] for n, p in shipped_specs().items()}
    described = {name: line.removeprefix("#").strip() for name, line in first.items()}
    if as_json:
        print_json({"schema": 1, "specs": described})
        return
    print_text("".join(f"{name}\n    {text}\n" for name, text in described.items()))


@click.command("convert", cls=Command)
@click.argument("source", metavar="FILE", type=PATH)
@output_option("File to write.  [default: stdout]")
@option("--real", is_flag=True, help="Orbitals are real: bra and ket may be exchanged.")
@click.pass_context
def convert_command(ctx: click.Context, /, source: Path, output: Path | None, real: bool) -> None:
    """Write FILE (.spec, .json, or output of pdaggerq or wick&d) as a .spec."""
    from ..frontend import read_printed, spec_text  # noqa: PLC0415  (loads parsers)
    from ..frontend.source import read_text  # noqa: PLC0415

    if real and source.suffix in (".spec", ".json"):
        raise click.UsageError(
            "--real applies to .txt and .jsonl files: leave it out, or declare symmetry in the file"
        )
    system = (
        read_printed(read_text(source), str(source), real=True) if real else read_system(source)
    )
    print_warnings(ctx, system)
    _write(spec_text(system), output)


@click.command("spin", cls=Command)
@click.argument("spec", type=PATH)
@_spin_options
@output_option("File to write.  [default: stdout]")
@click.pass_context
def spin_command(ctx: click.Context, /, spec: Path, output: Path | None, **forms: bool) -> None:
    """Write SPEC, which is over spin orbitals, as a .spec over spatial orbitals."""
    from ..chem.spin_notes import annotated_spec  # noqa: PLC0415

    form = _form(forms)
    if form is None:
        raise click.UsageError("give --closed-shell, --unrestricted or --triplet")
    _write(annotated_spec(read_equations(ctx, spec), form), output)


@click.command("derive", cls=Command)
@click.argument("ansatz")
@_spin_options
@option(
    "--commutators",
    type=click.IntRange(min=1),
    help="Truncate exp(-T) H exp(T) after so many commutators.",
)
@option("--complex", "is_complex", is_flag=True, help="Bra and ket of integrals are not exchanged.")
@output_option("File to write.  [default: stdout]")
def derive_command(
    ansatz: str,
    commutators: int | None,
    is_complex: bool,
    output: Path | None,
    **forms: bool,
) -> None:
    """Derive equations by Wick's theorem and write them as a .spec (needs wickd).

    ANSATZ is the name of a method, such as ccsdt, qcisd or eom-ip-ccsd, or statements: "T = t2; e =
    <0| exp(-T) H exp(T) |0>; r = <T| exp(-T) H exp(T) |0>".
    """
    from ..compiler.derived import derived_spec  # noqa: PLC0415  (loads parsers)

    form = _form(forms)
    text = derived_spec(ansatz, spin=form, commutators=commutators, real=not is_complex)
    _write(text, output)


def _form(forms: Mapping[str, bool]) -> str | None:
    """The spin form that a command is given; None for spin orbitals."""
    chosen = [name.replace("_", "-") for name, given in forms.items() if given]
    if len(chosen) > 1:
        raise click.UsageError(f"give one of {' and '.join(f'--{x}' for x in chosen)}")
    return chosen[0] if chosen else None


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
    else:
        save_text(output, text)
