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
    r"""A level as text that ends with a line break.

    Example:
        >>> from fractions import Fraction
        >>> from tcgen.ir.system import Equation, Term
        >>> from tcgen.ir.tensor import Ref, Role, Tensor
        >>> x, y = Tensor("x", (), Role.INPUT), Tensor("y", (), Role.OUTPUT)
        >>> double = Equation(Ref(y), (Term(Fraction(2), (Ref(x),)),))
        >>> pretty(System("double", (), (x, y), (double,)))
        'y = 2*x\n'
    """
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
