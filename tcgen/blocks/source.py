"""The C source of a program over blocks: products by the BLAS, copies, and its element-wise maps.

It depends on the equations and the element type, not on the group or the irreps.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._version import __version__
from ..dtypes import BY_NAME, COMPLEX128
from ..emit.c.expressions import expression
from ..emit.c.kernels import function_parts
from ..emit.printing import indented, is_complex, nest
from ..emit.scope import Scope
from ..ir.expr import Access, Delta, Equal, Expr, functions, map_leaves
from ..ir.loops import Buffer, Kernel
from ..ir.pretty.equations import pretty_step
from ..ir.tensor import Ref
from ..resources import fill
from .schedule import MapFunction, ordered
from .tables import MOST_LOOPS


def blocks_source(name: str, functions_: Sequence[MapFunction], dtype: str) -> str:
    """The text of the library of a program over blocks."""
    kind = BY_NAME[dtype]
    called = {f for made in functions_ for f in functions(made.expr)}
    maps = [line for n, made in enumerate(functions_) for line in _map(n, made, dtype)]
    names = ", ".join(f"tc_map_{n}" for n in range(len(functions_))) or "NULL"
    arguments = f"const tc_step *, {kind.c_type} *const *, int, const volatile int *"
    real = "for (int64_t n = 0; n < step->elements; ++n) target[n] = creal(target[n]);"
    return "\n".join(
        (
            *function_parts(name, __version__, dtype, called),
            fill(
                "c/blocks/steps.c",
                kind=kind.letter,
                scalar=kind.c_type,
                real=kind.c_real,
                loops=str(MOST_LOOPS),
            ),
            *maps,
            f"typedef void tc_map({arguments});",
            f"static tc_map *const tc_maps[] = {{{names}}};",
            fill(
                "c/blocks/run.c",
                scalar=kind.c_type,
                real=kind.c_real,
                real_parts=real if kind is COMPLEX128 else ";",
            ),
        )
    )


def _map(number: int, made: MapFunction, dtype: str) -> list[str]:
    """The function of an element-wise step: loops over the rows of a table and over a block."""
    step, kind = made.step, BY_NAME[dtype]
    loops, own = len(step.indices), len(step.out.indices)
    scope, expr = _named(made, dtype)
    value = expression(expr, scope)
    if step.out.tensor.real and is_complex(expr, scope):
        value = f"creal({value})"
    scalar = kind.c_type
    arrays = (step.out, *made.refs)
    setup = ["const int32_t *const e = step->steps + row*step->width;"]
    for n in range(len(arrays)):
        place = f"step->places[{len(arrays)}*row + {n}]"
        setup.append(f"const int32_t *const s{n} = e + {loops * (n + 1)};")
        if n == 0:
            setup.append(f"{scalar} *const b0 = buffers[step->arrays[0]] + {place};")
        else:
            setup.append(
                f"const {scalar} *const b{n} = {place} < 0 ? &tc_nothing : "
                f"buffers[step->arrays[{n}]] + {place};"
            )
    flags = range(len(made.deltas))
    setup += [f"const int64_t shift{n} = e[{loops * (len(arrays) + 1) + n}];" for n in flags]
    places = [tuple(map(step.indices.index, ordered(d))) for d in made.deltas]
    deltas = [
        f"const {kind.c_real} d{n} = shift{n} >= 0 && x{i} + shift{n} == x{j};"
        for n, (i, j) in enumerate(places)
    ]
    last = loops - 1
    # Of each array a pointer and a stride for the fastest loop, whose iterations are independent.
    walked = [dict.fromkeys(step.indices.index(i) for i in ref.indices) for ref in arrays]
    ahead: list[str] = []
    reads: list[str] = []
    for n, ref in enumerate(arrays):
        place = " + ".join(f"x{loop}*s{n}[{loop}]" for loop in walked[n] if loop != last) or "0"
        const = "const " if n else ""
        ahead.append(f"{const}{scalar} *const p{n} = b{n} + {place};")
        moves = last in walked[n]
        if moves:
            ahead.append(f"const int64_t t{n} = s{n}[{last}];")
        if n:
            read = _read(n, f"p{n}[x{last}*t{n}]" if moves else f"*p{n}", ref, dtype)
            (reads if moves else ahead).append(read)
    summed = own < loops
    reads += deltas
    simd = "#pragma omp simd"
    if summed:
        inner = [
            *ahead,
            f"{simd} reduction(+:sum)",
            *nest(_head(last), [*reads, f"sum += {value};"]),
        ]
        for loop in reversed(range(own, last)):
            inner = nest(_head(loop), inner)
        place = " + ".join(f"x{loop}*s0[{loop}]" for loop in range(own)) or "0"
        inner = [f"{scalar} sum = 0;", *inner, f"b0[{place}] += coefficient*sum;"]
    else:
        target = f"p0[x{last}*t0]" if loops else "*p0"
        inner = [
            *reads,
            f"const {scalar} value = coefficient*({value});",
            f"if (step->accumulate) {target} += value;",
            f"else {target} = value;",
        ]
        inner = [*ahead, simd, *nest(_head(last), inner)] if loops else [*ahead, *inner]
    for loop in reversed(range(own if summed else max(0, last))):
        inner = nest(_head(loop), inner)
    body = ["if (*stop) continue;", *setup, *inner]
    return [
        f"/* {pretty_step(step)} */",
        f"static void tc_map_{number}(const tc_step *step, {scalar} *const *buffers, int threads,",
        "    const volatile int *stop)",
        "{",
        f"    const {kind.c_real} coefficient = ({kind.c_real})step->coefficient;",
        "    #pragma omp parallel for schedule(dynamic, 4) num_threads(threads) if (threads > 1)",
        *indented(nest("for (int64_t row = 0; row < step->rows; ++row)", body)),
        "    (void)threads;",
        "}",
    ]


def _head(loop: int) -> str:
    return f"for (int64_t x{loop} = 0; x{loop} < e[{loop}]; ++x{loop})"


def _read(array: int, element: str, ref: Ref, dtype: str) -> str:
    kind = BY_NAME[dtype]
    if ref.tensor.real and kind is COMPLEX128:
        return f"const double v{array} = creal({element});"
    return f"const {kind.c_type} v{array} = {element};"


def _named(made: MapFunction, dtype: str) -> tuple[Scope, Expr]:
    """The expression of variables ``v1``, ``v2``, .. and ``d0``, .., and the scope of these."""
    complex_numbers = dtype == "complex128"
    names: dict[Expr, str] = {}
    buffers = {}
    for n, ref in enumerate(made.refs):
        names[ref] = f"v{n + 1}"
        kind = "float64" if ref.tensor.real and complex_numbers else dtype
        buffers[f"v{n + 1}"] = Buffer(f"v{n + 1}", (), (), kind, "register")
    for n, delta in enumerate(made.deltas):
        names[delta] = f"d{n}"
        kind = "float64" if complex_numbers else dtype
        buffers[f"d{n}"] = Buffer(f"d{n}", (), (), kind, "register")

    def leaf(node: Ref | Access | Delta | Equal) -> Expr:
        return Access(names[node], ())

    kernel = Kernel("blocks", (), (), ())
    scope = Scope(kernel, buffers, {n: n for n in buffers}, {}, (), frozenset(), 0, dtype)
    return scope, map_leaves(made.expr, leaf)
