"""Blocks of singlets as combinations of balanced ones, against random spin-free tensors."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from tcgen.algebra.spin.blocks import balanced_blocks, is_balanced
from tcgen.algebra.spin.labels import conserves_spin


@pytest.mark.parametrize("pairs", [1, 2, 3, 4])
def test_combinations_of_balanced_blocks(pairs: int) -> None:
    numbers = np.random.default_rng(0).normal(size=24)

    def block(pattern: str) -> float:
        upper, lower = pattern[:pairs], pattern[pairs:]
        orders = permutations(range(pairs))
        return sum(
            x
            for x, order in zip(numbers, orders, strict=False)
            if all(u == lower[p] for u, p in zip(upper, order, strict=True))
        )

    flow = (1,) * pairs + (-1,) * pairs
    for pattern in map("".join, product("ab", repeat=2 * pairs)):
        if conserves_spin(pattern, flow):
            parts = balanced_blocks(pattern, flow)
            assert all(is_balanced(p, flow) for _, p in parts)
            assert sum(float(c) * block(p) for c, p in parts) == pytest.approx(block(pattern))


@pytest.mark.parametrize("rank", range(5))
def test_missing_electrons_take_up_spin(rank: int) -> None:
    """As many electrons as the sides differ in axes may have any spins."""
    for flow in product((-1, 0, 1), repeat=rank):
        missing = abs(sum(flow))
        for spins in product((-1, 1), repeat=rank):
            pattern = "".join("a" if s > 0 else "b" for s in spins)
            total = sum(f * s for f, s in zip(flow, spins, strict=True))
            balanced = total in map(sum, product((-1, 1), repeat=missing))
            assert conserves_spin(pattern, flow) == balanced
