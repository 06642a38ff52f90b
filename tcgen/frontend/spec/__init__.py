"""The .spec language, from text to a System and back.

``reader`` drives the steps: ``parser`` makes the trees of ``syntax`` by the grammar ``spec.lark``,
and explains syntax errors; ``names`` collects the declarations, with ``attributes`` (symmetry,
storage, quantities); ``products`` reads right sides, with ``operators`` (sum, P, S, perm);
``expand`` multiplies brackets out. ``writer`` writes a System as text.
"""
