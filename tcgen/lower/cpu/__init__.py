"""Binding of statements for a CPU.

In the order in which they work: ``symmetric_groups`` (indices that need only their distinct
values), ``packed_intermediates`` (stored in groups), ``grouped_products`` (products of groups),
``symmetric_pairs`` (one of each pair that is exchanged together with others), ``sliced_operands``
(packed operands), ``bind`` (a product of the BLAS, of the generated kernel, or loops),
``transposed_operands`` and ``kernel_scheme`` (for the kernel), ``loops``, and at last ``parallel``.
For tuning, ``product_variants`` lists and measures the variants of a product.
"""
