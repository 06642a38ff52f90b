"""Blocks of singlets as combinations of balanced ones, against random spin-free tensors."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from tcgen.algebra.spin.blocks import balanced_blocks, is_balanced
from tcgen.algebra.spin.labels import SPIN, Labels


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
        if SPIN.conserved(pattern, flow):
            parts = balanced_blocks(pattern, flow)
            assert all(is_balanced(p, flow) for _, p in parts)
            assert sum(float(c) * block(p) for c, p in parts) == pytest.approx(block(pattern))


def test_charges_are_added_modulo_a_number() -> None:
    irreps = Labels("irrep", (("1", (0, 0)), ("2", (0, 1)), ("3", (1, 0)), ("4", (1, 1))), (2, 2))
    assert irreps.conserved("2314", (1, 1, -1, -1))
    assert not irreps.conserved("2311", (1, 1, -1, -1))
    momenta = Labels("momentum", (("0", (0,)), ("1", (1,)), ("2", (2,))), (3,))
    assert momenta.conserved("2201", (1, 1, -1, -1))
    assert not momenta.conserved("2200", (1, 1, -1, -1))
