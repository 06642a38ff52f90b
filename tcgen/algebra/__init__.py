"""Operation minimisation: from sums of products to a formula sequence of binary steps.

``equations`` brings a system into normal form, by ``permutation_groups``. ``factoring`` searches
for the cheapest factorisation under ``cost_model``, and ``sequence`` splits the result into binary
steps, both in the order that ``binary_orders`` finds. ``derivatives`` makes new systems by
differentiation, and ``spin`` makes them by integrating over spins. ``rational_matrices`` has the
linear algebra of exact numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from ..ir.program import BEST_FOUND, EACH_TERM, PROVEN, FormulaSequence, Produce
from ..ir.system import System, planning_extents
from ..options import Options
from ..thresholds import AlgebraThresholds
from .cost_model import CostModel
from .equations.inline import naive_cost
from .equations.intermediates import reduced
from .equations.normal_form import NormalForms
from .equations.permutations import fold_permutations, separate_permutations
from .equations.proven_symmetry import normalised, output_symmetry
from .equations.volatile import has_constant_products, with_volatile
from .sequence.build import build_program, with_constants, without_constant_phase
from .sequence.common_products import Recipe, Workspace
from .sequence.export import neutral_sequence
from .sequence.real_intermediates import with_real_intermediates

__all__ = [
    "Sequences",
    "form_sequence",
    "form_sequences",
    "neutral_sequence",
    "without_constant_phase",
]


@dataclass(frozen=True, slots=True)
class Sequences:
    """Formula sequences of one system: for each weight of a byte the cheapest ones, in order."""

    found: tuple[FormulaSequence, ...]


def form_sequence(
    system: System, options: Options, progress: Callable[[str], None] = lambda _: None
) -> FormulaSequence:
    """The formula sequence of :func:`form_sequences` for the options' own weight of a byte."""
    return form_sequences(system, options, (options.byte_weight or 0,), progress).found[0]


def form_sequences(
    system: System,
    options: Options,
    byte_weights: Sequence[float],
    progress: Callable[[str], None] = lambda _: None,
    *,
    greedy: bool = False,
) -> Sequences:
    """Formula sequences of a verified system: binary steps with few operations and small arrays.

    With ``options.optimize`` the cheapest of several sequences at the planning extents (of the
    options, else of the spaces) is taken for each of ``byte_weights``, the flops counted for a byte
    that a step moves: from the equations as written, with intermediates inlined where that lowers
    the cost, with permuted terms folded, and factored anew by the search. In all of them equal
    products and equal intermediates are computed once. Without it the sequence follows the user's
    own equations; only products of three and more factors are split, in their cheapest order.
    ``progress`` is called with the best cost so far, as text. If ``greedy``, the search is one
    greedy factoring, a tenth of the work.

    Raises:
        ExtentError: naming the spaces whose extent is missing.
        SpecError: a symmetry declared for an output or intermediate cannot be derived.
    """
    extents = dict(planning_extents(system, options.extent_of))
    source = normalised(system, options.dtype == "complex128")
    forms = NormalForms.of(source)
    thresholds = options.thresholds.planner.algebra
    unshared = Workspace(extents, forms, False, thresholds, options.sums_alone)
    as_written = _program(source, unshared, keep_user=True)
    naive, each_term = naive_cost(system), as_written.flops()
    if not options.optimize:
        optimality = EACH_TERM if _exact(source, thresholds) else BEST_FOUND
        made = replace(as_written, naive=naive, each_term=each_term, optimality=optimality)
        return Sequences((_typed(made, options),))
    from .factoring.exhaustive import optima  # noqa: PLC0415  (loaded only for a search)
    from .factoring.factor import factored  # noqa: PLC0415

    source = reduced(source, forms, thresholds)
    models = [CostModel.of(options, weight) for weight in byte_weights]
    notes: list[str] = []

    def workspace() -> Workspace:
        return Workspace(extents, forms, True, thresholds, calls=options.calls)

    effort = 0 if greedy else options.effort
    search = partial(factored, effort=effort, models=models, progress=progress, note=notes.append)
    candidates = _candidates_of_both(source, workspace, options, search)
    best = optima(source, extents, forms, thresholds, models)
    programs = [
        with_constants(_program(candidate, workspace(), keep_user=False), system.inputs)
        for candidate in (*candidates, *(optimum[0] for optimum in best if optimum))
    ]
    most = naive.value(extents)
    if min(_flops_per_call(p, extents, options.calls) for p in programs) > most:
        loops = replace(workspace(), split=False)
        programs.append(with_constants(_program(source, loops, keep_user=False), system.inputs))
    within = [p for p in programs if _flops_per_call(p, extents, options.calls) <= most]
    programs = list(dict.fromkeys(within or programs))
    found: dict[FormulaSequence, None] = {}
    for model, optimum in zip(models, best, strict=True):
        least = optimum[1] if optimum else None
        alone = model.cost(as_written, extents) if _exact(source, thresholds) else None
        found |= dict.fromkeys(
            _close(programs, model, extents, thresholds.close_cost, least, alone)
        )
    said = tuple(dict.fromkeys(notes))
    return Sequences(
        tuple(
            _typed(replace(program, naive=naive, each_term=each_term, notes=said), options)
            for program in found
        )
    )


def _flops_per_call(program: FormulaSequence, extents: Mapping[str, int], calls: int) -> Fraction:
    """Flops of a call, with its share of the constant phase."""
    return CostModel(calls=calls).cost(program, extents)


def _close(
    programs: Sequence[FormulaSequence],
    model: CostModel,
    extents: Mapping[str, int],
    share: Fraction,
    least: Fraction | None,
    alone: Fraction | None,
) -> Iterator[FormulaSequence]:
    """The programs within a ``share`` of the least cost, the cheapest first, with their optimality.

    ``least`` is the proven optimum, and ``alone`` the cost of the equations with the optimum of
    each term; None where they are not known. Where bytes have no weight and the optimum is proven,
    only the flops of whole arrays count.
    """
    if least is not None and not model.element:
        model, share = replace(model, halving=None), Fraction(0)
    costs = {program: model.cost(program, extents) for program in programs}
    close = min(costs.values()) * (1 + share)
    for program in sorted(programs, key=costs.__getitem__):
        if costs[program] > close:
            return
        known = EACH_TERM if alone is not None and costs[program] <= alone else BEST_FOUND
        own = costs[program] - model.cost(_generated(program), extents)
        if least is not None and own <= least:
            known = PROVEN
        yield replace(program, optimality=known)


def _generated(program: FormulaSequence) -> FormulaSequence:
    """Only the production of generated inputs, which every sequence needs."""
    return replace(program, steps=tuple(s for s in program.steps if isinstance(s.op, Produce)))


def _exact(system: System, thresholds: AlgebraThresholds) -> bool:
    """True if every product is split in its cheapest order."""
    return all(
        len(t.factors) <= thresholds.exact_factors for e in system.equations for t in e.terms
    )


def _typed(program: FormulaSequence, options: Options) -> FormulaSequence:
    """The sequence with the element types of its intermediates. Kernels of a GPU convert none."""
    if options.dtype != "complex128":
        return program
    return with_real_intermediates(program, converted=options.target != "cuda")


def _candidates_of_both(
    source: System,
    workspace: Callable[[], Workspace],
    options: Options,
    search: Callable[..., list[System]],
) -> Iterator[System]:
    """The candidates of the system as it is, and of the one in which nothing is constant.

    In the second one, products of constants are inlined where that lowers the flops of one call. It
    is the better one where few calls follow, or where few elements of a product are needed; and its
    steps that read constants alone still run once.
    """
    systems = [source]
    if has_constant_products(source):
        systems.append(with_volatile(source, {t.name: True for t in source.tensors}))
    for system in systems:
        fresh = workspace()
        found = list(_candidates(system, fresh, options.calls))
        found += search(system, fresh.extents, fresh.forms, thresholds=fresh.thresholds)
        yield from found
        if system is not source:
            names = {t.name: t.volatile for t in source.inputs}
            yield from (with_volatile(candidate, names) for candidate in found)


def _candidates(source: System, workspace: Workspace, calls: int) -> tuple[System, ...]:
    """The system as written, and with intermediates inlined where that pays; each also folded."""
    from .sequence.brackets import choose_brackets  # noqa: PLC0415  (loaded with the search)

    forms, most_images = workspace.forms, workspace.thresholds.folded_images
    chosen = choose_brackets(source, workspace, calls)
    candidates = [source]
    for system in (source,) if chosen == source else (source, chosen):
        folded = replace(
            system,
            equations=tuple(
                e
                if any(t.perms for t in e.terms)
                else fold_permutations(e, output_symmetry(e, forms), forms, most_images)
                for e in system.equations
            ),
        )
        for new in (system, folded):
            if new not in candidates:
                candidates.append(new)
    return tuple(candidates)


def _program(system: System, workspace: Workspace, keep_user: bool) -> FormulaSequence:
    """The steps of a system; with ``keep_user`` each intermediate of the user stays an array."""
    taken = {t.name for t in system.tensors}
    keep = frozenset(taken) if keep_user else frozenset[str]()
    recipes: list[Recipe] = []
    for equation in system.equations:
        recipes.extend(workspace.recipe(part) for part in separate_permutations(equation, taken))
    return build_program(system, workspace, tuple(recipes), keep)
