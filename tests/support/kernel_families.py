"""One small system for every family of generated CUDA kernels, to prove what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tcgen.artifact.folder import Artifact
from tcgen.compiler.driver import compile_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import random_arrays
from tcgen.thresholds import Thresholds

HEAD = """
space o occupied
space v virtual
index i j k l : o
index a b c d : v
"""
TOLERANCE = {"float64": 1e-10, "complex128": 1e-10, "float32": 1e-4}
TF32_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Family:
    """A system and how it is compiled.

    Attributes:
        text: of the spec, without its spaces.
        planned: extents for which it is planned: of real molecules, where products go by tiles.
        extents: of its runs: small and odd, so that tiles are partial.
        tf32: products may round their factors to TF32.
    """

    text: str
    dtype: str = "float64"
    objective: str = "none"
    planned: tuple[tuple[str, int], ...] = (("o", 10), ("v", 40))
    extents: tuple[tuple[str, int], ...] = (("o", 3), ("v", 23))
    tf32: bool = False

    def at(self) -> dict[str, int]:
        """The extents of its runs."""
        return dict(self.extents)


PRODUCT = """
input t[o,v,o,v], u[v,o,v,o]
output r
r[i,a,j,b] = t[i,c,k,a]*u[b,k,c,j]
"""
IN_STEP = """
input t[o,v], w[o,v], c
output r
r[i,a] = c*t[i,a]*abs(w[i,a]) + t[i,a]
"""
NEST_OF_PRODUCTS = """
input t[o,v,v], e_o[o] real, e_v[v] real
output e
g[i,a,j,b] = t[i,a,c]*t[j,b,c]
e = g[i,a,j,b]*(2*g[i,a,j,b] - g[i,b,j,a])/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
"""
FAMILIES = {
    "elements in step": Family(IN_STEP),
    "elements in step in single precision": Family(IN_STEP, "float32"),
    "elements": Family("""
input t[o,v], u[v], w[o,v]
output r
r[i,a] = 2*t[i,a]*u[a] + w[i,a]/u[a]
"""),
    "transposed tiles": Family("""
input t[o,v,o,v]
output r
r[a,i,b,j] = 2*t[i,b,j,a]
"""),
    "a sum": Family("""
input g[o,v,o,v], e_o[o], e_v[v]
output e
e = g[i,a,j,b]*g[j,a,i,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
"""),
    "tiles": Family(PRODUCT),
    "tiles of singles": Family(PRODUCT, dtype="float32"),
    "tiles in TF32": Family(PRODUCT, dtype="float32", tf32=True),
    "wide tiles in TF32": Family(
        PRODUCT, dtype="float32", tf32=True, extents=(("o", 4), ("v", 24))
    ),
    "tiles of complex numbers": Family(PRODUCT, dtype="complex128", extents=(("o", 2), ("v", 17))),
    "tiles of complex and real numbers": Family(
        """
input t[o,v,o,v] real, u[v,o,v,o], w[o,v,o,v], z[v,o,v,o]
output r
r[i,a,j,b] = 3*t[i,c,k,a]*u[b,k,c,j] - w[i,c,k,a]*conj(z[b,k,c,j])
""",
        dtype="complex128",
        extents=(("o", 2), ("v", 17)),
    ),
    "narrow tiles": Family(
        """
input t[v,v,v], u[o,v]
output r
r[i,b,c] = t[a,b,c]*u[i,a]
""",
        planned=(("o", 4), ("v", 100)),
        extents=(("o", 3), ("v", 19)),
    ),
    "a split sum": Family(
        """
input t[o,v,v,v], u[o,v,v,v]
output r
r[i,j] = t[i,a,b,c]*u[j,a,b,c]
""",
        planned=(("o", 20), ("v", 60)),
        extents=(("o", 5), ("v", 9)),
    ),
    "a split sum of complex numbers": Family(
        """
input t[v,v,o], u[v,o,v]
output r
r[i,j] = t[a,b,i]*u[a,j,b]/2
""",
        dtype="complex128",
        planned=(("o", 20), ("v", 60)),
        extents=(("o", 5), ("v", 9)),
    ),
    "an epilogue": Family("""
input t[o,v,o,v], u[v,o,v,o], e_o[o], e_v[v]
output x, e
r[i,a,j,b] = t[i,c,k,a]*u[b,k,c,j]
x[b,j,a,i] = r[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
e = r[i,a,j,b]*r[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
"""),
    "a nest": Family(
        """
input t[o,v,v], u[o,v,v], w[o,v]
output r
r[i,a] = (t[i,c,b]*u[i,c,a])*w[i,b]
""",
        objective="linear",
    ),
    "a nest of products": Family(
        NEST_OF_PRODUCTS, objective="linear", planned=(("o", 12), ("v", 24))
    ),
    "a nest of products of complex numbers": Family(
        NEST_OF_PRODUCTS,
        dtype="complex128",
        objective="linear",
        planned=(("o", 12), ("v", 24)),
        extents=(("o", 2), ("v", 17)),
    ),
    "a triangle": Family("""
input t[o,v,v] antisymmetric (1,2), u[o,o,v,v]
output r antisymmetric (0,1)
r[a,b,i] = t[j,a,b]*u[i,j,c,c]
"""),
}


@cache
def compiled(name: str) -> tuple[System, Artifact]:
    """A family's system and program."""
    family = FAMILIES[name]
    system = read_spec(HEAD + family.text)
    options = Options(
        extents=family.planned,
        target="cuda",
        objective=family.objective,
        dtype=family.dtype,
        tf32=family.tf32,
        library=False,
        thresholds=Thresholds(),  # at others a product need not be one by tiles
    )
    return system, compile_system(system, options).artifact


@cache
def meant(name: str) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Inputs of a family, and the interpreter's results."""
    family, (system, _) = FAMILIES[name], compiled(name)
    inputs = random_arrays(system, family.at(), dtype=family.dtype, seed=3)
    return inputs, evaluate_system(system, inputs, family.at(), dtype=family.dtype)


def is_right(name: str) -> bool:
    """Run a family's program on the device that the runtime opens; True for the right values."""
    inputs, expected = meant(name)
    family = FAMILIES[name]
    tolerance = TF32_TOLERANCE if family.tf32 else TOLERANCE[family.dtype]
    found = Program(compiled(name)[1])(**inputs)
    return all(
        np.allclose(
            found[n],
            e,
            rtol=tolerance,
            # Terms of a sum cancel: what is lost is a part of the largest ones.
            atol=tolerance * (np.max(np.abs(e)) if family.tf32 else 1),
        )
        for n, e in expected.items()
    )
