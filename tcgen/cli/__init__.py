"""The command line.

``commands`` defines the commands and ``options`` the options that they share, which are made from
the fields of the options records; ``output`` prints and writes; ``run`` and ``doctor`` do the work
of two commands.
"""
