"""Drop-in replacements for NumPy's contractions.

``functions`` are public; ``call`` checks operands, ``routes`` chooses NumPy or a generated
kernel, ``programs`` compiles
and caches kernels.
"""
