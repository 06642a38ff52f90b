"""Runs compiled programs. It travels with every artifact and needs NumPy alone (CuPy for a GPU).

``program`` is what a user calls, ``bound`` a program with fixed constants, ``report`` its costs.
``arguments`` and ``symmetry_check`` check the arrays of a call, ``execution`` runs it: on a backend
(``cpu``, ``gpu``, ``numpy_backend``), phase by phase (``call``), by the ``host_program``, in memory
that ``memory`` counts and a device of the ``device_protocol`` holds (``host_device`` is the CPU).
``guests`` takes arrays of other libraries on a GPU, and gives results back as theirs.
``packed_pairs`` makes triangles for packed inputs. ``parts`` and ``part_work`` say what a part of a
call touches, and how much work it is.
``fork_safe_lock`` protects data that threads and forked processes use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# What Program.distribute calls. ``tcgen/__init__.py`` sets it; copies in artifacts have none.
distribute: Callable[..., Any] | None = None
