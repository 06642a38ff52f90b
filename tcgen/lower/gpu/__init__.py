"""Binding of a module for a GPU.

``library`` makes products for cuBLAS of statements, before they are in loops. ``bind`` cuts kernels
into launches and calls the others in this order: ``conjugates``, ``launch_order`` and
``fuse_launches``, ``liveness``, ``thread_mapping`` and ``tiles``. ``contraction_variants`` lists
other variants, to be measured.
"""
