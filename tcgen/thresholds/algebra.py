"""Thresholds of the search for a formula sequence."""

from __future__ import annotations

from dataclasses import dataclass

from .legal_range import threshold


@dataclass(frozen=True, slots=True)
class AlgebraThresholds:
    """Thresholds of the search for a formula sequence.

    The search counts its work and never looks at a clock, so that a result depends on these
    numbers and on the equations alone. All values give right sequences; smaller ones give a faster
    search and may give sequences with more operations.

    Attributes:
        work_per_effort: common factors that the search may weigh for each unit of ``effort``.
        rounds_per_array: rounds of random improvement for each intermediate of the greedy result
            and each unit of ``effort``.
        idle_rounds_per_array: a pass of improvement ends after this many rounds for each
            intermediate without a cost that it has not seen before.
        improvement_passes: passes of random improvement, each from the greedy result.
        noise_exponent: in a round each saving is multiplied by a random number in [0, 1) to a
            power between 0 and this one.
        accepted_increase: relative increase of the cost that a pass accepts in its first round;
            it falls to 0 in the last one.
        longer_extent_factor: the greedy search also starts from extents of which one is
            multiplied by this factor.
        multiplied_out_terms: equations with more terms, all brackets multiplied out, are not
            factored.
        term_splits: nor are equations whose terms can be split into a common factor and the rest
            in more places than these.
        target_permutations: the search does not use the symmetry of an output with more
            permutations.
        term_factors: a term with more factors takes no part in the search.
        factor_orders: nor does a term whose equal factors have more orders; six of them have 720.
        label_orders: orders that are compared where tensors cannot be told apart by structure.
        completions: completed products that are tried in each state.
        placement_orders: orders of the indices of one term that a change of basis compares.
        basis_rows: rows of the coefficient matrix that a change of basis decomposes.
        pencil_pairs: pairs of matrices whose linear combinations are searched for rank one.
        exact_factors: products of up to this many factors are split in their optimal order, longer
            ones in the greedy order of opt_einsum.
        inlined_terms: an intermediate stays where inlining it gives an equation with more terms.
        inlining_passes: passes over all intermediates, in each of which those are inlined that
            lower the cost.
        folded_images: terms are not gathered under permutations of the left side if they have more
            images in all.
        map_depth: operations inside each other in one element-wise step; deeper ones are split.
        axis_orders: orders of axes that are tried to show that two intermediates are equal.
    """

    work_per_effort: int = threshold(150_000, 1, 300_000)
    rounds_per_array: int = threshold(80, 0, 160)
    idle_rounds_per_array: int = threshold(800, 1, 800)
    improvement_passes: int = threshold(2, 0, 4)
    noise_exponent: float = threshold(6.0, 0.0, 12.0)
    accepted_increase: float = threshold(0.03, 0.0, 0.3)
    longer_extent_factor: int = threshold(2, 1, 8)
    multiplied_out_terms: int = threshold(20_000, 0, 40_000)
    term_splits: int = threshold(20_000, 0, 40_000)
    target_permutations: int = threshold(600, 1, 600)
    term_factors: int = threshold(8, 0, 9)
    factor_orders: int = threshold(720, 1, 5040)
    label_orders: int = threshold(24, 1, 48)
    completions: int = threshold(40, 0, 80)
    placement_orders: int = threshold(144, 1, 288)
    basis_rows: int = threshold(36, 0, 72)
    pencil_pairs: int = threshold(300, 0, 600)
    exact_factors: int = threshold(8, 2, 10)
    inlined_terms: int = threshold(400, 0, 800)
    inlining_passes: int = threshold(3, 0, 6)
    folded_images: int = threshold(60_000, 0, 100_000)
    map_depth: int = threshold(50, 1, 80)
    axis_orders: int = threshold(720, 0, 5040)
