"""Systems from systems.

``equations`` differentiates equations, by the ``expressions`` that they hold.
"""
