"""Interpreters of systems, programs and modules in NumPy: the oracle of all tests.

They are written for clarity, not for speed, and share no code with the compiler: the package
imports only the levels, errors and NumPy. ``elements`` computes expressions and products of
arrays, and ``storage`` converts the arrays of a caller to dense ones and back. ``systems``,
``programs`` and ``modules`` each interpret one level.
"""

from .modules import run_module
from .programs import evaluate_program
from .systems import evaluate_system

__all__ = ["evaluate_program", "evaluate_system", "run_module"]
