"""NumPy meaning of systems, programs and modules: the oracle of all tests.

``elements`` evaluates expressions and products, ``storage`` translates between arrays as a caller
holds them and those that equations mean; ``systems``, ``programs`` and ``modules`` evaluate levels
1, 2 and 4. Written for clarity, not speed; it shares no code with the compiler. Imports ir, errors
and NumPy.
"""

from .modules import run_module
from .programs import evaluate_program
from .systems import evaluate_system

__all__ = ["evaluate_program", "evaluate_system", "run_module"]
