"""What one would write by hand: each term of the equations through opt_einsum, one after another.

The baseline of the examples: same equations, same named intermediates, each term contracted in the
order that opt_einsum finds once for the given extents, permutations applied to the finished term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import opt_einsum as oe

import tcgen


class TermLoop:
    """The equations of a system, as prepared opt_einsum expressions.

    Equations with element-wise factors (denominators) are left out: ``skipped`` names them.
    """

    def __init__(self, system: tcgen.System, extents: Mapping[str, int]) -> None:
        self.extents = extents
        plain = [e for e in system.equations if all(t.factors == t.refs for t in e.terms)]
        self.skipped = tuple(e.lhs.tensor.name for e in system.equations if e not in plain)
        self.steps = [(e, [(t, self._expression(e, t)) for t in e.terms]) for e in plain]

    def _shape(self, indices: Sequence[Any]) -> tuple[int, ...]:
        """Extents of indices; a joined space is as long as its parts together."""
        return tuple(sum(self.extents[base.name] for base in i.space.bases) for i in indices)

    def _expression(self, equation: Any, term: Any) -> Any:
        letters = {i: oe.get_symbol(n) for n, i in enumerate((*equation.lhs.indices, *term.sums))}
        subscripts = ",".join("".join(letters[i] for i in ref.indices) for ref in term.refs)
        shapes = [self._shape(ref.indices) for ref in term.refs]
        left = "".join(letters[i] for i in equation.lhs.indices)
        return oe.contract_expression(f"{subscripts}->{left}", *shapes)

    def __call__(self, **arrays: np.ndarray) -> dict[str, np.ndarray]:
        """Inputs by name to all computed tensors by name."""
        values = dict(arrays)
        for equation, terms in self.steps:
            total = np.zeros(self._shape(equation.lhs.indices))
            for term, contract in terms:
                value = float(term.coeff) * contract(*(values[r.tensor.name] for r in term.refs))
                if not term.perms:
                    total += value
                for perm in term.perms:
                    total += perm.sign * np.transpose(value, np.argsort(perm.images))
            values[equation.lhs.tensor.name] = total
        return values
