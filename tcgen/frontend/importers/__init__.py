"""Importers of equations that other generators derive.

``sympy_indexed`` reads SymPy expressions, with ``sympy_atoms`` (names, numbers, indices),
``sympy_fermions`` (second quantisation) and ``canonical_terms``; ``pdaggerq`` reads p†q strings,
with ``pdaggerq_ir`` (its own loop program); ``wicked`` reads Wick&d equations. They share
``conventions``.
"""
