"""Normal forms of whole equations, before any search.

``atoms``, ``canonical_product`` and ``canonical_equation`` decide which factors, products and
equations are equal. ``inline`` substitutes intermediates, ``proven_symmetry`` proves declared
symmetries and derives others, ``like_terms`` merges equal terms, ``equal_intermediates`` merges
equal arrays, and ``permutations`` folds permuted terms and separates them again.
"""
