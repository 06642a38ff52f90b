"""Contractions with a symmetric result, rewritten so that a triangle of their points is enough.

The result goes to an array of its own, of which each image is added to the target, as a mean:

    r[i,j,a,b] += w[a,b,e,f] * t[i,j,e,f]       equal under the exchange of (i,a) and (j,b)
    ->  h[i,j,a,b]  = w[a,b,e,f] * t[i,j,e,f]
        r[i,j,a,b] += 1/2 * h[i,j,a,b]
        r[j,i,b,a] += 1/2 * h[i,j,a,b]

In loops over tiles A and B <= A, h and w are contracted to one tile, and each addition has the
weight of a sum over the triangle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, count

from ...ir.exchange_symmetry import exchange_images
from ...ir.program import Add, Contract, FormulaSequence, Step
from ...ir.tensor import Index, Ref, Role, Tensor


@dataclass(frozen=True, slots=True)
class SymmetricResult:
    """A contraction whose result may be computed for a triangle.

    Attributes:
        program: in which the images of the result are added to its target.
        result: the array of the result alone.
        chain: the two exchanged indices, in the order of the triangle.
    """

    program: FormulaSequence
    result: Tensor
    chain: tuple[Index, Index]


def symmetric_results(
    program: FormulaSequence, step: Step, arrays: Collection[Tensor]
) -> Iterator[SymmetricResult]:
    """The exchanges of a step under which its result is proven to be symmetric.

    Args:
        program: of the step.
        step: any step.
        arrays: intermediates that should be contracted along both indices of an exchange.
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
    name = next(n for k in count() if (n := f"{out.tensor.name}_half{k or ''}") not in names)
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
    numbered = tuple(replace(s, id=n) for n, s in enumerate(ordered))
    rewritten = replace(program, tensors=tuple(tensors), steps=numbered)
    return SymmetricResult(rewritten, result, pair)
