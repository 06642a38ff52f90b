"""Objective ``linear``: the memory objective of Allam et al. as an integer program for CP-SAT.

Each tree of the fusion graph is a program of its own. A 0-1 variable says that a loop is fused on
an edge. Two loops must be nested or disjoint: the inequalities of the paper say exactly that if a
path is read as a path of edges, with its ends the first and last edge, the slack over the edges
between them, and a potential fusion edge that does not exist the constant 0.

Among equal optima the plan has the fewest fused loops, and among those the first in the order of
the variables, so that it does not depend on the solver.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import floor, gcd

from ..ir.cost import saving
from .sharing.graph import Edge, FusionGraph, Variable
from .solver.cp_sat import solve

_LARGEST = 2**60  # sum of objective coefficients: CP-SAT adds them in int64
_CHUNK = 40  # variables that one objective orders, with powers of two as coefficients


@dataclass(frozen=True, slots=True)
class Inequality:
    """``sum of coefficient * variable <= bound``; terms with nonzero coefficients, in order."""

    terms: tuple[tuple[Variable, int], ...]
    bound: int

    @property
    def vacuous(self) -> bool:
        """True where every choice of variables satisfies it."""
        return sum(c for _, c in self.terms if c > 0) <= self.bound

    def holds(self, fused: Collection[Variable]) -> bool:
        """True where these fused variables satisfy it."""
        return sum(c for v, c in self.terms if v in fused) <= self.bound


def variables(graph: FusionGraph, part: tuple[int, ...]) -> tuple[Variable, ...]:
    """Potential fusion edges of a tree: x1, x2, ... of the paper's Table 1."""
    return tuple((e, loop) for e in part for loop in graph.edges[e].loops)


def path_inequalities(graph: FusionGraph, part: tuple[int, ...]) -> tuple[Inequality, ...]:
    """Inequalities of Eq. (1), Figure 5: two for each path and pair of loops, also vacuous ones."""
    order = {v: n for n, v in enumerate(variables(graph, part))}
    inequalities: list[Inequality] = []
    for first, inner, last in _paths(graph, part):
        start, stop = set(graph.edges[first].loops), set(graph.edges[last].loops)
        allowed = start | stop
        for edge in inner:
            allowed &= set(graph.edges[edge].loops)
        for j, k in combinations(sorted(allowed & (start | stop)), 2):
            if (j in start and k in stop) or (k in start and j in stop):
                inequalities.append(_inequality(order, first, inner, last, j, k))
                inequalities.append(_inequality(order, first, inner, last, k, j))
    return tuple(inequalities)


def _inequality(
    order: dict[Variable, int], first: int, inner: tuple[int, ...], last: int, j: int, k: int
) -> Inequality:
    """(x_sj + x_tk) - (x_sk + x_tj) <= 1 + sum over inner edges a of (1 - x_ak)."""
    terms = [((first, j), 1), ((last, k), 1), ((first, k), -1), ((last, j), -1)]
    terms += [((edge, k), 1) for edge in inner]
    present = sorted(((v, c) for v, c in terms if v in order), key=lambda term: order[term[0]])
    return Inequality(tuple(present), 1 + len(inner))


def _paths(graph: FusionGraph, part: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """Paths of two or more edges: first edge, edges between, last edge, which has a larger id.

    A path is only extended while its inner edges have two loops in common; beyond, it has no
    inequalities.
    """
    touching: dict[int, list[Edge]] = {}
    for edge in (graph.edges[e] for e in part):
        touching.setdefault(edge.producer, []).append(edge)
        touching.setdefault(edge.consumer, []).append(edge)

    def extend(
        first: int, inner: tuple[int, ...], last: Edge, node: int, shared: frozenset[int] | None
    ) -> Iterator[tuple[int, tuple[int, ...], int]]:
        for edge in touching[node]:
            if edge == last:
                continue
            if edge.id > first:
                yield first, inner, edge.id
            common = frozenset(edge.loops) if shared is None else shared.intersection(edge.loops)
            if len(common) >= 2:
                beyond = edge.producer if edge.consumer == node else edge.consumer
                yield from extend(first, (*inner, edge.id), edge, beyond, common)

    for edge in (graph.edges[e] for e in part):
        for node in (edge.producer, edge.consumer):
            yield from extend(edge.id, (), edge, node, None)


@dataclass(frozen=True, slots=True)
class Solution:
    """A choice of fused loops: the variables that are 1, in order.

    The value is that of Eq. (10), in saved elements; the bound is a proven upper bound on it.
    """

    fused: tuple[Variable, ...]
    value: int
    bound: int


def solve_linear(graph: FusionGraph, extents: Mapping[str, int], seconds: float) -> Solution:
    """The fused loops of greatest value by Eq. (10) of Allam et al., over all trees of a graph."""
    total = max(1, sum(len(e.candidates) for e in graph.edges))
    solutions = [
        _solve_tree(graph, part, extents, seconds * len(variables(graph, part)) / total)
        for part in graph.parts
    ]
    return Solution(
        tuple(v for s in solutions for v in s.fused),
        sum(s.value for s in solutions),
        sum(s.bound for s in solutions),
    )


def savings(
    graph: FusionGraph, part: tuple[int, ...], extents: Mapping[str, int]
) -> dict[Variable, int]:
    """Objective coefficient of each variable of a tree."""
    return {
        (e, c.loop): saving(graph.edges[e].array, c.axis, extents)
        for e in part
        for c in graph.edges[e].candidates
    }


def _solve_tree(
    graph: FusionGraph, part: tuple[int, ...], extents: Mapping[str, int], seconds: float
) -> Solution:
    weights = savings(graph, part, extents)
    rules = tuple(r for r in path_inequalities(graph, part) if not r.vacuous)
    # A loop of one iteration saves nothing, and every other choice is legal without it.
    order = tuple(v for v in variables(graph, part) if weights[v] > 0)
    total = sum(weights.values())
    if all(rule.holds(order) for rule in rules):
        return Solution(order, total, total)
    return _Search(order, weights, rules, seconds).run()


class _Search:
    """One CP-SAT model, solved for one objective after the other."""

    def __init__(
        self,
        order: tuple[Variable, ...],
        weights: dict[Variable, int],
        rules: tuple[Inequality, ...],
        seconds: float,
    ) -> None:
        from ortools.sat.python import cp_model  # noqa: PLC0415  (planning only)

        self.order, self.weights, self.seconds = order, weights, seconds
        self.model = cp_model.CpModel()
        self.x = {v: self.model.new_bool_var(f"x{n}") for n, v in enumerate(order, 1)}
        for rule in rules:
            terms = [(v, c) for v, c in rule.terms if v in self.x]
            if sum(c for _, c in terms if c > 0) > rule.bound:
                self.model.add(sum(c * self.x[v] for v, c in terms) <= rule.bound)
        # No fusion at all is legal.
        self.best: frozenset[Variable] = frozenset()

    def run(self) -> Solution:
        """Most saved elements within the given seconds; among proven optima, a unique one."""
        divisor = gcd(*self.weights.values())
        units = {v: self.weights[v] // divisor for v in self.order}
        # Savings beyond int64 are rounded down, and then not proven optimal.
        shift = max(0, sum(units.values()).bit_length() - _LARGEST.bit_length() + 1)
        rounded = {v: unit >> shift for v, unit in units.items()}
        limit = self._maximise(rounded)
        value = sum(self.weights[v] for v in self.best)
        if shift:
            bound = ((limit + len(self.order)) << shift) * divisor
        else:
            bound = limit * divisor
        bound = min(max(bound, value), sum(self.weights.values()))
        if value == bound:
            self._break_ties(rounded)
            value = sum(self.weights[v] for v in self.best)
        return Solution(tuple(v for v in self.order if v in self.best), value, bound)

    def _break_ties(self, rounded: Mapping[Variable, int]) -> None:
        """Among optima, prefer fewer fused loops, and then later variables."""
        self._keep(rounded)
        fewest = dict.fromkeys(self.order, -1)
        self._maximise(fewest)
        self._keep(fewest)
        for start in range(0, len(self.order), _CHUNK):
            chunk = self.order[start : start + _CHUNK]
            last = {v: -(1 << (len(chunk) - 1 - n)) for n, v in enumerate(chunk)}
            self._maximise(last)
            self._keep(last)

    def _keep(self, objective: Mapping[Variable, int]) -> None:
        """Require later solutions to reach the same value of this objective."""
        reached = sum(c for v, c in objective.items() if v in self.best)
        self.model.add(sum(c * self.x[v] for v, c in objective.items()) >= reached)

    def _maximise(self, objective: Mapping[Variable, int]) -> int:
        """Improve the best choice; return a proven upper bound on the objective."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        for v in self.order:
            self.model.add_hint(self.x[v], int(v in self.best))
        self.model.maximize(sum(c * self.x[v] for v, c in objective.items()))
        answer = solve(self.model, self.seconds)
        self.seconds = max(0.0, self.seconds - answer.spent)
        if answer.found:
            chosen = frozenset(v for v in self.order if answer.solver.boolean_value(self.x[v]))
            if sum(objective.get(v, 0) for v in chosen) >= sum(
                objective.get(v, 0) for v in self.best
            ):
                self.best = chosen
        elif not answer.unknown:
            raise answer.refusal("fusion")
        reached = sum(objective.get(v, 0) for v in self.best)
        if answer.optimal:
            return reached
        most = sum(c for c in objective.values() if c > 0)
        # CP-SAT states bounds as floats.
        if most >= 2**53 or answer.unknown:
            return most
        return min(most, floor(answer.solver.best_objective_bound + 0.5))
