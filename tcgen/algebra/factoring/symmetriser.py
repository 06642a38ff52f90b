"""The images of a sum under a group, added in stages: 2 + 3 additions make the six of S3."""

from __future__ import annotations

from ..permutation_groups import Group


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
        larger = _next_larger(have, sorted(signs))
        covered: set[tuple[int, ...]] = set()
        chosen = []
        for perm in sorted(larger):
            if perm not in covered:
                chosen.append((perm, signs[perm]))
                covered.update(tuple(perm[n] for n in inner) for inner in have)
        stages.append(tuple(chosen))
        have = larger
    return tuple(stages)


def _next_larger(have: set[tuple[int, ...]], group: list[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """The smallest subgroup beyond ``have`` that holds it and one more permutation."""
    best: set[tuple[int, ...]] | None = None
    done: set[tuple[int, ...]] = set(have)
    for perm in group:
        if perm in done:
            continue
        # permutations of one coset make the same subgroup
        done.update(tuple(perm[n] for n in inner) for inner in have)
        found = _closure(have, perm, len(best) if best is not None else len(group))
        if found is None:
            continue
        if best is None or (len(found), sorted(found)) < (len(best), sorted(best)):
            best = found
    assert best is not None
    return best


def _closure(
    have: set[tuple[int, ...]], new: tuple[int, ...], most: int
) -> set[tuple[int, ...]] | None:
    """The subgroup made by a subgroup and one more permutation; None where it has too many."""
    found = set(have)
    waiting = [tuple(range(len(new)))]
    while waiting:
        # whole cosets g . have at a time
        one = waiting.pop()
        for first in have:
            reached = tuple(new[first[n]] for n in one)
            if reached not in found:
                coset = {tuple(reached[n] for n in inner) for inner in have}
                found |= coset
                if len(found) > most:
                    return None
                waiting.append(reached)
    return found
