"""CUDA sources.

``kernels`` prints a function for each kernel by its thread mapping: ``points`` (elements,
transpositions), ``sums``, ``nest``, and ``tiles`` with ``tile_addresses`` and ``tile_epilogue``;
all of them by ``expressions``. ``grid`` gives the runtime the number of blocks of each kernel, and
``work`` what a prediction of its time needs.
"""
