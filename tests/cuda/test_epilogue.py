"""What is done with a tile before it is stored: epilogues, numbers, launches that are joined."""

from __future__ import annotations

import shutil
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from support import hand_modules as hand
from support.cuda_device import DEVICES, device_named
from support.gpu_programs import compare, on_gpu
from support.messages import mentions
from tcgen.compiler.driver import compile_system
from tcgen.errors import VerifyError
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.expr import Prod, Quot, Sum
from tcgen.ir.loops import Assign, Axis, BandVar, Module
from tcgen.ir.thread_mapping import Points, Sums, Tiles
from tcgen.lower.gpu.bind import bind_gpu
from tcgen.lower.gpu.liveness import most_held
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import assert_same_values, random_arrays, split_starts

pytestmark = [
    pytest.mark.few(1),
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
    ),
]
PLANNED = {"o": 12, "v": 30}
ODD = ({"o": 3, "v": 5}, {"o": 9, "v": 7}, {"o": 1, "v": 1}, {"o": 0, "v": 7}, {"o": 5, "v": 0})
I, J, K = (BandVar(n, hand.O) for n in "ijk")
A, B, C, D = (BandVar(n, hand.V) for n in "abcd")
T = hand.tensor("t", hand.O, hand.V, hand.O, hand.V)
U = hand.tensor("u", hand.V, hand.O, hand.V, hand.O)
E_O, E_V = hand.tensor("e_o", hand.O), hand.tensor("e_v", hand.V)
GAPS = Sum((hand.at("e_o", "i"), hand.at("e_o", "j"), hand.at("e_v", "a"), hand.at("e_v", "b")))
WHOLE = (Axis(hand.O), Axis(hand.V), Axis(hand.O), Axis(hand.V))


@pytest.fixture(autouse=True, params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = device_named(request.param)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)
    return found


def product(out: str = "r", **more: Any) -> Assign:
    """out[i,a,j,b] = sum(k,c) t[i,c,k,a]*u[b,k,c,j]."""
    factors = Prod((hand.at("t", "i", "c", "k", "a"), hand.at("u", "b", "k", "c", "j")))
    return Assign(hand.at(out, "i", "a", "j", "b"), factors, band=(I, A, J, B, K, C), **more)


def point(out: str, expr: Any, *subscripts: str, **more: Any) -> Assign:
    """An element-wise statement over i, a, j, b."""
    return Assign(hand.at(out, *(subscripts or "iajb")), expr, band=(I, A, J, B), **more)


def module(*bodies: Assign, outs: tuple[Any, ...], dtype: str = "float64", **more: Any) -> Module:
    return hand.module(
        "epilogue", (T, U, E_O, E_V, *outs), *((s,) for s in bodies), dtype=dtype, **more
    )


R = hand.at("r", "i", "a", "j", "b")
FULL = (hand.O, hand.V, hand.O, hand.V)
ARENA = hand.local("r", *WHOLE, place="arena")


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_denominators_added_terms_and_permutations(dtype: str) -> None:
    """The tile is never in memory: it is divided, added to and stored in another order."""
    bound, program = on_gpu(
        module(
            product(coeff=Fraction(-3, 2)),
            point("r", hand.at("t", "i", "a", "j", "b"), accumulate=True),
            point("x", Quot(R, GAPS), "b", "j", "a", "i", coeff=Fraction(1, 2)),
            outs=(hand.output("x", hand.V, hand.O, hand.V, hand.O),),
            buffers=(ARENA,),
            dtype=dtype,
        ),
        PLANNED,
    )
    (kernel,) = bound.kernels
    assert isinstance(kernel.mapping, Tiles)
    assert bound.buffer("r").place == "tile"
    for extents in ODD:
        compare(bound, bound, program, extents)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_numbers_from_a_tile(dtype: str) -> None:
    """Two energies of one tile, which only they need; elements that do not exist count nothing."""
    bound, program = on_gpu(
        module(
            product(),
            Assign(hand.at("e"), Quot(Prod((R, R)), GAPS), Fraction(1, 4), band=(I, A, J, B)),
            Assign(
                hand.at("f"),
                Prod((R, hand.at("t", "i", "a", "j", "b"))),
                accumulate=True,
                band=(I, A, J, B),
            ),
            outs=(hand.output("e"), hand.output("f", accumulate=True)),
            buffers=(ARENA,),
            dtype=dtype,
        ),
        PLANNED,
    )
    (kernel,) = bound.kernels
    assert isinstance(kernel.mapping, Tiles)
    assert bound.buffer("r").place == "tile"
    for extents in ODD:
        inputs = compare(bound, bound, program, extents)
        start = np.zeros((), dtype)
        twice = [program(**inputs, out={"f": start.copy()})["e"].tobytes() for _ in range(2)]
        assert twice[0] == twice[1]


@pytest.mark.slow
def test_a_tile_that_is_stored_as_well() -> None:
    bound, program = on_gpu(
        module(
            point("r", hand.at("u", "a", "i", "b", "j"), coeff=Fraction(2)),
            product(accumulate=True),
            point("x", Quot(R, GAPS)),
            Assign(hand.at("e"), Prod((R, R)), band=(I, A, J, B)),
            outs=(hand.output("r", *FULL), hand.output("x", *FULL), hand.output("e")),
        ),
        PLANNED,
    )
    (kernel,) = bound.kernels
    assert isinstance(kernel.mapping, Tiles)
    assert bound.buffer("r").place == "caller"
    for extents in ODD:
        compare(bound, bound, program, extents)


@pytest.mark.slow
def test_results_that_are_added_to() -> None:
    """``r += ...`` of an array that the caller passes, and an epilogue that reads it."""
    bound, program = on_gpu(
        module(
            product(accumulate=True),
            point("x", Quot(R, GAPS), accumulate=True),
            outs=(
                hand.output("r", *FULL, accumulate=True),
                hand.output("x", *FULL, accumulate=True),
            ),
        ),
        PLANNED,
    )
    assert len(bound.kernels) == 1
    for extents in ODD:
        compare(bound, bound, program, extents)


@pytest.mark.slow
def test_sums_in_parts_have_their_epilogue_in_the_second_pass() -> None:
    """Few tiles and a long sum: blocks share it; numbers are then left to a launch of their own."""
    i, a, j, b = (BandVar(n, s) for n, s in zip("iajb", FULL, strict=True))
    r = hand.at("r", "i", "j")
    long = Assign(
        r,
        Prod((hand.at("t", "i", "a", "k", "b"), hand.at("u", "b", "j", "a", "k"))),
        band=(i, j, a, b, BandVar("k", hand.O)),
    )
    divided = Assign(
        hand.at("x", "j", "i"),
        Quot(r, Sum((hand.at("e_o", "i"), hand.at("e_o", "j")))),
        band=(i, j),
    )
    number = Assign(hand.at("e"), Prod((r, r)), band=(i, j))
    made = module(
        long,
        divided,
        number,
        outs=(hand.output("x", hand.O, hand.O), hand.output("e")),
        buffers=(hand.local("r", Axis(hand.O), Axis(hand.O), place="arena"),),
    )
    bound, program = on_gpu(made, {"o": 20, "v": 60})
    first, second = bound.kernels
    assert isinstance(first.mapping, Tiles)
    assert first.mapping.splits > 1
    assert len(first.body) == 2
    assert isinstance(second.mapping, Points | Sums)
    for extents in ({"o": 3, "v": 11}, {"o": 17, "v": 4}, {"o": 2, "v": 0}):
        compare(made, bound, program, extents)


@pytest.mark.slow
def test_batches_have_their_own_point_in_an_epilogue() -> None:
    """r[i,a,b] = sum_c t[i,c,i,a]*... : i is in both factors and in the target."""
    r = hand.at("r", "i", "a", "b")
    made = module(
        Assign(
            r,
            Prod((hand.at("t", "i", "c", "k", "a"), hand.at("u", "b", "k", "c", "i"))),
            band=(I, A, B, C, K),
        ),
        Assign(
            hand.at("x", "b", "i", "a"),
            Quot(r, Sum((hand.at("e_o", "i"), hand.at("e_v", "a"), hand.at("e_v", "b")))),
            band=(I, A, B),
        ),
        Assign(hand.at("e"), Prod((r, hand.at("e_o", "i"))), band=(I, A, B)),
        outs=(hand.output("x", hand.V, hand.O, hand.V), hand.output("e")),
        buffers=(hand.local("r", Axis(hand.O), Axis(hand.V), Axis(hand.V), place="arena"),),
    )
    bound, program = on_gpu(made, {"o": 150, "v": 60})
    assert isinstance(bound.kernels[0].mapping, Tiles)
    assert bound.kernels[0].mapping.batch == ("i",)
    assert bound.buffer("r").place == "tile"
    for extents in ({"o": 3, "v": 5}, {"o": 2, "v": 37}, {"o": 0, "v": 3}, {"o": 3, "v": 0}):
        compare(made, bound, program, extents)


# ---- launches that change places -----------------------------------------------------------------


def names_of(bound: Module) -> list[list[str]]:
    """Buffers that each launch writes, in order."""
    return [[s.out.buffer for s in k.body if isinstance(s, Assign)] for k in bound.kernels]


@pytest.mark.slow
def test_additions_come_together_across_other_launches() -> None:
    """r = xy; s = ...; r += xy', which needs s: the first product waits for the second one."""
    factors = Prod((hand.at("t", "i", "c", "k", "a"), hand.at("s", "b", "k", "c", "j")))
    later = replace(product(accumulate=True), expr=factors)
    made = module(
        product(),
        Assign(
            hand.at("s", "b", "k", "c", "j"),
            Prod((hand.at("u", "b", "k", "c", "j"), hand.at("e_v", "b"))),
            band=(B, K, C, J),
        ),
        later,
        outs=(hand.output("r", *FULL), hand.output("s", hand.V, hand.O, hand.V, hand.O)),
    )
    bound, program = on_gpu(made, PLANNED)
    assert names_of(bound) == [["s"], ["r", "r"]]
    for extents in ODD:
        compare(made, bound, program, extents)


def read_between() -> Module:
    """x needs the first r, so what is added to it later cannot join it."""
    return module(
        product(),
        Assign(
            hand.at("x", "j", "a", "i", "b"),
            hand.at("r", "i", "a", "j", "b"),
            band=(J, A, I, B),
        ),
        product("x", accumulate=True),
        point("r", hand.at("x", "j", "a", "i", "b"), accumulate=True),
        outs=(hand.output("r", *FULL), hand.output("x", *FULL)),
    )


@pytest.mark.slow
def test_order_that_nobody_watches_gives_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant of the next test: the rule of what may change places is gone."""
    monkeypatch.setattr("tcgen.lower.gpu.launch_order._Uses.meets", lambda *_: False)
    bound, program = on_gpu(read_between(), PLANNED)
    with pytest.raises(AssertionError):
        compare(read_between(), bound, program, ODD[0])


@pytest.mark.slow
def test_what_is_read_between_stays_between() -> None:
    made = read_between()
    bound, program = on_gpu(made, PLANNED)
    assert len(bound.kernels) >= 2
    for extents in ODD:
        compare(made, bound, program, extents)


@pytest.mark.slow
def test_two_elements_of_one_array_are_no_epilogue() -> None:
    """x[i,j] = r[i,j] - r[j,i]: another thread holds the second one."""
    other = hand.at("r", "j", "b", "i", "a")
    made = module(
        product(),
        point("x", Sum((R, Prod((hand.Const(Fraction(-1)), other))))),
        outs=(hand.output("x", *FULL),),
        buffers=(ARENA,),
    )
    bound, program = on_gpu(made, PLANNED)
    assert len(bound.kernels) == 2
    assert bound.buffer("r").place == "arena"
    for extents in ODD:
        compare(made, bound, program, extents)


def test_element_wise_statements_become_one() -> None:
    """A sum of permutations in one launch; what is read once is not stored at all."""
    made = module(
        point("r", hand.at("t", "i", "a", "j", "b")),
        point("r", hand.at("t", "j", "b", "i", "a"), accumulate=True, coeff=Fraction(-1)),
        point("r", hand.at("u", "a", "i", "b", "j"), accumulate=True, coeff=Fraction(1, 3)),
        Assign(hand.at("e"), Quot(Prod((R, R)), GAPS), Fraction(-1, 2), band=(I, A, J, B)),
        outs=(hand.output("e"),),
        buffers=(ARENA,),
    )
    bound, program = on_gpu(made, PLANNED)
    assert names_of(bound) == [["e"]]
    assert all(b.name != "r" for b in bound.buffers)
    for extents in ODD:
        compare(made, bound, program, extents)


def test_what_promised_its_memory_keeps_it() -> None:
    """Joined, s would live as long as both products: r = t*u waits for the one that needs y."""
    s, y = hand.at("s", "b", "k", "c", "j"), hand.at("y", "b", "k", "c", "j")
    band = (B, K, C, J)
    turned = (Axis(hand.V), Axis(hand.O), Axis(hand.V), Axis(hand.O))

    def with_right(right: Any, **more: Any) -> Assign:
        factors = Prod((hand.at("t", "i", "c", "k", "a"), right))
        return replace(product(**more), expr=factors)

    made = module(
        Assign(s, Prod((hand.at("u", "b", "k", "c", "j"), hand.at("e_v", "b"))), band=band),
        with_right(s),
        Assign(y, Prod((hand.at("u", "b", "k", "c", "j"), hand.at("e_v", "c"))), band=band),
        with_right(y, accumulate=True),
        outs=(hand.output("r", *FULL),),
        buffers=tuple(hand.local(n, *turned, place="arena") for n in "sy"),
    )
    lives = {"s": (0, 1), "y": (2, 3)}
    buffers = tuple(replace(b, live=lives.get(b.name, b.live)) for b in made.buffers)
    made = replace(made, buffers=buffers)
    joined, thrifty = bind_gpu(made, PLANNED), bind_gpu(made, PLANNED, thrifty=True)
    assert len(joined.kernels) == 3
    assert len(thrifty.kernels) == 4
    whole = 8 * PLANNED["o"] ** 2 * PLANNED["v"] ** 2
    assert most_held(joined, PLANNED) == 2 * whole
    assert most_held(thrifty, PLANNED) == whole
    for bound in (joined, thrifty):
        bound.verify()


def test_epilogues_are_checked() -> None:
    bound = bind_gpu(
        module(
            product(),
            point("x", Quot(R, GAPS)),
            Assign(hand.at("e"), Prod((R, R)), band=(I, A, J, B)),
            outs=(hand.output("x", *FULL), hand.output("e")),
            buffers=(ARENA,),
        ),
        PLANNED,
    )
    (kernel,) = bound.kernels
    assert isinstance(kernel.mapping, Tiles)
    term, element, number = kernel.body
    assert isinstance(element, Assign)

    def refused(match: str, *body: Any, **mapping: Any) -> None:
        wrong = replace(kernel, body=body, mapping=replace(kernel.mapping, **mapping))
        with pytest.raises(VerifyError, match=mentions(match)):
            replace(bound, kernels=(wrong,)).verify()

    turned = hand.at("r", "j", "a", "i", "b")
    refused("launch", term, replace(element, expr=turned), number)
    refused("splits scalar", *kernel.body, splits=2)
    refused("two statements tile", *kernel.body, number)
    refused("element", term, replace(element, out=hand.at("x", "i", "a", "i", "b")))
    refused("epilogue", term, replace(element, band=(*element.band, C)))
    refused("registers add", replace(term, accumulate=True), element, number)
    alone = replace(kernel, body=(element,), mapping=Points(128))
    with pytest.raises(VerifyError, match=mentions("tiles")):
        replace(bound, kernels=(alone,)).verify()
    # What a launch uses, it uses all the time: no array is born where another one has just died.
    short = replace(bound.buffer("r"), place="arena", live=(0, 1))
    buffers = tuple(short if b.name == "r" else b for b in bound.buffers)
    with pytest.raises(VerifyError, match=mentions("statements 0..1")):
        replace(bound, buffers=buffers).verify()


ENERGIES = """
space o occupied
space v virtual
space x auxiliary
index i j : o
index a b : v
index P : x
input b_ov[x,o,v], e_o[o], e_v[v]
output e, t2
t[i,a,j,b] = b_ov[P,i,a]*b_ov[P,j,b]
t2[i,j,a,b] = t[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
e = t[i,a,j,b]*t[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
"""


@pytest.mark.default_thresholds
@pytest.mark.parametrize("objective", ["none", "peak"])
def test_amplitudes_and_energy_in_one_launch(objective: str) -> None:
    """Opposite-spin MP2 from a spec: integrals, amplitudes and energy of a tile, stored once."""
    system = read_spec(ENERGIES)
    planned = (("o", 10), ("v", 40), ("x", 90))
    options = Options(extents=planned, target="cuda", objective=objective, library=False)
    compiled = compile_system(system, options)
    assert len(compiled.artifact.manifest.kernels) == 1 or objective == "peak"
    for extents in ({"o": 3, "v": 5, "x": 7}, {"o": 5, "v": 2, "x": 1}):
        inputs, starts = split_starts(system, random_arrays(system, extents, seed=2))
        wanted = evaluate_system(system, inputs, extents, out=starts)
        assert_same_values(Program(compiled.artifact)(**inputs), wanted, rtol=1e-10)
