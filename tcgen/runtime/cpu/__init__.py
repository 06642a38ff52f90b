"""CPU programs.

``backend``, ``build`` with ``toolchain`` and ``object_cache``, ``lazy_link``, ``blas``,
``threads``.
"""
