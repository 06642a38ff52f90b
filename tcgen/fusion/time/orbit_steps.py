"""Programs with fewer passes over the arrays of a triangular nest.

Inside a triangular nest an array that is read in several permutations is computed once for each.
Where each of these is only added to another array, it need not be stored: its producers add to that
array directly. An array that is a sum of products without summed indices is made in one pass.

    x[a,b] = u[a,c] * v[c,b]                w[a,b] = u[a,c] * v[c,b]
    w[a,b] = x[a,b]                  ->     w[a,b] += u[b,c] * v[c,a]
    w[a,b] += x[b,a]

    y[a,b] = w[a,b]
    y[a,b] += s[a] * t[b]            ->     y[a,b] = w[a,b] + s[a]*t[b] + s[b]*t[a]
    y[a,b] += s[b] * t[a]
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from operator import methodcaller

from ...ir.expr import Const, Expr, Prod, Quot, Sum, scaled
from ...ir.program import Add, FormulaSequence, Map, Produce, Step, map_operation
from ...ir.reduction import Reduction
from ...ir.tensor import Index, Ref, Tensor, first_image
from ...ir.term_rewriting import rename_expr
from .orbit_sums import numbered, ordered_text


def only_added(program: FormulaSequence, tensor: Tensor) -> bool:
    """True where an array is written in full and every reader adds a transpose of all of it."""
    return all(
        isinstance(s.op, Add)
        and not s.sums
        and len(set(s.op.a.indices)) == tensor.rank
        and tuple(i.space for i in s.op.a.indices) == tensor.spaces
        for s in program.consumers(tensor)
    ) and all(
        s.reduction is Reduction.SUM and tuple(i.space for i in s.out.indices) == tensor.spaces
        for s in program.producers(tensor)
    )


def added_directly(program: FormulaSequence, arrays: Collection[Tensor]) -> FormulaSequence:
    """The program without arrays that are :func:`only_added`.

    The producers of such an array write directly to the result of each of its readers.
    """
    steps: list[Step] = []
    for step in program.steps:
        if step.out.tensor in arrays:
            continue
        if not isinstance(step.op, Add) or step.op.a.tensor not in arrays:
            steps.append(step)
            continue
        for number, maker in enumerate(program.producers(step.op.a.tensor)):
            names = dict(zip(maker.out.indices, step.op.a.indices, strict=True))
            names |= _fresh(maker.sums, (*names.values(), *step.indices))
            renamed = methodcaller("renamed", names)
            steps.append(
                replace(
                    step,
                    op=map_operation(maker.op, renamed, renamed),
                    coeff=step.coeff * maker.coeff,
                    accumulate=step.accumulate or number > 0,
                    sums=tuple(names[i] for i in maker.sums),
                )
            )
    tensors = tuple(t for t in program.tensors if t not in arrays)
    return replace(program, tensors=tensors, steps=numbered(steps))


def in_one_pass(program: FormulaSequence, arrays: Collection[Tensor]) -> FormulaSequence:
    """The program in which each array whose producers sum over nothing is made by one step."""
    steps: list[Step] = []
    for step in program.steps:
        makers = program.producers(step.out.tensor)
        summed = any(s.sums or isinstance(s.op, Produce) for s in makers)
        if step.out.tensor not in arrays or len(makers) == 1 or summed:
            steps.append(step)
        elif step == makers[-1]:
            steps.append(_one_pass(makers))
    return replace(program, steps=numbered(steps))


def arrangements_apart(
    program: FormulaSequence, step: Step, arrays: Collection[Tensor]
) -> tuple[FormulaSequence, tuple[Tensor, ...]]:
    """The program in which sums of an array in several arrangements are arrays of their own.

    ``step`` may be a map that reads some of ``arrays``, which a nest should contract, in several
    arrangements. It reads the new arrays, which are also returned, in one arrangement.
    """
    if not isinstance(step.op, Map):
        return program, ()
    read: dict[Tensor, set[tuple[Index, ...]]] = {}
    for ref in step.operands:
        read.setdefault(ref.tensor, set()).add(ref.indices)
    names = {t.name for t in program.tensors}
    made: list[Step] = []

    def replaced(expr: Expr) -> Expr:
        match expr:
            case Sum(args):
                return Sum(apart(tuple(map(replaced, args))))
            case Prod(args):
                return Prod(tuple(map(replaced, args)))
            case Quot(num, den):
                return Quot(replaced(num), replaced(den))
            case _:
                return expr

    def apart(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
        kept, terms = list[Expr](), dict[Tensor, list[tuple[Fraction, Ref]]]()
        for arg in args:
            coeff, rest = _split(arg)
            many = isinstance(rest, Ref) and rest.tensor in arrays and len(read[rest.tensor]) > 1
            if isinstance(rest, Ref) and many and len(set(rest.indices)) == rest.tensor.rank:
                terms.setdefault(rest.tensor, []).append((coeff, rest))
            else:
                kept.append(arg)
        for tensor, added in terms.items():
            name = f"{tensor.name}_sum"
            while name in names:
                name += "_"
            names.add(name)
            _, first = added[0]
            spaces = tuple(i.space for i in first.indices)
            out = Ref(replace(tensor, name=name, spaces=spaces, symmetry=()), first.indices)
            for coeff, ref in added:
                made.append(
                    Step(0, out, Add(ref), coeff, accumulate=ref is not first, phase=step.phase)
                )
            kept.append(out)
        return tuple(kept)

    expr = replaced(step.op.expr)
    if not made:
        return program, ()
    return _with_steps_before(program, step, made, replace(step, op=Map(expr)))


def _with_steps_before(
    program: FormulaSequence, step: Step, made: list[Step], changed: Step
) -> tuple[FormulaSequence, tuple[Tensor, ...]]:
    """The program with new steps before a changed one, and their new arrays."""
    new = tuple(dict.fromkeys(s.out.tensor for s in made))
    at = program.steps.index(step)
    steps = [*program.steps[:at], *made, changed, *program.steps[at + 1 :]]
    place = program.tensors.index(step.out.tensor)
    tensors = (*program.tensors[:place], *new, *program.tensors[place:])
    return replace(program, tensors=tensors, steps=numbered(steps)), new


def _split(expr: Expr) -> tuple[Fraction, Expr]:
    """A number and the factor that it multiplies."""
    match expr:
        case Prod((Const(value), rest)) | Prod((rest, Const(value))):
            return value, rest
        case _:
            return Fraction(1), expr


def _one_pass(makers: tuple[Step, ...]) -> Step:
    """All products of an array as one element-wise sum, with like terms collected."""
    first = makers[0]
    terms: dict[str, tuple[Fraction, Expr]] = {}
    for maker in makers:
        names = dict(zip(maker.out.indices, first.out.indices, strict=True))
        assert maker.summand is not None, "a generated input is not a sum of products"
        sign, expr = _canonical(rename_expr(maker.summand, names))
        key = ordered_text(expr)
        known, _ = terms.get(key, (Fraction(0), expr))
        terms[key] = known + sign * maker.coeff, expr
    args = tuple(scaled(c, e) for c, e in terms.values() if c)
    args = args or (Const(Fraction(0)),)
    return replace(
        makers[-1], out=first.out, op=Map(Sum(args)), coeff=Fraction(1), accumulate=False
    )


def _canonical(expr: Expr) -> tuple[int, Expr]:
    """The sign and the canonical form of a product: each reference by its first symmetric image."""
    match expr:
        case Ref():
            return first_image(expr)
        case Prod(args):
            parts = [_canonical(a) for a in args]
            sign = 1
            for factor, _ in parts:
                sign *= factor
            return sign, Prod(tuple(e for _, e in parts))
        case _:
            return 1, expr


def _fresh(sums: tuple[Index, ...], taken: tuple[Index, ...]) -> dict[Index, Index]:
    """Summed indices with names that are not taken."""
    used, names = {i.name for i in taken}, dict[Index, Index]()
    for index in sums:
        name = index.name
        while name in used:
            name += "_"
        used.add(name)
        names[index] = Index(name, index.space)
    return names
