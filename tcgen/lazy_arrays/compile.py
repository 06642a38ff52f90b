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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, count
from typing import Any, TypeAlias

import numpy as np

from ..artifact.folder import Artifact
from ..compiler.driver import compile_system
from ..compiler.program_cache import ProgramCache
from ..errors import VerifyError
from ..frontend.einsum import label_names
from ..ir.expr import ARGUMENT_COUNTS, Call, Calls, Const, Expr, Pow, Prod, Quot, Sum
from ..ir.reduction import AnyReduction, Reduction, Running
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
    Product,
    Reduce,
    Scalar,
    Transpose,
    layout_of,
)

Axis: TypeAlias = tuple[int, int]
MINUS = Const(Fraction(-1))


@dataclass(frozen=True, slots=True)
class Place:
    """The view of an array that a kernel reads or writes as the tensor ``name``.

    ``index`` removes the axes of extent 1; None without them. ``axes`` are the others in storage
    order; None for C order.
    """

    name: str
    index: tuple[int | slice, ...] | None
    axes: tuple[int, ...] | None

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


def lazy_system(line: Linearized) -> LazySystem:
    """The equations of a linearized graph, with an output for each root.

    The result of the only root is written into an array like the target, if there is one, or
    changes it.

    Example:
        >>> import numpy as np
        >>> from tcgen.lazy_arrays.graph import Node, leaf, linearize
        >>> x = leaf(np.ones((3, 4)))
        >>> square = Node(Elementwise("multiply", (x, x)), (3, 4), x.dtype)
        >>> total = Node(Reduce((square,), (0,), Reduction.SUM), (4,), x.dtype)
        >>> print(lazy_system(linearize([total])).system.pretty(), end="")
        y0[i] = sum(j) (x0[j,i]*x0[j,i])
    """
    return _Writer(line).written()


class _Writer:
    """Writes the equations of a graph; nodes are numbers of works."""

    def __init__(self, line: Linearized) -> None:
        self.line = line
        self.spaces = _Spaces(line)
        self.tensors: dict[int, Tensor] = {}
        self.stored: dict[int, tuple[int, ...]] = {}  # axes of arrays in another order
        self.more: list[Space] = []  # spaces of larger arrays around the operands
        self.inputs: list[Place] = []
        self.target: Place | None = None
        self.numbers: list[str] = []
        named = self._named()
        for node, work in enumerate(line.works):
            axes = tuple(s for s in self.spaces.of(node) if s is not None)
            match work:
                case Leaf(array):
                    self.inputs.append(self._place(f"x{len(self.inputs)}", Role.INPUT, node, array))
                    continue
                case _ if line.target is not None and node == line.roots[0]:
                    self.target = self._place("y0", Role.OUTPUT, node, line.target)
                    made = self.tensors[node]
                    self.tensors[node] = replace(made, accumulate=bool(line.change))
                    continue
                case Scalar():
                    name, role = f"c{len(self.numbers)}", Role.INPUT
                    self.numbers.append(name)
                case _ if node in line.roots:
                    name, role = f"y{line.roots.index(node)}", Role.OUTPUT
                case _ if node in named:
                    name, role = f"t{len(self.tensors)}", Role.TEMP
                case _:
                    continue
            self.tensors[node] = Tensor(name, axes, role)

    def _place(self, name: str, role: Role, node: int, array: Array) -> Place:
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
            self.stored[node] = axes
        own = tuple(space for n in order if (space := spaces[n]) is not None)
        within = list(own)
        for place in longer:
            gap = Space(f"{name}_gap{place}")
            within[place] = Space(f"{name}_axis{place}", parts=(own[place], gap))
            self.more += [gap, within[place]]
        storage = Storage(within=tuple(within) if longer else ())
        self.tensors[node] = Tensor(name, own, role, storage=storage)
        return Place(name, index, axes)

    def written(self) -> LazySystem:
        """The whole system."""
        works = self.line.works
        equations = tuple(
            self._equation(node)
            for node in range(len(works))
            if node in self.tensors and not isinstance(works[node], Leaf | Scalar)
        )
        tensors = sorted(self.tensors.values(), key=lambda t: not t.is_input)
        used = self.spaces.extents
        return LazySystem(
            System("lazy", (*used, *self.more), tuple(tensors), equations),
            tuple(self.inputs),
            self.target,
            tuple(self.numbers),
            tuple(self.tensors[root].name for root in self.line.roots),
            {space.name: extent for space, extent in used.items()}
            | {space.name: 0 for space in self.more if not space.parts},
        )

    def _named(self) -> set[int]:
        """Operations that have an equation of their own, other than the roots."""
        line = self.line
        readers = Counter(o for operands in line.operands for o in operands)
        named: set[int] = set()
        for node, work in enumerate(line.works):
            if isinstance(work, Reduce | Product):
                named.add(node)
            for operand in line.operands[node]:
                core, shared = operand, False
                while isinstance(line.works[core], Transpose):
                    shared |= readers[core] > 1
                    (core,) = line.operands[core]
                wider = math.prod(line.shapes[node]) > math.prod(line.shapes[core])
                if isinstance(line.works[core], Elementwise) and (
                    shared or wider or readers[core] > 1 or isinstance(work, Product)
                ):
                    named.add(core)
        return named

    def _equation(self, node: int) -> Equation:
        letter = _letters()
        here = [letter(space) for space in self.spaces.of(node)]
        lhs = self._reference(node, here)
        sums: tuple[Index, ...] = ()
        reduction: AnyReduction = Reduction.SUM
        operands = self.line.operands[node]
        match self.line.works[node]:
            case Reduce(_, axes, kind):
                below = iter(here)
                inner = [
                    next(below) if isinstance(kind, Running) or axis not in axes else letter(space)
                    for axis, space in enumerate(self.spaces.of(operands[0]))
                ]
                sums = tuple(i for a in axes if (i := inner[a]) is not None)
                factors = self._factors(operands[0], inner) if kind is Reduction.SUM else ()
                if not _is_contraction(factors):
                    factors = (Apply(self._expression(operands[0], inner)),)
                reduction = kind if sums else reduction
            case Product(_, labels, output, _):
                of_label = dict(zip(output, here, strict=True))
                parts: list[Factor] = []
                for operand, axes in zip(operands, labels, strict=True):
                    places: list[Index | None] = []
                    for axis, space in enumerate(self.spaces.of(operand)):
                        label = axes[axis]
                        if space is not None and of_label.get(label) is None:
                            of_label[label] = letter(space)
                        places.append(None if space is None else of_label[label])
                    parts += self._factors(operand, places)
                factors = tuple(parts)
                kept = set(lhs.indices)
                sums = tuple(i for i in of_label.values() if i is not None and i not in kept)
            case _:
                factors = (Apply(self._expression(node, here, top=True)),)
        is_change = self.line.change == "subtract" and node == self.line.roots[0]
        sign = Fraction(-1 if is_change else 1)
        return Equation(lhs, (Term(sign, factors, sums, reduction=reduction),))

    def _factors(self, node: int, places: Sequence[Index | None]) -> tuple[Factor, ...]:
        """A node under a sum as a product, so that sums of products become contractions."""
        operands = self.line.operands[node]
        match self.line.works[node]:
            case _ if node in self.tensors:
                return (self._reference(node, places),)
            case Elementwise("multiply"):
                return tuple(
                    factor
                    for operand in operands
                    for factor in self._factors(operand, self._aligned(operand, places))
                )
            case Transpose(_, source):
                return self._factors(operands[0], self._before(operands[0], source, places))
            case _:
                return (Apply(self._expression(node, places)),)

    def _expression(self, node: int, places: Sequence[Index | None], top: bool = False) -> Expr:
        if node in self.tensors and not top:
            return self._reference(node, places)
        operands = self.line.operands[node]
        match self.line.works[node]:
            case Transpose(_, source):
                return self._expression(operands[0], self._before(operands[0], source, places))
            case Elementwise(operation, _, exponent):
                args = tuple(self._expression(o, self._aligned(o, places)) for o in operands)
                if operation == "where" and self.line.dtype.kind == "c":
                    args = (Call("real", args[0]), *args[1:])
                return _operation(operation, args, exponent)
            case _:
                raise VerifyError("joined arrays and parts are computed before equations")

    def _reference(self, node: int, places: Sequence[Index | None]) -> Ref:
        indices = tuple(i for i in places if i is not None)
        axes = self.stored.get(node, range(len(indices)))
        return Ref(self.tensors[node], tuple(indices[n] for n in axes))

    def _aligned(self, operand: int, places: Sequence[Index | None]) -> list[Index | None]:
        """The places of an operand that is broadcast, aligned from the right."""
        shape = self.line.shapes[operand]
        last = places[len(places) - len(shape) :]
        return [None if n == 1 else i for n, i in zip(shape, last, strict=True)]

    def _before(
        self, operand: int, source: tuple[int | None, ...], places: Sequence[Index | None]
    ) -> list[Index | None]:
        """The places of the operand of a transpose."""
        return [places[source.index(axis)] for axis in range(len(self.line.shapes[operand]))]


def _is_contraction(factors: Sequence[Factor]) -> bool:
    """True if two factors each have an index that the other lacks, as those of a matrix product.

    Other products are work on elements, which is fused.
    """
    indices = [set(factor_indices(factor)) for factor in factors]
    return any(one - other and other - one for one, other in combinations(indices, 2))


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


def _equal_axes(line: Linearized, node: int) -> Iterator[tuple[Axis, Axis]]:
    """Pairs of axes, each as node and number, that have one extent because of this node."""
    operands = line.operands[node]
    match line.works[node]:
        case Elementwise():
            for operand in operands:
                first = len(line.shapes[node]) - len(line.shapes[operand])
                for axis, extent in enumerate(line.shapes[operand]):
                    if extent != 1:
                        yield (node, first + axis), (operand, axis)
        case Reduce(_, axes, kind):
            gone = () if isinstance(kind, Running) else axes
            kept = (a for a in range(len(line.shapes[operands[0]])) if a not in gone)
            for axis, below in enumerate(kept):
                yield (node, axis), (operands[0], below)
        case Transpose(_, source):
            for axis, old in enumerate(source):
                if old is not None:
                    yield (node, axis), (operands[0], old)
        case Product(_, labels, output, _):
            first_of: dict[int, Axis] = {n: (node, axis) for axis, n in enumerate(output)}
            for operand, axes in zip(operands, labels, strict=True):
                for axis, label in enumerate(axes):
                    if line.shapes[operand][axis] != 1:
                        here = (operand, axis)
                        yield first_of.setdefault(label, here), here
        case _:
            pass


def _letters() -> Callable[[Space | None], Index | None]:
    """A function for new indices of one equation; None for an axis of extent 1."""
    names = (label_names(range(n))[-1] for n in count(1))
    return lambda space: None if space is None else Index(next(names), space)


class _Spaces:
    """A space for each set of axes of one extent; none for axes of extent 1."""

    def __init__(self, line: Linearized) -> None:
        self.shapes = line.shapes
        self.parent: dict[Axis, Axis] = {}
        for node in range(len(line.works)):
            for here, there in _equal_axes(line, node):
                self.parent[self._root(there)] = self._root(here)
        self.spaces: dict[Axis, Space] = {}
        self.extents: dict[Space, int] = {}
        for node, shape in enumerate(line.shapes):
            for axis, extent in enumerate(shape):
                root = self._root((node, axis))
                if extent != 1 and root not in self.spaces:
                    self.spaces[root] = Space(f"s{len(self.spaces)}")
                    self.extents[self.spaces[root]] = extent

    def _root(self, axis: Axis) -> Axis:
        while (above := self.parent.get(axis, axis)) != axis:
            axis = above
        return axis

    def of(self, node: int) -> tuple[Space | None, ...]:
        """Space of each axis of a node; None where its extent is 1."""
        return tuple(
            None if extent == 1 else self.spaces[self._root((node, axis))]
            for axis, extent in enumerate(self.shapes[node])
        )


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
        arrays = [work.array for work in line.works if type(work) is Leaf]
        numbers = [work.value for work in line.works if type(work) is Scalar]
        given: dict[str, Any] = {}
        for place, array in zip(lazy.inputs, arrays, strict=True):
            if array.dtype != dtype:  # integers and booleans
                array = array.astype(dtype, order="C")
            given[place.name] = place.view(array)
        for name, value in zip(lazy.numbers, numbers, strict=True):
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
