"""CP-SAT models: ``loop_constraints``, ``memory_model``, ``time_model`` and ``time_cost``."""
