"""Methods on a PySCF mean field: ``tcgen.chem.solve("my_method.spec", mf)``.

Reads ``spaces`` of the equations (which are occupied, virtual, auxiliary, alpha, beta), a
``reference`` and its ``integrals``; ``quantities`` says which of these each input is and ``inputs``
makes the arrays; ``equations`` says what each output is. ``problem`` evaluates, ``iterate`` solves
for amplitudes and ``eigen`` for roots, both with the amplitudes of a ``restart`` if there are any;
``table`` prints, ``result`` is returned; ``driver`` does these in order. ``mean_field`` runs PySCF
for the command line. PySCF is imported when a mean field is run or read.
"""

from __future__ import annotations

from .driver import solve
from .result import Solution, load

__all__ = ["Solution", "load", "solve"]
