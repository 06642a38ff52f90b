"""Binding of statements for a CPU.

In the order in which they work: ``symmetric_groups`` (indices that need their distinct values
alone), ``packed_intermediates`` (stored so), ``grouped_products`` (products of them),
``symmetric_pairs`` (one of each pair that is exchanged together with others),
``sliced_operands`` (packed operands), ``bind`` (a product of the BLAS, of the generated kernel, or
loops), ``transposed_operands`` and ``kernel_scheme`` (for the kernel), ``loops`` with ``blocking``,
and at last ``parallel``. For tuning, ``product_variants`` lists the variants of a product, and
``product_benchmark`` makes a program that measures them.
"""
