"""Running compiled programs with NumPy: no planner, no parser. It travels with every artifact."""
