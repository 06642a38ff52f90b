"""Predicted times: the formulas that predict seconds, and every fitted constant in them.

====================================  ==========================================================
``Machine``                           steps of a plan (``fusion.solver.time_cost``) and statements
                                      of an artifact (``runtime.part_work``)
``CpuRates``                          copies beside flops: symmetric products
                                      (``ir.halved_products``, ``lower.cpu.symmetric_groups``) and
                                      calls of the BLAS (``lower.layout``)
``GpuRates``                          generated kernel or library (``lower.gpu.library``)
``tile_cycles``, ``thread_tile_work``  threadblock tiles (``lower.gpu.tiles``)
``launch_cycles``                     launches of tiles (``runtime.part_work``)
``NEST_ELEMENT_FLOPS``, ...           nests in one kernel (``fusion.time.block_nests``)
====================================  ==========================================================

Costs of a formula sequence (``algebra``) count operations; the user gives their weights.

Each constant has its unit, its effect, and its source with machine and date. A date is that of the
fit, or, after "since", that of the constant's first use. ``benchmarks/fit_time_model.py`` measures
those of a processor; ``benchmarks/gpu_all.py`` measures the rates of a GPU, and no script repeats
the fit of its tiles.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from ..dtypes import BY_NAME, DType
from ..errors import ArgumentError
from ..hardware import CACHE_LINE_BYTES, SECTOR_BYTES
from .legal_range import UNBOUNDED, threshold

PICOSECONDS_PER_SECOND = 10**12

# m, n and k at which a product on a processor reaches half of the flops, for edges of the register
# tile and the start of the k loop. Source: unknown, since 2026-11-21.
HALF_RATE_MNK = (2, 2, 4)

# Cores that share the bandwidth which one of them can use: larger values favour sequences that move
# fewer bytes. Source: an estimate, 2026-11-29; with 4, CCSD (o=20, v=100) holds no array of v^4.
SHARING_CORES = 4

# Products on a GPU, for plans with loops around them. Source: unknown, since 2026-11-27; with these
# a large product takes at most 1.4 times as long as its flops, and cuBLAS reaches 0.84 of them.
_TILE_SIDES = (16, 32, 64, 128)  # elements
_STEP_K = 16  # points of k that a block loads ahead
_STAGES = 4  # tiles of each factor in shared memory
_HALF_RATE_SIDE = 32  # elements: side of a tile at which shared memory halves the flops
_LEAST_SPLIT_K = 128  # points of k in each part of a split sum
_MOST_SPLITS = 32  # blocks that divide one sum
_FRAGMENT_MNK = (16, 8, 8)  # m, n and k of one operation of the tensor cores: data sheet


@dataclass(frozen=True, slots=True)
class Machine:
    """Constants of one machine; all are integers, so that predicted times are exact.

    A step, or a statement, takes its flops at ``flops``, less the loss in products with a short m,
    n or k (``slowness``), its bytes that pass memory at ``bandwidth``, and ``call`` for each call.

    The defaults stand for one core of a processor. They are rounded numbers of the literature since
    2026-11-21, not measurements: only ratios of predicted times are meaningful.

    Attributes:
        flops: flops per second of a large matrix product; on a GPU that of the tensor cores.
        bandwidth: bytes per second between memory and caches.
        call: nanoseconds to launch one step on one tile.
        generated: flops to produce one element of a generated input.
        cache: bytes of a core's cache, or of a GPU's last one; 0 is a machine without a cache.
        line: bytes that pass between memory and caches at once.
        fma: flops per second without tensor cores; 0 is the same as ``flops``.
        multiprocessors: multiprocessors of a GPU, which share the tiles of a product; 0 is a
            processor.
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
        """Factor by which a matrix product takes longer than its flops at the full rate.

        Args:
            batch: number of products in one launch.
            m: rows of the result.
            n: columns of the result.
            k: points of the sum.
            dtype: element type. A GPU has tensor cores for double precision, and multiplies
                complex numbers by four real products.
            real: number of real factors of a complex product, each of which halves its work.

        Returns:
            A numerator and a denominator.

        Example:
            >>> Machine().slowness(1, 2, 2, 4, dtype="float64")
            (128, 16)
        """
        if not self.multiprocessors:
            (half_m, half_n, half_k) = HALF_RATE_MNK
            return (m + half_m) * (n + half_n) * (k + half_k), m * n * k
        wide, narrow = max(m, n), min(m, n)
        fits = all(x >= least for x, least in zip((wide, narrow, k), _FRAGMENT_MNK, strict=True))
        element = BY_NAME[dtype]
        products = element.parts ** (2 - real)
        rate = self.flops if (element.tensor_cores and fits) or not self.fma else self.fma
        if min(m, n, k) == 1:
            # No tile is read twice, so that bytes decide.
            return products * self.flops, rate
        most = max(_TILE_SIDES[0], self.shared // (_STAGES * 2 * _STEP_K * 8))
        # The stages of larger tiles do not fit shared memory. Each wave takes as long as one tile
        # on one multiprocessor.
        sides = (side for side in _TILE_SIDES if side <= most)
        waves = ((self._wave(batch, m, n, k, side), side) for side in sides)
        slow, side = min(waves, key=lambda wave: wave[0] / wave[1])
        return products * slow * self.flops, side * batch * m * n * k * rate

    def _wave(self, batch: int, m: int, n: int, k: int, side: int) -> int:
        """Points of all waves of a product, times the side of its tiles."""
        tiles = batch * -(-m // side) * -(-n // side)
        idle = max(1, self.multiprocessors // tiles)
        splits = max(1, min(_MOST_SPLITS, k // _LEAST_SPLIT_K, idle))
        waves = -(-tiles * splits // self.multiprocessors)
        deep = -(-k // splits) + _STEP_K
        return waves * self.multiprocessors * side**2 * deep * (side + _HALF_RATE_SIDE)

    def picoseconds(self, flops: int, slowness: tuple[int, int], moved: int, calls: int) -> int:
        """Predicted time of all calls of a step or statement.

        Args:
            flops: flops of all calls.
            slowness: numerator and denominator of :meth:`slowness`.
            moved: bytes of all calls that pass between memory and caches.
            calls: number of calls.
        """
        slow, fast = slowness
        return (
            flops * slow * PICOSECONDS_PER_SECOND // (fast * self.flops)
            + moved * PICOSECONDS_PER_SECOND // self.bandwidth
            + calls * self.call * 1000
        )

    @property
    def cycles_per_second(self) -> float:
        """Cycles in which the multiprocessors of a GPU multiply at the rate ``flops``."""
        return self.flops / (2 * _FLOAT64_MULTIPLY_ADDS * max(1, self.multiprocessors))

    @property
    def picoseconds_per_line(self) -> float:
        """Time of an element that a thread of a GPU reads by itself: a line takes a cycle."""
        each = self.cycles_per_second * self.multiprocessors
        return PICOSECONDS_PER_SECOND / each if self.multiprocessors else 0

    @property
    def flops_per_byte(self) -> float:
        """Flops of all cores in the time in which a byte passes memory, or those of a GPU.

        The cores of a processor share its bandwidth, of which ``bandwidth`` is what one can use.
        """
        return self.flops / self.bandwidth * (1 if self.multiprocessors else SHARING_CORES)

    def caches(self, held: int) -> bool:
        """True if an array of ``held`` bytes stays in the cache, of which others need half."""
        return 2 * held <= self.cache


POSITIVE = ("flops", "bandwidth", "line")  # constants of a machine that cannot be zero

# Data sheets of the SXM modules, except for the bandwidth, which is that of large copies, the flops
# of an H200, which are those of cuBLAS (both measured on an H200: benchmarks/RESULTS.md), and the
# call, whose source is unknown. Since 2026-11-27.
_H100 = Machine(
    flops=67 * 10**12,
    bandwidth=30 * 10**11,
    call=12_000,
    cache=50 * 10**6,
    line=SECTOR_BYTES,
    fma=335 * 10**11,
    multiprocessors=132,
    shared=227 * 1024,
)
GPUS = {
    "h100": _H100,
    "h200": replace(_H100, flops=588 * 10**11, bandwidth=43 * 10**11),
    "a100": replace(
        _H100,
        flops=195 * 10**11,
        bandwidth=17 * 10**11,
        cache=40 * 10**6,
        fma=97 * 10**11,
        multiprocessors=108,
        shared=163 * 1024,
    ),
}


# Share of a GPU's data-sheet bandwidth that large copies reach, for GPUs without a record above.
# Source: unknown, since 2026-11-27.
COPIED_SHARE = (9, 10)


def default_machine(target: str) -> Machine:
    """The machine for which a target is planned if no other one is given."""
    return GPUS["h100"] if target == "cuda" else Machine()


def parse_machine(text: str, usual: Machine = Machine()) -> Machine:
    """A machine from a name, constants, or a name and constants that differ from its own.

    Args:
        text: text of the kind ``"h100"``, ``"flops=2e11,bandwidth=1e11"`` or ``"h100,call=5000"``.
        usual: machine with the other constants if the text has no name.

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


# Statements of a nest that blocks of a GPU compute. Source: estimates, 2026-11-30, not measured.
NEST_ELEMENT_FLOPS = 512  # flops in the time of an element of a statement without a product
NEST_STATEMENT_PICOSECONDS = 10**6  # tables, first copies and barriers of a statement: 1,500 cycles
NEST_CACHE_RATE = 2  # rate of loads from the last cache, in that of memory: see tile_cycles


@dataclass(frozen=True, slots=True)
class CpuRates:
    """Costs of copies and calls on a processor, in flops or copied elements.

    Attributes:
        gemv_reuse: least multiply-adds for each copied element of a matrix-vector product, so that
            its copies pay; larger values give more loops. Source: unknown, since 2026-11-21.
        gemm_call: elements copied in the time of one more call of the BLAS; larger values transpose
            instead of calling the BLAS for each point of a batch. Source: unknown, since
            2026-11-21.
        pair_copy_flops: flops in the time in which an element of a symmetric pair is copied; larger
            values use fewer symmetries. Source: unknown, since 2026-11-21.
        group_reads: cost of reading one element of a group of three or more axes, in copies of
            elements of pairs; larger values keep more intermediates unpacked. Source: unknown,
            since 2026-11-27.
    """

    gemv_reuse: int = threshold(4, 0, UNBOUNDED)
    gemm_call: int = threshold(1000, 0, UNBOUNDED)
    pair_copy_flops: int = threshold(40, 0, UNBOUNDED)
    group_reads: int = threshold(2, 1, UNBOUNDED)


# A product on a GPU by the library or by one generated kernel. Source: unknown, since 2026-11-27.
LIBRARY_TILE_SIDE = 32  # elements: m and n of the library count as multiples of its smallest tile
GENERATED_TILE_SIDE = 16  # elements: the same for generated tiles
_TILE_POINTS = 64 * 64  # points of m and n that occupy one multiprocessor
_SPLIT_K = 256  # points of k that occupy one of several multiprocessors
_TILE_OVERHEAD_K = 16  # prologue and epilogue of a tile, in points of k


@dataclass(frozen=True, slots=True)
class GpuRates:
    """Rates of a GPU, with which a product of the library competes with a generated kernel.

    Times are counted in bytes: how many bytes the GPU copies in the same time.

    Attributes:
        multiprocessors: multiprocessors that thread blocks keep busy. Source: data sheet of the
            NVIDIA H100.
        flops_per_byte: flops of a double-precision product in the time in which a byte is copied;
            larger values favour generated kernels, which transpose nothing. Source: NVIDIA H200,
            61.7 Tflop/s of cuBLAS in product 12 of the TCCG suite, and 4.3 TB/s
            (benchmarks/results/gpu_tccg_h200.json), 2026-11-27.
        launch_bytes: bytes copied in the time of a launch, about 4 microseconds; larger values give
            fewer calls of the library. Source: unknown, since 2026-11-27.
        line_bytes: bytes copied in the time in which each multiprocessor reads an element by
            itself, a line of its cache in a cycle. Source: data sheet of the NVIDIA H200, 132 lines
            in a cycle at 1.74 GHz, and a copy at 4.3 TB/s; MP2 from integrals in memory, which
            reads half of its elements so, took the time that this predicts.
        library_percent: percentage of that rate of flops that the library reaches, by definition.
        tensor_percent: percentage that generated tiles on tensor cores reach. Source: NVIDIA H200,
            58.2 Tflop/s in the same product, 2026-11-27.
        blocked_percent: percentage that such tiles reach if their factors have unit stride along
            different variables of k. Source: NVIDIA H200, 48.0 Tflop/s in product 28, 2026-11-27.
        tile_percent: percentage that generated tiles of other element types reach. Source: unknown,
            since 2026-11-27.
        point_percent: percentage that generated sums without tiles reach. Source: unknown, since
            2026-11-27.
        copy_percent: percentage of the rate of a copy that a transposition reaches. Source:
            unknown, since 2026-11-27.
    """

    multiprocessors: int = threshold(132, 1, 2**10)
    flops_per_byte: int = threshold(14, 1, 1000)
    launch_bytes: int = threshold(2**24, 0, UNBOUNDED)
    line_bytes: int = threshold(19, 0, UNBOUNDED)
    library_percent: int = threshold(100, 1, 100)
    tensor_percent: int = threshold(94, 1, 100)
    blocked_percent: int = threshold(78, 1, 100)
    tile_percent: int = threshold(60, 1, 100)
    point_percent: int = threshold(4, 1, 100)
    copy_percent: int = threshold(60, 1, 100)

    def product_bytes(self, size: ProductSize, moved: int, percent: int, side: int) -> float:
        """Time of a product without copies: that of its arithmetic, or of its reads and writes.

        ``moved`` bytes are read and written. The kernel reaches ``percent`` of the rate of flops;
        m and n count as multiples of ``side`` elements.
        """
        m, n = (-(-count // side) * side for count in (size.m, size.n))
        flops = 2 * size.products * size.batch * m * n * (size.k + _TILE_OVERHEAD_K)
        blocks = max(1, size.batch * m * n // _TILE_POINTS) * max(1, size.k // _SPLIT_K)
        busy = min(1.0, blocks / self.multiprocessors)
        return max(flops * 100 / percent / busy / self.flops_per_byte, moved)

    def copy_bytes(self, copied: int, launches: int) -> float:
        """Time of transpositions that read and write ``copied`` bytes, and of all launches."""
        return copied * 100 / self.copy_percent + launches * self.launch_bytes


@dataclass(frozen=True, slots=True)
class ProductSize:
    """Points of the groups of a product under the planning extents: those of the sum are k.

    One launch has ``batch`` products with m rows and n columns. ``products`` is the number of real
    products in each product of two elements, on the average of all terms.
    """

    batch: int
    m: int
    n: int
    k: int
    products: float


# Tiles of the tensor cores, for each multiprocessor. Source: fitted to the times of contractions of
# the TCCG suite in all tile shapes on an NVIDIA H100, 2026-11-27, where nothing else is said.
TILE_K = 16  # points of k of a tile in shared memory
_FLOAT64_MULTIPLY_ADDS = 128  # multiply-adds in a cycle
_TF32_MULTIPLY_ADDS = 512  # the same of TF32: half of the data sheet's, not measured
_L2_BYTES_PER_CYCLE = 25.0  # loads from the L2 cache by all multiprocessors at once
_MEMORY_BYTES_PER_CYCLE = 12.5  # reads and writes of memory, likewise
_STORED_BYTES_PER_CYCLE = 60.0  # stores of a tile by its block
_SINGLE_BLOCK_LATENCY = 200.0  # cycles for each step in k if one block occupies a multiprocessor
_SINGLE_BLOCK_PENALTY = 1.5  # factor of the time of products of such a block
_BLOCK_PROLOGUE = 1500.0  # cycles in which a block starts and fills its tables
_SECOND_PASS_LAUNCH = 8000.0  # cycles until the pass that adds up split sums has started
_HIDDEN_FRACTION = 0.9  # fraction of the shorter of computing and moving that the longer hides


def tile_cycles(
    tile: tuple[int, int],
    splits: int,
    resident: int,
    size: ProductSize,
    dtype: DType,
    multiprocessors: int,
) -> float:
    """Predicted cycles of a product by tensor cores, which multiply only real numbers.

    ``tile`` has m and n of a threadblock tile; ``splits`` blocks divide the sum of each tile, and
    ``resident`` blocks run on a multiprocessor at a time.
    """
    tile_m, tile_n = tile
    steps = -(-size.k // (TILE_K * splits))
    result = size.m * size.n
    moved = size.m * size.k + size.k * size.n + result * splits
    cycles = dtype.itemsize * size.batch / (_MEMORY_BYTES_PER_CYCLE * multiprocessors)
    memory = moved * cycles
    second_pass = _SECOND_PASS_LAUNCH + result * (splits + 1) * cycles if splits > 1 else 0.0
    rate = _FLOAT64_MULTIPLY_ADDS if dtype.tensor_cores else _TF32_MULTIPLY_ADDS
    products = tile_m * tile_n * TILE_K * size.products / rate
    loads = (tile_m + tile_n) * TILE_K * dtype.itemsize / _L2_BYTES_PER_CYCLE
    stores = tile_m * tile_n * dtype.itemsize * min(splits, 2) / _STORED_BYTES_PER_CYCLE

    def together(blocks: int) -> float:
        """Cycles of some blocks on one multiprocessor."""
        single = _SINGLE_BLOCK_LATENCY + _SINGLE_BLOCK_PENALTY * products
        busy = max(blocks * products, blocks * loads, single)
        return steps * busy + _BLOCK_PROLOGUE + blocks * stores

    tiles = count_tiles(tile, size)
    waves, rest = divmod(tiles * splits, multiprocessors * resident)
    computing = waves * together(resident)
    if rest:
        computing += together(-(-rest // multiprocessors))
    shown = (1 - _HIDDEN_FRACTION) * min(computing, memory)
    return max(computing, memory) + shown + second_pass


# Cycles until a load from memory arrives on an NVIDIA H100. Source: Luo et al., arXiv:2402.13499.
MEMORY_LATENCY = 479.0


def launch_cycles(
    tile: tuple[int, int, int, int, int], size: ProductSize, dtype: DType, multiprocessors: int
) -> float:
    """Cycles of a launch with the waits at the ends of its tiles, which nothing hides.

    ``tile`` has m and n of a tile, the blocks that divide its sum, those on a multiprocessor at a
    time, and the loads, one after the other, for which each waits at its end.
    """
    tile_m, tile_n, splits, resident, waits = tile
    cycles = tile_cycles((tile_m, tile_n), splits, resident, size, dtype, multiprocessors)
    turns = count_tiles((tile_m, tile_n), size) / (multiprocessors * resident)
    return cycles + turns * waits * MEMORY_LATENCY


# Tiles without tensor cores, in the time of a multiply-add. Source: unknown, since 2026-11-21.
_SHARED_READ = 2  # a read of shared memory
_STORED_ELEMENT = 4  # the end of an element of a tile


def thread_tile_work(
    tile: tuple[int, int],
    threads: tuple[int, int],
    splits: int,
    size: ProductSize,
    multiprocessors: int,
) -> float:
    """Work of the busiest multiprocessor without tensor cores, in multiply-adds.

    ``tile`` has m and n of a threadblock tile, ``threads`` those of a block along both; ``splits``
    blocks divide the sum of each tile.
    """
    waves = -(-count_tiles(tile, size) * splits // multiprocessors)
    # Reads of shared memory for each multiply-add.
    reads = threads[0] / tile[0] + threads[1] / tile[1]
    points = -(-size.k // splits)
    each = points * (1 + _SHARED_READ * reads) + _STORED_ELEMENT * splits
    return waves * tile[0] * tile[1] * each


def count_tiles(tile: tuple[int, int], size: ProductSize) -> int:
    """Threadblock tiles of a product."""
    return size.batch * -(-size.m // tile[0]) * -(-size.n // tile[1])
