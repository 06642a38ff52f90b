"""The cost of a formula sequence: flops of contractions, additions, and bytes moved.

The search compares products by the flops of whole arrays. Finished sequences are compared by what
runs: where a processor computes one of each symmetric pair of a product, that half counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..dtypes import BY_NAME
from ..ir.cost import iteration_space
from ..ir.halved_products import exchange_of
from ..ir.program import Contract, FormulaSequence, Phase, Step
from ..options import Options
from ..thresholds import CpuThresholds


@dataclass(frozen=True, slots=True)
class CostModel:
    """The cost that the search minimises, in flops (a multiply-add has 2).

    Attributes:
        packed: True counts multiply-adds that are equal by symmetry once.
        addition: weight of an addition, or of another operation outside contractions, in flops.
        element: weight of an array element that a step reads or writes, in flops.
        calls: number of calls of a bound program, among which the constant phase is divided.
        halving: thresholds of a target that computes half of a product with exchanged indices, else
            None; packed costs count symmetric multiply-adds once anyway.
    """

    packed: bool = False
    addition: Fraction | int = 1
    element: Fraction | int = 0
    calls: int = 1
    halving: CpuThresholds | None = None

    @staticmethod
    def of(options: Options, byte_weight: float | None = None) -> CostModel:
        """The cost that the options ask for, with their weight of a byte or another one."""
        weight = options.byte_weight if byte_weight is None else byte_weight
        return CostModel(
            options.cost == "packed",
            _exact(options.add_weight),
            _exact(weight or 0) * BY_NAME[options.dtype].itemsize,
            options.calls,
            options.thresholds.cpu if options.target == "cpu" and options.cost == "dense" else None,
        )

    def cost(self, program: FormulaSequence, extents: Mapping[str, int]) -> Fraction:
        """Cost per call of a formula sequence at given extents of the base spaces, in flops."""
        total = Fraction(0)
        for step in program.steps:
            cost = self._step_cost(step, extents) - self._saved(program, step, extents)
            total += Fraction(cost) / self.calls if step.phase is Phase.CONSTANT else cost
        return total

    def _saved(self, program: FormulaSequence, step: Step, extents: Mapping[str, int]) -> int:
        """Flops that lowering saves in a product by exchanges of indices, less those of copies."""
        if self.halving is None:
            return 0
        exchange = exchange_of(program, step, extents, self.halving)
        return 0 if exchange is None else exchange.saved

    def _step_cost(self, step: Step, extents: Mapping[str, int]) -> Fraction | int:
        flops: Fraction | int
        if isinstance(step.op, Contract):
            flops = (step.packed_flops if self.packed else step.flops).value(extents)
        else:
            flops = self.addition * step.flops.value(extents)
        if not self.element:
            return flops
        refs = (step.out, *step.operands)
        return flops + self.element * sum(iteration_space(r.indices).value(extents) for r in refs)


def _exact(weight: float) -> Fraction | int:
    """A weight without rounding; the search computes with integers much faster."""
    exact = Fraction(weight)
    return exact.numerator if exact.denominator == 1 else exact
