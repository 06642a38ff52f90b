"""The search for an operation-minimal factoring.

``factor`` runs it: ``lift`` makes numbered ``sums`` of ``canonical_forms`` in the order of
``label_order``; ``greedy``,
``basis_change`` (by ``rank_one``) and ``complete_product`` rewrite them, stored in ``interning``;
``costs`` and
``packed_costs`` (with ``symmetriser`` and ``binary_products``) count operations; ``write_back``
makes equations again.
"""
