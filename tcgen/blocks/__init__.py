"""Arrays and programs over the blocks of a finite abelian group: point groups, k-points, spins.

``layout`` places the blocks of a tensor in memory, as matrices of composite irreps; ``arrays`` has
the blocked arrays of callers. ``products`` says which steps of a formula sequence are products of
such matrices, and chooses storages of intermediates; ``nest`` finds loops over orbitals inside
which large intermediates are small. ``orbitals`` counts those of each space, joined ones included.
``tables`` has the rows over which loops in C run, ``operations`` the operations with such tables,
and ``schedule`` makes them for a sequence. ``source`` prints the C library, and ``library``
compiles and calls it. ``program`` is what a user calls; ``api`` is ``tcgen.blocked``, and
``forecast`` has the numbers of reports.
"""
