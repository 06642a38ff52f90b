"""From equations to a formula sequence of binary steps.

``brackets`` keeps the user's own forms, ``common_products`` and ``contraction_order`` split
products, ``fuse_maps`` joins
element-wise steps, ``build`` makes the program and ``export`` writes it for other checkers.
"""
