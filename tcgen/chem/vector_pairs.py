"""Left and right vectors of the same roots: groups of equal roots, and biorthonormal pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import ConvergenceError
from ..ir.layouts import Array
from .eigen import Roots
from .options import SolveOptions
from .problem import Problem
from .result import Earlier, Solution
from .root_vectors import EQUAL, groups
from .states import State, States

_MORE = 2  # roots beyond those asked for, which show whether a group of equal roots is whole
_SAME = 1e-5  # largest difference of roots of left and right vectors, in Hartree
_DEPENDENT = 1e-6  # smallest singular value of the overlap of left and right vectors of a group


def whole_groups(problem: Problem, wanted: int) -> Roots:
    """The lowest roots, at least ``wanted``, and those that are equal to the last of these.

    Raises:
        ArgumentError: the matrix has fewer rows.
    """
    rows = sum(part.places.size for part in problem.matrix(silent)[1].values())
    count, products = min(rows, wanted + _MORE), 0
    start: Mapping[str, Array] = {}
    while True:
        # A larger number than that of rows is refused.
        found = lowest(problem, start, max(count, wanted))
        start, products = found.amplitudes, products + found.products
        if count == rows or found.values[-1] - found.values[wanted - 1] > EQUAL:
            break
        count = min(rows, count + 2 * _MORE)
    kept = next(g for g in groups(found.values) if wanted - 1 in g)[-1] + 1
    arrays = {n: a[:kept] for n, a in found.amplitudes.items()}
    return Roots(found.values[:kept], arrays, found.norms[:kept], products)


def lowest(problem: Problem, start: Mapping[str, Array], count: int) -> Roots:
    """So many roots, from vectors with roots first or none."""
    own = replace(problem, options=replace(problem.options, nroots=count))
    earlier = Earlier(dict(start) or None, "", problem.spaces, problem.extents, (), {})
    return own.roots(earlier, silent)


def silent(_products: int) -> None:
    """Shows nothing."""


def paired(
    name: str, values: Sequence[float], left: Roots, overlap: Array, tolerance: float
) -> dict[str, Array]:
    """Left vectors whose products with right ones are 1 for a pair and 0 for others.

    ``overlap`` has the products of left vectors, its rows, with right ones, whose roots are
    ``values``. Vectors of equal roots are turned.

    Raises:
        ConvergenceError: left vectors have other roots or are not converged, or products vanish.
    """
    difference = float(np.abs(np.subtract(left.values, values)).max())
    if difference > _SAME or max(left.norms) > tolerance:
        raise ConvergenceError(
            f"the roots of left vectors of {name} differ from those of right ones by "
            f"{difference:.1e}, residual norm {max(left.norms):.1e}: ask for more or fewer roots, "
            f"or raise max_cycle"
        )
    turned = {n: a.copy() for n, a in left.amplitudes.items()}
    for group in groups(values):
        own = overlap[np.ix_(group, group)]
        if np.linalg.svd(own, compute_uv=False)[-1] < _DEPENDENT:
            raise ConvergenceError(
                f"{name}: the {len(group)} left and right vectors of the root "
                f"{values[group[0]]:.6f} have no pairs: states of equal energy without as many "
                f"vectors, or roots that are not converged"
            )
        for array in turned.values():
            array[group] = np.tensordot(np.linalg.inv(own), array[group], axes=1)
    return turned


def first_states(states: Iterable[State], count: int) -> States:
    """The states of the first roots, without the others of a group of equal ones."""
    return States(
        replace(s, roots=tuple(k for k in s.roots if k < count))
        for s in states
        if s.roots[0] < count
    )


def with_roots(
    ground: Solution, name: str, found: Roots, states: States, options: SolveOptions, **more: Any
) -> Solution:
    """The solution of a ground state with the first roots, whose states it shows."""
    count = options.nroots
    norms = found.norms[:count]
    if callable(options.show) or options.show:
        show = options.show if callable(options.show) else print
        for line in states.lines():
            show(line)
    return replace(
        ground,
        name=name,
        converged=max(norms) <= options.tolerance,
        roots=found.values[:count],
        states=states,
        iterations=found.products,
        residual_norms={f"root {n}": norm for n, norm in enumerate(norms, 1)},
        **more,
    )
