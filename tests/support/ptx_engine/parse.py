"""PTX text to functions of instructions, with the lines on which they stand.

Reads what NVRTC and nvcc write: kernels, device functions, arrays of all state spaces, nested
blocks with registers of their own. It gives no meaning to instructions; ``translate.py`` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
_HEAD = re.compile(r"(?:\.(?:visible|weak|extern)\s+)*\.(entry|func)\b")
_NAMED = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.\w(\d+)[^,()]*?\s(\w+)(?:\[(\d+)\])?\s*(?=[,)]|$)"
)
_ARRAY = re.compile(
    r"\.(?P<space>shared|global|const|local|param)\s+(?:\.align\s+(?P<align>\d+)\s+)?"
    r"\.\w(?P<bits>\d+)\s+(?P<name>[\w$]+)(?P<array>\[(?P<count>\d*)\])?\s*(?:=\s*(?P<values>.*))?$",
    re.DOTALL,
)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)$", re.DOTALL)
_LABEL = re.compile(r"\s*(\$?[\w$]+)\s*$")


class PtxError(Exception):
    """The text has something that the engine does not know; the message has the line."""


@dataclass(frozen=True, slots=True)
class Array:
    """A variable of a state space.

    Attributes:
        space: ``"shared"``, ``"global"``, ``"const"``, ``"local"`` or ``"param"``.
        bytes: of all of it; None for shared memory that the launch allots.
        item: bytes of one element.
        values: the initial elements, empty without any.
    """

    space: str
    name: str
    align: int
    bytes: int | None
    item: int
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registers:
    """Registers of one type: ``first`` is ``%r1``, or the name of a single one."""

    type: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Label:
    name: str


@dataclass(frozen=True, slots=True)
class Brace:
    """Begin or end of a block within a function."""

    opens: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """``@!%p1 ld.global.nc.f64 %fd1, [%rd1+8]`` on a line.

    Attributes:
        guard: ``"%p1"``, ``"!%p1"`` or empty.
        parts: of the name, between its points.
        operands: between commas, braces and brackets kept.
    """

    line: int
    guard: str
    parts: tuple[str, ...]
    operands: tuple[str, ...]

    def __str__(self) -> str:
        return f"line {self.line}: {'.'.join(self.parts)} {', '.join(self.operands)}"


Item = Array | Registers | Label | Brace | Instruction


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel or a device function.

    Attributes:
        results, parameters: names and bytes.
        threads: the most of a block, 0 where nothing is promised.
    """

    name: str
    kernel: bool
    results: tuple[tuple[str, int], ...]
    parameters: tuple[tuple[str, int], ...]
    threads: int
    body: tuple[Item, ...]

    def names(self) -> set[str]:
        """What the operands of its instructions name: registers, arrays, functions."""
        return {
            name
            for item in self.body
            if isinstance(item, Instruction)
            for operand in item.operands
            for name in re.findall(r"[%\w$]+", operand)
        }


@dataclass(frozen=True, slots=True)
class Text:
    """A whole text."""

    arrays: tuple[Array, ...]
    functions: tuple[Function, ...]

    def function(self, name: str) -> Function:
        """The function of that name.

        Raises:
            KeyError: there is none.
        """
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)

    def needs(self, kernel: str) -> tuple[tuple[Function, ...], tuple[Array, ...]]:
        """A kernel behind all functions that it calls, and the arrays that any of them names."""
        order: list[Function] = []
        names: set[str] = set()

        def visit(function: Function) -> None:
            if function in order:
                return
            named = function.names()
            names.update(named)
            for other in self.functions:
                if other.name in named and not other.kernel:
                    visit(other)
            order.append(function)

        visit(self.function(kernel))
        return tuple(order), tuple(a for a in self.arrays if a.name in names)


def parse(text: str) -> Text:
    """Functions and arrays of a PTX text.

    Raises:
        PtxError: a statement is not understood.
    """
    arrays: list[Array] = []
    functions: list[Function] = []
    pieces = _pieces(text)
    for line, kind, piece in pieces:
        if kind == "open" and _HEAD.match(piece):
            functions.append(_function(line, piece, pieces))
        elif kind == "statement" and (array := _array(piece)):
            arrays.append(array)
    return Text(tuple(arrays), tuple(functions))


def _pieces(text: str) -> Iterator[tuple[int, str, str]]:
    """Statements, labels and braces: line, kind, text. An opening brace has what is before it."""
    text = re.sub(
        r"//[^\n]*|^[ \t]*\.(loc|file|version|target|address_size)\b[^\n]*", "", text, flags=re.M
    )
    line, begun, depth, piece = 1, 1, 0, ""
    for character in text:
        if character == "\n":
            line += 1
        if not piece.strip():
            piece, begun = "", line
        head = not piece or _HEAD.match(piece)
        if character == ";" and not depth:
            yield begun, "statement", piece.strip()
            piece = ""
        elif character == "{" and head:
            yield begun, "open", piece.strip()
            piece = ""
        elif character == "}" and not piece:
            yield begun, "close", ""
        elif character == ":" and _LABEL.match(piece):
            yield begun, "label", piece.strip()
            piece = ""
        else:
            depth += {"{": 1, "}": -1}.get(character, 0)
            piece += character


def _function(line: int, head: str, pieces: Iterator[tuple[int, str, str]]) -> Function:
    kernel = _HEAD.match(head)
    found = re.search(r"\.(?:entry|func)\s*(?:\(([^()]*)\))?\s*([\w$]+)\s*(?:\(([^()]*)\))?", head)
    if not kernel or not found:
        raise PtxError(f"line {line}: {head}")
    bounds = re.search(r"\.maxntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", head)
    threads = 0
    if bounds:
        threads = int(bounds[1]) * int(bounds[2] or 1) * int(bounds[3] or 1)
    body: list[Item] = []
    depth = 1
    for at, kind, piece in pieces:
        if kind == "open":
            depth += 1
            body.append(Brace(True))
        elif kind == "close":
            depth -= 1
            if depth == 0:
                break
            body.append(Brace(False))
        elif kind == "label":
            body.append(Label(piece))
        elif not piece.startswith(".pragma"):
            body.append(_item(at, piece))
    return Function(
        found[2], kernel[1] == "entry", _named(found[1]), _named(found[3]), threads, tuple(body)
    )


def _named(text: str | None) -> tuple[tuple[str, int], ...]:
    return tuple(
        (name, BYTES[bits] * int(count or 1)) for bits, name, count in _NAMED.findall(text or "")
    )


def _array(piece: str) -> Array | None:
    piece = re.sub(r"^(\.(visible|weak|extern)\s+)+", "", piece)
    match = _ARRAY.match(piece)
    if not match:
        return None
    item = BYTES[match["bits"]]
    count = match["count"]
    bytes_ = item if not match["array"] else item * int(count) if count else None
    values = tuple(x.strip() for x in (match["values"] or "").strip(" {}").split(",") if x.strip())
    return Array(match["space"], match["name"], int(match["align"] or item), bytes_, item, values)


def _item(line: int, piece: str) -> Item:
    if array := _array(piece):
        return array
    if match := _REGISTERS.match(piece):
        names: list[str] = []
        for name in match[2].split(","):
            ranged = re.match(r"\s*(%[\w$]+)<(\d+)>", name)
            names += (
                [f"{ranged[1]}{n}" for n in range(int(ranged[2]))] if ranged else [name.strip()]
            )
        return Registers(match[1], tuple(names))
    match = re.match(r"(?:@(!?%?[\w$]+)\s+)?([a-z]\w*(?:[.:]+\w+)*)\s*(.*)$", piece, re.DOTALL)
    if not match:
        raise PtxError(f"line {line}: {piece}")
    return Instruction(line, match[1] or "", tuple(match[2].split(".")), _operands(match[3]))


def _operands(text: str) -> tuple[str, ...]:
    """Between the commas that stand in no braces, brackets or parentheses."""
    found, depth, current = list[str](), 0, ""
    for character in text:
        depth += {"{": 1, "[": 1, "(": 1, "}": -1, "]": -1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            found.append(current.strip())
            current = ""
        else:
            current += character
    if current.strip():
        found.append(current.strip())
    return tuple(found)
