"""Evaluates an ansatz by Wick's theorem; the only module that knows wickd.

wickd keeps its orbital spaces for the whole process: they are set anew for each derivation. Its
upper indices are those of annihilators, so that H^{i}_{a} is <a|h|i>; arrays of H get their lower
indices first, and amplitudes have occupied axes before virtual ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import UnavailableError, pip_install
from ...ir.system import System, Term, with_tensors
from ...ir.tensor import Ref, Role, Tensor
from ..importers.wicked import from_wicked
from .ansatz import Ansatz, Projection, read_ansatz, refuse

if TYPE_CHECKING:
    from .ansatz import Node

Value: TypeAlias = Any
"""An OperatorExpression of wickd."""
_RESERVED = frozenset({"f", "v", "one"})  # elements of H, and the unit operator
_ELEMENT = re.compile(r"([A-Za-z]\w*)\^\{([^}]*)\}_\{([^}]*)\}")


def derive_system(text: str, name: str, *, real: bool = True) -> System:
    """The equations of an ansatz over spin orbitals.

    With ``real`` orbitals bra and ket of integrals may be exchanged, which needs fewer blocks.
    Amplitudes that a projection determines are volatile, the others constant.

    Raises:
        SpecError: a line of the ansatz cannot be read, or a projection vanishes.
        UnavailableError: wickd is not installed.
    """
    ansatz = read_ansatz(text)
    work = _Derivation(_wickd(), ansatz, real=real)
    lines = [line for p in ansatz.projections for line in work.lines(p)]
    for name in work.targets.keys() & (work.forms.keys() | _RESERVED):
        message = f"the output {name} has the name of amplitudes or integrals"
        raise refuse(*work.targets[name], message, "use another name")
    scalars = [p.name for p in ansatz.projections if p.bra is None and p.ket is None]
    system = from_wicked(lines, name=name, real=real, energy=(*scalars, "e")[0])
    tensors: dict[Tensor, Tensor] = {}
    for tensor in system.tensors:
        form = work.forms.get(tensor.name)
        if form is not None and tensor.is_input:
            ups, downs = (len(side) for side in _sides(form)[:: -1 if _de_excites(form) else 1])
            new = replace(tensor, volatile=tensor.name in work.solved)
            if ups != downs and ups and downs:
                axes = (tuple(range(ups)), tuple(range(ups, ups + downs)))
                new = replace(new, conserves=axes)
            tensors[tensor] = new
        elif tensor.role is Role.TEMP:
            # An energy that stands in other equations.
            tensors[tensor] = replace(tensor, role=Role.OUTPUT)
    system = with_tensors(system, tensors)
    inputs = sorted(system.inputs, key=lambda t: (t.name in work.forms, t.name))
    others = (t for t in system.tensors if not t.is_input)
    return replace(system, tensors=(*inputs, *others))


def wickd_version() -> str:
    """The version of wickd; UnavailableError if it is not installed."""
    from importlib.metadata import version  # noqa: PLC0415

    _wickd()
    return version("wickd")


def _wickd() -> ModuleType:
    try:
        import wickd  # noqa: PLC0415  (an optional dependency)
    except ImportError:
        raise UnavailableError(
            f"equations are derived by wickd (wick&d), which is not installed: pip install wickd, "
            f"or {pip_install('derive')}"
        ) from None
    return wickd  # type: ignore[no-any-return]


def _sides(form: str) -> tuple[list[str], list[str]]:
    """Spaces of annihilators and of creators, occupied first."""
    words = form.split()
    upper = sorted(x for x in words if not x.endswith("+"))
    return upper, sorted(x[0] for x in words if x.endswith("+"))


def _de_excites(form: str) -> bool:
    """True if holes are filled and particles removed, as in l2{o+ o+ v v}."""
    return bool(form.split()) and all(x in ("o+", "v") for x in form.split())


class _Derivation:
    """Values of the expressions of one ansatz."""

    def __init__(self, wickd: ModuleType, ansatz: Ansatz, *, real: bool) -> None:
        self._w, self._ansatz, self._real = wickd, ansatz, real
        self._scalars = {p.name for p in ansatz.projections if p.bra is None and p.ket is None}
        self.forms: dict[str, str] = {}
        self.solved: set[str] = set()
        self.targets: dict[str, tuple[int, str]] = {}
        self._open: list[str] = []
        self._where = (1, "")
        self._values: dict[Any, Value] = {}
        wickd.reset_space()
        wickd.add_space("o", "fermion", "occupied", list("ijklmn"))
        wickd.add_space("v", "fermion", "unoccupied", list("abcdefgh"))
        general = {"F": [("f", 1)], "V": [("v", 2)], "H": [("f", 1), ("v", 2)]}
        for name, parts in general.items():
            made = [wickd.utils.gen_op(label, rank, "ov", "ov") for label, rank in parts]
            self._values[name] = sum(made[1:], start=made[0])

    def lines(self, projection: Projection) -> list[str]:
        """The equations of a projection as wick&d prints them, a target for each component."""
        self._where = projection.where
        value = self._value(projection.value)
        side = projection.bra or projection.ket
        components = [""] if side is None else self._components(side)
        found = []
        for component in components:
            form = self.forms.get(component, "")
            upper, lower = map("".join, _sides(form))
            key = f"{upper}|{lower}" if projection.ket is None else f"{lower}|{upper}"
            rank = len(key) - 1
            result = self._w.WickTheorem().contract(self._w.rational(1), value, rank, rank)
            equations = result.to_manybody_equation("x").get(key, [])
            target = self._target(projection, component, len(components))
            if target in self.targets:
                raise self._refuse(f"the output {target} is defined twice", "use another name")
            self.targets[target] = self._where
            if not equations:
                raise self._refuse(f"the projection {target} is zero", "check its operators")
            self.solved |= {component} if projection.ket is None else set()
            turn = _de_excites(form) != (projection.ket is not None)
            found += [self._line(str(equation), target, turn) for equation in equations]
        return found

    def _target(self, projection: Projection, component: str, count: int) -> str:
        """The output: r becomes r2 for a projection on t2."""
        number = re.sub(r"^\D*", "", component)
        if not component or (number and projection.name.endswith(number)):
            return projection.name
        if projection.name[-1].isdigit() and count > 1:
            raise self._refuse(
                f"{projection.name} is one output and has {count} projections",
                "write a name without a number, which gets that of each component",
            )
        return f"{projection.name}{number}"

    def _line(self, text: str, target: str, turn: bool) -> str:
        """An equation with its target's name, and the axes of each tensor in order."""
        left, _, right = text.partition("+=")

        def element(match: re.Match[str]) -> str:
            name, upper, lower = match.groups()
            if name == "one":
                return ""
            # Arrays of H have the bra first; l2[i,j,a,b] has its occupied axes first.
            if name in ("f", "v") or upper[:1] == "v" or lower[:1] == "o":
                upper, lower = lower, upper
            return f"{name}^{{{upper}}}_{{{lower}}}"

        _, upper, lower = _ELEMENT.findall(left)[0]
        upper, lower = (lower, upper) if turn else (upper, lower)
        body = " ".join(_ELEMENT.sub(element, right).split())
        return f"{target}^{{{upper}}}_{{{lower}}} += {body}"

    def _components(self, node: Node) -> list[str]:
        """Names of the components of a sum, such as t1, t2 of T."""
        self._value(node)
        names: list[str] = []
        for token in node.scan_values(lambda t: getattr(t, "type", "") == "NAME"):
            definition = self._ansatz.definitions.get(str(token))
            names += [str(token)] if definition is None else self._components(definition)
        unknown = [n for n in names if n not in self.forms]
        if unknown or not names:
            raise self._refuse(
                "a projection needs amplitudes on its side", "write for example <t1 + t2| or <T|"
            )
        # T = t1 + t2 + 1/2 t1 t1 has the components t1 and t2.
        return list(dict.fromkeys(names))

    def _refuse(self, message: str, advice: str) -> Exception:
        return refuse(*self._where, message, advice)

    def _value(self, node: Node) -> Value:
        """The operator of an expression; equal expressions are evaluated once."""
        if node not in self._values:
            self._values[node] = getattr(self, f"_{node.data}")(*node.children)
        return self._values[node]

    def _sum(self, *parts: Any) -> Value:
        signed = parts if str(parts[0]) in ("+", "-") else ("+", *parts)
        total = self._w.OperatorExpression()
        for sign, node in zip(signed[::2], signed[1::2], strict=True):
            total = total + self._value(node) if sign == "+" else total - self._value(node)
        return total

    def _product(self, *factors: Node) -> Value:
        places = [n for n, f in enumerate(factors) if f.data == "exp"]
        if places:
            first, last = places[0], places[-1]
            inner = factors[first + 1 : last]
            if len(places) != 2 or not inner:
                advice = "write exp(-T) H exp(T), bch(H, T, 2), or a series (1 + T + 1/2 T T)"
                raise self._refuse("exp does not stand on both sides", advice)
            minus, plus = (self._value(factors[n].children[0]) for n in (first, last))
            if len(minus + plus):
                raise self._refuse("the exponents are not opposite", "write exp(-T) H exp(T)")
            middle = self._series(self._multiplied(map(self._value, inner)), plus)
            outer = [*map(self._value, factors[:first]), middle]
            return self._multiplied([*outer, *map(self._value, factors[last + 1 :])])
        return self._multiplied(map(self._value, factors))

    def _multiplied(self, values: Iterable[Value]) -> Value:
        first, *others = values
        for value in others:
            first = first @ value
        return first

    def _series(self, value: Value, exponent: Value) -> Value:
        """exp(-X) A exp(X): as many commutators as A has operators that X contracts with."""
        if _contracted(exponent):
            raise self._refuse(
                "the series of exp does not end, since its exponent also de-excites",
                "write bch(H, T - adj(T), 2), the series to two commutators",
            )
        return self._w.bch_series(value, exponent, _contracted(value))

    def _number(self, text: str) -> Value:
        number = Fraction(text)
        one = self._w.op("one", [""])
        return self._w.rational(number.numerator, number.denominator) * one

    def _operator(self, token: str, braces: str | None = None) -> Value:
        name, definition = str(token), self._ansatz.definitions.get(str(token))
        if definition is not None and braces is None:
            if name in self._open:
                path = " -> ".join([*self._open, name])
                raise self._refuse(f"{name} is defined by itself: {path}", "use another name")
            self._open.append(name)
            value = self._value(definition)
            self._open.pop()
            return value
        if name in self._values and braces is None:
            return self._values[name]
        if name in self._scalars:
            return self._w.op(name, [""])
        number = re.fullmatch(r"[a-z]([1-9])", name)
        form = self.forms.get(name)
        if braces is not None:
            form = " ".join(braces.strip("{}").split())
        elif form is None and number:
            form = " ".join(["v+"] * int(number[1]) + ["o"] * int(number[1]))
        if name in _RESERVED:
            raise self._refuse(f"the name {name} is that of integrals", "use another name")
        if form is None or self.forms.setdefault(name, form) != form:
            raise self._refuse(
                f"the operator {name} is {'not known' if form is None else 'of two kinds'}",
                "define it (T = t1 + t2), or write its creators and annihilators: r2{v+ o o}",
            )
        return self._w.op(name, [form])

    def _commutator(self, left: Node, right: Node) -> Value:
        return self._w.commutator(self._value(left), self._value(right))

    def _bch(self, value: Node, exponent: Node, order: str) -> Value:
        return self._w.bch_series(self._value(value), self._value(exponent), int(order))

    def _adj(self, node: Node) -> Value:
        if not self._real:
            raise self._refuse("adj(..) needs real orbitals", "leave out real=False")
        return self._value(node).adjoint()

    def _exp(self, _node: Node) -> Value:
        raise self._refuse("exp stands alone", "write exp(-T) H exp(T)")


def _contracted(value: Value) -> int:
    """The largest number of operators of a term that contract with excitations to their right."""
    operators = (" ".join(re.findall(r"\{([^}]*)\}", line)) for line in str(value).splitlines())
    return max((len(re.findall(r"o\+|v(?!\+)", x)) for x in operators), default=0)


def sorted_terms(system: System) -> System:
    """The system with terms in order of degree and of permutations, to be read."""

    def key(term: Term) -> tuple[int, int, list[tuple[int, ...]], list[str]]:
        names = [f.tensor.name for f in term.factors if isinstance(f, Ref)]
        perms = [p.images for p in term.perms]
        return len(names), len(perms), perms, [*sorted(names), *map(str, term.factors)]

    ordered = (replace(e, terms=tuple(sorted(e.terms, key=key))) for e in system.equations)
    return replace(system, equations=tuple(ordered))
