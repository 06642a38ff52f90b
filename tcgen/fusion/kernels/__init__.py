"""Objective ``kernels``: element-wise steps share kernels so that few bytes pass memory.

``objective`` makes a plan of a partition of the steps. ``wsp`` states the Weighted Subroutine
Partition problem, and ``cost_models`` what a partition costs. ``merging`` finds partitions by
merging blocks, ``bounds`` what no partition can cost less than, and ``partition`` the cheapest one.
"""
