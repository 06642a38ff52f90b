"""Texts of the levels for people; :func:`pretty` prints a level in the form of its class.

``equations`` prints levels 1 to 3 and ``loops`` level 4; ``latex`` sets level 1 for notebooks.
"""

from __future__ import annotations

from typing import assert_never

from ..level import Level
from ..loops import Module
from ..plan import FusionPlan
from ..program import FormulaSequence
from ..system import System
from .equations import pretty_plan, pretty_program, pretty_system
from .latex import latex_system
from .loops import pretty_module


def pretty(level: System | FormulaSequence | FusionPlan | Module) -> str:
    """A level as text that ends with a line break."""
    match level:
        case System():
            return pretty_system(level)
        case FormulaSequence():
            return pretty_program(level)
        case FusionPlan():
            return pretty_plan(level)
        case Module():
            return pretty_module(level)
        case _:
            assert_never(level)


Level.printer = pretty
System.typesetter = latex_system
