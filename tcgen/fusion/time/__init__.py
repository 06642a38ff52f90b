"""Objective ``time``: the least predicted time within a memory limit.

``objective`` searches for arrangements and tiles. ``recompute`` adds statements that are repeated
in loops of their readers, and ``refine_tiles`` chooses the tile of each loop of an arrangement.
``triangular_nests`` makes nests of triangular loops, for sums that ``orbit_sums`` finds to be
invariant under permutations and for contractions that ``symmetric_results`` finds to be symmetric,
with fewer passes over their arrays by ``orbit_steps``.
``nests_on_gpu`` gives the nests of other objectives tiles for a GPU.
"""
