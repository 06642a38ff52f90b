"""Ionised and attached states with Dyson orbitals, for methods whose equations can be derived.

The Dyson orbital of a state is the amplitude of removing (attaching) an electron: <k|a_p|0> from a
left vector, <0|a+_p|k> from a right one and the multipliers of the ground state. Their product is
the Dyson norm, or pole strength.

Source: C. M. Oana, A. I. Krylov, J. Chem. Phys. 127, 234106 (2007).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..algebra.derivatives.equations import derivative
from ..compiler.api import signature_with
from ..compiler.derived import derive, spec_by_name
from ..errors import ArgumentError, ConvergenceError
from ..frontend.spec.reader import read_spec
from ..ir.layouts import Array
from ..ir.system import System
from ..options import Planning
from .driver import inferred, opened, solve
from .options import SolveOptions, solve_options
from .result import Solution
from .root_vectors import Vectors
from .spaces import ORBITAL, classify
from .vector_pairs import first_states, lowest, paired, whole_groups, with_roots


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
        options: a :class:`SolveOptions`. With ``orbitals="spatial"`` the equations are those of a
            closed shell, which are smaller; otherwise they are over spin orbitals.
        method: a coupled-cluster method by name, such as "CCSD" or "CCSDT".
        attachment: attach an electron in place of removing one.
        keywords: fields of ``options`` or of its ``planning``, such as ``nroots=4``.

    Returns:
        A :class:`Solution` with ``roots`` and ``states``, whose ``dyson`` are Dyson norms of one
        component, and the correlation energy and amplitudes of the ground state. ``values`` has
        Dyson orbitals by root, occupied before virtual orbitals: ``dyson_left`` is <k|a_p|0>,
        ``dyson_right`` <0|a+_p|k>, over spatial orbitals for one spin of the electron.

    Raises:
        ArgumentError: the method has no such states by name, or orbitals do not fit.
        ConvergenceError: equations are not converged, or left and right vectors do not match.
        UnavailableError: wickd is not installed.

    Example (with PySCF and wickd; docs/states.md runs it):

        print(tcgen.chem.ionised_states(mf, nroots=2).states)
    """
    clock = time.perf_counter()
    options = solve_options(options, keywords)
    sector, short = ("ea" if attachment else "ip"), method.lower().replace("-", "_")
    spatial = options.orbitals == "spatial"
    form = "closed_shell" if spatial else "spin_orbital"
    names = [f"eom_{sector}_{short}{end}_{form}" for end in ("", "_left")]
    texts = [spec_by_name(name) for name in names]
    if None in texts:
        raise ArgumentError(f"method={method!r}: give a coupled-cluster method such as 'CCSD'")
    base = replace(
        options, show=False, orbitals="spatial" if spatial else "spin", checkpoint=None,
        checkpoint_every=1, precision=None,
    )  # fmt: skip
    one = replace(base, nroots=1)
    ground = _converged(solve(f"{short}_{form}", mean_field, one))
    lambdas = f"{short}_lambda_{form}"
    multipliers = _converged(solve(lambdas, mean_field, replace(one, amplitudes=ground)))
    ranks = [n for n in ground.amplitudes if n.startswith("t")]
    arrays = {n: ground.amplitudes[n] for n in ranks}
    several = replace(base, amplitudes=arrays)
    systems = [read_spec(str(text), name) for text, name in zip(texts, names, strict=True)]
    with opened(systems[0], mean_field, several) as problem:
        found = whole_groups(problem, options.nroots)
    vectors = _vectors(systems[0], mean_field, several)
    right = vectors.pure(found.values, found.amplitudes)
    ansatz = _Ansatz(ranks, attachment, spatial)
    duals = [
        {n.removeprefix("d_S_"): a for n, a in outputs.items()}
        for outputs in _evaluated(mean_field, base, ansatz.overlap(), {}, right)
    ]
    with opened(systems[1], mean_field, several) as problem:
        own = {f"l{n[1:]}": a for n, a in right.items()}
        other = lowest(problem, own, len(found.values))
    overlap = np.array(
        [[sum(np.vdot(other.amplitudes[n][k], dual[n]) for n in own) for dual in duals]
         for k in range(len(found.values))]
    )  # fmt: skip
    left = paired(ground.name, found.values, other, overlap / ansatz.components, base.tolerance)
    known = arrays | {f"z{n[1:]}": multipliers.amplitudes[f"l{n[1:]}"] for n in ranks}
    orbitals = [
        np.array([np.concatenate([*outputs.values()]) for outputs in one]) / ansatz.components
        for one in (
            _evaluated(mean_field, base, ansatz.left(), known, left),
            _evaluated(mean_field, base, ansatz.right(), known, right),
        )
    ]
    norms = np.einsum("kp,kp->k", *orbitals)
    count = options.nroots
    states = first_states(
        (
            replace(s, dyson=float(norms[list(s.roots)].mean()))
            for s in vectors.states(found.values, right)
        ),
        count,
    )
    whole = {n: a[:count] for x in (right, left) for n, a in x.items()}
    letters = {t.name: f"x{vectors.spaces.letters(t)}" for t in vectors.tensors}
    letters |= {f"l{n[1:]}": x for n, x in letters.items()}
    return with_roots(
        ground, f"eom_{sector}_{short}", found, states, options,
        amplitudes=arrays | whole,
        letters=ground.letters | letters,
        values={"dyson_left": orbitals[0][:count], "dyson_right": orbitals[1][:count]},
        solved=[*right],
        seconds=time.perf_counter() - clock,
    )  # fmt: skip


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


def _vectors(system: System, mean_field: Any, options: SolveOptions) -> Vectors:
    """What names the vectors of equations."""
    system, equations, _, blocks, reference = inferred(system, mean_field, options)
    spaces = classify(system)
    bases = tuple(s for s in system.spaces if spaces.kind(s) in ORBITAL)
    tensors = tuple(a.tensor for a in equations.amplitudes)
    return Vectors(tensors, bases, spaces, blocks, reference)


class _Ansatz:
    """Numbers that are linear in a left or a right vector, as derivatives by what they multiply.

    Over spatial orbitals they are sums over the ``components`` of a state: two spins.
    """

    def __init__(self, ranks: list[str], attachment: bool, spatial: bool) -> None:
        self._spin = "closed-shell" if spatial else None
        self.components = 2 if spatial else 1
        count = len(ranks)
        holes, particles = (0, 1) if attachment else (1, 0)

        def sums(letter: str, up: str, down: str, more: tuple[int, int]) -> str:
            each = (
                f"{letter}{n}{{{' '.join([up] * (n - 1 + more[1]) + [down] * (n - 1 + more[0]))}}}"
                for n in range(1, count + 1)
            )
            return " + ".join(each)

        self._operators = [
            f"T = {' + '.join(ranks)}",
            f"R = {sums('r', 'v+', 'o', (holes, particles))}",
            f"L = {sums('l', 'v', 'o+', (holes, particles))}",
            f"Z = {sums('z', 'v', 'o+', (1, 1))}",
        ]
        one_electron = ("X = x1{o} + x2{v}", "X = x1{o+} + x2{v+}")
        self._to_left, self._to_right = reversed(one_electron) if attachment else one_electron

    def overlap(self) -> System:
        """The derivative of the product of a left and a right vector by the left one."""
        return self._derived("S = <0| L R |0>", "l")

    def left(self) -> System:
        """The amplitude of a state with a left vector: the operator acts on the ground state."""
        return self._derived(f"{self._to_left}\nS = <0| L exp(-T) X exp(T) |0>", "x")

    def right(self) -> System:
        """The amplitude with a right vector, by the left ground state 1 + Z."""
        return self._derived(f"{self._to_right}\nS = <0| (1 + Z) exp(-T) X exp(T) R |0>", "x")

    def _derived(self, lines: str, letter: str) -> System:
        system = derive("\n".join([*self._operators, lines]), spin=self._spin)
        wrt = [t.name for t in system.inputs if t.name.startswith(letter)]
        return derivative(system, wrt, of="S")


def _evaluated(
    mean_field: Any,
    options: SolveOptions,
    system: System,
    arrays: Mapping[str, Array],
    vectors: Mapping[str, Array],
) -> list[dict[str, Array]]:
    """The outputs of a system for each of some vectors, which have roots first."""
    known = {**arrays, **{n: a[0] for n, a in vectors.items()}}
    read = {t.name for t in system.inputs}
    outputs = [t.name for t in system.outputs]
    options = replace(
        options,
        amplitudes={n: a for n, a in known.items() if n in read},
        outputs=dict.fromkeys(outputs, "value"),
        nroots=1,
    )
    free = {n: a for n, a in vectors.items() if n in read}
    with opened(system, mean_field, options, free=vectors) as problem:
        count = len(next(iter(vectors.values())))
        return [problem.values(**{n: a[k] for n, a in free.items()}) for k in range(count)]
