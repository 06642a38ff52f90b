"""Amplitudes of PySCF's and ebcc's solvers in the conventions of the shipped specs, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..ir.layouts import Array
from .result import Solution

# A spec over the orbitals of each class of solvers.
_SPECS = {
    **dict.fromkeys(("CCSD", "RCCSDT", "REBCC"), "ccsd_closed_shell"),
    **dict.fromkeys(("UCCSD", "UEBCC"), "uccsd"),
    **dict.fromkeys(("GCCSD", "GEBCC"), "ccsd_spin_orbital"),
}
_BLOCKS = ("t1a", "t1b", "t2aa", "t2ab", "t2bb")


def amplitudes_of(solver: Any) -> dict[str, Array]:
    """Amplitudes of a coupled-cluster object of PySCF or ebcc, for ``solve(amplitudes=...)``.

    Args:
        solver: an RCCSD, UCCSD, GCCSD or RCCSDT of PySCF, or a REBCC, UEBCC or GEBCC of ebcc, after
            its ``kernel()``.

    Returns:
        ``t1[i,a]`` and ``t2[i,j,a,b]``, and ``t3[i,j,k,a,b,c]`` of RCCSDT; of unrestricted solvers
        ``t1a``, ``t1b``, ``t2aa``, ``t2ab`` and ``t2bb`` as in the spec ``uccsd``. Amplitudes of
        GCCSD and GEBCC belong to the GHF reference of the solver. ebcc's triples are left out.

    Raises:
        ArgumentError: the solver is none of these, or has no amplitudes yet.

    Example (with PySCF; docs/solve.md runs it):

        start = tcgen.chem.amplitudes_of(cc.CCSD(mf).run())
        triples = tcgen.chem.solve("t_closed_shell", mf, amplitudes=start)
    """
    found = _class_of(solver)
    t1, t2 = (getattr(_holder(solver), name, None) for name in ("t1", "t2"))
    if t1 is None or t2 is None:
        raise ArgumentError(f"this {found} has no amplitudes: call its kernel() first")
    if found == "UCCSD":
        return dict(zip(_BLOCKS, (*t1, *t2), strict=True))
    if found == "UEBCC":
        return dict(zip(_BLOCKS, (t1.aa, t1.bb, 2 * t2.aaaa, t2.abab, 2 * t2.bbbb), strict=True))
    triples = {"t3": solver.tamps_tri2full(solver.t3)} if found == "RCCSDT" else {}
    return {"t1": t1, "t2": t2, **triples}


def set_amplitudes(solver: Any, amplitudes: Solution | Mapping[str, Array]) -> None:
    """Give amplitudes to a coupled-cluster object of PySCF or ebcc, which copies them.

    PySCF's ``ccsd_t()``, ``solve_lambda()`` and density matrices use them, ``kernel(t1, t2)``
    starts from those that it is passed, and ebcc's ``kernel()`` from these.

    Args:
        solver: an object that :func:`amplitudes_of` takes, over the orbitals of the amplitudes.
        amplitudes: a result of ``solve``, or arrays by the names of :func:`amplitudes_of`. ``t3``
            is used by RCCSDT and REBCC.

    Raises:
        ArgumentError: the solver is none of these, or amplitudes are missing.
        ShapeError: amplitudes have other numbers of orbitals than the solver.

    Example (with PySCF; docs/solve.md runs it):

        tcgen.chem.set_amplitudes(solver, tcgen.chem.solve("ccsd_closed_shell", mf))
        triples = solver.ccsd_t()
    """
    found = _class_of(solver)
    given = amplitudes.amplitudes if isinstance(amplitudes, Solution) else amplitudes
    names = _BLOCKS if found in ("UCCSD", "UEBCC") else ("t1", "t2")
    if missing := [name for name in names if name not in given]:
        raise ArgumentError(
            f"{found} needs the amplitudes {', '.join(names)}, and got no {' or '.join(missing)}: "
            f"pass the result of a spec over the same orbitals, such as {_SPECS[found]}"
        )
    if "t3" in given and found in ("RCCSDT", "REBCC"):
        names = (*names, "t3")
    arrays = {name: np.array(given[name]) for name in names}
    _check_shapes(solver, arrays)
    holder = _holder(solver)
    if found == "UCCSD":
        t1a, t1b, *doubles = arrays.values()
        solver.t1, solver.t2 = (t1a, t1b), tuple(doubles)
        return
    if found == "UEBCC":
        t1a, t1b, t2aa, t2ab, t2bb = arrays.values()
        spins = type(holder)
        holder.t1 = spins(aa=t1a, bb=t1b)
        holder.t2 = spins(aaaa=t2aa / 2, abab=t2ab, bbbb=t2bb / 2)
        return
    holder.t1, holder.t2 = arrays["t1"], arrays["t2"]
    if "t3" in arrays:
        t3 = arrays["t3"]
        holder.t3 = solver.tamps_full2tri(t3) if found == "RCCSDT" else t3 - t3.swapaxes(0, 2)


def _class_of(solver: Any) -> str:
    """The class of a solver, by name, so that neither program is imported."""
    found = next((c.__name__ for c in type(solver).__mro__ if c.__name__ in _SPECS), None)
    if found is None:
        raise ArgumentError(
            f"{type(solver).__name__} is not a solver whose amplitudes are known: pass an RCCSD, "
            f"UCCSD, GCCSD or RCCSDT of PySCF, or a REBCC, UEBCC or GEBCC of ebcc"
        )
    return found


def _holder(solver: Any) -> Any:
    """The object with the attributes t1 and t2."""
    return solver.amplitudes if _class_of(solver).endswith("EBCC") else solver


def _check_shapes(solver: Any, arrays: Mapping[str, Array]) -> None:
    occupied, orbitals = np.atleast_1d(solver.nocc), np.atleast_1d(solver.nmo)
    for name, array in arrays.items():
        rank = int(name[1])
        spins = [-1 if spin == "b" else 0 for spin in (name[2:] or "a").ljust(rank, "a")]
        counts = *occupied[spins], *(orbitals - occupied)[spins]
        wanted = tuple(map(int, counts))
        if array.shape != wanted:
            raise ShapeError(
                f"{name} has the shape {array.shape}, and the solver needs {wanted}: pass "
                f"amplitudes of the same molecule, basis and frozen orbitals"
            )
