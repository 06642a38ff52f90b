"""Reduction of a normalised system to the intermediates that it needs.

Like terms are merged, and terms that read an intermediate of zero are dropped. Intermediates that
are equal up to the order of their axes and a factor become one array.

An intermediate over joined spaces becomes the blocks that are read. ``D[p,q,r,s]`` over
``all = o + v``, of which the equations read ``D[m,n,i,e]`` and ``D[m,b,e,j]``, becomes one
intermediate for each of these two blocks. Deltas between disjoint parts are zero there, so that a
dressed tensor is written out for each block as one would by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import TypeAlias

from ...ir.expr import Delta
from ...ir.system import Equation, Factor, System, Term, factor_refs, fits_axis
from ...ir.tensor import Index, Ref, Role, Space, Symmetry, Tensor, symmetry_group
from ...ir.term_rewriting import rename_left, replace_refs, resolve_deltas, without_perms
from ...thresholds import AlgebraThresholds
from .inline import factor_names, inline, inlined_count, keep_needed
from .normal_form import NormalForms, same_spaces
from .permutations import new_name

Block: TypeAlias = tuple[Space, ...]


def reduced(system: System, forms: NormalForms, thresholds: AlgebraThresholds) -> System:
    """The system with the blocks that are read, without zeros and with each array once."""
    return system.derived(f"reduced {thresholds}", lambda: _reduced(system, forms, thresholds))


def _reduced(system: System, forms: NormalForms, thresholds: AlgebraThresholds) -> System:
    system = split_by_reads(system, forms.complex_values, thresholds.inlined_terms)
    zero: set[str] = set()
    equations: list[Equation] = []
    for old in system.equations:
        equation = forms.clean(old, zero)
        if not equation.terms and equation.lhs.tensor.role is Role.TEMP:
            zero.add(equation.lhs.tensor.name)
        equations.append(equation)
    system = keep_needed(replace(system, equations=tuple(equations)))
    return merge_equal_intermediates(system, forms, thresholds)


def split_by_reads(system: System, complex_values: bool, most_terms: int) -> System:
    """The system whose intermediates over joined spaces are the blocks that are read.

    A block that lies in a larger one that is read too is a slice of that one. Of blocks that a
    symmetry of the intermediate maps to each other, one is made; complex values leave hermitian
    symmetries unused. Blocks that are copies or have deltas between left indices are inlined,
    because no array of deltas is worth its memory; but an equation that would get more than
    ``most_terms`` terms reads the block. The symmetries of the system are derived already.
    """
    while any(s.parts for e in system.equations for s in e.lhs.tensor.spaces):
        split = _split_once(system, complex_values, most_terms)
        if split.equations == system.equations:
            break
        system = split
    return system


def _split_once(system: System, complex_values: bool, most_terms: int) -> System:
    taken = {t.name for t in system.tensors}
    order = {space: n for n, space in enumerate(system.spaces)}
    done: list[Equation] = []  # readers first
    for equation in reversed(system.equations):
        tensor = equation.lhs.tensor
        if tensor.role is not Role.TEMP or not any(s.parts for s in tensor.spaces):
            done.append(equation)
            continue
        group = tuple(s for s in symmetry_group(tensor) if not (s.conj and complex_values))
        done = [_reading_first(reader, tensor, group, order) for reader in done]
        blocks = _largest(_blocks_read(tensor, done))
        if blocks == (tensor.spaces,):
            done.append(equation)
            continue
        parts = tuple(_part(tensor, group, block, taken) for block in blocks)
        done = [replace_refs(reader, _reader_of(tensor, parts)) for reader in done]
        done.extend(_restricted(equation, part) for part in parts)
    equations = _without_copies(reversed(done), most_terms)
    tensors = (*(t for t in system.tensors if t.is_input), *(e.lhs.tensor for e in equations))
    return keep_needed(replace(system, tensors=tensors, equations=equations))


def _reading_first(
    reader: Equation, tensor: Tensor, group: tuple[Symmetry, ...], order: Mapping[Space, int]
) -> Equation:
    """The reader whose factors read the first of the blocks that are equal by symmetry."""

    def image(indices: tuple[Index, ...], symmetry: Symmetry) -> tuple[Index, ...]:
        return tuple(indices[k] for k in symmetry.perm)

    def changed(term: Term) -> Term:
        coeff = term.coeff
        factors: list[Factor] = []
        for factor in term.factors:
            if isinstance(factor, Ref) and factor.tensor == tensor:
                indices = factor.indices
                first = min(group, key=lambda s: [order[i.space] for i in image(indices, s)])
                factor, coeff = Ref(tensor, image(indices, first)), coeff * first.sign
            factors.append(factor)
        return replace(term, coeff=coeff, factors=tuple(factors))

    return replace(reader, terms=tuple(map(changed, reader.terms)))


def _blocks_read(tensor: Tensor, readers: Iterable[Equation]) -> tuple[Block, ...]:
    """The blocks of a tensor that equations read, each once."""
    references = (
        ref
        for reader in readers
        for term in reader.terms
        for f in term.factors
        for ref in factor_refs(f)
        if ref.tensor == tensor
    )
    return tuple(dict.fromkeys(tuple(i.space for i in ref.indices) for ref in references))


def _largest(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The blocks that lie in no other one."""
    return tuple(
        b for b in blocks if not any(b != other and _lies_in(b, other) for other in blocks)
    )


def _lies_in(block: Block, other: Block) -> bool:
    return all(b.before(a) is not None for a, b in zip(block, other, strict=True))


def _part(tensor: Tensor, group: tuple[Symmetry, ...], block: Block, taken: set[str]) -> Tensor:
    """A new intermediate for a block, with the symmetries that keep it."""
    name = f"{tensor.name}_{''.join(space.name for space in block)}"
    if name in taken:
        name = new_name(name, taken)
    taken.add(name)
    symmetry = tuple(s for s in group[1:] if same_spaces(block, s.perm))
    return replace(tensor, name=name, spaces=block, symmetry=symmetry)


def _reader_of(tensor: Tensor, parts: tuple[Tensor, ...]) -> Callable[[Ref], Ref]:
    """Turns a reference to the tensor into one to the part that holds the block."""

    def change(ref: Ref) -> Ref:
        if ref.tensor != tensor:
            return ref
        fitting = (p for p in parts if all(map(fits_axis, ref.indices, p.spaces)))
        return Ref(next(fitting), ref.indices)

    return change


def _restricted(equation: Equation, part: Tensor) -> Equation:
    """The equation of a block; terms whose deltas are zero in it are left out."""
    old = equation.lhs.indices
    new = tuple(Index(i.name, space) for i, space in zip(old, part.spaces, strict=True))
    terms: list[Term] = []
    for term in equation.terms:
        kept = all(same_spaces(part.spaces, perm.images) for perm in term.perms)
        for one in (term,) if kept else without_perms(term, equation.lhs):
            resolved = resolve_deltas(rename_left(one, old, new))
            if resolved is not None:
                terms.append(resolved)
    return replace(equation, lhs=Ref(part, new), terms=tuple(terms))


def _without_copies(equations: Iterable[Equation], most_terms: int) -> tuple[Equation, ...]:
    """The equations, where intermediates over joined spaces that hold deltas are inlined."""
    inlined: dict[str, Equation] = {}
    result: list[Equation] = []
    for equation in equations:
        current = equation
        for name in factor_names(equation):
            if name in inlined and inlined_count(current, inlined[name]) <= most_terms:
                current = _with_resolved_deltas(inline(current, inlined[name]))
        tensor = current.lhs.tensor
        if tensor.role is Role.TEMP and (is_copy(current) or _has_left_delta(current)):
            inlined[tensor.name] = current
        result.append(current)
    return tuple(result)


def _with_resolved_deltas(equation: Equation) -> Equation:
    terms = (resolve_deltas(term) for term in equation.terms)
    return replace(equation, terms=tuple(t for t in terms if t is not None))


def is_copy(equation: Equation) -> bool:
    """True for a multiple of a single factor, without a sum."""
    if len(equation.terms) != 1:
        return False
    (term,) = equation.terms
    return len(term.factors) == 1 and not term.sums and not term.perms


def _has_left_delta(equation: Equation) -> bool:
    """True if a delta of a term holds a left index."""
    left = set(equation.lhs.indices)
    return any(
        isinstance(f, Delta) and not left.isdisjoint((f.left, f.right))
        for term in equation.terms
        for f in term.factors
    )


def merge_equal_intermediates(
    system: System, forms: NormalForms, thresholds: AlgebraThresholds
) -> System:
    """The system in which terms read the first of several equal intermediates.

    Intermediates ``x`` and ``y`` are equal where, say, ``x[a,b] = c*y[b,a]``. A reference inside
    Apply cannot carry the factor c, so ``x`` stays where such a reference reads it.
    """
    seen: dict[Hashable, list[Equation]] = {}
    copies: dict[str, Equation] = {}
    equations: list[Equation] = []
    for old in system.equations:
        equation = old
        for name in old.reads:
            if name in copies:
                equation = _redirected(equation, copies[name])
        equations.append(equation)
        if equation.lhs.tensor.role is not Role.TEMP:
            continue
        fingerprint = _fingerprint(equation, forms)
        earlier = seen.setdefault(fingerprint, [])
        for other in earlier:
            copy = _as_copy(equation, other, forms, thresholds.axis_orders)
            if copy is not None:
                copies[equation.lhs.tensor.name] = copy
                break
        else:
            earlier.append(equation)
    return keep_needed(replace(system, equations=tuple(equations)))


def _redirected(equation: Equation, copy: Equation) -> Equation:
    """``equation`` with the original in place of the copy; inside Apply only if the factor is 1."""
    equation = inline(equation, copy)
    term = copy.terms[0]
    source = term.factors[0]
    assert isinstance(source, Ref)
    if term.coeff != 1:
        return equation
    place = [copy.lhs.indices.index(i) for i in source.indices]

    def change(ref: Ref) -> Ref:
        if ref.tensor != copy.lhs.tensor:
            return ref
        return Ref(source.tensor, tuple(ref.indices[p] for p in place))

    return replace(equation, terms=replace_refs(equation, change).terms)


def _fingerprint(equation: Equation, forms: NormalForms) -> Hashable:
    """A key that intermediates equal up to the order of axes and a factor have in common."""
    weights: dict[Hashable, Fraction] = {}
    for term in forms.vector(equation).terms:
        weight = abs(term.coeff) * len(term.perms)
        weights[term.key] = weights.get(term.key, Fraction(0)) + weight
    least = min(weights.values(), default=Fraction(1)) or Fraction(1)
    spaces = tuple(sorted(i.space.name for i in equation.lhs.indices))
    return (spaces, tuple(sorted((repr(k), c / least) for k, c in weights.items())))


def _as_copy(
    equation: Equation, other: Equation, forms: NormalForms, most_orders: int
) -> Equation | None:
    """``equation`` written as a multiple of ``other`` with permuted axes, or None."""
    value = forms.vector(equation).value()
    vector = forms.vector(other)
    spaces = tuple(i.space for i in equation.lhs.indices)
    target = tuple(i.space for i in other.lhs.indices)
    if not value:
        return None
    for count, images in enumerate(permutations(range(len(target)))):
        if count >= most_orders:
            return None
        # Axis k of the other array stands at position images[k] of this one.
        if any(target[k] != spaces[p] for k, p in enumerate(images)):
            continue
        other_value = vector.value(images)
        if other_value.keys() != value.keys():
            continue
        ratios = {value[key] / other_value[key] for key in value}
        if len(ratios) == 1:
            indices = tuple(equation.lhs.indices[p] for p in images)
            term = Term(ratios.pop(), (Ref(other.lhs.tensor, indices),))
            return replace(equation, terms=(term,))
    return None
