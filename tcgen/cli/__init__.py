"""The command line.

``commands`` is the command ``tcgen``. ``compile``, ``report`` (with explain), ``run``, ``solve``,
``library``, ``specs`` (list, convert, spin, derive) and ``machine`` (doctor, cache) are its
subcommands; ``timed_run`` runs and checks a program for ``run``. ``options`` makes the shared
options from the fields of the options records, ``output`` prints and writes, ``arrays_in_files``
reads and writes arrays.
"""
