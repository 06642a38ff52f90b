"""Which intermediates of the user are kept and which are multiplied out.

Greedy: one intermediate after another is inlined into all its readers where that lowers the
flops of the whole system, equal products counted once, until nothing improves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ...ir.program import Add
from ...ir.system import Equation, System
from ...ir.tensor import Ref, Role
from ..equations.inline import inline, inlined_count, keep_needed, read_in_apply
from ..equations.like_terms import clean_equation
from ..equations.permutations import separate_permutations
from .common_products import Recipe, Workspace, refs_read


@dataclass(slots=True)
class _Costs:
    """Recipes of equations, each made once, and what a set of equations costs together."""

    space: Workspace
    taken: frozenset[str]
    recipes: dict[Equation, tuple[Recipe, ...]] = field(default_factory=dict)

    def recipes_of(self, equation: Equation) -> tuple[Recipe, ...]:
        found = self.recipes.get(equation)
        if found is None:
            parts = separate_permutations(equation, set(self.taken))
            found = tuple(self.space.recipe(p) for p in parts)
            self.recipes[equation] = found
        return found

    def total(self, equations: Iterable[Equation]) -> int:
        return total_flops(self.space, [r for e in equations for r in self.recipes_of(e)])


def total_flops(space: Workspace, recipes: Iterable[Recipe]) -> int:
    """Flops of all recipes together at the planning extents, shared nodes counted once."""
    recipes = tuple(recipes)
    stored = stored_nodes(space, recipes)
    total = sum(space.nodes[name].flops for name in sorted(stored))
    for recipe in recipes:
        points = space.points(recipe.lhs.indices)
        for n, product in enumerate(recipe.products):
            adds = n > 0 or recipe.lhs.tensor.accumulate
            if product.node in stored:
                scaled = product.stored is not None and abs(product.stored.coeff) != 1
                total += points * (adds + scaled)
            else:
                # a contraction's 2 flops include its addition; a sum has counted its own
                included = product.direct.sums or not isinstance(product.direct.op, Add)
                total += product.flops + (0 if included else points * adds)
    return total


def stored_nodes(space: Workspace, recipes: Iterable[Recipe]) -> frozenset[str]:
    """Nodes that need an array: read by another product, or equal to two terms or more.

    In an array that is not constant, a product of constants is stored too: it is then computed
    once for a bound program and only added at each call.
    """
    uses: Counter[str] = Counter()
    stored: set[str] = set()
    waiting: list[str] = []
    for recipe in recipes:
        mixed = any(r.tensor.volatile for p in recipe.products for r in refs_read(p.direct.op))
        mixed = mixed or recipe.lhs.tensor.accumulate
        for product in recipe.products:
            waiting.extend(product.children)
            if product.node is None:
                continue
            uses[product.node] += 1
            constant = not space.nodes[product.node].tensor.volatile
            if uses[product.node] > 1 or (constant and mixed):
                waiting.append(product.node)
    while waiting:
        name = waiting.pop()
        if name not in stored:
            stored.add(name)
            waiting.extend(space.nodes[name].children)
    return frozenset(stored)


def choose_brackets(system: System, space: Workspace) -> System:
    """The system with intermediates inlined where that lowers the flops.

    Anonymous intermediates are candidates, and named ones with a single reader, unless they are
    constant and a volatile equation reads them. Starts from
    everything kept and takes only strict improvements, so that it is never worse.
    """
    equations = {e.lhs.tensor.name: e for e in system.equations}
    costs = _Costs(space, frozenset(t.name for t in system.tensors))
    best = costs.total(equations.values())
    for _ in range(space.thresholds.inlining_passes):
        improved = False
        for name in [e.lhs.tensor.name for e in system.equations]:
            changed = _inlined(equations, name, space)
            if changed is None:
                continue
            cost = costs.total(changed.values())
            if cost < best:
                equations, best, improved = changed, cost, True
        if not improved:
            break
    return keep_needed(replace(system, equations=tuple(equations.values())))


def _is_volatile(equation: Equation) -> bool:
    return any(r.tensor.volatile for t in equation.terms for r in t.refs)


def _inlined(
    equations: dict[str, Equation], name: str, space: Workspace
) -> dict[str, Equation] | None:
    """The equations with one intermediate inlined everywhere; None if it is no candidate."""
    inner = equations.get(name)
    if inner is None or inner.lhs.tensor.role is not Role.TEMP:
        return None
    tensor = inner.lhs.tensor
    readers = [
        e for e in equations.values() if any(r.tensor == tensor for t in e.terms for r in t.refs)
    ]
    reads = sum(
        isinstance(f, Ref) and f.tensor == tensor
        for e in readers
        for t in e.terms
        for f in t.factors
    )
    if not inner.anonymous and reads != 1:
        return None
    if read_in_apply(tensor, tuple(readers)):
        return None
    if not tensor.volatile and any(_is_volatile(e) for e in readers):
        return None  # it is computed once for a bound program
    most = space.thresholds.inlined_terms
    if any(inlined_count(e, inner) > most for e in readers):
        return None
    changed = {n: e for n, e in equations.items() if n != name}
    for reader in readers:
        merged = inline(reader, inner)
        if any(r.tensor == tensor for t in merged.terms for r in t.refs):
            return None
        changed[reader.lhs.tensor.name] = clean_equation(merged, space.complex_values, frozenset())
    return changed
