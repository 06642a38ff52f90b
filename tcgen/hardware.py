"""Properties of processors and GPUs: sizes that all of them share, and records of single machines.

A record says what predictions of time assume of a machine. They model a matrix product on a GPU as
waves of thread blocks, each of which computes a square tile of the result.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from .dtypes import BY_NAME
from .errors import ArgumentError

# Units of transfer between memory and caches: x86-64 and most AArch64, and NVIDIA GPUs.
CACHE_LINE_BYTES = 64
SECTOR_BYTES = 32
# Smallest page of virtual memory of the supported processors.
PAGE_BYTES = 4096
# Threads that run in step on NVIDIA GPUs.
WARP_THREADS = 32
# Shared memory of a block that every kernel may use without a request for more.
SHARED_MEMORY_BYTES = 48 * 1024
# Libraries that may compute products.
CUBLAS, CUTENSOR = GPU_LIBRARIES = ("cuBLAS", "cuTENSOR")

# Shared memory of generated CUDA kernels.
COPY_BYTES = 16  # the most that one thread of a GPU copies at once
BLOCK_SUM_BYTES = 1024  # for the partial sums of the warps of a block
PRIVATE_SHARED_BYTES = SHARED_MEMORY_BYTES - 2 * BLOCK_SUM_BYTES  # all but sums and scalars

_HALF_RATES = (2, 2, 4)  # m, n and k at which a product on a processor has half of the flops
# Of products on a GPU: sides of tiles, and depth of k that a block loads ahead.
_SIDES = (16, 32, 64, 128)
_DEPTH = 16
_STAGES = 4  # tiles of each factor in shared memory
_HALF_RATE_SIDE = 32  # side of a tile at which shared memory halves the flops
_SPLIT_K = 128  # smallest share of k of one block
_SPLITS = 32  # most blocks that divide one sum
_FRAGMENT = (16, 8, 8)  # m, n and k of one operation of the tensor cores


@dataclass(frozen=True, slots=True)
class Machine:
    """Constants of a machine for the objective ``time``; integers, so that times are exact.

    The defaults are constants of the literature for one core of a processor, not measurements of
    this machine: only the ratios of predicted times are meant to be trusted.

    Attributes:
        flops: flops per second of a large matrix product; on a GPU those of the tensor cores.
        bandwidth: bytes per second between memory and caches.
        call: nanoseconds to launch one step on one tile.
        generated: flops to produce one element of a generated input.
        cache: bytes of a core's cache, or of the last one of a GPU: an intermediate that holds at
            most half of these passes no memory; 0: there is none.
        line: bytes that pass between memory and caches at once.
        fma: flops per second without tensor cores; 0: the same.
        multiprocessors: number of multiprocessors of a GPU, which share the tiles of a product; 0
            for a processor.
        shared: bytes of shared memory that a block of a GPU can have.
    """

    flops: int = 50 * 10**9
    bandwidth: int = 20 * 10**9
    call: int = 10_000
    generated: int = 1000
    cache: int = 2**20
    line: int = CACHE_LINE_BYTES
    fma: int = 0
    multiprocessors: int = 0
    shared: int = 0

    def __post_init__(self) -> None:
        for constant in fields(self):
            name = constant.name
            value, least = getattr(self, name), int(name in POSITIVE)
            if not isinstance(value, int) or value < least:
                raise ArgumentError(
                    f"machine: {name}={value!r} is not an integer of at least {least}"
                )

    def slowness(
        self, batch: int, m: int, n: int, k: int, *, dtype: str, real: int = 0
    ) -> tuple[int, int]:
        """How many times longer a matrix product takes than its flops at the full rate.

        Args:
            batch: number of products in one launch.
            m: rows of the result.
            n: columns of the result.
            k: points of the sum.
            dtype: element type. A GPU has tensor cores for double precision, and multiplies complex
                numbers by four real products.
            real: factors of a product of complex numbers that are real, which halve its work.

        Returns:
            A numerator and a denominator.

        Example:
            >>> Machine().slowness(1, 2, 2, 4, dtype="float64")
            (128, 16)
        """
        if not self.multiprocessors:
            (half_m, half_n, half_k) = _HALF_RATES
            return (m + half_m) * (n + half_n) * (k + half_k), m * n * k
        wide, narrow = max(m, n), min(m, n)
        fits = all(x >= least for x, least in zip((wide, narrow, k), _FRAGMENT, strict=True))
        element = BY_NAME[dtype]
        products = element.parts ** (2 - real)
        rate = self.flops if (element.tensor_cores and fits) or not self.fma else self.fma
        if min(m, n, k) == 1:
            return products * self.flops, rate  # bytes decide, since each tile is read once
        most = max(_SIDES[0], self.shared // (_STAGES * 2 * _DEPTH * 8))
        ways = [
            (self._wave(batch, m, n, k, side), side)
            for side in _SIDES
            if side <= most  # else its stages do not fit
        ]
        # Each wave takes as long as one tile on one multiprocessor.
        slow, side = min(ways, key=lambda way: way[0] / way[1])
        return products * slow * self.flops, side * batch * m * n * k * rate

    def _wave(self, batch: int, m: int, n: int, k: int, side: int) -> int:
        """Points of all waves of a product, times the side of its tiles."""
        tiles = batch * -(-m // side) * -(-n // side)
        idle = max(1, self.multiprocessors // tiles)
        splits = max(1, min(_SPLITS, k // _SPLIT_K, idle))
        waves = -(-tiles * splits // self.multiprocessors)
        deep = -(-k // splits) + _DEPTH
        return waves * self.multiprocessors * side**2 * deep * (side + _HALF_RATE_SIDE)


POSITIVE = ("flops", "bandwidth", "line")  # constants of a machine that cannot be zero

# Data sheets of the SXM modules, except for the bandwidth, which is that of large copies.
GPUS = {
    "h100": Machine(
        flops=67 * 10**12,
        bandwidth=30 * 10**11,
        call=12_000,
        cache=50 * 10**6,
        line=SECTOR_BYTES,
        fma=335 * 10**11,
        multiprocessors=132,
        shared=227 * 1024,
    ),
    "h200": Machine(
        flops=67 * 10**12,
        bandwidth=42 * 10**11,
        call=12_000,
        cache=50 * 10**6,
        line=SECTOR_BYTES,
        fma=335 * 10**11,
        multiprocessors=132,
        shared=227 * 1024,
    ),
    "a100": Machine(
        flops=195 * 10**11,
        bandwidth=17 * 10**11,
        call=12_000,
        cache=40 * 10**6,
        line=SECTOR_BYTES,
        fma=97 * 10**11,
        multiprocessors=108,
        shared=163 * 1024,
    ),
}


def default_machine(target: str) -> Machine:
    """The machine that a target is planned for where no other one is known."""
    return GPUS["h100"] if target == "cuda" else Machine()


def parse_machine(text: str, usual: Machine = Machine()) -> Machine:
    """A machine from a name, constants, or a name and constants that differ from its own.

    Args:
        text: text such as ``"h100"``, ``"flops=2e11,bandwidth=1e11"`` or ``"h100,call=5000"``.
        usual: machine of the other constants if the text has no name.

    Raises:
        ArgumentError: a name or a number cannot be used.

    Example:
        >>> parse_machine("flops=2e11,call=5000").bandwidth
        20000000000
        >>> parse_machine("A100, call=5000").multiprocessors
        108
    """
    names = [constant.name for constant in fields(Machine)]
    first, *others = [part.strip() for part in text.split(",")]
    start = GPUS.get(first.lower())
    given: dict[str, int] = {}
    for part in others if start else (first, *others):
        name, _, number = (piece.strip() for piece in part.partition("="))
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if name not in names or not value.is_integer() or value < 0:
            raise ArgumentError(
                f"machine: {part!r:.80} is not {', '.join(GPUS)} or one of {', '.join(names)} with "
                f"an integer; write for example h100, or flops=2e11,bandwidth=1e11"
            )
        given[name] = int(value)
    return replace(start or usual, **given)
