"""Methods on a PySCF mean field: ``tcgen.chem.solve("my_method.spec", mf)``.

``spaces`` says which spaces are occupied, virtual, auxiliary, alpha and beta. ``reference`` reads a
mean field and ``integrals`` transforms over its orbitals. ``quantities`` says what each input is,
``equations`` what each output is, by a ``trial`` at small extents, and ``conventions`` in which
notation integrals are; ``inputs`` makes arrays, on ``disk`` where memory does not suffice.
``problem`` evaluates, ``iterate`` solves for amplitudes and ``eigen`` for roots, both with the
amplitudes of a ``restart`` if there are any; ``table`` prints and ``result`` is returned.
``driver`` does these in order. ``spin_notes`` says what the inputs of equations are that were
integrated over spins. ``mean_field`` runs PySCF for the command line. PySCF is imported
when a mean field is run or read.
"""

from __future__ import annotations

from .driver import solve
from .result import Solution, load

__all__ = ["Solution", "load", "solve"]
