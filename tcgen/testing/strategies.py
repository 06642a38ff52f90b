"""Hypothesis strategies: random valid systems and extents for them.

A system is drawn as a chemist writes one: first inputs with symmetry and layouts, then equations
whose terms choose tensors and put indices from a small pool on their axes. With a small pool,
contractions, traces, diagonals, hyper-indices and batch indices are all frequent.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import UnavailableError
from ..ir.expr import Call, Const, Delta, Expr, Pow, Prod, Quot, Sum
from ..ir.system import Apply, Equation, Factor, Permutation, System, Term, fits_axis
from ..ir.tensor import (
    Index,
    Packing,
    Ref,
    Role,
    Space,
    Storage,
    Symmetry,
    Tensor,
    distinct,
    exchanged,
)

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")

_LETTERS = {"o": "ijklmn", "v": "abcdef", "x": "PQRSTU", "p": "pqrstu"}
_COEFFS = tuple(map(Fraction, ("1", "-1", "2", "1/2", "-1/4", "3/2")))
_ONE, _MINUS = Const(Fraction(1)), Const(Fraction(-1))


def systems(
    max_equations: int = 4,
    max_terms: int = 3,
    max_rank: int = 4,
    max_indices: int = 6,
    *,
    functions: bool = True,
    joined: bool = True,
    generated: bool = True,
    accumulate: bool = True,
) -> SearchStrategy[System]:
    """Random valid systems over spaces o, v, x and p = o + v.

    They have sums of products, intermediates that several terms read with permuted indices,
    traces, diagonals, hyper-indices, broadcasts, permutation operators, deltas, scalars, symmetric,
    packed and reordered inputs and outputs, and constant and volatile tensors.

    Args:
        max_equations: largest number of equations.
        max_terms: largest number of terms of an equation.
        max_rank: largest number of axes of an input.
        max_indices: largest number of different indices of a term; it bounds the cost.
        functions: True allows denominators, functions and other element-wise factors.
        joined: True allows tensors over p and their slices.
        generated: True allows generated inputs.
        accumulate: True allows outputs that accumulate.

    Raises:
        UnavailableError: hypothesis is not installed.

    Example:
        A test draws a system, extents and arrays, and compares two evaluations::

            @given(data())
            def test(data):
                system = data.draw(systems())
                extents = data.draw(extents_for(system))
                inputs, starts = split_starts(system, random_arrays(system, extents))
    """

    def build(draw: Callable[[Any], Any]) -> System:
        drawer = _Drawer(draw, max_rank, max_indices, functions, joined, generated, accumulate)
        return drawer.system(max_equations, max_terms)

    result: SearchStrategy[System] = _strategies().composite(build)()
    return result


def extents_for(system: System, max_extent: int = 4) -> SearchStrategy[dict[str, int]]:
    """Extents from 1 to ``max_extent`` for all base spaces; o may be larger than v.

    Args:
        system: equations.
        max_extent: the largest extent.

    Raises:
        UnavailableError: hypothesis is not installed.
    """
    st = _strategies()
    bases = dict.fromkeys(base.name for space in system.spaces for base in space.bases)
    extents: SearchStrategy[dict[str, int]] = st.fixed_dictionaries(
        {name: st.integers(1, max_extent) for name in bases}
    )
    return extents


def _strategies() -> Any:
    try:
        return importlib.import_module("hypothesis.strategies")
    except ModuleNotFoundError as error:
        raise UnavailableError(
            "random systems need hypothesis, which is not installed: pip install hypothesis"
        ) from error


@dataclass
class _Drawer:
    """Draws one system. Shrinking prefers the first choices of each list."""

    draw: Callable[[Any], Any]
    max_rank: int
    max_indices: int
    functions: bool
    joined: bool
    generated: bool
    accumulate: bool
    given: list[Tensor] = field(default_factory=list)
    defined: list[Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.st = _strategies()
        o, v = Space("o", kind="occupied"), Space("v", kind="virtual")
        x, p = Space("x", kind="auxiliary"), Space("p", parts=(o, v))
        self.spaces = (o, v, x, p) if self.joined else (o, v, x)
        self.on_demand = {
            name: Tensor(name, (space,), Role.INPUT, volatile=False)
            for name, space in [(f"e_{s.name}", s) for s in self.spaces]
            + [(f"u_{s.name}", s) for s in self.spaces]
        }

    def pick(self, choices: Sequence[T]) -> T:
        """Draw one of the choices."""
        chosen: T = self.draw(self.st.sampled_from(choices))
        return chosen

    def chance(self, one_in: int) -> bool:
        """True in one of ``one_in`` cases. Shrinking prefers False, which leaves the part out."""
        return bool(self.pick((False,) * (one_in - 1) + (True,)))

    def number(self, low: int, high: int) -> int:
        """Draw an integer from ``low`` to ``high``."""
        return int(self.draw(self.st.integers(low, high)))

    def system(self, max_equations: int, max_terms: int) -> System:
        """Draw the inputs, then the equations; intermediates that nothing reads become outputs."""
        self.given = [self.input_tensor(name) for name in "ABCD"[: self.number(2, 4)]]
        if self.chance(3):
            default = self.pick((None, Fraction(1, 2)))
            self.given.append(Tensor("c", (), Role.INPUT, default=default))
        equations = []
        if self.functions and self.chance(4):
            equations.append(self.denominator())
            max_equations = max(max_equations, 2)
        count = self.number(1, max(1, max_equations - len(equations)))
        equations += [self.equation(n, n == count - 1, max_terms) for n in range(count)]
        read = {r.tensor for e in equations for t in e.terms for r in t.refs}
        final = []
        for equation in equations:
            tensor = equation.lhs.tensor
            if tensor.role is Role.TEMP and tensor not in read:
                output = replace(tensor, role=Role.OUTPUT)
                equation = replace(equation, lhs=Ref(output, equation.lhs.indices), anonymous=False)
            final.append(equation)
        inputs = self.given + [t for t in self.on_demand.values() if t in read]
        tensors = (*inputs, *(e.lhs.tensor for e in final))
        return System("random", self.spaces, tensors, tuple(final))

    def input_tensor(self, name: str) -> Tensor:
        """Draw an input: spaces, role, symmetry and layout."""
        rank = self.pick([r for r in (2, 3, 4, 1, 2, 3, 4, 0) if r <= self.max_rank])
        spaces = self.some_spaces(rank)
        # Equal neighbours allow symmetry.
        if rank > 1 and self.chance(2):
            spaces = (spaces[0], spaces[0], *spaces[2:])
        role = Role.GENERATED if self.generated and rank >= 2 and self.chance(6) else Role.INPUT
        symmetry = self.pick(symmetry_choices(spaces))
        return Tensor(
            name,
            spaces,
            role,
            volatile=not self.chance(3),
            symmetry=symmetry,
            storage=self.storage(spaces, symmetry),
        )

    def some_spaces(self, rank: int) -> tuple[Space, ...]:
        """Draw the spaces of a tensor, o and v more often than the others."""
        weighted = self.spaces[:2] * 2 + self.spaces
        return tuple(self.pick(weighted) for _ in range(rank))

    def storage(self, spaces: tuple[Space, ...], symmetry: tuple[Symmetry, ...]) -> Storage:
        """Draw a layout: packed pairs and an order of the axes."""
        axes = tuple(range(len(spaces)))
        groups: list[tuple[int, ...]] = [(k,) for k in axes]
        packed: tuple[Packing, ...] = ()
        for s in symmetry:
            pair = next((k for k in axes[:-1] if s.perm == exchanged(len(axes), (k, k + 1))), None)
            if pair is not None and self.chance(2):
                packed = (*packed, Packing(pair, s.sign < 0))
                groups[pair], groups[pair + 1] = (pair, pair + 1), ()
        if not self.chance(3):
            return Storage((), packed)
        order = self.draw(self.st.permutations([g for g in groups if g]))
        return Storage(tuple(k for group in order for k in group), packed)

    def denominator(self) -> Equation:
        """A named denominator, as in ``gap[i,a] = e_o[i] - e_v[a]``."""
        i, a = Index("i", self.spaces[0]), Index("a", self.spaces[1])
        d = Tensor("gap", (i.space, a.space), Role.TEMP)
        self.defined.append(d)
        occupied, virtual = self.on_demand["e_o"], self.on_demand["e_v"]
        terms = (
            Term(Fraction(1), (Ref(occupied, (i,)),)),
            Term(Fraction(-1), (Ref(virtual, (a,)),)),
        )
        return Equation(Ref(d, (i, a)), terms)

    def equation(self, n: int, last: bool, max_terms: int) -> Equation:
        """Draw an equation; a term with vectors u covers left indices that no other term has."""
        rank = self.pick([r for r in (2, 1, 0, 3, 4) if r <= self.max_rank])
        spaces = self.some_spaces(rank)
        if rank > 1 and self.chance(2):
            spaces = (spaces[0], spaces[0], *spaces[2:])
        counts: dict[str, int] = {}
        left = []
        for space in spaces:
            counts[space.name] = counts.get(space.name, -1) + 1
            left.append(Index(_LETTERS[space.name][counts[space.name]], space))
        if self.chance(3):
            left = list(self.draw(self.st.permutations(left)))
            spaces = tuple(i.space for i in left)
        perms = self.pick(operator_choices(left)) if self.chance(3) else ()
        # All terms may have the same operator.
        same = bool(perms) and self.chance(2)
        terms = [
            self.term(left, perms if same or self.chance(2) else ())
            for _ in range(self.number(1, max_terms))
        ]
        seen = {i for t in terms for i in t.indices}
        missing = [i for i in left if i not in seen]
        if missing:
            factors = tuple(Ref(self.on_demand[f"u_{i.space.name}"], (i,)) for i in missing)
            terms.append(Term(Fraction(1), factors, perms=perms if same else ()))
        role = Role.OUTPUT if last or self.chance(3) else Role.TEMP
        symmetry = symmetry_of(perms) if same else ()
        tensor = Tensor(f"r{n}" if role is Role.OUTPUT else f"w{n}", spaces, role)
        if role is Role.OUTPUT:
            accumulates = self.accumulate and self.chance(4)
            storage = self.storage(spaces, symmetry)
            tensor = replace(tensor, symmetry=symmetry, storage=storage, accumulate=accumulates)
        if not tensor.accumulate:
            self.defined.append(tensor)
        anonymous = role is Role.TEMP and self.chance(3)
        return Equation(Ref(tensor, tuple(left)), tuple(terms), anonymous=anonymous)

    def term(self, left: Sequence[Index], perms: tuple[Permutation, ...]) -> Term:
        """Draw a product of up to three factors."""
        pool = list(left) + [
            Index(letter, space) for space in self.spaces for letter in _LETTERS[space.name][-2:]
        ]
        factors: list[Factor] = []
        used: tuple[Index, ...] = ()
        for _ in range(self.pick((2, 1, 3))):
            factor = self.factor(pool, left, list(used))
            if factor is not None:
                factors.append(factor)
                used = Term(Fraction(1), tuple(factors)).indices
        sums = tuple(i for i in used if i not in left)
        return Term(self.pick(_COEFFS), tuple(factors), sums, perms)

    def factor(
        self, pool: Sequence[Index], left: Sequence[Index], used: list[Index]
    ) -> Factor | None:
        """Draw a factor; None if no indices fit."""
        if self.functions and self.chance(5):
            expr = self.expression(pool, left, used)
            return None if expr is None else Apply(expr)
        if self.chance(12):
            one = self.index(self.pick(self.spaces), pool, left, used)
            other = None if one is None else self.index(one.space, pool, left, used)
            return None if one is None or other is None else Delta(one, other)
        return self.reference(self.pick(self.given + self.defined), pool, left, used)

    def index(
        self, space: Space, pool: Sequence[Index], left: Sequence[Index], used: list[Index]
    ) -> Index | None:
        """An index that fits the axis, a new one only while the term has few; None if none fits."""
        known = distinct((*left, *used))
        room = len(known) < self.max_indices
        fitting = [i for i in pool if fits_axis(i, space) and (room or i in known)]
        if not fitting:
            return None
        chosen = self.pick(fitting)
        used.append(chosen)
        return chosen

    def reference(
        self, tensor: Tensor, pool: Sequence[Index], left: Sequence[Index], used: list[Index]
    ) -> Ref | None:
        """The tensor with indices of the pool; None, with ``used`` unchanged, if none fit."""
        mark = len(used)
        indices = []
        for space in tensor.spaces:
            index = self.index(space, pool, left, used)
            if index is None:
                del used[mark:]
                return None
            indices.append(index)
        return Ref(tensor, tuple(indices))

    def expression(
        self, pool: Sequence[Index], left: Sequence[Index], used: list[Index]
    ) -> Expr | None:
        """An element-wise factor whose values random_arrays can keep finite."""

        def reference(tensors: Sequence[Tensor]) -> Ref | None:
            return self.reference(self.pick(tensors), pool, left, used)

        kind = self.pick(("denominator", "quotient", "call", "root", "product", "decay", "named"))
        if kind in ("denominator", "quotient", "decay"):
            gap = self.energies(pool, left, used)
            if gap is None:
                return None
            if kind == "decay":
                return Call("exp", gap)
            top = reference(self.given + self.defined) if kind == "quotient" else None
            return Quot(top or _ONE, gap)
        named = [t for t in self.defined if t.name == "gap"]
        if kind == "named" and named:
            below = reference(named)
            return None if below is None else Quot(_ONE, below)
        ref = reference(self.given)
        if ref is None:
            return None
        if kind == "call":
            names = ("abs", "exp", "tanh", "sin", "cos", "conj", "real", "imag")
            return Call(self.pick(names), ref)
        if kind == "root":
            above_one = Sum((_ONE, Call("abs", ref)))
            return Call(self.pick(("sqrt", "log")), above_one)
        other = reference(self.given + self.defined)
        return Pow(ref, 2) if other is None else Prod((ref, other))

    def energies(
        self, pool: Sequence[Index], left: Sequence[Index], used: list[Index]
    ) -> Expr | None:
        """Occupied minus virtual energies, from two vectors or from one over o + v."""
        o, v = self.spaces[:2]
        joined = self.on_demand.get("e_p") if self.chance(3) else None
        parts: list[Expr] = []
        for _ in range(self.pick((1, 2))):
            for space, name in ((o, "e_o"), (v, "e_v")):
                index = self.index(space, pool, left, used)
                if index is not None:
                    ref = Ref(joined or self.on_demand[name], (index,))
                    parts.append(ref if space == o else Prod((_MINUS, ref)))
        return Sum(tuple(parts)) if len(parts) > 1 else None


def symmetry_choices(spaces: tuple[Space, ...]) -> list[tuple[Symmetry, ...]]:
    """Sets of symmetry generators for a tensor with these axes; the first set is empty."""
    axes = tuple(range(len(spaces)))
    choices: list[tuple[Symmetry, ...]] = [()]
    for pair in _pairs(spaces):
        choices += [(Symmetry(exchanged(len(axes), pair), sign),) for sign in (1, -1)]
    if len(spaces) == 4 and spaces[:2] == spaces[2:]:
        choices.append((Symmetry((2, 3, 0, 1)),))
    if len(spaces) == 4 and spaces[0] == spaces[1] and spaces[2] == spaces[3]:
        both = (Symmetry((1, 0, 2, 3), -1), Symmetry((0, 1, 3, 2), -1))
        choices += [both, (Symmetry((1, 0, 3, 2)),)]
        if spaces[0] == spaces[2]:
            choices.append((*both, Symmetry((2, 3, 0, 1))))
    return choices


def operator_choices(left: Sequence[Index]) -> list[tuple[Permutation, ...]]:
    """Operators P and S over left indices, each with the identity; the first choice is empty.

    They are exchanges of one pair with either sign, exchanges of two pairs at once (``S(ia,jb)``),
    products of two antisymmetrisers (``P(i,j) P(a,b)``), and cyclic sums over three neighbours,
    which are groups without exchanges.
    """
    axes = tuple(range(len(left)))
    identity = Permutation(1, axes)
    pairs = _pairs([i.space for i in left])
    choices: list[tuple[Permutation, ...]] = [()]
    for pair in pairs:
        choices += [(identity, Permutation(s, exchanged(len(axes), pair))) for s in (-1, 1)]
    for k, one in enumerate(pairs):
        for two in pairs[k + 1 :]:
            if not set(one) & set(two):
                both = Permutation(1, exchanged(len(axes), one, two))
                single = [Permutation(-1, exchanged(len(axes), pair)) for pair in (one, two)]
                choices += [(identity, both), (identity, *single, both)]
    for k in axes[:-2]:
        if left[k].space == left[k + 1].space == left[k + 2].space:
            cycles = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
            images = [axes[:k] + tuple(k + m for m in c) + axes[k + 3 :] for c in cycles]
            choices.append(tuple(Permutation(1, image) for image in images))
    return choices


def symmetry_of(perms: tuple[Permutation, ...]) -> tuple[Symmetry, ...]:
    """Symmetry of a sum under an operator of :func:`operator_choices`; empty for cyclic sums."""
    generators = []
    for p in perms:
        axes = tuple(range(len(p.images)))
        if tuple(p.images[k] for k in p.images) != axes:
            return ()
        if p.images != axes:
            generators.append(Symmetry(p.images, p.sign))
    return tuple(generators)


def _pairs(spaces: Sequence[Space]) -> list[tuple[int, int]]:
    """Pairs of axes of equal space."""
    axes = range(len(spaces))
    return [(m, n) for m in axes for n in axes[m + 1 :] if spaces[m] == spaces[n]]
