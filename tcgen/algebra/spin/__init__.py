"""Systems over spin orbitals as systems over blocks of given spins.

``labels`` lists the blocks of a tensor that may differ from zero, and ``invariance`` proves which
charges the equations conserve. ``names`` gives blocks their names, and ``blocks`` chooses those
that have arrays, by the relations of blocks in a closed shell. ``integrate`` writes the equations,
and ``arrays`` converts arrays.
"""
