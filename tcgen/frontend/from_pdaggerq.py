"""Equations of pdaggerq: the lists that ``pq_helper.strings()`` returns, and its JSON lines.

    ['-0.500', 'P(i,j)', '<j,k||b,i>', 't2(b,a,j,k)']

P(i,j) X = X - X(i<->j). PP2, PP3 and PP6 exchange pairs (i,a), (j,b), (k,c): PP2 adds the
exchange, PP3 adds those of the first pair with the second and with the third, PP6 adds all six.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import SpecError
from ..ir.system import System
from .listed import amplitudes_symmetry, integrals, rational, refuse
from .pdaggerq_ir import read_ir
from .terms import read_term_data

String: TypeAlias = Sequence[str]
"""One term: coefficient, permutation operators, factors."""

_INTEGRAL = re.compile(r"<([^|>]+)\|\|([^|>]+)>(?:_([ab]+))?")
_FACTOR = re.compile(r"([A-Za-z]\w*?)(?:_([ab]+))?(?:\(([^()]*)\))?")
_OPERATOR = re.compile(r"(P|PP2|PP3|PP6)\(([^()]*)\)")
_HEADING = re.compile(r"\s*([A-Za-z]\w*(?:\([^()]*\))?)\s*\+?[=:]\s*")
_OCCUPIED, _VIRTUAL = "ijklmno", "abcdefgh"


def from_pdaggerq(
    source: str | Sequence[String] | Mapping[str, Sequence[String]],
    *,
    name: str = "pdaggerq",
    real: bool = False,
    filename: str = "<pdaggerq>",
) -> System:
    """The system of equations that pdaggerq derived.

    Args:
        source: the lists of one projection (the target is then e, r1, r2, ... after its free
            indices); ``{"r2(a,b,i,j)": pq.strings(), ...}`` for several; their printed text, with a
            line ``r2(a,b,i,j) =`` before each target; or the JSON lines of
            ``pq_graph.to_strings("ir")``.
        name: of the system.
        real: orbitals are real, so that bra and ket of f and <pq||rs> may be exchanged.
        filename: for messages.

    Returns:
        Inputs are f_oo, v_oovv = <ij||ab>, ... and the amplitudes with their axes as written,
        t2[a,b,i,j]. Beta indices of spin-blocked strings get upper case letters and the spaces
        O and V.

    Raises:
        SpecError: what cannot be understood.

    Example:
        >>> strings = [["+0.250", "<i,j||a,b>", "t2(a,b,i,j)"], ["+1.0", "f(i,a)", "t1(a,i)"]]
        >>> print(from_pdaggerq(strings).pretty(), end="")
        e = sum(i,j,a,b) 1/4*v_oovv[i,j,a,b]*t2[a,b,i,j]
          + sum(i,a) f_ov[i,a]*t1[a,i]
    """
    if isinstance(source, str):
        if is_ir(source):
            return read_ir(source, name, filename)
        groups = _printed(source, filename)
    elif isinstance(source, Mapping):
        groups = {key: _numbered(value) for key, value in source.items()}
    else:
        groups = {"": _numbered(source)}
    problems: list[Any] = []
    targets, tensors = [], dict[str, Any]()
    for heading, strings in groups.items():
        terms = []
        for number, string in strings:
            try:
                terms.append(_term(string))
            except ValueError as error:
                advice = "terms are lists such as ['+0.250', '<i,j||a,b>', 't2(a,b,i,j)']"
                problems += refuse(filename, number, str(string), str(error), advice).diagnostics
        for term in terms:
            tensors.update(term.tensors)
        targets.append(_target(heading, terms))
    if problems:
        raise SpecError(tuple(problems))
    beta = {"O": list(_OCCUPIED.upper()), "V": list(_VIRTUAL.upper())}
    ranges = {"o": list(_OCCUPIED), "v": list(_VIRTUAL), **beta}
    data = {
        "name": name,
        "ranges": ranges,
        "tensors": {**tensors, **integrals(real=real)},
        "targets": targets,
    }
    return read_term_data(data, filename)


def is_ir(text: str) -> bool:
    """True for JSON lines: the first line that is no comment starts with a brace."""
    return next((x for x in _lines(text)), "").startswith("{")


@dataclass(frozen=True, slots=True)
class _Term:
    """A term, its indices in the letters of their spaces (beta in upper case)."""

    coeff: str
    factors: tuple[str, ...]
    letters: tuple[str, ...]
    operators: tuple[tuple[str, tuple[str, ...]], ...]
    tensors: dict[str, Any]


def _lines(text: str) -> list[str]:
    found = (line.strip() for line in text.split("\n"))
    return [line for line in found if line and not line.startswith("#")]


def _numbered(strings: Iterable[String]) -> list[tuple[int, String]]:
    return list(enumerate(strings, 1))


def _printed(text: str, filename: str) -> dict[str, list[tuple[int, String]]]:
    """Targets and lists of a text."""
    groups: dict[str, list[tuple[int, String]]] = {}
    heading = ""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip().rstrip(",")
        if not line or line.startswith("#"):
            continue
        found = _HEADING.fullmatch(line)
        if found:
            heading = found[1]
            groups.setdefault(heading, [])
            continue
        try:
            value = ast.literal_eval(line)
        except (SyntaxError, ValueError):
            value = None
        if not isinstance(value, list | tuple) or not all(isinstance(x, str) for x in value):
            advice = (
                "write r2(a,b,i,j) = before the lists ['+1.0', 'f(i,a)', 't1(a,i)'] of a target"
            )
            raise refuse(filename, number, line, "neither a target nor a list of texts", advice)
        groups.setdefault(heading, []).append((number, value))
    if not groups:
        raise refuse(filename, 1, "", "no terms", "print the lists that strings() returns into it")
    return groups


def _term(string: String) -> _Term:
    """Reads one list.

    Raises:
        ValueError: saying which part cannot be understood.
    """
    if not string:
        raise ValueError("an empty term")
    try:
        coeff = rational(string[0])
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"the coefficient {string[0]!r} is no number") from None
    operators: list[tuple[str, tuple[str, ...]]] = []
    parts: list[tuple[str, str, tuple[str, ...], int]] = []
    for text in string[1:]:
        operator = _OPERATOR.fullmatch(text)
        if operator:
            operators.append((operator[1], _letters(operator[2].replace(";", ","))))
            continue
        integral, factor = _INTEGRAL.fullmatch(text), _FACTOR.fullmatch(text)
        if integral:
            bra, ket = _letters(integral[1]), _letters(integral[2])
            parts.append(("v", integral[3] or "", (*bra, *ket), len(bra)))
        elif factor:
            letters = _letters(factor[3] or "")
            parts.append((factor[1], factor[2] or "", letters, len(letters) // 2))
        else:
            raise ValueError(f"{text!r} is neither a tensor nor a permutation operator")
    for letter in (x for _, _, held, _ in parts for x in held):
        _space(letter)
    spins = _spins(parts)
    cased = {x: x.upper() if spins.get(x) == "b" else x for _, _, held, _ in parts for x in held}
    factors, tensors = [], dict[str, Any]()
    for name, spin, held, upper in parts:
        letters = tuple(cased[x] for x in held)
        if name not in ("v", "f", "d"):
            name = f"{name}_{spin}" if spin else name
            symmetry = amplitudes_symmetry(upper, len(letters) - upper)
            same = [g for g in symmetry["antisym"] if len({_space(letters[k]) for k in g}) == 1]
            tensors[name] = {"axes": [_space(x) for x in letters], "antisym": same}
        name = "delta" if name == "d" else name
        factors.append(f"{name}[{','.join(letters)}]" if letters else name)
    named = tuple((kind, tuple(cased.get(x, x) for x in held)) for kind, held in operators)
    order = tuple(dict.fromkeys(cased[x] for _, _, held, _ in parts for x in held))
    return _Term(str(coeff), tuple(factors), order, named, tensors)


def _spins(parts: Iterable[tuple[str, str, tuple[str, ...], int]]) -> dict[str, str]:
    spins: dict[str, str] = {}
    for name, spin, held, _ in parts:
        if spin and len(spin) != len(held):
            raise ValueError(f"the spin block {spin} does not fit {name}({','.join(held)})")
        for letter, one in zip(held, spin, strict=False):
            if spins.setdefault(letter, one) != one:
                raise ValueError(f"index {letter} has both spins")
    return spins


def _letters(text: str) -> tuple[str, ...]:
    return tuple(x.strip() for x in text.split(",") if x.strip())


def _space(letter: str) -> str:
    for space, letters in (("o", _OCCUPIED), ("v", _VIRTUAL)):
        if letter[0].lower() in letters:
            return space if letter[0].islower() else space.upper()
    raise ValueError(f"index {letter} is neither occupied (i to o) nor virtual (a to h)")


def _target(heading: str, terms: Sequence[_Term]) -> dict[str, Any]:
    """A target of the term list: free indices occur once in a term, or are exchanged."""
    name, _, inside = heading.partition("(")
    written = _letters(inside.rstrip(")"))
    free: dict[str, None] = {}
    for term in terms:
        every = [x for f in term.factors for x in re.findall(r"[\w]+", f.partition("[")[2])]
        free.update({x: None for x in every if every.count(x) == 1})
        free.update({x: None for _, held in term.operators for x in held})
    found = sorted(free, key=lambda x: (_space(x).lower() == "o", x.lower(), x))
    if written:
        left = [next((x for x in found if x.lower() == w.lower()), w) for w in written]
    else:
        left = found
    name = name or (f"r{len(left) // 2}" if left else "e")
    made = [
        {"coef": t.coeff, "factors": list(t.factors), "perms": signed_letters(t.operators, left)}
        for t in terms
    ]
    return {"out": f"{name}[{','.join(left)}]", "terms": made}


def signed_letters(
    operators: Sequence[tuple[str, tuple[str, ...]]], left: Sequence[str]
) -> list[list[Any]]:
    """Permutation operators as a term list has them: signed lists of the left letters.

    Args:
        operators: kind (P, PP2, PP3 or PP6) and letters, the last applied first.
        left: letters of the target.

    Example:
        >>> signed_letters([("P", ("i", "j"))], ["a", "i", "j"])
        [[1, ['a', 'i', 'j']], [-1, ['a', 'j', 'i']]]
    """
    perms: list[list[Any]] = []
    for choice in itertools.product(*(_images(kind, held) for kind, held in operators)):
        sign, names = 1, {x: x for x in left}
        for one, mapping in reversed(choice):
            sign *= one
            names = {x: mapping.get(y, y) for x, y in names.items()}
        perms.append([sign, [names[x] for x in left]])
    return perms if operators else []


def _images(kind: str, held: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """Terms of one operator: sign and renaming."""
    if kind == "P":
        return [(1, {}), (-1, dict(zip(held, reversed(held), strict=True)))]
    pairs = pairs_of(held)
    orders = list(itertools.permutations(range(len(pairs))))
    if kind == "PP3":
        orders = [(0, 1, 2), (1, 0, 2), (2, 1, 0)]
    return [
        (1, {a: b for k, m in enumerate(o) for a, b in zip(pairs[k], pairs[m], strict=True)})
        for o in orders
    ]


def pairs_of(held: tuple[str, ...]) -> list[tuple[str, str]]:
    """Pairs of an operator that is written (i,a,j,b) or (i,j,a,b).

    Example:
        >>> pairs_of(("i", "j", "a", "b")) == pairs_of(("i", "a", "j", "b"))
        True
    """
    if _space(held[0]).lower() == _space(held[1]).lower():
        half = len(held) // 2
        return list(zip(held[:half], held[half:], strict=True))
    return list(zip(held[::2], held[1::2], strict=True))
