"""Meaning of a system: every term by its definition, in slices if arrays are large.

An array above the budget is never formed whole. A term whose largest array is above it is cut in
two along that array's longest index, again and again; a large intermediate is evaluated anew for
each block that is read, its permutation operators as signed copies with exchanged ranges.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

import numpy as np

from ..ir.expr import Delta, expr_indices, refs
from ..ir.reduction import Running
from ..ir.system import Apply, Equation, Permutation, System, Term
from ..ir.tensor import Index, Ref, Tensor
from .elements import (
    Array,
    Labelled,
    add_product,
    delta,
    evaluate_over,
    filled,
    first_position,
    pair_order,
)
from .storage import (
    Block,
    Source,
    check_extents,
    check_inputs,
    logical_shape,
    program_dtype,
    read_block,
    returned,
    starting_values,
    whole_block,
    working_type,
)

Ranges: TypeAlias = dict[Index, tuple[int, int]]
Targets: TypeAlias = list[tuple[int, Array]]

_BUDGET_BYTES = 256 * 2**20  # default limit of each array of the interpreter


def evaluate_system(
    system: System,
    arrays: Mapping[str, Source],
    extents: Mapping[str, int],
    out: Mapping[str, Array] | None = None,
    budget_bytes: int = _BUDGET_BYTES,
    dtype: str | None = None,
) -> dict[str, Array]:
    """Outputs of a system, straight from its definition.

    Args:
        system: verified equations.
        arrays: inputs by name as the caller passes them: stored order, packed triangles, joined
            axes whole; generated inputs as ``f(out, ranges)`` or arrays that slice.
        extents: extents of the base spaces; 0 is legal.
        out: starting arrays of outputs that accumulate; they are not written to.
        budget_bytes: limit of each array except inputs and outputs. Larger ones are computed in
            blocks, down to a single element along every index that can be cut.
        dtype: element type of the program; by default that of the arrays, and complex128 for
            numbers such as ``1j``. The arithmetic is in double precision; only results are rounded
            to this type.

    Returns:
        Output arrays by name as the caller of a compiled program gets them.

    Raises:
        ArgumentError: an input is missing, unknown or of the wrong kind, or ``dtype`` is real and
            the equations have complex numbers.
        ExtentError: an extent is missing or negative.
        ShapeError: an array does not fit its tensor.

    Example:
        >>> from fractions import Fraction
        >>> from tcgen.ir.system import Equation
        >>> from tcgen.ir.tensor import Role, Space
        >>> o = Space("o")
        >>> x, e = Tensor("x", (o,), Role.INPUT), Tensor("e", (), Role.OUTPUT)
        >>> i = Index("i", o)
        >>> term = Term(Fraction(1, 2), (Ref(x, (i,)), Ref(x, (i,))), sums=(i,))
        >>> system = System("norm", (o,), (x, e), (Equation(Ref(e), (term,)),))
        >>> float(evaluate_system(system, {"x": np.array([1.0, 3.0])}, {"o": 2})["e"])
        5.0
    """
    check_extents(system.spaces, extents)
    sources = check_inputs(system.tensors, arrays, extents)
    factors = (f for e in system.equations for t in e.terms for f in t.factors)
    dtype = program_dtype(arrays, (f.expr for f in factors if isinstance(f, Apply)), dtype)
    start = starting_values(system.outputs, out, extents, dtype)
    equations = {e.lhs.tensor: e for e in system.equations}
    evaluation = _Evaluation(equations, sources, extents, start, budget_bytes, dtype)
    with np.errstate(all="ignore"):
        return {t.name: returned(t, evaluation.whole(t), dtype) for t in system.outputs}


@dataclass(slots=True)
class _Evaluation:
    """One evaluation: it stores small arrays whole, and a few blocks of the large ones."""

    equations: Mapping[Tensor, Equation]
    sources: Mapping[str, Source]
    extents: Mapping[str, int]
    start: Mapping[str, Array]
    budget: int
    dtype: str
    wholes: dict[Tensor, Array] = field(default_factory=dict)
    blocks: OrderedDict[tuple[Tensor, Block], Array] = field(default_factory=OrderedDict)

    @property
    def itemsize(self) -> int:
        """Bytes of an element of an intermediate."""
        return 16 if self.dtype == "complex128" else 8

    def whole(self, tensor: Tensor) -> Array:
        """A whole intermediate or output, computed once."""
        if tensor not in self.wholes:
            self.wholes[tensor] = self.define(tensor, whole_block(tensor, self.extents))
        return self.wholes[tensor]

    def read(self, tensor: Tensor, block: Block) -> Array:
        """A block of any tensor."""
        if tensor.is_input:
            tile = read_block(tensor, self.sources[tensor.name], block, self.dtype)
            return np.asarray(tile, working_type(tensor, self.dtype))
        elements = int(np.prod(logical_shape(tensor, self.extents), dtype=object))
        running = isinstance(self.equations[tensor].reduction, Running)
        if running or tensor in self.wholes or elements * self.itemsize <= self.budget:
            return np.asarray(self.whole(tensor)[tuple(slice(*r) for r in block)])
        key = (tensor, block)
        if key not in self.blocks:
            self.blocks[key] = self.define(tensor, block)
            while (
                sum(b.nbytes for b in self.blocks.values()) > self.budget and len(self.blocks) > 1
            ):
                self.blocks.popitem(last=False)
        self.blocks.move_to_end(key)
        return self.blocks[key]

    def define(self, tensor: Tensor, block: Block) -> Array:
        """A block of an intermediate or output, computed by its equation."""
        equation = self.equations[tensor]
        if tensor.name in self.start:
            value = np.array(self.start[tensor.name][tuple(slice(*r) for r in block)])
        else:
            shape = [stop - begin for begin, stop in block]
            value = filled(equation.reduction, shape, working_type(tensor, self.dtype))
        left = equation.lhs.indices
        ranges: list[tuple[int, int]] = []
        inside: list[Any] = []
        for (begin, stop), index, space in zip(block, left, tensor.spaces, strict=True):
            offset = first_position(index, space, self.extents)
            n = index.space.extent_in(self.extents)
            low, high = max(begin - offset, 0), min(stop - offset, n)
            ranges.append((low, max(low, high)))
            inside.append(slice(low + offset - begin, max(low, high) + offset - begin))
        view = value[(*inside, ...)]
        identity = Permutation(1, tuple(range(len(left))))
        for term in equation.terms:
            copies: dict[Block, Targets] = {}
            for perm in term.perms or (identity,):
                images = tuple(ranges[image] for image in perm.images)
                target = np.transpose(view, perm.images)
                copies.setdefault(images, []).append((perm.sign, target))
            for images, targets in copies.items():
                full = {i: (0, i.space.extent_in(self.extents)) for i in term.sums}
                self.add(term, left, {**dict(zip(left, images, strict=True)), **full}, targets)
        return value

    def add(self, term: Term, left: Sequence[Index], ranges: Ranges, targets: Targets) -> None:
        """Add the term over ``ranges`` to each target, with the sign of the target."""
        length = {i: stop - begin for i, (begin, stop) in ranges.items()}
        if 0 in length.values():
            return
        largest, over = self.largest(term, left, length)
        # The values of a running reduction follow from all before.
        apart = [i for i in over if i not in left or i not in term.sums]
        cut = max(apart, key=lambda i: length[i], default=None)
        if largest * self.itemsize > self.budget and cut is not None and length[cut] > 1:
            begin, stop = ranges[cut]
            middle = (begin + stop) // 2
            for low, high in ((begin, middle), (middle, stop)):
                parts = targets
                if cut in left:
                    part = (slice(None),) * left.index(cut) + (slice(low - begin, high - begin),)
                    parts = [(sign, target[part]) for sign, target in targets]
                self.add(term, left, {**ranges, cut: (low, high)}, parts)
            return
        operands = [self.factor(factor, ranges) for factor in term.factors]
        add_product(term.reduction, term.coeff, operands, left, term.sums, targets)

    def largest(
        self, term: Term, left: Sequence[Index], length: Mapping[Index, int]
    ) -> tuple[int, tuple[Index, ...]]:
        """Number of elements and indices of the largest array in an evaluation of the term."""
        operands: list[tuple[Index, ...]] = []
        formed: list[tuple[Index, ...]] = []
        for factor in term.factors:
            match factor:
                case Ref(_, indices):
                    operands.append(indices)
                case Delta(one, other):
                    operands.append((one, other))
                case Apply(expr):
                    operands.append(expr_indices(expr))
                    formed.extend(ref.indices for ref in refs(expr))
                case _:
                    assert_never(factor)
        formed += operands + [result for _, _, result in pair_order(operands, left, length)]
        counted = [(int(np.prod([length[i] for i in f], dtype=object)), f) for f in formed]
        return max(counted, key=lambda entry: entry[0], default=(1, ()))

    def factor(self, factor: Ref | Delta | Apply, ranges: Ranges) -> Labelled:
        """The array of a factor over ``ranges``."""
        match factor:
            case Ref(_, indices):
                return self.reference(factor, ranges), indices
            case Delta(one, other):
                return self.kronecker(factor, ranges), (one, other)
            case Apply(expr):
                return evaluate_over(
                    expr,
                    lambda ref: self.reference(ref, ranges),
                    lambda node: self.kronecker(node, ranges),
                    self.dtype,
                )
            case _:
                assert_never(factor)

    def reference(self, ref: Ref, ranges: Ranges) -> Array:
        """The block of the tensor over the ranges of its indices."""
        block = []
        for index, space in zip(ref.indices, ref.tensor.spaces, strict=True):
            offset = first_position(index, space, self.extents)
            begin, stop = ranges[index]
            block.append((begin + offset, stop + offset))
        return self.read(ref.tensor, tuple(block))

    def kronecker(self, factor: Delta, ranges: Ranges) -> Array:
        """The block of a Kronecker delta over the ranges of its indices."""
        whole = delta(factor.left.space, factor.right.space, self.extents)
        return whole[slice(*ranges[factor.left]), slice(*ranges[factor.right])]
