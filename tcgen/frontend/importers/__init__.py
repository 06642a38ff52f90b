"""Importers of equations that other generators derive.

``sympy_indexed`` reads SymPy expressions, with ``sympy_ranges`` (indices and spaces),
``sympy_names``, ``sympy_numbers``, ``sympy_fermions`` (second quantisation) and
``canonical_terms``; ``pdaggerq`` reads p†q strings, with ``pdaggerq_ir`` (its own loop program);
``wicked`` reads Wick&d equations. They share ``conventions``.
"""
