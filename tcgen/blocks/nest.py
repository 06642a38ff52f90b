"""Steps that run for one tuple of orbitals at a time, so that large arrays are never stored whole.

The energy of triples needs arrays of six axes, each element of which is used once. Their axes of
one space are loops: inside them, a sequence computes with slices of the other arrays. The irrep of
an axis that a slice lacks joins its charge. Sums whose value does not change when two loops are
exchanged take one order of both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from typing import TypeAlias

from ..ir.conserved_factors import Product, is_sparse, products_of
from ..ir.exchange_symmetry import exchange_sign, tensor_sign
from ..ir.expr import Const, Delta, Expr, Prod, Sum, leaves, map_leaves
from ..ir.program import Add, Contract, FormulaSequence, Map, Step
from ..ir.tensor import Index, Ref, Role, Space, Tensor
from ..records.signature import Signature
from .products import Indices, is_part

# A step, the number of each loop, and for each reference the sign and the reference read instead.
_Plan: TypeAlias = tuple[Step, dict[Index, int], dict[Ref, tuple[int, Ref]]]


@dataclass(frozen=True, slots=True)
class Slice:
    """Slices of an array with one orbital on some axes.

    Attributes:
        tensor: the array.
        axes: the axes that the slices lack.
        loops: the loop of each of these axes.
    """

    tensor: Tensor
    axes: tuple[int, ...]
    loops: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The axes of a slice."""
        return tuple(a for a in range(self.tensor.rank) if a not in self.axes)

    def signature(self, signature: Signature) -> Signature:
        """Signs of the axes that are left; the others join the charge, as ``charge_of_loop``."""
        signs = signature.signs
        moved = zip(self.axes, self.loops, strict=True)
        lost = tuple((charge_of_loop(loop), -signs[a]) for a, loop in moved if signs[a])
        return Signature(tuple(signs[a] for a in self.kept), signature.charge + lost)


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops over orbitals, and what they execute for each tuple of orbitals.

    Attributes:
        sequence: the steps inside, with slices as inputs and numbers as outputs, which are added
            up over the loops.
        space: the space of the loops.
        ordered: True for each loop whose orbitals go up to that of the loop before, since
            exchanging both changes no sum.
        slices: slices that each input and intermediate has, by name.
        steps: ids of the steps that the nest replaces.
    """

    sequence: FormulaSequence
    space: Space
    ordered: tuple[bool, ...]
    slices: Mapping[str, Slice]
    steps: frozenset[int]

    @property
    def last(self) -> int:
        """Id of the step after which all other arrays are computed."""
        return max(self.steps)

    def signatures(self, outside: Mapping[str, Signature]) -> dict[str, Signature]:
        """The signatures of all arrays inside."""
        numbers = {t.name: outside[t.name] for t in self.sequence.outputs}
        inside = {n: s.signature(outside[s.tensor.name]) for n, s in self.slices.items()}
        return numbers | inside


def charge_of_loop(number: int) -> str:
    """The name of the charge that the irrep of a loop's orbital is."""
    return f"loop {number}"


def find_nest(sequence: FormulaSequence, extents: Mapping[str, int]) -> Nest | None:
    """The loops of steps through arrays with more axes than all inputs and outputs, if any.

    All of these arrays, and sums over them, have to share their loops. The space of the fewest
    orbitals is that of the loops, since products inside are larger then.
    """
    most = max((t.rank for t in sequence.tensors if t.role is not Role.TEMP), default=0)
    local = [t for t in sequence.intermediates if t.rank > most]
    steps = [
        s for s in sequence.steps if {s.out.tensor, *(r.tensor for r in s.operands)} & {*local}
    ]
    if not local or not all(_fits(sequence, s, steps, local) for s in steps):
        return None
    spaces = dict.fromkeys(s for t in local for s in t.spaces)
    for space in sorted(spaces, key=lambda s: extents[s.name]):
        axes = {t: tuple(a for a, s in enumerate(t.spaces) if s == space) for t in local}
        if len({len(a) for a in axes.values()}) == 1 and () not in axes.values():
            found = _nest(sequence, steps, axes, space)
            if found is not None:
                return found
    return None


def apart(
    sequence: FormulaSequence,
    signatures: Mapping[str, Signature],
    factor: Callable[[Ref | Delta], Product],
) -> FormulaSequence:
    """The sequence with terms of element-wise sums that have few blocks as steps of their own.

    ``t1[a]*v[b,c]`` has those of one irrep of a, beside a term w[a,b,c] that has all blocks.
    """
    steps: list[Step] = []
    for step in sequence.steps:
        terms: tuple[Expr, ...] = (step.summand,) if step.summand is not None else ()
        if isinstance(step.summand, Sum) and not step.sums:
            terms = step.summand.args
        pairs = zip(step.out.indices, signatures[step.out.tensor.name].signs, strict=True)
        left = [i for i, sign in pairs if sign]
        few = [t for t in terms if left and is_sparse(products_of(t, factor), left)]
        many = tuple(t for t in terms if t not in few)
        parts = [Sum(many) if many[1:] else many[0]] if many else []
        for part in [*parts, *few] if len(terms) > 1 and few else []:
            op = Add(part) if isinstance(part, Ref) else Map(part)
            more = step.accumulate or part is not (*parts, *few)[0]
            steps.append(replace(step, id=len(steps), op=op, accumulate=more))
        if len(terms) <= 1 or not few:
            steps.append(replace(step, id=len(steps)))
    return replace(sequence, steps=tuple(steps))


def outside(sequence: FormulaSequence, nest: Nest) -> FormulaSequence:
    """The other steps, which keep their ids, and the arrays that they and the nest share."""
    steps = tuple(s for s in sequence.steps if s.id not in nest.steps)
    local = {nest.slices[t.name].tensor.name for t in nest.sequence.intermediates}
    tensors = tuple(t for t in sequence.tensors if t.name not in local)
    return replace(sequence, steps=steps, tensors=tensors)


def _fits(
    sequence: FormulaSequence, step: Step, steps: Sequence[Step], local: Sequence[Tensor]
) -> bool:
    """Whether a step inside writes a local array, or adds to a number that no other step writes."""
    value = step.summand
    if any(r.tensor in local and is_part(r) for r in (step.out, *step.operands)):
        return False
    if value is None or any(isinstance(leaf, Delta) for leaf in leaves(value)):
        return False
    written = step.out.tensor
    if written not in local:
        every = sequence.producers(written)
        early = any(s.id < steps[-1].id for s in sequence.consumers(written))
        return written.rank == 0 and all(s in steps for s in every) and not early
    return all(
        s.id < steps[0].id or ref.tensor in local
        for ref in step.operands
        for s in sequence.producers(ref.tensor)
    )


def _nest(
    sequence: FormulaSequence,
    steps: Sequence[Step],
    axes: Mapping[Tensor, tuple[int, ...]],
    space: Space,
) -> Nest | None:
    plans = _plans(sequence, steps, axes)
    if plans is None:
        return None
    slices: dict[str, Slice] = {}
    tensors: dict[str, Tensor] = {}
    inside: list[Step] = []

    def part(ref: Ref, numbers: Mapping[Index, int]) -> Ref:
        """The slice that a reference reads, or writes."""
        lost = tuple(a for a, i in enumerate(ref.indices) if i in numbers)
        made = Slice(ref.tensor, lost, tuple(numbers[ref.indices[a]] for a in lost))
        name = f"{ref.tensor.name}[{','.join(map(str, made.loops))}]"
        if ref.tensor not in axes:
            name += f" of {','.join(map(str, lost))}"
        slices[name] = made
        role = Role.TEMP if ref.tensor in axes else Role.INPUT
        kept = tuple(ref.tensor.spaces[a] for a in made.kept)
        tensors[name] = Tensor(name, kept, role, real=ref.tensor.real)
        return Ref(tensors[name], tuple(ref.indices[a] for a in made.kept))

    count = len(next(iter(axes.values())))
    ordered = [False] + [True] * (count - 1)
    for step, numbers, reads in plans:
        values: dict[Ref, Expr] = {}
        for ref, (sign, turned) in reads.items():
            read: Expr = part(turned, numbers)
            values[ref] = read if sign == 1 else Prod((Const(Fraction(sign)), read))
        if step.out.tensor in axes:
            out = part(step.out, numbers)
        else:
            loops = sorted(numbers, key=numbers.__getitem__)
            out = Ref(tensors.setdefault(step.out.tensor.name, _number(step.out.tensor)))
            for n in range(1, count):
                pair = {loops[n]: loops[n - 1], loops[n - 1]: loops[n]}
                ordered[n] &= exchange_sign(sequence, step, pair, fixed=tuple(loops)) == 1
        sums = tuple(i for i in step.sums if i not in numbers)
        op, coeff = _operation(step, values)
        inside.append(replace(step, id=len(inside), out=out, op=op, coeff=coeff, sums=sums))
    order = (Role.INPUT, Role.TEMP, Role.OUTPUT)
    made = sorted(tensors.values(), key=lambda t: order.index(t.role))
    name = f"{sequence.name} inside"
    inner = FormulaSequence(name, sequence.spaces, tuple(made), tuple(inside))
    return Nest(inner, space, tuple(ordered), slices, frozenset(s.id for s in steps))


def _plans(
    sequence: FormulaSequence, steps: Sequence[Step], axes: Mapping[Tensor, tuple[int, ...]]
) -> list[_Plan] | None:
    """The steps inside, each once for every order of the loops in which its array is read.

    A symmetry of the array spares an order. None if the indices of some array are not the loops.
    """
    needed: dict[Tensor, list[tuple[int, ...]]] = {t: [] for t in axes}
    plans: list[_Plan] = []
    for step in reversed(steps):
        first = next(r for r in (step.out, *step.operands) if r.tensor in axes)
        loops = tuple(first.indices[a] for a in axes[first.tensor])
        local = step.out.tensor in axes
        if len(set(loops)) < len(loops) or not (local or set(loops) <= set(step.sums)):
            return None
        for order in reversed(needed[step.out.tensor] if local else [tuple(range(len(loops)))]):
            numbers = dict(zip(loops, order, strict=True))
            reads = {}
            for ref in dict.fromkeys(step.operands):
                reads[ref] = 1, ref
                if ref.tensor not in axes:
                    continue
                own = tuple(ref.indices[a] for a in axes[ref.tensor])
                if set(own) != set(loops):
                    return None
                known = needed[ref.tensor]
                wanted = tuple(numbers[i] for i in own)
                for other in known if wanted not in known else ():
                    target = tuple(sorted(loops, key=lambda i: other.index(numbers[i])))
                    found = _turned(sequence, ref, axes[ref.tensor], target)
                    if found is not None:
                        reads[ref] = found
                        break
                else:
                    if wanted not in known:
                        known.append(wanted)
            plans.append((step, numbers, reads))
    return plans[::-1]


def _number(tensor: Tensor) -> Tensor:
    return Tensor(tensor.name, (), Role.OUTPUT, real=tensor.real)


def _operation(step: Step, values: Mapping[Ref, Expr]) -> tuple[Contract | Add | Map, Fraction]:
    """The operation of a step on slices, and its coefficient."""
    if isinstance(step.op, Map):
        expr = map_leaves(step.op.expr, lambda leaf: values[leaf])  # type: ignore[index]
        return Map(expr), step.coeff
    coeff = step.coeff
    read = []
    for ref in step.operands:
        value = values[ref]
        if isinstance(value, Prod):
            coeff, value = -coeff, value.args[1]
        assert isinstance(value, Ref)
        read.append(value)
    return (Contract(*read) if isinstance(step.op, Contract) else Add(*read)), coeff


def _turned(
    sequence: FormulaSequence, ref: Ref, axes: tuple[int, ...], loops: Indices
) -> tuple[int, Ref] | None:
    """The equal reference whose axes of loops have the loops in this order, and its sign."""
    others = [a for a in range(ref.tensor.rank) if a not in axes]
    spaces = ref.tensor.spaces
    for chosen in permutations(others):
        perm = list(range(ref.tensor.rank))
        for axis, loop in zip(axes, loops, strict=True):
            perm[axis] = next(a for a in axes if ref.indices[a] == loop)
        for axis, other in zip(others, chosen, strict=True):
            perm[axis] = other
        if any(spaces[a] != spaces[p] for a, p in enumerate(perm)):
            continue
        sign = tensor_sign(sequence, ref.tensor, tuple(perm))
        if sign is not None:
            return sign, Ref(ref.tensor, tuple(ref.indices[p] for p in perm))
    return None
