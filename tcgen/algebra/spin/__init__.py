"""Systems over spin orbitals as systems over blocks of given spins.

``labels`` says which blocks of a tensor may differ from zero, and ``invariance`` follows what is
conserved through the equations. ``same_spin`` has the relations of blocks in a closed shell,
``names`` the names of blocks, and ``blocks`` says which of them have arrays. ``integrate`` writes
the equations, by ``expressions`` for parts that are computed element by element. ``arrays``
converts arrays.
"""
