"""Einsum equations.

``subscripts`` reads the labels, ``path`` an order of contraction, ``equation`` makes the System.
"""
