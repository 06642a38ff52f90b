"""A module as CUDA C++: one function for each kernel, two where a second pass adds parts.

Reads level 4 with shares, makes the text of ``kernels.cu``. It chooses no tile, layout or order:
those are written in the module. What depends on the language alone is decided here: names, types,
the order of a kernel's arguments.
"""

from __future__ import annotations

from typing import assert_never

from ...dtypes import BY_NAME
from ...errors import VerifyError
from ...ir.loop_analysis import is_total
from ...ir.loops import Assign, Kernel, Module, Zero
from ...ir.thread_mapping import Nest, Points, Sums, Tiles, Turned
from ...resources import fill
from ..kernel_comment import kernel_comment
from ..names import CUDA_RESERVED
from ..printing import indented, symbol
from ..scope import Scope, make_scope, private_buffers
from .nest import nest_body
from .points import points_body, sums_body, sums_finish, zero_body
from .tiles import tiles_body, tiles_finish
from .transpose import turned_body

_MOST_SUMS = 32  # of float64 in 64 registers of a thread


def cuda_source(module: Module, version: str) -> str:
    """The text of ``kernels.cu``."""
    head = fill("cuda/head.cu", name=module.name, version=version, dtype=module.dtype)
    shares = [k.share for k in module.kernels]
    parts = [head]
    if any(isinstance(s, Tiles) for s in shares):
        parts.append(fill("cuda/async.cu"))
    if any(isinstance(s, Tiles) and s.tensor_cores for s in shares):
        parts.append(fill("cuda/mma.cu"))
    return "\n".join([*parts, *(_kernel(kernel, module) for kernel in module.kernels)])


def finish_symbol(kernel: Kernel) -> str | None:
    """Name of the function that is a kernel's second pass, or None."""
    split = isinstance(kernel.share, Sums | Tiles) and kernel.share.splits > 1
    return f"{symbol(kernel)}_finish" if split or totals(kernel) else None


def totals(kernel: Kernel) -> int:
    """Numbers to which the epilogue of a kernel of tiles adds, each with a part of every block."""
    if not isinstance(kernel.share, Tiles):
        return 0
    after = kernel.body[len(kernel.share.terms) :]
    return sum(isinstance(s, Assign) and is_total(s) for s in after)


def scratch_argument(scope: Scope) -> bool:
    """True where a kernel takes scratch memory: for parts of sums, or for private buffers."""
    return finish_symbol(scope.kernel) is not None or bool(private_buffers(scope))


def _kernel(kernel: Kernel, module: Module) -> str:
    scope = make_scope(kernel, module, CUDA_RESERVED)
    text = kernel_comment(scope, "/* ", " * ", " */")
    text += _function(symbol(kernel), _body(scope, module.dtype), scope)
    second = finish_symbol(kernel)
    if second is not None:
        text += ["", "/* The second pass: adds the parts of each sum in order. */"]
        text += _function(second, _finish(scope, module.dtype), scope)
    return "\n".join([*text, ""])


def _function(name: str, body: list[str], scope: Scope) -> list[str]:
    written = scope.written()
    arguments = []
    for buffer in scope.outside():
        constant = "" if buffer in written else "const "
        kind = BY_NAME[scope.buffers[buffer].dtype].cuda_type
        arguments.append(f"{constant}{kind} *__restrict__ {scope.names[buffer]}")
    if scratch_argument(scope):
        arguments.append("char *__restrict__ tc_scratch")
        arguments += ["const tc_int tc_in_shared"] if private_buffers(scope) else []
    arguments += [f"const tc_int N_{space.name}" for space in scope.extents]
    arguments += [f"const tc_int {scope.variables[v.name]}" for v in scope.kernel.host_vars]
    bounds = str(threads(scope.kernel))
    if isinstance(scope.kernel.share, Tiles):
        bounds += f", {_residence(scope.kernel.share, scope)}"
    head = f'extern "C" __global__ void __launch_bounds__({bounds})'
    return [head, f"{name}(", *_lines(arguments), "{", *indented(body), "}"]


def _residence(share: Tiles, scope: Scope) -> int:
    """Blocks of a kernel of tiles for which a multiprocessor has registers.

    Two hide each other's waits; with 256 threads that leaves a thread 128 registers. A product by
    the tensor cores needs no more where its sums take half of them; others could spill the tile.
    """
    sums = share.height * share.width // threads(scope.kernel)
    alone = len(scope.kernel.body) == 1
    return 2 if share.tensor_cores and alone and sums <= _MOST_SUMS else 1


def _lines(arguments: list[str]) -> list[str]:
    last = len(arguments) - 1
    return [f"    {a}{')' if n == last else ','}" for n, a in enumerate(arguments)]


def threads(kernel: Kernel) -> int:
    """Threads of a block."""
    match kernel.share:
        case Tiles(high=high, wide=wide):
            return high * wide
        case Points(count) | Sums(count) | Nest(count) | Turned(threads=count):
            return count
        case None:
            raise VerifyError(f"kernel {kernel.name} does not say how a GPU shares its work")
        case _:
            assert_never(kernel.share)


def _body(scope: Scope, dtype: str) -> list[str]:
    body, share = scope.kernel.body, scope.kernel.share
    match share:
        case Points():
            if isinstance(body[0], Zero):
                return zero_body(body[0], share, scope)
            return points_body(_only_assign(scope), share, scope, dtype)
        case Sums():
            return sums_body(_only_assign(scope), share, scope, dtype)
        case Turned():
            return turned_body(_only_assign(scope), share, scope, dtype)
        case Tiles():
            return tiles_body(_assigns(scope), share, scope, dtype)
        case Nest():
            return nest_body(share, scope, dtype)
        case None:
            raise VerifyError(f"kernel {scope.kernel.name} does not say how a GPU shares its work")
        case _:
            assert_never(share)


def _finish(scope: Scope, dtype: str) -> list[str]:
    share = scope.kernel.share
    if isinstance(share, Tiles):
        return tiles_finish(_assigns(scope), share, scope, dtype)
    assert isinstance(share, Sums)
    return sums_finish(_only_assign(scope), share, scope, dtype)


def _assigns(scope: Scope) -> tuple[Assign, ...]:
    return tuple(s for s in scope.kernel.body if isinstance(s, Assign))


def _only_assign(scope: Scope) -> Assign:
    (stmt,) = _assigns(scope)
    return stmt
