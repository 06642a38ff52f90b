"""tcgen: from the equations of a many-body method to fused loop nests that run.

    import tcgen
    program = tcgen.compile("ccsd.spec", extents={"o": 10, "v": 40})
    out = program(f_oo=f_oo, ..., t1=t1, t2=t2)

Names are loaded when they are first used: importing tcgen loads neither solver nor parser.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOME = {
    "compile": "api",
    "spec_path": "api",
    "from_pdaggerq": "frontend.from_pdaggerq",
    "from_wicked": "frontend.from_wicked",
    "from_sympy": "frontend.from_sympy",
    "derivative": "algebra.derivative",
    "jvp": "algebra.derivative",
    "einsum": "contraction",
    "contract": "contraction",
    "tensordot": "contraction",
    "transpose": "contraction",
    "einsum_report": "einsum_kernels",
    "lazy": "delayed_array",
    "evaluate": "delayed_array",
    "LazyArray": "delayed_array",
    "load": "runtime.program",
    "set_threads": "runtime.threads",
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
    "jvp",
    "lazy",
    "load",
    "set_threads",
    "spec_path",
    "tensordot",
    "transpose",
]

if TYPE_CHECKING:
    from .algebra.derivative import derivative, jvp
    from .api import compile, spec_path
    from .contraction import contract, einsum, tensordot, transpose
    from .delayed_array import LazyArray, evaluate, lazy
    from .einsum_kernels import einsum_report
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
    from .frontend.from_pdaggerq import from_pdaggerq
    from .frontend.from_sympy import from_sympy
    from .frontend.from_wicked import from_wicked
    from .runtime.bound import BoundProgram
    from .runtime.program import Program, load
    from .runtime.threads import set_threads


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'tcgen' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
