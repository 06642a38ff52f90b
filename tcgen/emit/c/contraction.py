"""Contractions in C by the generated kernel: groups of axes with their strides, and the call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from ...artifact import kernel_abi as packing
from ...dtypes import BY_NAME, DType
from ...ir.expr import Access
from ...ir.loops import BandVar, Gemm, Module, PackingScheme
from ...resources import part, template_text
from ..printing import extent, literal, product, stored_lengths
from ..scope import Scope, contractions
from .expressions import LOOPS, bounds, group_lengths, pointer
from .stores import counted_product

# Position of the first contraction in the table of functions, behind the BLAS.
_SLOT = 7
_FOLDER = "c/contract"
_INCLUDE = '#include "'
# The source of each part of the kernel, and for micro-kernels how they read A and B.
_SOURCES = {
    "blocks": ("driver.c", ()),
    packing.FALLBACK: ("driver.c", ()),
    "staged": ("staged.c", ()),
    "packed": ("ukernel.c", ("TC_PACKED", "TC_PACKED")),
    "left": ("ukernel.c", ("TC_IN_PLACE", "TC_PACKED")),
    "right": ("ukernel.c", ("TC_PACKED", "TC_IN_PLACE")),
}


def contraction_call() -> str:
    """Declarations that kernels share with the library of contractions."""
    # head.c has the functions of minmax.h.
    return "\n".join(_with_includes("abi.h", {"minmax.h"}))


def contraction_abi() -> str:
    """The same declarations as a header of its own."""
    return "\n".join([*_with_includes("abi.h", set()), ""])


def _with_includes(
    name: str, included: set[str], other: Mapping[str, list[str]] = MappingProxyType({})
) -> list[str]:
    """Lines of a file of the kernel, each header once, in the place of its first include.

    ``other`` has lines that take the place of those of a header.
    """
    lines = []
    for line in other.get(name) or template_text(f"{_FOLDER}/{name}").splitlines():
        if not line.startswith(_INCLUDE):
            lines.append(line)
            continue
        header = line.removeprefix(_INCLUDE).rstrip('"')
        if header not in included:
            included.add(header)
            lines += _with_includes(header, included, other)
    return lines


def contraction_libraries(module: Module, version: str) -> tuple[tuple[str, str], ...]:
    """Sources of the parts of the kernel that a module calls, for each element type.

    They depend on nothing else, so that a machine compiles each of them once. There are several, so
    that they are compiled at the same time, and none that is not needed. Blocks that are only the
    fallback of stages have a name of their own: they are compiled when they are called.
    """
    found = {
        (dtype, part)
        for kernel in module.kernels
        for stmt in contractions(kernel)
        for dtype in [module.buffer(stmt.out.buffer).dtype]
        for part in _parts(stmt, dtype)
    }
    found -= {(dtype, packing.FALLBACK) for dtype, part in found if part == "blocks"}
    return tuple(
        (packing.library(part, dtype), contraction_library(part, dtype, version))
        for dtype, part in sorted(found)
    )


def contraction_library(part: str, dtype: str, version: str, linked: Collection[str] = ()) -> str:
    """Source of one part of the kernel.

    The parts ``linked`` are put together by a linker instead of the runtime: every symbol is
    ``TC_LINKED(name)``, a macro of who compiles them, and micro-kernels are found by their names.
    """
    element = BY_NAME[dtype]
    source, read = _SOURCES[part]
    tables = [_linked_table(tiles, element, linked) for tiles in packing.TILES] if linked else []
    made = f"{part}_{element.letter}" if part in packing.TILES else ""
    lines = [
        f"/* Contractions of {dtype} in any layout, written by tcgen {version}.",
        " * C11 with vectors of GCC and clang. */",
        f"#define TC_REAL {element.c_real}",
        f"#define TC_COMPLEX {element.parts - 1}",
        *(f"#define TC_READ_{x} {how}" for x, how in zip("AB", read, strict=False)),
        *(_linked_names(element.letter, made) if linked else ()),
        *_with_includes(source, set(), {"tables.h": tables}),
    ]
    return "\n".join([*lines, ""])


def _linked_names(letter: str, made: str) -> list[str]:
    """Symbols of a part under the names of the linker; ``made`` is that of its micro-kernels."""
    names = {f"tc_{x}_{letter}": f"{x}_{letter}" for x in (*packing.CALLERS, *packing.TILES)}
    if made:
        names[f"tc_made_{letter}"] = made
    return [f"#define {name} TC_LINKED({linked})" for name, linked in names.items()]


def _linked_table(tiles: str, element: DType, linked: Collection[str]) -> str:
    """Declaration of the micro-kernels of a part; of one that no program needs, an empty table."""
    name = f"tc_{tiles}_{element.letter}"
    if tiles in linked:
        return f"extern const tc_ukernels {name};"
    return f"static const tc_ukernels {name} = {{0}};"


def _parts(stmt: Gemm, dtype: str) -> set[str]:
    """Parts of the kernel that a contraction runs through, whatever its extents."""
    assert stmt.scheme is not None, "a product of the BLAS needs none of it"
    if dtype == "complex128":
        return {"blocks", "packed"}
    left, right = _packed(stmt.scheme)
    parts = {"packed" if right else "right"} | (set() if left else {"left"})
    if not stmt.scheme.stage:
        return {"blocks", *parts}
    in_place = set() if stmt.scheme.pack_a else {"left"}
    return {"staged", packing.FALLBACK, *in_place, *parts}


def _packed(scheme: PackingScheme) -> tuple[bool, bool]:
    """Whether each operand is packed; staged rows are packed if they do not fit the buffer."""
    left = scheme.pack_a or scheme.stage
    return left, scheme.pack_b or not left


def packing_memory(stmt: Gemm, scope: Scope) -> str:
    """Bytes in which one thread packs, of full tiles."""
    sizes = [product([_whole(v) for v in group]) for group in (stmt.m, stmt.n, stmt.k)]
    dtype = BY_NAME[scope.buffers[stmt.out.buffer].dtype]
    assert stmt.scheme is not None, "a product of the BLAS packs in memory of its own"
    given = [str(dtype.parts), *sizes, str(int(stmt.scheme.stages_rows))]
    return f"tc_packing(sizeof({dtype.c_type}), {', '.join(given)})"


def contraction(stmt: Gemm, scope: Scope, *, threads: bool) -> list[str]:
    """The lines of a contraction; ``threads``: it may start threads."""
    dtype = scope.buffers[stmt.out.buffer].dtype
    assert stmt.scheme is not None, "a product of the BLAS is printed elsewhere"
    words = zip(("TC_PACK_A", "TC_PACK_B"), _packed(stmt.scheme), strict=True)
    groups = {
        "m": (stmt.m, stmt.a, stmt.out),
        "n": (stmt.n, stmt.b, stmt.out),
        "k": (stmt.k, stmt.a, stmt.b),
        "b": (stmt.batch, stmt.a, stmt.b),
        "c": (stmt.batch, stmt.out, stmt.out),
    }
    number = _SLOT + BY_NAME[dtype].position
    staged = "staged" in _parts(stmt, dtype)
    call = part(
        LOOPS,
        "staged_call" if staged else "call",
        **({"staged": number + 3} if staged else {}),
        function=number,
        threads="tc_threads" if threads and stmt.parallel else "1",
        flags=" | ".join(word for word, packed in words if packed),
        coefficient=literal(stmt.coeff, dtype),
        left=_start(stmt.a, stmt, scope),
        right=_start(stmt.b, stmt, scope),
        accumulate=int(stmt.accumulate),
        out=_start(stmt.out, stmt, scope),
        memory="tc_packs" if threads else "tc_pack",
        bytes="tc_pack_bytes" if threads else "0",
    )
    lengths = {name: _group(*group, scope) for name, group in groups.items()}
    return part(LOOPS, "contraction", call=call, count=counted_product(stmt, scope), **lengths)


def _whole(var: BandVar) -> str:
    """Points of a variable in a full tile."""
    whole = extent(var.space)
    return whole if var.tile is None else f"tc_min({var.tile}, {whole})"


def _group(group: tuple[BandVar, ...], x: Access, y: Access, scope: Scope) -> str:
    """Lengths and strides of a group; variables below each other make one axis."""
    if not group:
        return "{0}"
    first = [var for var in group if var.below is None]
    counts = group_lengths(group, scope)
    lists = [counts, *([_stride(z, v, scope) for v in first] for z in (x, y))]
    arrays = (f"(const int64_t[]){{{', '.join(numbers)}}}" for numbers in lists)
    return f"{{{len(first)}, {', '.join(arrays)}}}"


def _stride(access: Access, var: BandVar, scope: Scope) -> str:
    """Elements between neighbouring values of a variable; 0 if the access does not have it."""
    buffer = scope.buffers[access.buffer]
    axis = next((n for n, s in enumerate(access.subscripts) if s.variable == var.name), None)
    if axis is None:
        return "0"
    stored = buffer.stored()
    place = next(
        n
        for n, (first, pair) in enumerate(stored)
        if axis == first or (pair is not None and axis in pair.axes)
    )
    return product(stored_lengths(buffer)[place + 1 :])


def _start(access: Access, stmt: Gemm, scope: Scope) -> str:
    """Address of the element at the first value of every variable."""
    starts = {v.name: bounds(v, scope)[0] for v in (*stmt.batch, *stmt.m, *stmt.n, *stmt.k)}
    return pointer(access, scope, starts)
