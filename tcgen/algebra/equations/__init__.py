"""Normal forms of whole equations, before any search.

``atoms``, ``canonical_product`` and ``canonical_equation`` decide what is equal;
``proven_symmetry`` derives
symmetries, ``inline`` substitutes intermediates, ``like_terms`` adds what is equal,
``equal_intermediates`` merges whole
arrays and ``permutations`` folds permuted terms.
"""
