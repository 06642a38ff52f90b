"""One program on many workers: dask, MPI, GPUs, or any executor of ``concurrent.futures``.

A task is a range of the iterations of numbered loops: the outermost loops of the program, or one
loop over a space, for whose ranges the equations are compiled again. In order of work: ``stored``
refers to arrays in files; ``slicing`` makes the equations for a range of a space; ``stage`` finds
the elements that a range reads and writes; ``plan`` chooses stages and tasks within the memory of a
worker; ``handles`` carry values to workers, where ``worker`` runs; ``executor`` (with the protocol
``Engine``), ``dask_client``, ``mpi`` and ``gpus`` are the adaptors; ``run`` sends, runs, assembles
and reports; ``nodes`` predicts a run on given nodes; ``distribute`` chooses the adaptor.
"""
