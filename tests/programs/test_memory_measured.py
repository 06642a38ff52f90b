"""What a call allocates, measured array by array, is what its report says, to the byte."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from support.spec_sample import SPEC_SAMPLE as SPECS
from tcgen.compiler.documents import read_plan
from tcgen.compiler.driver import read_system
from tcgen.errors import MemoryLimitError
from tcgen.runtime import host_device as allocation
from tcgen.runtime.cpu import backend as cpu
from tcgen.testing import random_arrays, split_starts

ODD = {"Ni": 3, "Nj": 4, "Nk": 5, "Nl": 6}


class Held:
    """Every array that the runtime makes, from its birth to its end."""

    def __init__(self) -> None:
        self.now = self.peak = 0

    def __call__(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        array = np.empty(shape, dtype)
        count = array.nbytes
        self.now += count
        self.peak = max(self.peak, self.now)
        weakref.finalize(array, self.drop, count)
        return array

    def drop(self, count: int) -> None:
        self.now -= count


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    counter = Held()
    monkeypatch.setattr(allocation, "new_array", counter)
    monkeypatch.setattr(allocation, "MIN_POOLED_BYTES", sys.maxsize)  # no pool
    yield counter
    assert counter.now == 0, "a call has left memory behind"


def inputs_of(name: str, extents: dict[str, int]) -> dict[str, Any]:
    system = read_system(tcgen.spec_path(name))
    return split_starts(system, random_arrays(system, extents, dtype="float64", seed=1))[0]


QUICK = ("allam_figure1", "mp2_closed_shell", "mp2_df", "df_ladder", "drpa", "sosmp2_laplace_df")
SLOW = pytest.mark.slow
PLANS = [
    *((n, "none", "numpy") for n in QUICK),
    *(pytest.param(n, "none", "numpy", marks=SLOW) for n in SPECS if n not in QUICK),
    *((name, objective, "cpu") for name in QUICK for objective in ("none", "peak")),
    *(pytest.param(n, "memory", "cpu", marks=SLOW) for n in QUICK),
    *(pytest.param(n, "none", "cpu", marks=SLOW) for n in SPECS if n not in QUICK),
    *(pytest.param(n, "linear", "cpu", marks=SLOW) for n in SPECS),
    *(pytest.param(n, "memory", "cpu", marks=SLOW) for n in SPECS if n not in QUICK),
    *(pytest.param(n, "peak", "cpu", marks=SLOW) for n in SPECS if n not in QUICK),
    *(pytest.param(n, "time", "cpu", marks=SLOW) for n in SPECS),
]


@pytest.mark.few(8)
@pytest.mark.parametrize(("name", "objective", "target"), PLANS)
def test_every_spec_takes_what_it_reports(
    name: str, objective: str, target: str, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    bases = [s.name for s in read_system(tcgen.spec_path(name)).spaces if not s.parts]
    extents = {b: ODD.get(b, 2 + n % 3) for n, b in enumerate(bases)}
    program = tcgen.compile(
        tcgen.spec_path(name), extents=extents, objective=objective, target=target
    )
    for threads in (1, 3) if target == "cpu" else (1,):
        monkeypatch.setattr(cpu.CpuBackend, "threads", threads)
        for grown in (extents, {b: n + 3 for b, n in extents.items()}):
            held.peak = 0
            program(**inputs_of(name, grown))
            assert held.peak == program.allocated_bytes == program.peak_bytes(grown)
        if threads == 1:
            assert program.peak_bytes(extents) == program.report["memory"]["peak_bytes"]
    if objective == "peak":  # scratch and gaps included, no more than was proven
        report, plan = program.report, read_plan(program.artifact)
        arena = report["memory"]["peak_bytes"] - report["memory"]["outputs_bytes"]
        assert arena <= max(plan.solve.value, plan.arena)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name",
    [n if n in ("df_ladder", "mp2_df") else pytest.param(n, marks=SLOW) for n in SPECS],
)
def test_every_spec_keeps_a_limit(name: str, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thirds of what the program takes unfused, or the least that the refusal offers."""
    bases = [s.name for s in read_system(tcgen.spec_path(name)).spaces if not s.parts]
    extents = {b: ODD.get(b, 4 + n % 3) for n, b in enumerate(bases)}

    def made(objective: str, limit: int | None) -> tcgen.Program:
        path = tcgen.spec_path(name)
        return tcgen.compile(
            path, extents=extents, objective=objective, target="cpu", memory_limit=limit
        )

    free = made("none", None)
    limit = 2 * free.report["memory"]["peak_bytes"] // 3
    try:
        program = made("time", limit)
    except MemoryLimitError as error:
        least = int(re.search(r"needs ([0-9,]+) bytes", str(error))[1].replace(",", ""))
        assert least > limit
        limit = least
        program = made("time", limit)
    inputs = inputs_of(name, extents)
    wanted = {output: array.copy() for output, array in free(**inputs).items()}
    for threads in (1, 3):
        monkeypatch.setattr(cpu.CpuBackend, "threads", threads)
        held.peak = 0
        found = program(**inputs)
        assert held.peak == program.allocated_bytes == program.peak_bytes(extents) <= limit
        for output, array in wanted.items():
            np.testing.assert_allclose(found[output], array, rtol=1e-9, atol=1e-9)
        del found
    monkeypatch.setattr(cpu.CpuBackend, "threads", 1)
    assert program.peak_bytes(extents) == program.report["memory"]["peak_bytes"]


CHAIN = """
space o = 40
space v = 60
index i j : o
index a b c : v
input x[o,v], y[v,o,v], z[v,v]
output r
r[i,a] = x[i,b]*y[b,j,c]*y[a,j,c] + x[i,c]*z[c,b]*z[b,a]
"""


def chain_inputs() -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {
        n: random.random(s) for n, s in {"x": (40, 60), "y": (60, 40, 60), "z": (60, 60)}.items()
    }


def chain_value(x: Any, y: Any, z: Any) -> Any:
    return np.einsum("ib,bjc,ajc->ia", x, y, y, optimize=True) + x @ z @ z


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_copies_of_inputs_and_results_count(target: str, held: Held) -> None:
    program = tcgen.compile(CHAIN, target=target)
    inputs = chain_inputs()
    program(**inputs)
    plain = program.allocated_bytes
    inputs["y"] = np.asfortranarray(inputs["y"])
    held.peak = 0
    out = {"r": np.empty((60, 40)).T}
    program(**inputs, out=out)
    assert held.peak == program.allocated_bytes == plain + inputs["y"].nbytes
    np.testing.assert_allclose(out["r"], chain_value(**inputs))
    del out


def test_a_copy_that_does_not_fit_is_refused_before_it_is_made(held: Held) -> None:
    inputs = chain_inputs()
    roomy = tcgen.compile(CHAIN, target="cpu", memory_limit="1 GB")
    program = tcgen.compile(CHAIN, target="cpu", memory_limit=roomy.peak_bytes())
    program(**inputs)
    inputs["y"] = np.asfortranarray(inputs["y"])
    held.peak = 0
    with pytest.raises(MemoryLimitError, match=mentions("y C order")):
        program(**inputs)
    assert held.peak == 0


@pytest.mark.slow
def test_a_limit_leaves_out_copies() -> None:
    """Where the copies of a product do not fit, it is computed without them."""
    text = LARGE.replace("24", "6").replace("60", "10")
    free = tcgen.compile(text, target="cpu")
    limit = free.peak_bytes() - 1000
    program = tcgen.compile(text, target="cpu", memory_limit=limit)
    assert program.peak_bytes() <= limit
    random = np.random.default_rng(0)
    inputs = {"x": random.random((6, 6, 10, 10)), "y": random.random((10, 6, 10, 6))}
    np.testing.assert_allclose(program(**inputs)["r"], free(**inputs)["r"])
    assert program.allocated_bytes == program.peak_bytes()


@pytest.mark.default_thresholds
def test_fewer_threads_keep_the_limit(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu.CpuBackend, "threads", 8)
    text = """
    space o = 5
    space v = 9
    index i : o
    index a b : v
    input x[o,v], y[v,v]
    output r
    t[i,a] = x[i,b]*y[b,a]
    q[i] = t[i,a]*t[i,a]
    r[i,a] = t[i,a]*q[i]
    """

    def made(limit: object) -> tcgen.Program:
        return tcgen.compile(
            text, target="cpu", objective="memory", optimize=False, memory_limit=limit
        )

    free = made("1 GB")
    one = free.report["memory"]["peak_bytes"]
    assert free.peak_bytes() > one  # a row of t for each thread
    random = np.random.default_rng(0)
    x, y = random.random((5, 9)), random.random((9, 9))
    wanted = free(x=x, y=y)["r"]
    assert free.allocated_bytes == free.peak_bytes()
    program = made(one)
    np.testing.assert_allclose(program(x=x, y=y)["r"], wanted)
    assert program.allocated_bytes == one
    np.testing.assert_allclose(wanted, (x @ y) * ((x @ y) ** 2).sum(axis=1)[:, None])


LARGE = """
space o = 24
space v = 60
index i j k l : o
index a b c d : v
input x[o,o,v,v], y[v,o,v,o]
output r[o,o,v,v]
r[i,j,a,b] = x[i,k,a,c]*y[c,j,b,k] + x[k,i,c,a]*y[b,k,c,j] + x[i,k,d,c]*x[k,l,c,d]*x[l,j,a,b]
"""


@pytest.mark.default_thresholds
def test_a_constant_generated_input_is_held_while_its_reader_runs(held: Held) -> None:
    """Not from the constant phase on: then each reader's tile would stay beside all others."""
    program = tcgen.compile(
        """
        space o = 4
        space v = 6
        index i : o
        index a b : v
        input g[o,v] generated constant
        input t[o,v]
        output e, r
        x[a,b] = t[i,a]*g[i,b]
        e = x[a,b]*x[b,a]
        r = x[a,b]*t[i,a]*g[i,b]
        """,
        target="numpy",
        objective="time",
        optimize=False,
    )
    fetched = []

    def produce(out: np.ndarray[Any, Any], ranges: tuple[slice, ...]) -> None:
        fetched.append(ranges)
        out[...] = 1.0

    bound = program.bind(g=produce)
    assert bound(t=np.ones((4, 6)))["e"] == 36 * 16
    del bound
    fetched.clear()
    held.peak = 0
    assert program(g=produce, t=np.ones((4, 6)))["r"] == 36 * 16
    plan = read_plan(program.artifact)
    assert len(fetched) == 2
    assert held.peak == program.allocated_bytes <= plan.arena + 16 + 63 * len(plan.arrays)


PACKED = """
space o = 3
space v = 7
index i : o
index a b c d : v
input x[v,v], y[v,o], z[v,v]
output r[v,v] antisymmetric (0,1) packed (0,1)
output e
t[a,b] = exp(x[a,b])
r[a,b] = P(a,b) t[a,c]*y[c,i]*y[b,i]
e = r[a,b]*z[a,b]
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("objective", ["peak", "memory", "time"])
def test_packed_results_count_while_they_are_put_together(objective: str, held: Held) -> None:
    """In a dense array, which what reads them reads, too."""
    rng = np.random.default_rng(0)
    inputs = {"x": rng.random((7, 7)), "y": rng.random((7, 3)), "z": rng.random((7, 7))}
    product = np.exp(inputs["x"]) @ inputs["y"] @ inputs["y"].T
    wanted = product - product.T
    program = tcgen.compile(PACKED, target="cpu", objective=objective, optimize=False)
    results = program.report["memory"]["outputs_bytes"]
    assert results == (7 * 6 // 2 + 1) * 8
    plan = read_plan(program.artifact)
    assert plan.arena > 7 * 7 * 8 or objective == "memory"
    if objective == "peak":
        assert program.report["memory"]["peak_bytes"] <= results + plan.solve.value
    if objective == "memory":
        assert plan.solve.value == program.report["memory"]["intermediates_static_bytes"] // 8
    with pytest.raises(MemoryLimitError) as refused:
        tcgen.compile(PACKED, target="cpu", objective=objective, memory_limit=results + 100)
    least = int(str(refused.value).split("Raise the limit to ")[1].split()[0])
    program = tcgen.compile(PACKED, target="cpu", objective=objective, memory_limit=least)
    held.peak = 0
    found = program(**inputs)
    assert held.peak == program.allocated_bytes <= least
    np.testing.assert_allclose(found["r"], wanted[np.tril_indices(7, -1)], rtol=1e-12)
    np.testing.assert_allclose(found["e"], np.sum(wanted * inputs["z"]), rtol=1e-12)
    del found
