"""From chosen fusions to a fusion plan.

``nest`` puts statements into loops. ``plan`` makes the plan, ``generated_tiles`` the tile loops of
generated inputs. ``memory`` counts elements and bytes, and ``offsets`` packs arrays into an arena.
"""
