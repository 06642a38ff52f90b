"""The images of a sum under a group, added in stages: 2 + 3 additions give the six of S3."""

from __future__ import annotations

from ..permutation_groups import Group


def stages_of(group: Group, start: Group = ()) -> tuple[Group, ...]:
    """Sets of signed permutations whose images, added stage by stage, give those of the group.

    Args:
        group: symmetry group of the result.
        start: subgroup that is already a symmetry of the sum; empty for the identity alone.

    Example:
        >>> stages_of((((0, 1), 1), ((1, 0), -1)))
        ((((0, 1), 1), ((1, 0), -1)),)
    """
    rank = len(group[0][0])
    signs = dict(group)
    reached: set[tuple[int, ...]] = {tuple(range(rank)), *(perm for perm, _ in start)}
    stages: list[Group] = []
    while len(reached) < len(signs):
        larger = _next_larger(reached, sorted(signs))
        covered: set[tuple[int, ...]] = set()
        stage = []
        for perm in sorted(larger):
            if perm not in covered:
                stage.append((perm, signs[perm]))
                covered.update(_coset(perm, reached))
        stages.append(tuple(stage))
        reached = larger
    return tuple(stages)


def _next_larger(
    subgroup: set[tuple[int, ...]], group: list[tuple[int, ...]]
) -> set[tuple[int, ...]]:
    """The smallest subgroup of ``group`` that one more permutation and ``subgroup`` generate."""
    best: set[tuple[int, ...]] | None = None
    done: set[tuple[int, ...]] = set(subgroup)
    for perm in group:
        if perm in done:
            continue
        done |= _coset(perm, subgroup)  # its members generate the same subgroup
        larger = _generated(subgroup, perm, len(best) if best is not None else len(group))
        if larger is None:
            continue
        if best is None or (len(larger), sorted(larger)) < (len(best), sorted(best)):
            best = larger
    assert best is not None
    return best


def _generated(
    subgroup: set[tuple[int, ...]], perm: tuple[int, ...], most: int
) -> set[tuple[int, ...]] | None:
    """The group that a subgroup and a permutation generate; None if it has more than ``most``."""
    members = set(subgroup)
    waiting = [tuple(range(len(perm)))]
    while waiting:
        member = waiting.pop()
        for inner in subgroup:
            image = tuple(perm[inner[n]] for n in member)
            if image not in members:
                members |= _coset(image, subgroup)
                if len(members) > most:
                    return None
                waiting.append(image)
    return members


def _coset(perm: tuple[int, ...], subgroup: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """The products of a permutation with all members of a subgroup."""
    return {tuple(perm[n] for n in inner) for inner in subgroup}
