"""The format of compiled programs: emission writes it, the runtime reads it.

``grid`` counts the blocks of GPU launches. ``manifest`` describes a program as plain data, with
shapes, bytes and launches at given extents; ``codec`` writes and reads plain data as JSON.
``kernel_abi`` has the numbers that generated code and its callers agree on; ``folder`` reads and
writes a program as a folder of files, which ``whole_folder`` puts in the place of an older one.
"""
