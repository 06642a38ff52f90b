"""A module as CUDA C++: one function for each kernel, two if a second pass adds partial results.

Reads level 4 with thread mappings and makes the text of ``kernels.cu``; a kernel that is a call of
the library is a comment. It chooses no tile, layout or order: those are written in the module. Only
properties of the language are decided here: names, types, the order of a kernel's arguments.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from ...artifact.grid import NARROW
from ...dtypes import BY_NAME
from ...errors import VerifyError
from ...ir.executed import StatementWork, executed_by
from ...ir.expr import REAL_VALUED, functions
from ...ir.loop_analysis import contraction_of, is_total, statements
from ...ir.loops import Assign, Gemm, Kernel, Module, Zero
from ...ir.pretty.loops import format_product
from ...ir.reduction import Reduction
from ...ir.thread_mapping import (
    Library,
    Nest,
    Points,
    Sums,
    ThreadNest,
    Tiles,
    Transpose,
    resident_blocks,
)
from ...resources import fill, part
from ..parts import FIRST, LAST
from ..printing import kernel_comment, symbol
from ..scope import CUDA_RESERVED, Scope, make_scope, private_buffers
from .expressions import THREADS
from .nest import nest_body, nest_finish, thread_nest_body
from .points import points_body, transpose_body, zero_body
from .sums import sums_body, sums_finish
from .tiles import tiles_body, tiles_finish


def cuda_source(module: Module, version: str) -> str:
    """The text of ``kernels.cu``."""
    head = fill(
        "cuda/head.cu",
        name=module.name,
        version=version,
        dtype=module.dtype,
        narrow=f"{NARROW:,}",
    )
    mappings = [
        tiles
        for k in module.kernels
        for tiles in (k.mapping.products if isinstance(k.mapping, Nest) else (k.mapping,))
    ]
    parts = [head]
    body = [s for k in module.kernels for s, _ in statements(k.body) if isinstance(s, Assign)]
    called = {name for s in body for name in functions(s.expr)}
    if called & REAL_VALUED or any(s.reduction is not Reduction.SUM for s in body):
        parts.append(fill("cuda/functions.cu"))
    if any(isinstance(s, Tiles) for s in mappings):
        parts += [fill("cuda/async.cu"), fill("cuda/tile_loop.cu")]
    if any(isinstance(s, Tiles) and s.tensor_cores for s in mappings):
        parts.append(fill("cuda/mma.cu"))
    work = executed_by(module).by_kernel()
    kernels = [_kernel(kernel, module, work.get(kernel.name, [])) for kernel in module.kernels]
    if any("tc_simplex(" in text for text in kernels):
        parts.append("#define TC_POSITIONS(...) (tc_positions{{__VA_ARGS__}})")
        parts.append(fill("c/simplex.h", inline="__device__ inline", integer="tc_int"))
    return "\n".join([*parts, *kernels])


def finish_symbol(kernel: Kernel) -> str | None:
    """Name of the function that is a kernel's second pass, or None."""
    match kernel.mapping:
        case Sums(splits=splits) | Tiles(splits=splits):
            second = splits > 1 or totals(kernel) > 0
        case Nest(summed=summed):
            second = bool(summed)
        case _:
            second = False
    return f"{symbol(kernel)}_finish" if second else None


def totals(kernel: Kernel) -> int:
    """Number of totals of a tile's epilogue; every block writes its part of each to scratch."""
    if not isinstance(kernel.mapping, Tiles):
        return 0
    after = kernel.body[len(kernel.mapping.terms) :]
    return sum(isinstance(s, Assign) and is_total(s) for s in after)


def library_product(kernel: Kernel) -> tuple[Gemm, Library] | None:
    """The product of a kernel that is a call of a library, and which one; else None."""
    if not isinstance(kernel.mapping, Library):
        return None
    (first, *_) = kernel.body
    product = first if isinstance(first, Gemm) else contraction_of(first)
    return None if product is None else (product, kernel.mapping)


def library_comment(product: Gemm, library: Library) -> str:
    """``cuBLAS: r[i,a] += f[i,c] * t[c,a], m = i, n = a, k = c``."""
    groups = (("batch", product.batch), ("m", product.m), ("n", product.n), ("k", product.k))
    named = [f"{name} = {','.join(v.name for v in group)}" for name, group in groups if group]
    return ", ".join((f"{library}: {format_product(product)}", *named))


def _kernel(kernel: Kernel, module: Module, work: list[StatementWork]) -> str:
    product = library_product(kernel)
    if product is not None:
        kernel = replace(kernel, comment=(*kernel.comment, library_comment(*product)))
    scope = make_scope(kernel, module, CUDA_RESERVED)
    text = kernel_comment(scope, work, "/* ", " * ", " */")
    if product is not None:
        return "\n".join([*text, ""])
    text += _function(symbol(kernel), _body(scope), scope)
    second = finish_symbol(kernel)
    if second is not None:
        text += ["", "/* The second pass: adds the parts of each sum in order. */"]
        text += _function(second, _finish(scope), scope)
    return "\n".join([*text, ""])


def _function(name: str, body: list[str], scope: Scope) -> list[str]:
    written = scope.written()
    arguments = []
    for buffer in scope.outside():
        constant = "" if buffer in written else "const "
        kind = BY_NAME[scope.buffers[buffer].dtype].cuda_type
        arguments.append(f"{constant}{kind} *__restrict__ {scope.names[buffer]}")
    # Scratch memory is for partial sums, or for private buffers.
    if finish_symbol(scope.kernel) is not None or private_buffers(scope):
        arguments.append("char *__restrict__ tc_scratch")
        arguments += ["const tc_int tc_in_shared"] if private_buffers(scope) else []
    arguments += [f"const tc_int N_{space.name}" for space in scope.extents]
    arguments += [f"const tc_int {scope.variables[v.name]}" for v in scope.kernel.host_vars]
    if scope.parts is not None:
        arguments += [f"const tc_int {FIRST}", f"const tc_int {LAST}"]
    bounds = str(threads(scope.kernel))
    match scope.kernel.mapping:
        case Tiles() as mapping:
            bounds += f", {_residence(mapping, scope)}"
        case Nest():
            # Without a number of blocks ptxas spills rather than take more registers.
            bounds += ", 1"
        case _:
            pass
    lines = [*(f"{a}," for a in arguments[:-1]), f"{arguments[-1]})"]
    return part(THREADS, "function", bounds=bounds, name=name, arguments=lines, body=body)


def _residence(mapping: Tiles, scope: Scope) -> int:
    """Thread blocks of a kernel of tiles for which a multiprocessor has registers.

    Kernels with several statements could spill.
    """
    if not mapping.tensor_cores or len(scope.kernel.body) > 1:
        return 1
    out = _only_assign(scope).out
    dtype = BY_NAME[scope.buffers[out.buffer].dtype]
    return max(1, resident_blocks(*mapping.per_thread, dtype))


def threads(kernel: Kernel) -> int:
    """Threads of a block."""
    match kernel.mapping:
        case Tiles(threads_m=m, threads_n=n):
            return m * n
        case Points(count) | Sums(count) | Nest(count) | ThreadNest(count):
            return count
        case Transpose(threads=count):
            return count
        case None | Library():
            raise _unmapped(kernel)
        case _:
            assert_never(kernel.mapping)


def _unmapped(kernel: Kernel) -> VerifyError:
    return VerifyError(f"kernel {kernel.name} has no thread mapping: bind the module to a GPU")


def _body(scope: Scope) -> list[str]:
    body, mapping = scope.kernel.body, scope.kernel.mapping
    match mapping:
        case Points():
            if isinstance(body[0], Zero):
                return zero_body(body[0], mapping, scope)
            return points_body(_only_assign(scope), mapping, scope)
        case Sums():
            return sums_body(_only_assign(scope), mapping, scope)
        case Transpose():
            return transpose_body(_only_assign(scope), mapping, scope)
        case Tiles():
            return tiles_body(assigns(scope.kernel), mapping, scope)
        case Nest():
            return nest_body(mapping, scope)
        case ThreadNest():
            return thread_nest_body(mapping, scope)
        case None | Library():
            raise _unmapped(scope.kernel)
        case _:
            assert_never(mapping)


def _finish(scope: Scope) -> list[str]:
    mapping = scope.kernel.mapping
    if isinstance(mapping, Tiles):
        return tiles_finish(assigns(scope.kernel), mapping, scope)
    if isinstance(mapping, Nest):
        return nest_finish(mapping, scope)
    assert isinstance(mapping, Sums)
    return sums_finish(_only_assign(scope), mapping, scope)


def assigns(kernel: Kernel) -> tuple[Assign, ...]:
    """Assignments of a kernel."""
    return tuple(s for s in kernel.body if isinstance(s, Assign))


def _only_assign(scope: Scope) -> Assign:
    (stmt,) = assigns(scope.kernel)
    return stmt
