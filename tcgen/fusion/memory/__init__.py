"""Objectives ``memory`` and ``peak``: the fewest elements in all, the fewest bytes at one time.

``objective`` chooses among the searches. On trees ``tree_prefixes`` and ``tree_peak``, with the
tables of ``tree_fusions``, are exact by dynamic programming. Other programs have CP-SAT models. For
those that are too large, ``large_programs`` combines models of some of the arrays with ``descent``,
a local search.
"""
