"""How many cases a test draws: few in a default run, many in a campaign.

A default run draws the same few cases each time. ``pytest --campaign=SHARE`` runs the tests of this
module alone and draws that share of their full counts, other ones for each ``--campaign-seed``:
``--campaign=1`` for all, ``--campaign=0.1`` for a tenth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings


@dataclass
class Campaign:
    """What the command line of pytest asks for, known before test modules are imported."""

    share: float | None = None  # of the full counts; None in a default run
    seed: int = 0

    def part(self, full: int) -> int:
        """How many of the full number of cases to take, at least one."""
        return max(1, round(full * (self.share or 0)))


CAMPAIGN = Campaign()
_QUIET = {
    "deadline": None,
    "database": None,
    "print_blob": False,
    "suppress_health_check": list(HealthCheck),
}


def cases(few: int, full: int | None = None) -> Callable[[Any], Any]:
    """Decorate a test of hypothesis: ``few`` cases, or a share of ``full`` in a campaign."""
    if full is None:
        return settings(max_examples=few, derandomize=True, **_QUIET)

    def decorate(test: Any) -> Any:
        if CAMPAIGN.share is None:
            test = settings(max_examples=few, derandomize=True, **_QUIET)(test)
        else:
            count = CAMPAIGN.part(full)
            test = seed(CAMPAIGN.seed)(settings(max_examples=count, **_QUIET)(test))
        return pytest.mark.campaign(test)

    return decorate


def numbers(few: int, full: int) -> list[int]:
    """``range(few)``, or in a campaign as many numbers of ``range(full)`` as its share.

    Which they are depends on the seed: seeds that follow each other take parts that do.
    """
    if CAMPAIGN.share is None:
        return list(range(few))
    count = CAMPAIGN.part(full)
    first = CAMPAIGN.seed * count
    return sorted((first + n) % full for n in range(count))
