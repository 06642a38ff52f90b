"""The interpreter against element-by-element Python loops on random systems.

The loops share nothing with the interpreter: one element at a time, sums as nested loops, each
signed permutation as renamed letters.
"""

from __future__ import annotations

import cmath
import itertools
from collections.abc import Mapping

import numpy as np
from hypothesis import given, note
from hypothesis import strategies as st

from support.campaigns import cases
from tcgen.interp import evaluate_system
from tcgen.ir.expr import Call, Const, Delta, Expr, Pow, Prod, Quot, Sum
from tcgen.ir.system import Apply, Equation, System
from tcgen.ir.tensor import Index, Ref, Space, Tensor
from tcgen.testing import assert_same_values, extents_for, random_arrays, split_starts, systems

Place = dict[Index, int]


class Loops:
    """One element at a time."""

    def __init__(self, system: System, arrays: Mapping, starts: Mapping, extents: Mapping) -> None:
        self.extents, self.arrays, self.starts = extents, arrays, starts
        self.equations = {e.lhs.tensor: e for e in system.equations}
        self.memo: dict = {}

    def extent(self, space: Space) -> int:
        return sum(self.extents[b.name] for b in space.bases)

    def orbital(self, index: Index, place: Place) -> tuple[str, int]:
        position = place[index]
        for base in index.space.bases:
            if position < self.extents[base.name]:
                return base.name, position
            position -= self.extents[base.name]
        raise AssertionError

    def ref(self, ref: Ref, place: Place) -> complex:
        where = []
        for index, space in zip(ref.indices, ref.tensor.spaces, strict=True):
            name, position = self.orbital(index, place)
            names = [b.name for b in space.bases]
            before = names[: names.index(name)]
            where.append(position + sum(self.extents[n] for n in before))
        return self.element(ref.tensor, tuple(where))

    def element(self, tensor: Tensor, where: tuple[int, ...]) -> complex:
        key = (tensor.name, where)
        if key not in self.memo:
            self.memo[key] = self.compute(tensor, where)
        return self.memo[key]

    def compute(self, tensor: Tensor, where: tuple[int, ...]) -> complex:
        if tensor.is_input:
            return self.caller(tensor, self.arrays, where)
        equation = self.equations[tensor]
        start = self.caller(tensor, self.starts, where) if tensor.accumulate else 0
        return start + self.right_side(equation, where)

    def caller(self, tensor: Tensor, arrays: Mapping, where: tuple[int, ...]) -> complex:
        """An element of the caller's array: stored order and packed triangles."""
        if tensor.default is not None:
            return complex(tensor.default)
        packed = {p.first: p.antisymmetric for p in tensor.storage.packed}
        key, sign = [], 1
        for axis in tensor.stored_order:
            if axis in packed:
                p, q = where[axis], where[axis + 1]
                if packed[axis] and p == q:
                    return 0
                sign *= -1 if packed[axis] and p < q else 1
                p, q = max(p, q), min(p, q)
                key.append(p * (p - 1) // 2 + q if packed[axis] else p * (p + 1) // 2 + q)
            elif axis - 1 not in packed:
                key.append(where[axis])
        return sign * complex(arrays[tensor.name][tuple(key)])

    def right_side(self, equation: Equation, where: tuple[int, ...]) -> complex:
        left, total = equation.lhs.indices, 0j
        for term in equation.terms:
            perms = [(p.sign, p.images) for p in term.perms] or [(1, range(len(left)))]
            for sign, images in perms:
                place = {left[k]: where[image] for k, image in enumerate(images)}
                for values in itertools.product(*(range(self.extent(i.space)) for i in term.sums)):
                    here = place | dict(zip(term.sums, values, strict=True))
                    product = complex(term.coeff) * sign
                    for factor in term.factors:
                        expr = factor.expr if isinstance(factor, Apply) else factor
                        product *= self.expr(expr, here)
                    total += product
        return total

    def expr(self, expr: Expr, place: Place) -> complex:
        match expr:
            case Const(value):
                return complex(value)
            case Ref():
                return self.ref(expr, place)
            case Delta(left, right):
                return complex(self.orbital(left, place) == self.orbital(right, place))
            case Sum(args):
                return sum((self.expr(a, place) for a in args), 0j)
            case Prod(args):
                total = 1 + 0j
                for arg in args:
                    total *= self.expr(arg, place)
                return total
            case Quot(num, den):
                return self.expr(num, place) / self.expr(den, place)
            case Pow(base, exponent):
                return self.expr(base, place) ** exponent
            case Call(name, arg):
                return function(name, self.expr(arg, place))
        raise AssertionError(expr)


def function(name: str, z: complex) -> complex:
    match name:
        case "abs":
            return abs(z)
        case "conj":
            return z.conjugate()
        case "real":
            return z.real
        case "imag":
            return z.imag
    return getattr(cmath, name)(z)


def compare(data: st.DataObject) -> None:
    system = data.draw(systems(max_equations=3, max_rank=3, max_indices=4))
    note(system.pretty())
    extents = data.draw(extents_for(system, max_extent=3))
    dtype = data.draw(st.sampled_from(("float64", "complex128")))
    inputs, starts = split_starts(system, random_arrays(system, extents, dtype=dtype))
    loops = Loops(system, inputs, starts, extents)
    for tensor in system.outputs:
        shape = [loops.extent(s) for s in tensor.spaces]
        dense = np.array([loops.element(tensor, w) for w in np.ndindex(*shape)]).reshape(shape)
        # read the interpreter's packed, reordered output back through the same loops
        whole = evaluate_system(system, inputs, extents, out=starts)
        back = [loops.caller(tensor, whole, w) for w in np.ndindex(*shape)]
        assert_same_values({tensor.name: np.reshape(back, shape)}, {tensor.name: dense})


@cases(60, 600)
@given(st.data())
def test_random_systems_equal_loops(data: st.DataObject) -> None:
    compare(data)
