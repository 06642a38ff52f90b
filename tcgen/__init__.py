"""tcgen: from the equations of a many-body method to fused loop nests that run.

    import tcgen
    program = tcgen.compile("ccsd.spec", extents={"o": 10, "v": 40})
    out = program(f_oo=f_oo, ..., t1=t1, t2=t2)

Names are loaded when they are first used: importing tcgen loads neither solver nor parser.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import runtime

_HOME = {  # the module of each public name
    "ArgumentError": "errors",
    "ArtifactError": "errors",
    "AxisError": "errors",
    "BoundProgram": "runtime.bound",
    "BuildError": "errors",
    "CacheWarning": "errors",
    "CheckError": "errors",
    "ContractionPathError": "errors",
    "ConvergenceError": "errors",
    "DistributedProgram": "distributed.run",
    "DtypeError": "errors",
    "EinsumError": "errors",
    "EinsumReport": "contraction.report",
    "ExtentError": "errors",
    "LazyArray": "lazy_arrays.array",
    "Machine": "thresholds.time_model",
    "MemoryLimitError": "errors",
    "PathNameError": "errors",
    "PlanError": "errors",
    "Planning": "options",
    "Program": "runtime.program",
    "ReadOnlyError": "errors",
    "Report": "runtime.report",
    "RunReport": "distributed.run",
    "ShapeError": "errors",
    "SpecError": "errors",
    "Stored": "distributed.stored",
    "System": "ir.system",
    "TcgenError": "errors",
    "UnavailableError": "errors",
    "VerifyError": "errors",
    "__version__": "_version",
    "compile": "compiler.api",
    "compute": "lazy_arrays.array",
    "contract": "contraction.functions",
    "derivative": "algebra.derivatives.equations",
    "distribute": "distributed.distribute",
    "einsum": "contraction.functions",
    "einsum_report": "contraction.report",
    "evaluate_system": "interp",
    "from_pdaggerq": "frontend.importers.pdaggerq",
    "from_sympy": "frontend.importers.sympy_indexed",
    "from_wicked": "frontend.importers.wicked",
    "get_threads": "runtime.cpu.threads",
    "jvp": "algebra.derivatives.equations",
    "lazy": "lazy_arrays.array",
    "load": "runtime.program",
    "pack_pairs": "runtime.packed_pairs",
    "read_spec": "frontend.spec.reader",
    "read_spec_file": "frontend.spec.reader",
    "set_threads": "runtime.cpu.threads",
    "spec_path": "resources",
    "spec_text": "frontend.spec.writer",
    "spin_blocks": "algebra.spin.arrays",
    "spin_integrated": "algebra.spin.integrate",
    "spin_orbital": "algebra.spin.arrays",
    "stored": "distributed.stored",
    "tensordot": "contraction.functions",
}
_PACKAGES = ("chem",)  # reached as tcgen.chem
_OPT_EINSUM = {"transpose": "contraction.functions"}  # what a backend of it has besides

__all__ = [
    "ArgumentError",
    "ArtifactError",
    "AxisError",
    "BoundProgram",
    "BuildError",
    "CacheWarning",
    "CheckError",
    "ContractionPathError",
    "ConvergenceError",
    "DistributedProgram",
    "DtypeError",
    "EinsumError",
    "EinsumReport",
    "ExtentError",
    "LazyArray",
    "Machine",
    "MemoryLimitError",
    "PathNameError",
    "PlanError",
    "Planning",
    "Program",
    "ReadOnlyError",
    "Report",
    "RunReport",
    "ShapeError",
    "SpecError",
    "Stored",
    "System",
    "TcgenError",
    "UnavailableError",
    "VerifyError",
    "__version__",
    "compile",
    "compute",
    "contract",
    "derivative",
    "distribute",
    "einsum",
    "einsum_report",
    "evaluate_system",
    "from_pdaggerq",
    "from_sympy",
    "from_wicked",
    "get_threads",
    "jvp",
    "lazy",
    "load",
    "pack_pairs",
    "read_spec",
    "read_spec_file",
    "set_threads",
    "spec_path",
    "spec_text",
    "spin_blocks",
    "spin_integrated",
    "spin_orbital",
    "stored",
    "tensordot",
]

if TYPE_CHECKING:
    from . import chem as chem
    from ._version import __version__
    from .algebra.derivatives.equations import derivative, jvp
    from .algebra.spin.arrays import spin_blocks, spin_orbital
    from .algebra.spin.integrate import spin_integrated
    from .compiler.api import compile
    from .contraction.functions import contract, einsum, tensordot
    from .contraction.report import EinsumReport, einsum_report
    from .distributed.distribute import distribute
    from .distributed.run import DistributedProgram, RunReport
    from .distributed.stored import Stored, stored
    from .errors import (
        ArgumentError,
        ArtifactError,
        AxisError,
        BuildError,
        CacheWarning,
        CheckError,
        ContractionPathError,
        ConvergenceError,
        DtypeError,
        EinsumError,
        ExtentError,
        MemoryLimitError,
        PathNameError,
        PlanError,
        ReadOnlyError,
        ShapeError,
        SpecError,
        TcgenError,
        UnavailableError,
        VerifyError,
    )
    from .frontend.importers.pdaggerq import from_pdaggerq
    from .frontend.importers.sympy_indexed import from_sympy
    from .frontend.importers.wicked import from_wicked
    from .frontend.spec.reader import read_spec, read_spec_file
    from .frontend.spec.writer import spec_text
    from .interp import evaluate_system
    from .ir.system import System
    from .lazy_arrays.array import LazyArray, compute, lazy
    from .options import Planning
    from .resources import spec_path
    from .runtime.bound import BoundProgram
    from .runtime.cpu.threads import get_threads, set_threads
    from .runtime.packed_pairs import pack_pairs
    from .runtime.program import Program, load
    from .runtime.report import Report
    from .thresholds.time_model import Machine


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    home = _HOME.get(name) or _OPT_EINSUM.get(name)
    if home is None:
        from .compiler.deprecations import new_name

        return __getattr__(new_name(name))
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def _distribute(*arguments: Any, **options: Any) -> Any:
    from .distributed.distribute import distribute

    return distribute(*arguments, **options)


runtime.distribute = _distribute


def __dir__() -> list[str]:
    return [*__all__, *_PACKAGES]
