"""The buffers, variables and extents of a kernel, each with a legal and stable name in the source.

Reads level 4. The printers of all targets and the manifest use the same scope, so that source and
manifest never disagree. Names of the user's equations stay as they are if the language allows.
Generated names start with ``tc_`` or ``N_``; a user's name with such a prefix is changed.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..ir.expr import Equal, leaves
from ..ir.loop_analysis import (
    accesses,
    band_of,
    operands_of,
    private_to,
    statements,
    summed_numbers,
    used_buffers,
    written_buffers,
)
from ..ir.loops import (
    Assign,
    BandVar,
    Buffer,
    Gemm,
    Kernel,
    Loop,
    LoopVar,
    Module,
    Parts,
    Stmt,
    Zero,
)
from ..ir.tensor import Space
from ..thresholds.cpu import CpuThresholds

_C_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof
bool complex imaginary true false I NULL INFINITY NAN CMPLX noreturn alignas alignof assert offsetof
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t intptr_t
main memset memcpy errno unix linux i386 math_errhandling strdupa strndupa
isnan isinf isfinite isnormal iszero issubnormal issignaling iscanonical iseqsig isunordered
isless islessequal islessgreater isgreater isgreaterequal fpclassify signbit
sqrt exp log abs fabs cabs sin cos tanh conj creal cimag real imag
sqrtf expf logf fabsf sinf cosf tanhf csqrt cexp clog csin ccos ctanh
tan sinh cosh asin acos atan atan2 pow floor rint log1p expm1 exp2 cbrt hypot fmod copysign
tanf sinhf coshf asinf acosf atanf atan2f powf floorf rintf log1pf expm1f exp2f cbrtf hypotf fmodf
copysignf
"""
_CUDA_WORDS = """
and and_eq bitand bitor bool catch char16_t char32_t char8_t class co_await co_return co_yield
compl concept consteval constexpr constinit const_cast decltype delete dynamic_cast explicit export
false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
public reinterpret_cast requires static_assert static_cast template this thread_local throw true
try typeid typename using virtual wchar_t xor xor_eq final override
threadIdx blockIdx blockDim gridDim warpSize half dim3 int2 int3 int4 float2 float3 float4 double2
double3 double4 min max fma rsqrt hypot erf j0 j1 jn y0 y1 yn norm ceil clock exit free malloc
printf
"""
# Names that headers of C may define: M_PI, SIZE_MAX, TC_STOP. No header defines T_2 or OV.
_HEADER_NAMES = re.compile(r"M_\w+|omp_\w+|(?=(?:[0-9_]*[A-Z]){3})[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Reserved:
    """Names that a language does not allow: words, and those that match a pattern."""

    words: frozenset[str]
    pattern: re.Pattern[str] | None = None

    def __contains__(self, name: str) -> bool:
        matches = self.pattern is not None and self.pattern.fullmatch(name) is not None
        return matches or name in self.words


C_RESERVED = Reserved(frozenset(_C_WORDS.split()), _HEADER_NAMES)
CUDA_RESERVED = Reserved(C_RESERVED.words | frozenset(_CUDA_WORDS.split()), _HEADER_NAMES)
PYTHON_RESERVED = Reserved(frozenset((*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np")))


def legal(name: str, reserved: Reserved) -> str:
    """An identifier as near to ``name`` as the language allows.

    Example:
        >>> [legal(name, C_RESERVED) for name in ("t2", "I", "SIZE_MAX", "tc_x")]
        ['t2', 'I_', 'SIZE_MAX_', 'x_tc_x']
    """
    word = re.sub(r"[^A-Za-z0-9_]", "_", name) or "x"
    if word[0].isdigit() or word.startswith(("_", "tc_", "N_")):
        word = f"x_{word}"
    return f"{word}_" if word in reserved else word


def unique(names: Iterable[str], reserved: Reserved, taken: Iterable[str] = ()) -> list[str]:
    """Identifiers for names in their order; of two equal names the later one is changed.

    Example:
        >>> unique(["e", "I", "e"], C_RESERVED)
        ['e', 'I_', 'e_2']
    """
    used = set(taken)
    result = []
    for name in names:
        word = base = legal(name, reserved)
        number = 2
        while word in used:
            word = f"{base}_{number}"
            number += 1
        used.add(word)
        result.append(word)
    return result


@dataclass(frozen=True, slots=True)
class Scope:
    """A kernel, and names in the source for everything that it uses.

    Attributes:
        buffers: buffers of the kernel by name, in order of first use.
        names, variables: names in the source of buffers, and of host, loop and band variables.
        bases: base spaces of the module, in the order of the extents.
        private: buffers that have a copy for each thread.
        number: position of the kernel in the module.
        ordered: pairs of variables in the source whose first one is never smaller.
        apart: pairs of ``ordered`` that are never equal.
        totals: numbers that the printed loops add up in variables of their own, those of single
            precision in double.
        lengths: lengths in the source of variables that walk several axes at once.
        thresholds: thresholds of blocks and pieces of loops in C.
        counted: whether the printed code counts its flops.
        parts: parts of the module, if the kernel has the loops of their chain.
    """

    kernel: Kernel
    buffers: Mapping[str, Buffer]
    names: Mapping[str, str]
    variables: Mapping[str, str]
    bases: tuple[Space, ...]
    private: frozenset[str]
    number: int
    dtype: str
    ordered: frozenset[tuple[str, str]] = frozenset()
    apart: frozenset[tuple[str, str]] = frozenset()
    totals: Mapping[str, str] = field(default_factory=dict)
    lengths: Mapping[str, str] = field(default_factory=dict)
    thresholds: CpuThresholds = CpuThresholds()
    counted: bool = False
    parts: Parts | None = None

    def walking(self, band: tuple[BandVar, ...]) -> Scope:
        """The scope inside a statement's own loops: rows of triangles are at least columns."""
        names = self.variables
        # Larger variables of each, and whether they are never equal.
        above: dict[str, dict[str, bool]] = {}
        for var in band:
            if var.below is not None:
                larger = {names[var.below]: var.strict}
                for name, strict in above.get(names[var.below], {}).items():
                    larger[name] = strict or var.strict
                above[names[var.name]] = larger
        pairs = {(big, small): s for small, held in above.items() for big, s in held.items()}
        apart = frozenset(pair for pair, strict in pairs.items() if strict)
        return replace(self, ordered=frozenset(pairs), apart=apart) if pairs else self

    def holding(self, buffers: Mapping[str, Buffer], names: Mapping[str, str]) -> Scope:
        """The scope with further buffers, or others of the same names, and their names."""
        return replace(self, buffers={**self.buffers, **buffers}, names={**self.names, **names})

    def order_of(self, places: Sequence[str], *, strict: bool = False) -> tuple[int, ...] | None:
        """Order of some positions, the largest first; None if the loops do not determine it."""
        known = self.apart if strict else self.ordered
        larger = [sum((p, q) in known for p in places) for q in places]
        sort = tuple(sorted(range(len(places)), key=lambda n: larger[n]))
        return sort if sorted(larger) == list(range(len(places))) else None

    @property
    def extents(self) -> tuple[Space, ...]:
        """Base spaces whose extents the kernel needs, in the order of the module."""
        used = {b for s in _spaces(self.kernel, self.buffers) for b in s.bases}
        return tuple(b for b in self.bases if b in used)

    def owned(self) -> tuple[str, ...]:
        """Buffers in memory with a copy for each thread."""
        return tuple(
            n for n, b in self.buffers.items() if b.place == "private" and n in self.private
        )

    def addressed(self) -> tuple[str, ...]:
        """Buffers in memory that all threads of a launch use."""
        return tuple(
            n for n, b in self.buffers.items() if b.place != "register" and n not in self.owned()
        )

    def outside(self) -> tuple[str, ...]:
        """Buffers that live longer than the kernel, and the caller's arrays."""
        return tuple(n for n, b in self.buffers.items() if b.place in ("caller", "arena"))

    def reused(self) -> frozenset[str]:
        """Buffers whose memory another buffer of the kernel may use at another time."""
        held = [b for b in self.buffers.values() if b.place in ("arena", "private") and not b.keep]
        return frozenset(
            a.name for a in held for b in held if a.live[1] < b.live[0] or b.live[1] < a.live[0]
        )

    def written(self) -> frozenset[str]:
        """Buffers that the kernel writes."""
        return frozenset(w for s in self.kernel.body for w in written_buffers(s))

    def read(self) -> frozenset[str]:
        """Buffers whose values the kernel needs, except a tile that it holds in registers."""
        body, mapping = self.kernel.body, self.kernel.mapping
        count = len(body)
        if mapping is not None:
            from ..ir.thread_mapping import Tiles  # noqa: PLC0415  (loaded for GPUs)

            count = len(mapping.terms) if isinstance(mapping, Tiles) else count
        needed = {r for s in body[:count] for r in _reads(s)}
        held = set(written_buffers(body[0])) if count < len(body) else set()
        return frozenset(needed | {r for s in body[count:] for r in _reads(s)} - held)


def make_scope(kernel: Kernel, module: Module, reserved: Reserved) -> Scope:
    """The scope of a kernel; variables are named first, so that index letters stay as they are."""
    used = dict.fromkeys(name for s in kernel.body for name in used_buffers(s))
    buffers = {name: module.buffer(name) for name in used}
    variables = list(dict.fromkeys(v.name for v in _variables(kernel)))
    words = unique([*variables, *used], reserved)
    private = frozenset(
        name
        for loop in kernel.body
        if isinstance(loop, Loop) and loop.parallel
        for name in private_to(loop, kernel, buffers)
    )
    parts, loops = module.parts, [stmt.var for stmt in kernel.body if isinstance(stmt, Loop)]
    return Scope(
        kernel,
        buffers,
        dict(zip(used, words[len(variables) :], strict=True)),
        dict(zip(variables, words, strict=False)),
        module_bases(module),
        private,
        module.position(kernel),
        module.dtype,
        parts=parts if parts is not None and parts.chain[0] in loops else None,
    )


def module_bases(module: Module) -> tuple[Space, ...]:
    """Base spaces in the order of the extents that kernels take."""
    return tuple(dict.fromkeys(base for space in module.spaces for base in space.bases))


def totals(stmt: Loop, scope: Scope) -> frozenset[str]:
    """Numbers that the loop adds up in other variables: one for each thread, or in double."""
    return frozenset(
        name
        for name in summed_numbers(stmt, scope.buffers) - scope.private
        if stmt.parallel or scope.buffers[name].dtype == "float32"
    )


def private_buffers(scope: Scope) -> tuple[str, ...]:
    """Private buffers of a thread block, in the order of their addresses."""
    return tuple(n for n, b in scope.buffers.items() if b.place == "private")


def contractions(kernel: Kernel) -> tuple[Gemm, ...]:
    """Products of a kernel that the generated contraction kernel computes."""
    body = (stmt for stmt, _ in statements(kernel.body))
    return tuple(s for s in body if isinstance(s, Gemm) and s.scheme is not None)


def reduces(stmt: Assign) -> bool:
    """True for a parallel sum over all of the band."""
    held = stmt.out.variables
    return stmt.parallel > 0 and not any(v.name in held for v in stmt.band)


def _reads(stmt: Stmt) -> Iterator[str]:
    for inner, _ in statements((stmt,)):
        if not isinstance(inner, Zero):
            yield from (access.buffer for access in operands_of(inner))
            if inner.accumulate:
                yield inner.out.buffer


def _variables(kernel: Kernel) -> Iterator[LoopVar | BandVar]:
    yield from kernel.host_vars
    for stmt, around in statements(kernel.body):
        yield from (loop.var for loop in around)
        yield from band_of(stmt)


def _spaces(kernel: Kernel, buffers: Mapping[str, Buffer]) -> Iterator[Space]:
    for variable in _variables(kernel):
        yield variable.space
    for name in buffers:
        yield from (a.space for a in buffers[name].axes if a.length is None)
    for stmt in kernel.body:
        for access in accesses(stmt):
            for subscript in access.subscripts:
                yield from subscript.offset
    for inner, _ in statements(kernel.body):
        for leaf in leaves(inner.expr) if isinstance(inner, Assign) else ():
            if isinstance(leaf, Equal):
                yield from (*leaf.left.offset, *leaf.right.offset)
