"""Level 0: spaces, indices, tensors and references to them.

Everything here is a frozen dataclass of tuples; equal fields mean equal objects. Names tell apart
spaces, indices and tensors, so only the name is hashed: searches look them up millions of times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ..dtypes import BY_NAME
from ..errors import TcgenError
from ..records.tensors import Packing as Packing
from ..records.tensors import Role as Role
from ..records.tensors import Space as Space
from ..records.tensors import Storage as Storage
from ..records.tensors import Symmetry as Symmetry
from ..records.tensors import Tensor as Tensor
from ..records.tensors import element_type as element_type


@dataclass(frozen=True, slots=True)
class Index:
    """A letter and the space it runs over; equal name and space are the same index."""

    name: str
    space: Space

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor read or written with indices: ``t2[i,j,a,b]``.

    An index of a part on an axis of a joined space means that slice.
    """

    tensor: Tensor
    indices: tuple[Index, ...] = ()

    def __str__(self) -> str:
        if not self.indices:
            return self.tensor.name
        return f"{self.tensor.name}[{','.join(i.name for i in self.indices)}]"

    def renamed(self, names: Mapping[Index, Index]) -> Ref:
        """The reference with indices replaced, all at once."""
        return Ref(self.tensor, tuple(names.get(i, i) for i in self.indices))


def exchanged(rank: int, *pairs: tuple[int, int]) -> tuple[int, ...]:
    """The permutation of axes that exchanges each pair: (1, 0, 3, 2) for (0, 1) and (2, 3)."""
    perm = list(range(rank))
    for first, second in pairs:
        perm[first], perm[second] = second, first
    return tuple(perm)


def distinct(indices: Iterator[Index] | tuple[Index, ...]) -> tuple[Index, ...]:
    """Indices in order of first occurrence, each once."""
    return tuple(dict.fromkeys(indices))


def element_bytes(tensor: Tensor, dtype: str) -> int:
    """Bytes of one element of a tensor's array in a program of ``dtype``."""
    return BY_NAME[element_type(tensor, dtype)].itemsize


# Permutations of the largest symmetry group that is listed: two antisymmetric groups of five axes.
MOST_SYMMETRIES = 14_400


@lru_cache(maxsize=100)
def symmetry_group(tensor: Tensor, most: int = MOST_SYMMETRIES) -> tuple[Symmetry, ...]:
    """All permutations that the generators imply, identity first, in a fixed order.

    Raises:
        ValueError: the generators force the tensor to be zero.
        TcgenError: there are more than ``most`` permutations.
    """
    identity = Symmetry(tuple(range(tensor.rank)))
    generators = tuple(
        Symmetry(s.perm, s.sign, s.conj and not tensor.real) for s in tensor.symmetry
    )
    signs: dict[tuple[tuple[int, ...], bool], int] = {(identity.perm, False): 1}
    frontier = [identity]
    while frontier:
        new_elements = []
        for old in frontier:
            for g in generators:
                new = Symmetry(
                    tuple(old.perm[p] for p in g.perm), old.sign * g.sign, old.conj != g.conj
                )
                key = (new.perm, new.conj)
                if key not in signs:
                    if len(signs) == most:
                        raise TcgenError(
                            f"the symmetries of {tensor.name} have more than {most:,} "
                            f"permutations: declare fewer of its axes symmetric"
                        )
                    signs[key] = new.sign
                    new_elements.append(new)
                elif signs[key] != new.sign:
                    raise ValueError(f"the symmetries of {tensor.name} force it to be zero")
        frontier = new_elements
    return tuple(Symmetry(perm, sign, conj) for (perm, conj), sign in signs.items())


def generators(tensor: Tensor, elements: Iterable[Symmetry]) -> tuple[Symmetry, ...]:
    """A small set of generators of a symmetry group of a tensor, which is given by its elements."""
    chosen: tuple[Symmetry, ...] = ()
    generated = {Symmetry(tuple(range(tensor.rank)))}
    for element in elements:
        if element not in generated:
            chosen = (*chosen, element)
            generated = set(symmetry_group(replace(tensor, symmetry=chosen)))
    return chosen


def first_image(ref: Ref) -> tuple[int, Ref]:
    """The sign and the reference with the first of its equal index orders, by names."""
    group = [s for s in symmetry_group(ref.tensor) if not s.conj]
    first = min(group, key=lambda s: [ref.indices[k].name for k in s.perm])
    return first.sign, Ref(ref.tensor, tuple(ref.indices[k] for k in first.perm))
