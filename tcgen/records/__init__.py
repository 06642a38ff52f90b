"""Plain data that the compiler's levels and the runtime share: tensors, buffers, host steps.

The classes here are frozen dataclasses of tuples. They import nothing but the ground, so they
travel with an artifact, and there is one class for each thing:

- ``quantity`` and ``tensors`` are level 0 without indices: spaces, symmetries, storage, tensors;
- ``signature`` says which blocks of irreps a tensor over graded spaces has;
- ``loops`` is the part of level 4 that a call needs after printing: loop variables, buffers,
  accesses, matrix products, and the host program. Kernel bodies and expressions stay in ``ir``;
- ``parts`` numbers the iterations of its outermost loops, which parts of a call divide;
- ``arena`` has the lifetimes of arrays in one block of memory, and places them.

``tcgen.ir`` builds its levels of these classes, and the manifest of an artifact holds the same
objects: no class mirrors another one, and no code translates between them. The arguments, blocks
and work of a kernel are derived from its body once, when it is emitted (``KernelEntry``,
``GridEntry``, ``TouchEntry`` and ``StatementEntry`` in ``tcgen.artifact``).

One codec (``tcgen.artifact.codec``) writes plans, equations and manifests as a table of rows, in
which equal objects occur once: an artifact with 50 arrays over ``o`` and ``v`` has two rows of
spaces. A class gets a field, and both sides have it; the schema of the files then goes up.

The codec checks the type of each field. The checksums of the folder decide whether a manifest is
the one that the compiler wrote, so nothing else is checked when it is read.
"""
