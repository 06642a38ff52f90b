"""What works on this machine and what to install: ``tcgen doctor``."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import TypedDict

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .._version import __version__
from ..errors import UnavailableError
from ..runtime.cpu.blas import blas_library
from ..runtime.cpu.toolchain import no_compiler, probe_compiler
from ..runtime.gpu.cupy_device import open_device

PACKAGES = ("numpy", "scipy", "opt_einsum", "sympy", "ortools", "lark", "click", "rich")


class Finding(TypedDict):
    """One line of the examination: what, whether it works, details, and what to do if not."""

    what: str
    works: bool
    details: str
    advice: str


def examine() -> list[Finding]:
    """Compilers, BLAS, GPU and versions, each tried."""
    findings = [
        _finding("tcgen", True, f"{__version__}, Python {platform.python_version()}"),
        _compiler(),
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
    advice = "install gcc or clang (or set TCGEN_CC); until then target numpy is used"
    reason = no_compiler()
    if reason is not None:
        return _finding("C compiler", False, reason, advice)
    compiler = probe_compiler()
    if not compiler.openmp:
        return _finding(
            "C compiler",
            True,
            f"{compiler.version}, no OpenMP",
            "programs run on one thread; install gcc or libomp for more",
        )
    return _finding("C compiler", True, f"{compiler.version}, OpenMP")


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
