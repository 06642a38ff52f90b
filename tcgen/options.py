"""Options of a compilation.

Raises:
    TcgenError subclasses for values that cannot be used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from math import inf
from operator import index
from typing import SupportsIndex

from .errors import ArgumentError, ExtentError
from .thresholds import Thresholds

TARGETS = ("cpu", "cuda", "numpy")
DTYPES = ("float64", "float32", "complex128")
COSTS = ("dense", "packed")
OBJECTIVES = ("none", "linear", "memory", "peak", "time", "kernels")
MOST = 2**63 - 1  # an extent, or bytes: generated code counts in 64 bits

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


@dataclass(frozen=True, slots=True)
class Machine:
    """What the objective ``time`` assumes of a machine; whole numbers, so that times are exact.

    The defaults are constants of the literature, not measurements of this machine: only the ratios
    of predicted times are meant to be trusted.

    Attributes:
        flops: per second, of a large matrix product.
        bandwidth: bytes per second between memory and caches.
        call: nanoseconds to launch one step on one tile.
        generated: flops to produce one element of a generated input.
        cache: bytes of a core's cache: an intermediate that holds at most half of these passes no
            memory; 0: there is none.
    """

    flops: int = 50 * 10**9
    bandwidth: int = 20 * 10**9
    call: int = 10_000
    generated: int = 1000
    cache: int = 2**20

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), int(field.name in ("flops", "bandwidth"))
            if not isinstance(value, int) or value < least:
                raise ArgumentError(
                    f"machine: {field.name}={value!r} is not a whole number of at least {least}"
                )


def parse_machine(text: str) -> Machine:
    """Constants of a machine from ``"flops=2e11,bandwidth=1e11"``; the others keep their defaults.

    Example:
        >>> parse_machine("flops=2e11,call=5000")
        Machine(flops=200000000000, bandwidth=20000000000, call=5000, generated=1000, cache=1048576)
    """
    names = [field.name for field in fields(Machine)]
    given: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if name not in names or not value.is_integer() or value < 0:
            raise ArgumentError(
                f"machine: {part.strip()!r} is not one of {', '.join(names)} with a whole number; "
                f"write for example flops=2e11,bandwidth=1e11"
            )
        given[name] = int(value)
    return Machine(**given)


@dataclass(frozen=True, slots=True)
class Options:
    """How to compile; hashable, so that equal requests share one cached program.

    Attributes:
        extents: planning extents by space name, sorted by name.
        target: ``cpu`` (C with OpenMP), ``cuda`` (a GPU, through CuPy) or ``numpy``.
        dtype: ``float64``, ``float32`` or ``complex128``; tensors declared ``real`` stay real.
        memory_limit: bytes the program may allocate beyond its inputs, or None.
        objective: of the fusion plan: ``none``, ``linear`` (Allam et al., Eq. 10), ``memory``
            (fewest elements in all), ``peak`` (fewest bytes at one time), ``time`` (least
            predicted time within the memory limit) or ``kernels`` (element-wise steps share
            kernels so that the fewest bytes pass memory).
        machine: constants of the predicted time, for the objective ``time`` and for ``pareto``.
        pareto: also plan for a row of memory limits: the curve of time against memory.
        optimize: False keeps the user's own factoring.
        effort: deterministic search effort; 1 is the default amount of work.
        cost: what the factoring makes small: ``dense`` counts every multiply-add, ``packed`` those
            that symmetry makes equal only once.
        add_weight: flops that an addition counts beside contractions.
        byte_weight: flops that a byte read or written by a step counts.
        sliced: inputs that are read in slices at run time, from a file or a memory map.
        tune: measure on this machine how matrix products are computed best (target ``cpu``).
        round_each: loops round a product before it is added, as NumPy does; else a fused operation
            may round both at once. Matrix products always may.
        thresholds: of planning, lowering and printing; tests pass others.
    """

    extents: tuple[tuple[str, int], ...] = ()
    target: str = "cpu"
    dtype: str = "float64"
    memory_limit: int | None = None
    objective: str = "none"
    optimize: bool = True
    effort: int = 1
    cost: str = "dense"
    add_weight: float = 1.0
    byte_weight: float = 0.0
    machine: Machine = Machine()
    pareto: bool = False
    sliced: tuple[str, ...] = ()
    tune: bool = False
    round_each: bool = False
    thresholds: Thresholds = Thresholds()

    def __post_init__(self) -> None:
        for value, name, legal in (
            (self.target, "target", TARGETS),
            (self.dtype, "dtype", DTYPES),
            (self.objective, "objective", OBJECTIVES),
            (self.cost, "cost", COSTS),
        ):
            if not isinstance(value, str) or value not in legal:  # NumPy's types equal their names
                raise ArgumentError(f"{name} {value!r} is not one of {', '.join(legal)}")
        for switch, name in (
            (self.optimize, "optimize"),
            (self.pareto, "pareto"),
            (self.tune, "tune"),
            (self.round_each, "round_each"),
        ):
            if not isinstance(switch, bool):
                raise ArgumentError(f"{name}={switch!r} is neither True nor False")
        for space, extent in self.extents:
            if extent <= 0:
                raise ExtentError(
                    f"planning extent {space}={extent} must be at least 1: "
                    f"give the extent of a typical run (at run time 0 is legal)"
                )
            if extent > MOST:
                raise ExtentError(f"planning extent {space}={extent} is above 2^63 - 1")
        if self.tune and self.target != "cpu":
            raise ArgumentError(
                f"tune measures how the target cpu computes matrix products, and the target here "
                f"is {self.target}: compile for the target cpu (it needs a C compiler), or leave "
                f"tune out"
            )
        if not isinstance(self.machine, Machine):
            raise ArgumentError(
                f"machine {self.machine!r} is not text such as 'flops=2e11,bandwidth=1e11'"
            )
        if self.machine != Machine() and self.objective != "time" and not self.pareto:
            raise ArgumentError(
                f"constants of a machine change nothing for the objective {self.objective}: choose "
                f"the objective time, or ask for the curve of time against memory (pareto), or "
                f"leave machine out"
            )
        for weight, name in ((self.add_weight, "add_weight"), (self.byte_weight, "byte_weight")):
            if not isinstance(weight, int | float) or not 0 <= weight < inf:
                raise ArgumentError(f"{name} {weight!r} is not a number of at least 0")
        if not isinstance(self.effort, int) or isinstance(self.effort, bool) or self.effort < 1:
            raise ArgumentError(f"effort {self.effort!r} is not a whole number of at least 1")

    @property
    def extent_of(self) -> Mapping[str, int]:
        """Planning extents as a mapping."""
        return dict(self.extents)


def parse_extents(extents: Mapping[str, SupportsIndex] | None) -> tuple[tuple[str, int], ...]:
    """Extents by space name as :class:`Options` holds them; integers of NumPy are welcome.

    Raises:
        ExtentError: they are no mapping, or one is not a whole number.
    """
    if extents is not None and not isinstance(extents, Mapping):
        raise ExtentError(f"extents must be a dict such as {{'o': 10}}, found {extents!r}")
    found = []
    for space, extent in (extents or {}).items():
        if not isinstance(space, str):
            raise ExtentError(f"extents must be by the names of spaces, found {space!r}")
        try:
            if isinstance(extent, bool):
                raise TypeError
            found.append((space, index(extent)))
        except TypeError:
            raise ExtentError(
                f"extent {space}={extent!r} is not a whole number: pass an int"
            ) from None
    return tuple(sorted(found))


def parse_bytes(text: str | SupportsIndex) -> int:
    """Bytes from ``"8GiB"``, ``"500 MB"`` or a plain number.

    Example:
        >>> parse_bytes("8GiB")
        8589934592
    """
    if isinstance(text, SupportsIndex) and not isinstance(text, bool) and index(text) >= 0:
        count = index(text)
    else:
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(text))
        if match is None or match[2].lower() not in _UNITS or not isinstance(text, str):
            raise ArgumentError(
                f"{text!r} is not an amount of memory; write for example 8GiB or 500MB"
            )
        count = int(Fraction(match[1]) * _UNITS[match[2].lower()])
    if count > MOST:
        raise ArgumentError(f"{text!r} is more memory than 64 bits can address")
    return count
