"""Which statements may share a loop.

``graph`` has the statements, ``dependences`` what must run in which order, and ``candidates`` the
loops that may be shared. ``statement_order`` orders the statements of given loops, and
``array_sizes`` tabulates the size of each array for every choice of contracted axes.
"""
