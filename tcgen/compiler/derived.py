"""``tcgen.derive``: equations from an ansatz, and specs of methods by name, kept in a cache."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from textwrap import wrap

from .._version import __version__
from ..algebra.derivatives.equations import derivative
from ..algebra.spin.integrate import FORMS, spin_integrated
from ..cache_files import cache_folder, read_text, write_text
from ..errors import ArgumentError
from ..frontend.assemble import identifier
from ..frontend.derivation.methods import KNOWN, Method, find_method
from ..frontend.derivation.wick import derive_system, sorted_terms, wickd_version
from ..frontend.spec.writer import spec_text
from ..ir.system import Equation, System, Term, with_axes, with_spaces, with_tensors
from ..ir.tensor import Ref, Role, Tensor, symmetry_group

_ORBITALS = {
    None: "spin orbitals",
    FORMS[0]: "the spatial orbitals of a closed shell",
    FORMS[1]: "alpha and beta orbitals",
    FORMS[2]: "the spatial orbitals of a closed shell (triplets)",
}
_WICKD = "Wick's theorem by wick&d"
_PAPER = "F. A. Evangelista, J. Chem. Phys. 157, 064111 (2022)"


def derive(
    ansatz: str,
    *,
    spin: str | None = None,
    commutators: int | None = None,
    real: bool = True,
    name: str | None = None,
) -> System:
    """Derive the equations of a method or of an ansatz by Wick's theorem (needs wickd).

    Args:
        ansatz: the name of a method, such as "CCSDT", "QCISD" or "EOM-IP-CCSD", or statements on
            lines or with semicolons. ``T = t1 + t2`` defines an operator by its components; ``t2``
            is short for ``t2{v+ v+ o o}``. ``r = <T| exp(-T) H exp(T) |0>`` is an output for each
            component, r1 and r2, and ``e = <0| .. |0>`` a number, which later statements may read.
            H = F + V is the Hamiltonian in normal order. ``[A, B]``, ``1/2``, ``bch(H, X, 2)`` (a
            series of commutators), ``adj(T)`` and products are operators too.
        spin: "closed-shell", "unrestricted" or "triplet" (vectors of EOM-EE) integrates over
            spins; None: spin orbitals.
        commutators: the number of commutators after which exp(-T) H exp(T) is truncated.
        real: orbitals are real, so that bra and ket of integrals may be exchanged.
        name: the name of the system.

    Returns:
        A system with the outputs of the ansatz. Inputs are f and v = <pq||rs> by blocks, and the
        amplitudes with occupied axes first.

    Raises:
        ArgumentError: no method has that name, or an option does not fit it.
        SpecError: a statement cannot be read, or none is a projection.
        UnavailableError: wickd is not installed.

    Example (with wickd):

        tcgen.compile(tcgen.derive("CCSDT", spin="closed-shell"), extents={"o": 5, "v": 19})
    """
    return _derived(_method(ansatz, commutators, name), spin, real=real)


def derived_spec(
    ansatz: str,
    *,
    spin: str | None = None,
    commutators: int | None = None,
    real: bool = True,
    name: str | None = None,
) -> str:
    """The text of :func:`derive` as a .spec, with the derivation as its heading."""
    method = _method(ansatz, commutators, name)
    system = _derived(method, spin, real=real)
    orbitals = _ORBITALS[spin] if real else f"complex {_ORBITALS[spin]}"
    amplitudes = _amplitudes(system)
    named = ", ".join(f"{t.name}[{','.join(_letters(t))}]" for t in amplitudes)
    heading = [
        f"{method.title} over {orbitals}, from {_WICKD} {wickd_version()}.",
        *([f"{method.source}."] if method.source else []),
        f"{_PAPER}. The ansatz:",
        *(f"  {line}" for line in re.split(r"[\n;]\s*", method.ansatz.strip())),
    ]
    if method.kind:
        heading.append(f"{_KINDS[method.kind]} by tcgen.derivative.")
    if spin is not None:
        heading.append("Integrated over spins by tcgen.spin_integrated.")
    integrals = "<pq||rs>" if spin is None else "<pq|rs>"
    letters = "i..n occupied, a..h virtual"
    heading += wrap(f"{letters}; v = {integrals}, f the Fock matrix; {named}.", 96)
    text = spec_text(system, heading=heading, grouped=True)
    return text.partition("\n")[2]


def spec_by_name(name: str) -> str | None:
    """The derived spec of a method, ``cisdt`` or ``cisdt_closed_shell``; None for other names.

    ``cisdt_complex`` and ``cisdt_complex_closed_shell`` are for complex orbitals. It is read from
    the cache or written there.
    """
    stem, spin = name, None
    for form in FORMS:
        if name.endswith(suffix := f"_{form.replace('-', '_')}"):
            stem, spin = name.removesuffix(suffix), form
    stem = stem.removesuffix("_spin_orbital")
    real = stem == (stem := stem.removesuffix("_complex"))
    method = find_method(stem) if re.fullmatch(r"[\w-]+", name) else None
    if method is None:
        return None
    key = "\n".join((__version__, method.name, method.ansatz, method.kind, str(spin), str(real)))
    path = cache_folder("specs") / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.spec"
    with suppress(OSError, UnicodeDecodeError):
        return read_text(path)
    text = derived_spec(stem, spin=spin, real=real)
    write_text(path, text)
    return text


def _method(ansatz: str, commutators: int | None, name: str | None) -> Method:
    """The method of a name, or one of an ansatz."""
    for what, given in (("an ansatz", ansatz), ("a name", name or "")):
        if not isinstance(given, str):
            raise ArgumentError(f"{what} is a text such as 'CCSDT', not {type(given).__name__}")
    if commutators is not None and (type(commutators) is not int or commutators < 1):
        raise ArgumentError(f"commutators={commutators!r}: give a number of at least 1")
    method = find_method(ansatz.strip(), commutators)
    if method is None and re.fullmatch(r"[\w\s-]+", ansatz):
        raise ArgumentError(
            f"no method named {ansatz!r:.80}; there are {KNOWN}. Others are written as an ansatz: "
            f"'T = t2; e = <0| exp(-T) H exp(T) |0>; r = <T| exp(-T) H exp(T) |0>'"
        )
    if method is None and commutators is not None:
        raise ArgumentError("commutators is for methods by name: write bch(H, T, 2) in an ansatz")
    method = method or Method("derived", "Equations of an ansatz", "", ansatz, "")
    return method if name is None else replace(method, name=identifier(name))


def _derived(method: Method, spin: str | None, *, real: bool) -> System:
    if spin is not None and spin not in FORMS:
        raise ArgumentError(f"spin={spin!r}: write {' or '.join(map(repr, FORMS))}")
    system = derive_system(method.ansatz, method.name, real=real)
    if not real:
        system = _for_complex_orbitals(system, vectors=method.name.startswith("eom_"))
    if method.kind:
        system = replace(_of_lagrangian(system, method.kind), name=method.name)
    if spin is not None:
        for tensor in _amplitudes(system):
            if tensor.rank > 1 and len(set(tensor.spaces)) == 1:
                raise ArgumentError(
                    f"spin={spin!r}: {with_axes(tensor)} adds or removes several electrons, whose "
                    f"spins may be any: solve the equations over spin orbitals (no spin option)"
                )
        system = spin_integrated(system, spin)
    return sorted_terms(system)


def _for_complex_orbitals(system: System, *, vectors: bool) -> System:
    """The system over graded spaces of complex orbitals.

    Amplitudes that change the number of electrons, and ``vectors`` of excitations, have a charge.
    """
    strict = {s: replace(s, graded=True, strict=True) for s in system.spaces}
    changed: dict[Tensor, Tensor] = {}
    for tensor in (t for t in _amplitudes(system) if t.volatile):
        axes = [[k for k, s in enumerate(tensor.spaces) if s.kind == x] for x in _SIDES]
        if vectors or len(axes[0]) != len(axes[1]):
            first, second = map(tuple, sorted(axes, key=len, reverse=True))
            changed[tensor] = replace(tensor, conserves=(first, second), charge="x")
    return with_spaces(with_tensors(system, changed), strict)


_SIDES = ("virtual", "occupied")
_KINDS = {
    "lambda": "Derivatives of L = e + sum of l*r with respect to the amplitudes,",
    "density": "Derivatives of L = e + sum of l*r with respect to f and v,",
    "left": "Derivatives of the sum of l*s with respect to the right vectors,",
}


def _of_lagrangian(system: System, kind: str) -> System:
    """The derivatives of a Lagrangian whose multipliers l have the axes of the amplitudes."""
    by_number = {t.name[1:]: t for t in system.inputs if t.volatile}
    left, value, terms = list[Tensor](), Tensor("L", (), Role.OUTPUT), list[Term]()
    for output in system.outputs:
        if not output.rank:
            terms.append(Term(Fraction(1), (Ref(output, ()),)))
            continue
        of = by_number[output.name[1:]]
        left.append(replace(of, name=f"l{output.name[1:]}"))
        indices = system.equation(output).lhs.indices
        factors = (Ref(left[-1], indices), Ref(output, indices))
        terms.append(Term(Fraction(1, len(symmetry_group(of))), factors, indices))
    lagrangian = replace(
        system,
        tensors=(*system.inputs, *left, *(t for t in system.tensors if not t.is_input), value),
        equations=(*system.equations, Equation(Ref(value, ()), tuple(terms))),
    )
    given = set(by_number.values()) if kind != "left" else set()
    new = {t: replace(t, volatile=False) for t in given}
    new |= {t: replace(t, role=Role.TEMP) for t in system.outputs}
    wanted = [t.name for t in system.inputs if (t in by_number.values()) == (kind != "density")]
    return derivative(with_tensors(lagrangian, new), wanted, of="L")


def _amplitudes(system: System) -> list[Tensor]:
    """Inputs beside f and v."""
    return [t for t in system.inputs if t.rank and not re.match(r"[fv](_|$)", t.name)]


def _letters(tensor: Tensor) -> list[str]:
    """Index letters of axes, i, j, .. and a, b, .. of each space in turn."""
    used: dict[str, int] = {}
    found = []
    for space in tensor.spaces:
        first = {"o": "i", "v": "a", "O": "I", "V": "A"}.get(space.name, space.name[0])
        found.append(chr(ord(first) + used.setdefault(space.name, 0)))
        used[space.name] += 1
    return found
