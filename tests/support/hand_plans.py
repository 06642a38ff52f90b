"""Fusion plans written by hand, one for each thing that lowering must understand.

They are legal whatever any solver finds. Letters differ between producer and consumer where they
can, so that nothing may rely on names.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tcgen.ir.expr import Prod
from tcgen.ir.plan import (
    ArrayPlan,
    FusionPlan,
    GroupKind,
    KernelGroup,
    LoopId,
    Place,
    Solve,
    Visit,
)
from tcgen.ir.program import Add, Contract, FormulaSequence, Map, Operation, Produce, Step
from tcgen.ir.tensor import Index, Ref, Role, Space, Tensor

ITEM = 8  # bytes of a float64

I, J, K, L, P = (Space(name) for name in "ijklp")
i, i2 = Index("i", I), Index("x", I)
j, j2 = Index("j", J), Index("y", J)
k, l, p = Index("k", K), Index("l", L), Index("p", P)


def tensor(name: str, *spaces: Space, role: Role = Role.INPUT) -> Tensor:
    """A volatile tensor without symmetry."""
    return Tensor(name, spaces, role)


def at(array: Tensor, *indices: Index) -> Ref:
    """``array[indices]``."""
    return Ref(array, indices)


def program(
    name: str, inputs: tuple[Tensor, ...], *rows: tuple[Ref, Operation, tuple[Index, ...]]
) -> FormulaSequence:
    """A verified program of steps ``out (+)= sum over sums of op``; later producers accumulate."""
    tensors = dict.fromkeys(inputs)
    steps, written = [], set()
    for n, (out, op, sums) in enumerate(rows):
        tensors.setdefault(out.tensor)
        steps.append(Step(n, out, op, Fraction(1), out.tensor in written, sums))
        written.add(out.tensor)
    spaces = tuple(dict.fromkeys(s for t in tensors for s in t.spaces))
    result = FormulaSequence(name, spaces, tuple(tensors), tuple(steps))
    result.verify()
    return result


def array(
    plan_extents: dict[str, int],
    of: Tensor,
    live: tuple[int, int],
    contracted: tuple[tuple[int, LoopId], ...] = (),
    home: LoopId | None = None,
    place: Place = Place.ARENA,
) -> ArrayPlan:
    """An instance with its bytes counted."""
    elements = 1
    for axis, space in enumerate(of.spaces):
        loop = dict(contracted).get(axis)
        whole = space.extent_in(plan_extents)
        elements *= whole if loop is None else min(whole, loop.tile or 1)
    if of.role is Role.OUTPUT:
        place = Place.CALLER
    return ArrayPlan(of, contracted, home, place, live, None, ITEM * elements)


def finish(
    of: FormulaSequence,
    extents: dict[str, int],
    loops: tuple[LoopId, ...],
    visits: tuple[Visit, ...],
    arrays: tuple[ArrayPlan, ...],
    groups: tuple[KernelGroup, ...],
) -> FusionPlan:
    """The plan; the arena is the static sum of what lives there."""
    return FusionPlan(
        of,
        tuple(sorted(extents.items())),
        loops,
        visits,
        arrays,
        groups,
        sum(a.bytes for a in arrays if a.place is Place.ARENA),
        Solve("linear", "hand", "FEASIBLE"),
    )


def shared_producer() -> FusionPlan:
    """A row of T for two consumers in one loop.

    for i: T[1,:] = A B;  X[i] = T C;  Y[i,:] = T * D
    """
    ext = {"i": 4, "j": 5, "k": 3}
    A, B, C, D = tensor("A", I, K), tensor("B", K, J), tensor("C", J), tensor("D", I, J)
    T = tensor("T", I, J, role=Role.TEMP)
    X, Y = tensor("X", I, role=Role.OUTPUT), tensor("Y", I, J, role=Role.OUTPUT)
    of = program(
        "shared_producer",
        (A, B, C, D),
        (at(T, i, j), Contract(at(A, i, k), at(B, k, j)), (k,)),
        (at(X, i2), Contract(at(T, i2, j), at(C, j)), (j,)),
        (at(Y, i, j2), Contract(at(T, i, j2), at(D, i, j2)), ()),
    )
    loop = LoopId(0, I)
    visits = (
        Visit(0, ((i, loop),), (loop,)),
        Visit(1, ((i2, loop),), (loop,)),
        Visit(2, ((i, loop),), (loop,)),
    )
    arrays = (
        array(ext, T, (0, 2), ((0, loop),), loop),
        array(ext, X, (1, 1)),
        array(ext, Y, (2, 2)),
    )
    groups = (KernelGroup("nest_0", GroupKind.NEST, (0, 1, 2)),)
    return finish(of, ext, (loop,), visits, arrays, groups)


def accumulation() -> FusionPlan:
    """One element of T, made by two producers, used by a step that sums over a shared loop.

    for i: for j: T = sum_k A B;  T += sum_l D E;  X[j] += T * F[i]
    """
    ext = {"i": 4, "j": 5, "k": 3, "l": 2}
    A, B, D = tensor("A", I, K), tensor("B", K, J), tensor("D", L, I)
    E, F = tensor("E", J, L), tensor("F", I)
    T, X = tensor("T", I, J, role=Role.TEMP), tensor("X", J, role=Role.OUTPUT)
    of = program(
        "accumulation",
        (A, B, D, E, F),
        (at(T, i, j), Contract(at(A, i, k), at(B, k, j)), (k,)),
        (at(T, i2, j2), Contract(at(D, l, i2), at(E, j2, l)), (l,)),
        (at(X, j), Contract(at(T, i, j), at(F, i)), (i,)),
    )
    outer, inner = LoopId(0, I), LoopId(1, J)
    visits = (
        Visit(0, ((i, outer), (j, inner)), (outer, inner)),
        Visit(1, ((i2, outer), (j2, inner)), (outer, inner)),
        Visit(2, ((i, outer), (j, inner)), (outer, inner)),
    )
    arrays = (
        array(ext, T, (0, 2), ((0, outer), (1, inner)), inner, Place.REG),
        array(ext, X, (2, 2)),
    )
    groups = (KernelGroup("nest_0", GroupKind.NEST, (0, 1, 2)),)
    return finish(of, ext, (outer, inner), visits, arrays, groups)


def tile_of_three(extent: int = 7) -> FusionPlan:
    """Three rows of T at a time; the last tile is shorter where 3 does not divide the extent.

    for i by 3: T[3,:] = A B;  X[i:i+3,:] = T C
    """
    ext = {"i": extent, "j": 5, "k": 3, "l": 4}
    A, B, C = tensor("A", I, K), tensor("B", K, J), tensor("C", J, L)
    T, X = tensor("T", I, J, role=Role.TEMP), tensor("X", I, L, role=Role.OUTPUT)
    of = program(
        "tile_of_three",
        (A, B, C),
        (at(T, i, j), Contract(at(A, i, k), at(B, k, j)), (k,)),
        (at(X, i2, l), Contract(at(T, i2, j2), at(C, j2, l)), (j2,)),
    )
    loop = LoopId(0, I, 3)
    visits = (Visit(0, ((i, loop),), (loop,)), Visit(1, ((i2, loop),), (loop,)))
    arrays = (array(ext, T, (0, 1), ((0, loop),), loop), array(ext, X, (1, 1)))
    groups = (KernelGroup("nest_0", GroupKind.NEST, (0, 1)),)
    return finish(of, ext, (loop,), visits, arrays, groups)


def recomputation() -> FusionPlan:
    """T is computed twice, the first time again and again in a loop that it has no index for.

    for p: for i: T[1,:] = A B (repeated for each p);  X[p,i] = T C
    for j: T[:,1] = A B;  Y[j,:] = T D
    """
    ext = {"i": 4, "j": 5, "k": 3, "l": 2, "p": 3}
    A, B = tensor("A", I, K), tensor("B", K, J)
    C, D = tensor("C", J, P), tensor("D", I, L)
    T = tensor("T", I, J, role=Role.TEMP)
    X, Y = tensor("X", P, I, role=Role.OUTPUT), tensor("Y", J, L, role=Role.OUTPUT)
    of = program(
        "recomputation",
        (A, B, C, D),
        (at(T, i, j), Contract(at(A, i, k), at(B, k, j)), (k,)),
        (at(X, p, i2), Contract(at(T, i2, j2), at(C, j2, p)), (j2,)),
        (at(Y, j, l), Contract(at(T, i, j), at(D, i, l)), (i,)),
    )
    outer, inner, third = LoopId(0, P), LoopId(1, I), LoopId(2, J)
    visits = (
        Visit(0, ((i, inner),), (outer, inner), (outer,)),
        Visit(1, ((p, outer), (i2, inner)), (outer, inner)),
        Visit(0, ((j, third),), (third,)),
        Visit(2, ((j, third),), (third,)),
    )
    arrays = (
        array(ext, T, (0, 1), ((0, inner),), inner),
        array(ext, X, (1, 1)),
        array(ext, T, (2, 3), ((1, third),), third),
        array(ext, Y, (3, 3)),
    )
    groups = (
        KernelGroup("nest_0", GroupKind.NEST, (0, 1)),
        KernelGroup("nest_1", GroupKind.NEST, (2, 3)),
    )
    return finish(of, ext, (outer, inner, third), visits, arrays, groups)


def host_loop() -> FusionPlan:
    """Fusion by launch: two matrix products inside a tile loop on the host.

    host for i by 2: launch T[2,:] = A B;  launch X[i:i+2,:] = T C
    """
    ext = {"i": 5, "j": 6, "k": 3, "l": 4}
    A, B, C = tensor("A", I, K), tensor("B", K, J), tensor("C", J, L)
    T, X = tensor("T", I, J, role=Role.TEMP), tensor("X", I, L, role=Role.OUTPUT)
    of = program(
        "host_loop",
        (A, B, C),
        (at(T, i, j), Contract(at(A, i, k), at(B, k, j)), (k,)),
        (at(X, i2, l), Contract(at(T, i2, j2), at(C, j2, l)), (j2,)),
    )
    loop = LoopId(0, I, 2)
    visits = (Visit(0, ((i, loop),), (loop,)), Visit(1, ((i2, loop),), (loop,)))
    arrays = (array(ext, T, (0, 1), ((0, loop),), loop), array(ext, X, (1, 1)))
    groups = (
        KernelGroup("product_0", GroupKind.LIBRARY, (0,), (loop,)),
        KernelGroup("product_1", GroupKind.LIBRARY, (1,), (loop,)),
    )
    return finish(of, ext, (loop,), visits, arrays, groups)


def triangular_pair() -> FusionPlan:
    """x[i,j] is symmetric: only i >= j is computed, and e counts the points i > j twice.

    for i: for j <= i: x = sum_p b[p,i] b[p,j];  e += x * x, twice where i > j
    """
    ext = {"i": 5, "p": 3}
    b = tensor("b", P, I)
    x = tensor("x", I, I, role=Role.TEMP)
    e = tensor("e", role=Role.OUTPUT)
    of = program(
        "triangular_pair",
        (b,),
        (at(x, i, i2), Contract(at(b, p, i), at(b, p, i2)), (p,)),
        (at(e), Map(Prod((at(x, i, i2), at(x, i, i2)))), (i, i2)),
    )
    outer = LoopId(0, I)
    inner = LoopId(1, I, None, outer)
    bind = ((i, outer), (i2, inner))
    visits = (Visit(0, bind, (outer, inner)), Visit(1, bind, (outer, inner)))
    arrays = (
        array(ext, x, (0, 1), ((0, outer), (1, inner)), inner, Place.REG),
        array(ext, e, (1, 1)),
    )
    groups = (KernelGroup("nest_0", GroupKind.NEST, (0, 1)),)
    return finish(of, ext, (outer, inner), visits, arrays, groups)


def triangular_images() -> FusionPlan:
    """x[i,j] is symmetric: only i >= j is computed, and both of its images are added to r.

    for i: for j <= i: x = sum_p b[p,i] b[p,j];  r[i,j] += x;  r[j,i] += x, each twice where i > j
    """
    ext = {"i": 5, "p": 3}
    b = tensor("b", P, I)
    x = tensor("x", I, I, role=Role.TEMP)
    r = tensor("r", I, I, role=Role.OUTPUT)
    of = program(
        "triangular_images",
        (b,),
        (at(x, i, i2), Contract(at(b, p, i), at(b, p, i2)), (p,)),
        (at(r, i, i2), Add(at(x, i, i2)), ()),
        (at(r, i2, i), Add(at(x, i, i2)), ()),
    )
    outer = LoopId(0, I)
    inner = LoopId(1, I, None, outer)
    visits = tuple(Visit(n, ((i, outer), (i2, inner)), (outer, inner)) for n in range(3))
    arrays = (
        array(ext, x, (0, 2), ((0, outer), (1, inner)), inner, Place.REG),
        array(ext, r, (1, 2)),
    )
    groups = (KernelGroup("nest_0", GroupKind.NEST, (0, 1, 2)),)
    return finish(of, ext, (outer, inner), visits, arrays, groups)


def generated_tile() -> FusionPlan:
    """Four rows of a generated input at a time, fetched and multiplied inside a host loop.

    host for p by 4: fetch G[4,:];  launch X[p:p+4,:] = G C
    """
    ext = {"j": 5, "l": 3, "p": 10}
    G = tensor("G", P, J, role=Role.GENERATED)
    C = tensor("C", J, L)
    X = tensor("X", P, L, role=Role.OUTPUT)
    q = Index("q", P)
    of = program(
        "generated_tile",
        (G, C),
        (at(G, p, j), Produce(G), ()),
        (at(X, q, l), Contract(at(G, q, j2), at(C, j2, l)), (j2,)),
    )
    loop = LoopId(0, P, 4)
    visits = (Visit(0, ((p, loop),), (loop,)), Visit(1, ((q, loop),), (loop,)))
    arrays = (array(ext, G, (0, 1), ((0, loop),), loop), array(ext, X, (1, 1)))
    groups = (
        KernelGroup("fetch_0", GroupKind.MAP, (0,), (loop,)),
        KernelGroup("product_0", GroupKind.LIBRARY, (1,), (loop,)),
    )
    return finish(of, ext, (loop,), visits, arrays, groups)


def nested_fusion() -> FusionPlan:
    """Figure 1 of Allam et al. with A, B, C resident: f1 and f2 are one element each.

    for j: f1 = sum_i A[i,j];  for k: f2 = sum_l B[j,k,l] C[k,l];  W[k] += f1 * f2
    """
    ext = {"i": 10, "j": 10, "k": 12, "l": 10}
    A, B, C = tensor("A", I, J), tensor("B", J, K, L), tensor("C", K, L)
    f1, f2 = tensor("f1", J, role=Role.TEMP), tensor("f2", J, K, role=Role.TEMP)
    W = tensor("W", K, role=Role.OUTPUT)
    of = program(
        "nested_fusion",
        (A, B, C),
        (at(f1, j), Add(at(A, i, j)), (i,)),
        (at(f2, j2, k), Contract(at(B, j2, k, l), at(C, k, l)), (l,)),
        (at(W, k), Contract(at(f1, j), at(f2, j, k)), (j,)),
    )
    outer, inner = LoopId(0, J), LoopId(1, K)
    visits = (
        Visit(0, ((j, outer),), (outer,)),
        Visit(1, ((j2, outer), (k, inner)), (outer, inner)),
        Visit(2, ((j, outer), (k, inner)), (outer, inner)),
    )
    arrays = (
        array(ext, f1, (0, 2), ((0, outer),), outer, Place.REG),
        array(ext, f2, (1, 2), ((0, outer), (1, inner)), inner, Place.REG),
        array(ext, W, (2, 2)),
    )
    groups = (KernelGroup("nest_0", GroupKind.NEST, (0, 1, 2)),)
    return finish(of, ext, (outer, inner), visits, arrays, groups)


def retiled(plan: FusionPlan, tile: int | None) -> FusionPlan:
    """The plan with every loop over tiles (None: over elements)."""

    def loop(old: LoopId) -> LoopId:
        after = loop(old.order_after) if old.order_after else None
        return replace(old, tile=tile, order_after=after)

    def array(old: ArrayPlan) -> ArrayPlan:
        contracted = tuple((axis, loop(o)) for axis, o in old.contracted)
        home = loop(old.home) if old.home else None
        place = Place.ARENA if old.place is Place.REG and tile else old.place
        return replace(old, contracted=contracted, home=home, place=place)

    changed = replace(
        plan,
        loops=tuple(map(loop, plan.loops)),
        visits=tuple(
            replace(
                v,
                bind=tuple((i, loop(o)) for i, o in v.bind),
                loops=tuple(map(loop, v.loops)),
                redundant=tuple(map(loop, v.redundant)),
            )
            for v in plan.visits
        ),
        arrays=tuple(map(array, plan.arrays)),
        groups=tuple(replace(g, host_loops=tuple(map(loop, g.host_loops))) for g in plan.groups),
    )
    changed.verify()
    return changed


LEGAL = (
    shared_producer,
    accumulation,
    tile_of_three,
    recomputation,
    host_loop,
    triangular_pair,
    triangular_images,
    generated_tile,
    nested_fusion,
)
