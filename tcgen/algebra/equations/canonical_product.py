"""Canonical form of a product: the least labelling of its indices, exact under all symmetries.

References, deltas and element-wise expressions become atoms: a label, indices and a symmetry group.
Two products have equal keys exactly where they are equal up to the names of indices, the order of
factors and the symmetries of the tensors. The ties of the least labelling are the symmetries of the
product. Groups of factors that only share summed indices among themselves are labelled apart, so
that a power of a sum is no more work than the sum.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations, product
from math import factorial, prod
from typing import TypeAlias, assert_never

from ...errors import TcgenError
from ...ir.expr import (
    Access,
    Call,
    Calls,
    Const,
    Delta,
    Equal,
    Expr,
    Infinity,
    Pow,
    Prod,
    Quot,
    Sum,
    expr_indices,
)
from ...ir.system import Apply, Factor
from ...ir.tensor import Index, Ref, Symmetry, Tensor, symmetry_group
from ..permutation_groups import Group, images_of
from .labelling import UNLABELLED, least_labelling, refined_ranks

Colour: TypeAlias = tuple[str, int]  # ("left", position), ("free", 0) or ("sum", 0)

SUM: Colour = ("sum", 0)
FREE: Colour = ("free", 0)

# Maximum number of partial labellings. A product of eight equal vectors has 8! = 40320. A proof of
# a declared symmetry may need all of them, hence this limit is not a threshold.
_MOST_LABELLINGS = 5040

# Index orders of an element-wise expression up to which its symmetry is derived (6! = 720). A proof
# of a declared symmetry may need that symmetry, hence this limit is not a threshold.
_MAX_INDEX_ORDERS = 720


@dataclass(frozen=True, slots=True)
class Atom:
    """A factor of a product.

    Attributes:
        label: equal for factors that are equal functions of their indices.
        group: all (perm, sign) with ``T[x[perm]] == sign * T[x]``, the identity first.
    """

    label: str
    indices: tuple[Index, ...]
    group: Group


@dataclass(frozen=True, slots=True)
class Canonical:
    """Result of :func:`canonical_product`.

    Attributes:
        key: equal for equal products, and different for others.
        sign: the product is ``sign`` times its canonical form; 0 if it vanishes by symmetry.
        ties: every (order, sign) that gives the same form, ``order`` first. Orders of the indices
            of a group of factors that holds no index with a colour are not told apart.
        exact: False if the search was cut off: then equal products may have different keys, and
            ties are missing.
    """

    key: Hashable
    sign: int
    order: tuple[Index, ...]
    ties: tuple[tuple[tuple[Index, ...], int], ...]
    exact: bool = True


def canonical_product(atoms: tuple[Atom, ...], colours: Mapping[Index, Colour]) -> Canonical:
    """Canonical form of a product of atoms.

    ``colours`` holds the indices that are not summed: a left index has its position as colour; free
    indices, whose order is arbitrary, have the same colour.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> o = Space("o")
        >>> i, j, k = (Index(x, o) for x in "ijk")
        >>> swap = (((0, 1), 1), ((1, 0), -1))
        >>> x = canonical_product((Atom("t", (i, j), swap), Atom("u", (j,), (((0,), 1),))), {})
        >>> y = canonical_product((Atom("u", (k,), (((0,), 1),)), Atom("t", (k, i), swap)), {})
        >>> x.key == y.key, x.sign * y.sign
        (True, -1)
    """
    open_atoms, closed = _closed_groups(atoms, colours)
    if not closed or (not open_atoms and len(closed) == 1):
        return _connected(atoms, colours)
    whole = _connected(open_atoms, colours)
    forms = sorted((_connected(group, colours) for group in closed), key=lambda f: repr(f.key))
    tail = tuple(i for form in forms for i in form.order)
    factor = prod(form.sign for form in forms)
    return Canonical(
        (whole.key, tuple(form.key for form in forms)),
        whole.sign * factor,
        (*whole.order, *tail),
        tuple(((*order, *tail), sign * factor) for order, sign in whole.ties),
        whole.exact and all(form.exact for form in forms),
    )


def _closed_groups(
    atoms: tuple[Atom, ...], colours: Mapping[Index, Colour]
) -> tuple[tuple[Atom, ...], list[tuple[Atom, ...]]]:
    """The factors that coloured indices hold together, and groups that share no index with them.

    Factors without indices are among the first.
    """
    groups: list[tuple[set[Index], list[int]]] = []
    for place, atom in enumerate(atoms):
        held, members = set(atom.indices), [place]
        apart = []
        for other in groups:
            if held.isdisjoint(other[0]):
                apart.append(other)
            else:
                held |= other[0]
                members += other[1]
        groups = [*apart, (held, members)]
    closed = [m for held, m in groups if held and held.isdisjoint(colours)]
    inside = {place for members in closed for place in members}
    open_atoms = tuple(a for place, a in enumerate(atoms) if place not in inside)
    return open_atoms, [tuple(atoms[p] for p in sorted(members)) for members in closed]


def _connected(atoms: tuple[Atom, ...], colours: Mapping[Index, Colour]) -> Canonical:
    """The canonical form of factors whose indices are labelled together."""
    atoms = tuple(sorted(atoms, key=lambda a: a.label))
    base = {i: (colours.get(i, SUM), i.space.name) for atom in atoms for i in atom.indices}
    names = tuple(base)
    place_of = {index: n for n, index in enumerate(names)}
    parts = [(atom.label, tuple(place_of[i] for i in atom.indices)) for atom in atoms]
    images = [images_of(atom.group) for atom in atoms]
    rank = refined_ranks(parts, images, dict(enumerate(base.values())))
    found = least_labelling(parts, images, rank, most=_MOST_LABELLINGS)
    ties = tuple((tuple(names[n] for n in order), sign) for order, sign in found.ties)
    merged: dict[tuple[Index, ...], int] = {}
    for labelled, sign in ties:
        outer = tuple(i for i in labelled if i in colours)
        merged[outer] = sign if merged.get(outer, sign) == sign else 0
    vanishes = any(sign == 0 for sign in merged.values())
    first, sign = ties[0]
    if not found.exact:  # some of the ties need not form a group
        ties = ties[:1]
    # Labels are sorted before ranks also in the text of a key.
    codes = tuple(tuple(divmod(c, UNLABELLED) for c in code) for code in found.codes)
    key = (tuple(a.label for a in atoms), codes, tuple(base[i] for i in first))
    return Canonical(key, 0 if vanishes else sign, first, ties, found.exact)


def free_group(form: Canonical, free: Collection[Index]) -> Group:
    """The symmetry group of a product as a function of its free indices in canonical order."""
    outer = tuple(i for i in form.order if i in free)
    group: dict[tuple[int, ...], int] = {tuple(range(len(outer))): 1}
    for order, sign in form.ties:
        names = tuple(i for i in order if i in free)
        group.setdefault(tuple(outer.index(i) for i in names), sign * form.ties[0][1])
    return tuple(group.items())


@lru_cache(maxsize=100_000)
def tensor_group(tensor: Tensor, complex_values: bool) -> Group:
    """All (perm, sign) with ``T[x[perm]] == sign * T[x]``, the identity first.

    A hermitian exchange counts only where conj is the identity: for a real tensor or program.

    Raises:
        TcgenError: declared symmetries contradict each other once conj is the identity.
    """
    generators = tensor.symmetry
    if not complex_values:
        generators = tuple(Symmetry(s.perm, s.sign) for s in generators)
    try:
        group = symmetry_group(replace(tensor, symmetry=generators))
    except ValueError as error:
        raise TcgenError(
            f"{error} in a real program: drop one of these symmetries, or compile for complex128"
        ) from None
    return tuple((s.perm, s.sign) for s in group if not s.conj)


def atom_of(factor: Factor, complex_values: bool) -> Atom:
    """The factor as an atom; the axes of an element-wise expression are its distinct indices."""
    match factor:
        case Ref(tensor, indices):
            return Atom(tensor.name, indices, tensor_group(tensor, complex_values))
        case Delta(left, right):
            return Atom("delta ", (left, right), (((0, 1), 1), ((1, 0), 1)))
        case Apply(expr):
            return _apply_atom(expr, complex_values)
        case _:
            assert_never(factor)


@lru_cache(maxsize=10_000)
def _apply_atom(expr: Expr, complex_values: bool) -> Atom:
    """Atom of an element-wise expression: the least of its normal texts over all index orders."""
    indices = expr_indices(expr)
    spaces = tuple(dict.fromkeys(i.space for i in indices))
    classes = [tuple(i for i in indices if i.space == s) for s in spaces]
    few = prod(factorial(len(members)) for members in classes) <= _MAX_INDEX_ORDERS
    choices = product(*map(permutations, classes)) if few else iter([tuple(classes)])
    best: str | None = None
    orders: list[tuple[Index, ...]] = []
    for choice in choices:
        order = tuple(i for members in choice for i in members)
        text = _normal_text(expr, {i: n for n, i in enumerate(order)}, complex_values)
        if best is None or text < best:
            best, orders = text, []
        if text == best:
            orders.append(order)
    first = orders[0]
    group = tuple((tuple(first.index(i) for i in order), 1) for order in orders)
    return Atom(f"apply {best}", first, group)


def _normal_text(expr: Expr, numbers: dict[Index, int], complex_values: bool) -> str:
    """The expression as text with numbers for indices and sorted arguments of sums and products."""

    def text(part: Expr) -> str:
        return _normal_text(part, numbers, complex_values)

    match expr:
        case Const(value):
            return str(value)
        case Ref(tensor, indices):
            places = [str(numbers[i]) for i in indices]
            texts = [
                ",".join(places[k] for k in perm)
                for perm, sign in tensor_group(tensor, complex_values)
                if sign == 1
            ]
            return f"{tensor.name}[{min(texts)}]"
        case Delta(left, right):
            pair = sorted((numbers[left], numbers[right]))
            return f"delta[{pair[0]},{pair[1]}]"
        case Sum(args):
            return f"+({' '.join(sorted(text(a) for a in args))})"
        case Prod(args):
            return f"*({' '.join(sorted(text(a) for a in args))})"
        case Quot(num, den):
            return f"/({text(num)} {text(den)})"
        case Pow(base, exponent):
            return f"^({text(base)} {exponent})"
        case Call(function, arg):
            return f"{function}({text(arg)})"
        case Calls(function, args):
            return f"{function}({' '.join(map(text, args))})"
        case Infinity(sign):
            return f"inf({sign})"
        case Access() | Equal():
            return str(expr)
        case _:
            assert_never(expr)
