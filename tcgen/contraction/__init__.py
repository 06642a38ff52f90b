"""Drop-in replacements for NumPy's contractions, on arrays of NumPy and of CuPy.

``functions`` has the public functions; ``signature`` checks a call by NumPy's rules; ``routes``
chooses for each signature between a generated kernel (``kernel_route``) and the array library;
``libraries`` has what differs between NumPy and CuPy; ``programs`` compiles and caches kernels;
``report`` counts calls.
"""
