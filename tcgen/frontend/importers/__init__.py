"""Equations printed by other generators.

``sympy_indexed`` with ``sympy_fermions``, ``pdaggerq`` with ``pdaggerq_ir``, and ``wicked``; they
share ``conventions``
and ``canonical_terms``.
"""
