"""Array programs in NumPy: kernels of the kinds that NPBench collects, from their definitions.

``kernels`` has the programs, and ``python -m benchmarks.array_programs`` times them;
``python -m benchmarks.array_programs.calls`` times single operations on few elements.

``delayrepay`` has the programs of Morton et al., which the same command times:
``python -m benchmarks.array_programs --programs delayrepay --memory``.

``bohrium`` has the programs of Kristensen et al., ``recorder`` turns NumPy code into operations of
the partition problem, and ``python -m benchmarks.array_programs.partitions`` compares partitions.
"""
