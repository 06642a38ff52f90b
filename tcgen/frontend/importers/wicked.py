"""Equations that wick&d prints: ``r^{o0,o1}_{v0,v1} += 1/8 t^{o0,o1}_{v2,v3} v^{v2,v3}_{v0,v1}``.

A tensor's axes are its upper, then its lower indices. The lines of one target are antisymmetrised
over its upper and over its lower indices of each space, since wick&d leaves this to its caller.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import factorial, prod
from typing import Any

from ...errors import ArgumentError, Diagnostic, SpecError
from ...ir.system import System, Term
from ...ir.tensor import Index
from ..exact_numbers import literal
from ..source import refuse_deep_nesting
from ..spec.operators import Signed, compose, gather, slash_operator
from ..spec.writer import antisymmetric_classes, invariant_exchanges
from ..terms import read_term_data
from .conventions import (
    LETTERS,
    amplitudes_symmetry,
    check_texts,
    integrals,
    is_name,
    names_of_blocks,
    refuse,
    with_integrals,
)

_TENSOR = r"([A-Za-z][A-Za-z0-9_]*)\^\{([^{}]*)\}_\{([^{}]*)\}"
_LINE = re.compile(rf"{_TENSOR} ?\+= ?([+-]? ?[0-9./]*)((?: ?{_TENSOR})*)")
_LONGEST_LABEL = 20


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
        name: name of the system.
        real: orbitals are real, so that bra and ket of f and v may be exchanged.
        energy: name of the target that has no indices; several with names of their own keep them.
        blocks: tensors given by blocks, v_oovv = <ij||ab>; the others get the number of their
            upper indices: t^{o0}_{v0} is t1[i,a], r^{o0,o1}_{v0,v1} is r2[i,j,a,b]. A name with
            axes of several kinds is also given by blocks: t1_ov, t1_av; r1_ov, r1_av.
        filename: name for messages.

    Raises:
        ArgumentError: a keyword is of another type.
        SpecError: with all lines that cannot be understood.

    Example:
        >>> print(from_wicked('''r^{o0}_{v0} +=  f^{o0}_{v0}
        ... r^{o0}_{v0} += - f^{o0}_{o1} t^{o1}_{v0}''').pretty(), end="")
        r1[i,a] = f_ov[i,a]
                + sum(j) -f_oo[i,j]*t1[j,a]
    """
    check_texts(name=name, energy=energy, filename=filename)
    if not is_name(energy):
        raise ArgumentError(f"energy={energy!r} cannot be a name: use letters, digits and _")
    with refuse_deep_nesting(filename):
        lines = _lines(text, filename)
        reader = _Reader(names_of_blocks(blocks), energy, lines)
        data = {
            "name": name,
            "ranges": reader.ranges(),
            "tensors": {**reader.tensors, **integrals(real=real)},
            "targets": list(reader.targets.values()),
        }
        return with_integrals(_with_short_operators(read_term_data(data, filename)))


def _with_short_operators(system: System) -> System:
    """The system with 2*P(i/jk) for P(i,j,k) of a term that is antisymmetric in j and k."""
    equations = []
    for equation in system.equations:
        left = equation.lhs.indices
        equations.append(
            replace(equation, terms=tuple(_shortened(t, left) for t in equation.terms))
        )
    return replace(system, equations=tuple(equations))


def _shortened(term: Term, left: tuple[Index, ...]) -> Term:
    """A term whose permutations are all those within groups of left indices."""
    if not term.perms:
        return term
    operator: Signed = ((1, ()),)
    coeff = term.coeff
    for classes in antisymmetric_classes(term.perms, left, invariant_exchanges(term, left)):
        coeff *= prod(factorial(len(held)) for held in classes)
        if len(classes) > 1:
            operator = compose(operator, slash_operator(classes, True))
    ((factor, perms),) = gather(operator, left)
    return replace(term, coeff=coeff * factor, perms=perms)


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor as written."""

    name: str
    upper: tuple[str, ...]
    lower: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return self.upper + self.lower


@dataclass(frozen=True, slots=True)
class _Line:
    """One ``+=``."""

    number: int
    text: str
    target: _Tensor
    coeff: Fraction
    factors: tuple[_Tensor, ...]


def _lines(source: object, filename: str) -> list[_Line]:
    """The lines, each checked by itself."""
    try:
        if isinstance(source, Mapping):
            source = [equation for block in source.values() for equation in block]
        texts = source.split("\n") if isinstance(source, str) else list(map(str, iter(source)))  # type: ignore[call-overload]
    except TypeError:
        message = f"{type(source).__name__} is not a list of equations"
        advice = "pass the printed lines, or the equations"
        raise refuse(filename, 1, f"{source!r:.80}", message, advice) from None
    lines: list[_Line] = []
    problems: list[Diagnostic] = []
    for number, text in enumerate(texts, 1):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        try:
            lines.append(_line(number, text))
        except ValueError as error:
            advice = "write lines such as r^{o0}_{v0} += 1/2 f^{v1}_{o1} t^{o0,o1}_{v0,v1}"
            problems += refuse(filename, number, text, str(error), advice).diagnostics
    if problems:
        raise SpecError(tuple(problems))
    if not lines:
        raise refuse(filename, 1, "", "no equations", "write those of wick&d to the file")
    return lines


def _line(number: int, text: str) -> _Line:
    """Reads one line."""
    match = _LINE.fullmatch(" ".join(text.split()))
    if match is None:
        raise ValueError("the line is not an equation of wick&d")
    sign = match[4].replace(" ", "")
    coeff = literal(sign + "1" if sign in ("", "+", "-") else sign)
    target = _tensor(match[1], match[2], match[3])
    factors = tuple(_tensor(*part) for part in re.findall(_TENSOR, match[5]))
    counts = Counter(label for factor in factors for label in factor.labels)
    for label in target.labels:
        if target.labels.count(label) > 1:
            raise ValueError(f"the index {label} occurs twice on the left")
        if counts[label] != 1:
            times = "does not occur" if not counts[label] else f"occurs {counts[label]} times"
            raise ValueError(f"the left index {label} {times} on the right; it must occur once")
    for label, count in counts.items():
        if count != 2 and label not in target.labels:
            raise ValueError(
                f"the index {label} is not on the left and is on the right {count} times: a sum "
                "needs it twice"
            )
    return _Line(number, text, target, coeff, factors)


def _tensor(name: str, upper: str, lower: str) -> _Tensor:
    return _Tensor(name, _labels(upper), _labels(lower))


class _Reader:
    """Converts lines to the targets of a term list."""

    def __init__(self, blocks: tuple[str, ...], energy: str, lines: Sequence[_Line]) -> None:
        self._by_blocks, self._energy = set(blocks), energy
        self._spaces: dict[str, None] = {}
        self.targets: dict[str, dict[str, Any]] = {}
        self.tensors: dict[str, dict[str, Any]] = {}
        seen: dict[tuple[bool, str], set[str]] = {}
        for line in lines:
            for left, tensor in ((True, line.target), *((False, f) for f in line.factors)):
                self._spaces.update(dict.fromkeys(x[0] for x in tensor.labels))
                key = left, self._numbered(tensor)
                seen.setdefault(key, set()).add("".join(x[0] for x in tensor.labels))
        # A name with several kinds of axes is one array for each of them, t1_ov, t1_av, ...
        self._many = {k for k, x in seen.items() if len(x) > 1 and k[1] not in self._by_blocks}
        self._by_blocks |= {name for left, name in self._many if not left}
        self._several = len({x.target.name for x in lines if not x.target.labels}) > 1
        for line in lines:
            self._read(line)

    def ranges(self) -> dict[str, list[str]]:
        """First letters of the index names of each space, occupied and virtual first."""

        def order(space: str) -> tuple[bool, bool, str]:
            return space != "o", space != "v", space

        letters = LETTERS if self._plain else {}
        return {
            space: [space, *letters.get(space, "")] for space in sorted(self._spaces, key=order)
        }

    @property
    def _plain(self) -> bool:
        """True if all spaces are occupied or virtual: their indices get the usual letters."""
        return set(self._spaces) <= set(LETTERS)

    def _numbered(self, tensor: _Tensor) -> str:
        """The name with the number of its upper indices, unless it is one of integrals."""
        if tensor.name in self._by_blocks or tensor.name[-1].isdigit() or not tensor.labels:
            return tensor.name
        return f"{tensor.name}{len(tensor.upper)}"

    def _read(self, line: _Line) -> None:
        """One ``+=``."""
        target = line.target
        ups, downs = self._indices(target.upper), self._indices(target.lower)
        number = self._numbered(target)
        block = "".join(x[0] for x in target.labels)
        name = f"{number}_{block}" if (True, number) in self._many else number
        name = name if ups or downs or self._several else self._energy
        groups = _alike((*target.upper, "", *target.lower), (*ups, "", *downs))
        out = f"{name}[{','.join((*ups, *downs))}]"
        data = self.targets.setdefault(out, {"out": out, "terms": [], "antisymmetrize": groups})
        factors = [self._factor(factor) for factor in line.factors]
        data["terms"].append({"coef": str(line.coeff), "factors": factors})

    def _factor(self, tensor: _Tensor) -> str:
        ups, downs = self._indices(tensor.upper), self._indices(tensor.lower)
        name = self._numbered(tensor)
        if tensor.labels and name not in self._by_blocks:
            axes = [x[0] for x in tensor.labels]
            places = [*range(len(ups)), -1, *range(len(ups), len(axes))]
            groups = _alike((*tensor.upper, "", *tensor.lower), places)
            self.tensors[name] = {"axes": axes, "antisym": groups}
        elif (False, name) in self._many:
            self.tensors[name] = amplitudes_symmetry(len(ups), len(downs))
        return f"{name}[{','.join((*ups, *downs))}]"

    def _indices(self, labels: tuple[str, ...]) -> list[str]:
        """``o0`` is i, ``v1`` is b; labels of other spaces are unchanged."""
        letters = []
        for label in labels:
            space, number = label[0], label[1:]
            pool = LETTERS.get(space) if self._plain else None
            if pool and number.isdigit():
                place = int(number)
                extra = str(place // len(pool)) if place >= len(pool) else ""
                label = pool[place % len(pool)] + extra
            letters.append(label)
        return letters


def _labels(text: str) -> tuple[str, ...]:
    """The labels between braces."""
    labels = tuple(x.strip() for x in text.split(",")) if text.strip() else ()
    for label in labels:
        if len(label) > _LONGEST_LABEL or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", label):
            raise ValueError(f"{label[:_LONGEST_LABEL]!r} is not a label such as o0 or v1")
    return labels


def _alike(labels: Sequence[str], values: Sequence[Any]) -> list[list[Any]]:
    """Values of neighbouring labels of one space, if there are several; "" separates groups."""
    groups = []
    pairs = zip(labels, values, strict=True)
    for space, held in itertools.groupby(pairs, key=lambda pair: pair[0][:1]):
        group = [value for _, value in held]
        if space and len(group) > 1:
            groups.append(group)
    return groups
