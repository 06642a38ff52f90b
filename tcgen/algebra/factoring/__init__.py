"""The search for the factorisation with the fewest operations.

``factor`` runs the search. ``lift`` reads the equations as numbered ``sums`` whose products have
``canonical_forms``; ``label_order`` makes the numbers independent of names. ``greedy`` takes out
common factors; ``basis_change`` and ``squares`` (by the decompositions of ``rank_one``) and
``complete_product`` try forms that it cannot reach, and ``interning`` holds the arrays that they
make. ``costs`` counts operations; ``packed_costs`` counts them without those that are equal by
symmetry, by the help of ``symmetriser``, and ``binary_products`` then splits long products.
``write_back`` writes the sums as equations again.
"""
