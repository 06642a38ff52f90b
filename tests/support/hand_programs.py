"""Programs of the hand-written modules, and arrays for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from support import hand_modules as hand
from tcgen.emit import emit_artifact
from tcgen.runtime.program import Program

O, V = 5, 7


def made(name: str, target: str = "cpu", **more: Any) -> Program:
    return Program(emit_artifact(hand.ALL[name](), target=target, **more))


def rand(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def tiles_expected(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> dict[str, Any]:
    g = x @ y
    return {"r": (2 * x.T) @ g, "s": x @ y}
