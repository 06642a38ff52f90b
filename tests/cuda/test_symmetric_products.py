"""Contractions with symmetric arrays on a GPU compute distinct values, packed ones in place."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from support.cuda_device import DEVICES, device_named
from support.marks import slow_where
from support.symmetric_systems import CASES, right, written
from tcgen.compiler.driver import Compilation, compile_system
from tcgen.errors import VerifyError
from tcgen.frontend.spec.reader import read_spec
from tcgen.ir.executed import executed_by, totals
from tcgen.ir.loops import Assign, HostLoop
from tcgen.ir.thread_mapping import Tiles
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.thresholds import Thresholds, smallest
from tcgen.thresholds.cpu import CpuThresholds
from tcgen.thresholds.gpu import GpuThresholds

# Small contractions are grouped too, and multiplied by tiles.
SMALL = GpuThresholds(symmetric_flops=1, symmetric_copy_flops=0, least_mnk=1)
PLANNED = {"o": 10, "v": 20}
QUICK = ("ladder", "triples", "a symmetric sum", "several products")


def compiled(
    text: str,
    dtype: str = "float64",
    gpu: GpuThresholds = SMALL,
    cpu: CpuThresholds = CpuThresholds(),
) -> Compilation:
    options = Options(
        extents=tuple(PLANNED.items()),
        target="cuda",
        dtype=dtype,
        thresholds=Thresholds(cpu=cpu, gpu=gpu),
        library=False,
    )
    return compile_system(read_spec(text), options)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "emulator" and shutil.which("g++") is None:
        pytest.skip("no C compiler: the CUDA emulator needs g++")
    found = device_named(request.param)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("packed", slow_where(lambda packed: not packed, [False, True]))
@pytest.mark.parametrize("name", slow_where(lambda name: name not in QUICK, CASES))
def test_values(name: str, packed: bool) -> None:
    """Values at other extents than the planned ones, where groups may have no value at all."""
    text = written(name, packed=packed)
    program = Program(compiled(text).artifact)
    for o, v in ((4, 5), (1, 4), (0, 2), (3, 0), (5, 2)):
        right(text, program, {"o": o, "v": v}, "float64")


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("dtype", slow_where(lambda dtype: True, ["float32", "complex128"]))
@pytest.mark.parametrize("name", ["ladder", "a symmetric sum"])
def test_element_types(name: str, dtype: str) -> None:
    text = written(name, packed=True)
    right(text, Program(compiled(text, dtype).artifact), {"o": 4, "v": 5}, dtype)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("slices", [False, True])
def test_packed_pairs_of_other_groups(slices: bool) -> None:
    """A packed operand whose pairs are in m and k is unpacked, also slice by slice."""
    text = (
        "space o\nspace v\nindex i j : o\nindex a b c d : v\ninput n_o[o], n_v[v]\noutput z\n"
        "input w[v,v,v,v] symmetric (0,1) (2,3) packed (0,1) (2,3)\ninput t[o,o,v,v]\n"
        "output r[o,o,v,v]\nz = n_o[i]*n_o[i] + n_v[a]*n_v[a]\n"
        "r[i,j,a,b] = w[c,a,d,b]*t[i,j,c,d]\n"
    )
    cpu = smallest(Thresholds()).cpu if slices else Thresholds().cpu
    made = compiled(text, cpu=cpu)
    assert any(isinstance(k.mapping, Tiles) for k in made.module.kernels)
    assert any(isinstance(h, HostLoop) for h in made.module.host_volatile) == slices
    for o, v in ((4, 5), (1, 4), (0, 2), (3, 0)):
        right(text, Program(made.artifact), {"o": o, "v": v}, "float64")


def test_packed_arrays_are_multiplied_in_place() -> None:
    """Neither copies nor a dense result; the sum is over distinct pairs."""
    text = written("ladder", packed=True)
    grouped, whole = (compiled(text, gpu=gpu) for gpu in (SMALL, GpuThresholds()))
    names = {b.name for b in grouped.module.buffers}
    assert not any(name.startswith(("tmp", "r_")) for name in names)
    flops = [totals(executed_by(made.module), PLANNED).per_call.flops for made in (grouped, whole)]
    assert 2 * flops[0] < flops[1]


def test_a_tile_has_whole_triangles() -> None:
    """A triangle whose variables are in m and in n has no number in either."""
    module = compiled(written("ladder", packed=True)).module
    (kernel,) = (k for k in module.kernels if isinstance(k.mapping, Tiles))
    assert isinstance(kernel.mapping, Tiles)
    (stmt,) = (s for s in kernel.body if isinstance(s, Assign))
    (m,), (n,) = kernel.mapping.m, kernel.mapping.n
    moved = replace(
        kernel.mapping,
        m=(replace(m, variables=m.variables[:-1]),),
        n=(replace(n, variables=(*n.variables, m.variables[-1])),),
    )
    kernels = tuple(replace(k, mapping=moved) if k is kernel else k for k in module.kernels)
    with pytest.raises(VerifyError, match="triangle"):
        replace(module, kernels=kernels).verify()
    # The target stores i > j only: a rectangle would write other elements.
    band = tuple(replace(v, below=None, strict=False) for v in stmt.band)
    body = (replace(stmt, band=band),)
    kernels = tuple(replace(k, body=body) if k is kernel else k for k in module.kernels)
    with pytest.raises(VerifyError, match="packed"):
        replace(module, kernels=kernels).verify()
