"""The compilation pipeline: from a user's request to a compiled program.

Requests: ``api`` reads the arguments of :func:`tcgen.compile`; ``target`` chooses the default
target and the machine model of a GPU; ``progress`` shows the stages; ``derived`` derives equations
from an ansatz, by name or by text, in a chosen spin form.

Pipeline: ``driver`` calls the stages through ``tracer``, which times and verifies them; ``faults``
tries plainer plans where a stage fails. ``element_types`` refuses numbers and arguments that the
element type cannot hold, ``sequences`` chooses among formula sequences, ``unfused`` between a fused
plan and the unfused one, ``limits`` plans and lowers again until a program keeps its limits,
``tuning`` replaces variants of products by the fastest measured ones, and ``documents`` writes and
reads the equations, plan and reports in an artifact.

Caches: ``plan_cache`` stores sequences and plans on disk, ``timings`` measured times;
``program_cache`` holds the programs of a process.
"""
