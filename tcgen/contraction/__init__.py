"""Drop-in replacements for NumPy's contractions.

``functions`` has the public functions; ``call`` checks a call by NumPy's rules; ``routes`` decides
whether NumPy or a generated kernel runs it; ``programs`` compiles and keeps kernels; ``report``
counts calls. ``opt_einsum_backend`` has the functions that opt_einsum looks up in a backend.
"""
