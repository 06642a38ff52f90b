"""Operation minimisation: from flat sums of products to a sequence of binary steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from ..ir.program import Program
from ..ir.system import Equation, System, planning_extents
from ..ir.tensor import Role
from ..options import Options
from .cost_model import CostModel
from .equations.equal_intermediates import merge_equal_intermediates
from .equations.inline import keep_needed, naive_cost
from .equations.like_terms import clean_equation
from .equations.permutations import fold_permutations, separate_permutations
from .equations.proven_symmetry import derive_symmetries, output_symmetry
from .sequence.build import build_program
from .sequence.common_products import Recipe, Workspace
from .sequence.export import neutral_sequence

__all__ = ["form_sequence", "neutral_sequence"]


def form_sequence(
    system: System, options: Options, progress: Callable[[str], None] = lambda _: None
) -> Program:
    """The formula sequence of a system: binary steps with few operations.

    With ``options.optimize`` brackets are kept or multiplied out, permutations written out are
    folded back, equal products and intermediates are computed once and common factors are taken
    out, whichever costs least at the planning extents. Without it the user's own equations are
    followed; products of three and more factors are split in their cheapest order all the same.

    Args:
        system: verified equations.
        options: extents (else the defaults of the spaces), dtype, optimize, effort, cost and the
            weights of the cost.
        progress: called with the best cost so far, as text, while the search goes on.

    Raises:
        ExtentError: naming the spaces whose extent is missing.
        SpecError: a symmetry declared for an output or intermediate cannot be derived.
    """
    extents = dict(planning_extents(system, options.extent_of))
    complex_values = options.dtype == "complex128"
    source = derive_symmetries(keep_needed(system), complex_values)
    plain = _program(source, Workspace(extents, complex_values, share=False), keep_user=True)
    naive, each_term = naive_cost(system), plain.flops()
    if not options.optimize:
        return replace(plain, naive=naive, each_term=each_term)
    from .factoring.factor import factored  # noqa: PLC0415  (the search is loaded where it is asked for)

    source = _cleaned(source, complex_values)
    source = merge_equal_intermediates(source, complex_values)
    model = CostModel.of(options)
    best: tuple[Fraction, Program] | None = None
    candidates = _candidates(source, extents, complex_values)
    notes: list[str] = []
    found = factored(source, extents, complex_values, options.effort, model, progress, notes.append)
    for candidate in candidates if found is None else (*candidates, found):
        program = _program(candidate, Workspace(extents, complex_values, True), keep_user=False)
        price = model.price(program, extents)
        if best is None or price < best[0]:
            best = (price, program)
    assert best is not None
    return replace(best[1], naive=naive, each_term=each_term, notes=tuple(notes))


def _candidates(
    source: System, extents: Mapping[str, int], complex_values: bool
) -> tuple[System, ...]:
    """The system with all brackets kept, and with those inlined that pay; each also folded."""
    from .sequence.brackets import choose_brackets  # noqa: PLC0415  (loaded with the search)

    chosen = choose_brackets(source, Workspace(extents, complex_values, share=True))
    found = [source]
    for system in (source,) if chosen == source else (source, chosen):
        folded = replace(
            system,
            equations=tuple(
                e
                if any(t.perms for t in e.terms)
                else fold_permutations(e, output_symmetry(e, complex_values), complex_values)
                for e in system.equations
            ),
        )
        for new in (system, folded):
            if new not in found:
                found.append(new)
    return tuple(found)


def _program(system: System, space: Workspace, keep_user: bool) -> Program:
    """Steps of a system; ``keep_user`` keeps every intermediate of the user as an array."""
    taken = {t.name for t in system.tensors}
    keep = frozenset(taken) if keep_user else frozenset[str]()
    recipes: list[Recipe] = []
    for equation in system.equations:
        recipes.extend(space.recipe(part) for part in separate_permutations(equation, taken))
    return build_program(system, space, tuple(recipes), keep)


def _cleaned(system: System, complex_values: bool) -> System:
    """Like terms merged; intermediates without terms vanish from the terms that read them."""
    zero: set[str] = set()
    equations: list[Equation] = []
    for old in system.equations:
        equation = clean_equation(old, complex_values, frozenset(zero))
        if not equation.terms and equation.lhs.tensor.role is Role.TEMP:
            zero.add(equation.lhs.tensor.name)
        equations.append(equation)
    return keep_needed(replace(system, equations=tuple(equations)))
