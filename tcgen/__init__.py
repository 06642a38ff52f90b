"""tcgen: from the equations of a many-body method to fused loop nests that run.

    import tcgen
    program = tcgen.compile("ccsd.spec", extents={"o": 10, "v": 40})
    out = program(f_oo=f_oo, ..., t1=t1, t2=t2)

The stub ``__init__.pyi`` lists the public names, for type checkers and for this module. Names are
loaded at their first use: importing tcgen loads neither solver nor parser.
"""

from __future__ import annotations

import ast
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from . import runtime


def _modules() -> dict[str, str | None]:
    """The module of each name that the stub imports; None for a package."""
    stub = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in imports for alias in node.names}


_MODULES = _modules()
__all__ = sorted(name for name, module in _MODULES.items() if module is not None)
# Public names of version 0.1, which work until version 0.3.
_NEW_NAMES = {"PathError": "ContractionPathError", "evaluate": "compute"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        module = _MODULES[name]
        if module is None:
            return import_module(f".{name}", __name__)
    elif name == "transpose":  # opt_einsum looks it up in its backend
        module = "contraction.functions"
    elif name in _NEW_NAMES:
        new = _NEW_NAMES[name]
        message = f"tcgen.{name} is now tcgen.{new}; the old name goes in version 0.3"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return __getattr__(new)
    else:
        raise AttributeError(f"module 'tcgen' has no attribute {name!r}")
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(_MODULES)


def _distribute(*arguments: Any, **options: Any) -> Any:
    return __getattr__("distribute")(*arguments, **options)


runtime.distribute = _distribute
