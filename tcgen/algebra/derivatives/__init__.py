"""New systems from old ones by differentiation.

``equations`` differentiates whole systems, forward (``jvp``) and in reverse (``derivative``).
``expressions`` gives it the derivatives of element-by-element expressions.
"""
