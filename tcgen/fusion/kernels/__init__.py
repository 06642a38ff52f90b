"""Objective ``kernels``: element-wise steps share kernels so that few bytes pass memory.

``objective`` makes a plan of a partition of the steps. ``wsp`` states the Weighted Subroutine
Partition problem, and ``cost_models`` has the costs of partitions and their lower bounds.
``merging`` finds partitions by merging blocks, and ``partition`` the cheapest one.
"""
