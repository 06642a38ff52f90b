"""Proofs that a step's value does not change when indices are exchanged.

A triangular pair of loops computes each pair of points once, so its summand must be symmetric. The
proof is syntactic: it uses declared symmetries of tensors, commutativity of sums and products, and
renamings of summed indices, and it follows an intermediate into the steps that produce it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product

from .expr import (
    Access,
    Call,
    Calls,
    Const,
    Delta,
    Equal,
    Expr,
    Infinity,
    Pow,
    Prod,
    Quot,
    Sum,
)
from .program import FormulaSequence, Step
from .reduction import Reduction
from .tensor import Index, Ref, Tensor, symmetry_group

Renaming = dict[Index, Index]


def exchange_sign(
    program: FormulaSequence, step: Step, exchanged: Renaming, fixed: tuple[Index, ...] = ()
) -> int | None:
    """Sign s with summand(exchanged indices) == s * summand, or None without a proof.

    ``exchanged`` permutes some of the step's indices. Other summed indices may be renamed to make
    the two sides equal, except those that are ``fixed``.
    """
    dummies = tuple(i for i in step.sums if i not in exchanged and i not in fixed)
    value = step.summand
    if value is None or (step.running and exchanged.get(step.running) not in (None, step.running)):
        return None
    for renaming in _renamings(dummies):
        sign = _compare(program, value, value, exchanged | renaming)
        if sign == 1 or (sign is not None and step.reduction is Reduction.SUM):
            return sign
    return None


def exchange_images(
    program: FormulaSequence, step: Step, pair: tuple[Index, Index]
) -> tuple[Renaming, int] | None:
    """A proven exchange of a pair of the target's indices, which have one space, or None.

    It may exchange further pairs of the target. The sign is that of :func:`exchange_sign`.
    """
    rest = tuple(i for i in step.out.indices if i not in pair)
    for others in _pairings(rest):
        images = {i: j for p, q in (pair, *others) for i, j in ((p, q), (q, p))}
        sign = exchange_sign(program, step, images)
        if sign is not None:
            return images, sign
    return None


def _pairings(indices: tuple[Index, ...]) -> Iterator[tuple[tuple[Index, Index], ...]]:
    """Sets of disjoint pairs of indices of one space, the empty one first."""
    if not indices:
        yield ()
        return
    first, rest = indices[0], indices[1:]
    yield from _pairings(rest)
    for n, other in enumerate(rest):
        if other.space == first.space:
            for more in _pairings(rest[:n] + rest[n + 1 :]):
                yield ((first, other), *more)


def tensor_sign(program: FormulaSequence, tensor: Tensor, perm: tuple[int, ...]) -> int | None:
    """Sign s with T[x[perm[0]], ...] == s * T[x[0], ...], or None without a proof."""
    if perm == tuple(range(tensor.rank)):
        return 1
    for symmetry in symmetry_group(tensor):
        if symmetry.perm == perm and not symmetry.conj:
            return symmetry.sign
    return _sum_sign(program, tuple(program.producers(tensor)), perm)


def _sum_sign(
    program: FormulaSequence, steps: tuple[Step, ...], perm: tuple[int, ...]
) -> int | None:
    """Sign by which the sum of some steps changes under a permutation of its axes, or None.

    Each step is its own image, or two steps are the image of each other: ``x[a]*y[b]`` is neither
    symmetric nor antisymmetric, but becomes so when ``x[b]*y[a]`` is added or subtracted.
    """
    own = []
    for step in steps:
        indices = step.out.indices
        moved = {indices[axis]: indices[image] for axis, image in enumerate(perm)}
        own.append(exchange_sign(program, step, moved))
    signs = {sign for sign in own if sign is not None}
    alone = [step for step, sign in zip(steps, own, strict=True) if sign is None]
    while alone:
        first = alone.pop(0)
        images = ((n, _image_sign(program, first, other, perm)) for n, other in enumerate(alone))
        partner, sign = next(((n, s) for n, s in images if s is not None), (0, None))
        # The image of the partner has to be the first step again.
        if sign is None or _image_sign(program, alone[partner], first, perm) != sign:
            return None
        signs.add(sign)
        del alone[partner]
    return signs.pop() if len(signs) == 1 else None


def _image_sign(
    program: FormulaSequence, one: Step, other: Step, perm: tuple[int, ...]
) -> int | None:
    """Sign s with one[x[perm[0]], ...] == s * other[x[0], ...], or None without a proof."""
    left, right = one.summand, other.summand
    if left is None or right is None or abs(one.coeff) != abs(other.coeff):
        return None
    if {one.reduction, other.reduction} != {Reduction.SUM}:
        return None
    free = one.out.indices
    moved = {index: other.out.indices[perm[axis]] for axis, index in enumerate(free)}
    # On a diagonal an index stands for two axes.
    if len(moved) < len(free) or len(set(moved.values())) < len(free):
        return None
    if [i.space for i in _by_space(one.sums)] != [i.space for i in _by_space(other.sums)]:
        return None
    partners = dict(zip(_by_space(one.sums), _by_space(other.sums), strict=True))
    for renaming in _renamings(other.sums):
        sums = {i: renaming[partner] for i, partner in partners.items()}
        sign = _compare(program, left, right, moved | sums)
        if sign is not None:
            return sign if one.coeff == other.coeff else -sign
    return None


def _by_space(indices: tuple[Index, ...]) -> list[Index]:
    """Indices in the order of the names of their spaces."""
    return sorted(indices, key=lambda i: i.space.name)


def _renamings(indices: tuple[Index, ...]) -> Iterator[Renaming]:
    """Renamings among indices of the same space, the identity first."""
    spaces = tuple(dict.fromkeys(i.space for i in indices))
    classes = [tuple(i for i in indices if i.space == s) for s in spaces]
    for images in product(*(permutations(c) for c in classes)):
        yield {
            i: image
            for members, moved in zip(classes, images, strict=True)
            for i, image in zip(members, moved, strict=True)
        }


def _compare(program: FormulaSequence, left: Expr, right: Expr, renamed: Renaming) -> int | None:
    """Sign s with left(renamed) == s * right, or None."""
    (one, left), (other, right) = _without_sign(left), _without_sign(right)
    sign = _compare_positive(program, left, right, renamed)
    return None if sign is None else sign * one * other


def _without_sign(expr: Expr) -> tuple[int, Expr]:
    """The sign of a product's numbers, and the product of the rest: ``-1 * x`` is x, negative."""
    if not isinstance(expr, Prod):
        return 1, expr
    sign, args = 1, list[Expr]()
    for arg in expr.args:
        negative = isinstance(arg, Const) and arg.value < 0
        factor = Const(-arg.value) if isinstance(arg, Const) and negative else arg
        sign = -sign if negative else sign
        args += [] if factor == Const(Fraction(1)) else [factor]
    return sign, args[0] if len(args) == 1 else Prod(tuple(args))


def _compare_positive(
    program: FormulaSequence, left: Expr, right: Expr, renamed: Renaming
) -> int | None:
    """The same for expressions without signs of their own."""
    match left, right:
        case Const(), Const():
            return 1 if left.value == right.value else None
        case Delta(), Delta():
            moved = {renamed.get(i, i) for i in (left.left, left.right)}
            return 1 if moved == {right.left, right.right} else None
        case Ref(), Ref():
            return _compare_refs(program, left, right, renamed)
        case Sum(), Sum():
            return next(
                (s for s in (1, -1) if _match(program, left.args, right.args, renamed, (s,))), None
            )
        case Prod(), Prod():
            return _match(program, left.args, right.args, renamed, (1, -1))
        case Quot(), Quot():
            top = _compare(program, left.num, right.num, renamed)
            bottom = _compare(program, left.den, right.den, renamed)
            return None if top is None or bottom is None else top * bottom
        case Pow(), Pow():
            sign = _compare(program, left.base, right.base, renamed)
            same = left.exponent == right.exponent
            return None if sign is None or not same else sign ** abs(left.exponent)
        case Call(), Call():
            sign = _compare(program, left.arg, right.arg, renamed)
            return 1 if sign == 1 and left.function == right.function else None
        case Infinity(), Infinity():
            return 1 if left == right else None
        case Calls(), Calls():
            if left.function != right.function:
                return None
            pairs = zip(left.args, right.args, strict=True)
            same = all(_compare(program, x, y, renamed) == 1 for x, y in pairs)
            return 1 if same else None
        case (Access() | Equal(), _) | (_, Access() | Equal()):
            return None
        case _:
            return None


def _compare_refs(program: FormulaSequence, left: Ref, right: Ref, renamed: Renaming) -> int | None:
    moved = tuple(renamed.get(i, i) for i in left.indices)
    if left.tensor != right.tensor:
        return None
    if moved == right.indices:
        return 1
    if len(set(moved)) != len(moved) or set(moved) != set(right.indices):
        return None
    perm = tuple(right.indices.index(i) for i in moved)
    return tensor_sign(program, left.tensor, perm)


def _match(
    program: FormulaSequence,
    left: tuple[Expr, ...],
    right: tuple[Expr, ...],
    renamed: Renaming,
    allowed: tuple[int, ...],
) -> int | None:
    """Match the arguments in pairs, with signs in ``allowed``; the product of the signs, or None.

    Equality up to sign is an equivalence relation, so any partner that matches will do.
    """
    free, total = list(right), 1
    for arg in left:
        for n, partner in enumerate(free):
            sign = _compare(program, arg, partner, renamed)
            if sign in allowed:
                assert sign is not None
                total *= sign
                del free[n]
                break
        else:
            return None
    return total if not free else None
