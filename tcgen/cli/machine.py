"""``tcgen doctor`` and ``tcgen cache``: tools and cached files of this machine."""

from __future__ import annotations

import platform
import warnings
from importlib import metadata
from typing import TypedDict

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .._version import __version__
from ..cache_files import remove_files
from ..compiler.plan_cache import cached_plans
from ..compiler.timings import cached_times
from ..environment import cache_dir
from ..errors import UnavailableError, pip_install
from ..runtime.cpu.blas import blas_library
from ..runtime.cpu.object_cache import cache_clear, cache_info
from ..runtime.cpu.toolchain import examine_cache, no_compiler, probe_compiler
from ..runtime.gpu.cuda_libraries import load_cutensor
from ..runtime.gpu.cupy_device import open_device
from .options import Command, json_option
from .output import output_console, print_json

PACKAGES = ("numpy", "scipy", "opt_einsum", "sympy", "ortools", "lark", "click", "rich")
OPTIONAL = (
    ("pyscf", "chem", "tcgen solve and tcgen.chem"),
    ("wickd", "derive", "tcgen derive"),
    ("matplotlib", "plot", "pictures of spectra"),
)


class Finding(TypedDict):
    """A tool, whether it works, details, and advice if it does not."""

    what: str
    works: bool
    details: str
    advice: str


@click.command("doctor", cls=Command)
@json_option
def doctor_command(as_json: bool) -> None:
    """Show which tools work on this machine, and what to install."""
    findings = examine()
    if as_json:
        print_json({"schema": 1, "findings": findings})
    else:
        print_findings(findings, output_console())


def examine() -> list[Finding]:
    """Try compilers, the cache, BLAS and GPU, and look up versions."""
    findings = [
        _finding("tcgen", True, f"{__version__}, Python {platform.python_version()}"),
        _compiler(),
        _cache(),
        _blas(),
        _gpu(),
        _cutensor(),
    ]
    for name in PACKAGES:
        try:
            findings.append(_finding(name, True, metadata.version(name)))
        except metadata.PackageNotFoundError:
            findings.append(_finding(name, False, "missing", f"pip install {name}"))
    for name, extra, use in OPTIONAL:
        try:
            findings.append(_finding(f"{name} (optional)", True, metadata.version(name)))
        except metadata.PackageNotFoundError:
            advice = f"for {use}: {pip_install(extra)}"
            findings.append(_finding(f"{name} (optional)", False, "missing", advice))
    return findings


def print_findings(findings: list[Finding], console: Console) -> None:
    """Print a table with a row for each finding."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        mark = "[green]ok[/green]" if finding["works"] else "[yellow]--[/yellow]"
        advice = f"  {finding['advice']}" if finding["advice"] else ""
        table.add_row(mark, finding["what"], escape(finding["details"] + advice))
    console.print(table)


def _finding(what: str, works: bool, details: str, advice: str = "") -> Finding:
    return {"what": what, "works": works, "details": details, "advice": advice}


def _compiler() -> Finding:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the findings say the same
        found = no_compiler()
        if found is not None:
            reason, advice = found
            advice += "; until then target numpy is used"
            return _finding("C compiler", False, reason, advice)
        compiler = probe_compiler()
    refused = "; ".join(f"refuses {flag} ({why})" for flag, why in compiler.refused)
    details = f"{compiler.version}, {'' if compiler.openmp else 'no '}OpenMP"
    if refused:
        details += f", {refused}"
    if not compiler.openmp:
        return _finding(
            "C compiler",
            True,
            details,
            "programs run on one thread; install gcc or libomp for more",
        )
    return _finding("C compiler", True, details)


def _cache() -> Finding:
    folder, reason = cache_dir(), examine_cache()
    if reason is None:
        return _finding("cache", True, str(folder))
    return _finding(
        "cache",
        False,
        f"{folder}: {reason}",
        "set TCGEN_CACHE_DIR to a folder of your own with room, from which programs may be run",
    )


def _blas() -> Finding:
    library = blas_library()
    if library is None:
        return _finding(
            "BLAS", False, "SciPy's BLAS not found, a plain C product is used", "pip install scipy"
        )
    return _finding("BLAS", True, library)


def _gpu() -> Finding:
    try:
        return _finding("GPU (optional)", True, open_device().describe())
    except UnavailableError as error:
        why, _, advice = str(error).rpartition(": ")  # CuPy's reason may hold colons
        return _finding("GPU (optional)", False, why, f"for target cuda: {advice}")


def _cutensor() -> Finding:
    try:
        return _finding("cuTENSOR (optional)", True, load_cutensor()[1])
    except UnavailableError as error:
        why, _, advice = str(error).rpartition(": ")
        return _finding("cuTENSOR (optional)", False, why, f"for --tune on a GPU: {advice}")


@click.group("cache")
def cache_group() -> None:
    """Show or clear the compiled objects, plans and measured times stored between runs."""


@cache_group.command("info", cls=Command)
@json_option
def cache_info_command(as_json: bool) -> None:
    """Show the cache's folder, and its number of objects, plans, times and bytes."""
    info, plans, times = cache_info(), cached_plans(), cached_times()
    count = info["bytes"] + sum(p.stat().st_size for p in (*plans, *times))
    if as_json:
        print_json({**info, "plans": len(plans), "times": len(times), "bytes": count})
    else:
        held = f"{info['objects']} objects, {len(plans)} plans, {len(times)} times, {count:,} bytes"
        click.echo(f"{info['folder']}: {held}")


@cache_group.command("clear", cls=Command)
def cache_clear_command() -> None:
    """Remove every compiled object, plan and measured time from the cache."""
    plans, times = cached_plans(), cached_times()
    remove_files((*plans, *times))
    click.echo(f"removed {cache_clear()} objects, {len(plans)} plans and {len(times)} times")
