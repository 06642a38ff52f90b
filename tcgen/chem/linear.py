"""Linear equations whose matrix a program multiplies with amplitudes, by preconditioned DIIS.

For linear equations DIIS spans the space of GMRES (Ettenhuber and Jorgensen, J. Chem. Theory
Comput. 11, 1518, 2015); several right-hand sides are multiplied together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..ir.layouts import Array
from .eigen import Independent, Layout, Multiply
from .iterate import Diis

_KEEP = 16  # vectors of DIIS


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """Solutions with a first axis for the equations, norms of residuals, and products."""

    amplitudes: dict[str, Array]
    norms: tuple[float, ...]
    products: int


def solve_linear(
    multiply: Multiply,
    parts: Mapping[str, Independent],
    diagonal: Mapping[str, Array],
    right: Mapping[str, Array],
    shifts: Sequence[float],
    *,
    tolerance: float,
    max_cycle: int,
) -> Linear:
    """Solve (A + shift) x = b for right-hand sides b on the first axis, a shift for each.

    ``multiply``, ``parts`` and ``diagonal`` are those of :meth:`.problem.Problem.matrix`; the
    diagonal plus a shift preconditions. Each iterates until the 2-norm of its residual is at most
    ``tolerance``, at most ``max_cycle`` times.

    Example:
        >>> from tcgen.ir.tensor import Role, Space, Tensor
        >>> from .eigen import independent_elements
        >>> part = independent_elements(Tensor("x", (Space("o"),), Role.INPUT), (2,))
        >>> matrix = np.array([[2.0, 0.5], [0.1, 3.0]])
        >>> found = solve_linear(lambda v: {"x": v["x"] @ matrix.T}, {"x": part},
        ...                      {"x": matrix.diagonal()}, {"x": np.ones((1, 2))}, [1.0],
        ...                      tolerance=1e-12, max_cycle=20)
        >>> bool(np.allclose((matrix + np.eye(2)) @ found.amplitudes["x"][0], 1))
        True
    """
    layout = Layout(parts)
    (estimate,) = layout.vectors({name: array[None] for name, array in diagonal.items()})
    wanted = layout.vectors(right)
    below = [estimate + shift for shift in shifts]
    below = [np.where(np.abs(d) < 1e-8, 1e-8, d) for d in below]
    now = [b / d for b, d in zip(wanted, below, strict=True)]
    accelerate = [Diis(_KEEP) for _ in wanted]
    norms, products = [np.inf] * len(wanted), 0
    for _ in range(max_cycle):
        left = [k for k, norm in enumerate(norms) if norm > tolerance]
        if not left:
            break
        images = layout.vectors(multiply(layout.amplitudes([now[k] for k in left])))
        products += len(left)
        for k, image in zip(left, images, strict=True):
            residual = wanted[k] - image - shifts[k] * now[k]
            norms[k] = float(np.linalg.norm(residual))
            if norms[k] > tolerance:
                change = residual / below[k]
                now[k] = accelerate[k](now[k] + change, change)
    return Linear(layout.amplitudes(now), tuple(norms), products)
