"""The .spec language.

``reader`` calls the ``parser``, which makes ``syntax`` trees by the grammar ``spec.lark``;
``diagnose`` explains syntax
errors; ``names`` looks names up, with ``attributes``; ``products`` and ``operators`` read right
sides, ``expand``
multiplies them out and ``permutations`` handles signed permutations. ``writer`` goes the other
way, with
``operator_writer`` and ``symmetry_text``.
"""
