"""The images of a sum under a group, added in stages: 2 + 3 additions make the six of S3."""

from __future__ import annotations

from .young import Group


def stages_of(group: Group, start: Group = ()) -> tuple[Group, ...]:
    """Signed permutations to add one after the other, which together make the group.

    Args:
        group: of the result.
        start: subgroup that what is to be permuted has already; empty for the identity.

    Example:
        >>> stages_of((((0, 1), 1), ((1, 0), -1)))
        ((((0, 1), 1), ((1, 0), -1)),)
    """
    rank = len(group[0][0])
    signs = dict(group)
    have: set[tuple[int, ...]] = {tuple(range(rank)), *(perm for perm, _ in start)}
    stages: list[Group] = []
    while len(have) < len(signs):
        larger = min(
            (_closure(have, perm) for perm in sorted(signs) if perm not in have),
            key=lambda g: (len(g), sorted(g)),
        )
        covered: set[tuple[int, ...]] = set()
        chosen = []
        for perm in sorted(larger):
            if perm not in covered:
                chosen.append((perm, signs[perm]))
                covered.update(tuple(perm[n] for n in inner) for inner in have)
        stages.append(tuple(chosen))
        have = larger
    return tuple(stages)


def _closure(have: set[tuple[int, ...]], new: tuple[int, ...]) -> set[tuple[int, ...]]:
    found = set(have) | {new}
    while True:
        more = {tuple(a[n] for n in b) for a in found for b in found} - found
        if not more:
            return found
        found |= more
