"""Binding of loops for a CPU.

``bind`` by ``kernel_scheme``, ``transposed_operands``, ``sliced_operands``, ``symmetric_pairs``
and ``loops`` (with
``blocking``); ``parallel`` distributes loops over threads; ``product_variants`` and
``product_benchmark`` are for tuning.
"""
