"""From chosen fusions to a plan: ``nest`` makes loops, ``plan`` the plan.

``generated_tiles`` cuts generated inputs, ``memory`` counts and ``offsets`` packs arrays.
"""
