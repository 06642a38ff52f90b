"""What tests of the .spec language share: declarations, and what a text means or is told."""

from __future__ import annotations

import numpy as np
import pytest

from tcgen.errors import SpecError
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.system import System

OV = "space o\nspace v\nindex i j k l m n : o\nindex a b c d : v\n"
EXTENTS = {"o": 3, "v": 4}
DECLARED = "input x[o], y[o], z[o], f[o,o], g[o,o], h[o,v], s, t\n"


def spec(text: str, head: str = OV + DECLARED) -> System:
    system = read_spec(head + text)
    system.verify()
    return system


def error(text: str, head: str = OV + DECLARED) -> str:
    with pytest.raises(SpecError) as caught:
        read_spec(head + text, "x.spec")
    return str(caught.value)


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    shapes = {"x": (3,), "y": (3,), "z": (3,), "f": (3, 3), "g": (3, 3), "h": (3, 4)}
    return {n: rng.standard_normal(shape) for n, shape in {**shapes, "s": (), "t": ()}.items()}


def value(text: str, name: str = "r") -> np.ndarray:
    """The output ``r`` of equations over the declared inputs."""
    return evaluate_system(spec(f"output {name}\n{text}"), arrays(), EXTENTS)[name]
