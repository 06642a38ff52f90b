"""PySCF's GCCSD with every pairwise contraction in tcgen.contract. Needs PySCF.

    python examples/pyscf_einsum.py [--atom "Li 0 0 0; H 0 0 1.5957"] [--basis sto-3g]

pyscf.lib.einsum splits a product into pairs and hands each pair to ``_contract``: that is the place
for tcgen.contract. Ends with status 1 if the energy differs from PySCF's own by more than 1e-10.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyscf import lib
from pyscf.cc import gccsd, gintermediates
from pyscf.lib import numpy_helper
from pyscf_blocks import general_solver, mean_field, molecule, tight

import tcgen

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"


@contextmanager
def generated_contractions() -> Iterator[None]:
    """Inside, the equations of gccsd.py and gintermediates.py contract with tcgen."""
    backend = getattr(numpy_helper, "EINSUM_BACKEND", None)
    kept = gccsd.einsum, gintermediates.einsum, backend
    numpy_helper.EINSUM_BACKEND = None  # pytblis, which PySCF uses where it is, takes no _contract
    gccsd.einsum = gintermediates.einsum = functools.partial(lib.einsum, _contract=tcgen.contract)
    try:
        yield
    finally:
        gccsd.einsum, gintermediates.einsum, numpy_helper.EINSUM_BACKEND = kept


def main() -> int:
    """Compare two GCCSD energies; 0 if they agree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--atom", default=WATER, help="atoms and coordinates in Angstrom")
    parser.add_argument("--basis", default="sto-3g")
    parser.add_argument(
        "--all-kernels", action="store_true", help="leave no small contraction to NumPy"
    )
    options = parser.parse_args()
    if options.all_kernels:
        os.environ["TCGEN_EINSUM_MIN_FLOPS"] = "0"

    reference = mean_field(molecule(options.atom, options.basis))
    own = tight(general_solver(reference))
    own.kernel()
    generated = tight(general_solver(reference))
    with generated_contractions():
        generated.kernel()

    report = tcgen.einsum_report()
    print(f"E(GCCSD) PySCF      {own.e_corr:18.12f}")
    print(f"E(GCCSD) tcgen      {generated.e_corr:18.12f}   {generated.e_corr - own.e_corr:+.1e}")
    print(f"contractions: {report.kernel_calls} generated, {report.numpy_calls} left to NumPy")
    calls = report.kernel_calls + report.numpy_calls
    return 0 if abs(generated.e_corr - own.e_corr) < 1e-10 and calls else 1


if __name__ == "__main__":
    sys.exit(main())
