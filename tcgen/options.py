"""Options of a compilation.

Raises:
    TcgenError subclasses for values that cannot be used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from fractions import Fraction
from math import inf
from operator import index
from typing import Any, SupportsIndex

from .errors import ArgumentError, ExtentError
from .thresholds import Thresholds
from .thresholds.time_model import Machine, default_machine, parse_machine

TARGETS = ("cpu", "cuda", "numpy")
DTYPES = ("float64", "float32", "complex128")
COSTS = ("dense", "packed")
OBJECTIVES = ("none", "linear", "memory", "peak", "time", "kernels")
MOST = 2**63 - 1  # an extent, or bytes: generated code counts in 64 bits

# Keywords of a call and their meaning: no input can have these names.
KEYWORDS = {
    "out": "names the arrays for results",
    "part": "selects the parts of a call",
    "strict": "rejects arrays that are not inputs",
}

_MOST_DIGITS = 100  # digits of an amount of memory
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
class Described:
    """What users read of a field of an options record, in every place where they read it.

    The command line, the documentation and the checks of values are made from it.

    Attributes:
        help: one sentence; for a switch that is on by default, the effect of switching it off.
        choices: the values, where they are few.
        metavar: placeholder for the value in the help of the command line.
        least: smallest legal number.
        parse: turns what users write into a value; values pass unchanged.
    """

    help: str
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    least: int | None = None
    parse: Callable[[Any], Any] | None = None


def _text(help: str, **more: Any) -> dict[str, Described]:
    """The metadata of a field that users set."""
    return {"described": Described(help, **more)}


def described(option: Field[Any]) -> Described | None:
    """What users read of a field; None where they do not set it."""
    found: Described | None = option.metadata.get("described")
    return found


def _machine(given: object) -> object:
    if isinstance(given, str):
        parse_machine(given)  # the rest of the record is that of the target
    elif given is not None and not isinstance(given, Machine):
        raise ArgumentError(
            f"machine {given!r} is not text such as 'h100' or 'flops=2e11,bandwidth=1e11'"
        )
    return given


def _weight(given: object) -> object:
    """A weight in flops, which the command line has as text; None is a default."""
    try:
        number = float(given) if isinstance(given, str) else given
    except ValueError:
        number = given
    if given is not None:
        _check_number("byte_weight", number, 0, float)
    return number


def _names(given: object) -> object:
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
        return tuple(given)
    raise ArgumentError(f"sliced={given!r}: give the name of an input, or a list of names")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """How equations are factored and their loops fused: ``tcgen.compile(..., planning=...)``.

    Raises:
        ArgumentError: a value is not legal, or has no effect.

    Example:
        >>> Planning(machine="h100,call=5000").objective
        'time'
    """

    objective: str = field(
        default="time",
        metadata=_text(
            "What fusion of loops minimises: linear, the sizes of Allam et al. (Eq. 10); memory, "
            "elements in all; peak, bytes at one time; time, predicted seconds within the memory "
            "limit; kernels, bytes that element-wise steps move; none: loops are not fused.",
            choices=OBJECTIVES,
        ),
    )
    machine: Machine | str | None = field(
        default=None,
        metadata=_text(
            "Constants of predicted times: h100, h200, a100, or for example "
            "flops=2e11,bandwidth=1e11.",
            metavar="CONSTANTS",
            parse=_machine,
        ),
    )
    pareto: bool = field(
        default=False, metadata=_text("Also plan for a series of memory limits (Pareto front).")
    )
    effort: int = field(
        default=1,
        metadata=_text("Amount of search, which is deterministic; more takes longer.", least=1),
    )
    cost: str = field(
        default="dense",
        metadata=_text(
            "Cost that factoring minimises: all multiply-adds (dense) or symmetry-unique ones "
            "(packed).",
            choices=COSTS,
        ),
    )
    add_weight: float = field(
        default=1.0, metadata=_text("Flops counted for an addition.", least=0)
    )
    byte_weight: float | None = field(
        default=None,
        metadata=_text(
            "Flops counted for a byte that a step reads or writes. Default: the flops in which a "
            "byte passes memory, by the constants of the machine.",
            metavar="FLOPS",
            parse=_weight,
        ),
    )
    calls: int = field(
        default=20,
        metadata=_text(
            "Calls of a bound program for which the constant phase, which runs once, should pay.",
            least=1,
        ),
    )
    optimize: bool = field(default=True, metadata=_text("Keep the factoring as written."))
    sliced: tuple[str, ...] = field(
        default=(),
        metadata=_text(
            "Input that a call reads slice by slice, from a file or a memory map; repeatable.",
            metavar="INPUT",
            parse=_names,
        ),
    )
    library: bool = field(
        default=True,
        metadata=_text(
            "Generate every kernel of a GPU, instead of calling cuBLAS where it is predicted to be "
            "faster (target cuda)."
        ),
    )
    tf32: bool = field(
        default=False,
        metadata=_text(
            "Let tensor cores of a GPU round factors of products to TF32, with 11 significant bits "
            "of the 24 (target cuda, dtype float32)."
        ),
    )
    tune: bool = field(
        default=False,
        metadata=_text(
            "Benchmark the variants of each matrix product on this machine (targets cpu and cuda)."
        ),
    )

    def __post_init__(self) -> None:
        for option in fields(self):
            info, value = described(option), getattr(self, option.name)
            if info is None:
                continue
            if info.parse is not None:
                object.__setattr__(self, option.name, info.parse(value))
            elif info.choices:  # NumPy's types equal their names, and are not strings
                if not isinstance(value, str) or value not in info.choices:
                    raise ArgumentError(
                        f"{option.name} {value!r} is not one of {', '.join(info.choices)}"
                    )
            elif isinstance(option.default, bool):
                if not isinstance(value, bool):
                    raise ArgumentError(f"{option.name}={value!r} is neither True nor False")
            elif info.least is not None:
                _check_number(option.name, value, info.least, type(option.default))


def _check_number(name: str, value: object, least: int, kind: type) -> None:
    legal, noun = (int, "an integer") if kind is int else ((int, float), "a number")
    if not isinstance(value, legal) or isinstance(value, bool) or not least <= value < inf:
        raise ArgumentError(f"{name} {value!r} is not {noun} of at least {least}")


def _with_attributes(record: type) -> str:
    """The docstring of a record with a line for each of its fields."""
    lines = [f"{record.__doc__ or record.__name__}".rstrip(), "", "    Attributes:"]
    for option in fields(record):
        if (info := described(option)) is not None:
            off = "False: " if option.default is True else ""
            lines.append(f"        {option.name}: {off}{info.help}")
    return "\n".join(lines)


Planning.__doc__ = _with_attributes(Planning)


@dataclass(frozen=True, slots=True)
class Options(Planning):
    """A request: planning, and the properties of the program. Equal requests hash alike.

    Attributes:
        extents: planning extents by space name, sorted by name.
        target: ``cpu`` (C with OpenMP), ``cuda`` (a GPU, through CuPy) or ``numpy``.
        dtype: ``float64``, ``float32`` or ``complex128``; tensors declared ``real`` stay real.
        memory_limit: bytes the program may allocate beyond its inputs, or None.
        round_each: loops round a product before it is added, as NumPy does; else a fused operation
            may round both at once. Matrix products always may.
        sums_alone: a factor may be summed, over an index that no other factor has, before it is
            multiplied; else it is multiplied first, as in NumPy. Infinities and NaN can differ.
        thresholds: thresholds of planning, lowering and printing.
    """

    extents: tuple[tuple[str, int], ...] = ()
    target: str = field(
        default="cpu", metadata=_text("Default: cpu if a compiler works.", choices=TARGETS)
    )
    dtype: str = field(
        default="float64", metadata=_text("Element type of the arrays.", choices=DTYPES)
    )
    memory_limit: int | None = field(
        default=None,
        metadata=_text("Most the program may allocate, for example 8GiB.", metavar="BYTES"),
    )
    round_each: bool = False
    sums_alone: bool = True
    thresholds: Thresholds = Thresholds()

    def __post_init__(self) -> None:
        Planning.__post_init__(self)
        self._set_machine()
        for name in ("round_each", "sums_alone"):
            if not isinstance(getattr(self, name), bool):
                raise ArgumentError(f"{name}={getattr(self, name)!r} is neither True nor False")
        for space, extent in self.extents:
            if extent <= 0:
                raise ExtentError(
                    f"planning extent {space}={extent} must be at least 1: "
                    f"give the extent of a typical run (at run time 0 is legal)"
                )
            if extent > MOST:
                raise ExtentError(f"planning extent {space}={extent} is above 2^63 - 1")
        if self.tune and self.target == "numpy":
            raise ArgumentError(
                "tune measures how generated code computes matrix products, and the target here "
                "is numpy: compile for the target cpu (it needs a C compiler) or cuda (it needs a "
                "GPU), or leave tune out"
            )
        if not self.library and self.target != "cuda":
            raise ArgumentError(
                f"library=False says that no product on a GPU is left to cuBLAS, and the target "
                f"here is {self.target}: compile for the target cuda, or leave library out"
            )

        if self.tf32:
            self._check_tf32()

    def _check_tf32(self) -> None:
        if self.target != "cuda" or self.dtype != "float32":
            raise ArgumentError(
                f"tf32 lets tensor cores of a GPU round float32, and here the target is "
                f"{self.target} and the dtype {self.dtype}: compile with the target cuda and the "
                f"dtype float32, or leave tf32 out"
            )
        if self.tune:
            raise ArgumentError(
                "tune measures products that round nothing to TF32: leave tune or tf32 out"
            )

    def _set_machine(self) -> None:
        """Replace the constants as given by the whole record."""
        usual = default_machine(self.target)
        given = self.machine
        constants = parse_machine(given, usual) if isinstance(given, str) else given or usual
        object.__setattr__(self, "machine", constants)
        if self.byte_weight is None:
            object.__setattr__(self, "byte_weight", constants.flops_per_byte)

    @property
    def constants(self) -> Machine:
        """Constants of predicted times, those of the target where none are given."""
        assert isinstance(self.machine, Machine), "options hold the whole record"
        return self.machine

    @property
    def extent_of(self) -> Mapping[str, int]:
        """Planning extents as a mapping."""
        return dict(self.extents)


def changed_options(options: Options) -> dict[str, str]:
    """Options of planning that differ from their defaults, by their names on the command line.

    Example:
        >>> changed_options(Options(objective="peak", memory_limit=1024))
        {'objective': 'peak', 'memory-limit': '1024'}
    """
    chosen, usual = {}, default_machine(options.target)
    constants = options.constants
    defaults = {"machine": usual, "byte_weight": constants.flops_per_byte}
    for option in fields(options):
        value = getattr(options, option.name)
        if described(option) is None or option.name in ("target", "dtype"):
            continue
        if value == defaults.get(option.name, option.default):
            continue
        name = f"{'no-' if option.default is True else ''}{option.name.replace('_', '-')}"
        if isinstance(value, Machine):
            own = {f.name: getattr(value, f.name) for f in fields(value)}
            value = tuple(f"{n}={c}" for n, c in own.items() if c != getattr(usual, n))
        shown = ",".join(value) if isinstance(value, tuple) else str(value)
        chosen[name] = "" if isinstance(value, bool) else shown
    return chosen


def parse_extents(extents: Mapping[str, SupportsIndex] | None) -> tuple[tuple[str, int], ...]:
    """Extents by space name as :class:`Options` holds them; integers of NumPy are welcome.

    Raises ExtentError if they are not a mapping, or one is not an integer.
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
            found.append((space_name(space), index(extent)))
        except TypeError:
            raise ExtentError(f"extent {space}={extent!r} is not an integer: pass an int") from None
    return tuple(sorted(found))


def space_name(label: str) -> str:
    """Name of the space of an einsum label: the label, or ``ud7`` for ``"×"`` (U+00D7)."""
    return label if label.isascii() or len(label) > 1 else f"u{ord(label):x}"


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
                f"{text!r:.80} is not an amount of memory; write for example 8GiB or 500MB"
            )
        if len(match[1]) > _MOST_DIGITS:
            raise ArgumentError(
                f"an amount of memory of {len(match[1]):,} digits is more memory than 64 bits can "
                f"address; write for example 8GiB"
            )
        count = int(Fraction(match[1]) * _UNITS[match[2].lower()])
    if count > MOST:
        raise ArgumentError(f"{text!r:.80} is more memory than 64 bits can address")
    return count
