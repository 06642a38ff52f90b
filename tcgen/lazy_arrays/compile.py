"""From recorded array operations to a system of equations, and to a kernel.

The nodes of a graph are arrays, element-by-element operations, sums over axes, products of tensors,
and transposes. :func:`lazy_system` gives every axis an index and writes the nodes as equations. A
node has an equation of its own if folding it into its reader would compute something twice: it has
several readers, or its reader runs over more elements than it has (Henriksen and Oancea, A T2
Graph-Reduction Approach to Fusion, FHPC 2013, cases 3 and 4). Other nodes are folded into one
expression, so that nothing is stored between operations. The levels below see the equations of all
results together: the objective ``kernels`` divides them among loops so that the fewest bytes pass
memory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeAlias, assert_never

import numpy as np

from ..artifact.folder import Artifact
from ..compiler.driver import compile_system
from ..compiler.program_cache import ProgramCache
from ..errors import VerifyError
from ..frontend.einsum import label_names
from ..ir.expr import ARGUMENT_COUNTS, Call, Calls, Const, Expr, Pow, Prod, Quot, Sum
from ..ir.reduction import Reduction
from ..ir.system import Apply, Equation, Factor, System, Term, factor_indices
from ..ir.tensor import Index, Ref, Role, Space, Storage, Tensor
from ..options import Options
from ..runtime.program import Program
from .graph import (
    KERNEL_TYPES,
    Array,
    Elementwise,
    Leaf,
    Linearized,
    Node,
    Part,
    Product,
    Reduce,
    Roll,
    Scalar,
    Transpose,
    in_order,
    layout_of,
)

Axis: TypeAlias = tuple[int, int]
MINUS = Const(Fraction(-1))


@dataclass(frozen=True, slots=True)
class Place:
    """The view of an array that a kernel reads or writes as the tensor ``name``.

    ``index`` removes the axes of extent 1; None without them. ``axes`` are the others in storage
    order; None for C order. A ``real`` array stays real in a kernel of complex numbers.
    """

    name: str
    index: tuple[int | slice, ...] | None
    axes: tuple[int, ...] | None
    real: bool = False

    def view(self, array: Array) -> Array:
        """A view of an array with the axes of the tensor."""
        if self.index is not None:
            array = array[(*self.index, ...)]  # an array, also without axes
        return array if self.axes is None else array.transpose(self.axes)


@dataclass(frozen=True, slots=True)
class LazySystem:
    """A system, and the views that its kernel takes.

    ``system`` depends neither on extents other than 1 nor on the values of numbers, so that equal
    operations give an equal system. ``inputs``, views of arrays, and ``numbers`` are in the order
    of the operations that read them. ``target`` is the view of the array into which the result is
    written, or None. ``outputs`` names the tensor of each root.
    """

    system: System
    inputs: tuple[Place, ...]
    target: Place | None
    numbers: tuple[str, ...]
    outputs: tuple[str, ...]
    extents: dict[str, int]


def lazy_system(
    roots: Sequence[Node], target: Array | None = None, *, accumulate: bool = False
) -> LazySystem:
    """The equations of some nodes, each given once, with an output for each.

    The result of the only root is written into an array like ``target``, or added to it if
    ``accumulate``.

    Example:
        >>> import numpy as np
        >>> from tcgen.lazy_arrays.graph import leaf
        >>> x = leaf(np.ones((3, 4)))
        >>> square = Node(Elementwise("multiply", (x, x)), (3, 4), x.dtype)
        >>> total = Node(Reduce(square, (0,), Reduction.SUM), (4,), x.dtype)
        >>> print(lazy_system([total]).system.pretty(), end="")
        y0[i] = sum(j) (x0[j,i]*x0[j,i])
    """
    return _Writer(roots, target, accumulate).written()


class _Writer:
    """Writes the equations of a graph; tensors are stored by the identity of their nodes."""

    def __init__(self, roots: Sequence[Node], target: Array | None, accumulate: bool) -> None:
        self.roots = tuple(roots)
        self.nodes = in_order(roots)
        self.spaces = _Spaces(self.nodes)
        self.tensors: dict[int, Tensor] = {}
        self.stored: dict[int, tuple[int, ...]] = {}  # axes of arrays in another order
        self.more: list[Space] = []  # spaces of larger arrays around the operands
        self.inputs: list[Place] = []
        self.target: Place | None = None
        self.numbers: list[str] = []
        self.complex = any(r.computes is not None and r.computes.kind == "c" for r in self.roots)
        self.conditions = self._conditions()
        named = self._named()
        for node in self.nodes:
            axes = tuple(s for s in self.spaces.of(node) if s is not None)
            match node.work:
                case Leaf(array):
                    name = f"x{len(self.inputs)}"
                    self.inputs.append(self._place(name, Role.INPUT, node, array))
                    continue
                case _ if target is not None and node is self.roots[0]:
                    self.target = self._place("y0", Role.OUTPUT, node, target)
                    made = self.tensors[id(node)]
                    self.tensors[id(node)] = replace(made, accumulate=accumulate)
                    continue
                case Scalar():
                    name, role = f"c{len(self.numbers)}", Role.INPUT
                    self.numbers.append(name)
                case _ if id(node) in named:
                    root = next((n for n, r in enumerate(self.roots) if r is node), None)
                    name = f"t{len(self.tensors)}" if root is None else f"y{root}"
                    role = Role.TEMP if root is None else Role.OUTPUT
                case _:
                    continue
            self.tensors[id(node)] = Tensor(name, axes, role)

    def _place(self, name: str, role: Role, node: Node, array: Array) -> Place:
        """The place of an array, and its tensor: a part of a larger array is used where it is."""
        spaces = self.spaces.of(node)
        as_is = array.dtype in KERNEL_TYPES and not array.flags.c_contiguous
        layout = layout_of(array) if as_is else None  # other types are converted to C order
        kept = tuple(n for n, space in enumerate(spaces) if space is not None)
        order, longer = (kept, ()) if layout is None else layout
        axes = None if order == kept else tuple(kept.index(n) for n in order)
        ones = len(kept) < len(spaces)
        index = tuple(0 if space is None else slice(None) for space in spaces) if ones else None
        if axes is not None:
            self.stored[id(node)] = axes
        own = tuple(space for n in order if (space := spaces[n]) is not None)
        within = list(own)
        for place in longer:
            gap = Space(f"{name}_gap{place}")
            within[place] = Space(f"{name}_axis{place}", parts=(own[place], gap))
            self.more += [gap, within[place]]
        storage = Storage(within=tuple(within) if longer else ())
        real = id(node) in self.conditions
        self.tensors[id(node)] = Tensor(name, own, role, storage=storage, real=real)
        return Place(name, index, axes, real)

    def written(self) -> LazySystem:
        """The whole system."""
        equations = tuple(
            self._equation(node)
            for node in self.nodes
            if id(node) in self.tensors and not isinstance(node.work, Leaf | Scalar)
        )
        tensors = sorted(self.tensors.values(), key=lambda t: not t.is_input)
        used = self.spaces.used()
        return LazySystem(
            System("lazy", (*used, *self.more), tuple(tensors), equations),
            tuple(self.inputs),
            self.target,
            tuple(self.numbers),
            tuple(self.tensors[id(root)].name for root in self.roots),
            {space.name: extent for space, extent in used.items()}
            | {space.name: 0 for space in self.more if not space.parts},
        )

    def _conditions(self) -> set[int]:
        """Nodes of arrays that are only conditions for complex numbers."""
        if not self.complex:
            return set()
        chosen_by: set[int] = set()
        read: set[int] = set()
        for node in self.nodes:
            operands = node.work.operands
            if isinstance(node.work, Elementwise) and node.work.operation == "where":
                chosen_by.add(id(operands[0]))
                operands = operands[1:]
            read.update(map(id, operands))
        arrays = {id(node) for node in self.nodes if isinstance(node.work, Leaf)}
        return (chosen_by & arrays) - read

    def _named(self) -> set[int]:
        """Nodes of operations that have an equation of their own."""
        readers = Counter(id(o) for node in self.nodes for o in node.work.operands)
        named = {id(root) for root in self.roots}
        for node in self.nodes:
            if isinstance(node.work, Reduce | Product):
                named.add(id(node))
            for operand in node.work.operands:
                core, shared = operand, False
                while isinstance(core.work, Transpose):
                    shared |= readers[id(core)] > 1
                    core = core.work.operand
                wider = math.prod(node.shape) > math.prod(core.shape)
                if isinstance(core.work, Elementwise) and (
                    shared or wider or readers[id(core)] > 1 or isinstance(node.work, Product)
                ):
                    named.add(id(core))
        return named

    def _equation(self, node: Node) -> Equation:
        letters = _Letters()
        here = [letters.new(space) for space in self.spaces.of(node)]
        lhs = self._reference(node, here)
        sums: tuple[Index, ...] = ()
        reduction = Reduction.SUM
        match node.work:
            case Reduce(operand, axes, kind):
                below = iter(here)
                spaces = self.spaces.of(operand)
                inner = [
                    letters.new(space) if axis in axes else next(below)
                    for axis, space in enumerate(spaces)
                ]
                sums = tuple(i for a in axes if (i := inner[a]) is not None)
                factors = self._factors(operand, inner) if kind is Reduction.SUM else ()
                if not _is_contraction(factors):
                    factors = (Apply(self._expression(operand, inner)),)
                reduction = kind if sums else reduction
            case Product(operands, labels, output, _):
                of_label = dict(zip(output, here, strict=True))
                parts: list[Factor] = []
                for operand, axes in zip(operands, labels, strict=True):
                    places: list[Index | None] = []
                    for axis, space in enumerate(self.spaces.of(operand)):
                        label = axes[axis]
                        if space is not None and of_label.get(label) is None:
                            of_label[label] = letters.new(space)
                        places.append(None if space is None else of_label[label])
                    parts += self._factors(operand, places)
                factors = tuple(parts)
                kept = set(lhs.indices)
                sums = tuple(i for i in of_label.values() if i is not None and i not in kept)
            case _:
                factors = (Apply(self._expression(node, here, top=True)),)
        return Equation(lhs, (Term(Fraction(1), factors, sums, reduction=reduction),))

    def _factors(self, node: Node, places: Sequence[Index | None]) -> tuple[Factor, ...]:
        """A node under a sum as a product, so that sums of products become contractions."""
        match node.work:
            case _ if id(node) in self.tensors:
                return (self._reference(node, places),)
            case Elementwise("multiply", operands):
                return tuple(
                    factor
                    for operand in operands
                    for factor in self._factors(operand, _aligned(operand, places))
                )
            case Transpose(operand, source):
                return self._factors(operand, _operand_places(operand, source, places))
            case _:
                return (Apply(self._expression(node, places)),)

    def _expression(self, node: Node, places: Sequence[Index | None], top: bool = False) -> Expr:
        if id(node) in self.tensors and not top:
            return self._reference(node, places)
        match node.work:
            case Transpose(operand, source):
                return self._expression(operand, _operand_places(operand, source, places))
            case Elementwise(operation, operands, exponent):
                args = tuple(self._expression(o, _aligned(o, places)) for o in operands)
                if operation == "where" and self.complex and id(operands[0]) not in self.conditions:
                    args = (Call("real", args[0]), *args[1:])
                return _operation(operation, args, exponent)
            case Leaf() | Scalar() | Reduce() | Product():
                return self._reference(node, places)
            case Roll() | Part():
                raise VerifyError("rolled arrays are slices, or computed, before equations")
            case _:
                assert_never(node.work)

    def _reference(self, node: Node, places: Sequence[Index | None]) -> Ref:
        indices = tuple(i for i in places if i is not None)
        axes = self.stored.get(id(node), range(len(indices)))
        return Ref(self.tensors[id(node)], tuple(indices[n] for n in axes))


def _is_contraction(factors: Sequence[Factor]) -> bool:
    """True if two factors each have an index that the other lacks, as those of a matrix product.

    Other products are work on elements, which is fused.
    """
    indices = [set(factor_indices(factor)) for factor in factors]
    return any(one - other and other - one for one, other in combinations(indices, 2))


def _aligned(operand: Node, places: Sequence[Index | None]) -> list[Index | None]:
    """The places of an operand that is broadcast, aligned from the right."""
    last = places[len(places) - len(operand.shape) :]
    return [None if n == 1 else i for n, i in zip(operand.shape, last, strict=True)]


def _operand_places(
    operand: Node, source: tuple[int | None, ...], places: Sequence[Index | None]
) -> list[Index | None]:
    """The places of the operand of a transpose."""
    return [places[source.index(axis)] for axis in range(len(operand.shape))]


def _operation(operation: str, args: tuple[Expr, ...], exponent: int) -> Expr:
    match operation:
        case "add":
            return Sum(args)
        case "subtract":
            return Sum((args[0], Prod((MINUS, args[1]))))
        case "multiply":
            return Prod(args)
        case "divide":
            return Quot(args[0], args[1])
        case "negative":
            return Prod((MINUS, args[0]))
        case "power" if exponent == 1:
            return args[0]  # a complex power would multiply by 1: infinities become NaN
        case "power":
            return Pow(args[0], exponent)
        case "greater" | "greater_equal":
            return Calls(operation.replace("greater", "less"), (args[1], args[0]))
        case "and":
            return Prod(args)
        case "or":
            return Calls("maximum", args)
        case "xor":
            return Calls("not_equal", args)
        case "not":
            return Sum((Const(Fraction(1)), Prod((MINUS, args[0]))))
        case function if function in ARGUMENT_COUNTS:
            return Calls(function, args)
        case function:
            return Call(function, args[0])


def _equal_axes(node: Node) -> Iterator[tuple[Axis, Axis]]:
    """Pairs of axes, each as node and number, that have one extent because of this node."""
    match node.work:
        case Leaf() | Scalar() | Roll() | Part():
            pass
        case Elementwise(_, operands):
            for operand in operands:
                first = len(node.shape) - len(operand.shape)
                for axis, extent in enumerate(operand.shape):
                    if extent != 1:
                        yield (id(node), first + axis), (id(operand), axis)
        case Reduce(operand, axes):
            kept = (a for a in range(len(operand.shape)) if a not in axes)
            for axis, below in enumerate(kept):
                yield (id(node), axis), (id(operand), below)
        case Transpose(operand, source):
            for axis, old in enumerate(source):
                if old is not None:
                    yield (id(node), axis), (id(operand), old)
        case Product(operands, labels, output, _):
            first_of: dict[int, Axis] = {n: (id(node), axis) for axis, n in enumerate(output)}
            for operand, axes in zip(operands, labels, strict=True):
                for axis, label in enumerate(axes):
                    if operand.shape[axis] != 1:
                        here = (id(operand), axis)
                        yield first_of.setdefault(label, here), here
        case _:
            assert_never(node.work)


class _Letters:
    """New indices of one equation."""

    def __init__(self) -> None:
        self.count = 0

    def new(self, space: Space | None) -> Index | None:
        """An index of the space; None for an axis of extent 1."""
        if space is None:
            return None
        self.count += 1
        return Index(label_names(range(self.count))[-1], space)


class _Spaces:
    """A space for each set of axes of one extent; none for axes of extent 1."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        self.parent: dict[Axis, Axis] = {}
        for node in nodes:
            for here, there in _equal_axes(node):
                self.parent[self._root(there)] = self._root(here)
        self.spaces: dict[Axis, Space] = {}
        self.extents: dict[Space, int] = {}
        for node in nodes:
            for axis, extent in enumerate(node.shape):
                root = self._root((id(node), axis))
                if extent != 1 and root not in self.spaces:
                    self.spaces[root] = Space(f"s{len(self.spaces)}")
                    self.extents[self.spaces[root]] = extent

    def _root(self, axis: Axis) -> Axis:
        while (above := self.parent.get(axis, axis)) != axis:
            axis = above
        return axis

    def of(self, node: Node) -> tuple[Space | None, ...]:
        """Space of each axis of a node; None where its extent is 1."""
        return tuple(
            None if extent == 1 else self.spaces[self._root((id(node), axis))]
            for axis, extent in enumerate(node.shape)
        )

    def used(self) -> dict[Space, int]:
        """All spaces and their extents."""
        return dict(self.extents)


FLOAT64 = np.dtype(np.float64)
_MOST_PROGRAMS = 256  # compiled programs in the cache of a process
PROGRAMS = ProgramCache(Program, lambda: _MOST_PROGRAMS)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled program that runs any graph of a form; ``lazy`` names its arrays and numbers."""

    program: Program
    lazy: LazySystem

    def run(self, line: Linearized) -> list[Array]:
        """The arrays of the roots."""
        lazy, dtype = self.lazy, line.dtype
        given: dict[str, Any] = {}
        for place, array in zip(lazy.inputs, line.arrays(), strict=True):
            kind = FLOAT64 if place.real else dtype
            if array.dtype != kind:  # integers and booleans
                array = array.astype(kind, order="C")
            given[place.name] = place.view(array)
        for name, value in zip(lazy.numbers, line.numbers(), strict=True):
            given[name] = np.array(value, dtype)
        if lazy.target is not None and line.target is not None:
            self.program(out={lazy.target.name: lazy.target.view(line.target)}, **given)
            return [line.target]
        made = self.program(**given)
        results = []
        for name, root in zip(lazy.outputs, line.roots, strict=True):
            array, shape = made[name].astype(line.dtypes[root], copy=False), line.shapes[root]
            results.append(array if array.shape == shape else array.reshape(shape))
        return results


def kernel_of(lazy: LazySystem, dtype: str, target: str) -> Kernel:
    """The kernel of a system, compiled if the cache has none."""
    key = (lazy.system, dtype, target)
    return Kernel(PROGRAMS.program(key, lambda: _compiled(lazy, dtype, target)), lazy)


def _compiled(lazy: LazySystem, dtype: str, target: str) -> Artifact:
    options = Options(
        extents=tuple(sorted((name, max(1, n)) for name, n in lazy.extents.items())),
        target=target,
        dtype=dtype,
        objective="kernels",
        optimize=False,
        round_each=True,
        sums_alone=False,
    )
    return compile_system(lazy.system, options).artifact
