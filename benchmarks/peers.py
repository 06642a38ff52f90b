"""Threads, and the best kernels that the libraries of peers have.

The BLAS inside PySCF's wheels and TBLIS, which PySCF uses where pytblis is installed, know no
recent processors and fall back to slow code. Where there is AVX-512, OPENBLAS_CORETYPE is therefore
set to SkylakeX and BLIS_ARCH_TYPE to skx, unless a benchmark is told otherwise.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
WIDE = "avx512f" in CPUINFO


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--threads``, ``--coretype`` and ``--tblis``."""
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--coretype", default="SkylakeX" if WIDE else "", help="of OpenBLAS")
    parser.add_argument("--tblis", default="skx" if WIDE else "", help="kernels of TBLIS")


def set_environment(options: argparse.Namespace) -> None:
    """Set what the libraries read when they are loaded; starts Python again where it differs."""
    count = str(options.threads)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    wanted = dict.fromkeys(names, count)
    wanted |= {"OPENBLAS_CORETYPE": options.coretype, "BLIS_ARCH_TYPE": options.tblis}
    wanted["OPENBLAS_L2_SIZE"] = ""
    if any(os.environ.get(name, "") != value for name, value in wanted.items()):
        os.environ.update(wanted)
        for name in [n for n, value in wanted.items() if not value]:
            del os.environ[name]
        os.execv(sys.executable, [sys.executable, *sys.argv])
