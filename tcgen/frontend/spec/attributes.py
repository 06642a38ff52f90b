"""Attributes of a declared tensor, such as symmetry and storage, checked against its axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from ...errors import TcgenError
from ...ir.tensor import (
    MOST_SYMMETRIES,
    Packing,
    Role,
    Space,
    Storage,
    Symmetry,
    Tensor,
    exchanged,
    symmetry_group,
)
from ...records.quantity import Quantity
from ..source import Problems
from .syntax import Attribute, Declaration, Word

_KINDS_WITHOUT_SPIN = ("auxiliary", "quadrature", "atomic")
_INPUT_ATTRIBUTES = ("constant", "volatile", "generated", "blocks", "from", "=")
QUANTITY_WORDS = {
    "eri(chemist)": Quantity.CHEMIST,
    "eri(physicist)": Quantity.PHYSICIST,
    "eri(antisymmetric)": Quantity.ANTISYMMETRISED,
    "df": Quantity.THREE_INDEX,
    "fock": Quantity.FOCK,
    "hcore": Quantity.HCORE,
    "energies": Quantity.ENERGIES,
    "dipole": Quantity.DIPOLE,
}


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared tensor, or ``blocks`` given instead; with ``others_zero`` its others are zero."""

    tensor: Tensor
    blocks: tuple[Word, ...] = ()
    others_zero: bool = False


def declare(
    declaration: Declaration,
    spaces: tuple[Space, ...],
    letters: tuple[str, ...],
    problems: Problems,
) -> Declared | None:
    """The declared tensor, None after an error; ``letters`` name its axes, () if spaces do."""
    before = problems.count
    reader = _Reader(declaration, declaration.name, spaces, letters, problems)
    for attribute in declaration.attributes:
        reader.read(attribute)
    declared = reader.finish()
    return declared if problems.count == before else None


@dataclass(slots=True)
class _Reader:
    """Gathers the attributes of one declaration, whose name is ``_name``.

    ``_pairs`` has the sign of each (anti)symmetric pair, by its first axis.
    """

    _declaration: Declaration
    _name: Word
    _spaces: tuple[Space, ...]
    _letters: tuple[str, ...]
    _problems: Problems
    _symmetry: list[Symmetry] = field(default_factory=list)
    _packed: list[tuple[tuple[int, ...], Attribute]] = field(default_factory=list)
    _order: tuple[int, ...] = ()
    _conserves: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    _flags: dict[str, Attribute] = field(default_factory=dict)
    _blocks: tuple[Word, ...] = ()
    _others_zero: bool = False
    _default: Fraction | None = None
    _quantity: Quantity | None = None
    _charge: str | None = None
    _pairs: dict[int, int] = field(default_factory=dict)

    def read(self, attribute: Attribute) -> None:
        output = self._declaration.output
        if output and attribute.word in _INPUT_ATTRIBUTES:
            word = "a default" if attribute.word == "=" else attribute.word
            self._wrong(attribute, f"{word} has no meaning for an output", "use it for inputs only")
            return
        if not output and attribute.word == "accumulate":
            advice = f"write: output {self._name.text} accumulate"
            self._wrong(attribute, "accumulate has no meaning for an input", advice)
            return
        match attribute.word:
            case "symmetric" | "antisymmetric":
                for group in attribute.groups:
                    self._group(attribute, group, 1 if attribute.word == "symmetric" else -1)
            case "symmetry" | "antisymmetry" | "hermitian":
                for left, right in zip(attribute.groups[::2], attribute.groups[1::2], strict=True):
                    self._exchange(attribute, left, right)
            case "packed":
                for group in attribute.groups:
                    axes = self._axes(group)
                    if axes is not None:
                        self._packed.append((axes, attribute))
            case "stored":
                self._stored(attribute)
            case "conserves":
                self._conserved(attribute)
            case "charge":
                self._charge = attribute.names[0].text
            case "blocks":
                self._blocks = attribute.names
                self._others_zero = attribute.others_zero
            case "from":
                self._quantity = self._source(attribute)
            case "=":
                self._default = attribute.value
                if self._spaces:
                    self._wrong(
                        attribute,
                        "only a scalar can have a default",
                        "remove the default: the caller passes an array",
                    )
            case word:
                self._flags[word] = attribute

    def finish(self) -> Declared:
        """The tensor with all attributes."""
        if "constant" in self._flags and "volatile" in self._flags:
            message = "constant and volatile exclude each other"
            self._wrong(self._flags["volatile"], message, "remove one of them")
        generated = self._flags.get("generated")
        if generated and (self._packed or self._order):
            advice = "remove packed and stored: its tiles come in declared order"
            self._wrong(generated, "a generated input has no stored layout", advice)
        if generated and not self._spaces:
            self._wrong(generated, "a scalar cannot be generated", "remove generated")
        if self._blocks and self._packed:
            advice = "declare the packed block as an input of its own"
            self._wrong(self._packed[0][1], "packed cannot be combined with blocks", advice)
        label = self._flags.get("label")
        if label and (self._conserves is not None or self._charge is not None):
            word = "charge" if self._charge is not None else "conserves"
            message = f"a label conserves nothing, and {self._name.text} has {word}"
            self._wrong(label, message, f"remove label or {word}")
        packed = tuple(p for p in map(self._packing, self._packed) if p is not None)
        role = Role.OUTPUT if self._declaration.output else Role.INPUT
        tensor = Tensor(
            self._name.text,
            self._spaces,
            Role.GENERATED if generated else role,
            volatile="constant" not in self._flags,
            symmetry=tuple(dict.fromkeys(self._symmetry)),
            storage=Storage(self._order, packed),
            real="real" in self._flags,
            default=self._default,
            accumulate="accumulate" in self._flags,
            conserves=self._conserves,
            quantity=self._quantity,
            label=bool(label),
            charge=self._charge,
        )
        try:
            symmetry_group(tensor)
        except ValueError:
            self._problems.add(
                self._name.span,
                f"the symmetries of {self._name.text} force it to be zero",
                "an element cannot equal itself and its negative: remove an attribute",
            )
        except TcgenError:
            self._problems.add(
                self._name.span,
                f"the symmetries of {self._name.text} have more than {MOST_SYMMETRIES:,} "
                f"permutations",
                "declare fewer of its axes symmetric",
            )
        return Declared(tensor, self._blocks, self._others_zero)

    def _group(self, attribute: Attribute, words: tuple[Word, ...], sign: int) -> None:
        axes = self._axes(words)
        if axes is None:
            return
        if len(axes) < 2:
            self._wrong(words[0], f"{attribute.word} needs two axes or more", "write (0,1)")
            return
        for first, second in itertools.pairwise(axes):
            if not self._same_space(words[0], first, second):
                return
            self._symmetry.append(self._swap(((first, second),), sign))
        for first, second in itertools.permutations(axes, 2):
            if second == first + 1:
                self._pairs[first] = sign

    def _exchange(
        self, attribute: Attribute, left: tuple[Word, ...], right: tuple[Word, ...]
    ) -> None:
        axes = self._axes(left + right)
        if axes is None:
            return
        if len(left) != len(right):
            self._wrong(
                left[0],
                f"{attribute.word} exchanges tuples of equal length",
                "for example (0,1)<->(2,3)",
            )
            return
        pairs = tuple(zip(axes[: len(left)], axes[len(left) :], strict=True))
        if all(self._same_space(left[0], a, b) for a, b in pairs):
            sign = -1 if attribute.word == "antisymmetry" else 1
            self._symmetry.append(self._swap(pairs, sign, attribute.word == "hermitian"))

    def _stored(self, attribute: Attribute) -> None:
        axes = self._axes(attribute.groups[0])
        if axes is None:
            return
        if len(axes) != len(self._spaces):
            advice = f"{self._name.text} has {len(self._spaces)} axes"
            self._wrong(attribute, "stored must name every axis once", advice)
        elif axes != tuple(range(len(axes))):
            self._order = axes

    def _conserved(self, attribute: Attribute) -> None:
        left, right = attribute.groups
        axes = self._axes(left + right)
        if axes is None:
            return
        for word, axis in zip(left + right, axes, strict=True):
            space = self._spaces[axis]
            if any(b.kind in _KINDS_WITHOUT_SPIN and not b.graded for b in space.bases):
                self._wrong(
                    word,
                    f"axis {axis} of {self._name.text} has no spin: space {space.name} is "
                    f"{space.bases[0].kind}, neither over orbitals nor graded",
                    "leave the axis out",
                )
                return
        self._conserves = axes[: len(left)], axes[len(left) :]

    def _source(self, attribute: Attribute) -> Quantity | None:
        """The quantity that ``from eri(chemist)`` names."""
        first, *rest = attribute.names
        text = first.text + "".join(f"({word.text})" for word in rest)
        quantity = QUANTITY_WORDS.get(text)
        if quantity is None:
            message = f"{text} is not a quantity of a mean field"
            self._wrong(first, message, f"quantities: {', '.join(QUANTITY_WORDS)}")
        elif quantity.rank != len(self._spaces):
            message = f"{self._name.text} has {len(self._spaces)} axes, and {text} has "
            self._wrong(first, f"{message}{quantity.rank}", "correct the axes or the quantity")
        elif self._quantity not in (None, quantity):
            self._wrong(attribute, f"{self._name.text} has two sources", "remove one of them")
        return quantity

    def _packing(self, packed: tuple[tuple[int, ...], Attribute]) -> Packing | None:
        axes, attribute = packed
        order = self._order or tuple(range(len(self._spaces)))
        pairs = tuple(itertools.pairwise(axes))
        if not pairs or any(second != first + 1 for first, second in pairs):
            advice = "for example packed (2,3), or packed (0,1,2)"
            self._wrong(attribute, "packed takes two or more adjacent axes", advice)
            return None
        if not all(self._same_space(attribute, *pair) for pair in pairs):
            return None
        if any(order.index(second) != order.index(first) + 1 for first, second in pairs):
            advice = "stored must keep these axes together and in this order"
            self._wrong(attribute, "the packed axes are not adjacent in the stored order", advice)
            return None
        if sum(bool({*axes} & {*other}) for other, _ in self._packed) > 1:
            self._wrong(attribute, "an axis is packed twice", "each axis can be packed once only")
            return None
        signs = {self._pairs.get(first) for first in axes[:-1]}
        if len(signs) > 1:
            name, listed = self._name.text, ",".join(map(str, axes))
            self._wrong(
                attribute,
                f"axes {listed} of {name} are not symmetric in all of their pairs",
                f"declare {name} symmetric or antisymmetric ({listed})",
            )
            return None
        (sign,) = signs
        if sign is None:
            self._symmetry += [self._swap((pair,), 1) for pair in pairs]
        return Packing(axes[0], sign == -1, len(axes))

    def _axes(self, words: tuple[Word, ...]) -> tuple[int, ...] | None:
        axes = []
        for word in words:
            axis = self._axis(word)
            if axis is None:
                return None
            if axis in axes:
                self._wrong(word, f"axis {word.text} is named twice", "name each axis once")
                return None
            axes.append(axis)
        return tuple(axes)

    def _axis(self, word: Word) -> int | None:
        if word.text.isdigit():
            digits = word.text.lstrip("0") or "0"
            if len(digits) <= 9 and int(digits) < len(self._spaces):
                return int(digits)
            count = len(self._spaces)
            advice = f"positions are 0 to {count - 1}" if count else "it is a scalar"
            self._wrong(word, f"{self._name.text} has no axis {word.text:.20}", advice)
        elif word.text in self._letters:
            return self._letters.index(word.text)
        else:
            advice = "name axes by position (0,1), or declare them by index letters"
            self._wrong(word, f"{word.text} is not an axis of {self._name.text}", advice)
        return None

    def _same_space(self, at: Word | Attribute, first: int, second: int) -> bool:
        left, right = self._spaces[first], self._spaces[second]
        if left == right:
            return True
        message = (
            f"axes {first} and {second} of {self._name.text} differ: {left.name}, {right.name}"
        )
        self._wrong(at, message, "axes that are exchanged or packed must have the same space")
        return False

    def _swap(self, pairs: Iterable[tuple[int, int]], sign: int, conj: bool = False) -> Symmetry:
        return Symmetry(exchanged(len(self._spaces), *pairs), sign, conj)

    def _wrong(self, at: Word | Attribute, message: str, advice: str) -> None:
        self._problems.add(at.span, message, advice)


def word_of(quantity: Quantity) -> str:
    """The words of the language for a quantity, such as ``df``."""
    return next(word for word, known in QUANTITY_WORDS.items() if known is quantity)
