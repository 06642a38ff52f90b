"""Parts of calls: what adds up, what is touched, their predicted time, and messages."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tcgen
from support.marks import slow_where
from support.messages import mentions
from support.parts import check_parts, check_plan, check_system
from tcgen.emit import emit_artifact
from tcgen.errors import ArgumentError, ExtentError, SpecError
from tcgen.ir.plan import FusionPlan
from tcgen.lower import lower_plan
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.thresholds.time_model import Machine

# Thresholds decide how many parts there are; these tests ask for more than one.
pytestmark = pytest.mark.default_thresholds

PARTS = {  # of hand-written plans at extents of 7
    "shared_producer": 7,
    "accumulation": 49,
    "tile_of_three": 3,
    "recomputation": 49,
    "host_loop": 4,
    "triangular_pair": 28,
    "triangular_images": 28,
    "generated_tile": 2,
    "nested_fusion": 7,
}


def program_of(plan: FusionPlan, target: str, machine: Machine = Machine()) -> Program:
    module = lower_plan(plan, Options(target=target))
    module.verify()
    return Program(
        emit_artifact(module, target=target, planning_extents=plan.extents, machine=machine)
    )


@pytest.mark.parametrize("name", slow_where("accumulation".__ne__, PARTS))
def test_parts_of_hand_plans_in_c_add_up(hand_plans: ModuleType, name: str) -> None:
    plan = getattr(hand_plans, name)()
    program = program_of(plan, "cpu")
    spaces = [s.name for s in plan.program.spaces]
    assert check_plan(program, plan, dict.fromkeys(spaces, 7)) == PARTS[name]
    check_plan(program, plan, dict.fromkeys(spaces, 0))
    check_plan(program, plan, {space: 2 + 3 * n for n, space in enumerate(spaces)})


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_hand_plans_add_up(hand_plans: ModuleType, name: str) -> None:
    plan = getattr(hand_plans, name)()
    program = program_of(plan, "numpy")
    spaces = [s.name for s in plan.program.spaces]
    assert check_plan(program, plan, dict.fromkeys(spaces, 7)) == PARTS[name]
    check_plan(program, plan, dict.fromkeys(spaces, 0))
    check_plan(program, plan, {space: 2 + 3 * n for n, space in enumerate(spaces)})


ENERGY = """
    space o occupied
    space v virtual
    index i j k : o
    index a : v
    input c[o,o] constant
    input x[o,v] volatile
    output e
    output d
    d = c[i,j]*c[i,j]
    h[i,j] = c[i,k]*c[k,j]
    e = h[i,j]*x[i,a]*x[j,a]*exp(x[i,a])
"""


@pytest.mark.parametrize("target", ["numpy", "cpu"])
def test_parts_of_bound_and_loaded_programs(target: str, tmp_path: Path) -> None:
    system = tcgen.read_spec(ENERGY)
    extents = {"o": 6, "v": 5}
    planning = tcgen.Planning(objective="memory")
    program = tcgen.compile(system, extents=extents, target=target, planning=planning)
    program.save(tmp_path / "energy")
    loaded = tcgen.load(tmp_path / "energy")
    count = check_system(loaded, system, extents)
    assert count > 1
    random = np.random.default_rng(1)
    c, x = random.random((6, 6)), random.random((6, 5))
    bound, whole = loaded.bind(c=c), program(c=c, x=x)
    assert bound.parts(extents) == count
    assert bound.seconds(0, count) == program.seconds(0, count) > bound.seconds(0, 1) > 0
    assert bound.touches(0, 1, extents) == program.touches(0, 1)
    shares = [bound(x=x, part=(n, n + 1)) for n in range(count)]
    for name, value in whole.items():
        assert np.isclose(sum(share[name] for share in shares), value, rtol=1e-13)
    assert shares[0]["d"] == whole["d"] != 0
    assert not any(share["d"] for share in shares[1:])


def test_a_result_given_in_out_holds_the_part_alone(hand_plans: ModuleType) -> None:
    plan = hand_plans.shared_producer()
    program = program_of(plan, "numpy")
    extents = dict.fromkeys((s.name for s in plan.program.spaces), 3)
    arrays = {t.name: np.ones([extents[s.name] for s in t.spaces]) for t in plan.program.inputs}
    whole, out = program(**arrays), {"X": np.full(3, 5.0)}
    program(**arrays, out=out, part=(1, 2))
    assert out["X"].tolist() == [0, whole["X"][1], 0]
    program(**arrays, out=out, part=(2, 2))
    assert not out["X"].any()
    assert not out["Y"].any()


def test_seconds_follow_the_machine_and_add_up(hand_plans: ModuleType) -> None:
    plan = hand_plans.tile_of_three()
    slow, fast = (program_of(plan, "numpy", Machine(flops=n * 10**6, call=0)) for n in (1, 1000))
    extents = dict.fromkeys((s.name for s in plan.program.spaces), 10)
    count = slow.parts(extents)
    each = [slow.seconds(n, n + 1, extents) for n in range(count)]
    assert min(each) == each[-1]  # the last tile has one element
    assert sum(each) == pytest.approx(slow.seconds(0, count, extents), rel=0.01)
    assert fast.seconds(0, count, extents) < slow.seconds(0, count, extents) / 10
    assert slow.seconds(1, 1, extents) == 0


def test_flops_of_parts_show_what_they_repeat(hand_plans: ModuleType) -> None:
    extents = {"i": 3, "j": 4, "k": 5}
    divided = program_of(hand_plans.shared_producer(), "numpy")
    each = [divided.flops(n, n + 1, extents) for n in range(3)]
    assert sum(each) == divided.flops(0, 3, extents) == 3 * (2 * 4 * 5 + 2 * 4 + 4)
    system = tcgen.read_spec(ENERGY)
    planning = tcgen.Planning(objective="memory")
    sizes = {"o": 6, "v": 5}
    program = tcgen.compile(system, extents=sizes, target="numpy", planning=planning)
    count = program.parts()
    assert sum(program.flops(n, n + 1) for n in range(count)) >= program.flops(0, count) > 0


def test_parts_do_not_check_symmetries_of_what_they_do_not_read() -> None:
    system = tcgen.read_spec_file(tcgen.spec_path("mp2_closed_shell"))
    extents = {"o": 4, "v": 3}
    planning = tcgen.Planning(objective="memory")
    program = tcgen.compile(system, extents=extents, target="numpy", planning=planning)
    check_system(program, system, extents)


def test_a_program_without_such_loops_is_one_part() -> None:
    text = "space o occupied\nspace v virtual\nindex i j : o\nindex a : v\n"
    text += "input f[o,o], t[o,v]\noutput r\nr[i,a] = f[i,j]*t[j,a]"
    program = tcgen.compile(tcgen.read_spec(text), extents={"o": 3, "v": 2}, target="numpy")
    f, t = np.arange(9.0).reshape(3, 3), np.ones((3, 2))
    extents = program.extents_for(f=f, t=t)
    assert check_parts(program, extents, {"f": f, "t": t}, {}) == 1
    assert program.touches(0, 1, extents)["t"] == ((slice(0, 3), slice(0, 2)),)
    assert program.touches(1, 1, extents)["t"] == ()


def test_numbers_of_parts_are_checked(hand_plans: ModuleType) -> None:
    plan = hand_plans.shared_producer()
    program = program_of(plan, "numpy")
    extents = dict.fromkeys((s.name for s in plan.program.spaces), 3)
    arrays = {t.name: np.ones([extents[s.name] for s in t.spaces]) for t in plan.program.inputs}
    for part in ((0, 4), (-1, 2), (2, 1)):
        with pytest.raises(ArgumentError, match=mentions(f"{part[0]}, {part[1]} 3 parts i=3")):
            program(**arrays, part=part)
        with pytest.raises(ArgumentError, match=mentions("3 parts")):
            program.touches(*part, extents)
    for part in (2, "01", (0, 1, 2), (0.5, 1), ("a", "b")):
        with pytest.raises(ArgumentError, match=mentions("part= pair integers first last")):
            program(**arrays, part=part)
    with pytest.raises(ExtentError, match=mentions("zz=3")):
        program.parts({"zz": 3})


def test_no_input_is_named_like_a_keyword_of_calls() -> None:
    with pytest.raises(SpecError, match=mentions("named part part= rename")):
        tcgen.read_spec(
            "space o occupied\nindex i : o\ninput part[o]\noutput e\ne = part[i]*part[i]"
        )
