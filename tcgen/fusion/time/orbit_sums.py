"""Sums and contractions rewritten so that a triangle of their points is enough.

A sum over a, b, c does not change when its summed indices are permuted, so that its summand may be
replaced by the mean over any group of permutations. The mean is symmetric, and its sum over the
triangle a >= b >= c, weighted with the sizes of orbits, is the whole sum. This costs little if
the operands are symmetric under the same permutations: by symmetry their references are written
with a, b, c on the same axes, and most images of a factor become equal:

    sum w[i,j,a,b] * (y[i,j,a,b] - y[i,j,b,a])        with w, y symmetric in (ia) <-> (jb)
    -> sum w[i,j,a,b] * (y[i,j,a,b] - y[j,i,a,b])     with a, b on the same axes

A contraction with a symmetric result goes to an array of its own, of which each image is added to
the target, as a mean:

    r[i,j,a,b] += w[a,b,e,f] * t[i,j,e,f]       equal under the exchange of (i,a) and (j,b)
    ->  h[i,j,a,b]  = w[a,b,e,f] * t[i,j,e,f]
        r[i,j,a,b] += 1/2 * h[i,j,a,b]
        r[j,i,b,a] += 1/2 * h[i,j,a,b]

In loops over tiles A and B <= A, h and w are contracted to one tile, and each addition has the
weight of a sum over the triangle.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from math import factorial

from ...ir.exchange_symmetry import exchange_images
from ...ir.expr import (
    Access,
    Const,
    Delta,
    Equal,
    Expr,
    Prod,
    Quot,
    Sum,
    format_expr,
    map_leaves,
    refs,
)
from ...ir.program import Add, Contract, FormulaSequence, Map, Step
from ...ir.reduction import Reduction
from ...ir.tensor import Index, Ref, Role, Tensor, symmetry_group
from ...ir.term_rewriting import rename_expr

Renaming = dict[Index, Index]


@dataclass(frozen=True, slots=True)
class OrbitSum:
    """A step whose sum over ``chain`` may be taken over a triangle, in the order of the chain.

    It reads arrays with the chain, indices of one space, on the same axes if symmetry allows it.
    """

    step: Step
    chain: tuple[Index, ...]


def orbit_sums(step: Step, arrays: Sequence[Tensor], longest: int) -> Iterator[OrbitSum]:
    """The chains of a step's summed indices that a triangle is enough for, longest first.

    Intermediates of ``arrays`` should be read with the chain, of at most ``longest`` indices, on
    the same axes; the permutations are symmetries of all of them that the step reads.
    """
    added = step.reduction is Reduction.SUM and isinstance(step.op, Contract | Map)
    expr = step.summand if added else None
    read = () if expr is None else tuple(r for r in refs(expr) if r.tensor in arrays)
    if expr is None or not read:
        return
    first = {r.tensor: r for r in reversed(read)}
    spaces = tuple(dict.fromkeys(i.space for i in step.sums))
    classes = [tuple(i for i in step.sums if i.space == space) for space in spaces]
    for members in sorted(classes, key=lambda c: -len(c)):
        # In the order of the first array's axes, so that its own reference does not change.
        chain = tuple(i for i in read[0].indices if i in members)
        if not 2 <= len(chain) <= longest or len(set(chain)) != len(chain):
            continue
        group = _group(chain, [c for c in classes if c != members], tuple(first.values()))
        if group is None:
            continue
        aligned = _Aligned(first, chain)
        images = tuple(_moved(expr, renaming, aligned) for renaming in group)
        mean = _mean(images)
        yield OrbitSum(replace(step, op=_operation(step, mean)), chain)


def _operation(step: Step, mean: Expr) -> Add | Contract | Map:
    match step.op, mean:
        case Contract(), Prod((Ref() as a, Ref() as b)):
            return Contract(a, b)
        case _:
            return Map(mean)


def _group(
    chain: tuple[Index, ...], others: list[tuple[Index, ...]], read: tuple[Ref, ...]
) -> tuple[Renaming, ...] | None:
    """One renaming for each permutation of the chain; None if some permutation has none.

    Each permutation of the chain is combined with one of the other summed indices, so that together
    they are a symmetry of all arrays.
    """
    generators: list[Renaming] = []
    for one, two in pairwise(chain):
        swap = {one: two, two: one}
        symmetry = next(
            (s for s in _extensions(swap, others) if all(_is_symmetry(r, s) for r in read)), None
        )
        if symmetry is None:
            return None
        generators.append(symmetry)
    indices = tuple({i: None for g in generators for i in g})
    identity = {i: i for i in indices}
    group, fresh = [identity], [identity]
    while fresh and len(group) <= factorial(len(chain)):
        fresh = [
            image
            for known in fresh
            for g in generators
            if (image := {i: g.get(known[i], known[i]) for i in indices}) not in group
        ]
        group += [g for n, g in enumerate(fresh) if g not in fresh[:n]]
    return tuple(group) if len(group) == factorial(len(chain)) else None


def _extensions(swap: Renaming, others: list[tuple[Index, ...]]) -> Iterator[Renaming]:
    """A swap with every permutation of the other indices, those that move fewest first."""
    images = [
        {
            i: image
            for members, moved in zip(others, arrangement, strict=True)
            for i, image in zip(members, moved, strict=True)
            if i != image
        }
        for arrangement in product(*(permutations(members) for members in others))
    ]
    for image in sorted(images, key=len):
        yield swap | image


def _is_symmetry(ref: Ref, renaming: Renaming) -> bool:
    moved = tuple(renaming.get(i, i) for i in ref.indices)
    return moved == ref.indices or any(
        not s.conj and tuple(moved[axis] for axis in s.perm) == ref.indices
        for s in symmetry_group(ref.tensor)
    )


@dataclass(frozen=True, slots=True)
class _Aligned:
    """Rewrites references, by symmetry, with the chain on the same axes as in ``first``."""

    first: dict[Tensor, Ref]
    chain: tuple[Index, ...]

    def __call__(self, ref: Ref) -> Expr:
        """The same value, with the chain on the pattern's axes where symmetry allows it."""
        pattern = self.first.get(ref.tensor)
        if pattern is None:
            return ref
        wanted = [(axis, i) for axis, i in enumerate(pattern.indices) if i in self.chain]
        images = [(1, ref.indices)]
        images += [
            (s.sign, tuple(ref.indices[axis] for axis in s.perm))
            for s in symmetry_group(ref.tensor)
            if not s.conj
        ]
        fitting = [(s, x) for s, x in images if all(x[axis] == i for axis, i in wanted)]
        sign, indices = min(fitting or images[:1], key=lambda f: tuple(i.name for i in f[1]))
        placed = Ref(ref.tensor, indices)
        return placed if sign == 1 else Prod((Const(Fraction(-1)), placed))


def _moved(expr: Expr, renaming: Renaming, aligned: _Aligned) -> Expr:
    """The expression with indices renamed and references aligned."""

    def leaf(node: Ref | Access | Delta | Equal) -> Expr:
        return aligned(node) if isinstance(node, Ref) else node

    return map_leaves(rename_expr(expr, renaming), leaf)


def _mean(images: tuple[Expr, ...]) -> Expr:
    """The mean of the images of one expression under a group, with common factors taken out.

    The images of a product have the images of its factors in the same places, so that a factor that
    is the same in all of them precedes the mean of the others.
    """
    first = images[0]
    if all(_same(first, image) for image in images):
        return first
    match first:
        case Quot(_, den):
            if all(isinstance(q, Quot) and _same(q.den, den) for q in images):
                return Quot(_mean(tuple(q.num for q in images if isinstance(q, Quot))), den)
        case Prod(args):
            common = [n for n, a in enumerate(args) if all(_same(a, _arg(q, n)) for q in images)]
            if common:
                rest = tuple(
                    _product([_arg(q, n) for n in range(len(args)) if n not in common])
                    for q in images
                )
                return Prod((*(args[n] for n in common), _mean(rest)))
        case Sum(args):
            return Sum(tuple(_mean(tuple(_arg(q, n) for q in images)) for n in range(len(args))))
        case _:
            pass
    distinct: list[tuple[Expr, int]] = []
    for image in images:
        for n, (known, count) in enumerate(distinct):
            if _same(known, image):
                distinct[n] = (known, count + 1)
                break
        else:
            distinct.append((image, 1))
    counts = {count for _, count in distinct}
    if len(counts) == 1:
        return Prod((Const(Fraction(1, len(distinct))), Sum(tuple(e for e, _ in distinct))))
    return Sum(tuple(Prod((Const(Fraction(count, len(images))), e)) for e, count in distinct))


def _arg(expr: Expr, position: int) -> Expr:
    assert isinstance(expr, Sum | Prod), "images of one expression have one form"
    return expr.args[position]


def _product(args: list[Expr]) -> Expr:
    return args[0] if len(args) == 1 else Prod(tuple(args))


def _same(one: Expr, other: Expr) -> bool:
    """True where both are equal up to the order of terms and factors."""
    return one == other or ordered_text(one) == ordered_text(other)


def ordered_text(expr: Expr) -> str:
    """A text that does not depend on the order of terms and factors."""
    match expr:
        case Sum(args):
            return f"({' + '.join(sorted(map(ordered_text, args)))})"
        case Prod(args):
            return f"({' * '.join(sorted(map(ordered_text, args)))})"
        case Quot(num, den):
            return f"({ordered_text(num)} / {ordered_text(den)})"
        case _:
            return format_expr(expr)


def numbered(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps with their positions as ids."""
    return tuple(replace(s, id=n) for n, s in enumerate(steps))


@dataclass(frozen=True, slots=True)
class SymmetricResult:
    """A contraction whose result may be computed for a triangle.

    The rewritten program adds the images of ``result``, an array of its own, to its target. The
    chain has the two exchanged indices, in the order of the triangle.
    """

    program: FormulaSequence
    result: Tensor
    chain: tuple[Index, Index]


def symmetric_results(
    program: FormulaSequence, step: Step, arrays: Collection[Tensor]
) -> Iterator[SymmetricResult]:
    """The exchanges of a step under which its result is proven to be symmetric.

    Intermediates of ``arrays`` should be contracted along both indices of an exchange.
    """
    read = [r for r in step.operands if r.tensor in arrays]
    if not isinstance(step.op, Contract) or not read:
        return
    for pair in combinations(step.out.indices, 2):
        if pair[0].space != pair[1].space or not all(set(pair) <= set(r.indices) for r in read):
            continue
        proven = exchange_images(program, step, pair)
        if proven is not None:
            yield _rewritten(program, step, pair, *proven)


def _rewritten(
    program: FormulaSequence,
    step: Step,
    pair: tuple[Index, Index],
    images: dict[Index, Index],
    sign: int,
) -> SymmetricResult:
    out = step.out
    names = {t.name for t in program.tensors}
    name = next(
        n for k in itertools.count() if (n := f"{out.tensor.name}_half{k or ''}") not in names
    )
    spaces = tuple(i.space for i in out.indices)
    result = Tensor(name, spaces, Role.TEMP, real=out.tensor.real)
    made = Ref(result, out.indices)
    half = step.coeff / 2
    image = Ref(out.tensor, tuple(images.get(i, i) for i in out.indices))
    steps = (
        replace(step, out=made, coeff=Fraction(1), accumulate=False),
        replace(step, op=Add(made), coeff=half, sums=()),
        replace(step, out=image, op=Add(made), coeff=sign * half, accumulate=True, sums=()),
    )
    place = program.steps.index(step)
    ordered = (*program.steps[:place], *steps, *program.steps[place + 1 :])
    tensors = list(program.tensors)
    tensors.insert(tensors.index(out.tensor), result)
    rewritten = replace(program, tensors=tuple(tensors), steps=numbered(ordered))
    return SymmetricResult(rewritten, result, pair)
