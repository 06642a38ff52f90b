"""The images of a sum under a group, added in stages: 2 + 3 additions give the six of S3.

If the sum has a symmetry in common with the group, fewer stages are left. Each of its terms may be
replaced by an image, which adds the same to the result: ``t[a,b]*x[c]`` and ``y[a]*t[b,c]`` have no
symmetry in common, ``t[a,b]*x[c]`` and ``y[c]*t[a,b]`` have that of t.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def aligned(group: Group, own_groups: Sequence[Group]) -> tuple[Group, Group]:
    """The image of each term of a sum with which the sum has the most symmetry.

    The terms with the least symmetry choose first. Of equal images, the one with the most exchanges
    of neighbouring axes is chosen, since such axes are stored packed.

    Args:
        group: symmetry group of the result.
        own_groups: the members under which each term is unchanged; at least one term.

    Returns:
        The signed permutation of the left indices of each term, and the symmetry of their sum.

    Example:
        >>> swap, last = ((1, 0, 2), -1), ((0, 2, 1), -1)
        >>> one = ((0, 1, 2), 1)
        >>> cycles = (((1, 2, 0), 1), ((2, 0, 1), 1), ((2, 1, 0), -1))
        >>> aligned((one, swap, last, *cycles), [(one, swap), (one, last)])
        ((((0, 1, 2), 1), ((2, 0, 1), 1)), (((0, 1, 2), 1), ((1, 0, 2), -1)))
    """
    signs = dict(group)
    common = frozenset(signs)
    moves: dict[int, tuple[int, ...]] = {}
    for n in sorted(range(len(own_groups)), key=lambda n: len(own_groups[n])):
        own = [perm for perm, _ in own_groups[n]]
        images: dict[frozenset[tuple[int, ...]], tuple[int, ...]] = {}
        for perm in sorted(signs):
            images.setdefault(frozenset(_conjugate(perm, inner) for inner in own), perm)
        best = max(images, key=lambda image: (len(common & image), _neighbours(common & image)))
        moves[n], common = images[best], common & best
    chosen = tuple((moves[n], signs[moves[n]]) for n in range(len(own_groups)))
    return chosen, tuple((perm, signs[perm]) for perm in sorted(common))


def _conjugate(perm: tuple[int, ...], inner: tuple[int, ...]) -> tuple[int, ...]:
    """A symmetry of a term, of its image whose left indices are permuted by ``perm``."""
    moved = dict(zip(perm, (perm[n] for n in inner), strict=True))
    return tuple(moved[n] for n in range(len(perm)))


def _neighbours(perms: frozenset[tuple[int, ...]]) -> int:
    """Number of exchanges of two neighbouring axes."""
    moved = ([axis for axis, image in enumerate(perm) if axis != image] for perm in perms)
    return sum(len(axes) == 2 and axes[1] == axes[0] + 1 for axes in moved)


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
