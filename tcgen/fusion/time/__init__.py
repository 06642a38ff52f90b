"""Objective ``time``: the least predicted time within a memory limit.

``objective`` searches for arrangements and tiles, and repeats statements in loops of their readers.
``refine_tiles`` chooses the tile of each loop of an arrangement. ``triangular_nests`` makes nests
of triangular loops for sums and contractions that ``orbit_sums`` finds to be symmetric, with fewer
passes over their arrays by ``orbit_steps``. ``nests_on_gpu`` gives nests on a GPU
their form, one kernel (``block_nests``) or loops of the host, and their tiles.
"""
