"""Programs behind ``tcgen.einsum``: when calls share one, and how long it is kept."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("generated_einsum")


def test_letters_and_extents_share_one_program() -> None:
    shape = [(23, 29), (29, 31)]
    tcgen.einsum("pq,qr->pr", *map(np.ones, shape))
    before = tcgen.einsum_report().programs
    tcgen.einsum("αβ,βγ->αγ", *map(np.ones, shape))
    tcgen.einsum(np.ones((5, 2)), [7, 3], np.ones((2, 4)), [3, 9], [7, 9])
    tcgen.einsum("ij,jk", np.ones((0, 2)), np.ones((2, 4)))
    assert tcgen.einsum_report().programs == before
    assert len(tcgen.einsum_report().rows) == 4


@pytest.mark.default_thresholds
def test_order_of_three_operands_follows_their_extents() -> None:
    def shapes(n: int, m: int) -> list[np.ndarray]:
        return [np.ones((n, m)), np.ones((m, n)), np.ones((n, m))]

    tcgen.einsum("ab,bc,cd->ad", *shapes(2, 50))
    before = tcgen.einsum_report().programs
    tcgen.einsum("ab,bc,cd->ad", *shapes(3, 60))
    assert tcgen.einsum_report().programs == before
    wide = [np.ones((50, 50)), np.ones((50, 2)), np.ones((2, 2))]
    tcgen.einsum("ab,bc,cd->ad", *wide)
    assert tcgen.einsum_report().programs == before + 1


@pytest.mark.default_thresholds
def test_other_sizes_are_planned_again_and_share_programs() -> None:
    """Tiny matrices are multiplied in loops, larger ones by the BLAS, all of these alike."""
    before = tcgen.einsum_report().programs
    random = np.random.default_rng(0)
    counts = []
    for rows, length in ((8, 2), (8, 200), (9, 130), (300, 200), (9, 3), (0, 2), (5, 0)):
        a, x = random.standard_normal((60, rows, length)), random.standard_normal((60, length))
        np.testing.assert_allclose(
            tcgen.einsum("xij,xj->xi", a, x), np.einsum("xij,xj->xi", a, x), atol=1e-12
        )
        counts.append(tcgen.einsum_report().programs - before)
    assert counts[:5] == [1, 2, 2, 2, 2]
    assert counts[-1] <= 3


def test_programs_that_were_not_called_for_longest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_PROGRAMS", "2")
    before, square = tcgen.einsum_report().programs, np.eye(3)
    for text in ("ij,jk->ik", "ij,jk->ki", "ij,jk->ik", "ij,ij->"):
        tcgen.einsum(text, square, square)
    report = tcgen.einsum_report()
    assert (report.programs - before, report.kept) == (3, 2)
    tcgen.einsum("ij,jk->ik", square, square)  # called last but one: kept
    assert tcgen.einsum_report().programs - before == 3
    tcgen.einsum("ij,jk->ki", square, square)
    assert tcgen.einsum_report().programs - before == 4
    monkeypatch.setenv("TCGEN_EINSUM_PROGRAMS", "few")
    with pytest.raises(ArgumentError, match=mentions("TCGEN_EINSUM_PROGRAMS='few'")):
        tcgen.einsum("ij,kj->ki", square, square)
