"""Array programs in NumPy: kernels of the kinds that NPBench collects, from their definitions.

``kernels`` has the programs, ``python -m benchmarks.array_programs`` times them.
"""
