"""Memory over time of a part of a program, as far as it matters to what runs around it.

A profile is a row of segments. Each rises to a hill and falls to a valley; from one segment to the
next hills get lower and valleys higher. Whatever else has to run in between, it is best to stop at
a valley only, and of several parts in any order always that segment next whose hill is highest
above its valley.

Source: Liu, An application of generalized tree pebbling to sparse matrix factorization (1987).
"""

from __future__ import annotations

from collections.abc import Iterable

Segment = tuple[int, int, tuple[int, ...]]  # (hill, valley, statements that run)
Profile = tuple[Segment, ...]


def profile_of(segments: Iterable[Segment]) -> Profile:
    """The profile of what runs in this order.

    Example:
        >>> profile_of([(5, 1, (0,)), (7, 3, (1,)), (4, 2, (2,))])
        ((7, 2, (0, 1, 2)),)
    """
    found: list[Segment] = []
    for hill, valley, statements in segments:
        while found:
            before = found[-1]
            if before[0] > hill and before[1] < valley:
                break
            hill, statements = max(before[0], hill), before[2] + statements
            found.pop()
        found.append((hill, valley, statements))
    return tuple(found)


def end_of(profile: Profile) -> int:
    """What is left in the end."""
    return profile[-1][1] if profile else 0


def peak_of(profile: Profile) -> int:
    """The highest hill."""
    return profile[0][0] if profile else 0


def merged(one: Profile, other: Profile) -> Profile:
    """The best of all ways to run two parts that do not need each other.

    Example:
        >>> merged(((9, 1, (0,)),), ((5, 4, (1,)),))
        ((9, 1, (0,)), (6, 5, (1,)))
    """
    if not one or not other:
        return one or other
    found: list[Segment] = []
    i = j = left = right = 0
    while i < len(one) or j < len(other):
        first = j == len(other) or (
            i < len(one) and one[i][0] - one[i][1] >= other[j][0] - other[j][1]
        )
        if first:
            hill, valley, statements = one[i]
            found.append((hill + right, valley + right, statements))
            left, i = valley, i + 1
        else:
            hill, valley, statements = other[j]
            found.append((hill + left, valley + left, statements))
            right, j = valley, j + 1
    return profile_of(found)


def no_worse(one: Profile, other: Profile) -> bool:
    """True where the first part can always run in place of the second.

    Whenever the second is at a valley, the first is at one that is no higher, and on its way
    there it met no higher hill.
    """
    if one == other or not one:
        return True
    if not other or one[0][0] > other[0][0] or one[-1][1] > other[-1][1]:
        return False
    at = 0  # segments of the first part that ran
    for hill, valley, _ in other:
        while at < len(one) and one[at][0] <= hill and one[at][1] <= valley:
            at += 1
    return at == len(one)
