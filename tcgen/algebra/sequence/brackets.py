"""The choice of the user's intermediates that are inlined.

The choice is greedy: one intermediate after another is inlined into all its readers if that lowers
the flops of the whole system, with equal products counted once, until nothing improves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ...ir.program import Add
from ...ir.system import Equation, System, factor_refs
from ...ir.tensor import Ref, Role
from ..equations.inline import inline, inlined_count, keep_needed
from ..equations.permutations import separate_permutations
from .common_products import Recipe, Workspace


@dataclass(slots=True)
class _Costs:
    """The recipes of equations, each made once, and the flops of sets of equations."""

    workspace: Workspace
    taken: frozenset[str]
    calls: int
    recipes: dict[Equation, tuple[Recipe, ...]] = field(default_factory=dict)

    def recipes_of(self, equation: Equation) -> tuple[Recipe, ...]:
        recipes = self.recipes.get(equation)
        if recipes is None:
            parts = separate_permutations(equation, set(self.taken))
            recipes = self.recipes[equation] = tuple(self.workspace.recipe(p) for p in parts)
        return recipes

    def total(self, equations: Iterable[Equation]) -> Fraction:
        recipes = [r for e in equations for r in self.recipes_of(e)]
        return total_flops(self.workspace, recipes, self.calls)


def total_flops(workspace: Workspace, recipes: Iterable[Recipe], calls: int = 1) -> Fraction:
    """Flops of all recipes together at the planning extents; each node counts once.

    Nodes that depend only on constants are computed once in ``calls`` calls, and count accordingly.
    """
    recipes = tuple(recipes)
    stored = stored_nodes(workspace, recipes)
    once = sum(workspace.nodes[n].flops for n in stored if not workspace.nodes[n].tensor.volatile)
    each = sum(workspace.nodes[n].flops for n in stored if workspace.nodes[n].tensor.volatile)
    for recipe in recipes:
        total = 0
        elements = workspace.iterations(recipe.lhs.indices)
        for n, term in enumerate(recipe.terms):
            adds = n > 0 or recipe.lhs.tensor.accumulate
            if term.node in stored:
                scaled = term.stored is not None and abs(term.stored.coeff) != 1
                total += elements * (adds + scaled)
            else:
                # The flops of contractions and of sums over an index include their additions.
                included = term.direct.sums or not isinstance(term.direct.op, Add)
                total += term.flops + (0 if included else elements * adds)
        if _varies(recipe):
            each += total
        else:
            once += total
    return each + Fraction(once, calls)


def _varies(recipe: Recipe) -> bool:
    """True if an array depends on what changes from call to call."""
    reads = (r.tensor.volatile for t in recipe.terms for r in t.direct.operands)
    return recipe.lhs.tensor.accumulate or any(reads)


def stored_nodes(workspace: Workspace, recipes: Iterable[Recipe]) -> frozenset[str]:
    """Nodes that become arrays: those that another product reads, or that are several terms.

    A product of constants in an array that is not constant becomes an array too. A bound program
    then computes it once and only adds it in each call.
    """
    uses: Counter[str] = Counter()
    stored: set[str] = set()
    pending: list[str] = []
    for recipe in recipes:
        varies = _varies(recipe)
        for term in recipe.terms:
            pending.extend(term.children)
            if term.node is None:
                continue
            uses[term.node] += 1
            constant = not workspace.nodes[term.node].tensor.volatile
            if uses[term.node] > 1 or (constant and varies):
                pending.append(term.node)
    while pending:
        name = pending.pop()
        if name not in stored:
            stored.add(name)
            pending.extend(workspace.nodes[name].children)
    return frozenset(stored)


def choose_brackets(system: System, workspace: Workspace, calls: int = 1) -> System:
    """The system with intermediates inlined where that lowers the flops.

    Candidates are anonymous intermediates, and named ones with a single reader. The search starts
    from the system as written and takes only strict improvements. The cost of constants is divided
    among ``calls`` calls of a bound program.
    """
    equations = {e.lhs.tensor.name: e for e in system.equations}
    costs = _Costs(workspace, frozenset(t.name for t in system.tensors), calls)
    best = costs.total(equations.values())
    reads = _Reads.of(equations)
    for _ in range(workspace.thresholds.inlining_passes):
        improved = False
        for name in [e.lhs.tensor.name for e in system.equations]:
            changed = _inlined(equations, name, reads, workspace)
            if changed is None:
                continue
            cost = costs.total(changed.values())
            if cost < best:
                equations, best, improved = changed, cost, True
                reads = _Reads.of(equations)
        if not improved:
            break
    return keep_needed(replace(system, equations=tuple(equations.values())))


@dataclass(frozen=True, slots=True)
class _Reads:
    """References to tensors as factors, counted by the names of the equation and the tensor.

    ``inside`` holds the tensors that an element-wise expression reads.
    """

    factors: dict[str, Counter[str]]
    inside: frozenset[str]

    @staticmethod
    def of(equations: Mapping[str, Equation]) -> _Reads:
        factors: dict[str, Counter[str]] = {}
        inside: set[str] = set()
        for name, equation in equations.items():
            for factor in (f for t in equation.terms for f in t.factors):
                if isinstance(factor, Ref):
                    factors.setdefault(factor.tensor.name, Counter())[name] += 1
                else:
                    inside.update(ref.tensor.name for ref in factor_refs(factor))
        return _Reads(factors, frozenset(inside))


def _inlined(
    equations: dict[str, Equation], name: str, reads: _Reads, workspace: Workspace
) -> dict[str, Equation] | None:
    """The equations with one intermediate inlined everywhere; None unless it is a candidate."""
    inner = equations.get(name)
    if inner is None or inner.lhs.tensor.role is not Role.TEMP:
        return None
    tensor = inner.lhs.tensor
    factors = reads.factors.get(name, Counter[str]())
    if name in reads.inside or (not inner.anonymous and factors.total() != 1):
        return None
    readers = [equations[reader] for reader in factors]
    most = workspace.thresholds.inlined_terms
    # Terms without the tensor stay as they are, and need not be looked at where they are too many.
    if any(len(e.terms) - factors[e.lhs.tensor.name] > most for e in readers):
        return None
    if any(inlined_count(e, inner) > most for e in readers):
        return None
    changed = {n: e for n, e in equations.items() if n != name}
    for reader in readers:
        merged = inline(reader, inner)
        if any(r.tensor == tensor for t in merged.terms for r in t.refs):
            return None
        changed[reader.lhs.tensor.name] = workspace.forms.clean(merged)
    return changed
