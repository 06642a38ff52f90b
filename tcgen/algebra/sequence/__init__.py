"""From equations to a formula sequence of binary steps.

``brackets`` chooses which intermediates of the user stay. ``common_products`` splits terms into
binary products, each computed once, in the order that ``contraction_order`` finds. ``fuse_maps``
evaluates element-by-element steps inside the step that reads them, and ``build`` makes the program.
``real_intermediates`` declares real what complex programs make of real arrays, and ``export``
writes a program for checkers that do not know tcgen.
"""
