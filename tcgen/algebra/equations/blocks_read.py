"""Intermediates over joined spaces become the blocks of them that are read.

``D[p,q,r,s]`` over ``all = o + v``, of which the equations read ``D[m,n,i,e]`` and ``D[m,b,e,j]``,
becomes an intermediate for each of these two blocks. Deltas between disjoint parts are zero there,
so that a dressed tensor is written out for each block as one would by hand, and no other block is
made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from ...ir.expr import Delta
from ...ir.system import Equation, Factor, System, Term, factor_refs, fits_axis
from ...ir.tensor import Index, Ref, Role, Space, Symmetry, Tensor, symmetry_group
from ...ir.term_rewriting import rename_left, replace_refs, resolve_deltas, without_perms
from .inline import factor_names, inline, inlined_count, keep_needed
from .like_terms import same_spaces
from .permutations import new_name

Block: TypeAlias = tuple[Space, ...]


def split_by_reads(system: System, complex_values: bool, most_terms: int) -> System:
    """The system whose intermediates over joined spaces are the blocks that are read.

    A block that lies in a larger one that is read too is a slice of that one. Of blocks that a
    symmetry of the intermediate maps to each other, one is made. Blocks that are copies or have
    deltas between left indices are inlined: no array of deltas is worth its memory.

    Args:
        system: equations with derived symmetries, in order of definition.
        complex_values: True leaves hermitian symmetries unused, for complex programs.
        most_terms: an equation that would get more terms by inlining reads the block.
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
        if tensor.role is Role.TEMP and (_is_copy(current) or _has_left_delta(current)):
            inlined[tensor.name] = current
        result.append(current)
    return tuple(result)


def _with_resolved_deltas(equation: Equation) -> Equation:
    terms = (resolve_deltas(term) for term in equation.terms)
    return replace(equation, terms=tuple(t for t in terms if t is not None))


def _is_copy(equation: Equation) -> bool:
    if len(equation.terms) != 1:
        return False
    (term,) = equation.terms
    return len(term.factors) == 1 and not term.sums and not term.perms


def _has_left_delta(equation: Equation) -> bool:
    """True where a delta of a term holds a left index."""
    left = set(equation.lhs.indices)
    return any(
        isinstance(f, Delta) and not left.isdisjoint((f.left, f.right))
        for term in equation.terms
        for f in term.factors
    )
