"""The .spec language, from text to a System and back.

``reader`` drives the steps: ``parser`` makes the trees of ``syntax`` by the grammar ``spec.lark``,
and ``diagnose`` explains what it cannot parse; ``names`` collects the declarations, with
``attributes`` (symmetry, storage), ``quantities`` and ``block_lists``; ``products`` reads right
sides, with ``operators`` (sum, P, S, perm) and ``permutations``; ``expand`` multiplies brackets
out. ``writer`` writes a System as text, with ``operator_writer``.
"""
