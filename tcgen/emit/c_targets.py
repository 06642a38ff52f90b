"""The table of targets of the contraction kernel: register tiles, prefetch and stores by processor.

One row for each micro-architecture and instruction set. ``target_header`` prints the table as the C
header ``templates/c/contract/target.h``, in which the preprocessor picks a row: by the instruction
set that the compiler was told (``-march=native``), and by ``TC_CPU_VENDOR``, ``TC_CPU_FAMILY`` and
``TC_CPU_MODEL``, which the runtime reads from CPUID on the machine that compiles. A processor that no
row names gets the generic row of its instruction set. ``-DTC_TARGET=n`` asks for row n.

Block sizes KC, MC and NC are not in the table: they are the same everywhere, so that sums are added
in the same order and a report of the memory to pack in holds on every machine.

After an edit run ``python -m tcgen.emit.c_targets``, which writes the header.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from ..runtime import packing

_NO_LIMIT = 1 << 20  # pages of a part of a sum that is never divided


@dataclass(frozen=True, slots=True)
class Target:
    """A row.

    Attributes:
        name: micro-architecture and instruction set.
        chosen: condition of the preprocessor; the first row whose condition holds is taken.
        measured: where its numbers come from.
    """

    name: str
    chosen: str
    measured: str
    vector_bytes: int
    mr_vectors: int = 3
    nr: int = 8
    unroll: int = 4
    unroll_prefetching: int = 1
    prefetch_level: int = 3
    c_prefetch_level: int = 3
    gemv_prefetch_level: int = 3
    streams: int = 1
    streams_always: int = 0
    non_temporal_stores: int = 1
    stage_pages: int = _NO_LIMIT
    stage_a_bytes: int = 393216
    stage_lines: int = 3
    stage_lines_long_k: int = 2
    stage_run_bytes: int = 0
    buffer_bytes: int = 51200
    buffer_row_bytes: int = 1536


#: What each column means, in the order of the table.
COLUMNS = {
    "vector_bytes": "Bytes of a vector register.",
    "mr_vectors": "Vectors of MR, the m of a register tile.",
    "nr": "NR, the columns of a register tile.",
    "unroll": "k that the micro-kernel unrolls,",
    "unroll_prefetching": "and where it prefetches a line at each of them.",
    "prefetch_level": "Cache level to which operands in place are prefetched: 3 is the first, 2 the second.",
    "c_prefetch_level": "The same for lines of C that are written in part; 3 prefetches them for writing.",
    "gemv_prefetch_level": "The same for the matrix of a matrix-vector product.",
    "streams": "Pages whose lines alternate in a prefetch, so that more channels of the memory are busy,",
    "streams_always": "1: always; 0: where a block has as many pages and each holds several k.",
    "non_temporal_stores": "1: a large C is stored past the caches.",
    "stage_pages": "Pages of A in place that one part of the sum over k visits.",
    "stage_a_bytes": "Bytes of a staging buffer where A is read in place.",
    "stage_lines": "Cache lines of a row of C in such a block,",
    "stage_lines_long_k": "and beside a long k.",
    "stage_run_bytes": "Bytes of a staging buffer that holds a whole run of m: a quarter of the second-level cache.",
    "buffer_bytes": "Bytes of the buffer that collects lines of C for non-temporal stores,",
    "buffer_row_bytes": "and of one row of the columns in it.",
}

_SHAPE_512 = {"vector_bytes": 64, "unroll": 2, "unroll_prefetching": 2}
_SHAPE_256 = {
    "vector_bytes": 32,
    "mr_vectors": 2,
    "nr": 6,
    "buffer_bytes": 71680,
    "buffer_row_bytes": 768,
}
_INTEL = {
    "prefetch_level": 2,
    "streams": 6,
    "streams_always": 1,
    "stage_pages": 24,
    "stage_a_bytes": 196608,
    "stage_lines": 2,
    "stage_lines_long_k": 1,
}
_ZEN4 = {"prefetch_level": 2, "c_prefetch_level": 2, "gemv_prefetch_level": 2}
_ZEN4_MODELS = (
    "TC_CPU_FAMILY == 25 && ((TC_CPU_MODEL >= 0x10 && TC_CPU_MODEL < 0x20)"
    " || (TC_CPU_MODEL >= 0x60 && TC_CPU_MODEL < 0xb0))"
)

TARGETS = (
    Target(
        "sapphire_rapids",
        "defined(__AVX512F__) && TC_CPU_VENDOR == TC_INTEL_CPU && TC_CPU_FAMILY == 6"
        " && (TC_CPU_MODEL == 0x8f || TC_CPU_MODEL >= 0xad)",
        "Xeon of family 6, model 207, 2 MiB second-level cache",
        **_SHAPE_512,
        **_INTEL,
        stage_run_bytes=524288,
        buffer_row_bytes=384,
    ),
)
