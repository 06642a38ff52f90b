"""Probes of programs: random inputs with their declared symmetry, and comparison of results.

``arrays`` draws inputs and compares results; ``signs`` keeps denominators of the draws from zero.
"""

from .arrays import assert_same_values, random_arrays, split_starts

__all__ = ["assert_same_values", "random_arrays", "split_starts"]
