"""Libraries for C, C++ and Fortran: artifacts -> a source tree that CMake and a C compiler build.

``make`` is :func:`tcgen.library`: ``sources`` compiles equations or reads artifacts, with names for
all languages (``fortran_order`` stores their tensors as Fortran indexes them), and ``tree`` writes
the files. ``tables`` and ``host_loops`` print what the C runtime (``templates/c/runtime``)
interprets, ``c_source`` puts them together; ``c_header``, ``cpp_header`` and ``fortran_module``
print the interfaces, ``guide`` the README, and ``processors`` chooses kernels at run time.
"""
