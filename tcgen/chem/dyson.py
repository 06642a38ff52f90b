"""Ionised and attached states with Dyson orbitals, for methods whose equations can be derived.

The Dyson orbital of a state is the amplitude of removing (attaching) an electron: <k|a_p|0> from a
left vector, <0|a+_p|k> from a right one and the multipliers of the ground state. Their product is
the Dyson norm, or pole strength.

Source: C. M. Oana, A. I. Krylov, J. Chem. Phys. 127, 234106 (2007).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np

from ..algebra.derivatives.equations import derivative
from ..compiler.api import signature_with
from ..compiler.derived import derive, spec_by_name
from ..errors import ArgumentError, ConvergenceError
from ..frontend.spec.reader import read_spec
from ..ir.layouts import Array
from ..options import Planning
from .driver import opened, solve
from .options import SolveOptions, solve_options
from .result import Solution
from .root_vectors import groups
from .states import States

_MORE = 2  # roots beyond those asked for, which show whether a group of equal roots is whole
_SAME = 1e-5  # largest difference of roots of left and right vectors, in Hartree
_DEPENDENT = 1e-6  # smallest singular value of the overlap of left and right vectors of a group


def ionised_states(
    mean_field: Any,
    options: SolveOptions | None = None,
    *,
    method: str = "CCSD",
    attachment: bool = False,
    **keywords: Any,
) -> Solution:
    """Lowest states with one electron less, or one more, and their Dyson norms (needs wickd).

    Args:
        mean_field: a reference with real orbitals, as in :func:`solve`.
        options: a :class:`SolveOptions`.
        method: a coupled-cluster method by name, such as "CCSD" or "CCSDT".
        attachment: attach an electron in place of removing one.
        keywords: fields of ``options`` or of its ``planning``, such as ``nroots=4``.

    Returns:
        A :class:`Solution` over spin orbitals, with ``roots`` and ``states``, whose ``dyson`` are
        Dyson norms of one component. ``values`` has Dyson orbitals by root, occupied before virtual
        spin orbitals: ``dyson_left`` is <k|a_p|0>, ``dyson_right`` <0|a+_p|k>.

    Raises:
        ArgumentError: the method has no such states by name.
        ConvergenceError: equations are not converged, or left and right vectors do not match.
        UnavailableError: wickd is not installed.

    Example (with PySCF and wickd; docs/states.md runs it):

        print(tcgen.chem.ionised_states(mf, nroots=2).states)
    """
    options = solve_options(options, keywords)
    sector, short = ("ea" if attachment else "ip"), method.lower().replace("-", "_")
    texts = [spec_by_name(f"eom_{sector}_{short}{end}") for end in ("", "_left")]
    if None in texts:
        raise ArgumentError(f"method={method!r}: give a coupled-cluster method such as 'CCSD'")
    base = replace(options, show=False, orbitals="spin", checkpoint=None, precision=None)
    one = replace(base, nroots=1)
    ground = _converged(solve(f"{short}_spin_orbital", mean_field, one))
    lambdas = f"{short}_lambda_spin_orbital"
    multipliers = _converged(solve(lambdas, mean_field, replace(one, amplitudes=ground)))
    o, v = ground.amplitudes["t1"].shape
    ranks = [n for n in ground.amplitudes if n.startswith("t")]
    more, less = (v, o) if attachment else (o, v)
    rows = sum(comb(more, n) * comb(less, n - 1) for n in range(1, len(ranks) + 1))
    count = max(options.nroots, min(rows, options.nroots + _MORE))
    several = replace(base, amplitudes=ground, nroots=count)
    right, left = (_converged(solve(read_spec(str(x)), mean_field, several)) for x in texts)
    vectors = {
        x: {n: s.amplitudes[n] for n in s.solved or ()}
        for x, s in zip("rl", (right, left), strict=True)
    }
    kept = _biorthonormal(
        vectors["r"], vectors["l"], right, left, options.nroots, whole=count == rows
    )
    arrays = {n: ground.amplitudes[n] for n in ranks}
    arrays |= {f"z{n[1:]}": multipliers.amplitudes[f"l{n[1:]}"] for n in ranks}
    orbitals = [
        _orbitals(mean_field, base, text, arrays, vectors[x], kept)
        for x, text in zip("lr", _ansatz(ranks, attachment), strict=True)
    ]
    norms = np.einsum("kp,kp->k", *orbitals)
    roots = min(kept, options.nroots)
    states = States(
        replace(
            s,
            dyson=float(norms[list(s.roots)].mean()),
            roots=tuple(k for k in s.roots if k < roots),
        )
        for s in right.states
        if s.roots[0] < roots
    )
    if callable(options.show) or options.show:
        show = options.show if callable(options.show) else print
        for line in states.lines():
            show(line)
    whole = {n: a[:roots] for x in vectors.values() for n, a in x.items()}
    return replace(
        right,
        name=f"eom_{sector}_{short}",
        roots=right.roots[:roots],
        states=states,
        amplitudes={n: arrays[n] for n in ranks} | whole,
        values={"dyson_left": orbitals[0][:roots], "dyson_right": orbitals[1][:roots]},
    )


ionised_states.__signature__ = signature_with(  # type: ignore[attr-defined]
    ionised_states, SolveOptions, Planning
)


def _converged(found: Solution) -> Solution:
    if not found.converged:
        worst = max(found.residual_norms.values())
        raise ConvergenceError(
            f"{found.name} is not converged: the largest residual norm is {worst:.1e}: raise "
            f"max_cycle, or try damping=0.3"
        )
    return found


def _ansatz(ranks: list[str], attachment: bool) -> tuple[str, str]:
    """The amplitudes of a state with a left vector, and with a right one, times an operator x.

    The operator removes an electron from the ground state for the left vector of ionisation.
    """
    count = len(ranks)
    holes, particles = (0, 1) if attachment else (1, 0)

    def sums(letter: str, up: str, down: str, more: tuple[int, int]) -> str:
        each = (
            f"{letter}{n}{{{' '.join([up] * (n - 1 + more[1]) + [down] * (n - 1 + more[0]))}}}"
            for n in range(1, count + 1)
        )
        return " + ".join(each)

    lines = [
        f"T = {' + '.join(ranks)}",
        f"R = {sums('r', 'v+', 'o', (holes, particles))}",
        f"L = {sums('l', 'v', 'o+', (holes, particles))}",
        f"Z = {sums('z', 'v', 'o+', (1, 1))}",
    ]
    removes, creates = "x1{o} + x2{v}", "x1{o+} + x2{v+}"
    first, second = (creates, removes) if attachment else (removes, creates)
    left = [*lines, f"X = {first}", "S = <0| L exp(-T) X exp(T) |0>"]
    right = [*lines, f"X = {second}", "S = <0| (1 + Z) exp(-T) X exp(T) R |0>"]
    return "\n".join(left), "\n".join(right)


def _orbitals(
    mean_field: Any,
    options: SolveOptions,
    ansatz: str,
    arrays: Mapping[str, Array],
    vectors: Mapping[str, Array],
    count: int,
) -> Array:
    """Dyson orbitals of all roots: the derivative of an ansatz by the operator x."""
    system = derivative(derive(ansatz), ("x1", "x2"), of="S")
    known = {**arrays, **{n: a[0] for n, a in vectors.items()}}
    read = {t.name for t in system.inputs}
    outputs = [t.name for t in system.outputs]
    options = replace(
        options,
        amplitudes={n: a for n, a in known.items() if n in read},
        outputs=dict.fromkeys(outputs, "value"),
        nroots=1,
    )
    found = []
    with opened(system, mean_field, options, free=vectors) as problem:
        for k in range(count):
            values = problem.values(**{n: a[k] for n, a in vectors.items() if n in read})
            found.append(np.concatenate([values[name] for name in outputs]))
    return np.array(found)


def _biorthonormal(
    right: Mapping[str, Array],
    left: dict[str, Array],
    of_right: Solution,
    of_left: Solution,
    wanted: int,
    *,
    whole: bool,
) -> int:
    """Turn left vectors to be biorthonormal to right ones in groups of equal roots; their number.

    The sum of l*r has each independent element once.
    """
    values = of_right.roots
    difference = float(np.abs(np.subtract(values, of_left.roots)).max())
    overlap: Any = 0.0
    for (r, one), (_, two) in zip(sorted(right.items()), sorted(left.items()), strict=True):
        flat = [x.reshape(len(x), -1) for x in (two, one)]
        overlap = overlap + flat[0] @ flat[1].T / _equal_elements(of_right.letters[r])
    kept = [g for g in groups(values) if g[0] < wanted]
    cut = kept[-1][-1] == len(values) - 1 and not whole
    for group in kept:
        own = overlap[np.ix_(group, group)]
        singular = np.linalg.svd(own, compute_uv=False)[-1]
        if difference > _SAME or singular < _DEPENDENT or cut:
            raise ConvergenceError(
                f"{of_right.name}: left and right vectors of the root {values[group[0]]:.6f} have "
                f"no pairs: ask for more or fewer roots, or raise max_cycle"
            )
        for name, array in left.items():
            left[name] = array.copy()
            left[name][group] = np.tensordot(np.linalg.inv(own), array[group], axes=1)
    return kept[-1][-1] + 1


def _equal_elements(letters: str) -> int:
    """The number of elements that antisymmetry in occupied and in virtual axes makes equal."""
    counts = (letters.count(x) for x in "ov")
    return int(np.prod([np.prod(np.arange(1, n + 1)) for n in counts]))
