"""Normal forms of whole equations, before any search.

``atoms``, ``canonical_product`` and ``canonical_equation`` decide which factors, products and
equations are equal. ``volatile`` marks what changes from call to call. ``inline`` substitutes
intermediates, ``proven_symmetry`` proves declared symmetries and derives others, ``blocks_read``
splits intermediates over joined spaces, ``like_terms`` merges equal terms, ``equal_intermediates``
merges equal arrays, and ``permutations`` folds permuted terms and separates them again.
"""
