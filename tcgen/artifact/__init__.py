"""The format that emission writes and the runtime reads.

``folder`` holds the files, ``manifest`` describes them, ``grid`` and ``arena`` say how launches
and arrays are laid out,
``kernel_abi`` and ``rounding`` hold the constants that generated code and its callers share.
"""
