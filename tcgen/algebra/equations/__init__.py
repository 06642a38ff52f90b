"""Normal forms of whole equations, before any search.

``canonical_product`` decides which factors and products are equal, by the least ``labelling`` of
their indices, and ``normal_form`` which equations. ``inline`` substitutes intermediates.
``proven_symmetry`` normalises a system: it proves declared symmetries, derives others, and stores
the normal forms on the system. ``permutations`` folds permuted terms and separates them again, and
``intermediates`` removes equal and unused arrays. ``volatile`` marks the tensors that change from
call to call.
"""
