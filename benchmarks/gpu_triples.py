"""The (T) energy on a GPU, over spatial and over spin orbitals, beside ``cupy.einsum``.

    python benchmarks/gpu_triples.py prepare FOLDER                # here: tcgen, no GPU
    python FOLDER/gpu_triples.py run FOLDER [--json F]             # there: NumPy and CuPy alone

Rates count the products of each triple i >= j >= k (closed shell), and of each i < j < k and a < b
(spin orbitals). ``cupy.einsum`` computes whole arrays over a, b, c for one triple after another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import combinations, permutations
from typing import Any

from gpu_measure import Arrays, Case, main

Einsum = Callable[..., Any]


def gaps(x: Arrays, i: int, j: int, k: int) -> Any:
    """Denominators over a, b, c."""
    e_o, e_v = x["e_o"], x["e_v"]
    return e_o[i] + e_o[j] + e_o[k] - e_v[:, None, None] - e_v[:, None] - e_v


def closed_shell(x: Arrays, einsum: Einsum) -> dict[str, Any]:
    """The energy over spatial orbitals."""

    def of_triple(*ijk: int) -> Any:
        w: Any = 0.0
        y: Any = 0.0
        for p, q, r in permutations(range(3)):
            a, b, c = ("abc"[n] for n in (p, q, r))
            i, j, k = ijk[p], ijk[q], ijk[r]
            w = w + einsum(f"{a}{b}f,{c}f->abc", x["v_ovvv"][i], x["t2"][k, j])
            w = w - einsum(f"{a}m,m{b}{c}->abc", x["v_ovoo"][i, :, j], x["t2"][:, k])
            y = y + einsum(f"{a}{b},{c}->abc", x["v_ovov"][i, :, j], x["t1"][k])
            y = y + einsum(f"{a}{b},{c}->abc", x["t2"][i, j], x["f_ov"][k])
        y = w + 0.5 * y
        left = 4 * w + w.transpose(2, 0, 1) + w.transpose(1, 2, 0)
        turned = y.transpose(2, 1, 0) + y.transpose(0, 2, 1) + y.transpose(1, 0, 2)
        return (left / gaps(x, *ijk) * (y - turned / 3)).sum()

    occupied = range(x["e_o"].size)
    triples = ((i, j, k) for i in occupied for j in range(i + 1) for k in range(j + 1))
    orders = {1: 1, 2: 3, 3: 6}  # by how many of them differ
    return {"e_t": sum(orders[len(set(ijk))] * of_triple(*ijk) for ijk in triples) / 3}


def spin_orbital(x: Arrays, einsum: Einsum) -> dict[str, Any]:
    """The energy over spin orbitals."""

    def of_triple(i: int, j: int, k: int) -> Any:
        w: Any = 0.0
        y: Any = 0.0
        for sign, p, q, r in ((1, i, j, k), (-1, j, i, k), (-1, k, j, i)):
            w = w - sign * einsum("ae,ebc->abc", x["t2"][q, r], x["v_ovvv"][p])
            w = w - sign * einsum("mbc,ma->abc", x["t2"][p], x["v_ooov"][q, r])
            y = y + sign * einsum("a,bc->abc", x["t1"][p], x["v_oovv"][q, r])
            y = y + sign * einsum("a,bc->abc", x["f_ov"][p], x["t2"][q, r])
        w, y = (t - t.transpose(1, 0, 2) - t.transpose(2, 1, 0) for t in (w, y))
        return (w * (w + y) / gaps(x, i, j, k)).sum()

    return {"e_t": sum(of_triple(*ijk) for ijk in combinations(range(x["e_o"].size), 3)) / 6}


def closed_flops(n: dict[str, int]) -> float:
    """Twelve products for each triple."""
    o, v = n["o"], n["v"]
    return 12 * v**3 * (v + o) * o * (o + 1) * (o + 2) / 6


def spin_flops(n: dict[str, int]) -> float:
    """Three products of each kind over a < b for each triple."""
    o, v = n["o"], n["v"]
    return 3 * v * v * (v - 1) * (v + o) * o * (o - 1) * (o - 2) / 6


PLANNING = {"objective": "time", "memory_limit": "8GiB"}
CASES = (
    Case(
        "t_closed_shell",
        "t_closed_shell",
        ({"o": 30, "v": 200}, {"o": 20, "v": 100}),
        closed_shell,
        closed_flops,
        planning=PLANNING,
    ),
    Case(
        "t_spin_orbital",
        "t_spin_orbital",
        ({"o": 20, "v": 100}, {"o": 12, "v": 60}),
        spin_orbital,
        spin_flops,
        planning=PLANNING,
    ),
)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", __file__, CASES))
