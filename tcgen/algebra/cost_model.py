"""What counts as cost: operations of contractions, additions, bytes moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..ir.cost import iteration_space
from ..ir.program import Contract, Program, Step
from ..ir.tensor import BYTES_OF
from ..options import Options


@dataclass(frozen=True, slots=True)
class CostModel:
    """The cost that the search makes small, in flops.

    Attributes:
        packed: multiply-adds that symmetry makes equal count once.
        addition: flops that an addition, or another operation outside contractions, counts.
        element: flops that an array element read or written by a step counts.
    """

    packed: bool = False
    addition: Fraction = Fraction(1)
    element: Fraction = Fraction(0)

    @staticmethod
    def of(options: Options) -> CostModel:
        """The model that the options ask for."""
        return CostModel(
            options.cost == "packed",
            Fraction(options.add_weight),
            Fraction(options.byte_weight) * BYTES_OF[options.dtype],
        )

    def price(self, program: Program, extents: Mapping[str, int]) -> Fraction:
        """Cost of a whole sequence at given extents."""
        return sum((self._step(s, extents) for s in program.steps), Fraction(0))

    def _step(self, step: Step, extents: Mapping[str, int]) -> Fraction:
        if isinstance(step.op, Contract):
            flops = Fraction((step.packed_flops if self.packed else step.flops).value(extents))
        else:
            flops = self.addition * step.flops.value(extents)
        if not self.element:
            return flops
        moved = sum(iteration_space(r.indices).value(extents) for r in (step.out, *step.operands))
        return flops + self.element * moved
