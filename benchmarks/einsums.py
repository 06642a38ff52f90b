"""Libraries of einsum as peers: how each takes arrays of NumPy's, computes, and gives one back."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

LIBRARIES = ("numpy", "opt_einsum", "pytblis", "torch", "jax")


def _same(x: Any) -> Any:
    return x


@dataclass(frozen=True)
class Library:
    """A library's ``einsum(labels, *arrays)`` of two and more of its own arrays.

    ``own`` makes them of NumPy's, ``back`` makes NumPy's of them and waits for what is under way,
    ``compiled`` is what a user wraps around a function of arrays that is called again and again,
    ``functions`` has ``copy`` and ``transpose`` as NumPy has them, for ``own`` arrays.
    """

    einsum: Callable[..., Any]
    own: Callable[[np.ndarray], Any] = _same
    back: Callable[[Any], np.ndarray] = np.asarray
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]] = _same
    functions: Any = np


def installed(names: str | None = None) -> tuple[list[str], list[str]]:
    """Those of ``names`` (with commas; default all) that can be imported, and those that cannot."""
    wanted = LIBRARIES if names is None else tuple(n for n in names.split(",") if n)
    found = [n for n in wanted if importlib.util.find_spec(n.split(".")[0])]
    return found, [n for n in wanted if n not in found]


def load(name: str, threads: int) -> Library:
    """A library of ``LIBRARIES``, told how many threads to use (NumPy's BLAS is told by its
    environment, ``peers.set_environment``)."""
    if name == "numpy":
        return Library(lambda labels, *x: np.einsum(labels, *x, optimize=True))
    if name == "opt_einsum":
        import opt_einsum

        return Library(opt_einsum.contract)
    if name == "pytblis":
        import pytblis

        pytblis.set_num_threads(threads)
        return Library(pytblis.einsum)
    if name == "torch":
        import torch

        torch.set_num_threads(threads)
        functions = SimpleNamespace(copy=torch.clone, transpose=torch.permute)
        return Library(torch.einsum, torch.from_numpy, lambda x: x.numpy(), _same, functions)
    if name == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        own = jax.numpy.asarray
        return Library(jax.numpy.einsum, own, np.asarray, jax.jit, jax.numpy)
    raise ValueError(f"no library {name!r}; there are {', '.join(LIBRARIES)}")
