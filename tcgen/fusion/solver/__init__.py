"""CP-SAT models of fusion.

``cp_sat`` runs the solver. ``loop_constraints`` holds the variables and constraints of shared
loops, on which ``memory_model`` minimises memory and ``time_model`` the time that ``time_cost``
predicts.
"""
