"""Equations that wick&d prints: ``r^{o0,o1}_{v0,v1} += 1/8 t^{o0,o1}_{v2,v3} v^{v2,v3}_{v0,v1}``.

A tensor's axes are its upper, then its lower indices. The lines of one target are antisymmetrised
over its upper and over its lower indices of each space, as wick&d leaves to its caller.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import Diagnostic, SpecError
from ...ir.system import System
from ..exact_numbers import rational
from ..terms.reader import read_term_data
from .conventions import amplitudes_symmetry, integrals, refuse

_TENSOR = r"([A-Za-z]\w*?)\^\{([^{}]*)\}_\{([^{}]*)\}"
_LINE = re.compile(rf"\s*{_TENSOR}\s*\+=\s*([+-]?\s*[0-9./]*)((?:\s*{_TENSOR})*)\s*")
_LETTERS = {"o": "ijklmn", "v": "abcdefgh"}


def from_wicked(
    text: str | Iterable[object] | Mapping[str, Iterable[object]],
    *,
    name: str = "wicked",
    real: bool = False,
    energy: str = "e",
    blocks: Iterable[str] = ("f", "v"),
    filename: str = "<wicked>",
) -> System:
    """The system of equations that wick&d printed.

    Args:
        text: lines, or the equation objects themselves: those of one block,
            ``to_manybody_equation("r")["oo|vv"]``, or the dictionary of all blocks.
        name: of the system.
        real: orbitals are real, so that bra and ket of f and v may be exchanged.
        energy: name of the target that has no indices.
        blocks: tensors given by blocks, v_oovv = <ij||ab>; the others get the number of their
            upper indices: t^{o0}_{v0} is t1[i,a], r^{o0,o1}_{v0,v1} is r2[i,j,a,b]. A name that
            stands on axes of several kinds is given by blocks too: t1_ov, t1_av; r1_ov, r1_av.
        filename: for messages.

    Raises:
        SpecError: the lines that cannot be understood.

    Example:
        >>> print(from_wicked('''r^{o0}_{v0} +=  f^{o0}_{v0}
        ... r^{o0}_{v0} += - f^{o0}_{o1} t^{o1}_{v0}''').pretty(), end="")
        r1[i,a] = f_ov[i,a]
                + sum(j) -f_oo[i,j]*t1[j,a]
    """
    if isinstance(text, Mapping):
        text = [equation for block in text.values() for equation in block]
    try:
        lines = text.split("\n") if isinstance(text, str) else [str(item) for item in text]
    except TypeError:
        message = f"a {type(text).__name__} is no list of equations"
        advice = "pass the printed lines, or the equations"
        raise refuse(filename, 1, repr(text), message, advice) from None
    found: list[re.Match[str]] = []
    problems: list[Diagnostic] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            advice = "lines read r^{o0}_{v0} += 1/2 f^{v1}_{o1} t^{o0,o1}_{v0,v1}"
            problems += refuse(filename, number, line, "no equation of wick&d", advice).diagnostics
        else:
            found.append(match)
    if problems:
        raise SpecError(tuple(problems))
    if not found:
        raise refuse(filename, 1, "", "no equations", "print the equations of wick&d into it")
    reader = _Reader(tuple(blocks), energy, found)
    for match in found:
        reader.line(*match.groups()[:5])
    return read_term_data(
        {
            "name": name,
            "ranges": reader.ranges(),
            "tensors": {**reader.tensors, **integrals(real=real)},
            "targets": list(reader.targets.values()),
        },
        filename,
    )


class _Reader:
    """Turns lines into the targets of a term list."""

    def __init__(
        self, blocks: tuple[str, ...], energy: str, lines: Iterable[re.Match[str]]
    ) -> None:
        self._by_blocks, self._energy = set(blocks), energy
        self._spaces: dict[str, None] = {}
        self.targets: dict[str, dict[str, Any]] = {}
        self.tensors: dict[str, dict[str, Any]] = {}
        seen: dict[tuple[bool, str], set[str]] = {}
        for line in lines:
            heads = [(True, line.groups()[:3])]
            for left, (name, upper, lower) in heads + [
                (False, part) for part in re.findall(_TENSOR, line[5])
            ]:
                labels = [*_labels(upper), *_labels(lower)]
                self._spaces.update(dict.fromkeys(x[0] for x in labels))
                key = left, self._numbered(name, upper)
                seen.setdefault(key, set()).add("".join(x[0] for x in labels))
        # What stands on several kinds of axes is one array for each of them, t1_ov, t1_av, ...
        self._many = {k for k, x in seen.items() if len(x) > 1 and k[1] not in self._by_blocks}
        self._by_blocks |= {name for left, name in self._many if not left}

    def ranges(self) -> dict[str, list[str]]:
        """First letters of the index names of each space, occupied and virtual first."""

        def order(space: str) -> tuple[bool, bool, str]:
            return space != "o", space != "v", space

        letters = _LETTERS if self._plain else {}
        return {
            space: [space, *letters.get(space, "")] for space in sorted(self._spaces, key=order)
        }

    @property
    def _plain(self) -> bool:
        """Occupied and virtual alone: their indices get the letters that everybody uses."""
        return set(self._spaces) <= set(_LETTERS)

    def _numbered(self, name: str, upper: str) -> str:
        """The name with the number of its upper indices, where it is not one of integrals."""
        if name in self._by_blocks or name[-1].isdigit():
            return name
        return f"{name}{len(_labels(upper))}"

    def line(self, name: str, upper: str, lower: str, coeff: str, product: str) -> None:
        """One ``+=``."""
        ups, downs = self._indices(upper), self._indices(lower)
        number = self._numbered(name, upper)
        block = "".join(x[0] for x in (*_labels(upper), *_labels(lower)))
        name = f"{number}_{block}" if (True, number) in self._many else number
        name = name if ups or downs else self._energy
        groups = _alike((*_labels(upper), "", *_labels(lower)), (*ups, "", *downs))
        out = f"{name}[{','.join((*ups, *downs))}]"
        target = self.targets.setdefault(out, {"out": out, "terms": [], "antisymmetrize": groups})
        sign = coeff.replace(" ", "")
        value = rational(sign + "1" if sign in ("", "+", "-") else sign)
        factors = [self._factor(*found) for found in re.findall(_TENSOR, product)]
        target["terms"].append({"coef": str(value), "factors": factors})

    def _factor(self, name: str, upper: str, lower: str) -> str:
        ups, downs = self._indices(upper), self._indices(lower)
        name = self._numbered(name, upper)
        labels = [*_labels(upper), *_labels(lower)]
        if name not in self._by_blocks:
            axes = [x[0] for x in labels]
            places = [*range(len(ups)), -1, *range(len(ups), len(labels))]
            groups = _alike((*labels[: len(ups)], "", *labels[len(ups) :]), places)
            self.tensors[name] = {"axes": axes, "antisym": groups}
        elif (False, name) in self._many:
            self.tensors[name] = amplitudes_symmetry(len(ups), len(downs))
        return f"{name}[{','.join((*ups, *downs))}]"

    def _indices(self, text: str) -> list[str]:
        """``o0`` is i, ``v1`` is b; beside other spaces labels stay."""
        found = []
        for label in _labels(text):
            space, number = label[0], label[1:]
            pool = _LETTERS.get(space) if self._plain else None
            if pool and number.isdigit():
                place = int(number)
                extra = str(place // len(pool)) if place >= len(pool) else ""
                label = pool[place % len(pool)] + extra
            found.append(label)
        return found


def _labels(text: str) -> list[str]:
    return [x.strip() for x in text.split(",") if x.strip()]


def _alike(labels: Sequence[str], values: Sequence[Any]) -> list[list[Any]]:
    """Values of neighbouring labels of one space, where there are several; "" is between them."""
    groups = []
    pairs = zip(labels, values, strict=True)
    for space, held in itertools.groupby(pairs, key=lambda pair: pair[0][:1]):
        group = [value for _, value in held]
        if space and len(group) > 1:
            groups.append(group)
    return groups
