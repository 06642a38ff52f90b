"""The names of a spec: spaces, indices and tensors, with messages for those that are missing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from ...errors import Span
from ...ir.expr import FUNCTIONS
from ...ir.tensor import Index, Role, Space, Tensor
from ...options import KEYWORDS
from ..blocks import Family, family_of
from ..exact_numbers import literal
from ..source import Problems
from .attributes import Declared, declare
from .syntax import Declaration, EquationLine, IndexLine, Line, SpaceLine, Word

KINDS = ("occupied", "virtual", "auxiliary", "general", "quadrature", "atomic")
RESERVED = (*FUNCTIONS, "delta")
# Letters of a name for which a similar one is sought.
_LONGEST_MISTAKE = 40
# Comparisons of unknown names with known ones in one spec, which take a second.
_COMPARISONS = 100_000


class Names:
    """All names of a spec, built from its lines; inputs and outputs are in declared order.

    ``families`` has the tensors that are given by blocks. They are also in ``tensors``, but in
    ``inputs`` their blocks take their place.
    """

    def __init__(self, lines: Sequence[Line], problems: Problems) -> None:
        self._problems = problems
        self._spaces: dict[str, Space] = {}
        self._indices: dict[str, Index] = {}
        self._places: dict[str, Span] = {}
        self._reported: set[str] = set()
        self._comparisons = _COMPARISONS
        self.tensors: dict[str, Tensor] = {}
        self.inputs: list[Tensor] = []
        self._input_names: set[str] = set()
        self.outputs: list[Tensor] = []
        self.families: dict[str, Family] = {}
        self._declare_spaces([line for line in lines if isinstance(line, SpaceLine)])
        self._declare_indices([line for line in lines if isinstance(line, IndexLine)])
        declarations = [line for line in lines if isinstance(line, Declaration)]
        equations = [line for line in lines if isinstance(line, EquationLine)]
        self._declare_tensors(declarations, equations)
        self._define(equations, {d.name.text for d in declarations})

    @property
    def spaces(self) -> tuple[Space, ...]:
        """All spaces, parts before the spaces that join them."""
        return tuple(self._spaces.values())

    def index(self, word: Word) -> Index | None:
        """The index of a word; None, with a problem, if it is unknown."""
        name = word.text
        if name in self._indices:
            return self._indices[name]
        numbered = re.fullmatch(r"([A-Za-z])[0-9]+", name)
        if name in self._spaces:
            self._unknown(
                word, f"{name} is a space, not an index", f"declare one: index .. : {name}"
            )
        elif numbered and numbered[1] in self._indices:
            return Index(name, self._indices[numbered[1]].space)
        else:
            advice = self._nearest(name, self._indices, f"declare it: index {name} : SPACE")
            if len(name) > 1 and all(letter in self._indices for letter in name):
                advice = f"separate indices by commas: {','.join(name)}"
            self._unknown(word, f"index {name} is not declared", advice)
        return None

    def is_index(self, name: str) -> bool:
        """True if ``name`` is a declared index or a declared letter followed by digits."""
        numbered = re.fullmatch(r"([A-Za-z])[0-9]+", name)
        if name in self._indices:
            return True
        return numbered is not None and numbered[1] in self._indices and name not in self._spaces

    def tensor(self, name: str, span: Span) -> Tensor | None:
        """The tensor of a name; None, with a problem, if it is unknown."""
        tensor = self.tensors.get(name)
        if tensor is None:
            advice = self._nearest(
                name, self.tensors, f"declare it as an input or write {name} = .."
            )
            self._unknown(Word(name, span), f"{name} is neither declared nor defined", advice)
        return tensor

    def place(self, name: str) -> Span | None:
        """Where a tensor, or the tensor of which it is a block, is declared."""
        return self._places.get(name)

    def joined(self, left: Space, right: Space) -> bool:
        """True if one space of this spec contains both."""
        needed = set(left.bases) | set(right.bases)
        return any(needed <= set(space.bases) for space in self._spaces.values())

    def _declare_spaces(self, lines: list[SpaceLine]) -> None:
        seen: dict[str, SpaceLine] = {}
        for line in lines:
            name = line.name.text
            if line.kind is not None and line.kind.text not in KINDS:
                self._problems.add(
                    line.kind.span,
                    f"{line.kind.text} is not a kind of space",
                    f"kinds: {' '.join(KINDS)}",
                )
            if name in seen:
                if _space_meaning(seen[name]) != _space_meaning(line):
                    self._twice("space", line.name, seen[name].name)
                continue
            seen[name] = line
        for line in seen.values():
            self._space(line.name, seen, ())

    def _space(
        self, word: Word, lines: dict[str, SpaceLine], above: tuple[str, ...]
    ) -> Space | None:
        """The space of a name, made with its parts first."""
        if word.text in self._spaces:
            return self._spaces[word.text]
        line = lines.get(word.text)
        if line is None:
            advice = self._nearest(word.text, lines, f"declare it: space {word.text}")
            self._unknown(word, f"space {word.text} is not declared", advice)
            return None
        if word.text in above:
            self._problems.add(
                word.span, f"space {word.text} is a part of itself", "remove the part"
            )
            return None
        parts = tuple(self._space(p, lines, (*above, word.text)) for p in line.parts)
        if None in parts:
            self._problems.doubtful.add(word.text)
            return None
        kind = line.kind.text if line.kind else None
        known = tuple(p for p in parts if p is not None)
        graded, strict = line.graded is not None, line.strict is not None
        space = Space(word.text, self._extent(line), known, kind, graded, strict)
        message = advice = ""
        if len(known) == 1:
            message, advice = f"{word.text} joins one space only", "write p = o + v"
        elif known and len(set(space.bases)) != len(space.bases):
            message = f"{word.text} contains a space twice"
            advice = "name each base space once"
        elif known and line.graded is not None:
            message = f"{word.text} joins spaces, whose orbitals have irreps of their own"
            advice = f"declare its parts graded: {', '.join(s.name for s in space.bases)}"
        if message:
            self._problems.add(line.name.span, message, advice)
            self._problems.doubtful.add(word.text)
            return None
        return self._spaces.setdefault(word.text, space)

    def _extent(self, line: SpaceLine) -> int | None:
        if line.extent is None:
            return None
        try:
            value = literal(line.extent.text)
        except ValueError:
            value = Fraction(0)
        if value.denominator != 1 or not 1 <= value < 2**63:
            message = f"the extent {line.extent.text:.20} is not an integer of 1 to 2^63 - 1"
            self._problems.add(line.extent.span, message, f"write space {line.name.text} = 10")
            return None
        return int(value)

    def _declare_indices(self, lines: list[IndexLine]) -> None:
        places: dict[str, Word] = {}
        for line in lines:
            space = self._known_space(line.space)
            for word in line.names:
                if word.text in self._spaces:
                    message = f"{word.text} is a space and cannot also be an index"
                    self._problems.add(
                        word.span, message, "use different names for spaces and indices"
                    )
                elif space is None:
                    self._problems.doubtful.add(word.text)
                elif word.text in places and self._indices[word.text].space != space:
                    self._twice("index", word, places[word.text])
                else:
                    places.setdefault(word.text, word)
                    self._indices[word.text] = Index(word.text, space)

    def _known_space(self, word: Word) -> Space | None:
        space = self._spaces.get(word.text)
        if space is None:
            advice = self._nearest(word.text, self._spaces, f"declare it: space {word.text}")
            self._unknown(word, f"space {word.text} is not declared", advice)
        return space

    def _declare_tensors(
        self, declarations: list[Declaration], equations: list[EquationLine]
    ) -> None:
        first = {line.name.text: line for line in reversed(equations)}
        seen: dict[str, tuple[Declaration, Declared | None]] = {}
        for line in declarations:
            name = line.name.text
            if name in RESERVED:
                self._reserved(line.name)
                continue
            declared = self._declared(line, first.get(name))
            if name in seen:
                earlier, before = seen[name]
                if line.output != earlier.output:
                    self._both(line.name)
                elif declared and before and not _same(declared, before, line, earlier):
                    self._twice("output" if line.output else "input", line.name, earlier.name)
                continue
            seen[name] = (line, declared)
            if declared is None:
                self._problems.doubtful.add(name)
                continue
            self._enter(line, declared)

    def _declared(self, line: Declaration, equation: EquationLine | None) -> Declared | None:
        if line.axes is not None or not line.output:
            axes = self._axes(line.axes or ())
            letters = tuple(a.text for a in line.axes or () if a.text not in self._spaces)
        elif equation is None:
            message = f"output {line.name.text} is never defined"
            self._unknown(line.name, message, f"write an equation: {line.name.text} = ..")
            return None
        else:
            indices = [self.index(word) for word in equation.indices]
            axes = tuple(i.space for i in indices if i) if None not in indices else None
            letters = tuple(word.text for word in equation.indices)
        if line.output and line.axes is not None and equation is None:
            message = f"output {line.name.text} is never defined"
            self._unknown(line.name, message, f"write an equation: {line.name.text} = ..")
            return None
        return None if axes is None else declare(line, axes, letters, self._problems)

    def _axes(self, words: tuple[Word, ...]) -> tuple[Space, ...] | None:
        if any(word.text in self._spaces for word in words):
            for word in words:
                if word.text not in self._spaces and self.is_index(word.text):
                    message = f"{word.text} is an index, other axes are spaces"
                    self._problems.add(
                        word.span, message, "write all axes as spaces or all as indices"
                    )
                    return None
            spaces = [self._known_space(word) for word in words]
            return tuple(s for s in spaces if s) if None not in spaces else None
        seen: set[str] = set()
        for word in words:
            if word.text in seen:
                message = f"axis {word.text} is named twice"
                self._problems.add(word.span, message, "use different letters, or spaces")
                return None
            seen.add(word.text)
        for word in words:
            if not self.is_index(word.text):
                message = f"{word.text} is neither a space nor an index"
                self._unknown(word, message, f"declare it: space {word.text}")
        indices = [self.index(word) if self.is_index(word.text) else None for word in words]
        return tuple(i.space for i in indices if i) if None not in indices else None

    def _enter(self, line: Declaration, declared: Declared) -> None:
        tensor = declared.tensor
        self.tensors[tensor.name] = tensor
        self._places[tensor.name] = line.name.span
        if line.output:
            self.outputs.append(tensor)
        elif declared.blocks:
            family = block_family(declared, line.name.span, self._problems)
            self.families[tensor.name] = family
            for member in family.members:
                if member.name in self._places:
                    message = f"block {member.name} of {tensor.name} is also declared elsewhere"
                    self._problems.add(line.name.span, message, "rename one of them")
                self._places[member.name] = line.name.span
                self.inputs.append(member)
                self._input_names.add(member.name)
        elif tensor.name in self._input_names:
            message = f"{tensor.name} is already a block of another input"
            self._problems.add(line.name.span, message, "rename one of them")
        else:
            self.inputs.append(tensor)
            self._input_names.add(tensor.name)
            if tensor.name in KEYWORDS:
                name, use = tensor.name, KEYWORDS[tensor.name]
                message = f"an input named {name} cannot be passed: {name}= {use}"
                self._problems.add(line.name.span, message, "rename the input")

    def _define(self, equations: list[EquationLine], declared: set[str]) -> None:
        """Enter intermediates: names on the left without a declaration."""
        for line in equations:
            name = line.name.text
            if name in RESERVED:
                self._reserved(line.name)
            elif name in self._input_names and name not in self.tensors:
                self._problems.add(
                    line.name.span, f"input {name} is on the left side of an equation", "rename it"
                )
                self._problems.doubtful.add(name)
            elif name not in self.tensors and name not in declared:
                indices = [self.index(word) for word in line.indices]
                if None in indices:
                    self._problems.doubtful.add(name)
                else:
                    spaces = tuple(i.space for i in indices if i)
                    self.tensors[name] = Tensor(name, spaces, Role.TEMP)

    def _reserved(self, word: Word) -> None:
        advice = f"reserved: {' '.join(RESERVED)}"
        self._problems.add(word.span, f"the name {word.text} is reserved", advice)
        self._problems.doubtful.add(word.text)

    def _both(self, word: Word) -> None:
        name = f"{word.text}_new"
        message = f"{word.text} is an input and an output"
        advice = (
            f"a program does not change its inputs: give the result another name, such as {name}"
        )
        self._problems.add(word.span, message, advice)

    def _twice(self, what: str, second: Word, first: Word) -> None:
        for word, other in ((first, second), (second, first)):
            where = f"{other.span.file}:{other.span.line}"
            message = f"{what} {word.text} is declared differently at {where}"
            self._problems.add(word.span, message, "remove one of them, or make them equal")

    def _unknown(self, word: Word, message: str, advice: str) -> None:
        """Report a missing name once, and never if its declaration has an error of its own."""
        if word.text not in self._problems.doubtful and message not in self._reported:
            self._problems.add(word.span, message, advice)
            self._reported.add(message)

    def _nearest(self, name: str, known: Iterable[str], otherwise: str) -> str:
        """The advice to write a known name that is similar, as long as few names are unknown."""
        names = [other for other in known if len(other) <= _LONGEST_MISTAKE]
        if not 1 < len(name) <= _LONGEST_MISTAKE or len(names) > self._comparisons:
            return otherwise
        self._comparisons -= len(names)
        close = difflib.get_close_matches(name, names, 1, 0.6)
        return f"did you mean {close[0]}?" if close else otherwise


def _space_meaning(line: SpaceLine) -> tuple[object, ...]:
    return (
        line.graded is not None,
        line.strict is not None,
        line.kind.text if line.kind else None,
        line.extent.text if line.extent else None,
        tuple(p.text for p in line.parts),
    )


def _same(new: Declared, old: Declared, line: Declaration, earlier: Declaration) -> bool:
    blocks = [[w.text for w in d.blocks] for d in (new, old)]
    others = new.others_zero == old.others_zero
    return (
        new.tensor == old.tensor
        and blocks[0] == blocks[1]
        and others
        and line.output == earlier.output
    )


def block_family(declared: Declared, span: Span, problems: Problems) -> Family:
    """The family that ``blocks oooo ooov ..`` declares, whose names consist of names of spaces."""
    tensor = declared.tensor
    if all(not space.parts for space in tensor.spaces):
        advice = "declare a joined space, such as p = o + v, for its axes"
        problems.add(span, f"{tensor.name} has no axis on a joined space", advice)
    blocks: list[tuple[Space, ...]] = []
    for word in declared.blocks:
        readings = _readings(word.text, tensor.spaces)
        if len(readings) != 1:
            parts = " ".join("|".join(b.name for b in s.bases) for s in tensor.spaces)
            what = "is not a block" if not readings else "is an ambiguous name for a block"
            message = f"{word.text} {what} of {tensor.name}"
            problems.add(word.span, message, f"name one space for each axis: {parts}")
        elif readings[0] in blocks:
            problems.add(word.span, f"block {word.text} is named twice", "name each block once")
        else:
            blocks.append(readings[0])
    return family_of(tensor, tuple(blocks), others_zero=declared.others_zero)


def _readings(text: str, spaces: tuple[Space, ...]) -> list[tuple[Space, ...]]:
    """All readings of ``text`` as a base space for each axis."""
    if not spaces:
        return [()] if not text else []
    return [
        (base, *rest)
        for base in spaces[0].bases
        if text.startswith(base.name)
        for rest in _readings(text[len(base.name) :], spaces[1:])
    ]
