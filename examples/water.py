"""CCSD of water in 6-31G with generated code: energy, flops, memory and time. Needs no PySCF.

    python examples/water.py [--target cpu|cuda|numpy]

Ends with status 1 if the energy differs from PySCF's by more than 1e-9 Hartree.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from diis import denominators, iterate
from term_loop import TermLoop

import tcgen

DATA = Path(__file__).resolve().parent / "data" / "water_631g.npz"
REPEAT = 15


def median_seconds(call: Callable[[], object]) -> float:
    """Median wall time of some calls, after one that is not counted."""
    call()
    seconds = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> int:
    """Solve, compare and report; 0 if the energy is right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--target", choices=("cpu", "cuda", "numpy"))
    target = parser.parse_args().target

    with np.load(DATA) as file:
        arrays = dict(file)
    expected, e_hf = float(arrays.pop("e_ccsd")), float(arrays.pop("e_hf"))
    extents = {"o": arrays["e_o"].size, "v": arrays["e_v"].size}

    spec = tcgen.spec_path("ccsd_closed_shell")
    program = tcgen.compile(spec, extents=extents, target=target)
    triangles = tcgen.pack_pairs(arrays["v_vvvv"], (0, 1), (2, 3))  # as the spec declares
    step = program.bind(**arrays | {"v_vvvv": triangles})  # the constants, once

    d1, d2 = denominators(arrays["e_o"], arrays["e_v"])
    start = {"t1": arrays["f_ov"] / d1, "t2": arrays["v_ovov"].transpose(0, 2, 1, 3) / d2}  # MP2
    print(
        f"H2O/6-31G, E(HF) = {e_hf:.12f} Hartree, {extents['o']} occupied, {extents['v']} virtual"
    )
    print("iteration       E(corr)           |dt|")
    result = iterate(step, start, tolerance=1e-11, show=show)

    error = result.energy - expected
    print(f"\nE(CCSD) = {result.energy:.12f}")
    print(f"PySCF   = {expected:.12f}   difference {error:.1e} Hartree\n")

    fused = tcgen.compile(spec, extents=extents, target=target, objective="linear")
    flops = program.report["operations"]
    before = program.report["memory"]["intermediates_unfused_bytes"]
    after = fused.report["memory"]["intermediates_static_bytes"]
    ratio = flops["naive"] / flops["sequence"]
    print(
        f"flops   {flops['naive']:,} naive, {flops['sequence']:,} chosen: {ratio:.1f} times fewer"
    )
    print(f"memory  {before:,} bytes of intermediates before fusion, {after:,} after")
    print(f"time    {compare_times(step, spec, extents, arrays, start)}")
    return 0 if abs(error) < 1e-9 else 1


def show(number: int, energy: float, change: float) -> None:
    """Print one row of the iteration table."""
    print(f"{number:9d}{energy:18.12f}{change:12.1e}")


def compare_times(
    step: Callable[..., dict[str, np.ndarray]],
    spec: Path,
    extents: dict[str, int],
    arrays: dict[str, np.ndarray],
    amplitudes: dict[str, np.ndarray],
) -> str:
    """One iteration of the generated code against the same equations through opt_einsum.

    Raises:
        ArithmeticError: the residuals of the two differ.
    """
    loop = TermLoop(tcgen.read_spec_file(spec), extents)
    ours, theirs = step(**amplitudes), loop(**arrays, **amplitudes)
    deviation = max(float(np.abs(ours[n] - theirs[n]).max()) for n in ("e", "r1", "r2"))
    if deviation > 1e-10:
        raise ArithmeticError(f"generated code and opt_einsum differ by {deviation:.1e}")
    mine = median_seconds(lambda: step(**amplitudes))
    other = median_seconds(lambda: loop(**arrays, **amplitudes))
    return (
        f"{mine * 1e3:.2f} ms an iteration, {other * 1e3:.2f} ms through opt_einsum: "
        f"{other / mine:.1f} times as fast (median of {REPEAT}, results within {deviation:.0e})"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except tcgen.TcgenError as problem:  # no GPU, no compiler: it says what to install
        print(f"water.py: {problem}", file=sys.stderr)
        sys.exit(problem.exit_code)
