"""Term lists in JSON: targets, each a sum of products with coefficients and permutations.

    {"ranges": {"o": ["i", "j"]}, "tensors": {"t2": {"axes": ["o", "o", "v", "v"]}},
     "targets": [{"out": "r2[i,j,a,b]", "terms": [
        {"coef": 0.5, "factors": ["f[j,k]", "t2[i,k,a,b]"], "denom": ["eo[i]", "-ev[a]"],
         "perms": [[1, ["i", "j", "a", "b"]], [-1, ["j", "i", "a", "b"]]]}]}]}

An index that is not on the left is summed; ``delta[i,j]`` is also a factor. A tensor declared
without axes (the integrals v, the Fock matrix f) is given by blocks, named after the ranges of its
indices. Targets that no other target reads are outputs. Instead of a sign, "perms" may have any
integer. Unknown keys are refused.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import Diagnostic, Span, SpecError, TcgenError
from ..ir.expr import Const, Delta, Expr, Prod, Quot, Sum
from ..ir.system import Apply, Equation, Factor, System, Term
from ..ir.tensor import (
    Index,
    Ref,
    Role,
    Space,
    Symmetry,
    Tensor,
    distinct,
    exchanged,
    symmetry_group,
)
from ..ir.term_rewriting import resolve_deltas
from ..simplices import parity
from .assemble import (
    FEWER,
    MOST_PERMUTATIONS,
    TOO_MANY,
    Counts,
    add_terms,
    assemble,
    find_cycles,
    permutation_lists,
)
from .blocks import Family, family_of, permuted
from .exact_numbers import OUTSIDE, exact, rejection_reason
from .source import Kind, faults_of_keys, load_json, read_text, refuse_deep_nesting

_KINDS = {"o": "occupied", "v": "virtual", "x": "auxiliary", "q": "quadrature"}
_BLOCKS = "by index ranges"
_NULL = type(None)  # a key with null is as one that is absent, where it may be
_TEXT, _COUNT = Kind("a text", (str, _NULL)), Kind("an integer", (int,))
_TARGETS = Kind('"targets": [{"out": .., "terms": [..]}]', (list,))
_AXES = Kind('"axes": ["o", "v"]', (list, str, _NULL))
# "note", "doc", "inputs" and "meaning" are texts for readers.
_KEYS = {
    "list": {
        "name": _TEXT,
        "ranges": Kind('"ranges": {"o": ["i", "j"], "v": ["a", "b"]}', (dict,)),
        "tensors": Kind('"tensors": {"t1": {"axes": ["o", "v"]}}', (dict,)),
        "targets": _TARGETS,
        "n_targets": _COUNT,
        "n_terms": _COUNT,
        "note": _TEXT,
        "doc": _TEXT,
        "inputs": _TEXT,
    },
    "range": {"letters": Kind('"letters": "i j k"', (str, list)), "meaning": _TEXT, "note": _TEXT},
    "tensor": {
        "axes": _AXES,
        "shape": _AXES,
        "antisym": Kind('"antisym": [[0, 1], [2, 3]]', (list, _NULL)),
        "sym": Kind('"sym": "sym(0,1)", or a list of such texts', (str, list, _NULL)),
        "constant": Kind('"constant": true or false', (bool,)),
        "blocks": Kind(f'"{_BLOCKS}": the terms show which blocks there are', (str,)),
        "note": _TEXT,
    },
    "target": {
        "out": Kind('"out": "r1[i,a]"', (str,)),
        "terms": Kind('"terms": [{"coef": .., "factors": [..]}]', (list,)),
        "antisymmetrize": Kind('"antisymmetrize": [["i", "j"], ["a", "b"]]', (list, _NULL)),
        "note": _TEXT,
    },
    "term": {
        "coef": Kind('"coef": 0.25 or "coef": "1/4"'),
        "factors": Kind('"factors": ["t1[i,a]", ..]', (list,)),
        "denom": Kind('"denom": ["eo[i]", "-ev[a]"]', (list, _NULL)),
        "perms": Kind('"perms": [[1, ["i", "j"]], [-1, ["j", "i"]]]', (list, _NULL)),
        "note": _TEXT,
    },
}
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE = re.compile(rf"(-?) ?({_NAME}) ?(?:\[ ?({_NAME}(?: ?, ?{_NAME})*)? ?\])?")
Wrong: TypeAlias = Callable[[str, str], None]
"""Receives a problem: message and advice."""
_DEFAULT_LETTERS = {"o": "ijklmno", "v": "abcdefgh", "x": "PQRSTUVX", "q": "Ww"}
_WORD = re.compile(
    r"[ ,;]*(?:(?P<word>8-fold|antisym|sym|swap)(?:\((?P<axes>[0-9, ]+)\))?"
    r"|(?P<left>[A-Za-z_]\w*(?:\[[^\]]*\])?)\s*+=\s*+(?P<sign>-?)\s*+"
    r"(?P<right>[A-Za-z_]\w*(?:\[[^\]]*\])?))"
)


def read_terms_file(path: Path) -> System:
    """The system of a .json term list; errors are those of :func:`read_terms` and of the file."""
    return read_terms(read_text(path), str(path))


def read_terms(text: str, filename: str) -> System:
    """The system of a term list in JSON.

    The stem of ``filename``, which messages show, names a list that has no "name". A SpecError has
    all errors, each with its target and term.

    Example:
        >>> print(read_terms('''{"targets": [{"out": "e", "terms": [
        ...     {"coef": 0.25, "factors": ["v[i,j,a,b]", "t[a,b,i,j]"]}]}]}''', "e.json").pretty())
        e = sum(i,j,a,b) 1/4*v_oovv[i,j,a,b]*t[a,b,i,j]
        <BLANKLINE>
    """
    try:
        data = load_json(text)
    except json.JSONDecodeError as error:
        span = Span(filename, error.lineno, error.colno)
        line = text.split("\n")[error.lineno - 1]
        problem = Diagnostic(span, f"not valid JSON: {error.msg}", line, "fix the JSON here")
        raise SpecError((problem,)) from None
    except (RecursionError, ValueError) as error:
        deep = isinstance(error, RecursionError)
        message = "the lists are nested too deeply" if deep else f"not valid JSON: {error}"
        problem = Diagnostic(Span(filename, 1, 1), message, advice="fix the JSON")
        raise SpecError((problem,)) from None
    with refuse_deep_nesting(filename):
        reader = _Reader(data, filename)
        system = reader.system()
        return replace(system, warnings=(*system.warnings, *reader.unread()))


def read_term_data(data: Any, filename: str) -> System:
    """The system of a term list as Python objects; importers make such lists."""
    with refuse_deep_nesting(filename):
        return _Reader(data, filename).system()


@dataclass(frozen=True, slots=True)
class _Target:
    """A target as written; ``antisymmetrize`` are groups of left letters."""

    name: str
    left: tuple[Index, ...]
    terms: tuple[Any, ...]
    antisymmetrize: tuple[tuple[str, ...], ...]


class _Reader:
    """Reads one list and collects its errors, to report all of them together."""

    def __init__(self, data: Any, filename: str) -> None:
        self._file = filename
        self._problems: list[Diagnostic] = []
        targets = data.get("targets") if isinstance(data, dict) else None
        if not isinstance(targets, list) or not targets:
            self._wrong(
                "the list has no targets", 'write {"targets": [{"out": .., "terms": [..]}]}'
            )
            data = {"targets": []}
        self._data = data
        self._has_right_keys(data, "list", "")
        self._ranges = read_ranges(data, self._wrong)
        self._spaces: dict[str, Space] = {}
        self._declared = read_declared(data, self._wrong)
        self._targets: dict[str, Tensor] = {}
        self._inputs: dict[str, Tensor] = {}
        self._families: dict[str, Family] = {}
        self._blocks: dict[str, dict[str, Tensor]] = {}

    def system(self) -> System:
        """The system of the list."""
        targets = [t for t in map(self._target, self._data["targets"]) if t is not None]
        self._check_counts(targets)
        texts = {t.name: {self._split(x)[1] for y in t.terms for x in _texts(y)} for t in targets}
        read = {other for name in texts for other in texts[name] if other != name}
        for target in targets:
            role = Role.TEMP if target.name in read else Role.OUTPUT
            tensor = Tensor(target.name, tuple(i.space for i in target.left), role)
            if self._targets.setdefault(target.name, tensor) != tensor:
                message = f"target {target.name}: its axes differ from those before"
                self._wrong(message, "use letters of the same ranges")
        equations: dict[str, Equation] = {}
        for target in targets:
            perms = self._antisymmetrizer(target)
            numbered = enumerate(target.terms)
            made = tuple(t for k, data in numbered for t in self._term(target, perms, k, data))
            tensor = self._targets[target.name]
            if tensor.rank == len(target.left):
                add_terms(equations, Ref(tensor, target.left), made)
        self._check_order(list(equations.values()))
        self._check_names()
        if not self._problems:
            self._check_left(list(equations.values()))
        if self._problems:
            raise SpecError(tuple(self._problems))
        outputs = [t for t in self._targets.values() if t.role is Role.OUTPUT]
        name = str(self._data.get("name") or Path(self._file).stem)
        spaces = tuple(
            sorted(self._spaces.values(), key=lambda s: list(self._ranges).index(s.name))
        )
        return assemble(name, spaces, self._all_inputs(), outputs, list(equations.values()))

    def unread(self) -> list[str]:
        """A warning of the declared tensors that no term reads, after the system is made."""
        used = {*self._inputs, *self._blocks, *self._targets}
        names = ", ".join(name for name in self._declared if name not in used)
        if not names:
            return []
        return [f"{self._file}: no term reads what tensors declares as {names}: check the names"]

    def _all_inputs(self) -> list[Tensor]:
        """Inputs in declared order, blocks sorted by their spaces."""
        order = {name: n for n, name in enumerate(self._declared)}
        names = list(dict.fromkeys((*self._inputs, *self._blocks)))
        names.sort(key=lambda name: order.get(name, len(order)))
        inputs: list[Tensor] = []
        for name in names:
            if name in self._inputs:
                inputs.append(self._inputs[name])
            inputs += (t for _, t in sorted(self._blocks.get(name, {}).items()))
        return inputs

    def _space(self, name: str) -> Space:
        return self._spaces.setdefault(name, Space(name, kind=_KINDS.get(name)))

    def _index(self, letter: str, where: str) -> Index:
        for name, letters in self._ranges.items():
            if letter[0] in letters:
                return Index(letter, self._space(name))
        known = ", ".join(f"{name}: {' '.join(x)}" for name, x in self._ranges.items())
        self._wrong(
            f"{where}: index {letter} is not in a range", f"use letters of the ranges: {known}"
        )
        return Index(letter, self._space(next(iter(self._ranges))))

    def _target(self, data: Any) -> _Target | None:
        if not isinstance(data, dict) or not isinstance(data.get("out"), str):
            self._wrong("a target has no out", 'write {"out": "r1[i,a]", "terms": [..]}')
            return None
        where = f"target {data['out']}"
        if not self._has_right_keys(data, "target", f"{where}: "):
            return None
        if "terms" not in data:
            self._wrong(f"{where} has no terms", 'write "terms": [{"coef": .., "factors": [..]}]')
            return None
        sign, name, letters = self._split(data["out"])
        if sign or not name:
            self._wrong(f"{where} is not of the form name[i,j]", "write for example r1[i,a]")
            return None
        left = tuple(self._index(x, where) for x in letters)
        if len(set(left)) != len(left):
            self._wrong(f"{where}: its indices are not distinct", "use different letters")
        groups = data.get("antisymmetrize") or []
        known = {i.name: i.space for i in left}
        for group in groups:
            named = [str(x) for x in group] if isinstance(group, list) else ["?"]
            spaces = {known.get(x) for x in named}
            if None in spaces or len(spaces) > 1 or len(set(named)) < len(named):
                advice = f"write groups of the letters {sorted(known)}, each of one range"
                self._wrong(f"{where}: antisymmetrize {group!s:.80} is not understood", advice)
                return None
        letter_groups = tuple(tuple(str(x) for x in group) for group in groups)
        if len({x for group in letter_groups for x in group}) < sum(map(len, letter_groups)):
            self._wrong(
                f"{where}: groups of antisymmetrize share letters", "write each letter once"
            )
            return None
        if math.prod(math.factorial(len(group)) for group in letter_groups) > MOST_PERMUTATIONS:
            self._wrong(f"{where}: antisymmetrize makes {TOO_MANY}", FEWER)
            return None
        return _Target(name, left, tuple(data["terms"]), letter_groups)

    def _term(self, target: _Target, anti: Counts, number: int, data: Any) -> Iterator[Term]:
        left, where = target.left, f"target {target.name}, term {number + 1}"
        if not isinstance(data, dict) or not isinstance(data.get("factors"), list):
            self._wrong(f"{where} has no factors", 'write "factors": ["t1[i,a]", ..]')
            return
        if not self._has_right_keys(data, "term", f"{where}: "):
            return
        try:
            coeff = exact(data.get("coef"))
        except ValueError as error:
            message = f"{where}: the coefficient is not a usable number: {error}"
            self._wrong(message, 'write "coef": 0.25 or "coef": "1/4"')
            return
        factors: list[Factor] = []
        for text in data["factors"]:
            sign, name, letters = self._split(text)
            if name == "delta" and len(letters) == 2:
                coeff *= -1 if sign else 1
                factors.append(Delta(*(self._index(x, where) for x in letters)))
                continue
            read = self._reference(text, where)
            if read is None:
                return
            coeff *= read[0]
            factors.append(read[1])
        denominator = self._denominator(data.get("denom") or [], where)
        if denominator is not None:
            factors.append(denominator)
        listed = data.get("perms")
        if anti and listed:
            message = f"{where} has perms, and its target antisymmetrize"
            self._wrong(message, "write all permutations in perms, or only antisymmetrize")
            return
        perms = self._perms(listed, left, where) if listed else anti
        term = Term(coeff, tuple(factors))
        sums = tuple(i for i in distinct(term.indices) if i not in left)
        resolved = resolve_deltas(replace(term, sums=sums))
        if not coeff or resolved is None:
            return
        for count, images in permutation_lists(perms, len(left)) if perms else [(1, ())]:
            coeff = resolved.coeff * count
            reason = rejection_reason(coeff)
            if reason:
                self._wrong(f"{where}: the number of this product {reason}", OUTSIDE)
            yield replace(resolved, coeff=coeff, perms=images)

    def _denominator(self, texts: list[Any], where: str) -> Apply | None:
        parts: list[Expr] = []
        for text in texts:
            read = self._reference(text, where)
            if read is not None:
                sign, ref = read
                parts.append(ref if sign > 0 else Prod((Const(Fraction(-1)), ref)))
        if not parts:
            return None
        return Apply(Quot(Const(Fraction(1)), Sum(tuple(parts)) if len(parts) > 1 else parts[0]))

    def _reference(self, text: Any, where: str) -> tuple[int, Ref] | None:
        """Sign and reference of ``-name[i,j]``; a block is read from its representative."""
        minus, name, letters = self._split(text)
        if not name:
            self._wrong(f"{where}: {text!r:.80} is not of the form name[i,j]", "write t1[i,a]")
            return None
        sign = -1 if minus else 1
        indices = tuple(self._index(x, where) for x in letters)
        if name not in self._targets and self._by_ranges(name):
            return self._block(name, indices, sign, where)
        tensor = self._targets.get(name) or self._input(name, indices)
        if tensor is None:
            return None
        if tensor.spaces != tuple(i.space for i in indices):
            axes = ",".join(s.name for s in tensor.spaces)
            self._wrong(f"{where}: {text} does not fit {name}[{axes}]", "check its letters")
            return None
        return sign, Ref(tensor, indices)

    def _by_ranges(self, name: str) -> bool:
        entry = self._declared.get(name)
        if entry is None:
            return name in ("v", "f")
        return "axes" not in entry and "shape" not in entry

    def _input(self, name: str, indices: tuple[Index, ...]) -> Tensor | None:
        if name in self._inputs:
            return self._inputs[name]
        entry = self._declared.get(name)
        axes = None if entry is None else entry.get("axes", entry.get("shape"))
        spaces = tuple(i.space for i in indices) if axes is None else ()
        for axis in map(str, axes or ()):
            if axis not in self._ranges:
                self._wrong(f"tensor {name}: axis {axis} is not a range", "add it to ranges")
                return None
            spaces = (*spaces, self._space(axis))
        volatile = not (entry or {}).get("constant", False)
        try:
            symmetry = read_symmetry(entry or {}, len(spaces))
            if any(permuted(spaces, s) != spaces for s in symmetry):
                raise ValueError("a symmetry exchanges axes of different ranges")
            self._inputs[name] = Tensor(name, spaces, Role.INPUT, volatile, symmetry)
            symmetry_group(self._inputs[name])  # raises if it forces zero or is too large
        except (ValueError, TcgenError) as error:
            self._wrong(f"tensor {name}: {error}", "for example sym(0,1), antisym(2,3), pq=qp")
            return None
        return self._inputs[name]

    def _block(
        self, name: str, indices: tuple[Index, ...], sign: int, where: str
    ) -> tuple[int, Ref] | None:
        """The first block, in the order of the ranges, that symmetry reaches from this one."""
        family = self._family(name, len(indices), where)
        if family is None:
            return None
        order = list(self._ranges)
        spaces = tuple(i.space for i in indices)
        reached = [permuted(spaces, s) for s in family.group]
        block = min(reached, key=lambda b: [order.index(s.name) for s in b])
        whole = family_of(family.parent, (block,))
        tensor = whole.members[0]
        symmetry = next(s for s in whole.group if permuted(spaces, s) == block)
        blocks = self._blocks.setdefault(name, {})
        blocks.setdefault(tensor.name, tensor)
        return sign * symmetry.sign, Ref(tensor, tuple(indices[k] for k in symmetry.perm))

    def _family(self, name: str, rank: int, where: str) -> Family | None:
        if name not in self._families:
            anything = Space("any")
            try:
                entry = self._declared.get(name, {})
                symmetry, volatile = read_symmetry(entry, rank), not entry.get("constant", False)
                parent = Tensor(name, (anything,) * rank, Role.INPUT, volatile, symmetry)
                self._families[name] = family_of(parent, ())
            except ValueError as error:
                self._wrong(f"tensor {name}: {error}", "for example sym(0,1), antisym(2,3), pq=qp")
                return None
        family = self._families[name]
        if family.parent.rank != rank:
            self._wrong(
                f"{where}: {name} has {rank} indices here, {family.parent.rank} elsewhere",
                "use one rank",
            )
            return None
        return family

    def _perms(self, data: list[Any], left: tuple[Index, ...], where: str) -> Counts:
        letters, spaces = [i.name for i in left], {i.name: i.space for i in left}
        counts: Counter[tuple[int, ...]] = Counter()
        for entry in data:
            match entry:
                case [int() as count, [*images]] if (
                    not isinstance(count, bool)
                    and sorted(map(str, images)) == sorted(letters)
                    and [spaces[x] for x in images] == list(spaces.values())
                ):
                    counts[tuple(letters.index(x) for x in images)] += count
                case _:
                    advice = (
                        f"write [sign, indices], with a permutation of {letters} within each range"
                    )
                    self._wrong(f"{where}: perms entry {entry!s:.80} is not understood", advice)
                    return {}
        return counts

    def _antisymmetrizer(self, target: _Target) -> Counts:
        """Signed permutations of ``"antisymmetrize": [["i", "j"], ["a", "b"]]``."""
        letters = [i.name for i in target.left]
        counts = Counter({tuple(range(len(letters))): 1})
        for group in target.antisymmetrize:
            places = [letters.index(x) for x in group]
            moved: Counter[tuple[int, ...]] = Counter()
            orders = itertools.permutations(range(len(group)))
            for (images, count), order in itertools.product(counts.items(), orders):
                names = dict(zip(places, (places[k] for k in order), strict=True))
                moved[tuple(names.get(k, k) for k in images)] += count * parity(order)
            counts = moved
        return counts if target.antisymmetrize else {}

    def _check_left(self, equations: list[Equation]) -> None:
        """Refuse a left index that no term has: the result would be repeated along its axis."""
        for equation in equations:
            used = {i for term in equation.terms for i in term.indices}
            for index in equation.lhs.indices:
                if equation.terms and index not in used:
                    message = f"target {equation.lhs}: left index {index} occurs in no term"
                    self._wrong(message, f"remove {index}, or use it in a term")

    def _check_names(self) -> None:
        """Refuse a block that has the name of another tensor."""
        names = Counter(t.name for t in (*self._targets.values(), *self._all_inputs()))
        for name, count in names.items():
            if count > 1:
                self._wrong(f"two tensors have the name {name}", "rename one of them")

    def _check_order(self, equations: list[Equation]) -> None:
        for cycle in find_cycles(equations):
            names = " -> ".join(e.lhs.tensor.name for e in (*cycle, cycle[0]))
            self._wrong(
                f"circular definition: {names}", "change a target so that it does not read the next"
            )

    def _split(self, text: Any) -> tuple[str, str, tuple[str, ...]]:
        """Sign, name and letters of a reference; the name is empty for anything else."""
        match = _REFERENCE.fullmatch(" ".join(text.split())) if isinstance(text, str) else None
        if match is None:
            return "", "", ()
        letters = tuple(x.strip() for x in match[3].split(",")) if match[3] else ()
        return match[1], match[2], letters

    def _has_right_keys(self, data: dict[str, Any], level: str, where: str) -> bool:
        faults = list(faults_of_keys(data, level, _KEYS))
        for message, advice in faults:
            self._wrong(where + message, advice)
        return not faults

    def _check_counts(self, targets: Sequence[_Target]) -> None:
        """Refuse a list that has lost targets or terms since its numbers were written."""
        terms = sum(len(target.terms) for target in targets)
        for key, count in (("n_targets", len(self._data["targets"])), ("n_terms", terms)):
            written = self._data.get(key, count)
            if written != count and not self._problems:
                message = f"{key} is {written!s:.40}, but the list has {count}"
                self._wrong(message, f"complete the list, or correct {key}")

    def _wrong(self, message: str, advice: str) -> None:
        self._problems.append(Diagnostic(Span(self._file, 1, 1), message, "", advice))


def _texts(term: Any) -> list[str]:
    """References of a term as written."""
    if not isinstance(term, dict):
        return []
    texts = []
    for key in ("factors", "denom"):
        listed = term.get(key)
        texts += [x for x in listed if isinstance(x, str)] if isinstance(listed, list) else []
    return texts


def read_declared(data: dict[str, Any], wrong: Wrong) -> dict[str, dict[str, Any]]:
    """The valid entries of "tensors"."""
    declared = data.get("tensors")
    if not isinstance(declared, dict):
        return {}
    valid: dict[str, dict[str, Any]] = {}
    for name, entry in declared.items():
        if not isinstance(entry, dict):
            wrong(f"tensor {name} is not an object", 'write {"axes": ["o", "v"]}')
            continue
        faults = list(faults_of_keys(entry, "tensor", _KEYS))
        for message, advice in faults:
            wrong(f"tensor {name}: {message}", advice)
        if entry.get("blocks", _BLOCKS) != _BLOCKS:
            message = f"tensor {name}: blocks is {entry['blocks']!r:.40}"
            wrong(message, f"write {_KEYS['tensor']['blocks'].words}")
        if "axes" in entry and "shape" in entry:
            wrong(f"tensor {name} has axes and shape", "write only axes")
        valid[name] = {} if faults else entry
    return valid


def read_ranges(data: dict[str, Any], wrong: Wrong) -> dict[str, str]:
    """Letters of each range: those given, then unused ones of the convention."""
    ranges: dict[str, str] = {}
    given = data.get("ranges")
    for name, letters in given.items() if isinstance(given, dict) else ():
        if isinstance(letters, dict):
            for message, advice in faults_of_keys(letters, "range", _KEYS):
                wrong(f"range {name}: {message}", advice)
            text = letters.get("letters")
            letters = re.sub(r"\(.*?\)", "", text).split() if isinstance(text, str) else text
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            wrong(f"range {name!r} is not a name", 'write {"o": ["i", "j"]}')
        elif isinstance(letters, list) and all(isinstance(x, str) and x for x in letters):
            ranges[name] = "".join(x[0] for x in letters)
            for other, text in list(ranges.items())[:-1]:
                for letter in sorted(set(text) & set(ranges[name])):
                    wrong(
                        f"letter {letter} is in the ranges {other} and {name}",
                        "put it in one range only",
                    )
        else:
            wrong(f"range {name} is not a list of letters", 'write {"o": ["i", "j"]}')
    taken = set("".join(ranges.values()))
    for name, text in _DEFAULT_LETTERS.items():
        ranges[name] = ranges.get(name, "") + "".join(x for x in text if x not in taken)
    return ranges


def read_symmetry(declared: Any, rank: int) -> tuple[Symmetry, ...]:
    """Generators of a tensor's symmetry as a term list declares it.

    The tensor's entry may have ``sym`` (a string or a list of strings) and ``antisym`` (a list of
    axis lists). A ValueError names the text that cannot be understood.

    Example:
        >>> read_symmetry({"sym": "antisym(0,1) swap(01,23)"}, 4)[1]
        Symmetry(perm=(2, 3, 0, 1), sign=1, conj=False)
    """
    generators: list[Symmetry] = []
    groups, texts = declared.get("antisym") or [], declared.get("sym") or []
    texts = [texts] if isinstance(texts, str) else texts
    for group in groups:
        if not isinstance(group, list) or not all(type(k) is int for k in group):
            raise ValueError(f"antisym {group!r} is not a list of axes")
        generators += _group(group, rank, -1)
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"symmetry {text!r} is not a string")
        generators += _read_text(text, rank)
    for symmetry in generators:
        if sorted(symmetry.perm) != list(range(rank)):
            raise ValueError(f"a symmetry names axes that a tensor of {rank} axes does not have")
    return tuple(dict.fromkeys(generators))


def _read_text(text: str, rank: int) -> list[Symmetry]:
    generators: list[Symmetry] = []
    at = 0
    while match := _WORD.match(text, at):
        at = match.end()
        if match["left"]:
            generators.append(_equality(match["left"], match["right"], -1 if match["sign"] else 1))
        else:
            generators += _word(match["word"], match["axes"], rank)
    if text[at:].strip(" ,;"):
        raise ValueError(f"symmetry {text!r:.80} is not understood")
    return generators


def _word(word: str, axes: str | None, rank: int) -> Iterator[Symmetry]:
    match word:
        case "8-fold":
            yield from (*_group([0, 1], rank, 1), *_group([2, 3], rank, 1))
            yield _exchange("01", "23", rank)
        case "swap":
            left, _, right = (axes or "").replace(" ", "").partition(",")
            yield _exchange(left, right, rank)
        case _:
            numbers = [_axis(k.strip()) for k in axes.split(",")] if axes else range(rank)
            yield from _group(numbers, rank, -1 if word == "antisym" else 1)


def _axis(text: str) -> int:
    if not text.isdigit() or len(text) > 9:
        raise ValueError(f"{text!r:.20} is not an axis")
    return int(text)


def _group(axes: Sequence[int], rank: int, sign: int) -> list[Symmetry]:
    return [Symmetry(_swapped(rank, (pair,)), sign) for pair in pairwise(axes)]


def _exchange(left: str, right: str, rank: int) -> Symmetry:
    if not left or len(left) != len(right):
        raise ValueError(f"swap({left},{right}) does not exchange tuples of axes: swap(01,23)")
    pairs = zip(map(_axis, left), map(_axis, right), strict=True)
    return Symmetry(_swapped(rank, tuple(pairs)))


def _swapped(rank: int, pairs: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    largest = max((axis for pair in pairs for axis in pair), default=-1)
    if largest >= rank:
        raise ValueError(f"a symmetry names axis {largest} of {rank} axes")
    return exchanged(rank, *pairs)


def _equality(left: str, right: str, sign: int) -> Symmetry:
    """``pqrs=qpsr`` or ``t2[i,j,a,b]=t2[j,i,b,a]``."""
    old, new = _letters(left), _letters(right)
    place = {x: n for n, x in enumerate(old)}
    if sorted(old) != sorted(new) or len(place) != len(old):
        raise ValueError(f"symmetry {left:.40}={right:.40} does not permute letters")
    return Symmetry(tuple(place[x] for x in new), sign)


def _letters(text: str) -> list[str]:
    inside = re.search(r"\[(.*)\]", text)
    return [x.strip() for x in inside[1].split(",")] if inside else list(text)
