"""tcgen: from the equations of a many-body method to fused loop nests that run.

    import tcgen
    program = tcgen.compile("ccsd.spec", extents={"o": 10, "v": 40})
    out = program(f_oo=f_oo, ..., t1=t1, t2=t2)

Names are loaded when they are first used: importing tcgen loads neither solver nor parser.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

_HOME = {
    "compile": "compiler.api",
    "spec_path": "resources",
    "from_pdaggerq": "frontend.importers.pdaggerq",
    "from_wicked": "frontend.importers.wicked",
    "from_sympy": "frontend.importers.sympy_indexed",
    "derivative": "algebra.derivatives.equations",
    "jvp": "algebra.derivatives.equations",
    "einsum": "contraction.functions",
    "contract": "contraction.functions",
    "tensordot": "contraction.functions",
    "transpose": "contraction.functions",
    "einsum_report": "contraction.programs",
    "lazy": "lazy_arrays.array",
    "evaluate": "lazy_arrays.array",
    "LazyArray": "lazy_arrays.array",
    "load": "runtime.program",
    "get_threads": "runtime.cpu.threads",
    "set_threads": "runtime.cpu.threads",
    "Program": "runtime.program",
    "BoundProgram": "runtime.bound",
    "TcgenError": "errors",
    "SpecError": "errors",
    "ExtentError": "errors",
    "ShapeError": "errors",
    "DtypeError": "errors",
    "ArgumentError": "errors",
    "PlanError": "errors",
    "MemoryLimitError": "errors",
    "BuildError": "errors",
    "EinsumError": "errors",
    "PathError": "errors",
    "ArtifactError": "errors",
}

__all__ = [
    "ArgumentError",
    "ArtifactError",
    "BoundProgram",
    "BuildError",
    "DtypeError",
    "EinsumError",
    "ExtentError",
    "LazyArray",
    "MemoryLimitError",
    "PathError",
    "PlanError",
    "Program",
    "ShapeError",
    "SpecError",
    "TcgenError",
    "__version__",
    "compile",
    "contract",
    "derivative",
    "einsum",
    "einsum_report",
    "evaluate",
    "from_pdaggerq",
    "from_sympy",
    "from_wicked",
    "get_threads",
    "jvp",
    "lazy",
    "load",
    "set_threads",
    "spec_path",
    "tensordot",
    "transpose",
]

if TYPE_CHECKING:
    from .algebra.derivatives.equations import derivative, jvp
    from .compiler.api import compile
    from .contraction.functions import contract, einsum, tensordot, transpose
    from .contraction.programs import einsum_report
    from .errors import (
        ArgumentError,
        ArtifactError,
        BuildError,
        DtypeError,
        EinsumError,
        ExtentError,
        MemoryLimitError,
        PathError,
        PlanError,
        ShapeError,
        SpecError,
        TcgenError,
    )
    from .frontend.importers.pdaggerq import from_pdaggerq
    from .frontend.importers.sympy_indexed import from_sympy
    from .frontend.importers.wicked import from_wicked
    from .lazy_arrays.array import LazyArray, evaluate, lazy
    from .resources import spec_path
    from .runtime.bound import BoundProgram
    from .runtime.cpu.threads import get_threads, set_threads
    from .runtime.program import Program, load


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'tcgen' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
