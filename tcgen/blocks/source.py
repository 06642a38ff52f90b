"""The C source of a program over blocks: products by the BLAS, copies, and its element-wise maps.

It depends on the equations and the element type, not on the group or the irreps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._version import __version__
from ..dtypes import BY_NAME, COMPLEX128
from ..emit.c.expressions import expression
from ..emit.c.kernels import function_parts
from ..emit.c.transposition import transposing_functions
from ..emit.printing import indented, is_complex, nest
from ..emit.scope import Scope
from ..ir.expr import Access, Delta, Equal, Expr, functions, map_leaves
from ..ir.loops import Buffer, Kernel
from ..ir.pretty.equations import pretty_step
from ..ir.tensor import Ref
from ..resources import fill
from .schedule import MapFunction, ordered
from .tables import MOST_LOOPS

_TILE = 8  # orbitals of a tile: a line of memory holds them
_RUN = (
    64  # most iterations of an innermost loop: as many zeros stand for a block that is not stored
)


def blocks_source(name: str, functions_: Sequence[MapFunction], dtype: str) -> str:
    """The text of the library of a program over blocks."""
    kind = BY_NAME[dtype]
    called = {f for made in functions_ for f in functions(made.expr)}
    maps = [line for n, made in enumerate(functions_) for line in _map(n, made, dtype)]
    names = ", ".join(f"tc_map_{n}" for n in range(len(functions_))) or "NULL"
    arguments = f"const tc_step *, {kind.c_type} *const *, int, const volatile int *"
    turns = [] if kind is COMPLEX128 else [f"tc_transpose_{kind.letter}("]
    real = "for (int64_t n = 0; n < step->elements; ++n) target[n] = creal(target[n]);"
    return "\n".join(
        (
            *function_parts(name, __version__, dtype, called),
            *transposing_functions(turns),
            fill(
                "c/blocks/steps.c",
                kind=kind.letter,
                scalar=kind.c_type,
                real=kind.c_real,
                loops=str(MOST_LOOPS),
                zeros=str(_RUN),
                vectors=str(int(kind is not COMPLEX128)),
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
    """The function of an element-wise step: loops over the rows of a table and over a block.

    Elements that the innermost loop reads and writes lie next to each other. Where arrays differ in
    their fastest axis, loops go in tiles, and tiles of some arrays are transposed first.
    """
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
                f"const {scalar} *const b{n} = {place} < 0 ? tc_nothing : "
                f"buffers[step->arrays[{n}]] + {place};"
            )
    flags = range(len(made.deltas))
    setup += [f"const int64_t shift{n} = e[{loops * (len(arrays) + 1) + n}];" for n in flags]
    pairs = [tuple(map(step.indices.index, ordered(d))) for d in made.deltas]
    reads = [
        f"const {kind.c_real} d{n} = shift{n} >= 0 && x{i} + shift{n} == x{j};"
        for n, (i, j) in enumerate(pairs)
    ]
    last, tiled = _tiles(made)
    turned: list[str] = []
    ahead: list[str] = []
    elements: list[str] = []
    for n, ref in enumerate(arrays):
        walked = tuple(step.indices.index(i) for i in ref.indices)
        moves, pointer = last in walked, f"b{n}"
        starts = [f"{'f' if loop == last else 'x'}{loop}*s{n}[{loop}]" for loop in set(walked)]
        step_of_last = "" if made.fastest[n] == last else f"*s{n}[{last}]"
        if n and moves and made.fastest[n] in tiled:
            sides = [loop for loop in (last, *tiled) if loop in walked]
            places = {loop: _TILE**power for power, loop in enumerate(sides)}
            turned += _transposed(n, made.fastest[n], places, walked, scalar)
            starts = [f"(x{loop} - f{loop})*{places[loop]}" for loop in sides[1:]]
            pointer, step_of_last = f"q{n}", ""
        const = "const " if n else ""
        ahead.append(f"{const}{scalar} *const p{n} = {' + '.join([pointer, *starts])};")
        elements.append(f"p{n}[(x{last} - f{last}){step_of_last}]" if moves else f"*p{n}")
        if n:
            (reads if moves else ahead).append(_read(n, elements[n], ref, dtype))
    inner_head = _head(last, f"f{last}", f"l{last}")
    if own < loops:
        inner = [*ahead[1:], "#pragma omp simd reduction(+:sum)"]
        inner += nest(inner_head, [*reads, f"sum += {value};"])
    elif loops:
        inner = [*reads, f"const {scalar} value = coefficient*({value});"]
        inner += [f"if (step->accumulate) {elements[0]} += value;", f"else {elements[0]} = value;"]
        inner = [*ahead, "#pragma omp simd", *nest(inner_head, inner)]
    else:
        inner = [*ahead, f"*p0 = coefficient*({value}) + (step->accumulate ? *p0 : 0);"]
    for loop in reversed(tiled):
        inner = nest(_head(loop, f"f{loop}", f"l{loop}"), inner)
    inner = [*turned, *inner]
    for loop in (*tiled, last) if loops else ():
        side = _TILE if tiled else _RUN
        end = f"const int64_t l{loop} = tc_min(f{loop} + {side}, e[{loop}]);"
        head = f"for (int64_t f{loop} = 0; f{loop} < e[{loop}]; f{loop} += {side})"
        inner = nest(head, [end, *inner])
    for loop in reversed(range(loops)):
        if loop != last and loop not in tiled:
            inner = nest(_head(loop, "0", f"e[{loop}]"), inner)
        if loop == own:
            inner = [f"{scalar} sum = 0;", *inner, ahead[0], "*p0 += coefficient*sum;"]
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


def _head(loop: int, first: str, end: str) -> str:
    return f"for (int64_t x{loop} = {first}; x{loop} < {end}; ++x{loop})"


def _tiles(made: MapFunction) -> tuple[int, tuple[int, ...]]:
    """The innermost loop, and at most two others that are the fastest axis of some array."""
    own, loops = len(made.step.out.indices), len(made.step.indices)
    refs = (made.step.out, *made.refs)
    wide = [n for n, ref in zip(made.fastest, refs, strict=True) if ref.tensor.rank > 1]
    allowed = range(own if own < loops else 0, loops)
    if own == loops:
        last = made.fastest[0]
    else:
        last = max(allowed, key=lambda loop: (wide.count(loop), loop))
    return last, tuple(n for n in sorted({*wide}) if n in allowed and n != last)[:2]


def _transposed(
    array: int, fastest: int, places: Mapping[int, int], walked: Sequence[int], scalar: str
) -> list[str]:
    """Copy a tile so that the innermost loop, the first of ``places``, is the fastest."""
    last, *others = places
    starts = [f"{'f' if n in (fastest, last) else 'x'}{n}*s{array}[{n}]" for n in set(walked)]
    between = [n for n in others if n != fastest]
    target = " + ".join([f"q{array}", *(f"(x{n} - f{n})*{places[n]}" for n in between)])
    source = " + ".join([f"b{array}", *starts])
    lines = [
        f"tc_turn(l{last} - f{last}, l{fastest} - f{fastest}, {source},",
        f"    s{array}[{last}], {target}, {places[fastest]});",
    ]
    for n in between:
        lines = nest(_head(n, f"f{n}", f"l{n}"), lines)
    return [f"{scalar} q{array}[{_TILE ** len(places)}];", *lines]


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
