"""The table of targets of the contraction kernel: register tiles, prefetch and stores by processor.

A row stands for a micro-architecture with an instruction set. ``target_header`` prints the table as
the header ``templates/c/contract/target.h``, in which the preprocessor picks a row: by the
instruction set that the compiler was told (``-march=native``), and by ``TC_CPU_VENDOR``,
``TC_CPU_FAMILY`` and ``TC_CPU_MODEL``, which the runtime takes from CPUID on the machine that
compiles. A processor that no row names gets the generic row of its instruction set;
``-DTC_TARGET=n`` asks for row n.

The block sizes KC, MC and NC are not in the table but in ``artifact.kernel_abi``: they are the same
everywhere, so that sums are added in the same order and packing memory has the same size.

``python -m tcgen.emit.c.targets`` writes the header again after an edit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...artifact import kernel_abi

_NO_LIMIT = 1 << 20  # pages of a sum that has one part


@dataclass(frozen=True, slots=True)
class Target:
    """A row of the table, a micro-architecture; ``COLUMNS`` explains the numbers.

    Attributes:
        chosen: condition of the preprocessor; the first row whose condition holds is taken.
        measured: machine on which its numbers were measured.
    """

    name: str
    chosen: str
    measured: str
    vector_bytes: int
    mr_vectors: int = 3
    nr: int = 8
    unroll_products: int = 4
    unroll_prefetching: int = 1
    prefetch_level: int = 3
    prefetch_c_level: int = 3
    prefetch_gemv_level: int = 3
    streams: int = 1
    stage_pages: int = _NO_LIMIT
    stage_a_bytes: int = 393216
    stage_lines: int = 3


#: The columns, as macros of C, and their meaning.
COLUMNS = {
    "vector_bytes": "bytes of a vector",
    "mr_vectors": "MR, the m of a register tile, in vectors",
    "nr": "NR, the columns of a register tile",
    "unroll_products": "k that the micro-kernel unrolls",
    "unroll_prefetching": "the same where it prefetches a line at each k",
    "prefetch_level": "level to which operands in place are prefetched: 3 first, 2 second",
    "prefetch_c_level": "the same for lines of C that are written in part; 3 is for writing",
    "prefetch_gemv_level": "the same for the matrix of a matrix-vector product",
    "streams": "pages whose lines alternate in a prefetch, to use more memory channels",
    "stage_pages": "most pages of A in place that one part of the sum over k visits",
    "stage_a_bytes": "bytes of a staging buffer where A is read in place",
    "stage_lines": "cache lines of a row of C in that buffer; one less beside a long k",
}

_AVX512: dict[str, Any] = {"vector_bytes": 64, "unroll_products": 2, "unroll_prefetching": 2}
_AVX: dict[str, Any] = {
    "vector_bytes": 32,
    "mr_vectors": 2,  # a cache line, which non-temporal stores write whole
    "nr": 6,
}
_SSE: dict[str, Any] = {"vector_bytes": 16, "nr": 4}
# L1 has few outstanding misses: lines from memory would block other reads there.
_INTEL: dict[str, Any] = {
    "prefetch_level": 2,
    "streams": 6,
    "stage_pages": 24,
    "stage_a_bytes": 196608,
    "stage_lines": 2,
}
_ZEN4: dict[str, Any] = {"prefetch_level": 2, "prefetch_c_level": 2, "prefetch_gemv_level": 2}
_IS_INTEL = "TC_CPU_VENDOR == TC_VENDOR_INTEL"
_IS_ZEN4 = (
    "TC_CPU_VENDOR == TC_VENDOR_AMD && TC_CPU_FAMILY == 25"
    " && (TC_CPU_MODEL/16 == 1 || (TC_CPU_MODEL >= 96 && TC_CPU_MODEL < 176))"
)
_XEON = "a Xeon with AVX-512 and AMX (family 6, model 207), virtual machine"
_EPYC4 = "an EPYC of Zen 4, virtual machine"
_EPYC5 = "an EPYC of Zen 5, virtual machine"

#: Rows in the order in which they are tried.
TARGETS = (
    Target("Intel, AVX-512", f"defined(__AVX512F__) && {_IS_INTEL}", _XEON, **_AVX512, **_INTEL),
    Target("Zen 4", f"defined(__AVX512F__) && {_IS_ZEN4}", _EPYC4, **_AVX512, **_ZEN4),
    Target("generic, AVX-512", "defined(__AVX512F__)", _EPYC5, **_AVX512),
    Target(
        "Intel, AVX",
        f"defined(__AVX__) && {_IS_INTEL}",
        f"{_XEON}, without AVX-512",
        **_AVX,
        **_INTEL,
    ),
    Target(
        "Zen 4, AVX",
        f"defined(__AVX__) && {_IS_ZEN4}",
        f"{_EPYC4}, without AVX-512",
        **_AVX,
        **_ZEN4,
    ),
    Target("generic, AVX", "defined(__AVX__)", f"{_EPYC5}, without AVX-512", **_AVX),
    Target("AArch64", "defined(__aarch64__)", "nothing; tests run under QEMU", **_SSE | {"nr": 8}),
    Target("generic", "1", "nothing", **_SSE),
)

_SIZES = (
    ("TC_KC", kernel_abi.KC, "KC, the most k of a block"),
    ("TC_MC", kernel_abi.MC, "MC, the m of a packed block of A with KC k"),
    ("TC_NC", kernel_abi.NC, "NC, the columns of a block of B with KC k"),
    ("TC_STAGE_ROOM", kernel_abi.STAGE_ROOM, "doubles of two staging buffers and a micro-panel"),
    ("TC_MOST_M", kernel_abi.MOST_M, "most m of a block with fewer k"),
    ("TC_MOST_N", kernel_abi.MOST_N, "most columns of a block with fewer k"),
    ("TC_EDGE", kernel_abi.EDGE, "m or columns by which a block is padded at most"),
)


def target_header(columns: Iterable[str] = COLUMNS) -> str:
    """The header that picks a row and defines its columns as macros."""
    lines = [
        "#ifndef TC_TARGET_H",
        "#define TC_TARGET_H",
        "/* The table of targets, printed by tcgen/emit/c/targets.py, a column for each. */",
        "#define TC_VENDOR_INTEL 1",
        "#define TC_VENDOR_AMD 2",
        "#ifdef TC_TARGET",
    ]
    for number, target in enumerate(TARGETS):
        remark = f"{target.name}; measured on: {target.measured}"
        lines += [f"#elif {target.chosen}", f"#define TC_TARGET {number}  /* {remark} */"]
    lines[-2:] = ["#else", lines[-1]]
    names = [f"t{n}" for n in range(len(TARGETS))]
    lines += [
        "#endif",
        "#define TC_PICK(...) TC_PICK_ROW(TC_TARGET, __VA_ARGS__)",
        "#define TC_PICK_ROW(row, ...) TC_PICK_COLUMN(row, __VA_ARGS__)",
        "#define TC_PICK_COLUMN(row, ...) TC_PICK_##row(__VA_ARGS__)",
        *(f"#define TC_PICK_{n}({', '.join(names)}) {name}" for n, name in enumerate(names)),
    ]
    for column in columns:
        values = ", ".join(str(getattr(t, column)) for t in TARGETS)
        lines.append(f"#define TC_{column.upper()} TC_PICK({values})  /* {COLUMNS[column]} */")
    return "\n".join([*lines, "#endif", ""])


def sizes_header() -> str:
    """The header of the block sizes, which all targets share."""
    lines = [
        "#ifndef TC_SIZES_H",
        "#define TC_SIZES_H",
        "/* Sizes of blocks, printed by tcgen/emit/c/targets.py from artifact/kernel_abi.py. */",
    ]
    lines += [f"#define {name} {value}  /* {meaning} */" for name, value, meaning in _SIZES]
    return "\n".join([*lines, "#endif", ""])


def main() -> None:
    """Write both headers."""
    folder = Path(__file__).parents[3] / "templates" / "c" / "contract"
    (folder / "target.h").write_text(target_header(), encoding="utf-8")
    (folder / "sizes.h").write_text(sizes_header(), encoding="utf-8")


if __name__ == "__main__":
    main()
