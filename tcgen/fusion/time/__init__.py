"""Objective ``time``.

``objective`` chooses tiles, ``refine_tiles`` and ``recompute`` improve them.

``triangular_nests``, by ``orbit_sums`` and ``orbit_steps``, makes triangular loops.
"""
