"""Systems as the numbered sums of the factoring search."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ...ir.system import Equation, Factor, System, Term
from ...ir.tensor import Index, Ref, Space, symmetry_group
from ...ir.term_rewriting import without_perms
from ...thresholds import AlgebraThresholds
from ..equations.atoms import atom_of
from ..equations.like_terms import clean_equation
from ..equations.proven_symmetry import output_symmetry
from ..permutation_groups import Group
from .canonical_forms import Forms
from .label_order import Kind, structural_order
from .sums import Algebra, Frame, Product, Sum, trivial


@dataclass(slots=True)
class Lifted:
    """A system as sums, and what is needed to come back.

    Attributes:
        targets: sum of each equation, by label.
        opaque: terms of each equation that do not take part.
        notes: the limits that keep terms or symmetries out, in words.
    """

    system: System
    algebra: Algebra
    spaces: list[Space] = field(default_factory=list)
    atoms: dict[int, Factor] = field(default_factory=dict)
    axes: dict[int, tuple[Index, ...]] = field(default_factory=dict)
    targets: dict[int, Sum] = field(default_factory=dict)
    equations: dict[int, Equation] = field(default_factory=dict)
    opaque: dict[int, tuple[Term, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def space(self, space: Space) -> int:
        """Number of a space."""
        if space not in self.spaces:
            self.spaces.append(space)
        return self.spaces.index(space)


def lift(system: System, complex_values: bool, thresholds: AlgebraThresholds) -> Lifted:
    """The equations as sums, each left side with its symmetry.

    Args:
        system: expanded equations.
        complex_values: whether hermitian symmetries must be left alone.
        thresholds: of the symmetry and the terms that take part.
    """
    lifted = Lifted(system, Algebra(Forms()))
    plain = [clean_equation(old, complex_values, frozenset()) for old in system.equations]
    found: dict[str, tuple[Factor, Group]] = {}
    for equation in plain:
        for term in equation.terms:
            for factor in term.factors:
                atom = atom_of(factor, complex_values)
                found.setdefault(atom.label, (factor, atom.group))
    labels = {name: n for n, name in enumerate(sorted(found))}
    for name, (factor, group) in found.items():
        lifted.algebra.forms.add(labels[name], group)
        lifted.atoms[labels[name]] = factor
        lifted.axes[labels[name]] = atom_of(factor, complex_values).indices
    for space in sorted(system.spaces, key=lambda s: s.name):
        lifted.space(space)
    for number, equation in enumerate(plain):
        _lift_equation(lifted, -1 - number, equation, labels, complex_values, thresholds)
    return _ordered(lifted, thresholds.label_orders)


def _ordered(lifted: Lifted, label_orders: int) -> Lifted:
    """The same with labels, targets and terms in an order that no name decides."""
    old_targets = tuple(lifted.targets)
    number = {lifted.equations[t].lhs.tensor.name: n for n, t in enumerate(old_targets)}
    kinds = []
    for label, factor in sorted(lifted.atoms.items()):
        name, nature = "", _masked(factor)
        if isinstance(factor, Ref):
            name, nature = factor.tensor.name, f"tensor {factor.tensor.volatile}"
        spaces = tuple(lifted.space(i.space) for i in lifted.axes[label])
        group = lifted.algebra.forms.groups[label]
        kinds.append(Kind(f"{nature} {spaces}", group, number.get(name, -1)))
    labels, targets = structural_order(
        kinds, [lifted.targets[t] for t in old_targets], label_orders
    )
    found = Lifted(lifted.system, Algebra(Forms()), lifted.spaces, notes=lifted.notes)
    new_label = {old: new for new, old in enumerate(labels)}
    for old, new in new_label.items():
        group = kinds[old].group
        found.algebra.forms.add(new, group)
        found.atoms[new] = lifted.atoms[old]
        found.axes[new] = lifted.axes[old]
    for place, n in enumerate(targets):
        old, new = old_targets[n], -1 - place
        total = lifted.targets[old]
        terms: dict[Product, Fraction] = {}
        for (parts, spaces), coeff in total.terms.items():
            renamed = tuple(sorted((new_label[t], held) for t, held in parts))
            normal, sign = found.algebra.normal((renamed, spaces), total.frame)
            terms[normal] = coeff * sign
        found.targets[new] = Sum(total.frame, dict(sorted(terms.items())))
        found.equations[new] = lifted.equations[old]
        found.opaque[new] = lifted.opaque[old]
    return found


def _masked(factor: Factor) -> str:
    """An element-wise factor as text without the names of tensors and indices."""
    return re.sub(r"[A-Za-z_]\w*", "x", str(factor))


def _lift_equation(
    lifted: Lifted,
    label: int,
    equation: Equation,
    labels: Mapping[str, int],
    complex_values: bool,
    thresholds: AlgebraThresholds,
) -> None:
    lhs = equation.lhs
    rank = len(lhs.indices)
    group: Group = trivial(rank)
    probe = replace(lhs.tensor, symmetry=output_symmetry(equation, complex_values))
    full = tuple(sorted((s.perm, s.sign) for s in symmetry_group(probe) if not s.conj))
    if len(full) <= thresholds.target_permutations:
        group = full
    else:
        text = f"{lhs.tensor.name}: its symmetry of {len(full)} permutations"
        lifted.notes.append(f"{text}, more than {thresholds.target_permutations}, is not used")
    frame = Frame(tuple(lifted.space(i.space) for i in lhs.indices), group)
    total = Sum(frame, {})
    opaque: list[Term] = []
    signs = dict(group)
    for term in equation.terms:
        covered = set(lhs.indices) <= set(term.indices)
        if not covered or not 0 < len(term.factors) <= thresholds.term_factors:
            opaque.extend(without_perms(term, lhs))
            continue
        weight = Fraction(1, len(group))
        if term.perms and all(signs.get(p.images) == p.sign for p in term.perms):
            # the group makes all images of any one of them
            weight *= len(term.perms)
            term = replace(term, perms=term.perms[:1])
        for image in without_perms(term, lhs):
            product = _numbered(lifted, image, lhs.indices, labels, complex_values)
            normal, sign = lifted.algebra.normal(product, frame)
            if sign:
                total.add(normal, image.coeff * sign * weight)
    long = sum(len(term.factors) > thresholds.term_factors for term in equation.terms)
    if long:
        text = f"{lhs.tensor.name}: {long} of {len(equation.terms)} terms"
        lifted.notes.append(f"{text}, which have more than {thresholds.term_factors} factors")
    lifted.targets[label] = total
    lifted.equations[label] = equation
    lifted.opaque[label] = tuple(opaque)


def _numbered(
    lifted: Lifted,
    term: Term,
    left: tuple[Index, ...],
    labels: Mapping[str, int],
    complex_values: bool,
) -> Product:
    number: dict[Index, int] = {i: n for n, i in enumerate(left)}
    spaces = [lifted.space(i.space) for i in left]
    parts = []
    for factor in term.factors:
        atom = atom_of(factor, complex_values)
        for i in atom.indices:
            if i not in number:
                number[i] = len(number)
                spaces.append(lifted.space(i.space))
        parts.append((labels[atom.label], tuple(number[i] for i in atom.indices)))
    return tuple(sorted(parts)), tuple(spaces)
