"""The command line.

``commands`` defines the commands. ``options`` holds the options that they share, which are made
from the fields of the options records, and ``solve_options`` those of one command. ``output``
prints and writes; ``run``, ``solve`` and ``doctor`` do the work of three commands.
"""
