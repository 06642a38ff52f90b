"""What ptxas makes of CUDA kernels, without a device: registers, instructions per product, widths.

    python benchmarks/gpu_sass.py FILE... [--arch 90] [--kernel NAME] [--wide]
    python benchmarks/gpu_sass.py --tccg 1,20 [--arch 90] [--wide]

A file is a source (.cu), a cubin, or the folder of a saved program; ``--tccg`` names contractions
of the TCCG suite, compiled at their own extents. Integers of sources have 32 bits, as in launches
whose arrays allow it; ``--wide`` gives them 64. For each kernel it prints registers, local and
shared memory; instructions outside of the loops with products, and calls, which are divisions of
64 bits; of the innermost loop with products the instructions for each DMMA (DFMA, FFMA where there
is none), on the path of full tiles and in all; and how many accesses move 32, 64 and 128 bits.
Sources are compiled by NVRTC's wheel or nvcc; nvdisasm comes from the wheel nvidia-cuda-nvdisasm.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support import sass
from support.cuda_compile import compiled
from tcgen.artifact.kernel_abi import NARROW_INTEGERS

SUITE = Path(__file__).with_name("tccg48.json")


def machine_code(text: str, arch: int, *, wide: bool) -> bytes:
    """A source, compiled now."""
    return compiled(text if wide else f"{NARROW_INTEGERS}\n{text}", arch, "cubin")


def cubins(options: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    """What is asked for: names, and machine code."""
    for path in options.files:
        source = path / "kernels.cu" if path.is_dir() else path
        if source.suffix == ".cu":
            yield str(path), machine_code(source.read_text(), options.arch, wide=options.wide)
        else:
            yield str(path), path.read_bytes()
    if options.tccg:
        import tcgen

        suite = {case["number"]: case for case in json.loads(SUITE.read_text())}
        for number in map(int, options.tccg.split(",")):
            case = suite[number]
            text = tcgen.compile(
                case["einsum"], extents=case["extents"], target="cuda", library=False
            ).artifact.text("kernels.cu")
            code = machine_code(text, options.arch, wide=options.wide)
            yield f"TCCG {number}: {case['einsum']}", code


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--tccg", default="", help="numbers of contractions, as 1,20")
    parser.add_argument("--wide", action="store_true", help="integers of 64 bits")
    parser.add_argument("--arch", type=int, default=90, help="of sources: 80, 90, ... (90)")
    parser.add_argument("--kernel", default="", help="kernels whose names contain this")
    options = parser.parse_args()
    if not sass.can_read():
        sys.exit(sass.MISSING)
    for name, code in cubins(options):
        print(f"--- {name}")
        kernels = sass.kernels_of(code).values()
        print(sass.table(k for k in kernels if options.kernel in k.name))


if __name__ == "__main__":
    main()
