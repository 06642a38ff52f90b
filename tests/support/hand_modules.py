"""Modules written by hand, one for each statement and flag that printers must understand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tcgen.ir.expr import Access, Call, Const, Equal, Pow, Prod, Quot, Subscript, Sum
from tcgen.ir.loop_analysis import positions
from tcgen.ir.loops import (
    Assign,
    Axis,
    BandVar,
    Buffer,
    Fetch,
    Gemm,
    HostLoop,
    Kernel,
    Launch,
    Loop,
    LoopVar,
    Module,
    Stmt,
    Zero,
)
from tcgen.ir.tensor import Packing, Role, Space, Storage, Symmetry, Tensor, element_type

O, V = Space("o"), Space("v")
P = Space("p", parts=(O, V))
EXTENTS = {"o": 5, "v": 7}


def at(buffer: str, *subscripts: str | Subscript | None) -> Access:
    """``buffer[i,j]``; None is an axis contracted to one element."""
    return Access(
        buffer, tuple(s if isinstance(s, Subscript) else Subscript(s) for s in subscripts)
    )


def caller(tensor: Tensor, dtype: str) -> Buffer:
    """The buffer that is the caller's array."""
    return Buffer(
        tensor.name,
        tuple(Axis(s) for s in tensor.spaces),
        tensor.stored_order,
        element_type(tensor, dtype),
        "caller",
        tensor,
        tensor.storage.packed,
    )


def local(name: str, *axes: Axis, place: str = "private", **more: object) -> Buffer:
    """A buffer that is not the caller's, double precision until the module says otherwise."""
    return Buffer(name, axes, tuple(range(len(axes))), "float64", place, **more)  # type: ignore[arg-type]


def tensor(name: str, *spaces: Space, role: Role = Role.INPUT, **more: object) -> Tensor:
    """An input unless it says otherwise."""
    return Tensor(name, spaces, role, **more)  # type: ignore[arg-type]


def output(name: str, *spaces: Space, **more: object) -> Tensor:
    """A result."""
    return tensor(name, *spaces, role=Role.OUTPUT, **more)


def module(
    name: str,
    tensors: tuple[Tensor, ...],
    *bodies: tuple[Stmt, ...],
    buffers: tuple[Buffer, ...] = (),
    dtype: str = "float64",
    comment: str = "by hand",
) -> Module:
    """A verified module that launches one kernel for each body, all at each call.

    Its own buffers live all the time.
    """
    kernels = tuple(Kernel(f"{name}_{n}", (comment,), (), b) for n, b in enumerate(bodies))
    made = Module(
        name,
        dtype,
        (O, V, P),
        tensors,
        (
            *(caller(t, dtype) for t in tensors if t.role is not Role.GENERATED),
            *(replace(b, dtype=dtype) for b in buffers),
        ),
        kernels,
        (),
        tuple(Launch(k.name) for k in kernels),
    )
    last = max((n for uses in positions(made).uses.values() for n in uses), default=0)
    made = replace(
        made,
        buffers=tuple(
            b if b.place == "caller" else replace(b, live=(0, last)) for b in made.buffers
        ),
    )
    made.verify()
    return made


def gemm(dtype: str = "float64") -> Module:
    """Products with every transposition, a batch, a slice of a joined axis, accumulation."""
    a, at_, b, bt = (
        tensor(n, *s) for n, s in (("a", (O, V)), ("at", (V, O)), ("b", (V, P)), ("bt", (P, V)))
    )
    k, i, p = BandVar("k", V), BandVar("i", O), BandVar("p", P)
    c = Subscript("c", offset=(O,))
    v = BandVar("c", V)
    t, u = tensor("t", O, V, O), tensor("u", O, O, V)
    tensors = (
        a,
        at_,
        b,
        bt,
        t,
        u,
        output("nn", O, P),
        output("tn", O, P),
        output("nt", O, P),
        output("tt", O, P),
        output("cols", P, O),
        output("part", O, V),
        output("wide", O, O, V),
        output("dot"),
        output("row", V),
        output("batched", O, O),
    )

    def one(out: Access, x: Access, y: Access, **more: object) -> Gemm:
        return Gemm(out, x, y, **{"batch": (), "m": (i,), "n": (p,), "k": (k,), **more})  # type: ignore[arg-type]

    j, b2 = BandVar("j", O), BandVar("x", O)
    return module(
        "products",
        tensors,
        (one(at("nn", "i", "p"), at("a", "i", "k"), at("b", "k", "p")),),
        (one(at("tn", "i", "p"), at("at", "k", "i"), at("b", "k", "p"), coeff=Fraction(-1, 3)),),
        (
            one(at("nt", "i", "p"), at("a", "i", "k"), at("bt", "p", "k")),
            one(at("nt", "i", "p"), at("at", "k", "i"), at("b", "k", "p"), accumulate=True),
        ),
        (one(at("tt", "i", "p"), at("at", "k", "i"), at("bt", "p", "k")),),
        (one(at("cols", "p", "i"), at("a", "i", "k"), at("b", "k", "p")),),
        (one(at("part", "i", "c"), at("a", "i", "k"), at("b", "k", c), n=(v,)),),
        (
            one(
                at("wide", "i", "j", "c"),
                at("t", "i", "k", "j"),
                at("bt", c, "k"),
                batch=(i,),
                m=(j,),
                n=(v,),
                parallel=True,
            ),
        ),
        (one(at("dot"), at("a", "i", "k"), at("a", "i", "k"), m=(), n=(), k=(i, k)),),
        (
            Assign(
                at("row", "k"),
                Prod((at("a", "i", "k"), at("a", "i", "k"))),
                band=(k, i),
                parallel=1,
            ),
        ),
        (
            one(
                at("batched", "x", "j"),
                at("u", "x", "j", "c"),
                at("a", "x", "c"),
                batch=(b2,),
                m=(j,),
                n=(),
                k=(v,),
            ),
        ),
        dtype=dtype,
    )


def energy(dtype: str = "float64") -> Module:
    """Denominators, a scaled map, a shared reduction, functions, powers, a real tensor."""
    g, e_o, e_v = tensor("g", O, V), tensor("e_o", O, real=True), tensor("e_v", V, real=True)
    shift = tensor("shift", default=Fraction(1, 2))
    i, a = BandVar("i", O), BandVar("a", V)
    gap = Sum((at("e_o", "i"), Prod((Const(Fraction(-1)), at("e_v", "a"))), at("shift")))
    t = at("t", "i", "a")
    function = Sum(
        (
            Call("exp", Prod((Const(Fraction(-1, 4)), Pow(t, 2)))),
            Quot(Call("cos", t), Sum((Const(Fraction(3)), Call("abs", Call("sin", t))))),
            Call("sqrt", Call("abs", t)),
            Pow(Sum((Const(Fraction(2)), Call("tanh", Call("real", t)))), -3),
            Call("conj", t),
            Call("imag", t),
            Call("log", Sum((Const(Fraction(9)), Call("abs", t)))),
        )
    )
    return module(
        "energy",
        (
            g,
            e_o,
            e_v,
            shift,
            output("t", O, V),
            output("e"),
            output("f", O, V),
            output("lambda", O),
            output("norm", real=True),
        ),
        (
            Assign(t, Quot(at("g", "i", "a"), gap), Fraction(-2), band=(i, a), parallel=2),
            Assign(at("e"), Prod((t, at("g", "i", "a"))), Fraction(1, 3), band=(i, a), parallel=2),
        ),
        (Assign(at("f", "i", "a"), function, band=(a, i), parallel=1),),
        (
            Zero("lambda"),
            Assign(at("lambda", "i"), t, accumulate=True, band=(a, i)),
            Assign(at("lambda", "i"), at("e_o", "i"), Fraction(-1), accumulate=True, band=(i,)),
        ),
        (Assign(at("norm"), Prod((t, Call("conj", t))), band=(i, a)),),
        dtype=dtype,
        comment="t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)",
    )


def transpose(dtype: str = "float64") -> Module:
    """A blocked transposition, with and without threads, and one in place of a permutation."""
    i, a, j = BandVar("i", O), BandVar("a", V), BandVar("j", O)
    return module(
        "transposed",
        (tensor("x", O, V, O), output("y", V, O, O), output("z", O, V, O)),
        (
            Assign(
                at("y", "a", "i", "j"),
                at("x", "i", "a", "j"),
                band=(a, i, j),
                parallel=1,
                block=("a", "i"),
            ),
        ),
        (
            Assign(
                at("z", "j", "a", "i"), at("x", "i", "a", "j"), band=(j, a, i), block=("j", "i")
            ),
            Assign(
                at("z", "i", "a", "j"),
                at("x", "i", "a", "j"),
                Fraction(-1),
                True,
                band=(i, a, j),
                parallel=2,
            ),
        ),
        dtype=dtype,
    )


def tiles(dtype: str = "float64") -> Module:
    """Tiles of 3 on extent 7: private tiles in a parallel loop, a matrix product in the tile."""
    tile = LoopVar("c0", V, 3)
    c, i, j, d = BandVar("c", V, "c0", 3), BandVar("i", O), BandVar("j", O), BandVar("d", V)
    cut = Subscript("c", "c0")
    c1 = replace(c, base="c1")
    cut1 = Subscript("c", "c1")
    return module(
        "tiled",
        (tensor("x", O, V), tensor("y", V, O), output("r", V, O), output("s", O, O)),
        (
            Assign(
                at("g", "i", "j"),
                Prod((at("x", "i", "d"), at("y", "d", "j"))),
                band=(i, j, d),
                parallel=2,
            ),
        ),
        (
            Loop(
                tile,
                (
                    Zero("w"),
                    Assign(at("w", cut, "i"), at("x", "i", "c"), Fraction(2), True, band=(c, i)),
                    Gemm(
                        at("q", cut, "j"),
                        at("w", cut, "i"),
                        at("g", "i", "j"),
                        (),
                        (c,),
                        (j,),
                        (i,),
                    ),
                    Assign(at("r", "c", "j"), at("q", cut, "j"), band=(c, j)),
                ),
                parallel=True,
            ),
        ),
        (
            Zero("s"),
            Loop(
                replace(tile, name="c1"),
                (
                    Assign(at("h", cut1, "i"), at("x", "i", "c"), band=(c1, i), parallel=1),
                    Gemm(
                        at("s", "i", "j"),
                        at("h", cut1, "i"),
                        at("y", "c", "j"),
                        (),
                        (i,),
                        (j,),
                        (c1,),
                        accumulate=True,
                    ),
                ),
            ),
        ),
        buffers=(
            local("g", Axis(O), Axis(O), place="arena"),
            local("w", Axis(V, 3), Axis(O)),
            local("q", Axis(V, 3), Axis(O)),
            local("h", Axis(V, 3), Axis(O)),
        ),
        dtype=dtype,
    )


def orbits(dtype: str = "float64") -> Module:
    """A triangle of tiles whose iterations run at once; threads share two sums."""
    row = LoopVar("a0", V, 3)
    a, b, i = BandVar("a", V, "a0", 3), BandVar("b", V, "b0", 3), BandVar("i", O)
    cut = (Subscript("a", "a0"), Subscript("b", "b0"))
    inside = (
        Gemm(at("w", *cut), at("x", "i", "a"), at("x", "i", "b"), (), (a,), (b,), (i,)),
        Assign(
            at("e"),
            Prod((at("w", *cut), at("d", "a", "b"))),
            Fraction(1, 2),
            accumulate=True,
            band=(a, b),
            orbit=(("a0", "b0"),),
        ),
        Assign(at("n"), at("w", *cut), accumulate=True, band=(a, b)),
    )
    column = Loop(replace(row, name="b0", below="a0"), inside, parallel=True)
    return module(
        "orbit",
        (
            tensor("x", O, V),
            tensor("d", V, V),
            output("e"),
            output("n", accumulate=True),
        ),
        (Zero("e"), Loop(row, (column,), parallel=True)),
        buffers=(local("w", Axis(V, 3), Axis(V, 3)),),
        dtype=dtype,
    )


def triangle(dtype: str = "float64") -> Module:
    """Triangular loops and bands, orbits of two and three, registers, sums in a nest."""
    i, j, k = LoopVar("i", O), LoopVar("j", O, below="i"), LoopVar("k", O, below="j")
    bi, bj = BandVar("x", O), BandVar("y", O, below="x")
    bk, a = BandVar("z", O, below="y"), BandVar("a", V)
    point = Prod((at("u", "i"), at("u", "j"), at("u", "k")))
    return module(
        "triangles",
        (
            tensor("u", O),
            tensor("m", O, V),
            output("e"),
            output("f"),
            output("h"),
            output("half", O, O),
        ),
        (
            Zero("e"),
            Loop(
                i,
                (
                    Loop(
                        j,
                        (
                            Loop(
                                k,
                                (
                                    Assign(at("r", None), point),
                                    Assign(
                                        at("e"),
                                        at("r", None),
                                        Fraction(1, 7),
                                        True,
                                        orbit=(("i", "j", "k"),),
                                    ),
                                ),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        (
            Assign(
                at("f"),
                Prod((at("u", "x"), at("u", "y"))),
                band=(bi, bj),
                orbit=(("x", "y"),),
                parallel=2,
            ),
        ),
        (
            Assign(
                at("h"),
                Prod((at("u", "x"), at("u", "y"), at("u", "z"))),
                band=(bi, bj, bk),
                orbit=(("x", "y", "z"),),
                parallel=1,
            ),
        ),
        (
            Zero("half"),
            Assign(
                at("half", "x", "y"),
                Prod((at("m", "x", "a"), at("m", "y", "a"))),
                band=(bi, bj, a),
                parallel=2,
                accumulate=True,
            ),
        ),
        buffers=(local("r", Axis(O, 1), place="register"),),
        dtype=dtype,
    )


def packed(dtype: str = "float64") -> Module:
    """Packed triangles, both kinds, both row orders, read anywhere and written in the triangle."""
    both = Storage((), (Packing(0), Packing(2, True)))
    turned = Storage((2, 1, 0), (Packing(0, True),))
    i, j, a, b = (BandVar("i", O), BandVar("j", O), BandVar("a", V), BandVar("b", V))
    low = replace(b, below="a")
    return module(
        "packing",
        (
            tensor(
                "g",
                O,
                O,
                V,
                V,
                storage=both,
                symmetry=(Symmetry((1, 0, 2, 3)), Symmetry((0, 1, 3, 2), -1)),
            ),
            tensor("n", O, O, V, storage=turned, symmetry=(Symmetry((1, 0, 2), -1),)),
            output("full", O, V, O, V),
            output("t", V, V, storage=Storage((), (Packing(0),))),
            output("s", V, V, storage=Storage((), (Packing(0, True),))),
            output("copy", O, O, V),
        ),
        (
            Assign(
                at("full", "i", "a", "j", "b"),
                at("g", "i", "j", "a", "b"),
                band=(i, a, j, b),
                parallel=2,
            ),
        ),
        (
            Assign(
                at("t", "a", "b"),
                Prod((at("g", "i", "j", "a", "b"), at("n", "i", "j", "b"))),
                band=(a, low, i, j),
                parallel=1,
            ),
            Assign(at("s", "a", "b"), at("g", "i", "i", "a", "b"), band=(a, low, i)),
        ),
        (Assign(at("copy", "i", "j", "a"), at("n", "i", "j", "a"), band=(i, j, a), parallel=1),),
        dtype=dtype,
    )


def joined(dtype: str = "float64") -> Module:
    """Slices of joined axes, offsets, equal positions, a diagonal, a name that C reserves."""
    p, q = BandVar("p", P), BandVar("q", P)
    i, a = BandVar("I", O), BandVar("a", V)
    c = Subscript("a", offset=(O,))
    return module(
        "joined",
        (
            tensor("double", P, P),
            output("ov", O, V),
            output("d", P, P),
            output("diag", V),
            output("trace"),
            output("I", O),
        ),
        (
            Assign(at("ov", "I", "a"), at("double", "I", c), band=(i, a), parallel=1),
            Assign(
                at("d", "p", "q"),
                Sum((at("double", "q", "p"), Equal(Subscript("p"), Subscript("q")))),
                band=(p, q),
                parallel=1,
            ),
            Assign(at("diag", "a"), at("double", c, c), band=(a,)),
            Assign(at("trace"), at("double", "p", "p"), band=(p,)),
            Assign(
                at("I", "I"), Prod((at("double", "I", c), Equal(Subscript("I"), c))), band=(i, a)
            ),
            Assign(at("I", "I"), at("double", "I", "I"), Fraction(3), True, band=(i,)),
        ),
        dtype=dtype,
    )


def generated(dtype: str = "float64") -> Module:
    """Host loops around launches: an element loop and a tile loop, tiles asked of the caller."""
    i, b0 = LoopVar("i", O), LoopVar("b0", V, 3)
    a, b = BandVar("a", V), BandVar("b", V, "b0", 3)
    cut = Subscript("b", "b0")
    tensors = (
        tensor("g", O, V, V, role=Role.GENERATED, storage=Storage((1, 0, 2))),
        tensor("x", V),
        output("y", O, V),
        output("e"),
    )
    kernels = (
        Kernel("zero", ("y = 0",), (), (Zero("y"), Zero("e"))),
        Kernel(
            "use",
            ("y[i,a] += g[i,a,b]*x[b]",),
            (i, b0),
            (
                Assign(
                    at("y", "i", "a"),
                    Prod((at("tile", None, "a", cut), at("x", "b"))),
                    accumulate=True,
                    band=(a, b),
                    parallel=1,
                ),
            ),
        ),
        Kernel(
            "sum",
            ("e = y[i,a]*x[a]",),
            (i,),
            (
                Assign(
                    at("e"),
                    Prod((at("y", "i", "a"), at("x", "a"))),
                    accumulate=True,
                    band=(a,),
                    parallel=1,
                ),
            ),
        ),
    )
    tile = Buffer(
        "tile",
        (Axis(O, 1), Axis(V), Axis(V, 3)),
        (0, 1, 2),
        dtype,
        "arena",
        tensors[0],
        live=(2, 3),
    )
    made = Module(
        "made",
        dtype,
        (O, V),
        tensors,
        (*(caller(t, dtype) for t in tensors[1:]), tile),
        kernels,
        (),
        (
            Launch("zero"),
            HostLoop(
                i, (HostLoop(b0, (Fetch("tile", (i, None, b0)), Launch("use"))), Launch("sum"))
            ),
        ),
    )
    made.verify()
    return made


def phases(dtype: str = "float64") -> Module:
    """Constants: what depends on them alone is kept; an output of constants; accumulation."""
    i, j, a, k = BandVar("i", O), BandVar("j", O), BandVar("a", V), LoopVar("k", O)
    tensors = (
        tensor("c", O, V, volatile=False),
        tensor("x", O, O),
        tensor("scale", volatile=False, default=Fraction(2)),
        output("m", O, O, volatile=False),
        output("r", O, O, accumulate=True),
        output("y", O, V),
    )
    kernels = (
        Kernel(
            "half",
            ("h = c*scale",),
            (),
            (Assign(at("h", "i", "a"), Prod((at("c", "i", "a"), at("scale"))), band=(i, a)),),
        ),
        Kernel(
            "metric",
            ("m = h*c",),
            (),
            (
                Assign(
                    at("m", "i", "j"),
                    Prod((at("h", "i", "a"), at("c", "j", "a"))),
                    band=(i, j, a),
                    parallel=2,
                ),
                Assign(at("w", "i", "j"), at("m", "i", "j"), band=(i, j)),
            ),
        ),
        Kernel(
            "apply",
            ("y = x*h",),
            (),
            (
                Assign(at("z", "i", "a"), at("h", "i", "a"), band=(i, a)),
                Gemm(at("y", "i", "a"), at("x", "i", "j"), at("z", "j", "a"), (), (i,), (a,), (j,)),
            ),
        ),
        Kernel(
            "add",
            ("r += x - w",),
            (k,),
            (
                Assign(
                    at("r", "k", "j"),
                    Sum((at("x", "k", "j"), Prod((Const(Fraction(-1)), at("w", "k", "j"))))),
                    accumulate=True,
                    band=(j,),
                ),
            ),
        ),
    )
    made = Module(
        "bound",
        dtype,
        (O, V),
        tensors,
        (
            *(caller(t, dtype) for t in tensors),
            replace(
                local("h", Axis(O), Axis(V), place="arena", live=(0, 3), keep=True), dtype=dtype
            ),
            replace(
                local("w", Axis(O), Axis(O), place="arena", live=(2, 5), keep=True), dtype=dtype
            ),
            replace(local("z", Axis(O), Axis(V), place="arena", live=(3, 4)), dtype=dtype),
        ),
        kernels,
        (Launch("half"), Launch("metric")),
        (Launch("apply"), HostLoop(k, (Launch("add"),))),
    )
    made.verify()
    return made


ALL = {
    f.__name__: f
    for f in (gemm, energy, transpose, tiles, orbits, triangle, packed, joined, generated, phases)
}
