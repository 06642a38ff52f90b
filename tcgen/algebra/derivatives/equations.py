"""Derivatives of a system as new systems: directional, and with respect to inputs.

In coupled-cluster theory, :func:`jvp` makes the EOM sigma vectors from the residuals, and
:func:`derivative` makes the Lambda equations from the Lagrangian.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from ...errors import ArgumentError
from ...ir.expr import Const, Delta
from ...ir.reduction import Reduction
from ...ir.system import Apply, Equation, Factor, Permutation, System, Term
from ...ir.tensor import Index, Ref, Role, Storage, Tensor, distinct, symmetry_group
from ...ir.term_rewriting import fresh_indices, rename_factors, replace_refs
from ..equations.inline import keep_needed
from ..equations.intermediates import is_copy
from ..equations.normal_form import NormalForms
from ..equations.volatile import check_system, marked
from .expressions import partial_expr, tangent_expr

_ONE = Fraction(1)


def jvp(
    system: System,
    directions: Mapping[str, str],
    *,
    of: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    constant: str | Sequence[str] = (),
    volatile: str | Sequence[str] = (),
) -> System:
    """The first-order change of outputs when inputs change along given directions.

    Args:
        system: equations to differentiate.
        directions: names of the directions by input; a direction is a new input with the same axes,
            symmetry and layout: ``{"t1": "r1", "t2": "r2"}``.
        of: names of the outputs to differentiate, by default all.
        names: new names by the names of the outputs; by default ``d_r`` for an output r.
        constant: names of inputs of the result that a bound program holds: ``("t1", "t2")`` for a
            sigma vector of which many follow for the same amplitudes.
        volatile: names of inputs of the result that may change from call to call.

    Returns:
        A system whose inputs are those of ``system`` that are still needed and the directions.

    Raises:
        ArgumentError: ``system`` is not a System, an input or output is unknown, or a name is taken
            or cannot be used, or is both constant and volatile.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> o = Space("o")
        >>> i, x, e = Index("i", o), Tensor("x", (o,), Role.INPUT), Tensor("e", (), Role.OUTPUT)
        >>> square = Term(Fraction(1), (Ref(x, (i,)), Ref(x, (i,))), (i,))
        >>> norm = System("norm", (o,), (x, e), (Equation(Ref(e), (square,)),))
        >>> jvp(norm, {"x": "y"}).pretty().strip()
        'd_e = sum(i) 2*y[i]*x[i]'
    """
    check_system(system)
    if not isinstance(directions, Mapping):
        raise ArgumentError(f"directions={directions!r}: give a dict such as {{'t1': 'r1'}}")
    wanted = _outputs(system, of)
    sources = [_input(system, name) for name in directions]
    names = {t.name: (names or {}).get(t.name, f"d_{t.name}") for t in wanted}
    taken = {t.name for t in system.tensors if t.role is not Role.OUTPUT}
    tangents: dict[Tensor, Tensor] = {}
    for source, name in zip(sources, directions.values(), strict=True):
        _claim(name, taken)
        plain = replace(source, default=None, family=None, quantity=None)
        tangents[source] = replace(plain, name=name, role=Role.INPUT, volatile=True)
    for name in names.values():
        _claim(name, taken)
    made = _tangent_equations(system, tangents, names, taken)
    result = _system(f"{system.name}_jvp", system, made, list(tangents.values()))
    return marked(result, constant, volatile)


def _tangent_equations(
    system: System, tangents: dict[Tensor, Tensor], outputs: Mapping[str, str], taken: set[str]
) -> list[Equation]:
    """The equations of the changes of all tensors.

    ``tangents`` has the changes of tensors, at first those of inputs; the new ones are added to it,
    and their names to ``taken``. ``outputs`` names the changes of the outputs to differentiate.
    """
    forms = NormalForms(complex_values=True)
    made: list[Equation] = []
    for equation in system.equations:
        tensor = equation.lhs.tensor
        terms = tuple(t for term in equation.terms for t in _tangent_terms(term, tangents))
        if tensor.role is Role.OUTPUT and tensor.name in outputs:
            role, name = Role.OUTPUT, outputs[tensor.name]
        elif terms:
            role, name = Role.TEMP, _fresh_name(f"d_{tensor.name}", taken)
        else:
            continue
        new = replace(tensor, name=name, role=role, accumulate=False)
        tangents[tensor] = new
        lhs = Ref(new, equation.lhs.indices)
        made.append(forms.clean(replace(equation, lhs=lhs, terms=terms)))
        if not made[-1].terms:
            del tangents[tensor]
    return made


def derivative(
    system: System,
    wrt: str | Sequence[str],
    *,
    of: str | None = None,
    names: Mapping[str, str] | None = None,
    constant: str | Sequence[str] = (),
    volatile: str | Sequence[str] = (),
) -> System:
    """The derivative of an output with respect to every element of some inputs.

    The derivative by a symmetric input has the symmetry of the input. The sum of derivative times
    change over all elements is then the change of the output, for each change that keeps the
    symmetry.

    Args:
        system: equations to differentiate.
        wrt: name of an input, or several names.
        of: name of the output; by default the only output, or the only one without axes.
        names: new names by the names of the inputs; by default ``d_e_t2`` for an output e and an
            input t2.
        constant: names of inputs of the result that a bound program holds.
        volatile: names of inputs of the result that may change from call to call.

    Returns:
        A system with an output for each input of ``wrt``; its axes are those of the output ``of``,
        then those of the input.

    Raises:
        ArgumentError: ``system`` is not a System, an input or output is unknown, a name is taken,
            or the output depends on an input through conj, real, imag or abs, which have no complex
            derivative (use :func:`jvp`).

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> o = Space("o")
        >>> i, x, e = Index("i", o), Tensor("x", (o,), Role.INPUT), Tensor("e", (), Role.OUTPUT)
        >>> square = Term(Fraction(1), (Ref(x, (i,)), Ref(x, (i,))), (i,))
        >>> norm = System("norm", (o,), (x, e), (Equation(Ref(e), (square,)),))
        >>> derivative(norm, "x").pretty().strip()
        'd_e_x[i] = 2*x[i]'
    """
    check_system(system)
    root = _root(system, of)
    sources = [_input(system, name) for name in ((wrt,) if isinstance(wrt, str) else wrt)]
    return marked(_Reverse(system, root, sources, names or {}).system(), constant, volatile)


class _Reverse:
    """Reverse mode: adjoints of all tensors between output and inputs, the output first."""

    def __init__(
        self, system: System, root: Tensor, sources: list[Tensor], names: Mapping[str, str]
    ) -> None:
        self.source, self.root, self.inputs = system, root, sources
        self.names = {s: names.get(s.name, f"d_{root.name}_{s.name}") for s in sources}
        self.taken = {t.name for t in system.tensors if t.role is not Role.OUTPUT}
        for name in self.names.values():
            _claim(name, self.taken)
        self.active = set(sources)
        for equation in system.equations:
            if any(r.tensor in self.active for t in equation.terms for r in t.refs):
                self.active.add(equation.lhs.tensor)
        self.outer = system.equation(root).lhs.indices
        self.letters: dict[Tensor, tuple[Index, ...]] = {}
        self.terms: dict[Tensor, list[Term]] = {}
        self.made: list[Equation] = []
        self.forms = NormalForms(complex_values=True)

    def system(self) -> System:
        """The equations of all adjoints."""
        equations = list(self.source.equations)
        last = next(n for n, e in enumerate(equations) if e.lhs.tensor == self.root)
        for equation in reversed(equations[: last + 1]):
            tensor = equation.lhs.tensor
            if tensor != self.root and tensor not in self.terms:
                continue
            seed = None if tensor == self.root else self._adjoint(tensor)
            for term in equation.terms:
                self._add_adjoints(equation, term, seed)
        for source in self.inputs:
            self._gradient(source)
        return _system(f"{self.source.name}_{self.root.name}", self.source, self.made, [])

    def _letters(self, tensor: Tensor, ref: Ref) -> tuple[Index, ...]:
        """Left indices of a tensor's adjoint: those of its equation, or new ones for an input.

        References to an input have different letters; the alphabetically first ones are taken.
        """
        if tensor not in self.letters:
            equations = self.source.equations
            own = [e.lhs.indices for e in equations if e.lhs.tensor == tensor]
            if not own:
                read = (r for e in equations for t in e.terms for r in t.refs if r.tensor == tensor)
                own = sorted((r.indices for r in read), key=lambda x: [i.name for i in x])
            used = {i.name for i in self.outer}
            letters: list[Index] = []
            for index, space in zip(own[0] if own else ref.indices, tensor.spaces, strict=True):
                letters += fresh_indices([Index(index.name, space)], used).values()
            self.letters[tensor] = tuple(letters)
        return self.letters[tensor]

    def _equation(self, tensor: Tensor, name: str, role: Role) -> Equation:
        """The adjoint as collected so far, with like terms merged."""
        left = (*self.outer, *self.letters[tensor])
        spaces = tuple(i.space for i in left)
        lhs = Ref(Tensor(name, spaces, role), left)
        return self.forms.clean(Equation(lhs, tuple(self.terms[tensor])))

    def _adjoint(self, tensor: Tensor) -> Equation:
        """The adjoint of an intermediate, stored unless it is a multiple of another tensor."""
        equation = self._equation(tensor, f"_adjoint_{tensor.name}", Role.TEMP)
        if not _is_alias(equation):
            name = _fresh_name(f"bar_{tensor.name}", self.taken)
            equation = self._equation(tensor, name, Role.TEMP)
            self.made.append(equation)
        return equation

    def _add_adjoints(self, equation: Equation, term: Term, seed: Equation | None) -> None:
        """Add the contributions of one term to the adjoints of its factors."""
        left = equation.lhs.indices
        perms = term.perms or (Permutation(1, tuple(range(len(left)))),)
        for coeff, others, ref in _parts(term, self.active):
            letters = self._letters(ref.tensor, ref)
            fixed = (*self.outer, *letters)
            names = fresh_indices(distinct((*left, *term.sums)), {i.name for i in fixed})
            inner = rename_factors(others, names)
            deltas = tuple(Delta(a, names[b]) for a, b in zip(letters, ref.indices, strict=True))
            sums = tuple(names.values())
            for perm in perms:
                moved = list(left)
                for k, image in enumerate(perm.images):
                    moved[image] = names[left[k]]
                number, first = self._seed(seed, tuple(moved))
                factors = (*first, *inner, *deltas)
                held = {i for f in factors for i in Term(_ONE, (f,)).indices}
                lost = tuple(Delta(i, i) for i in sums if i not in held)
                whole = perm.sign * coeff * number
                new = Term(whole, (*factors, *lost), sums)
                self.terms.setdefault(ref.tensor, []).append(new)

    def _seed(
        self, seed: Equation | None, left: tuple[Index, ...]
    ) -> tuple[Fraction, tuple[Factor, ...]]:
        """The adjoint of the left side with indices ``left``, as coefficient and factors."""
        if seed is None:
            return _ONE, tuple(Delta(a, b) for a, b in zip(self.outer, left, strict=True))
        indices = (*self.outer, *left)
        if not _is_alias(seed):
            return _ONE, (Ref(seed.lhs.tensor, indices),)
        names = dict(zip(seed.lhs.indices, indices, strict=True))
        return seed.terms[0].coeff, rename_factors(seed.terms[0].factors, names)

    def _gradient(self, source: Tensor) -> None:
        """Append the derivative with respect to an input, with the symmetry of the input."""
        name, group = self.names[source], [s for s in symmetry_group(source) if not s.conj]
        if source not in self.terms:
            letters = tuple(Index(f"x{k}", s) for k, s in enumerate(source.spaces))
            self.letters[source], self.terms[source] = letters, []
        if len(group) == 1:
            self.made.append(self._equation(source, name, Role.OUTPUT))
            return
        raw = self._equation(source, _fresh_name(f"raw_{name}", self.taken), Role.TEMP)
        self.made.append(raw)
        left = raw.lhs.indices
        shift = len(self.outer)
        # A symmetry means T[x[perm]] = sign*T[x], and a Permutation moves positions: each is the
        # inverse of the other, and a group has both.
        perms = tuple(
            Permutation(s.sign, (*range(shift), *(shift + k for k in s.perm))) for s in group
        )
        output = Ref(replace(raw.lhs.tensor, name=name, role=Role.OUTPUT), left)
        term = Term(Fraction(1, len(group)), (raw.lhs,), (), perms)
        self.made.append(Equation(output, (term,)))


def _is_alias(equation: Equation) -> bool:
    """True for ``coeff * t[..]`` with the left indices in some order."""
    return is_copy(equation) and isinstance(equation.terms[0].factors[0], Ref)


def _parts(term: Term, active: set[Tensor]) -> Iterator[tuple[Fraction, tuple[Factor, ...], Ref]]:
    """For each reference to an active tensor: coefficient, the other factors, the reference."""
    _check_sum(term, active)
    for n, factor in enumerate(term.factors):
        others = term.factors[:n] + term.factors[n + 1 :]
        match factor:
            case Ref(tensor, _) if tensor in active:
                yield term.coeff, others, factor
            case Apply(expr):
                for ref, part in partial_expr(expr, active):
                    if isinstance(part, Const):
                        yield term.coeff * part.value, others, ref
                    else:
                        yield term.coeff, (*others, Apply(part)), ref
            case Ref() | Delta():
                pass


def _check_sum(term: Term, active: Collection[Tensor]) -> None:
    """Refuse to differentiate a maximum, minimum or product over indices."""
    if term.reduction is not Reduction.SUM and any(r.tensor in active for r in term.refs):
        raise ArgumentError(
            f"{term.reduction.value} over {', '.join(i.name for i in term.sums)} cannot be "
            f"differentiated: write the derivative as equations"
        )


def _tangent_terms(term: Term, tangents: Mapping[Tensor, Tensor]) -> Iterator[Term]:
    """The terms of the product rule: in each, one factor is replaced by its change."""
    _check_sum(term, tangents)
    for n, factor in enumerate(term.factors):
        new: Factor | None = None
        match factor:
            case Ref(tensor, indices) if tensor in tangents:
                new = Ref(tangents[tensor], indices)
            case Apply(expr):
                changed = tangent_expr(expr, tangents)
                if changed is not None:
                    new = changed if isinstance(changed, Ref) else Apply(changed)
            case Ref() | Delta():
                pass
        if new is not None:
            factors = (*term.factors[:n], new, *term.factors[n + 1 :])
            held = Term(_ONE, factors).indices
            lost = tuple(Delta(i, i) for i in term.sums if i not in held)
            yield replace(term, factors=(*factors, *lost))


def _system(name: str, source: System, made: list[Equation], inputs: list[Tensor]) -> System:
    """The new equations and those that they read; outputs of the source become intermediates."""
    hidden: dict[Tensor, Tensor] = {}
    taken = {e.lhs.tensor.name for e in made} | {t.name for t in inputs}
    taken |= {t.name for t in source.tensors if t.role is not Role.OUTPUT}
    for tensor in source.outputs:
        new = _fresh_name(tensor.name, taken)
        hidden[tensor] = replace(tensor, name=new, role=Role.TEMP, storage=Storage(), quantity=None)

    def change(ref: Ref) -> Ref:
        return Ref(hidden.get(ref.tensor, ref.tensor), ref.indices)

    equations = tuple(replace_refs(e, change) for e in (*source.equations, *made))
    tensors = dict.fromkeys((*source.inputs, *(t for t in inputs if t.is_input)))
    tensors |= dict.fromkeys(e.lhs.tensor for e in equations)
    whole = keep_needed(System(name, source.spaces, tuple(tensors), equations))
    for old, new_tensor in hidden.items():
        if old.accumulate and new_tensor in whole.tensors:
            raise ArgumentError(
                f"the derivative reads output {old.name}, which accumulates on the caller's array: "
                f"remove accumulate from {old.name}"
            )
    read = {r.tensor for e in whole.equations for t in e.terms for r in t.refs}
    used = tuple(t for t in whole.tensors if not t.is_input or t in read or t in inputs)
    return replace(whole, tensors=used, warnings=())


def _outputs(system: System, names: Sequence[str] | None) -> tuple[Tensor, ...]:
    outputs = {t.name: t for t in system.outputs}
    for name in names or ():
        if name not in outputs:
            raise ArgumentError(
                f"{name} is not an output of {system.name}: choose from {', '.join(outputs)}"
            )
    return system.outputs if names is None else tuple(outputs[n] for n in names)


def _root(system: System, name: str | None) -> Tensor:
    if name is not None:
        return _outputs(system, (name,))[0]
    scalars = tuple(t for t in system.outputs if t.rank == 0)
    for candidates in (system.outputs, scalars):
        if len(candidates) == 1:
            return candidates[0]
    names = ", ".join(t.name for t in system.outputs)
    raise ArgumentError(f"{system.name} has several outputs: pass of=, one of {names}")


def _input(system: System, name: str) -> Tensor:
    for tensor in system.inputs:
        if tensor.name == name and tensor.role is Role.INPUT:
            return tensor
    names = ", ".join(t.name for t in system.inputs if t.role is Role.INPUT)
    raise ArgumentError(f"{name} is not a stored input of {system.name}: choose from {names}")


def _claim(name: str, taken: set[str]) -> None:
    if not isinstance(name, str) or not (name.isascii() and name.isidentifier()):
        raise ArgumentError(f"{name!r} cannot be a name of a tensor: use letters, digits and _")
    if name in taken:
        raise ArgumentError(f"the name {name} is taken in the system: choose another")
    taken.add(name)


def _fresh_name(name: str, taken: set[str]) -> str:
    new, number = name, 1
    while new in taken:
        number += 1
        new = f"{name}_{number}"
    taken.add(new)
    return new
