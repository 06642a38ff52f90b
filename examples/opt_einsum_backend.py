"""opt_einsum with tcgen as its backend, beside tcgen.einsum on the whole product.

    python examples/opt_einsum_backend.py [--extent 16]

opt_einsum takes any module with tensordot, transpose and einsum: it chooses the order and calls
tcgen for each pair. tcgen.einsum plans and compiles the whole product. Ends with status 1 if either
differs from NumPy.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import opt_einsum

import tcgen

# Density-fitted integrals with dressed amplitudes, and the transformation of four indices.
PRODUCTS = ("xia,xjb,ijab->", "xac,xbd,ijcd->ijab", "pqrs,pi,qj,rk,sl->ijkl")


def main() -> int:
    """Compare three ways to contract; 0 if they agree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--extent", type=int, default=12, help="of every index")
    extent = parser.parse_args().extent
    random = np.random.default_rng(0)
    worst = 0.0
    for text in PRODUCTS:
        terms = text.partition("->")[0].split(",")
        arrays = [random.standard_normal((extent,) * len(term)) for term in terms]
        expected = np.einsum(text, *arrays, optimize=True)
        scale = np.abs(expected).max()
        pairs = opt_einsum.contract(text, *arrays, backend="tcgen")
        whole = tcgen.einsum(text, *arrays)
        errors = [float(np.abs(found - expected).max() / scale) for found in (pairs, whole)]
        worst = max(worst, *errors)
        print(f"{text:28s} backend='tcgen' {errors[0]:.1e}   tcgen.einsum {errors[1]:.1e}")
    print(tcgen.einsum_report())
    return 0 if worst < 1e-12 else 1


if __name__ == "__main__":
    sys.exit(main())
