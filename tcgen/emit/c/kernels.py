"""A module as C with OpenMP: one function for each kernel, one for each phase of the host program.

Reads level 4 and makes the text of ``kernels.c``. It chooses no loop order, blocking or layout:
those are written in the module. Only properties of the language are decided here: names, types,
declarations, and the addresses of private buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import assert_never

from ...artifact.kernel_abi import pieces_line
from ...dtypes import ALL, BY_NAME, COMPLEX128, FLOAT64, DType
from ...ir.executed import StatementWork, executed_by
from ...ir.expr import Access, functions
from ...ir.loop_analysis import (
    band_of,
    parallel_chain,
    statements,
    summed_in,
    used_buffers,
)
from ...ir.loops import (
    Assign,
    Buffer,
    Fetch,
    Gemm,
    Host,
    HostLoop,
    Kernel,
    Launch,
    Loop,
    LoopVar,
    Module,
    Stmt,
    Zero,
)
from ...ir.reduction import Reduction
from ...records.loops import host_items
from ...resources import fill, part
from ...thresholds.cpu import CpuThresholds
from ...thresholds.time_model import Machine
from ..parts import FIRST, LAST, numbered, skip_lines, starts_chain
from ..printing import elements, extent, indented, kernel_comment, nest, symbol
from ..scope import (
    C_RESERVED,
    Scope,
    contractions,
    make_scope,
    module_bases,
    totals,
    unique,
)
from .contraction import contraction, contraction_call, packing_memory
from .expressions import LOOPS, bounds, element, loop_head
from .gemm import gemm
from .loops import OPENMP, STOPPED, assign
from .pieces import divided, prototypes, within
from .stores import TOTAL, counters, start_of, store
from .transposition import transposing_functions

# Functions of templates/c/vector_math.c.
_VECTOR_FORMS = frozenset(
    ("exp", "log", "sin", "cos", "tanh", "tan", "sinh", "cosh", "arcsin", "arccos", "arctan")
) | {"log1p", "expm1", "exp2", "cbrt", "hypot", "arctan2", "pow"}


def c_source(
    module: Module,
    version: str,
    thresholds: CpuThresholds,
    extents: Mapping[str, int],
    machine: Machine,
    *,
    counted: bool = False,
) -> str:
    """The text of ``kernels.c``; ``counted``: it counts the flops that it executes.

    Planning extents and the machine's constants say which kernels of a large module take time.
    """
    body = [stmt for kernel in module.kernels for stmt, _ in statements(kernel.body)]
    products = [(s, module.buffer(s.out.buffer).dtype) for s in body if isinstance(s, Gemm)]
    called = {name for s in body if isinstance(s, Assign) for name in functions(s.expr)}
    ordered = any(isinstance(s, Assign) and s.reduction.orders for s in body)
    blas = {BY_NAME[dtype] for stmt, dtype in products if stmt.scheme is None}
    work = executed_by(module).by_kernel()
    kernels = [
        _kernel(kernel, module, work.get(kernel.name, []), thresholds, counted=counted)
        for kernel in module.kernels
    ]
    apart = None if counted else divided(module, kernels, extents, machine, thresholds)
    threads, phases = (
        fill("c/threads.c"),
        [
            _phase("constant", module.host_constant, module),
            _phase("volatile", module.host_volatile, module),
        ],
    )
    products_by_blas = _blas_products(blas, linkage="static" if apart is None else "TC_SHARED")
    if apart is not None:
        declared = "".join(
            fill("c/gemm.h", kind=dtype.letter, scalar=dtype.c_type)
            for dtype in sorted(blas, key=lambda dtype: dtype.letter)
        )
        threads = within(0, threads)
        products_by_blas = [within(0, "\n".join(products_by_blas), declared)] if blas else []
        phases = [within(0, "\n".join([prototypes(module), *(p for p in phases if p)]))]
    parts = [
        "" if apart is None else pieces_line(apart.levels),
        fill("c/head.c", name=module.name, version=version, dtype=module.dtype),
        "" if apart is None else fill("c/pieces.c"),
        threads,
        _simplices() if any("TC_POSITIONS(" in text for text in kernels) else "",
        counters(module) if counted else "",
        *_functions(called, ordered=ordered),
        *products_by_blas,
        contraction_call() if any(stmt.scheme for stmt, _ in products) else "",
        *transposing_functions(kernels),
        *(kernels if apart is None else apart.kernels()),
        *phases,
    ]
    return "\n".join(p for p in parts if p)


def function_parts(name: str, version: str, dtype: str, called: Set[str]) -> list[str]:
    """Texts before code of another printer: heads, the functions that it calls, and products."""
    head = fill("c/head.c", name=name, version=version, dtype=dtype)
    functions = _functions(called, ordered=False)
    parts = [head, fill("c/threads.c"), *functions, *_blas_products({BY_NAME[dtype]}, "static")]
    return [p for p in parts if p]


def _functions(called: Set[str], *, ordered: bool) -> list[str]:
    """Functions of expressions; ``ordered``: there are maxima or minima over indices."""
    return [
        fill("c/vector_math.c") if called & _VECTOR_FORMS else "",
        fill("c/reductions.c") if ordered or called & {"maximum", "minimum"} else "",
        fill("c/functions.c") if called & {"sign", "mod", "where", "logaddexp"} else "",
    ]


def _blas_products(dtypes: Set[DType], linkage: str) -> list[str]:
    """Products by the BLAS of some element types."""
    products = [
        _products(dtype, linkage) for dtype in sorted(dtypes, key=lambda dtype: dtype.letter)
    ]
    return [_prefetch_level() if dtypes else "", *products]


def _simplices() -> str:
    """Places on packed axes with positions that are sorted at run time."""
    literal = "#define TC_POSITIONS(...) ((tc_positions){{__VA_ARGS__}})\n"
    return literal + fill("c/simplex.h", inline="static inline", integer="int64_t")


def _prefetch_level() -> str:
    """The level to which a matrix-vector product prefetches, by the table of targets."""
    from .targets import target_header  # noqa: PLC0415  (most modules have no such product)

    return target_header(["prefetch_gemv_level"])


def _products(dtype: DType, linkage: str) -> str:
    """Functions that multiply matrices and vectors by those of the BLAS in the function table."""
    return fill(
        "c/gemv.c",
        "c/gemm.c",
        kind=dtype.letter,
        linkage=linkage,
        scalar=dtype.c_type,
        matrix=str(dtype.position),
        vector=str(len(ALL) + dtype.position),
        # Compilers have no vectors of complex numbers.
        lanes=str(int(dtype is not COMPLEX128)),
    )


def _kernel(
    kernel: Kernel,
    module: Module,
    work: list[StatementWork],
    thresholds: CpuThresholds,
    *,
    counted: bool,
) -> str:
    scope = make_scope(kernel, module, C_RESERVED)
    scope = replace(scope, thresholds=thresholds, counted=counted)
    # The table has the buffers in memory, private ones with the address of the first thread's copy,
    # and then the packing memory of each kernel with contractions.
    table = tuple(b.name for b in module.buffers if b.place != "register")
    written = scope.written()
    lines = [
        f"const int64_t N_{b.name} = tc_extents[{scope.bases.index(b)}];" for b in scope.extents
    ]
    lines += [
        f"const int64_t {scope.variables[v.name]} = tc_host[{n}];"
        for n, v in enumerate(kernel.host_vars)
    ]
    if scope.parts is not None:
        given = len(kernel.host_vars)
        lines.append(f"const int64_t {FIRST} = tc_host[{given}], {LAST} = tc_host[{given + 1}];")
    for name in scope.addressed():
        constant = "" if name in written else "const "
        lines.append(_pointer(scope, name, f"tc_buffers[{table.index(name)}]", constant))
    for name, buffer in scope.buffers.items():
        if buffer.place == "register" and name not in scope.private:
            lines.append(f"{BY_NAME[buffer.dtype].c_type} {scope.names[name]} = 0;")
    packs = list(dict.fromkeys(packing_memory(s, scope) for s in contractions(kernel)))
    if packs:
        packing = [k.name for k in module.kernels if contractions(k)]
        place = len(table) + packing.index(kernel.name)
        lines.append(f"char *const tc_packs = tc_buffers[{place}];")
        lines.append(f"int64_t tc_pack_bytes = {packs[0]};")
        lines += [f"if ({p} > tc_pack_bytes) tc_pack_bytes = {p};" for p in packs[1:]]
    body: list[str] = []
    for stmt in kernel.body:
        if starts_chain(stmt, scope):
            body += _cleared(scope)
        body += _whole(stmt, scope, table)
    text = kernel_comment(scope, work, "/* ", " * ", " */")
    text += part(LOOPS, "function", name=symbol(kernel), declare=lines, body=body)
    return "\n".join([*text, ""])


def _cleared(scope: Scope) -> list[str]:
    """Buffers that a part sets to zero; a run of all parts at once writes all of them."""
    assert scope.parts is not None, "the kernel has the chain"
    lines = [line for name in scope.parts.cleared for line in _zero(scope, name, threads=True)]
    return part(LOOPS, "cleared", last=LAST, zeros=lines) if lines else []


def _whole(stmt: Stmt, scope: Scope, table: tuple[str, ...]) -> list[str]:
    """A statement of the kernel; numbers that its loops add up have variables of their own."""
    names = sorted(totals(stmt, scope)) if isinstance(stmt, Loop) else []
    named = {name: f"{TOTAL}{scope.names[name]}" for name in names}
    lines = _statement(stmt, replace(scope, totals=named), table, threads=True)
    if not names:
        return lines
    kinds = {total: _total_type(scope.buffers[name]) for name, total in named.items()}
    places = {total: element(Access(name, ()), scope) for name, total in named.items()}
    if isinstance(stmt, Loop) and stmt.parallel:
        lines = _totals_of_threads(kinds, lines)
    return part(
        LOOPS,
        "totals",
        declare=[f"{kinds[total]} {total} = {place};" for total, place in places.items()],
        loops=lines,
        store=[f"{place} = {total};" for total, place in places.items()],
    )


def _total_type(buffer: Buffer) -> str:
    """Single precision is added up in double."""
    return (COMPLEX128 if buffer.dtype == "complex128" else FLOAT64).c_type


def _totals_of_threads(kinds: dict[str, str], lines: list[str]) -> list[str]:
    """Each thread adds up its part of some totals; the parts are added in the order of threads."""
    declare, slots = [], {}
    for total, kind in kinds.items():
        # The part of each thread is on a cache line of its own.
        parts, apart = total.replace(TOTAL, "tc_parts_"), f"(64/(int)sizeof({kind}))"
        declare.append(f"{kind} {parts}[tc_threads*{apart}];")
        slots[total] = f"{parts}[{{}}*{apart}]"
    own, each = "omp_get_thread_num()", "tc_n"
    return part(
        LOOPS,
        "totals_of_threads",
        declare=declare,
        clear=" ".join(f"{slot.format(each)} = 0;" for slot in slots.values()),
        starts=[f"{kind} {total} = 0;" for total, kind in kinds.items()],
        loops=lines,
        ends=[f"{slot.format(own)} = {total};" for total, slot in slots.items()],
        add=" ".join(f"{total} += {slot.format(each)};" for total, slot in slots.items()),
    )


def _bytes(buffer: Buffer) -> str:
    count = elements(buffer)
    return f"{count}*(int64_t)sizeof({BY_NAME[buffer.dtype].c_type})"


def _pointer(scope: Scope, name: str, start: str, constant: str = "") -> str:
    """Declaration of a pointer, without ``restrict`` if other buffers use the same memory."""
    kind = BY_NAME[scope.buffers[name].dtype].c_type
    promise = "" if name in scope.reused() else "restrict "
    return f"{constant}{kind} *{promise}{scope.names[name]} = {start};"


def _statement(stmt: Stmt, scope: Scope, table: tuple[str, ...], *, threads: bool) -> list[str]:
    match stmt:
        case Loop():
            return _loop(stmt, scope, table, threads=threads)
        case Zero(name, reduction=Reduction.SUM):
            return _zero(scope, name, threads=threads)
        case Zero(name):
            return _filled(scope, name, start_of(stmt.reduction, scope), threads=threads)
        case Assign():
            return assign(stmt, scope, threads=threads)
        case Gemm(scheme=None):
            return gemm(stmt, scope, threads=threads)
        case Gemm():
            return contraction(stmt, scope, threads=threads)
        case _:
            assert_never(stmt)


def _loop(stmt: Loop, scope: Scope, table: tuple[str, ...], *, threads: bool) -> list[str]:
    if stmt.vector and not (stmt.parallel and threads):
        return _on_vectors(stmt, scope, table, loop_head(stmt.var, scope))
    if not (stmt.parallel and threads):
        body = [
            line for inner in stmt.body for line in _statement(inner, scope, table, threads=threads)
        ]
        if numbered(stmt.var, scope):
            body = [*skip_lines(scope, "int64_t"), *body]
        if _checks_stop(stmt):
            body = [STOPPED, *body]
        return nest(loop_head(stmt.var, scope), body)
    chain = tuple(parallel_chain(stmt))
    heads, guards = _collapsed(tuple(loop.var for loop in chain), scope)
    if any(numbered(loop.var, scope) for loop in chain):
        guards += skip_lines(scope, "int64_t")
    last = chain[-1]
    start = [*guards, *_own_memory(last, scope, table)]
    if last.vector and len(chain) == 1 and not scope.totals:
        body = [
            line for inner in last.body for line in _statement(inner, scope, table, threads=False)
        ]
        simd = "#pragma omp parallel for simd schedule(static) num_threads(tc_threads)"
        return [simd, *nest(heads[0], [*start, *body])]
    if last.vector and len(chain) == 1:  # threads divide the pieces, and the vector unit each piece
        name, piece = scope.variables[last.var.name], scope.thresholds.sum_piece
        low, high = bounds(last.var, scope)
        stop = f"tc_min(tc_piece + {piece}, {high})"
        head = f"for (int64_t {name} = tc_piece; {name} < {stop}; ++{name})"
        body = _on_vectors(last, scope, table, head, start)
        lines = part(LOOPS, "pieces", low=low, high=high, piece=piece, body=body)
        return ["#pragma omp for schedule(static) nowait", *lines]
    if last.vector:
        lines = [STOPPED, *_on_vectors(last, scope, table, heads.pop(), start)]
    else:
        check = [STOPPED] if _checks_stop(last) else []
        lines = [*check, *start]
        for inner in last.body:
            lines += _statement(inner, scope, table, threads=False)
    for head in reversed(heads):
        lines = nest(head, lines)
    collapse = f" collapse({len(heads)})" if len(heads) > 1 else ""
    # Sums of threads are reproducible only if each thread has the same iterations in each run.
    if scope.totals:
        return [f"#pragma omp for{collapse} schedule(static, 1) nowait", *lines]
    clauses = f"{collapse} schedule(dynamic) num_threads(tc_threads)"
    return [f"#pragma omp parallel for{clauses}", *lines]


def _on_vectors(
    stmt: Loop, scope: Scope, table: tuple[str, ...], head: str, start: Sequence[str] = ()
) -> list[str]:
    """A loop for the vector unit; elements to which it adds have sums of their own meanwhile."""
    sums = summed_in(stmt)
    named = {name: f"tc_sum_{scope.names[name]}" for name in sorted(sums)}
    inside = replace(scope, totals={**scope.totals, **named})
    body = [*start]
    for inner in stmt.body:
        body += _statement(inner, inside, table, threads=False)
    clauses = "".join(
        f" reduction({OPENMP[sums[name].reduction]}:{own})" for name, own in named.items()
    )
    lines = [f"#pragma omp simd{clauses}", *nest(head, body)]
    if not sums:
        return lines
    firsts = {own: start_of(sums[name].reduction, scope) for name, own in named.items()}
    return part(
        LOOPS,
        "totals",
        declare=[f"double {own} = {first};" for own, first in firsts.items()],
        loops=lines,
        store=[line for name, own in named.items() for line in store(sums[name], scope, own)],
    )


def _checks_stop(stmt: Loop) -> bool:
    """True for a loop around others, which checks in each iteration if the kernel must stop."""
    return not stmt.vector and any(
        isinstance(inner, Loop) or (not isinstance(inner, Zero) and bool(band_of(inner)))
        for inner in stmt.body
    )


def _collapsed(chain: tuple[LoopVar, ...], scope: Scope) -> tuple[list[str], list[str]]:
    """Heads of collapsed loops, triangles as squares, and guards that skip the other halves."""
    names = {var.name for var in chain}
    heads, guards = [], []
    for var in chain:
        if var.below in names:
            word, row = scope.variables[var.name], scope.variables[var.below]
            guards.append(f"if ({word} > {row}) continue;")
            var = replace(var, below=None)
        heads.append(loop_head(var, scope))
    return heads, guards


def _own_memory(stmt: Loop, scope: Scope, table: tuple[str, ...]) -> list[str]:
    """Declarations of the private buffers and packing memory of a thread in a parallel loop."""
    used = {name for inner in stmt.body for name in used_buffers(inner)}
    mine = [name for name in scope.owned() if name in used]
    lines = []
    if mine:
        stride = f"tc_strides[{scope.number}]"
        lines.append(f"const int64_t tc_skip = omp_get_thread_num()*{stride};")
    for name in mine:
        start = f"(void *)((char *)tc_buffers[{table.index(name)}] + tc_skip)"
        lines.append(_pointer(scope, name, start))
    if any(isinstance(s, Gemm) and s.scheme is not None for s, _ in statements(stmt.body)):
        lines.append("char *const tc_pack = tc_packs + omp_get_thread_num()*tc_pack_bytes;")
    for name, buffer in scope.buffers.items():
        if buffer.place == "register" and name in scope.private and name in used:
            lines.append(f"{BY_NAME[buffer.dtype].c_type} {scope.names[name]} = 0;")
    return lines


def _zero(scope: Scope, name: str, *, threads: bool) -> list[str]:
    buffer, word = scope.buffers[name], scope.names[name]
    if buffer.place == "register":
        return [f"{word} = 0;"]
    return [f"tc_zero({word}, {_bytes(buffer)}, {'tc_threads' if threads else '1'}, tc_stop);"]


def _filled(scope: Scope, name: str, value: str, *, threads: bool) -> list[str]:
    buffer, word = scope.buffers[name], scope.names[name]
    if buffer.place == "register":
        return [f"{word} = {value};"]
    count = elements(buffer)
    parallel = "#pragma omp parallel for simd schedule(static) num_threads(tc_threads)"
    pragma = f"{parallel} if ({count} > TC_PARALLEL_POINTS)" if threads else "#pragma omp simd"
    head = f"for (int64_t tc_n = 0; tc_n < {count}; ++tc_n)"
    return [pragma, f"{head} {word}[tc_n] = {value};"]


def _phase(name: str, host: tuple[Host, ...], module: Module) -> str:
    """A function for a phase, unless the runtime walks its loops to fetch tiles or divide them."""
    kernels = {k.name: k for k in module.kernels}
    parts = module.parts if name == "volatile" else None
    with_chain = None if parts is None else parts.kernel
    if (
        not host
        or any(isinstance(item, Fetch) for item in host_items(host))
        or (parts is not None and with_chain is None)
    ):
        return ""
    bases = module_bases(module)
    variables = [item.var for item in host_items(host) if isinstance(item, HostLoop)]
    names = list(dict.fromkeys(v.name for v in variables))
    words = dict(zip(names, unique(names, C_RESERVED), strict=True))
    spaces = {b for v in variables for b in v.space.bases}
    lines = [
        f"const int64_t N_{b.name} = tc_extents[{n}];" for n, b in enumerate(bases) if b in spaces
    ]

    def walk(items: tuple[Host, ...]) -> list[str]:
        text: list[str] = []
        for item in items:
            match item:
                case HostLoop(var, body):
                    text += _host_loop(var, words, walk(body))
                case Launch(kernel):
                    values = [words[v.name] for v in kernels[kernel].host_vars]
                    values += [FIRST, LAST] if kernel == with_chain else []
                    given = f"(const int64_t[]){{{', '.join(values)}}}" if values else "NULL"
                    call = part(LOOPS, "launch", kernel=symbol(kernels[kernel]), values=given)
                    if parts is not None and kernel in parts.once:
                        call = part(LOOPS, "first_part", first=FIRST, launch=call)
                    text += call
                case Fetch():
                    continue
                case _:
                    assert_never(item)
        return text

    text = [*lines, *walk(host)]
    numbers = "" if parts is None else f", int64_t {FIRST}, int64_t {LAST}"
    return fill("c/phase.c", phase=name, numbers=numbers, body="\n".join(indented(text)))


def _host_loop(var: LoopVar, words: dict[str, str], body: list[str]) -> list[str]:
    name, stop = words[var.name], extent(var.space)
    if var.below is not None:
        stop = f"tc_min({stop}, {words[var.below]} + 1)"
    step = f"{name} += {var.tile}" if var.tile else f"++{name}"
    return part(LOOPS, "host_loop", name=name, stop=stop, step=step, body=body)
