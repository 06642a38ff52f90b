"""CUDA sources: ``kernels`` with ``expressions``, and one file for each thread mapping.

``points``, ``transpose``, ``nest`` and ``tiles`` (``tile_addresses``, ``tile_products``,
``tile_epilogue``).
"""
