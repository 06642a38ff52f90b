r"""The JSON lines that pdaggerq's pq_graph exports: one assignment or addition a line.

    {"target": {"name": "r2", "indices": ["a","b","i","j"], "classes": ["v","v","o","o"],
     "is_intermediate": false}, "is_assignment": true, "coeff": 0.25, "coeff_rational": "1/4",
     "operands": [{"name": "eri[\"vvoo\"]", "indices": [..], "classes": [..], ..}, ..]}

Lines that start with ``#`` are comments. Two fields have no effect on values: ``perm`` names the
permutation that pdaggerq has written out as several lines, and ``pairing`` is its order of
contraction; tcgen chooses its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ...ir.expr import Delta
from ...ir.system import Equation, Factor, System, Term, factor_indices
from ...ir.tensor import Index, Ref, Role, Space, Tensor, distinct
from ...ir.term_rewriting import rename_left, resolve_deltas
from ..assemble import assemble, identifier
from ..exact_numbers import exact, literal, nearest_ratio
from ..source import Kind, faults_of_keys, load_json
from .conventions import is_name, refuse

_KINDS = {"o": "occupied", "v": "virtual", "O": "occupied", "V": "virtual", "Q": "auxiliary"}
_INTEGRALS = ("eri", "f", "B", "g", "h", "dp")
_ORDER = "ovOVQ"
_ANY, _TRUTH, _LIST = Kind("any value"), Kind("true or false", (bool,)), Kind("a list", (list,))
_TEXTS = Kind("a list of texts", (list,))
# Keys without an effect may have any value.
_KEYS = {
    "line": {
        "target": Kind("an object", (dict,)),
        "is_assignment": _TRUTH,
        "coeff": Kind("a number", (int, float)),
        "coeff_rational": Kind('a text such as "1/3"', (str,)),
        "operands": Kind("a list of objects", (list,)),
        "perm": _ANY,
        "pairing": _ANY,
        "conditions": _LIST,
    },
    "tensor": {
        "name": Kind("a text", (str,)),
        "indices": _TEXTS,
        "classes": _TEXTS,
        "is_intermediate": _TRUTH,
    },
}
_CLOSE = Fraction(1, 10**9)  # relative deviation of a coefficient that rounding explains
_ONE = Fraction(1)


def read_ir(text: str, name: str, filename: str) -> System:
    """The system of JSON lines; a SpecError if one of them cannot be understood."""
    values, lines = _Values(), []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            with _place(filename, number, line):
                data = load_json(line)
                _check_keys(data)
                lines.append((number, line, data, values.line(data)))
    if not lines:
        raise refuse(filename, 1, "", "no equations", "export with to_strings('ir')")
    reader = _Reader(values)
    for number, line, data, named in lines:
        with _place(filename, number, line):
            reader.line(data, named)
    return reader.system(name)


@contextmanager
def _place(filename: str, number: int, line: str) -> Iterator[None]:
    """Reports an exception as an error of one line."""
    advice = (
        "pass lines as pq_graph.to_strings('ir') returns them, with target, is_assignment, coeff "
        "and operands"
    )
    try:
        yield
    except json.JSONDecodeError as error:
        raise refuse(
            filename, number, line, f"not valid JSON: {error.msg}", "write one object per line"
        ) from None
    except KeyError as error:
        raise refuse(filename, number, line, f"{error} is missing", advice) from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise refuse(filename, number, line, str(error), advice) from None


def _check_keys(data: Any) -> None:
    """Refuse a line with an unknown key, or with a value of another type."""
    _check_types(data, "line")
    for tensor in (data["target"], *data["operands"]):
        _check_types(tensor, "tensor")


def _check_types(item: Any, level: str) -> None:
    if not isinstance(item, dict):
        raise ValueError(f"{item!r:.40} is not the object of a {level}")
    for message, advice in faults_of_keys(item, level, _KEYS):
        raise ValueError(f"{message}: {advice}")
    for key in ("indices", "classes"):
        if not all(isinstance(x, str) for x in item.get(key, ())):
            raise ValueError(f"{key} is {item[key]!r:.40}: write a list of texts")


_Value = tuple[str, int]
"""A name and the number of its value: 1, 2, ...; 0 for an input."""


@dataclass(frozen=True, slots=True)
class _Named:
    """The values that one line writes and reads.

    ``carries``: the old value was read before, so the new one is the sum of it and this line.
    """

    target: _Value
    operands: tuple[_Value, ...]
    carries: bool


class _Values:
    """Numbers the values of each name, since pdaggerq reassigns the array of a permutation.

    The last value of a name has the plain name; the name of an earlier one ends with its number.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._read: set[_Value] = set()
        self._inside: set[str] = set()
        self._inputs: set[str] = set()

    def line(self, data: Any) -> _Named:
        """Number a line's values; a ValueError if it reads one too early or writes an input."""
        operands = []
        for operand in data["operands"]:
            name = operand["name"]
            if name not in self._last:
                if operand.get("is_intermediate"):
                    raise ValueError(f"{name} is read before it is computed")
                self._inputs.add(name)
            operands.append((name, self._last.get(name, 0)))
        target = data["target"]["name"]
        if target in self._inputs:
            raise ValueError(f"{target} is an input and a target: rename the target")
        self._read.update(operands)
        if data["target"].get("is_intermediate"):
            self._inside.add(target)
        number = self._last.get(target, 0)
        assigned = bool(data["is_assignment"]) or number == 0
        carries = not assigned and (target, number) in self._read
        if assigned or carries:
            number += 1
            self._last[target] = number
        return _Named((target, number), tuple(operands), carries)

    def name(self, value: _Value) -> str:
        """Name of the tensor that holds a value."""
        name, number = value
        plain = identifier_of(name)
        return plain if number == self._last.get(name, 0) else f"{plain}_{number}"

    def role(self, value: _Value) -> Role:
        """Outputs are the last values of names that are not intermediates."""
        name, number = value
        if number == 0:
            return Role.INPUT
        last = number == self._last[name]
        return Role.OUTPUT if last and name not in self._inside else Role.TEMP


class _Reader:
    """Converts numbered lines to equations."""

    def __init__(self, values: _Values) -> None:
        self._values = values
        self._spaces: dict[str, Space] = {}
        self._tensors: dict[_Value, Tensor] = {}
        self._taken: set[str] = set()
        self._equations: dict[_Value, Equation] = {}

    def system(self, name: str) -> System:
        """The system of the lines read."""
        outputs = [t for t in self._tensors.values() if t.role is Role.OUTPUT]
        inputs = [t for t in self._tensors.values() if t.is_input]
        first = {space: n for n, space in enumerate(_ORDER)}
        spaces = sorted(
            self._spaces.values(), key=lambda s: (first.get(s.name, len(first)), s.name)
        )
        return assemble(name, tuple(spaces), inputs, outputs, list(self._equations.values()))

    def line(self, data: Any, named: _Named) -> None:
        """One statement."""
        if data.get("conditions"):
            raise ValueError(
                f"the line holds only under the conditions {data['conditions']}: "
                "export without the option conditions"
            )
        indices = self._indices(data, named)
        factors: list[Factor] = []
        for operand, value in zip(data["operands"], named.operands, strict=True):
            held = tuple(indices[x] for x in operand["indices"])
            if re.match(r"Id\b", operand["name"]) and len(held) == 2:
                factors.append(Delta(*held))
            else:
                factors.append(self._ref(value, held))
        left = self._ref(named.target, tuple(indices[x] for x in data["target"]["indices"]))
        _check_target(left, factors)
        term = Term(coefficient(data), tuple(factors))
        sums = tuple(i for i in distinct(term.indices) if i not in left.indices)
        resolved = resolve_deltas(replace(term, sums=sums))
        terms = () if resolved is None else (resolved,)
        name, number = named.target
        old = self._equations.get(named.target)
        if old is not None:
            moved = tuple(rename_left(t, left.indices, old.lhs.indices) for t in terms)
            self._equations[named.target] = replace(old, terms=old.terms + moved)
            return
        if named.carries:
            terms = (Term(_ONE, (self._ref((name, number - 1), left.indices),)), *terms)
        self._equations[named.target] = Equation(left, terms)

    def _indices(self, data: Any, named: _Named) -> dict[str, Index]:
        """Indices of a line: occupied or virtual by their classes, spin or range by the blocks."""
        spaces: dict[str, str] = {}
        for item, value in zip(data["operands"], named.operands, strict=True):
            for letter, space in zip(item["indices"], self._axes(item, value), strict=True):
                if spaces.setdefault(letter, space) != space:
                    raise ValueError(f"index {letter} runs over both {spaces[letter]} and {space}")
        # Classes do not name the spin: o is also the class of O.
        for item in (data["target"], *data["operands"]):
            for letter, space in zip(item["indices"], _classes(item), strict=True):
                if spaces.setdefault(letter, space).lower() != space.lower():
                    raise ValueError(f"index {letter} runs over both {spaces[letter]} and {space}")
        for text in (*spaces, *spaces.values()):
            if not isinstance(text, str) or not is_name(text):
                raise ValueError(f"{text!r:.40} is not the name of an index or of a class")
        names = dict.fromkeys(spaces)
        made = {}
        for letter, space in spaces.items():
            upper = letter.upper()
            name = upper if space.isupper() and upper not in names else letter
            kind = _KINDS.get(space)
            made[letter] = Index(name, self._spaces.setdefault(space, Space(space, kind=kind)))
        return made

    def _axes(self, item: Any, value: _Value) -> list[str]:
        """Names of the spaces of an operand: as it was written, or else those of its block."""
        if value in self._tensors and value[1]:
            return [s.name for s in self._tensors[value].spaces]
        return block_spaces(item["name"], _classes(item))

    def _ref(self, value: _Value, indices: tuple[Index, ...]) -> Ref:
        spaces = tuple(i.space for i in indices)
        tensor = self._tensors.get(value)
        if tensor is None:
            role = self._values.role(value)
            volatile = not (role is Role.INPUT and value[0].partition("[")[0] in _INTEGRALS)
            name = self._values.name(value)
            while name in self._taken:
                name += "_"
            self._taken.add(name)
            tensor = self._tensors[value] = Tensor(name, spaces, role, volatile)
        if tensor.spaces != spaces:
            axes = [",".join(s.name for s in axis) for axis in (tensor.spaces, spaces)]
            raise ValueError(f"{value[0]} has the axes {axes[0]} elsewhere and {axes[1]} here")
        return Ref(tensor, indices)


def _check_target(left: Ref, factors: list[Factor]) -> None:
    """Refuse a target whose elements are repeated along an axis, or a diagonal."""
    if len(set(left.indices)) < len(left.indices):
        raise ValueError(f"the indices of the target {left} are not distinct")
    used = {i for factor in factors for i in factor_indices(factor)}
    for index in left.indices:
        if index not in used:
            raise ValueError(f"index {index} of the target {left} is on no operand")


def _classes(item: Any) -> list[str]:
    classes, letters = item["classes"], item["indices"]
    if len(classes) != len(letters):
        raise ValueError(f"{item['name']} has {len(letters)} indices, but {len(classes)} classes")
    return list(classes)


def block_spaces(name: str, classes: list[str]) -> list[str]:
    """Spaces of an input's axes, by its classes and the spin or range block in its name.

    Example:
        >>> block_spaces('eri["abab_oovo"]', ["o", "o", "v", "o"])
        ['o', 'O', 'v', 'O']
        >>> block_spaces('B["bb_Qov"]', ["Q", "o", "v"])
        ['Q', 'O', 'V']
    """
    parts = re.findall(r"[^\W_]+", name.partition("[")[2])
    block = next((p for p in parts if re.fullmatch(r"[ab]+|[01]+", p)), "")
    if not block:
        return classes
    places = [k for k, c in enumerate(classes) if c in ("o", "v")]
    if len(places) != len(block):
        raise ValueError(f"the block {block} of {name} does not fit its classes {classes}")
    second = {k for k, sign in zip(places, block, strict=True) if sign in "b1"}
    return [c.upper() if k in second else c for k, c in enumerate(classes)]


def coefficient(data: Any) -> Fraction:
    """The coefficient of a line: ``coeff_rational`` or else the ratio nearest to ``coeff``."""
    value, ratio = data.get("coeff"), data.get("coeff_rational")
    if ratio is None:
        return nearest_ratio(value) if isinstance(value, float) else exact(value)
    written = literal(ratio)
    if value is not None and abs(written - exact(value)) > _CLOSE * abs(written):
        raise ValueError(f"coeff is {value}, but coeff_rational is {ratio}")
    return written


def identifier_of(name: str) -> str:
    """``tmps_["0002_oooo"]`` as a name: ``tmps_0002_oooo``."""
    parts = re.findall(r"[A-Za-z0-9_]+", name)
    if not parts:
        raise ValueError(f"{name!r:.40} is not a name of a tensor")
    return identifier(
        "_".join(p.strip("_") if n == 0 and len(parts) > 1 else p for n, p in enumerate(parts))
    )
