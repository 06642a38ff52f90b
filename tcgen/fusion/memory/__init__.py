"""Objectives ``memory`` and ``peak``.

``objective`` asks ``tree_prefixes`` and ``tree_peak`` (by ``tree_fusions`` and ``profiles``) for
trees, ``exact`` for what a
solver can prove, ``large_programs`` (with ``coarse``) and ``descent`` (by ``body_order``) for the
rest.
"""
