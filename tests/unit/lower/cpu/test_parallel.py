"""Which loops run at once: iterations of nests with many small tiles, statements of all others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tcgen
from tcgen.algebra import form_sequence
from tcgen.compiler.driver import compile_system
from tcgen.emit import emit_artifact
from tcgen.frontend.spec.reader import read_spec
from tcgen.fusion.placement.plan import in_nests
from tcgen.fusion.time.triangular_nests import orbit_nests
from tcgen.interp import evaluate_system
from tcgen.ir.loop_analysis import parallel_chain
from tcgen.ir.loops import Gemm, Loop, Module, Stmt
from tcgen.ir.plan import FusionPlan
from tcgen.lower import lower_plan
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import random_arrays

SPACES = "space o occupied\nspace v virtual\nindex i j k : o\nindex a b c d : v\n"
PAIRS = f"""{SPACES}
input t[o,v,v], g[v,v], e_v[v]
output e
x[i,j,a,b] = S(a,b) (t[i,a,d]*t[j,d,b])
e = x[i,j,a,b]*x[i,j,a,b]/(e_v[a] + e_v[b])
"""
ROWS = f"""{SPACES}
input t[o,v,v], g[v,v]
output r[v,v]
x[i,a,b] = t[i,a,c]*g[c,b]
r[a,b] = x[i,a,c]*x[i,c,b]
"""
EXTENTS = {"o": 6, "v": 60}


def in_tiles(tile: int, options: Options) -> FusionPlan:
    """PAIRS over a triangle of tiles of virtual orbitals."""
    program = form_sequence(read_spec(PAIRS), options)
    nests = orbit_nests(program, program.intermediates, 4)
    *_, nest = (n for n in nests if n.chain[0].space.name == "v")
    return in_nests(nest.plan(tile, options.extents, options.dtype))


def options(dtype: str = "float64", limit: int | None = None) -> Options:
    extents = tuple(sorted(EXTENTS.items()))
    return Options(extents=extents, objective="time", dtype=dtype, memory_limit=limit)


def nests(module: Module) -> tuple[Loop, ...]:
    """Outermost loops of the kernels."""
    return tuple(s for k in module.kernels for s in k.body if isinstance(s, Loop))


def products(body: tuple[Stmt, ...]) -> Iterator[Gemm]:
    for stmt in body:
        if isinstance(stmt, Loop):
            yield from products(stmt.body)
        elif isinstance(stmt, Gemm):
            yield stmt


@pytest.fixture
def threads() -> Iterator[None]:
    yield
    tcgen.set_threads(None)


def test_many_small_tiles_are_shared_out() -> None:
    (nest,) = nests(lower_plan(in_tiles(4, options()), options()))
    rows, columns = parallel_chain(nest)
    assert columns.var.below == rows.var.name
    assert not any(p.parallel for p in products((nest,)))


@pytest.mark.parametrize(("tile", "limit"), [(30, None), (4, 250_000)])
def test_threads_share_statements_of_few_tiles_or_within_a_small_limit(
    tile: int, limit: int | None
) -> None:
    given = options(limit=limit)
    (nest,) = nests(lower_plan(in_tiles(tile, given), given, thrifty=False))
    assert not nest.parallel
    assert any(p.parallel for p in products((nest,)))


def test_threads_share_the_statements_of_what_a_limit_cuts_into_large_tiles() -> None:
    given = Options((("o", 30), ("v", 300)), memory_limit=12_000_000, objective="time")
    found = nests(compile_system(read_spec(ROWS), given, documents=False).module)
    assert found
    assert not any(nest.parallel for nest in found)
    assert all(p.parallel for p in products(tuple(found)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_values_bits_and_memory_on_any_number_of_threads(dtype: str, threads: None) -> None:
    module = lower_plan(in_tiles(4, options(dtype)), options(dtype))
    module.verify()
    made = emit_artifact(module, target="cpu", planning_extents=options().extents)
    assert "collapse(2)" in made.text("kernels.c")
    program, system, extents = Program(made), read_spec(PAIRS), {"o": 5, "v": 23}
    arrays = random_arrays(system, extents, dtype=dtype, seed=5)
    wanted = evaluate_system(system, arrays, extents)["e"]
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    peaks = []
    for count in (1, 2, 3, 5):
        tcgen.set_threads(count)
        found = {program(**arrays)["e"].tobytes() for _ in range(8)}
        assert len(found) == 1
        np.testing.assert_allclose(program(**arrays)["e"], wanted, rtol=tolerance)
        assert program.allocated_bytes == program.peak_bytes(extents)
        peaks.append(program.allocated_bytes)
    assert peaks == sorted(set(peaks))


def test_a_limit_leaves_out_threads_without_room(threads: None) -> None:
    module = lower_plan(in_tiles(4, options()), options())
    free, limited = (
        Program(
            emit_artifact(
                module, target="cpu", planning_extents=options().extents, memory_limit=limit
            )
        )
        for limit in (None, 500_000)
    )
    arrays = random_arrays(read_spec(PAIRS), EXTENTS, dtype="float64", seed=1)
    tcgen.set_threads(64)
    np.testing.assert_allclose(limited(**arrays)["e"], free(**arrays)["e"], rtol=1e-12)
    tcgen.set_threads(1)
    one = free.peak_bytes()
    assert one < limited.allocated_bytes <= 500_000 < free.allocated_bytes
