"""Equivalent forms of a system, for tests that a result does not depend on how it is written.

It uses only the levels, so that it is independent of the planner that it tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from ..ir.system import Equation, Factor, Permutation, System, Term, with_tensors
from ..ir.tensor import Index, Ref
from ..ir.term_rewriting import rename_term


@dataclass(frozen=True, slots=True)
class Rewriting:
    """An equivalent system.

    Attributes:
        system: the new system, whose tensors have the values of the old ones.
        names: new name of each tensor, by its old name.
    """

    system: System
    names: Mapping[str, str]


def rewritten(system: System, seed: int) -> Rewriting:
    r"""An equivalent system with other names and another order.

    It changes the names of tensors and indices; the order of tensors, independent equations, terms
    and factors; the image of each diagram under its ``P`` operators; and the order of indices on
    symmetric tensors.

    Args:
        system: verified equations.
        seed: equal seeds give equal systems.

    Example:
        >>> from tcgen.frontend import read_spec
        >>> system = read_spec("space o\nindex i j : o\ninput a[o,o], b[o]\noutput c\n"
        ...                    "c[i] = a[i,j]*b[j] + b[i]\n")
        >>> other = rewritten(system, 1)
        >>> other.system.equations[0].terms == system.equations[0].terms
        False
    """
    draw = Random(seed)
    numbers = draw.sample(range(10, 100 + 10 * len(system.tensors)), len(system.tensors))
    names = {t.name: f"T{n}" for t, n in zip(system.tensors, numbers, strict=True)}
    order = list(system.tensors)
    draw.shuffle(order)
    order.sort(key=lambda t: not t.is_input)
    equations = [_equation(e, draw) for e in _any_order(system.equations, draw)]
    made = replace(system, tensors=tuple(order), equations=tuple(equations))
    return Rewriting(
        with_tensors(made, {t: replace(t, name=names[t.name]) for t in system.tensors}), names
    )


def _any_order(equations: tuple[Equation, ...], draw: Random) -> list[Equation]:
    """The equations in a random order in which each stands after those that it reads."""
    pending = list(equations)
    made = {e.lhs.tensor.name for e in equations}
    ordered: list[Equation] = []
    while pending:
        defined = {e.lhs.tensor.name for e in ordered}
        ready = [e for e in pending if all(name in defined or name not in made for name in e.reads)]
        ordered.append(draw.choice(ready))
        pending.remove(ordered[-1])
    return ordered


def _equation(equation: Equation, draw: Random) -> Equation:
    """The equation with other indices and another order of its terms."""
    left = equation.lhs.indices
    terms = [_term(term, left, draw) for term in equation.terms]
    draw.shuffle(terms)
    fresh = {i: Index(f"l{draw.randint(0, 9)}{n}", i.space) for n, i in enumerate(left)}
    lhs = Ref(equation.lhs.tensor, tuple(fresh[i] for i in left))
    return replace(equation, lhs=lhs, terms=tuple(rename_term(t, fresh) for t in terms))


def _term(term: Term, left: tuple[Index, ...], draw: Random) -> Term:
    """The term with other summed indices, another image, and another order of its factors."""
    number = draw.randint(10, 90)
    names = {i: Index(f"s{number + n}", i.space) for n, i in enumerate(term.sums)}
    coeff = term.coeff
    perms = term.perms
    if perms:
        # Another image of the diagram: p T = (p q^-1) (q T).
        chosen = draw.choice(perms)
        names |= {left[k]: left[image] for k, image in enumerate(chosen.images)}
        coeff *= chosen.sign
        perms = tuple(
            Permutation(p.sign * chosen.sign, tuple(p.images[k] for k in _inverse(chosen.images)))
            for p in perms
        )
    renamed = rename_term(replace(term, coeff=coeff), names)
    factors: list[Factor] = []
    for factor in renamed.factors:
        if isinstance(factor, Ref):
            indices = factor.indices
            for symmetry in factor.tensor.symmetry:
                if not symmetry.conj and draw.random() < 0.5:
                    indices = tuple(indices[p] for p in symmetry.perm)
                    coeff *= symmetry.sign
            factors.append(Ref(factor.tensor, indices))
        else:
            factors.append(factor)
    draw.shuffle(factors)
    sums = list(renamed.sums)
    draw.shuffle(sums)
    return replace(renamed, coeff=coeff, perms=perms, factors=tuple(factors), sums=tuple(sums))


def _inverse(images: tuple[int, ...]) -> tuple[int, ...]:
    """The inverse of a permutation."""
    return tuple(images.index(k) for k in range(len(images)))
