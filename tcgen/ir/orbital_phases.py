"""Equations over complex orbitals: a phase of each orbital must change all terms alike.

With phases, <ij||ab> changes as the conjugate of <ab||ij> does. For real orbitals both are equal,
so that equations for them may read one for the other. Such a term is found here: an index that is
summed must enter one factor and leave another, and no factor may be turned around.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from ..errors import Span
from ..records.signature import Signature
from .conserved_factors import Conserved, Fault, Product
from .expr import Delta
from .system import Permutation
from .tensor import Index, Ref, Tensor, symmetry_group

Phases: TypeAlias = tuple[int, ...]
"""For each axis, the power of the phase of its orbital that multiplies a tensor."""


@dataclass(frozen=True, slots=True)
class Products:
    """The products of one term of an equation."""

    left: Ref
    products: tuple[Product, ...]
    bound: frozenset[Index]
    perms: tuple[Permutation, ...]
    span: Span | None
    text: str


Equations: TypeAlias = Sequence[tuple[Tensor, Sequence[Products]]]


def phase_faults(
    inputs: Sequence[Tensor], equations: Equations, signatures: Mapping[str, Signature]
) -> list[Fault]:
    """Declarations and terms that hold for real orbitals only, in order.

    Args:
        inputs: all inputs. Integrals and Fock matrices (``from``) have the phases of bra and ket.
            All others may have the opposite phases of what they conserve: most terms decide.
        equations: tensors with the terms that define them, each before it is read.
        signatures: those of all tensors.
    """
    known = {t.name: _strict_signs(t, signatures[t.name]) for t in inputs}
    found = [v for t in inputs for v in _declaration(t, known[t.name])]
    free = [t.name for t in inputs if t.quantity is None and any(known[t.name])]
    signs = _first_guess(free, equations, known, signatures)
    best, improved = _Terms(equations, _turned(known, signs)), True
    while improved and best.wrong:
        improved = False
        for name in free:
            signs[name] *= -1
            other = _Terms(equations, _turned(known, signs))
            if len(other.wrong) < len(best.wrong):
                best, improved = other, True
            else:
                signs[name] *= -1
    return found + [best.violation(term) for term in best.wrong]


def _strict_signs(tensor: Tensor, signature: Signature) -> Phases:
    pairs = zip(tensor.spaces, signature.signs, strict=True)
    return tuple(sign if space.strict else 0 for space, sign in pairs)


def _turned(known: Mapping[str, Phases], signs: Mapping[str, int]) -> dict[str, Phases]:
    return {n: tuple(signs.get(n, 1) * p for p in phases) for n, phases in known.items()}


def _declaration(tensor: Tensor, phases: Phases) -> list[Fault]:
    if tensor.real and any(phases):
        return [
            Fault(
                tensor.name,
                None,
                f"{tensor.name} is real, and phases of complex orbitals change it",
                "remove real, or declare a tensor whose values belong to orbitals label",
            )
        ]
    for symmetry in symmetry_group(tensor):
        moved = tuple(phases[k] for k in symmetry.perm)
        if moved != (tuple(-p for p in phases) if symmetry.conj else phases):
            return [
                Fault(
                    tensor.name,
                    None,
                    f"{tensor.name} has a symmetry of real orbitals, of axes in the order "
                    f"{symmetry.perm}",
                    "leave it out, or write hermitian in place of symmetry where bra and ket are "
                    "exchanged",
                )
            ]
    return []


def _first_guess(
    free: Sequence[str],
    equations: Equations,
    known: Mapping[str, Phases],
    signatures: Mapping[str, Signature],
) -> dict[str, int]:
    """Signs of inputs with which most indices enter one factor and leave another."""
    parent: dict[str, tuple[str, int]] = {}

    def root(name: str) -> tuple[str, int]:
        above, sign = parent.get(name, (name, 1))
        if above == name:
            return name, 1
        top, more = root(above)
        parent[name] = top, sign * more
        return parent[name]

    for tensor, terms in equations:
        for term in terms:
            for made in term.products:
                slots: dict[Index, list[tuple[str, int]]] = {}
                for f in made.factors:
                    if isinstance(f.factor, Ref) and f.phase:
                        for i, w in f.weights.items():
                            if i.space.strict:
                                slots.setdefault(i, []).append((f.factor.tensor.name, w * f.phase))
                if not term.perms:
                    left = signatures[tensor.name].signs
                    for i, w in zip(term.left.indices, left, strict=True):
                        if w and i in slots:
                            slots[i].append((tensor.name, -w))
                for pair in slots.values():
                    if len(pair) == 2 and all(abs(w) == 1 for _, w in pair):
                        (one, a), (two, b) = ((root(name), w) for name, w in pair)
                        if one[0] != two[0]:
                            parent[two[0]] = one[0], -a * b * one[1] * two[1]
    anchors = {root(n)[0]: root(n)[1] for n, p in known.items() if any(p) and n not in free}
    return {name: root(name)[1] * anchors.get(root(name)[0], 1) for name in free}


class _Terms:
    """Phases of all tensors, and the terms that have others than most of their equation."""

    def __init__(
        self,
        equations: Equations,
        inputs: Mapping[str, Phases],
    ) -> None:
        self._phases = dict(inputs)
        self.wrong: list[Products] = []
        for tensor, terms in equations:
            found = [self._left_phases(term) for term in terms]
            counts = Counter(p for ps in found for p in ps if p is not None)
            phases = counts.most_common(1)[0][0] if counts else (0,) * tensor.rank
            self._phases[tensor.name] = phases
            self.wrong += [term for term, ps in zip(terms, found, strict=True) if ps - {phases}]

    def violation(self, term: Products) -> Fault:
        """The fault of a term, with the factor of which it needs the conjugate."""
        name = term.left.tensor.name
        wanted = {self._phases[name]}
        factors = term.products[0].factors if len(term.products) == 1 else ()
        refs = [(n, f.factor) for n, f in enumerate(factors) if isinstance(f.factor, Ref)]
        for place, ref in sorted(refs, key=lambda pair: not pair[1].tensor.is_input):
            if self._left_phases(term, place) == wanted:
                return Fault(
                    name,
                    term.span,
                    f"{term.text} holds for real orbitals only: complex ones need the conjugate of "
                    f"{ref}",
                    f"write conj({ref}), or read an input of its own with bra and ket exchanged",
                )
        return Fault(
            name,
            term.span,
            f"{term.text} holds for real orbitals only: phases of complex ones change it in "
            f"another way than {term.left}",
            "write conj(..) around the factors that are conjugated, or read inputs of their own",
        )

    def _left_phases(self, term: Products, turned: int | None = None) -> set[Phases | None]:
        """Phases of the left side in all products and permutations of a term; None if undefined."""
        found: set[Phases | None] = set()
        for made in term.products:
            own = self._product(made, term, turned)
            for images in [p.images for p in term.perms] or [tuple(range(len(own or ())))]:
                if own is None:
                    found.add(None)
                else:
                    moved = [0] * len(own)
                    for k, image in enumerate(images):
                        moved[image] = own[k]
                    found.add(tuple(moved))
        return found

    def _product(self, made: Product, term: Products, turned: int | None) -> Phases | None:
        deltas = [f for f in made.factors if isinstance(f.factor, Delta)]
        totals = Counter[Index]()
        for place, f in enumerate(made.factors):
            if isinstance(f.factor, Ref) and not self._add(f, totals, place == turned):
                return None
        for signs in product((1, -1), repeat=len(deltas)):
            whole = totals.copy()
            for sign, delta in zip(signs, deltas, strict=True):
                whole.update({i: sign * w for i, w in delta.weights.items() if i.space.strict})
            if not any(whole[i] for i in term.bound):
                return tuple(whole[i] for i in term.left.indices)
        return None

    def _add(self, f: Conserved, totals: Counter[Index], turned: bool) -> bool:
        """Add the phases of a factor; False if a function loses them."""
        assert isinstance(f.factor, Ref), "a delta has no phases"
        phases = self._phases[f.factor.tensor.name]
        if f.phase is None:
            return not any(phases)
        sign = -f.phase if turned else f.phase
        for i, p in zip(f.factor.indices, phases, strict=True):
            totals[i] += sign * p
        return True
