"""JSON term lists: ``reader``, with ``header`` and ``symmetry``."""
