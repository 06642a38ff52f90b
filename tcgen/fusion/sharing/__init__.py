"""Which steps may share a loop: ``graph``, ``dependences`` and ``candidates``.

``statement_order`` orders bodies, ``array_sizes`` tabulates sizes.
"""
