"""Which statements may share a loop.

``graph`` has the statements, ``dependences`` the order in which they must run, and ``candidates``
the loops that may be shared, with the size of each array for every choice of contracted axes.
``statement_order`` orders the statements of given loops.
"""
