"""Equations derived from an ansatz by Wick's theorem, by the package wickd (wick&d).

``methods`` has the ansatz of a method by its name, ``ansatz`` reads the text of one, and ``wick``
evaluates it. Spin orbitals, one Hartree-Fock-like determinant as the vacuum, and a two-body
Hamiltonian in normal order are assumed.
"""
