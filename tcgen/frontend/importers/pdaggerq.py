"""Equations of pdaggerq: the lists that ``pq_helper.strings()`` returns, and its JSON lines.

    ['-0.500', 'P(i,j)', '<j,k||b,i>', 't2(b,a,j,k)']

P(i,j) X = X - X(i<->j). PP2, PP3 and PP6 exchange pairs of labels, PP3(i,a,j,b,k,c): PP2 adds the
exchange, PP3 adds those of the first pair with the second and with the third, PP6 adds all six.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ...errors import Diagnostic, SpecError
from ...ir.system import System
from ..exact_numbers import rational
from ..source import refuse_deep_nesting
from ..terms import read_term_data
from .conventions import amplitudes, check_texts, integrals, refuse, signed_letters, with_integrals
from .pdaggerq_ir import read_ir

String: TypeAlias = Sequence[str]
"""One term: coefficient, permutation operators, factors."""

_INTEGRAL = re.compile(r"<(\w+,\w+)\|\|(\w+,\w+)>(?:_([ab]+|[01]+))?", re.ASCII)
_FACTOR = re.compile(r"(d[+-]|[A-Za-z]\w*?)(?:_([ab]+|[01]+))?(?:\(([\w,]+)\))?", re.ASCII)
_OPERATOR = re.compile(r"(P|PP2|PP3|PP6)\(([\w,]+)\)", re.ASCII)
_PAIRS = {"P": 1, "PP2": 2, "PP3": 3, "PP6": 3}
_HEADING = re.compile(r"([A-Za-z]\w*(?:\([^()]*\))?)\s*\+?[=:]", re.ASCII)
_OCCUPIED, _VIRTUAL = "ijklmno", "abcdefgh"
_DIPOLE = "dp"
_BY_BLOCKS = {"f": 2, "h": 2, _DIPOLE: 2, "v": 4, "g": 4}


def from_pdaggerq(
    source: str | Sequence[String] | Sequence[str] | Mapping[str, Sequence[String]],
    *,
    name: str = "pdaggerq",
    real: bool = False,
    filename: str = "<pdaggerq>",
) -> System:
    """The system of equations that pdaggerq derived.

    Args:
        source: the lists of one projection; ``{"r2(a,b,i,j)": pq.strings(), ...}`` for several;
            their printed text, with a line ``r2(a,b,i,j) =`` before each target; or the JSON lines
            that ``pq_graph.to_strings("ir")`` returns, as text or as they are. The target of one
            projection is e, r1, r2, ... after its free indices, but s1, s2, ... if it reads r1, ...
        name: name of the system.
        real: orbitals are real, so that bra and ket of f and <pq||rs> may be exchanged. JSON lines
            have an array for each block that they name; this has no effect on them.
        filename: name for messages.

    Returns:
        Inputs are f_oo, v_oovv = <ij||ab>, ... and the amplitudes with their axes as written,
        t2[a,b,i,j]. In strings blocked by spin the indices of beta orbitals get upper case letters
        and the spaces O and V; in strings blocked by label ranges those of active orbitals do.

        A warning names coefficients that may be several ratios of small factorials, or none.

    Raises:
        ArgumentError: a keyword is of another type.
        SpecError: with all terms that cannot be understood.

    Example:
        >>> strings = [["+0.250", "<i,j||a,b>", "t2(a,b,i,j)"], ["+1.0", "f(i,a)", "t1(a,i)"]]
        >>> print(from_pdaggerq(strings).pretty(), end="")
        e = sum(i,j,a,b) 1/4*v_oovv[i,j,a,b]*t2[a,b,i,j]
          + sum(i,a) f_ov[i,a]*t1[a,i]
    """
    check_texts(name=name, filename=filename)
    with refuse_deep_nesting(filename):
        if isinstance(source, list | tuple) and source and isinstance(source[0], str):
            source = "\n".join(map(str, source))
        if isinstance(source, str) and is_ir(source):
            return read_ir(source, name, filename)
        return _system(_groups(source, filename), name, real, filename)


def _groups(source: object, filename: str) -> dict[str, list[tuple[int, String]]]:
    """Headings, and the numbered lists of each."""
    if isinstance(source, str):
        return _printed(source, filename)
    if not isinstance(source, Mapping):
        return {"": _numbered(source, filename)}
    groups = {}
    for heading, strings in source.items():
        if not isinstance(heading, str) or not _HEADING.fullmatch(f"{heading}="):
            message = f"{heading!r:.80} is not a target"
            raise refuse(filename, 1, "", message, "write a name and labels: r2(a,b,i,j)")
        groups[heading] = _numbered(strings, filename)
    if not groups:
        raise refuse(filename, 1, "", "no terms", 'pass {"r2(a,b,i,j)": pq.strings()}')
    return groups


def _system(
    groups: dict[str, list[tuple[int, String]]], name: str, real: bool, filename: str
) -> System:
    problems: list[Diagnostic] = []
    letters = _Letters()
    targets, tensors, inexact = [], dict[str, Any](), dict[str, str]()
    for heading, strings in groups.items():
        terms = []
        for number, string in strings:
            try:
                term = _term(string, letters)
                terms.append(term)
                tensors.update(term.tensors)
                if not term.is_certain:
                    inexact.setdefault(
                        string[0],
                        f"{filename}:{number}: {string[0]} in {' '.join(string)} may be several "
                        f"ratios of small factorials, or none: it is read as {term.coeff}; "
                        f"to_strings('ir') has exact ones",
                    )
            except ValueError as error:
                advice = "write terms such as ['+0.250', '<i,j||a,b>', 't2(a,b,i,j)']"
                line = f"{string!s:.500}"
                problems += refuse(filename, number, line, str(error), advice).diagnostics
        try:
            targets.append(_target(heading, terms))
        except ValueError as error:
            advice = "write r2(a,b,i,j) with the free labels of its terms"
            problems += refuse(filename, strings[0][0], heading, str(error), advice).diagnostics
    if problems:
        raise SpecError(tuple(problems))
    upper = {"O": list(_OCCUPIED.upper()), "V": list(_VIRTUAL.upper())}
    data = {
        "name": name,
        "ranges": {"o": list(_OCCUPIED), "v": list(_VIRTUAL), **upper},
        "tensors": {**tensors, **_declared(real)},
        "targets": targets,
    }
    system = with_integrals(read_term_data(data, filename))
    return replace(system, warnings=(*system.warnings, *inexact.values()))


def is_ir(text: str) -> bool:
    """True for JSON lines: the first line that is not a comment starts with a brace."""
    lines = (line.strip() for line in text.split("\n"))
    return next((x for x in lines if x and not x.startswith("#")), "").startswith("{")


def _declared(real: bool) -> dict[str, Any]:
    """Constant tensors given by blocks: integrals, and the dipole integrals of d+ and d-."""
    declared = integrals(real=real)
    one_body: dict[str, Any] = declared["f"]
    return {**declared, "h": one_body, _DIPOLE: one_body, "g": {"constant": True}}


@dataclass(frozen=True, slots=True)
class _Term:
    """A term, its indices in the letters of their spaces; ``letters`` are the names of labels.

    ``is_certain`` is false for a coefficient whose digits may be those of several ratios.
    """

    coeff: str
    is_certain: bool
    factors: tuple[str, ...]
    free: tuple[str, ...]
    letters: dict[str, str]
    operators: tuple[tuple[str, tuple[str, ...]], ...]
    tensors: dict[str, Any]


class _Letters:
    """Names of indices: upper case belongs to the spaces O and V, numbers make names unique."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, bool], str] = {}
        self._taken: set[str] = set()

    def name(self, label: str, block: str) -> str:
        """Index name of a label whose spin or range is ``block``; "" if it is unknown."""
        upper = block in ("b", "1")
        if (label, upper) not in self._names:
            stem, number = label, itertools.count(1)
            if not label[0].islower() or not label.isalpha():
                stem = _letter(label)
            plain = name = stem.upper() if upper else stem
            while name in self._taken or (stem != label and name == plain):
                name = f"{plain}{next(number)}"
            self._taken.add(name)
            self._names[label, upper] = name
        return self._names[label, upper]


def _letter(label: str) -> str:
    """The lower case letter whose space a label has: I is occupied, o1 and v1 are too long."""
    first = label[0].lower()
    return "a" if first == "v" else first


def _numbered(strings: object, filename: str) -> list[tuple[int, String]]:
    """The lists of one target, each with its number."""
    advice = "pass what strings() returned: lists such as ['+0.250', '<i,j||a,b>', 't2(a,b,i,j)']"
    if not isinstance(strings, Iterable) or isinstance(strings, str | Mapping):
        kind = type(strings).__name__
        raise refuse(filename, 1, f"{strings!r:.80}", f"{kind} is not a list of terms", advice)
    numbered = list(enumerate(strings, 1))
    for number, string in numbered:
        if not isinstance(string, list | tuple) or not all(isinstance(x, str) for x in string):
            shown = f"{string!r:.80}"
            raise refuse(filename, number, shown, "a term is not a list of strings", advice)
    if not numbered:
        advice = "call simplify() before strings(); leave out targets that are zero"
        raise refuse(filename, 1, "", "no terms", advice)
    return numbered


def _printed(text: str, filename: str) -> dict[str, list[tuple[int, String]]]:
    """Targets and lists of a text."""
    groups: dict[str, list[tuple[int, String]]] = {}
    heading = ""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip().rstrip(",")
        if not line or line.startswith("#"):
            continue
        title = _HEADING.fullmatch(line)
        if title:
            heading = title[1]
            groups.setdefault(heading, [])
            continue
        try:
            value = ast.literal_eval(line)
        except (SyntaxError, ValueError, MemoryError, RecursionError):  # the last two: too deep
            value = None
        if not isinstance(value, list | tuple) or not all(isinstance(x, str) for x in value):
            advice = (
                "write r2(a,b,i,j) = before the lists ['+1.0', 'f(i,a)', 't1(a,i)'] of a target"
            )
            raise refuse(
                filename, number, line, "the line is neither a target nor a list of strings", advice
            )
        groups.setdefault(heading, []).append((number, value))
    if not any(groups.values()):
        advice = "write the lists that strings() returns to the file"
        raise refuse(filename, 1, "", "no terms", advice)
    return {heading: strings for heading, strings in groups.items() if strings}


@dataclass(frozen=True, slots=True)
class _Part:
    """A factor: name, spins or ranges of its labels, labels, and number of upper labels."""

    name: str
    block: str
    labels: tuple[str, ...]
    upper: int


def _term(string: String, letters: _Letters) -> _Term:
    """Reads one list."""
    if not string:
        raise ValueError("the term is empty")
    try:
        coeff, is_certain = rational(string[0])
    except ValueError as error:
        shown = f"{string[0]!r:.40}"
        raise ValueError(f"the coefficient {shown} is not a usable number: {error}") from None
    operators: list[tuple[str, tuple[str, ...]]] = []
    parts: list[_Part] = []
    for text in string[1:]:
        operator = _OPERATOR.fullmatch(text)
        if operator:
            held = tuple(operator[2].split(","))
            if len(held) != 2 * _PAIRS[operator[1]]:
                raise ValueError(f"{text} has {len(held)} labels, not {2 * _PAIRS[operator[1]]}")
            operators.append((operator[1], held))
        else:
            parts.append(_part(text))
    blocks = _blocks(parts)
    names = {label: letters.name(label, block) for label, block in blocks.items()}
    factors, tensors = [], dict[str, Any]()
    for part in parts:
        written = [names[x] for x in part.labels]
        name = part.name
        if name == "d":
            name = "delta"
        elif name not in _BY_BLOCKS:
            name = f"{name}_{part.block}" if part.block else name
            tensors[name] = _amplitudes(part, [_space(x) for x in written])
        factors.append(f"{name}[{','.join(written)}]" if written else name)
    for _, held in operators:
        for label in held:
            if label not in names:
                raise ValueError(f"the label {label} of an operator is not on any tensor")
    named = tuple((kind, tuple(names[x] for x in held)) for kind, held in operators)
    every = [x for part in parts for x in part.labels]
    moved = [x for _, held in operators for x in held]
    free = tuple(names[x] for x in dict.fromkeys((*every, *moved)) if every.count(x) == 1)
    return _Term(str(coeff), is_certain, tuple(factors), free, names, named, tensors)


def _amplitudes(part: _Part, spaces: Sequence[str]) -> dict[str, Any]:
    """The declaration of amplitudes, antisymmetric in each half if it is of one space.

    Those of states with more or fewer electrons, r2(a,b,i) and r3(a,b,c,i), do not have halves:
    they are antisymmetric in neighbours of one space.
    """
    declared = amplitudes(spaces, part.upper)
    if len(spaces) % 2 or re.fullmatch(r"[lr]\d+", part.name):
        runs = itertools.groupby(range(len(spaces)), key=lambda k: spaces[k])
        declared["antisym"] = [run for run in (list(run) for _, run in runs) if len(run) > 1]
    return declared


def _part(text: str) -> _Part:
    integral, factor = _INTEGRAL.fullmatch(text), _FACTOR.fullmatch(text)
    if integral:
        labels = (*integral[1].split(","), *integral[2].split(","))
        part = _Part("v", integral[3] or "", labels, 2)
    elif factor:
        labels = tuple(factor[3].split(",")) if factor[3] else ()
        name = _DIPOLE if factor[1] in ("d+", "d-") else factor[1]
        part = _Part(name, factor[2] or "", labels, len(labels) // 2)
    elif re.fullmatch(r"(a\*?\(\w+\)|B[+-]?\*?)", text):
        raise ValueError(f"{text!r} is an operator that remains: project it out first")
    else:
        raise ValueError(f"{text!r} is neither a tensor nor a permutation operator")
    if part.block and len(part.block) != len(part.labels):
        raise ValueError(
            f"the block {part.block} of {text} has {len(part.block)} letters, and there are "
            f"{len(part.labels)} labels"
        )
    for label in part.labels:
        _space(label)
    rank = _BY_BLOCKS.get(part.name)
    if rank is not None and len(part.labels) != rank:
        raise ValueError(f"{text} has {len(part.labels)} labels, not {rank}")
    return part


def _blocks(parts: Iterable[_Part]) -> dict[str, str]:
    """Spin or range of each label; "" if it is unknown."""
    blocks: dict[str, str] = {}
    for part in parts:
        for label, one in zip(part.labels, part.block or [""] * len(part.labels), strict=True):
            if blocks.setdefault(label, one) != one:
                both = {"a", "b"} == {blocks[label], one}
                kind = "both spins" if both else "two blocks"
                raise ValueError(f"index {label} has {kind}")
    return blocks


def _space(label: str) -> str:
    """Space of a label, or of the index named after it."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", label):
        raise ValueError(f"{label!r} is not a label such as i, a or i1")
    if re.fullmatch(r"n[a-zA-Z]\w*", label):
        raise ValueError(
            f"{label} is the label of a nucleus: for multicomponent theories export JSON lines, "
            "which say the particle of each label"
        )
    for space, letters in (("o", _OCCUPIED), ("v", _VIRTUAL)):
        if _letter(label) in letters:
            return space if label[0].islower() else space.upper()
    raise ValueError(f"index {label} is neither occupied (i to o) nor virtual (a to h)")


def _target(heading: str, terms: Sequence[_Term]) -> dict[str, Any]:
    """A target of the term list; its indices are those that occur once in a term."""
    name, _, inside = heading.partition("(")
    inside = inside.rstrip(")").strip()
    written = tuple(x.strip() for x in inside.split(",")) if inside else ()
    for label in written:
        _space(label)
    free = sorted(
        dict.fromkeys(x for term in terms for x in term.free),
        key=lambda x: (_space(x).lower() == "o", x.lower(), x),
    )
    left = free
    if "(" in heading:
        left = [_named(label, terms) for label in written]
        if len(set(left)) < len(left):
            raise ValueError(f"the labels of {heading} are not distinct")
        if set(free) - set(left):
            extra = ", ".join(x for x in free if x not in left)
            raise ValueError(f"{heading} lacks the free labels {extra}")
    for term in terms:
        missing = [x for x in left if x not in term.letters.values()]
        if missing:
            raise ValueError(
                f"{heading or 'the target'} has the labels {', '.join(left)}, and a term lacks "
                f"{', '.join(missing)}: {'*'.join(term.factors) or term.coeff}"
            )
    if not name:
        # Sigma vectors of an EOM list read r1, r2, ...; states of odd rank are r1[a], r2[a,b,i].
        read = {factor.partition("[")[0] for term in terms for factor in term.factors}
        letter = "s" if any(re.fullmatch(r"r\d+", other) for other in read) else "r"
        name = f"{letter}{(len(left) + 1) // 2}" if left else "e"
    made = [
        {"coef": t.coeff, "factors": list(t.factors), "perms": signed_letters(t.operators, left)}
        for t in terms
    ]
    return {"out": f"{name}[{','.join(left)}]", "terms": made}


def _named(label: str, terms: Sequence[_Term]) -> str:
    """The index of a label of a heading, which is the same in all terms."""
    names = dict.fromkeys(t.letters[label] for t in terms if label in t.letters)
    if len(names) > 1:
        raise ValueError(f"label {label} of the heading has two spins or ranges in its terms")
    return next(iter(names), label)
