"""Equations that wick&d prints: ``r^{o0,o1}_{v0,v1} += 1/8 t^{o0,o1}_{v2,v3} v^{v2,v3}_{v0,v1}``.

A tensor's axes are its upper, then its lower indices. The lines of one target are antisymmetrised
over its upper and over its lower indices, as wick&d leaves to its caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..errors import Diagnostic, SpecError
from ..ir.system import System
from .listed import amplitudes_symmetry, integrals, rational, refuse
from .terms import read_term_data

_TENSOR = r"([A-Za-z]\w*?)\^\{([^{}]*)\}_\{([^{}]*)\}"
_LINE = re.compile(rf"\s*{_TENSOR}\s*\+=\s*([+-]?\s*[0-9./]*)((?:\s*{_TENSOR})*)\s*")
_LETTERS = {"o": "ijklmn", "v": "abcdefgh"}


def from_wicked(
    text: str | Iterable[object],
    *,
    name: str = "wicked",
    real: bool = False,
    energy: str = "e",
    blocks: Iterable[str] = ("f", "v"),
    filename: str = "<wicked>",
) -> System:
    """The system of equations that wick&d printed.

    Args:
        text: lines, or the equation objects themselves (``to_manybody_equation(..)["oo|vv"]``).
        name: of the system.
        real: orbitals are real, so that bra and ket of f and v may be exchanged.
        energy: name of the target that has no indices.
        blocks: tensors given by blocks, v_oovv = <ij||ab>; the others get the number of their
            upper indices: t^{o0}_{v0} is t1[i,a], r^{o0,o1}_{v0,v1} is r2[i,j,a,b].
        filename: for messages.

    Raises:
        SpecError: the lines that cannot be understood.

    Example:
        >>> print(from_wicked('''r^{o0}_{v0} +=  f^{o0}_{v0}
        ... r^{o0}_{v0} += - f^{o0}_{o1} t^{o1}_{v0}''').pretty(), end="")
        r1[i,a] = f_ov[i,a]
                + sum(j) -f_oo[i,j]*t1[j,a]
    """
    lines = text.split("\n") if isinstance(text, str) else [str(item) for item in text]
    reader = _Reader(tuple(blocks), energy)
    problems: list[Diagnostic] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            advice = "lines read r^{o0}_{v0} += 1/2 f^{v1}_{o1} t^{o0,o1}_{v0,v1}"
            problems += refuse(filename, number, line, "no equation of wick&d", advice).diagnostics
            continue
        reader.line(*found.groups()[:5])
    if problems:
        raise SpecError(tuple(problems))
    if not reader.targets:
        raise refuse(filename, 1, "", "no equations", "print the equations of wick&d into it")
    tensors = {**reader.tensors, **integrals(real=real)}
    return read_term_data(
        {
            "name": name,
            "ranges": reader.ranges(),
            "tensors": tensors,
            "targets": list(reader.targets.values()),
        },
        filename,
    )


class _Reader:
    """Turns lines into the targets of a term list."""

    def __init__(self, blocks: tuple[str, ...], energy: str) -> None:
        self._blocks, self._energy = blocks, energy
        self._spaces: dict[str, None] = {}
        self.targets: dict[str, dict[str, Any]] = {}
        self.tensors: dict[str, dict[str, Any]] = {}

    def ranges(self) -> dict[str, list[str]]:
        """First letters of the index names of each space, occupied and virtual first."""

        def order(space: str) -> tuple[bool, bool, str]:
            return space != "o", space != "v", space

        return {
            space: [space, *_LETTERS.get(space, "")] for space in sorted(self._spaces, key=order)
        }

    def line(self, name: str, upper: str, lower: str, coeff: str, product: str) -> None:
        """One ``+=``."""
        ups, downs = self._indices(upper), self._indices(lower)
        number = str(len(ups)) if name not in self._blocks else ""
        name = f"{name}{number}" if ups or downs else self._energy
        letters = ",".join((*ups, *downs))
        groups = [list(g) for g in (ups, downs) if len(g) > 1]
        out = f"{name}[{letters}]"
        target = self.targets.setdefault(out, {"out": out, "terms": [], "antisymmetrize": groups})
        sign = coeff.replace(" ", "")
        value = rational(sign + "1" if sign in ("", "+", "-") else sign)
        factors = [self._factor(*found) for found in re.findall(_TENSOR, product)]
        target["terms"].append({"coef": str(value), "factors": factors})

    def _factor(self, name: str, upper: str, lower: str) -> str:
        ups, downs = self._indices(upper), self._indices(lower)
        if name not in self._blocks:
            name = f"{name}{len(ups)}"
            self.tensors.setdefault(name, {})
            spaces = [[x[0] for x in self._labels(part)] for part in (upper, lower)]
            self.tensors[name] = {
                "axes": [x for part in spaces for x in part],
                **amplitudes_symmetry(len(ups), len(downs)),
            }
        return f"{name}[{','.join((*ups, *downs))}]"

    def _labels(self, text: str) -> list[str]:
        return [x.strip() for x in text.split(",") if x.strip()]

    def _indices(self, text: str) -> list[str]:
        """``o0`` is i, ``v1`` is b; labels of other spaces stay."""
        found = []
        for label in self._labels(text):
            space, number = label[0], label[1:]
            self._spaces.setdefault(space)
            pool = _LETTERS.get(space)
            if pool and number.isdigit():
                place = int(number)
                extra = str(place // len(pool)) if place >= len(pool) else ""
                label = pool[place % len(pool)] + extra
            found.append(label)
        return found
