"""CUDA sources.

``kernels`` prints a function for each kernel by its thread mapping: ``points`` (elements and sums),
``transpose``, ``thread_nest``, ``nest``, and ``tiles`` with ``tile_addresses``, ``tile_products``
and ``tile_epilogue``; all of them by ``expressions``. ``grid`` tells the runtime how many blocks a
kernel has, and ``library`` which matrix products the library computes instead.
"""
