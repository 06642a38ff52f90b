"""One program on many workers: dask, MPI, or any executor of ``concurrent.futures``.

In the order in which they work: ``stored`` refers to arrays in files; ``slicing`` cuts the
equations of a program along a space; ``unpacking`` takes ranges of packed groups; ``stage`` says
what a range of a program reads and writes; ``plan`` chooses stages and tasks within the memory of a
worker; ``handles`` carry values to workers; ``worker`` is what runs there; ``engine`` is what an
adaptor does, and ``executor``, ``dask_client`` (with ``dask_arrays``) and ``mpi`` are the adaptors;
``run`` sends, runs and assembles; ``report`` says what a call did; ``nodes`` predicts a run on
given nodes; ``distribute`` chooses the adaptor.
"""
