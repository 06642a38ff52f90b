"""From chosen fusions to a fusion plan.

``nest`` puts statements into loops. ``plan`` makes the plan, with tile loops of generated inputs.
``memory`` counts elements and bytes, and packs arrays into an arena.
"""
