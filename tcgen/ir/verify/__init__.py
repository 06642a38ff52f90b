"""The rules of the levels, and :func:`verify`, which checks a level by the rules of its class.

``system`` (level 1), ``program`` (level 2), ``plan`` (level 3), ``loops`` with ``thread_mapping``
(level 4). The checker of plans is independent: it shares no code with any solver.
"""

from __future__ import annotations

from typing import assert_never

from ..level import Level
from ..loops import Module
from ..plan import FusionPlan
from ..program import FormulaSequence
from ..system import System
from .loops import check_module
from .plan import check_plan
from .program import check_program
from .system import check_system


def verify(level: System | FormulaSequence | FusionPlan | Module) -> None:
    """Check a level by the rules of its class; an error names the place and the broken rule."""
    match level:
        case System():
            check_system(level)
        case FormulaSequence():
            check_program(level)
        case FusionPlan():
            check_plan(level)
        case Module():
            check_module(level)
        case _:
            assert_never(level)


Level.checker = verify
