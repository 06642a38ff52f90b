"""Memory of a program.

``usage`` and ``gpu_usage`` with ``footprint`` count it, ``ledger`` and ``pool`` allocate it.
"""
