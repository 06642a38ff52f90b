"""From the equations of a system to the numbered sums of the factoring search."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import factorial, prod

from ...ir.reduction import Reduction
from ...ir.system import Equation, Factor, System, Term, factor_refs
from ...ir.tensor import Index, Ref, Space, symmetry_group
from ...ir.term_rewriting import without_perms
from ...thresholds import AlgebraThresholds
from ..equations.canonical_product import atom_of
from ..equations.normal_form import NormalForms
from ..equations.proven_symmetry import output_symmetry
from ..permutation_groups import Group
from .canonical_forms import Forms
from .label_order import Kind, structural_order
from .sums import Algebra, Frame, Product, TermSum, trivial


@dataclass(slots=True)
class Lifted:
    """A system as numbered sums, with all that :mod:`write_back` needs.

    Attributes:
        atoms: a factor for each label; references to the same tensor have one label.
        axes: indices of that factor on the axes of the label.
        targets: sum of each equation, by the label of its left side (-1, -2, ..).
        opaque: terms of each equation that do not take part in the search.
        notes: a text for each limit that keeps terms or symmetries out of the search.
    """

    system: System
    algebra: Algebra
    spaces: list[Space] = field(default_factory=list)
    atoms: dict[int, Factor] = field(default_factory=dict)
    axes: dict[int, tuple[Index, ...]] = field(default_factory=dict)
    targets: dict[int, TermSum] = field(default_factory=dict)
    equations: dict[int, Equation] = field(default_factory=dict)
    opaque: dict[int, tuple[Term, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def splits(self) -> int:
        """Places in which the terms can be split in two."""
        return sum(1 << len(parts) for s in self.targets.values() for parts, _ in s.terms)

    def space(self, space: Space) -> int:
        """The number of a space; a new space gets the next number."""
        if space not in self.spaces:
            self.spaces.append(space)
        return self.spaces.index(space)


def lift(system: System, normal: NormalForms, thresholds: AlgebraThresholds) -> Lifted:
    """Inlined equations as sums, each left side with its symmetry; labels in the order of names."""
    lifted = Lifted(system, Algebra(Forms()))
    plain = [normal.clean(old) for old in system.equations]
    atoms: dict[str, tuple[Factor, Group]] = {}
    for equation in plain:
        for term in equation.terms:
            for factor in term.factors:
                atom = atom_of(factor, normal.complex_values)
                atoms.setdefault(atom.label, (factor, atom.group))
    labels = {name: n for n, name in enumerate(sorted(atoms))}
    for name, (factor, group) in atoms.items():
        lifted.algebra.forms.add(labels[name], group)
        lifted.atoms[labels[name]] = factor
        lifted.axes[labels[name]] = atom_of(factor, normal.complex_values).indices
    for space in sorted(system.spaces, key=lambda s: s.name):
        lifted.space(space)
    for number, equation in enumerate(plain):
        _lift_equation(lifted, -1 - number, equation, labels, normal, thresholds)
    return lifted


def without_name_order(lifted: Lifted, label_orders: int) -> Lifted:
    """The same with labels, targets and terms in an order that does not depend on names.

    Where labels cannot be told apart, ``label_orders`` orders are compared.
    """
    old_targets = tuple(lifted.targets)
    number = {lifted.equations[t].lhs.tensor.name: n for n, t in enumerate(old_targets)}
    kinds = []
    for label, factor in sorted(lifted.atoms.items()):
        name, role = "", _without_names(factor)
        if isinstance(factor, Ref):
            name, role = factor.tensor.name, f"tensor {factor.tensor.volatile}"
        spaces = tuple(lifted.space(i.space) for i in lifted.axes[label])
        group = lifted.algebra.forms.groups[label]
        kinds.append(Kind(f"{role} {spaces}", group, number.get(name, -1)))
    labels, targets = structural_order(
        kinds, [lifted.targets[t] for t in old_targets], label_orders
    )
    ordered = Lifted(lifted.system, Algebra(Forms()), lifted.spaces, notes=lifted.notes)
    new_label = {old: new for new, old in enumerate(labels)}
    for old, new in new_label.items():
        group = kinds[old].group
        ordered.algebra.forms.add(new, group)
        ordered.atoms[new] = lifted.atoms[old]
        if all(not ref.tensor.volatile for ref in factor_refs(lifted.atoms[old])):
            ordered.algebra.constant.add(new)
        ordered.axes[new] = lifted.axes[old]
    for place, n in enumerate(targets):
        old, new = old_targets[n], -1 - place
        total = lifted.targets[old]
        terms: dict[Product, Fraction] = {}
        for (parts, spaces), coeff in total.terms.items():
            renamed = tuple(sorted((new_label[label], held) for label, held in parts))
            normal, sign = ordered.algebra.normal(Product(renamed, spaces), total.frame)
            terms[normal] = coeff * sign
        ordered.targets[new] = TermSum(total.frame, dict(sorted(terms.items())))
        ordered.equations[new] = lifted.equations[old]
        ordered.opaque[new] = lifted.opaque[old]
    return ordered


def _without_names(factor: Factor) -> str:
    """An element-wise factor as text without the names of tensors and indices."""
    return re.sub(r"[A-Za-z_]\w*", "x", str(factor))


def _lift_equation(
    lifted: Lifted,
    label: int,
    equation: Equation,
    labels: Mapping[str, int],
    normal: NormalForms,
    thresholds: AlgebraThresholds,
) -> None:
    """Add an equation as the target ``label``."""
    lhs = equation.lhs
    rank = len(lhs.indices)
    group: Group = trivial(rank)
    probe = replace(lhs.tensor, symmetry=output_symmetry(equation, normal))
    full = tuple(sorted((s.perm, s.sign) for s in symmetry_group(probe) if not s.conj))
    if len(full) <= thresholds.target_permutations:
        group = full
    else:
        text = f"{lhs.tensor.name}: its symmetry has {len(full)} permutations"
        lifted.notes.append(f"{text}, more than {thresholds.target_permutations}: not used")
    frame = Frame(tuple(lifted.space(i.space) for i in lhs.indices), group)
    total = TermSum(frame, {})
    opaque: list[Term] = []
    signs = dict(group)
    for term in equation.terms:
        covered = set(lhs.indices) <= set(term.indices)
        if not covered or not term.factors or not _searched(term, thresholds):
            opaque.extend(without_perms(term, lhs))
            continue
        weight = Fraction(1, len(group))
        if term.perms and all(signs.get(p.images) == p.sign for p in term.perms):
            # the group makes all images from any one of them
            weight *= len(term.perms)
            term = replace(term, perms=term.perms[:1])
        for image in without_perms(term, lhs):
            product = _numbered(lifted, image, lhs.indices, labels, normal)
            lifted.algebra.add(total, product, image.coeff * weight)
    sums = [t for t in equation.terms if t.reduction is Reduction.SUM]
    long = sum(len(term.factors) > thresholds.term_factors for term in sums)
    apart = sum(not _searched(term, thresholds) for term in sums)
    for count, why in (
        (long, f"more than {thresholds.term_factors} factors"),
        (apart - long, f"equal factors in more than {thresholds.factor_orders} orders"),
    ):
        if count:
            text = f"{lhs.tensor.name}: {count} of {len(equation.terms)} terms"
            lifted.notes.append(f"{text}, which have {why}")
    lifted.targets[label] = total
    lifted.equations[label] = equation
    lifted.opaque[label] = tuple(opaque)


def _searched(term: Term, thresholds: AlgebraThresholds) -> bool:
    """True if a term has so few factors, and equal ones, that the search can take it."""
    names = Counter(f.tensor.name if isinstance(f, Ref) else str(f) for f in term.factors)
    few = len(term.factors) <= thresholds.term_factors
    if term.reduction is not Reduction.SUM:
        return False  # it does not distribute over what the search takes out of brackets
    return few and orders(names.values()) <= thresholds.factor_orders


def orders(counts: Iterable[int]) -> int:
    """The number of orders of a product in which equal factors, given their counts, change places.

    Example:
        >>> orders([3, 1, 2])
        12
    """
    return prod(map(factorial, counts))


def _numbered(
    lifted: Lifted,
    term: Term,
    left: tuple[Index, ...],
    labels: Mapping[str, int],
    normal: NormalForms,
) -> Product:
    """A term without permutations over numbered indices, the left ones first."""
    number: dict[Index, int] = {i: n for n, i in enumerate(left)}
    spaces = [lifted.space(i.space) for i in left]
    parts = []
    for factor in term.factors:
        atom = atom_of(factor, normal.complex_values)
        for i in atom.indices:
            if i not in number:
                number[i] = len(number)
                spaces.append(lifted.space(i.space))
        parts.append((labels[atom.label], tuple(number[i] for i in atom.indices)))
    return Product(tuple(sorted(parts)), tuple(spaces))
