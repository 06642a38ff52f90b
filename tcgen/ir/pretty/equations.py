"""Levels 1 to 3 as text: equations in the notation of .spec files, steps, and nests of plans."""

from __future__ import annotations

from typing import assert_never

from ..expr import Delta, format_expr
from ..plan import FusionPlan, LoopId, common_loops
from ..program import Add, Contract, FormulaSequence, Map, Phase, Produce, Step
from ..system import Apply, Equation, System, Term
from ..tensor import Ref


def pretty_system(system: System) -> str:
    """The equations of a system, one term a line."""
    return "\n".join(pretty_equation(e) for e in system.equations) + "\n"


def pretty_term(term: Term, lhs: Ref) -> str:
    """A term in the .spec notation; several permutations print as a list of signed left sides."""
    parts = []
    for factor in term.factors:
        match factor:
            case Ref():
                parts.append(str(factor))
            case Delta():
                parts.append(format_expr(factor))
            case Apply(expr):
                parts.append(f"({format_expr(expr)})")
    product = "*".join(parts)
    if not product:
        text = str(term.coeff)
    elif abs(term.coeff) == 1:
        text = f"-{product}" if term.coeff < 0 else product
    else:
        text = f"{term.coeff}*{product}"
    if term.perms:
        images = " ".join(
            ("+" if p.sign > 0 else "-") + "".join(lhs.indices[k].name for k in p.images)
            for p in term.perms
        )
        text = f"perm({images}) {text}"
    if term.sums:
        text = f"{term.reduction.value}({','.join(i.name for i in term.sums)}) {text}"
    return text


def pretty_equation(equation: Equation) -> str:
    """An equation, one term a line."""
    terms = [pretty_term(t, equation.lhs) for t in equation.terms] or ["0"]
    pad = " " * len(str(equation.lhs))
    return "\n".join(
        f"{equation.lhs if n == 0 else pad} {'=' if n == 0 else '+'} {text}"
        for n, text in enumerate(terms)
    )


def pretty_program(program: FormulaSequence) -> str:
    """The steps of a program, one a line."""
    return "\n".join(pretty_step(s) for s in program.steps) + "\n"


def pretty_step(step: Step) -> str:
    """A step as a chemist writes it: ``s3: r2[i,j,a,b] += 1/2 * tau[i,j,c,d] * w[a,b,c,d]``."""
    match step.op:
        case Contract(a, b):
            text = f"{a} * {b}"
        case Add(a):
            text = str(a)
        case Map(expr):
            text = format_expr(expr)
            if step.coeff != 1:
                text = f"({text})"
        case Produce(tensor):
            text = f"generate {tensor.name}"
        case _:
            assert_never(step.op)
    if step.coeff == -1:
        text = f"-{text}"
    elif step.coeff != 1:
        text = f"{step.coeff} * {text}"
    sums = f"{step.reduction.value}({','.join(i.name for i in step.sums)}) " if step.sums else ""
    mark = "   [constant]" if step.phase is Phase.CONSTANT else ""
    return f"s{step.id}: {step.out} {'+=' if step.accumulate else '='} {sums}{text}{mark}"


def pretty_plan(plan: FusionPlan) -> str:
    """The loop nest as indented text, with each contracted array as it is stored."""
    lines: list[str] = []
    open_loops: tuple[LoopId, ...] = ()
    group_at = {g.visits[0]: g for g in plan.groups if g.visits}
    for position, visit in enumerate(plan.visits):
        common = common_loops(open_loops, visit.loops)
        if position in group_at:
            group = group_at[position]
            lines.append("  " * common + f"# {group.name} ({group.kind.value})")
        lines.extend(
            "  " * depth + f"for {visit.loops[depth]}:" for depth in range(common, len(visit.loops))
        )
        open_loops = visit.loops
        names = ", ".join(f"{index}@{loop.id}" for index, loop in visit.bind)
        text = pretty_step(plan.program.steps[visit.step])
        lines.append("  " * len(visit.loops) + text + (f"   ({names})" if names else ""))
    for array in plan.arrays:
        axes = ",".join(
            "1"
            if (loop := array.loop_of(axis)) and loop.tile is None
            else (str(loop.tile) if loop else space.name)
            for axis, space in enumerate(array.tensor.spaces)
        )
        home = f" in loop {array.home.id}" if array.home else ""
        lines.append(
            f"{array.tensor.name}[{axes}] {array.place.value}{home}, visits "
            f"{array.live[0]}..{array.live[1]}, {array.bytes} bytes"
        )
    return "\n".join(lines) + "\n"
