"""The command line.

``commands`` defines the commands. ``options`` holds the options that they share, which are made
from the fields of the options records, and ``solve_options`` those of one command. ``output``
prints and writes, ``arrays_in_files`` reads and writes arrays; ``run``, ``many_workers``, ``solve``
and ``doctor`` do the work of three commands.
"""
