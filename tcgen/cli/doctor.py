"""What works on this machine and what to install: ``tcgen doctor``."""

from __future__ import annotations

import platform
import warnings
from importlib import metadata
from typing import TypedDict

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .._version import __version__
from ..environment import cache_dir
from ..errors import UnavailableError
from ..runtime.cpu.blas import blas_library
from ..runtime.cpu.toolchain import examine_cache, no_compiler, probe_compiler
from ..runtime.gpu.cupy_device import open_device

PACKAGES = ("numpy", "scipy", "opt_einsum", "sympy", "ortools", "lark", "click", "rich")


class Finding(TypedDict):
    """One line of the examination: what, whether it works, details, and what to do if not."""

    what: str
    works: bool
    details: str
    advice: str


def examine() -> list[Finding]:
    """Compilers, the cache, BLAS, GPU and versions, each tried."""
    findings = [
        _finding("tcgen", True, f"{__version__}, Python {platform.python_version()}"),
        _compiler(),
        _cache(),
        _blas(),
        _gpu(),
    ]
    for name in PACKAGES:
        try:
            findings.append(_finding(name, True, metadata.version(name)))
        except metadata.PackageNotFoundError:
            findings.append(_finding(name, False, "missing", f"pip install {name}"))
    try:
        findings.append(_finding("pyscf (optional)", True, metadata.version("pyscf")))
    except metadata.PackageNotFoundError:
        advice = "for tcgen solve and tcgen.chem: pip install 'tcgen-chem[chem]'"
        findings.append(_finding("pyscf (optional)", False, "missing", advice))
    return findings


def print_findings(findings: list[Finding], console: Console) -> None:
    """A table, one finding a row."""
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
        why, _, advice = str(error).rpartition(": ")  # what CuPy says may hold colons
        return _finding("GPU (optional)", False, why, f"for target cuda: {advice}")
