"""Names and numbers of SymPy expressions, their indices and the spaces that these run over.

A space is a whole axis: its elements are numbered from 0, and its extent is known when a program is
called. A range that begins elsewhere, depends on another index or contradicts the shape of an array
is refused. SymPy's symbols are compared as objects and not by their names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import sympy

from ...errors import ArgumentError, SpecError
from ...ir.tensor import Index, Space
from ...ir.term_rewriting import fresh_index
from ..exact_numbers import OUTSIDE, exact, literal, rejection_reason
from .conventions import is_name, refuse

_RANGES = 'use Idx("i", n), Sum(.., (i, 0, n - 1)), or spaces={"o": "i j", "v": "a b"}'
_SYMBOL = "give the range a symbol of its own: n = Symbol('n', integer=True)"
_LONGEST = 100
_WORDS = {
    "'": "_prime",
    "\u2032": "_prime",
    "\u2033": "_prime_prime",
    "*": "_star",
    "+": "_plus",
    "-": "_minus",
    "\u2020": "_dagger",
    "~": "_tilde",
}
_GREEK = re.compile(r"GREEK (?:SMALL|CAPITAL) LETTER ([A-Z]+)")
_PLAIN = " _{}()^,$\\"
_FLOAT_BITS = 53
# Terms of one expression, which are read in a few seconds.
_MOST_TERMS = 10_000


def wrong(message: str, advice: str) -> SpecError:
    """The error of an expression, which has no file and no line."""
    return refuse("<sympy>", 1, "", message, advice)


class Ranges:
    """The spaces of a system, and the indices of the equation that is being read.

    ``indices`` has the symbols that are indices in some equation.
    """

    def __init__(self, letters: Mapping[str, str]) -> None:
        self.indices: frozenset[Any] = frozenset()
        self._letters = _space_of_letter(letters)
        self._spaces: dict[str, Space] = {}
        self._extents: dict[str, Any] = {}  # a symbol or a number for each space
        self._symbols: dict[Index, Any] = {}
        self._free: dict[tuple[Any, Space], Index] = {}
        self._bound: list[dict[Any, Index]] = []
        self._taken: set[str] = set()
        self._reserved: frozenset[str] = frozenset()

    @property
    def spaces(self) -> tuple[Space, ...]:
        """All spaces, in the order of their use."""
        return tuple(self._spaces.values())

    @property
    def written(self) -> dict[str, str]:
        """The form of each space's symbol in the source."""
        return {
            name: extent.name
            for name, extent in self._extents.items()
            if isinstance(extent, sympy.Symbol) and identifier_of(extent.name) == name
        }

    def begin(self, symbols: Iterable[Any]) -> None:
        """Begin an equation whose symbols that no Sum binds are given; these keep their names."""
        self._free, self._symbols, self._taken = {}, {}, set()
        self._reserved = frozenset(map(_name, symbols))

    def bind(self, limits: Any) -> dict[Any, Index]:
        """The summed indices of a Sum, which have names of their own, until :meth:`release`."""
        names: dict[Any, Index] = {}
        for limit in limits:
            symbol = limit[0]
            if len(limit) == 3:
                space = self._range(limit[1], limit[2], symbol)
                if isinstance(symbol, sympy.Idx) and symbol.upper is not None:
                    own = self._range(symbol.lower, symbol.upper, symbol)
                    if own != space:
                        raise wrong(
                            f"the range of {symbol} is {own.name} in Idx and {space.name} in Sum",
                            "sum over the whole range, or use another index",
                        )
            elif len(limit) == 1:
                space = self.index(symbol, None, None).space
            else:
                raise wrong(f"the sum over {symbol} has no lower bound", f"write ({symbol}, 0, ..)")
            taken = self._taken | self._reserved
            names[symbol] = fresh_index(Index(_name(symbol), space), taken)
            self._taken.add(names[symbol].name)
        self._bound.append(names)
        return names

    def release(self) -> None:
        """End of the Sum that was bound last."""
        self._bound.pop()

    def of_axes(self, indexed: Any) -> tuple[Index, ...]:
        """The indices of an Indexed, whose ranges must be those of its shape."""
        if indexed.base.offset != 0:
            raise wrong(
                f"the elements of {indexed.base} begin at the offset {indexed.base.offset}",
                "write an IndexedBase without offset, and pass the part of the array from there",
            )
        shape = indexed.base.shape
        if shape is not None and len(shape) != len(indexed.indices):
            count = len(indexed.indices)
            raise wrong(
                f"{indexed} has {count} indices, but its base has shape {shape}",
                "change one of them",
            )
        indices = []
        for axis, symbol in enumerate(indexed.indices):
            extent = None if shape is None else shape[axis]
            index = self.index(symbol, indexed, extent)
            if extent is not None:
                known = self._extents.setdefault(index.space.name, extent)
                if known != extent:
                    advice = (
                        two_names(known, extent)
                        if str(known) == str(extent)
                        else "an index runs over whole axes: change one of them, or pass the part "
                        "of the array as an input of its own"
                    )
                    raise wrong(
                        f"axis {axis} of {indexed} has {extent} elements by its shape, and the "
                        f"range of {symbol} has {known}",
                        advice,
                    )
            indices.append(index)
        return tuple(indices)

    def index(self, symbol: Any, where: Any, extent: Any) -> Index:
        """The index of a symbol; ``extent`` is that of its axis, or None if it is unknown."""
        for names in reversed(self._bound):
            bound: Index | None = names.get(symbol)
            if bound is not None:
                return bound
        name = _name(symbol)
        given = self._letters.get(symbol.name)
        known = {space for other, space in self._free if other == symbol}
        if isinstance(symbol, sympy.Idx) and symbol.upper is not None:
            space = self._range(symbol.lower, symbol.upper, symbol)
        elif given is not None:
            space = self._spaces.setdefault(given, Space(given))
        elif extent is not None:
            space = self._space(extent, symbol)
        elif len(known) == 1:
            (space,) = known
        else:
            raise wrong(f"index {symbol}{f' of {where}' if where else ''} has no range", _RANGES)
        if (symbol, space) not in self._free:
            index = Index(name, space)
            if name in self._taken:
                index = fresh_index(index, self._taken | self._reserved)
            self._taken.add(index.name)
            self._free[symbol, space] = index
            self._symbols[index] = symbol
        return self._free[symbol, space]

    def value_in_range(self, pieces: Any) -> Any:
        """The value of a Piecewise whose condition is that an index is in its own range.

        ``doit()`` makes it of the derivative of a sum. Other conditions are refused.
        """
        value, condition = pieces.args[0]
        if not all(map(self._always, sympy.And.make_args(condition))):
            raise wrong(
                f"{pieces!s:.80} has a condition that is not the range of an index",
                "leave out .doit(), or give the index its range",
            )
        return value

    def _always(self, condition: Any) -> bool:
        """True for ``j >= 0`` and ``j <= n - 1``, in any form, if j has the range n."""
        match condition:
            case sympy.GreaterThan() | sympy.LessThan():
                least = condition.gts - condition.lts
            case sympy.StrictGreaterThan() | sympy.StrictLessThan():
                least = condition.gts - condition.lts - 1
            case _:
                return bool(condition == sympy.true)
        for symbol in condition.free_symbols & {s for s, _ in self._free}:
            space = self.index(symbol, condition, None).space
            if least in (symbol, self._extents.get(space.name, sympy.nan) - 1 - symbol):
                return True
        return False

    def twin(self, index: Index) -> str:
        """Advice if another symbol of the equation has the name of an index; else nothing."""
        symbol = self._symbols.get(index)
        others = [s for s, _ in self._free if symbol is not None and s != symbol]
        return next((two_names(s, symbol) for s in others if _name(s) == _name(symbol)), "")

    def check_term(self, indices: Iterable[Index]) -> None:
        """Refuse a symbol that has two ranges in one product."""
        first: dict[Any, Index] = {}
        for index in indices:
            symbol = self._symbols.get(index)
            other = first.setdefault(symbol, index) if symbol is not None else index
            if other != index:
                spaces = f"{other.space.name} and {index.space.name}"
                raise wrong(
                    f"index {symbol} has the ranges {spaces} in one product",
                    "use another index, or arrays of equal shapes",
                )

    def _range(self, lower: Any, upper: Any, symbol: Any) -> Space:
        if lower != 0:
            raise wrong(
                f"the range of {symbol} begins at {lower}",
                f"write ({symbol}, 0, n - 1): the elements of an axis are numbered from 0, and an "
                "index runs over all of them",
            )
        return self._space(upper + 1, symbol)

    def _space(self, extent: Any, symbol: Any) -> Space:
        if extent in self.indices:
            raise wrong(
                f"the range of {symbol} depends on the index {extent}",
                "sum over whole axes, and multiply by an input that is 0 outside the range",
            )
        if isinstance(extent, sympy.Symbol):
            return self._named(identifier_of(extent.name), extent, None)
        if isinstance(extent, sympy.Integer) and 0 < extent < 2**63:
            name = f"n{extent}"
            while self._extents.get(name, extent) != extent:
                name += "_"
            return self._named(name, extent, int(extent))
        shown = f"{extent!s:.40}"
        raise wrong(
            f"the range of {symbol} has {shown} elements: neither a symbol nor a number", _SYMBOL
        )

    def _named(self, name: str, extent: Any, number: int | None) -> Space:
        known = self._extents.setdefault(name, extent)
        if known != extent:
            raise wrong(f"two different ranges have the name {name}", two_names(known, extent))
        return self._spaces.setdefault(name, Space(name, number))


def two_names(one: Any, other: Any) -> str:
    """Advice for two objects of one name: how they differ, if by assumptions alone.

    Example:
        >>> two_names(sympy.Symbol("n"), sympy.Symbol("n", integer=True))
        "one is Symbol('n'), the other Symbol('n', integer=True): write one of them everywhere"
    """
    if str(one) != str(other):
        return "give them two names"
    shown = sorted(map(sympy.srepr, (one, other)), key=len)
    return f"one is {shown[0]}, the other {shown[1]}: write one of them everywhere"


def range_symbols(expression: Any) -> frozenset[Any]:
    """Symbols that say how many elements an index of the expression has."""
    ranges = [limit[1:] for total in expression.atoms(sympy.Sum) for limit in total.limits]
    ranges += [(i.lower, i.upper) for i in expression.atoms(sympy.Idx) if i.upper is not None]
    ranges += [b.shape for b in expression.atoms(sympy.IndexedBase) if b.shape is not None]
    return frozenset(s for bounds in ranges for bound in bounds for s in bound.free_symbols)


def index_symbols(expression: Any) -> frozenset[Any]:
    """Symbols that are indices in the expression."""
    found = {limit[0] for total in expression.atoms(sympy.Sum) for limit in total.limits}
    found |= {i for element in expression.atoms(sympy.Indexed) for i in element.indices}
    found |= {i for delta in expression.atoms(sympy.KroneckerDelta) for i in delta.args[:2]}
    return frozenset(found)


def _name(symbol: Any) -> str:
    if isinstance(symbol, sympy.Idx):
        symbol = symbol.label
    if not isinstance(symbol, sympy.Symbol):
        raise wrong(
            f"{symbol!s:.40} is not an index",
            "an index is a symbol: pass a shifted or fixed part of an array as an input of its own",
        )
    return identifier_of(symbol.name)


def _space_of_letter(given: Mapping[str, str]) -> dict[str, str]:
    texts = isinstance(given, Mapping) and all(
        isinstance(text, str) for pair in given.items() for text in pair
    )
    if not texts:
        raise ArgumentError('spaces must be a dict such as {"o": "i j", "v": "a b"}')
    for name in given:
        if not is_name(name):
            raise not_a_name(name)
    return {letter: name for name, text in given.items() for letter in text.split()}


def identifier_of(name: str) -> str:
    r"""The identifier for a name as mathematicians write it.

    A SpecError refuses other characters, and names without a letter at the start.

    Example:
        >>> [identifier_of(x) for x in ("N_{occ}", r"\xi", "x'", "t^{(1)}", "\u03b7\u2081", "x1")]
        ['N_occ', 'xi', 'x_prime', 't_1', 'eta1', 'x1']
    """
    made = "".join(map(_character, unicodedata.normalize("NFKC", name))) if name else ""
    made = re.sub("__+", "_", made).strip("_")
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", made) or len(made) > _LONGEST:
        raise not_a_name(name)
    return made


def not_a_name(name: object) -> SpecError:
    """The error of what cannot be the name of a tensor, an index or a range."""
    message = f"{name!r:.80} cannot be a name"
    return refuse("<sympy>", 1, "", message, "use letters, digits and _, for example N_occ")


def _character(character: str) -> str:
    """A part of an identifier; any other character is left, and refused later."""
    if character.isascii() and character.isalnum():
        return character
    if character in _PLAIN:
        return "_"
    greek = _GREEK.fullmatch(unicodedata.name(character, ""))
    if greek:
        word = greek[1].lower()
        return word if character.islower() else word.capitalize()
    return _WORDS.get(character, character)


def exact_number(number: Any) -> Fraction:
    """The value of a Rational, or of a Float: its decimal, or the fraction that it rounds.

    A NumberSymbol, such as pi or E, is its Float. A SpecError refuses what no program can hold.

    Example:
        >>> [str(exact_number(sympy.Float(x))) for x in (0.1, 1 / 3, "0.100000000000000000000001")]
        ['1/10', '1/3', '100000000000000000000001/1000000000000000000000000']
    """
    if isinstance(number, sympy.NumberSymbol):
        number = sympy.Float(number)
    try:
        if isinstance(number, sympy.Float):
            is_plain = number._prec == _FLOAT_BITS
            value = exact(float(number)) if is_plain else literal(str(number))
            if number and not value:
                raise ValueError("it is outside the range of floating-point numbers")
        else:
            value = Fraction(int(number.p), int(number.q))
        reason = rejection_reason(value)
    except (ValueError, OverflowError) as error:
        reason, value = str(error), Fraction(0)
    if reason:
        raise wrong(f"a number of the expression is not usable: {reason}", OUTSIDE)
    return value


def check_term_count(expression: Any, *, powers: bool) -> None:
    """Raise a SpecError for an expression that expands to too many products.

    With ``powers`` all powers of sums are expanded, otherwise only those that hold a Sum.
    """
    if _count(expression, powers) > _MOST_TERMS:
        raise wrong(
            f"the expression expands to more than {_MOST_TERMS:,} terms",
            "give brackets names, in equations of their own",
        )


def _count(expression: Any, powers: bool) -> int:
    """Terms after expansion; an estimate if there are too many."""
    if isinstance(expression, sympy.Add):
        return sum(_count(part, powers) for part in expression.args)
    if isinstance(expression, sympy.Mul):
        count = 1
        for part in expression.args:
            count = min(count * _count(part, powers), _MOST_TERMS + 1)
        return count
    if isinstance(expression, sympy.Sum):
        return _count(expression.function, powers)
    if isinstance(expression, sympy.Piecewise):
        return _count(expression.args[0][0], powers)
    if isinstance(expression, sympy.Pow) and (powers or expression.base.has(sympy.Sum)):
        exponent, base = expression.exp, _count(expression.base, powers)
        if exponent.is_Integer and exponent > 0 and base > 1:
            return int(base ** min(int(exponent), 14))
    return 1
