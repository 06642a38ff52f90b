"""Thresholds of the planner: of factoring, of fusion, and of the parts of a program.

Work is counted, not timed, so that a search gives the same result on every machine: CP-SAT counts
*deterministic seconds*, about as long as seconds of one core; the other searches count steps. A
model's *constraints* are estimated by
:func:`tcgen.fusion.solver.loop_constraints.constraint_count`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .legal_range import UNBOUNDED, threshold


@dataclass(frozen=True, slots=True)
class TreeThresholds:
    """Dynamic programming on programs in which every intermediate has one producer and one reader.

    Attributes:
        prefixes: most ordered prefixes of loops, over all edges, for which the least sum of all
            arrays is tabulated: one or two seconds.
        steps: comparisons and merges of the search for the least peak at effort 1: a second.
        first_parts: number of grains in the peak at first; sizes of arrays are rounded down to
            whole grains.
        more_parts: factor by which the grains of the next rounding are finer.
        repeat_below: the grains stay as fine if the peak has fallen below this fraction.
    """

    prefixes: int = threshold(400_000, 0, 800_000)
    steps: int = threshold(200_000, 0, 10_000_000)
    first_parts: int = threshold(32, 1, 1024)
    more_parts: int = threshold(4, 2, 64)
    repeat_below: float = threshold(0.9, 0.0, 0.99)


@dataclass(frozen=True, slots=True)
class DescentThresholds:
    """The descent in the peak, which contracts one more axis at a time.

    It ends after a step that gains little in both the peak and the sum of all arrays, unless the
    peak is close to its bound.

    Attributes:
        ignored_excess: an array is not contracted if it is smaller than this fraction of the
            difference between the peak and its bound.
        little_peak: fraction of the peak below which a decrease of the peak is a little gain.
        little_sum: fraction of the peak below which a decrease of the sum is a little gain.
        close: fraction of the peak up to which its difference to the bound is close.
    """

    ignored_excess: Fraction = threshold(Fraction(1, 25), Fraction(0), Fraction(1))
    little_peak: float = threshold(0.001, 0.0, 1.0)
    little_sum: float = threshold(0.02, 0.0, 1.0)
    close: float = threshold(0.01, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class MemoryThresholds:
    """Objectives ``memory`` and ``peak``.

    Attributes:
        seconds: deterministic seconds of all searches at effort 1.
        direct_constraints: largest model of the peak that is solved for all arrays at once.
        static_constraints: largest model of the static sum, which has no order of the statements.
        static_rounds: most rounds in which loops without a common order are excluded before the
            search gives up.
        part_seconds: most deterministic seconds of one search over some of the arrays.
        part_constraints: largest model over some of the arrays.
        idle_seconds: deterministic seconds without progress after which these searches end.
        close: a gap between peak and bound, or progress, below this fraction of the peak does not
            count.
        promising: multiple of the least peak below which an arrangement is improved further.
        first_trials: most arrangements that the first descent examines.
        part_trials: most arrangements of the descent after each search over some of the arrays.
    """

    seconds: float = threshold(12.0, 0.0, 24.0)
    direct_constraints: int = threshold(10_000, -1, 50_000)
    static_constraints: int = threshold(1_000_000, -1, 2_000_000)
    static_rounds: int = threshold(30, 0, 300)
    part_seconds: float = threshold(3.0, 0.0, 24.0)
    part_constraints: int = threshold(400_000, -1, 800_000)
    idle_seconds: float = threshold(0.35, 0.0, 24.0)
    close: float = threshold(0.01, 0.0, 1.0)
    promising: float = threshold(1.1, 0.0, 10.0)
    first_trials: int = threshold(3000, 0, 10_000)
    part_trials: int = threshold(60, 0, 10_000)


@dataclass(frozen=True, slots=True)
class TimeThresholds:
    """Objective ``time``.

    Attributes:
        seconds: deterministic seconds of each search at effort 1.
        seconds_per_tile: least deterministic seconds of the search with one choice of tiles.
        few_statements: most statements of a program that is searched with every strategy, and for
            speed if it fits unfused.
        worthwhile: fraction of the predicted time that must be saved before a program that fits
            unfused is fused; smaller differences are within the error of the prediction.
        limit_parts: the descent in the peak stops at these parts of the memory limit in turn: a
            smaller peak of loops over single elements leaves room for larger tiles.
        trials: arrangements that the descent examines for each of these parts.
        large_arrays: an array above this fraction of the limit should be contracted.
        solved_trips: trip counts of a loop for which the solver proposes arrangements.
        refined_trips: trip counts of a loop that are tried for a given arrangement.
        refined_neighbours: most positions that a loop moves among these if the tiles of two loops
            change at once.
        paired_loops: most loops of a plan in which the tiles of two loops change at once.
        chain_indices: most loops of a triangular nest; n loops stand for n! permutations.
    """

    seconds: float = threshold(6.0, 0.0, 12.0)
    seconds_per_tile: float = threshold(0.2, 0.0, 1.0)
    few_statements: int = threshold(10, 0, 20)
    worthwhile: Fraction = threshold(Fraction(1, 10), Fraction(0), Fraction(1))
    limit_parts: tuple[int, ...] = threshold((1, 3, 10, 100), (1,), (1, 2, 3, 5, 10, 30, 100, 1000))
    trials: int = threshold(1000, 0, 3000)
    large_arrays: Fraction = threshold(Fraction(1, 16), Fraction(0), Fraction(1))
    solved_trips: tuple[int, ...] = threshold((1, 2, 4, 10, 30), (1,), (1, 2, 3, 4, 6, 10, 20, 30))
    refined_trips: tuple[int, ...] = threshold(
        (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300),
        (1,),
        tuple(range(1, 101)),
    )
    refined_neighbours: int = threshold(3, 0, 5)
    paired_loops: int = threshold(10, 0, 12)
    chain_indices: int = threshold(4, 1, 5)


@dataclass(frozen=True, slots=True)
class FusionThresholds:
    """Thresholds of the search for a fusion plan.

    Attributes:
        solver_constraints: largest model for all arrays; the solver would not finish a larger one
            in reasonable time.
        linear_seconds: deterministic seconds of the objective ``linear`` at effort 1, divided among
            the trees of a program.
        partition_blocks: most blocks that the objective ``kernels`` examines for an optimum at
            effort 1.
        generated_tile_bytes: largest tile of a generated input that shares no loop with its reader.
        offset_seconds: deterministic seconds of the search for offsets in the arena, where first
            fit does not reach the peak.
    """

    trees: TreeThresholds = TreeThresholds()
    descent: DescentThresholds = DescentThresholds()
    memory: MemoryThresholds = MemoryThresholds()
    time: TimeThresholds = TimeThresholds()
    solver_constraints: int = threshold(50_000, -1, 200_000)
    linear_seconds: float = threshold(2.0, 0.0, 10.0)
    partition_blocks: int = threshold(30_000, 0, 100_000)
    generated_tile_bytes: int = threshold(16 * 2**20, 1, 2**40)
    offset_seconds: float = threshold(1.0, 0.0, 5.0)


@dataclass(frozen=True, slots=True)
class AlgebraThresholds:
    """Thresholds of the search for a formula sequence.

    The search counts its work and never looks at a clock, so that a result depends only on these
    numbers and on the equations. All values give right sequences; smaller ones give a faster
    search and may give sequences with more operations.

    Attributes:
        exhaustive_terms: most terms of all equations whose cheapest factoring is searched.
        exhaustive_methods: methods to compute arrays that this search may examine.
        close_cost: sequences whose cost exceeds the least one by at most this fraction are planned;
            the one of least predicted time is taken.
        direct_terms: equations with more terms are searched at typical extents first.
        small_flops: flops of all calls, as written, below which equations of more terms than that
            are searched at their own extents, with little work: a search takes as long as 1e11
            flops, and after ``small_work`` saves 1 % of CCSD at (5, 53) to (10, 40).
        small_work: common factors that this search may weigh. CCSD at (6, 24) to (12, 32) costs
            the same, to 1 %, with 2,000 and with 10,000, which takes a third longer.
        work_per_effort: common factors that the search may weigh for each unit of ``effort``.
        rounds_per_array: rounds of random improvement for each intermediate of the greedy result
            and each unit of ``effort``.
        idle_rounds_per_array: a pass of improvement ends after this many rounds for each
            intermediate without a cost that it has not seen before.
        improvement_passes: passes of random improvement, each from the greedy result.
        noise_exponent: largest power of the random number in [0, 1) by which each saving is
            multiplied in a round.
        accepted_increase: relative increase of the cost that a pass accepts in its first round;
            it falls to 0 in the last one.
        longer_extent_factor: factor of one extent in further starts of the greedy search.
        multiplied_out_terms: equations with more terms, all brackets multiplied out, are not
            factored.
        term_splits: nor are equations whose terms can be split into a common factor and the rest
            in more places than these.
        target_permutations: most permutations of an output whose symmetry the search uses.
        term_factors: a term with more factors takes no part in the search.
        factor_orders: nor does a term whose equal factors have more orders; six of them have 720.
        label_orders: orders that are compared if tensors have the same structure.
        completions: completed products that are tried in each state.
        placement_orders: orders of the indices of one term that a change of basis compares.
        basis_rows: rows of the coefficient matrix that a change of basis decomposes.
        pencil_pairs: pairs of matrices whose linear combinations are searched for rank one.
        exact_factors: products of up to this many factors are split in their optimal order, longer
            ones in the greedy order of opt_einsum.
        inlined_terms: an intermediate stays where inlining it gives an equation with more terms.
        inlining_passes: passes over all intermediates; each inlines those that lower the cost.
        folded_images: terms are not gathered under permutations of the left side if they have more
            images in all.
        map_depth: operations inside each other in one element-wise step; deeper ones are split.
        axis_orders: orders of axes that are tried to show that two intermediates are equal.
    """

    exhaustive_terms: int = threshold(6, 0, 8)
    exhaustive_methods: int = threshold(20_000, 0, 40_000)
    close_cost: Fraction = threshold(Fraction(1, 10), Fraction(0), Fraction(1))
    direct_terms: int = threshold(10, 0, UNBOUNDED)
    small_flops: int = threshold(100_000_000_000, 0, UNBOUNDED)
    small_work: int = threshold(2_000, 1, 300_000)
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


@dataclass(frozen=True, slots=True)
class PartsThresholds:
    """Number of outermost loops that are numbered.

    A finer division makes no better balance, but each iteration compares its number: about 2 ns,
    which 2**12 points hide.

    Attributes:
        iterations: iterations up to which more loops are numbered.
        points: points of an iteration above which more loops are numbered.
    """

    iterations: int = threshold(64, 1, 2**30)
    points: int = threshold(2**20, 2**12, 2**40)


@dataclass(frozen=True, slots=True)
class PlannerThresholds:
    """Thresholds of the planner: of formula sequences, fusion plans, and parts of programs."""

    algebra: AlgebraThresholds = AlgebraThresholds()
    fusion: FusionThresholds = FusionThresholds()
    parts: PartsThresholds = PartsThresholds()
