"""Methods on a reference: ``tcgen.chem.solve("my_method.spec", mf)``.

``options`` is the record of options. ``spaces`` classifies spaces as occupied, virtual, auxiliary,
alpha and beta. A ``reference`` has orbitals in ``frames``, which equations refer to, and
``integrals`` over ``pairs`` of them. It is a ``mean_field`` of PySCF, whose ``atomic_integrals``
are transformed and which ``molecule`` runs, or a ``hamiltonian`` of integrals over orbitals, also
from an ``fcidump`` or a ``trexio_file``. A ``crystal`` is that of k-points, with its
``crystal_integrals``. ``setup`` is what a calculation needs: ``quantities`` infers the quantity of
each input, ``equations`` the role of each output from a ``probe`` at small extents, and
``conventions`` the notation of integrals; ``complex_orbitals`` refuses equations of real ones.
``inputs`` makes arrays, of which an ``integral_file`` has what does not fit into ``memory``, or
what later jobs read, while a ``planner`` makes programs.
``bound_program`` has arrays but no amplitudes, ``problem`` evaluates it, ``iterate`` solves for
amplitudes, whose ``checkpoint`` is a file, ``eigen`` for roots, and ``linear`` for linear
equations; ``symmetry`` does so over blocks of irreps, and ``sectors`` for the roots of each.
``states`` are what ``root_vectors`` make of roots, over spatial orbitals by ``vector_spins``;
``table`` prints, and ``result`` is returned and read again. ``driver`` does these in order. The
``lagrangian`` of a ground state has derivatives, of which ``excited`` makes states with transition
moments, and ``properties`` densities and moments; ``dyson`` makes ionised states. Both kinds of
states are ``vector_pairs`` of left and right vectors.
``transfer`` exchanges amplitudes with PySCF and ebcc. ``spin_notes`` annotates equations that were
integrated over spins.
PySCF is imported when a mean field is run or read.
"""

from __future__ import annotations

from .driver import solve
from .dyson import ionised_states
from .excited import excited_states
from .fcidump import read_fcidump, write_fcidump
from .hamiltonian import Hamiltonian, hamiltonian
from .options import SolveOptions
from .properties import Properties, properties
from .result import Solution, load
from .states import State, States
from .transfer import amplitudes_of, set_amplitudes
from .trexio_file import read_trexio

__all__ = [
    "Hamiltonian",
    "Properties",
    "Solution",
    "SolveOptions",
    "State",
    "States",
    "amplitudes_of",
    "excited_states",
    "hamiltonian",
    "ionised_states",
    "load",
    "properties",
    "read_fcidump",
    "read_trexio",
    "set_amplitudes",
    "solve",
    "write_fcidump",
]
