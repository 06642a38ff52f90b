"""One call of a program.

``layout``, ``buffers``, ``strided``, ``phase`` (with ``kept``) and ``results``.
"""
