"""Time of the first call of ``tcgen.einsum``: with an empty cache, with kept objects, and again.

    taskset -c 0 python benchmarks/first_call.py --repeat 5 --json out.json

Every figure comes from new processes, in which NumPy is imported and the operands are made before
the clock starts; a table shows medians. *import* is ``from tcgen import einsum``. *empty cache*
is the first call before anything is compiled: it plans, writes C, compiles the program and
the kernels of contractions, loads both and computes. *kept* is the first call of a process that
finds the compiled objects on disk. *again* is each call after that, with the product itself.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = {  # large enough for generated code, small enough to take no time; the first one is staged
    "adb,cd->cba": {"a": 76, "b": 72, "c": 24, "d": 24},
    "fbea,ecfd->dcba": dict.fromkeys("abcdef", 12),
    "dca,cbd->ba": {"a": 128, "b": 128, "c": 16, "d": 16},
}
BYTECODE = tempfile.TemporaryDirectory()  # as an installed package has it
CHILD = """
import json, sys, time
import numpy as np
labels, extents = sys.argv[1], json.loads(sys.argv[2])
random = np.random.default_rng(0)
arrays = [random.standard_normal([extents[c] for c in t]) for t in labels.split("->")[0].split(",")]
marks = [time.perf_counter()]
from tcgen import einsum, einsum_report
marks.append(time.perf_counter())
first = einsum(labels, *arrays)
marks.append(time.perf_counter())
again = []
for _ in range(50):
    start = time.perf_counter()
    einsum(labels, *arrays)
    again.append(time.perf_counter() - start)
assert einsum_report().numpy_calls == 0
assert np.allclose(first, np.einsum(labels, *arrays, optimize=True))
print(json.dumps([marks[1] - marks[0], marks[2] - marks[1], sorted(again)[25]]))
"""


def call(labels: str, cache: str) -> list[float]:
    """Seconds of import, first call and a call again, of one new process."""
    command = [sys.executable, "-c", CHILD, labels, json.dumps(CASES[labels])]
    environment = os.environ | {
        "TCGEN_CACHE_DIR": cache,
        "TCGEN_EINSUM_MIN_FLOPS": "0",
        "PYTHONPYCACHEPREFIX": BYTECODE.name,
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measure(labels: str, repeat: int) -> dict:
    """Seconds by round: an empty cache, then the cache that this left."""
    row: dict = {"labels": labels, "extents": CASES[labels]}
    row |= {name: [] for name in ("import", "empty cache", "kept", "again")}
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            loading, empty, _ = call(labels, cache)
            _, kept, again = call(labels, cache)
        for name, seconds in zip(list(row)[2:], (loading, empty, kept, again), strict=True):
            row[name].append(seconds)
    return row


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = ("import", "empty cache", "kept", "again")
    print("| call | " + " | ".join(f"{n}, ms" for n in names) + " |")
    print("|---" * (len(names) + 1) + "|")
    rows = []
    measure(next(iter(CASES)), 1)  # compiles the modules
    for labels in CASES:
        rows.append(measure(labels, options.repeat))
        cells = [f"{1000 * statistics.median(rows[-1][n]):.2f}" for n in names]
        print(f"| `{labels}` | " + " | ".join(cells) + " |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
