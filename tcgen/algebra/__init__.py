"""Operation minimisation: from sums of products to a formula sequence of binary steps.

``equations`` brings a system into normal form, by ``permutation_groups``. ``factoring`` searches
for the cheapest factorisation under ``cost_model``, and ``sequence`` splits the result into binary
steps, both in the order that ``binary_orders`` finds. ``derivatives`` makes new systems by
differentiation, and ``spin`` makes them by integrating over spins. ``rational_matrices`` has the
linear algebra of exact numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..ir.program import FormulaSequence
from ..ir.system import System, planning_extents
from ..options import Options
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
        made = replace(as_written, naive=naive, each_term=each_term)
        return Sequences((_typed(made, options),))
    from .factoring.factor import factored  # noqa: PLC0415  (loaded only for a search)

    source = reduced(source, forms, thresholds)
    models = [CostModel.of(options, weight) for weight in byte_weights]
    notes: list[str] = []

    def workspace() -> Workspace:
        return Workspace(extents, forms, True, thresholds, calls=options.calls)

    effort = 0 if greedy else options.effort
    search = partial(factored, effort=effort, models=models, progress=progress, note=notes.append)
    candidates = _candidates_of_both(source, workspace, options, search)
    programs = dict.fromkeys(
        with_constants(_program(candidate, workspace(), keep_user=False), system.inputs)
        for candidate in candidates
    )
    found: dict[FormulaSequence, None] = {}
    for model in models:
        costs = {program: model.cost(program, extents) for program in programs}
        close = min(costs.values()) * (1 + thresholds.close_cost)
        found |= dict.fromkeys(
            p for p in sorted(programs, key=costs.__getitem__) if costs[p] <= close
        )
    said = tuple(dict.fromkeys(notes))
    return Sequences(
        tuple(
            _typed(replace(program, naive=naive, each_term=each_term, notes=said), options)
            for program in found
        )
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
