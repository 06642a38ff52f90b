"""The JSON lines that pdaggerq's pq_graph exports: one assignment or addition a line.

    {"target": {"name": "r2", "indices": ["a","b","i","j"], "classes": ["v","v","o","o"]},
     "is_assignment": true, "coeff": 1, "operands": [{"name": "t2", "indices": [..], ..}, ..]}

Lines that do not start with ``{`` are comments. ``pairing``, the order in which pdaggerq would
contract, is not kept: tcgen chooses its own.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..ir.expr import Delta
from ..ir.system import Equation, Factor, Permutation, System, Term
from ..ir.tensor import Index, Ref, Role, Space, Tensor, distinct
from .assemble import assemble, find_cycle, read_names
from .listed import rational, refuse
from .permutations import Signed, compose, gather, tuple_operator
from .rewrite import resolve_deltas, to_letters

_KINDS = {"o": "occupied", "v": "virtual", "O": "occupied", "V": "virtual"}
_KINDS |= {"Q": "auxiliary", "L": "auxiliary"}


def read_ir(text: str, name: str, filename: str) -> System:
    """The system of JSON lines.

    Args:
        text: lines; those that do not start with a brace are skipped.
        name: of the system.
        filename: for messages.

    Raises:
        SpecError: a line cannot be understood, or an intermediate changes after it is read.
    """
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("{"):
            continue
        try:
            lines.append((number, line, json.loads(line)))
        except json.JSONDecodeError as error:
            message = f"no JSON: {error.msg}"
            raise refuse(filename, number, line, message, "one object a line") from None
    return _Reader(filename).system(lines, name)


class _Reader:
    def __init__(self, filename: str) -> None:
        self._file = filename
        self._spaces: dict[str, Space] = {}
        self._tensors: dict[str, Tensor] = {}

    def system(self, lines: list[tuple[int, str, Any]], name: str) -> System:
        """Equations of all lines."""
        equations: dict[str, Equation] = {}
        read: dict[str, None] = {}
        targets = [data["target"] for _, _, data in lines if _has_name(data.get("target"))]
        defined = dict.fromkeys(identifier_of(t["name"]) for t in targets)
        inside = {identifier_of(t["name"]) for t in targets if t.get("is_intermediate")}
        for number, line, data in lines:
            try:
                left, terms = self._line(data, defined, inside)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                advice = "a line has target, coeff, operands, and what its permutation needs"
                raise refuse(self._file, number, line, what, advice) from None
            key = left.tensor.name
            old = equations.get(key)
            if old is not None and (data.get("is_assignment") or key in read):
                when = "defined" if data.get("is_assignment") else "read"
                message = f"{key} changes after it was {when}"
                advice = "give each value a name of its own"
                raise refuse(self._file, number, line, message, advice)
            if old is None:
                equations[key] = Equation(left, terms)
            else:
                moved = tuple(to_letters(t, left.indices, old.lhs.indices) for t in terms)
                equations[key] = replace(old, terms=old.terms + moved)
            read.update(dict.fromkeys(read_names(Equation(left, terms))))
        if not equations:
            raise refuse(self._file, 1, "", "no equations", "export with to_strings('ir')")
        ring = find_cycle(list(equations.values()))
        if ring:
            names = " -> ".join(e.lhs.tensor.name for e in (*ring, ring[0]))
            message = f"these names need each other: {names}"
            raise refuse(self._file, 1, "", message, "break the ring")
        outputs = [e.lhs.tensor for e in equations.values() if e.lhs.tensor.role is Role.OUTPUT]
        inputs = [t for t in self._tensors.values() if t.is_input]
        spaces = tuple(self._spaces.values())
        return assemble(name, spaces, inputs, outputs, list(equations.values()))

    def _line(
        self, data: Any, defined: dict[str, None], inside: set[str]
    ) -> tuple[Ref, tuple[Term, ...]]:
        target = data["target"]
        key = identifier_of(target["name"])
        role = Role.TEMP if key in inside else Role.OUTPUT
        indices = self._indices(target)
        left = self._ref(key, indices, role)
        factors: list[Factor] = []
        for operand in data["operands"]:
            held, name = self._indices(operand), identifier_of(operand["name"])
            if re.fullmatch(r"Id(_\w+)?", name) and len(held) == 2:
                factors.append(Delta(*held))
                continue
            role = Role.INPUT
            if name in defined:
                role = Role.TEMP if name in inside else Role.OUTPUT
            factors.append(self._ref(name, held, role))
        plain = Term(coefficient(data), tuple(factors))
        sums = tuple(i for i in distinct(plain.indices) if i not in indices)
        resolved = resolve_deltas(replace(plain, sums=sums))
        if resolved is None:
            return left, ()
        found = []
        for factor, perms in self._perms(data.get("perm"), indices):
            found.append(replace(resolved, coeff=factor * resolved.coeff, perms=perms))
        return left, tuple(found)

    def _indices(self, item: Any) -> tuple[Index, ...]:
        classes = item.get("classes") or []
        letters = item.get("indices") or []
        if len(classes) != len(letters):
            counts = f"{len(letters)} indices, {len(classes)} classes"
            raise ValueError(f"{item.get('name')} has {counts}")
        return tuple(
            Index(letter, self._spaces.setdefault(c, Space(c, kind=_KINDS.get(c))))
            for letter, c in zip(letters, classes, strict=True)
        )

    def _ref(self, name: str, indices: tuple[Index, ...], role: Role) -> Ref:
        spaces = tuple(i.space for i in indices)
        tensor = self._tensors.setdefault(name, Tensor(name, spaces, role))
        if tensor.spaces != spaces:
            axes = [",".join(s.name for s in found) for found in (tensor.spaces, spaces)]
            raise ValueError(f"{name} has the axes {axes[0]} elsewhere and {axes[1]} here")
        return Ref(tensor, indices)

    def _perms(
        self, data: Any, left: tuple[Index, ...]
    ) -> list[tuple[Fraction, tuple[Permutation, ...]]]:
        """Permutations of a line: type 1 (P) for each pair, or 2, 3, 6 (PP) over all pairs."""
        if not data or not data.get("type") or not data.get("pairs"):
            return [(Fraction(1), ())]
        by_name = {i.name: i for i in left}
        pairs = [tuple(by_name[x] for x in pair) for pair in data["pairs"]]
        kind = str(data["type"]).removeprefix("PP").replace("P", "1")
        signed: Signed = ((1, ()),)
        match kind:
            case "1":
                for pair in pairs:
                    signed = compose(signed, tuple_operator(tuple((i,) for i in pair), True))
            case "2" | "6":
                signed = tuple_operator(tuple(pairs), False)
            case "3":
                swaps = [((0, 1),), ((0, 2),)]
                signed = ((1, ()), *((1, _swap(pairs, a, b)) for ((a, b),) in swaps))
            case _:
                raise ValueError(f"the permutation type {data['type']!r} is none of 1, 2, 3, 6")
        return gather(signed, left)


def _swap(pairs: list[tuple[Index, ...]], one: int, other: int) -> tuple[tuple[Index, Index], ...]:
    forth = zip(pairs[one], pairs[other], strict=True)
    return tuple(itertools.chain.from_iterable(((a, b), (b, a)) for a, b in forth))


def _has_name(target: Any) -> bool:
    return isinstance(target, dict) and bool(re.search(r"\w", str(target.get("name", ""))))


def coefficient(data: Any) -> Fraction:
    """The coefficient of a line: ``coeff_rational`` (a pair or a text) where given, else ``coeff``.

    Example:
        >>> coefficient({"coeff": 0.0833333333, "coeff_rational": [1, 12]})
        Fraction(1, 12)
    """
    exact = data.get("coeff_rational")
    if isinstance(exact, dict):
        exact = list(exact.values())
    if isinstance(exact, list) and len(exact) == 2:
        return Fraction(int(exact[0]), int(exact[1]))
    if isinstance(exact, str | int):
        return Fraction(exact)
    return rational(str(data.get("coeff", 1)))


def identifier_of(name: str) -> str:
    """``tmps_["0002_oooo"]`` as a name: ``tmps_0002_oooo``.

    Example:
        >>> identifier_of('B["Qov"]'), identifier_of('t2')
        ('B_Qov', 't2')
    """
    parts = re.findall(r"\w+", name)
    if not parts:
        raise ValueError(f"{name!r} is no name of a tensor")
    return "_".join(p.strip("_") if n == 0 and len(parts) > 1 else p for n, p in enumerate(parts))
