"""NumPy meaning of systems, programs and modules: the oracle of all tests.

Written for clarity, not speed; it shares no code with the compiler. Imports ir, errors and NumPy.
"""

from .modules import run_module
from .programs import evaluate_program
from .systems import evaluate_system

__all__ = ["evaluate_program", "evaluate_system", "run_module"]
