"""The same programs by numexpr, Numba, torch.compile and JAX, where these are installed.

Compilers get the programs as they are written for NumPy, and numexpr gets expressions of its own. A
program that one of them cannot take has no time there.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

from .in_numexpr import in_numexpr

Program = Callable[..., Any]


def _numba(run: Program) -> Program:
    compiled: Program = importlib.import_module("numba").njit(run)
    return compiled


def _torch(run: Program) -> Program:
    compiled: Program = importlib.import_module("torch").compile(run)
    return compiled


def _jax(run: Program) -> Program:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    names = {**run.__globals__, "np": importlib.import_module("jax.numpy")}
    made = types.FunctionType(run.__code__, names, run.__name__, run.__defaults__, run.__closure__)
    compiled = jax.jit(made)
    return lambda *arrays: jax.block_until_ready(compiled(*arrays))


COMPILERS: dict[str, Callable[[Program], Program]] = {
    "numexpr": in_numexpr,
    "numba": _numba,
    "torch": _torch,
    "jax": _jax,
}


def installed() -> dict[str, Callable[[Program], Program]]:
    """The compilers that can be imported."""
    found = {}
    for name, compiler in COMPILERS.items():
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        found[name] = compiler
    return found
