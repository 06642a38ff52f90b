"""Drop-in replacements for NumPy's contractions.

``functions`` has the public functions; ``call`` checks a call by NumPy's rules; ``routes`` decides
whether NumPy or a generated kernel runs it; ``on_gpu`` does the same for arrays of a GPU, where
CuPy stands for NumPy; ``programs`` compiles and keeps kernels; ``report`` counts calls.
``opt_einsum_backend`` has the functions that opt_einsum looks up in a backend.
"""
