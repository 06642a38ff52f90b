"""The .spec language: text to System. The rules are in ``spec.lark`` and in the manual.

text -> statements -> syntax trees -> names -> products -> flat terms -> System
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...errors import ArgumentError, Span, SpecError, TcgenError
from ...ir.conservation import conservation
from ...ir.reduction import Reduction
from ...ir.system import Equation, System, Term
from ...ir.tensor import Index, Ref, Tensor
from ...ir.term_rewriting import rename_left, resolve_deltas
from ..assemble import assemble, find_cycles
from ..blocks import resolve_blocks
from ..source import (
    TOO_DEEP,
    Problems,
    Statement,
    read_text,
    refuse_deep_nesting,
    split_statements,
)
from .expand import Expander, mentioned
from .names import Names
from .parser import parse_include, parse_statement
from .products import ProductReader
from .syntax import EquationLine, Line
from .writer import spec_text


def read_spec(text: str, filename: str = "<spec>", *, folder: str | Path | None = None) -> System:
    """The system of equations that a spec describes.

    Args:
        text: text of the spec.
        filename: name for messages; its stem names the system.
        folder: folder of files to ``include``; None refuses includes.

    Raises:
        ArgumentError: ``text`` is not a string.
        SpecError: with all errors of the text, in order of appearance.

    Example:
        >>> print(read_spec('''space o
        ... index i j : o
        ... input x[o,o]
        ... output s
        ... s = x[i,j]*x[j,i]''').pretty(), end="")
        s = sum(i,j) x[i,j]*x[j,i]
    """
    _check_types(text=(text, str), filename=(filename, str), folder=(folder, str | Path | None))
    with refuse_deep_nesting(filename):
        return _read(text, filename, None if folder is None else Path(folder))


def _check_types(**given: tuple[object, Any]) -> None:
    for keyword, (value, kind) in given.items():
        if not isinstance(value, kind):
            what = "the text of a spec" if keyword == "text" else keyword
            raise ArgumentError(f"{what} must be a str, not {type(value).__name__}")


def _real(path: Path) -> Path:
    """The path without links; a path that no file can have is left for its reader to refuse."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return path


def _read(text: str, filename: str, folder: Path | None) -> System:
    problems = Problems()
    seen = set() if folder is None else {_real(folder / Path(filename).name)}
    lines: list[Line] = []
    statements = tuple(
        _included(split_statements(text, filename, folder, problems), problems, seen)
    )
    ansatz = [s for s in statements if s.keyword == "derive"]
    derived = _derived(ansatz, problems) if ansatz else ()
    for statement in (*derived, *(s for s in statements if s not in ansatz)):
        lines += parse_statement(statement, problems)
    names = Names(lines, problems)
    reader = _Equations(names, problems)
    equations = reader.read([line for line in lines if isinstance(line, EquationLine)])
    if not names.outputs and not problems.count:
        message = "no output is declared"
        problems.add(Span(filename, 1, 1), message, "say what to compute: output NAME")
    _check_order(equations, problems)
    problems.raise_any()
    name = Path(filename).stem if filename != "<spec>" else "spec"
    system = assemble(name, names.spaces, names.inputs, names.outputs, equations)
    if any(space.graded for space in system.spaces):
        for fault in conservation(system)[1]:
            place = fault.span or names.place(fault.tensor) or Span(filename, 1, 1)
            problems.add(place, fault.message, fault.advice)
        problems.raise_any()
    return system


def read_spec_file(path: str | Path) -> System:
    """The system of a .spec file, named after the file; ``include`` looks in its folder.

    Raises:
        SpecError: with all errors of the file, in order of appearance.
        TcgenError: the file cannot be read.
    """
    path = Path(path)
    return read_spec(read_text(path), str(path), folder=path.parent)


def _included(
    statements: tuple[Statement, ...], problems: Problems, seen: set[Path]
) -> Iterator[Statement]:
    """The statements, with those of included files in place of ``include``, each file once."""
    for statement in statements:
        problems.reach(statement)
        if statement.broken:
            continue
        if statement.keyword != "include":
            yield statement
            continue
        word = parse_include(statement, problems)
        if word is None:
            continue
        if statement.folder is None:
            advice = "pass the folder, or read the spec from its file"
            problems.add(word.span, "this text has no folder to include from", advice)
            continue
        path = statement.folder / word.text
        if _real(path) in seen:
            continue
        seen.add(_real(path))
        try:
            text = read_text(path)
        except TcgenError as error:
            problems.add(word.span, str(error), "the path is relative to the including file")
            continue
        yield from _included(
            split_statements(text, str(path), path.parent, problems), problems, seen
        )


def _derived(ansatz: Sequence[Statement], problems: Problems) -> tuple[Statement, ...]:
    """The declarations and equations of an ansatz, a statement ``derive`` for each of its lines."""
    from ..derivation.wick import derive_system, sorted_terms  # noqa: PLC0415  (a circle else)

    text = "\n".join(" ".join(s.text.split()).removeprefix("derive ") for s in ansatz)
    try:
        system = sorted_terms(derive_system(text, "derived"))
    except SpecError as error:
        for found in error.diagnostics:
            statement = ansatz[found.span.line - 1]
            problems.add(statement.span(1, 1, 1), found.message, found.advice)
        problems.raise_any()
        raise
    letters = ("i j k l m n", "o"), ("a b c d e f g h", "v")
    declared = "".join(f"index {names} : {space}\n" for names, space in letters)
    own = re.sub(r"(?m)^(#|index ).*\n", "", spec_text(system, grouped=True))
    file = f"{ansatz[0].file} (derived)"
    return split_statements(own.replace("input", f"{declared}input", 1), file, None, problems)


class _Equations:
    """Reads the equations of one spec."""

    def __init__(self, names: Names, problems: Problems) -> None:
        self._names, self._problems = names, problems
        self._reader = ProductReader(names, problems)
        self._expander = Expander((*names.tensors, *(t.name for t in names.inputs)), problems)

    def read(self, lines: list[EquationLine]) -> list[Equation]:
        """All equations, those of brackets included."""
        by_name: dict[str, list[EquationLine]] = {}
        for line in lines:
            by_name.setdefault(line.name.text, []).append(line)
        found = (self._equation(name, group) for name, group in by_name.items())
        equations = [equation for equation in found if equation is not None]
        whole = _without_copies((*self._expander.anonymous, *equations))
        return [self._finish(equation) for equation in whole]

    def _equation(self, name: str, lines: list[EquationLine]) -> Equation | None:
        """The sum of all lines with ``name`` on the left, in the letters of the first line.

        If the left side has an error, the right sides are still read, to report their errors.
        """
        tensor = self._names.tensors.get(name)
        if tensor is not None and tensor.is_input:
            message = f"input {name} is on the left side of an equation"
            self._problems.add(lines[0].name.span, message, "give the result another name")
            tensor = None
        for line in lines[1:]:
            if line.assign.text == "=":
                message = f"{name} is assigned with = after its first line"
                self._problems.add(
                    line.assign.span, message, "use = in the first line only; add with += or -="
                )
        first = self._left(lines[0], tensor)
        used: set[int] = set()
        terms: list[Term] = []
        for line in lines:
            left = self._left(line, tensor)
            try:
                made, here = self._line_terms(line, left)
            except RecursionError:
                self._problems.add(
                    line.name.span, TOO_DEEP, "name parts of it in equations of their own"
                )
                continue
            used |= here
            if left is not None and first is not None:
                terms += (rename_left(term, left, first) for term in made)
        if first is None or tensor is None:
            return None
        if not self._problems.count:
            self._check_used(lines[0], first, used)
        return Equation(Ref(tensor, first), tuple(terms), lines[0].name.span)

    def _line_terms(
        self, line: EquationLine, left: tuple[Index, ...] | None
    ) -> tuple[list[Term], set[int]]:
        """Terms of one line in its own letters, and the axes whose letters it uses."""
        before = self._problems.count
        products = self._reader.read(line.body)
        if left is None or self._problems.count > before:
            return [], set()
        used = {k for k, index in enumerate(left) if index in mentioned(products)}
        sign = Fraction(-1 if line.assign.text == "-=" else 1)
        terms = self._expander.expand(products, left)
        return [replace(term, coeff=sign * term.coeff) for term in terms], used

    def _left(self, line: EquationLine, tensor: Tensor | None) -> tuple[Index, ...] | None:
        """The left indices of a line; None, with a report, unless they fit the tensor."""
        indices: list[Index] = []
        for word in line.indices:
            index = self._names.index(word)
            if index is None:
                return None
            if index in indices:
                message = f"index {index} occurs twice on the left"
                advice = "left indices are distinct: use a second letter and delta[i,j]"
                self._problems.add(word.span, message, advice)
                return None
            indices.append(index)
        if tensor is None:
            return None
        if tuple(i.space for i in indices) != tensor.spaces:
            axes = ",".join(s.name for s in tensor.spaces)
            message = f"the left side does not fit {tensor.name}[{axes}]"
            advice = "use indices of these spaces; letters may differ from line to line"
            self._problems.add(line.name.span, message, advice)
            return None
        return tuple(indices)

    def _check_used(self, line: EquationLine, left: tuple[Index, ...], used: set[int]) -> None:
        for k, index in enumerate(left):
            if k not in used:
                message = f"left index {index} occurs in no term on the right"
                self._problems.add(
                    line.indices[k].span, message, f"remove {index}, or use it in a term"
                )

    def _finish(self, equation: Equation) -> Equation:
        """The equation with deltas resolved and tensors that are given by blocks read from them."""
        terms: list[Term] = []
        for term in equation.terms:
            resolved = resolve_deltas(term)
            if resolved is not None:
                terms += resolve_blocks(
                    resolved, equation.lhs.indices, self._names.families, self._problems
                )
        return replace(equation, terms=tuple(terms))


def _without_copies(equations: tuple[Equation, ...]) -> list[Equation]:
    """The equations; a copy of the maximum, minimum or product of a bracket takes its place."""
    reduced = {
        e.lhs.tensor: e for e in equations if e.anonymous and e.reduction is not Reduction.SUM
    }
    taken: set[Tensor] = set()
    result: list[Equation] = []
    for equation in equations:
        term = equation.terms[0] if len(equation.terms) == 1 else None
        factor = term.factors[0] if term is not None and len(term.factors) == 1 else None
        source = reduced.get(factor.tensor) if isinstance(factor, Ref) else None
        plain = term is not None and term.coeff == 1 and not (term.sums or term.perms)
        whole = source is not None and set(source.lhs.indices) == set(equation.lhs.indices)
        if source is not None and plain and whole and not equation.lhs.tensor.accumulate:
            taken.add(source.lhs.tensor)
            equation = replace(equation, terms=source.terms)
        result.append(equation)
    return [e for e in result if e.lhs.tensor not in taken]


def _check_order(equations: list[Equation], problems: Problems) -> None:
    """Report names whose definitions need themselves, one cycle at a time."""
    order = {e.lhs.tensor.name: n for n, e in enumerate(equations)}
    for cycle in find_cycles(equations):
        named = [e for e in cycle if not e.anonymous]
        if not named:
            continue
        first = min(named, key=lambda e: order[e.lhs.tensor.name])
        start = named.index(first)
        names = [e.lhs.tensor.name for e in (*named[start:], *named[:start], first)]
        message = f"circular definition: {' -> '.join(names)}"
        advice = "change one of them so that it does not read the next"
        if len(named) == 1:
            message = f"{names[0]} is read inside its own definition"
            advice = "rename the old value and make it an input, or use: output NAME accumulate"
        problems.add(first.span or Span("", 1, 1), message, advice)
