"""Binding of a module for a GPU.

``library`` makes products for cuBLAS of statements, before they are in loops. ``bind`` cuts kernels
into launches and calls the others in this order: ``conjugates``, ``launch_order`` and
``fuse_launches`` (with ``rename``), ``liveness``, ``thread_mapping`` and ``tiles``, whose sizes
``tile_shapes`` chooses. ``contraction_variants`` lists other ways, to be measured.
"""
