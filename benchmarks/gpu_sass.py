"""What ptxas makes of CUDA kernels, without a device: registers, instructions per product, widths.

    python benchmarks/gpu_sass.py FILE... [--arch 90] [--kernel NAME]

A file is a source (.cu), a cubin, or the folder of a saved program. For each kernel it prints
registers, local and shared memory; of the innermost loop with products the instructions for each
DMMA (DFMA, FFMA where there is none), on the path of full tiles and in all; and how many accesses
move 32, 64 and 128 bits. Sources are compiled by NVRTC's wheel or nvcc; nvdisasm comes from the
wheel nvidia-cuda-nvdisasm.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support import sass
from support.cuda_compile import compiled


def cubin_of(path: Path, arch: int) -> bytes:
    """The machine code of a file, compiled now if it is a source."""
    if path.is_dir():
        path = path / "kernels.cu"
    return compiled(path.read_text(), arch, "cubin") if path.suffix == ".cu" else path.read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--arch", type=int, default=90, help="of sources: 80, 90, ... (90)")
    parser.add_argument("--kernel", default="", help="kernels whose names contain this")
    options = parser.parse_args()
    if not sass.can_read():
        sys.exit(sass.MISSING)
    for path in options.files:
        if len(options.files) > 1:
            print(f"--- {path}")
        kernels = sass.kernels_of(cubin_of(path, options.arch)).values()
        print(sass.table(k for k in kernels if options.kernel in k.name))


if __name__ == "__main__":
    main()
