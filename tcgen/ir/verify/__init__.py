"""Checkers of the levels.

``plan`` with ``plan_kernels``, ``loops``, ``thread_mapping`` with ``epilogue``.
"""
