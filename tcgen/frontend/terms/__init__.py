"""JSON term lists.

``header`` reads ranges and tensors, ``symmetry`` the symmetry of tensors, ``reader`` the terms.
"""
