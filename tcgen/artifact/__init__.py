"""The format of compiled programs: emission writes it, the runtime reads it.

In the order in which they build on each other: ``grid`` and ``arena`` count the blocks of GPU
launches and place arrays in memory; ``product`` has the calls of a library; ``manifest`` describes
a program as plain data, ``codec`` writes and reads such data as JSON, and ``consistency`` checks
that the parts of a manifest fit each other; ``sizes`` gives shapes and bytes of arrays;
``launches`` counts those of a call;
``kernel_abi`` holds the numbers that generated code and its callers agree on; ``folder`` reads and
writes a program as a folder of files.
"""
