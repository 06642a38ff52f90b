"""The command line.

``commands`` defines the commands, ``options`` the options that they share, made from the fields of
the options records; ``output`` prints and writes; ``run`` and ``doctor`` do the work of two commands.
"""
