"""Variables and constraints of shared loops, common to all CP-SAT models of arrangements.

One 0-1 variable ``z`` for each pair of loop uses says that they share a loop. The constraints:

    z[a,b] & z[b,c] => z[a,c]                      sharing a loop is an equivalence of loop uses
    z[uj,v] & !z[uk,v] => j outside k at u         loops are nested or apart
    z[u,v] & !z[u,w] => (w before u <=> w before v)  a loop is an interval of the order
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

from ..sharing.candidates import Arrangement, FusionCandidates, exclusive_uses, pairs_of
from ..sharing.dependences import LoopUse
from ..sharing.statement_order import Cycle, Link

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import BoolVarT, IntVar


class LoopConstraints:
    """The part of a CP-SAT model that decides on loops and on the order of statements."""

    def __init__(
        self,
        candidates: FusionCandidates,
        hint: Arrangement,
        nodes: tuple[int, ...],
        *,
        ordered: bool,
        unmodelled: Mapping[LoopUse, Collection[int]],
    ) -> None:
        """Build the variables and constraints."""
        from ortools.sat.python import cp_model  # noqa: PLC0415  (planning only)

        self.model = cp_model.CpModel()
        self.candidates, self.hint, self.nodes = candidates, hint, nodes
        self.ordered, self.unmodelled = ordered, unmodelled
        self.uses: dict[int, list[LoopUse]] = {}
        for use in (use for group in candidates.groups for use in group):
            self.uses.setdefault(use[0], []).append(use)
        self.z: dict[tuple[LoopUse, LoopUse], BoolVarT] = {}
        self.partners: dict[LoopUse, dict[LoopUse, BoolVarT]] = {}
        self._share()
        self._relate()
        self.members = self._users()
        self.pos: dict[int, IntVar] = {}
        self.before: dict[tuple[int, int], BoolVarT] = {}
        self._nest()
        if ordered:
            self._order()
        self._keep_together()
        self._follow()

    def same(self, a: LoopUse, b: LoopUse) -> BoolVarT | None:
        """The variable that says that two loop uses share a loop; None where they never do."""
        return self.partners.get(a, {}).get(b)

    def _share(self) -> None:
        in_loop = {w: n for n, members in enumerate(self.hint.loops) for w in members}
        for a, b in pairs_of(self.candidates):
            shared = self.model.new_bool_var(f"z{len(self.z)}")
            self.z[a, b] = shared
            self.partners.setdefault(a, {})[b] = self.partners.setdefault(b, {})[a] = shared
            together = a in in_loop and in_loop[a] == in_loop.get(b)
            self.model.add_hint(shared, int(together))

    def _relate(self) -> None:
        """Sharing a loop is an equivalence."""
        apart = {
            w: [(a, ~one) for a, one in partners.items()] for w, partners in self.partners.items()
        }
        for partners in apart.values():
            for (a, one), (c, two) in combinations(partners, 2):
                both = self.partners[a].get(c)
                self.model.add_bool_or(one, two, *(() if both is None else (both,)))

    def _users(self) -> dict[LoopUse, dict[int, list[BoolVarT]]]:
        """For each loop use, the statements that may be in its loop, with their variables."""
        users: dict[LoopUse, dict[int, list[BoolVarT]]] = {}
        for use, partners in self.partners.items():
            users[use] = {}
            for (node, _), shared in partners.items():
                users[use].setdefault(node, []).append(shared)
        return users

    def _order(self) -> None:
        """Positions of the statements, and for every two of them which one runs first."""
        model, last = self.model, len(self.nodes) - 1
        place = {node: n for n, node in enumerate(self.hint.order)}
        for node in self.nodes:
            self.pos[node] = model.new_int_var(0, last, f"pos{node}")
        known = sorted(self.nodes, key=lambda n: place.get(n, n))
        for n, node in enumerate(known):
            model.add_hint(self.pos[node], n)
        model.add_all_different(list(self.pos.values()))
        for u, v in combinations(self.nodes, 2):
            if self.candidates.dependences.precedes(u, v):
                model.add(self.pos[u] < self.pos[v])
            elif self.candidates.dependences.precedes(v, u):
                model.add(self.pos[v] < self.pos[u])
            else:
                first = model.new_bool_var(f"b{u},{v}")
                model.add_hint(first, int(known.index(u) < known.index(v)))
                model.add(self.pos[u] < self.pos[v]).only_enforce_if(first)
                model.add(self.pos[v] < self.pos[u]).only_enforce_if(~first)
                self.before[u, v], self.before[v, u] = first, ~first
        for (p, c), (q, d) in exclusive_uses(self.candidates):
            model.add_bool_or(self._before(c, q), self._before(d, p))

    def _before(self, u: int, v: int) -> BoolVarT | bool:
        """``u`` runs before ``v``."""
        return (
            self.candidates.dependences.precedes(u, v)
            if (u, v) not in self.before
            else self.before[u, v]
        )

    def _first(self, u: int, v: int) -> BoolVarT | bool | None:
        """``u`` runs before ``v``; None if the model leaves that open."""
        if (
            self.ordered
            or self.candidates.dependences.precedes(u, v)
            or self.candidates.dependences.precedes(v, u)
        ):
            return self._before(u, v)
        return None

    def _nest(self) -> None:
        """Of two loops that meet at a statement, one that has a further member is outside."""
        members = self.members
        for own in self.uses.values():
            for j, k in combinations(own, 2):
                inside_j, inside_k = members.get(j, {}), members.get(k, {})
                met = inside_j.keys() | inside_k.keys()
                if not met:
                    continue
                outside = self.model.new_bool_var(f"y{j[0]}")
                for v in sorted(met):
                    with_j, with_k = inside_j.get(v, ()), inside_k.get(v, ())
                    for s in with_j if v not in self.unmodelled.get(k, ()) else ():
                        self.model.add_bool_or(~s, outside, *with_k)
                    for s in with_k if v not in self.unmodelled.get(j, ()) else ():
                        self.model.add_bool_or(~s, ~outside, *with_j)

    def _keep_together(self) -> None:
        """A loop is an interval of the order."""
        first = {w: {u: self._first(w, u) for u in self.nodes if u != w} for w in self.nodes}
        for (a, b), shared in self.z.items():
            apart, inside, free = ~shared, self.members[a], self.unmodelled.get(a, ())
            for w, before in first.items():
                if w in (a[0], b[0]) or w in free:
                    continue
                one, two = before[a[0]], before[b[0]]
                if one is two or one is None or two is None:
                    continue
                member = inside.get(w, ())
                self._any(apart, *member, _negated(one), two)
                self._any(apart, *member, one, _negated(two))

    def _any(self, *literals: BoolVarT | bool) -> None:
        """At least one of these holds."""
        if not any(known is True for known in literals):
            self.model.add_bool_or(*(x for x in literals if not isinstance(x, bool)))

    def _follow(self) -> None:
        """A repeated statement is in a loop of its reader, together with all users of its array."""
        for instance in self.candidates.instances:
            for use, origin in self.candidates.repeats.items():
                if use[0] not in instance.producers:
                    continue
                partners = self.partners.get(use, {})
                followed = self.same(use, origin)
                for shared in partners.values():
                    if followed is None:
                        self.model.add_bool_and(~shared)
                        continue
                    self.model.add_implication(shared, followed)
                if followed is None:
                    continue
                for user in (*instance.producers, *instance.consumers):
                    if user not in (use[0], origin[0]):
                        inside = [
                            s
                            for other, s in partners.items()
                            if other[0] == user
                            and (other in self.candidates.repeats or user in instance.consumers)
                        ]
                        self.model.add_bool_or(~followed, *inside)

    def exclude(self, cycle: Cycle) -> bool:
        """Forbid the loops of a cycle together, unless one of them is inside another.

        Return False, without a constraint, where unmodelled loop uses may put one inside another.
        """
        nested: list[BoolVarT] = []
        for link in (link for link in cycle if link.loop):
            for other in (o for o in cycle if o is not link):
                if other.enter in self.unmodelled.get(link.use, ()):
                    return False
                nested += self.members[link.use].get(other.enter, ())
        self._any(*(~self._one(link) for link in cycle if link.enter != link.leave), *nested)
        return True

    def _one(self, link: Link) -> BoolVarT:
        """The variable that says that a link's loop holds both of its ends."""
        shared = self.same(*(w for w in link.loop if w[0] in (link.enter, link.leave)))
        assert shared is not None
        return shared


def _negated(literal: BoolVarT | bool) -> BoolVarT | bool:
    return not literal if isinstance(literal, bool) else ~literal


def constraint_count(candidates: FusionCandidates) -> int:
    """Estimated number of constraints of a full model: fusable pairs times statements."""
    pairs = sum(comb(len(group), 2) for group in candidates.groups)
    return pairs * len({node for group in candidates.groups for node, _ in group})
