"""Runs compiled programs. It travels with every artifact and needs only NumPy (CuPy for a GPU).

``program`` is what a user calls, ``bound`` a program with fixed constants; both answer ``queries``,
with the costs in ``report``. ``arguments`` and ``symmetry`` check the arrays of a call;
``execution`` runs it on a backend (``cpu``, ``gpu``, ``numpy_backend``), phase by phase (``call``),
by the ``host_program``. ``memory`` counts its bytes. Arrays are made through the
``device_protocol``: ``host_device`` is the CPU, and ``dlpack`` exchanges arrays with other GPU
libraries. ``parts`` and ``part_work`` find the elements and the work of a part of a call.
``fork_safe_lock`` protects data that threads and forked processes use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# What Program.distribute calls. ``tcgen/__init__.py`` sets it; copies in artifacts have none.
distribute: Callable[..., Any] | None = None
