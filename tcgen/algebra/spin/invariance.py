"""Conservation of charge by the tensors of a system, proven term by term.

In a term, the charge that leaves one factor through a summed index enters another one. Factors may
therefore be turned around, so that each summed index leaves one and enters another. If that
works for all terms of an equation, the left side conserves charge as well, and is also an invariant
under rotations of the spin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias, TypeVar

from ...ir.expr import Delta
from ...ir.system import Equation, Term, factor_refs
from ...ir.tensor import Index, Ref, Tensor
from .labels import Flow, electrons, has_labels, input_flow

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Form:
    """The known dependence of a tensor on labels.

    Attributes:
        flow: flow of a tensor that conserves charge and is a sum of products of deltas of labels;
            None if it may depend on labels in any way.
        parts: groups of axes that conserve charge each by itself, as the axes of an electron
            in integrals without exchange; () if all axes are one group.
        constant: True if all labels have the same value in a closed shell, as in denominators.
    """

    flow: Flow | None = None
    constant: bool = False
    parts: tuple[tuple[int, ...], ...] = ()

    def part(self, axis: int) -> int:
        """Number of the group that holds an axis."""
        return next((n for n, part in enumerate(self.parts) if axis in part), 0)


Node: TypeAlias = tuple[int, int]
"""A group of axes that turns around by itself: the number of a factor and of the group."""

Slots: TypeAlias = dict[Index, list[tuple[Node, int]]]
"""For each index, the nodes that hold it, each with the direction of the axis."""

_LEFT = (-1, 0)  # the node of the left side in ``Slots``


def form_of_input(tensor: Tensor) -> Form:
    """Dependence of an input on labels, as declared, or by its halves."""
    flow = input_flow(tensor)
    if sum(map(abs, flow)) < 2:
        return Form(constant=True)
    return Form(flow, parts=electrons(tensor)) if sum(flow) == 0 else Form()


def form_of(equation: Equation, forms: Mapping[Tensor, Form]) -> Form:
    """Dependence of the left side of an equation on labels, from the ``forms`` of what it reads."""
    lhs = equation.lhs
    labelled = [k for k, i in enumerate(lhs.indices) if has_labels(i.space)]
    if len(labelled) < 2 or all(_is_constant(term, forms) for term in equation.terms):
        return Form(constant=True)
    if len(labelled) % 2 == 0:
        for flow in _flows(lhs.tensor, labelled):
            if all(_flows_through(term, lhs, flow, forms) for term in equation.terms):
                return Form(flow, parts=_common_parts(equation, flow, forms))
    return Form()


def contradiction(term: Term, forms: Mapping[Tensor, Form]) -> tuple[Ref, Index] | None:
    """An input that cannot be turned so that charge flows, and the index at which it does not.

    None if all is well; where an index is held more than twice, as such a product conserves
    nothing by itself; and where an intermediate is read, which may conserve in several ways.
    """
    if any(not r.tensor.is_input for r in term.refs):
        return None
    slots = _slots(term, forms)
    if slots is None:
        return None
    pairs = {i: s for i, s in slots.items() if i in term.sums and len(s) == 2}
    if any(len(s) > 2 for s in slots.values()):
        return None
    found = _turned(pairs, {})
    if not isinstance(found, Index):
        return None
    held = (term.factors[number] for (number, _), _ in pairs[found])
    inputs = [factor for factor in held if isinstance(factor, Ref)]
    # Of two inputs, the one with more axes has the less usual order.
    return (max(inputs, key=lambda r: r.tensor.rank), found) if inputs else None


def _flows(tensor: Tensor, labelled: list[int]) -> list[Flow]:
    """Possible flows: as declared, from the first half to the second, then all others."""
    half = len(labelled) // 2
    sides = [] if tensor.conserves is None else [tensor.conserves[0]]
    sides += [tuple(labelled[:half])]
    # The first axis may be on the first side: all directions may be reversed.
    sides += [(labelled[0], *more) for more in combinations(labelled[1:], half - 1)]
    return [
        tuple(0 if k not in labelled else 1 if k in side else -1 for k in range(tensor.rank))
        for side in dict.fromkeys(sides)
    ]


def _is_constant(term: Term, forms: Mapping[Tensor, Form]) -> bool:
    return all(
        not isinstance(f, Delta) and all(forms[r.tensor].constant for r in factor_refs(f))
        for f in term.factors
    )


def _flows_through(term: Term, lhs: Ref, flow: Flow, forms: Mapping[Tensor, Form]) -> bool:
    """True if the term, and each of its permutations, is an invariant with the flow of ``lhs``."""
    for perm in term.perms:
        moved = [flow[image] for image in perm.images]
        if moved not in (list(flow), [-f for f in flow]):
            return False
    slots = _slots(term, forms)
    if slots is None:
        return False
    for index, direction in zip(lhs.indices, flow, strict=True):
        if direction:
            slots[index].append((_LEFT, -direction))
    labelled = [i for i in (*lhs.indices, *term.sums) if has_labels(i.space)]
    constant = [
        i
        for i in labelled
        if not slots[i] and i in term.sums  # a sum over factors without labels: a number
    ]
    if any(len(slots[i]) != 2 for i in labelled if i not in constant):
        return False
    return not isinstance(_turned(slots, {_LEFT: 1}), Index)


def _slots(term: Term, forms: Mapping[Tensor, Form]) -> Slots | None:
    """Places of the labelled indices of a term; None if a factor depends on labels in any way."""
    slots: Slots = defaultdict(list)
    for number, factor in enumerate(term.factors):
        if isinstance(factor, Delta):
            if has_labels(factor.left.space):
                slots[factor.left].append(((number, 0), 1))
                slots[factor.right].append(((number, 0), -1))
            continue
        if all(forms[r.tensor].constant for r in factor_refs(factor)):
            continue
        if not isinstance(factor, Ref):
            return None
        form = forms[factor.tensor]
        if form.flow is None:
            return None
        for axis, (index, direction) in enumerate(zip(factor.indices, form.flow, strict=True)):
            if direction:
                slots[index].append(((number, form.part(axis)), direction))
    return slots


def _common_parts(
    equation: Equation, flow: Flow, forms: Mapping[Tensor, Form]
) -> tuple[tuple[int, ...], ...]:
    """Groups of axes of a left side that no term connects; () if there is one."""
    axes = [k for k, direction in enumerate(flow) if direction]
    groups = [{k} for k in axes]
    for term in equation.terms:
        slots = _slots(term, forms)
        assert slots is not None, "charge flows through the term"
        nodes = [{node for node, _ in pair} for pair in slots.values()]
        left = [{node for node, _ in slots[index]} for index in equation.lhs.indices]
        for images in [perm.images for perm in term.perms] or [tuple(range(len(left)))]:
            held = {image: left[k] for k, image in enumerate(images) if image in axes}
            for joined in _joined([*nodes, *held.values()]):
                touched = {k for k in axes if held[k] & joined}
                groups = _joined([*groups, touched])
    return tuple(sorted(tuple(sorted(g)) for g in groups)) if len(groups) > 1 else ()


def _joined(sets: list[set[T]]) -> list[set[T]]:
    """Unions of sets that overlap, directly or by way of others."""
    unions: list[set[T]] = []
    for one in sets:
        if one:
            apart = [u for u in unions if not u & one]
            unions = [*apart, one.union(*(u for u in unions if u & one))]
    return unions


def _turned(slots: Slots, turns: dict[Node, int]) -> dict[Node, int] | Index:
    """For each node 1, or -1 if it is turned around; or an index at which no choice works."""
    pending = [(index, pair) for index, pair in slots.items() if len(pair) == 2]
    while pending:
        known = [p for p in pending if any(n in turns for n, _ in p[1])]
        if not known:
            turns[pending[0][1][0][0]] = 1
            continue
        for index, ((one, d1), (two, d2)) in known:
            if one not in turns:
                one, d1, two, d2 = two, d2, one, d1
            wanted = -turns[one] * d1 * d2
            if turns.setdefault(two, wanted) != wanted:
                return index
        pending = [p for p in pending if p not in known]
    return turns
