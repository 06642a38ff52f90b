"""The rules of level 1: names, indices, permutations, and the order of definitions.

Names are printed into programs, documentation and reports as they are. They are therefore checked
here, once, whoever made the system: :func:`check_names`.
"""

from __future__ import annotations

import re

from ...errors import VerifyError
from ..expr import Delta, leaves
from ..pretty.equations import pretty_equation
from ..reduction import AnyReduction, Reduction, Running
from ..system import Apply, Equation, System, Term, fits_axis
from ..tensor import Index, Ref, Tensor

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_names(system: System) -> None:
    """Check that names are identifiers: of the system, spaces, indices and tensors.

    Example:
        >>> check_names(System('x"', (), (), ()))
        Traceback (most recent call last):
        ...
        tcgen.errors.VerifyError: the name 'x"' of a system has other characters than a to z, ...
    """
    indices = {i for e in system.equations for i in e.lhs.indices}
    indices |= {i for e in system.equations for t in e.terms for i in (*t.sums, *t.indices)}
    spaces = {*system.spaces, *(s for t in system.tensors for s in (*t.spaces, *t.storage.within))}
    spaces |= {i.space for i in indices}
    tensors = {*system.tensors, *(e.lhs.tensor for e in system.equations)}
    tensors |= {r.tensor for e in system.equations for t in e.terms for r in t.refs}
    named: list[tuple[str, object]] = [("system", system.name)]
    named += [("space", part.name) for space in spaces for part in (space, *space.bases)]
    named += [("index", index.name) for index in indices]
    named += [("tensor", tensor.name) for tensor in tensors]
    for what, name in sorted(named, key=str):
        if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
            article = "an" if what == "index" else "a"
            raise VerifyError(
                f"the name {name!r:.80} of {article} {what} has other characters than a to z, A to "
                "Z, digits and _, or begins with a digit: rename it in the source"
            )


def check_system(system: System) -> None:
    """Check every rule of level 1; an error shows the equation and the rule that it breaks."""
    check_names(system)
    names = [t.name for t in system.tensors]
    if len(set(names)) != len(names):
        raise VerifyError(f"system {system.name}: two tensors share a name: {sorted(names)}")
    known, defined = set(system.tensors), {t for t in system.tensors if t.is_input}
    for equation in system.equations:
        try:
            _check_equation(equation, known, defined)
        except VerifyError as error:
            raise VerifyError(
                f"system {system.name}: {error}\nwhile checking: {pretty_equation(equation)}"
            ) from None
        defined.add(equation.lhs.tensor)
    missing = [t.name for t in system.tensors if t not in defined]
    if missing:
        raise VerifyError(f"system {system.name}: no equation defines {', '.join(missing)}")


def _check_equation(equation: Equation, known: set[Tensor], defined: set[Tensor]) -> None:
    lhs = equation.lhs
    check_ref(lhs, known)
    if lhs.tensor.is_input or lhs.tensor in defined:
        raise VerifyError(f"{lhs.tensor.name} is an input or is defined twice")
    if len(set(lhs.indices)) != len(lhs.indices):
        raise VerifyError("the left indices are not distinct")
    for term in equation.terms:
        allowed = set(lhs.indices) | set(term.sums)
        check_sums(lhs.indices, term.sums, term.reduction)
        for ref in term.refs:
            check_ref(ref, known)
            if ref.tensor not in defined:
                raise VerifyError(f"{ref.tensor.name} is read before it is defined")
        free = set(term.indices)
        if not free <= allowed:
            names = ", ".join(sorted(i.name for i in free - allowed))
            raise VerifyError(f"{names} are neither summed nor on the left")
        if not set(term.sums) <= free:
            raise VerifyError("a summed index occurs in no factor")
        for factor in term.factors:
            if isinstance(factor, Apply) and any(
                not isinstance(leaf, Ref | Delta) for leaf in leaves(factor.expr)
            ):
                raise VerifyError("an expression of level 1 has a leaf of level 4")
        if term.reduction is not Reduction.SUM:
            _check_reduction(equation, term)
        for perm in term.perms:
            if sorted(perm.images) != list(range(len(lhs.indices))) or perm.sign not in (1, -1):
                raise VerifyError(f"{perm} is not a signed permutation of the left indices")
            for k, image in enumerate(perm.images):
                if lhs.indices[k].space != lhs.indices[image].space:
                    raise VerifyError("a permutation exchanges indices of different spaces")


def _check_reduction(equation: Equation, term: Term) -> None:
    """A maximum, minimum or product over indices is an equation of its own over one expression.

    So is a running reduction, whose result has no symmetry.
    """
    alone = len(equation.terms) == 1 and not equation.lhs.tensor.accumulate
    if not alone or term.coeff != 1 or term.perms:
        raise VerifyError(f"{term.reduction.value} is not the only term of its equation")
    if isinstance(term.reduction, Running) and equation.lhs.tensor.symmetry:
        raise VerifyError(f"{term.reduction.value} has a symmetry")
    if not term.sums or len(term.factors) != 1 or not isinstance(term.factors[0], Apply):
        raise VerifyError(f"{term.reduction.value} is not over the indices of one expression")


def check_sums(left: tuple[Index, ...], sums: tuple[Index, ...], reduction: AnyReduction) -> None:
    """Check that summed indices are distinct and not on the left, but for a running reduction."""
    running = isinstance(reduction, Running)
    if running and not (len(sums) == 1 and sums[0] in left):
        raise VerifyError(f"{reduction.value} is not along one index of its result")
    if len({*left, *sums}) != len(left) + len(sums) - running:
        raise VerifyError("a summed index repeats or is on the left")


def check_ref(ref: Ref, known: set[Tensor]) -> None:
    """Check that a tensor is known, and that the index on each axis fits its space."""
    if ref.tensor not in known:
        raise VerifyError(f"{ref.tensor.name} is not one of the tensors")
    if len(ref.indices) != ref.tensor.rank:
        raise VerifyError(f"{ref} needs {ref.tensor.rank} indices")
    for index, space in zip(ref.indices, ref.tensor.spaces, strict=True):
        if not fits_axis(index, space):
            raise VerifyError(f"index {index} of {index.space.name} on an axis of {space.name}")
