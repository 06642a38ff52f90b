"""Objective ``kernels``: element-wise steps share kernels so that few bytes pass memory.

``objective`` makes a plan of a partition of the steps. ``wsp`` states the Weighted Subroutine
Partition problem and its cost models, and ``partition`` solves it.
"""
