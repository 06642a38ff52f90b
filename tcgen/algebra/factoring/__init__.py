"""The search for the factorisation with the fewest operations.

``factor`` runs the search. ``lift`` reads the equations as numbered ``sums`` whose products have
``canonical_forms``; ``label_order`` makes the numbers independent of names. ``greedy`` takes out
common factors; ``basis_change`` (decompositions into rank one) and ``complete_product`` try forms
that it cannot reach, and ``interning`` holds the arrays that they make. ``exhaustive`` finds the
optimum of small systems. ``costs`` counts operations, and ``packed_costs`` those of
symmetry-unique elements. ``write_back`` writes the sums as equations again.
"""
