"""Inputs on disk or made on the fly: read in slices, right at every cut, and never held whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.errors import ArgumentError
from tcgen.runtime import host_program

h5py = pytest.importorskip("h5py", reason="h5py is not installed")

LADDER = """
space o = 3
space v = 7
index i j : o
index a b c d : v
input v_vvvv[v,v,v,v], t2[o,o,v,v]
output r
r[i,j,a,b] = v_vvvv[a,b,c,d]*t2[i,j,c,d] - 1/2*v_vvvv[b,a,d,c]*t2[j,i,c,d]
"""


def arrays() -> tuple[Any, Any, Any]:
    random = np.random.default_rng(3)
    v, t2 = random.random((7, 7, 7, 7)), random.random((3, 3, 7, 7))
    r = np.einsum("abcd,ijcd->ijab", v, t2) - np.einsum("badc,jicd->ijab", v, t2) / 2
    return v, t2, r


def stored(folder: Path, array: Any) -> Any:
    return h5py.File(folder / "v.h5", "w").create_dataset("v", data=array)


@pytest.mark.few(1)
@pytest.mark.parametrize("target", ["cpu", "numpy"])
@pytest.mark.parametrize("objective", ["none", "memory", "peak"])
def test_datasets_maps_arrays_and_callables_give_the_same(
    target: str, objective: str, tmp_path: Path
) -> None:
    v, t2, wanted = arrays()
    program = tcgen.compile(LADDER, target=target, objective=objective, sliced=("v_vvvv",))
    np.save(tmp_path / "v.npy", v)

    def fill(out: Any, ranges: tuple[slice, ...]) -> None:
        assert out.flags.c_contiguous
        out[...] = v[ranges]

    with stored(tmp_path, v).file as file:
        sources = (file["v"], np.load(tmp_path / "v.npy", mmap_mode="r"), v, fill)
        for source in sources:
            np.testing.assert_allclose(program(v_vvvv=source, t2=t2)["r"], wanted)


def test_an_array_stored_in_another_order(tmp_path: Path) -> None:
    text = LADDER.replace("v_vvvv[v,v,v,v]", "v_vvvv[a,b,c,d] stored (a,c,b,d)")
    program = tcgen.compile(text, target="cpu", sliced=("v_vvvv",))
    v, t2, wanted = arrays()
    other = np.ascontiguousarray(v.transpose(0, 2, 1, 3))
    with stored(tmp_path, other).file as file:
        np.testing.assert_allclose(program(v_vvvv=file["v"], t2=t2)["r"], wanted)
    np.testing.assert_allclose(program(v_vvvv=other, t2=t2)["r"], wanted)
    with pytest.raises(ArgumentError, match=mentions("order")):
        program(v_vvvv=lambda out, ranges: None, t2=t2)


PACKED = """
space o = 3
space v = 7
index i j : o
index a b c d : v
input w[v,v,v,v] {}, t2[o,o,v,v]
output r
r[i,j,a,b] = w[a,c,b,d]*t2[i,j,c,d] - 1/2*w[b,d,a,c]*t2[j,i,c,d]
"""


@pytest.mark.few(2)
@pytest.mark.parametrize("target", ["cpu", "numpy"])
@pytest.mark.parametrize("pairs", [((0, 1),), ((2, 3),), ((0, 1), (2, 3))])
@pytest.mark.parametrize("objective", ["none", "peak", "time"])
@pytest.mark.parametrize("limit", [None, 4500])
def test_triangles_are_read_in_parts(
    target: str,
    pairs: tuple[tuple[int, int], ...],
    objective: str,
    limit: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_program, "_MOST_READ", 20)
    shown = " ".join(map(str, pairs)).replace(" ", "").replace(")(", ") (")
    text = PACKED.format(f"symmetric {shown} packed {shown}")
    random = np.random.default_rng(4)
    w, t2 = random.random((7, 7, 7, 7)), random.random((3, 3, 7, 7))
    w = w + w.transpose(1, 0, 2, 3)
    w = w + w.transpose(0, 1, 3, 2)
    wanted = np.einsum("acbd,ijcd->ijab", w, t2) - np.einsum("bdac,jicd->ijab", w, t2) / 2
    wish = {"target": target, "objective": objective, "memory_limit": limit}
    program = tcgen.compile(text, sliced=("w",), **wish)
    triangles = tcgen.pack_pairs(w, *pairs)
    with stored(tmp_path, triangles).file as file:
        for source in (triangles, file["v"]):
            np.testing.assert_allclose(program(w=source, t2=t2)["r"], wanted)
    assert limit is None or program.allocated_bytes <= limit


def test_a_short_tile_is_spread_in_place() -> None:
    random = np.random.default_rng(1)
    for _ in range(60):
        full = tuple(int(n) for n in random.integers(1, 6, random.integers(1, 5)))
        shape = tuple(int(random.integers(1, n + 1)) for n in full)
        tile, buffer = random.random(shape), np.full(full, np.nan)
        buffer.reshape(-1)[: tile.size] = tile.reshape(-1)
        host_program._spread(buffer, shape)
        np.testing.assert_array_equal(buffer[tuple(slice(0, n) for n in shape)], tile)


def test_a_dataset_for_a_whole_input_is_refused(tmp_path: Path) -> None:
    v, t2, wanted = arrays()
    program = tcgen.compile(LADDER, target="cpu")
    with stored(tmp_path, v).file as file, pytest.raises(ArgumentError, match="--sliced v_vvvv"):
        program(v_vvvv=file["v"], t2=t2)
    np.save(tmp_path / "v.npy", v)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    found = program(v_vvvv=mapped, t2=t2)["r"]
    np.testing.assert_allclose(found, wanted)
    assert program.allocated_bytes == program.peak_bytes()  # the map itself, not a copy


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (LADDER, "w", "w inputs v_vvvv"),
        (LADDER.replace("t2[o,o,v,v]", "t2[o,o,v,v], s").replace("1/2", "s"), "s", "scalar"),
        (
            "space o = 2\nspace v = 2\nspace p = o + v\nindex i j : o\ninput x[p,p]\noutput e\n"
            "e = x[i,j]*x[i,j]\n",
            "x",
            "x whole",
        ),
    ],
)
def test_what_cannot_be_sliced(text: str, name: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=mentions(message)):
        tcgen.compile(text, target="numpy", sliced=(name,))


def filler(array: Any, sizes: list[int]) -> Any:
    """A callable that fills tiles, and notes their numbers of elements."""

    def fill(out: Any, ranges: tuple[slice, ...]) -> None:
        sizes.append(out.size)
        out[...] = array[ranges]

    return fill


@pytest.mark.parametrize("objective", ["none", "linear", "memory", "peak", "time"])
def test_an_input_that_a_step_reads_twice_is_read_under_two_names(objective: str) -> None:
    text = """
    space o = 4
    space x = 6
    index i j k : o
    index P Q : x
    input b[x,o,o], y[o]
    output g, e, t
    g[i,j] = b[P,i,k]*b[P,j,k]
    e = b[P,i,j]*b[P,j,i]
    t[i] = b[P,i,j]*b[P,i,j]*y[j] + exp(b[P,i,j])*b[P,j,i]*y[j]
    """
    program = tcgen.compile(text, target="numpy", objective=objective, sliced="b")
    rng = np.random.default_rng(0)
    for o, x in ((4, 6), (3, 5), (1, 1), (0, 2)):
        b, y, largest = rng.random((x, o, o)), rng.random(o), list[int]()
        for source in (b, filler(b, largest)) if (o, x) == (4, 6) else (b,):
            found = program(b=source, y=y)
            np.testing.assert_allclose(found["g"], np.einsum("pik,pjk->ij", b, b))
            np.testing.assert_allclose(found["e"], np.einsum("pij,pji->", b, b), atol=1e-14)
            t = np.einsum("pij,pij,j->i", b, b, y) + np.einsum("pij,pji,j->i", np.exp(b), b, y)
            np.testing.assert_allclose(found["t"], t)
        assert not largest or max(largest) < 6 * 4 * 4
    manifest = program.manifest
    assert [t.name for t in manifest.tensors if t.role == "generated"] == ["b"]
    assert {b.source for b in manifest.buffers if b.source.startswith("b")} == {"b"}


@pytest.mark.default_thresholds
def test_the_objective_time_slices_with_and_without_a_limit() -> None:
    path, extents = tcgen.spec_path("df_ladder"), {"o": 3, "v": 7, "x": 5}
    roomy = tcgen.compile(path, extents=extents, target="numpy", objective="time", sliced="b_vv")
    assert all(
        any(axis.length for axis in b.axes) for b in roomy.manifest.buffers if b.source == "b_vv"
    )
    tight = tcgen.compile(
        path,
        extents=extents,
        target="numpy",
        objective="time",
        sliced="b_vv",
        memory_limit=6000,
    )
    assert 0 < tight.peak_bytes() <= 6000


RSS = """
import sys, h5py, numpy as np, tcgen

def status(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return 1024 * int(line.split()[1])

spec, path = sys.argv[1:]
program = tcgen.compile(spec, target="cpu", objective="none", sliced=("v_vvvv",))
t2 = np.ones((6, 6, 56, 56))
with h5py.File(path) as file:
    program(v_vvvv=file["v"], t2=t2)
    open("/proc/self/clear_refs", "w").write("5")
    before = status("VmRSS")
    r = program(v_vvvv=file["v"], t2=t2)["r"]
    print(status("VmHWM") - before, program.allocated_bytes, program.peak_bytes(), r[1, 2, 3, 4])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.slow
def test_a_file_larger_than_what_the_process_holds(tmp_path: Path) -> None:
    """The file has 79 MB; the process grows by what the report says."""
    text = LADDER.replace("o = 3", "o = 6").replace("v = 7", "v = 56")
    text = text[: text.index(" - 1/2")] + "\n"
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("v", (56, 56, 56, 56), "f8")
        for n in range(56):
            data[n] = n
    assert path.stat().st_size > 78e6
    done = subprocess.run(
        [sys.executable, "-c", RSS, text, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    grown, allocated, reported, value = done.stdout.split()
    assert int(allocated) == int(reported) < 20e6
    assert int(grown) <= int(reported) * 1.01 + 16 * 2**20
    assert float(value) == 3 * 56 * 56


@pytest.mark.parametrize("antisymmetric", [False, True])
def test_a_packed_tile_takes_few_reads(antisymmetric: bool) -> None:
    """A part of few rows of a triangle is read at once, without the rest of its rows."""
    word = "antisymmetric" if antisymmetric else "symmetric"
    text = f"space v virtual\nindex a b c d : v\ninput w[v,v,v,v] {word} (0,1) (2,3) "
    text += "packed (0,1) (2,3)\ninput u[v,v,v]\noutput r\nr[a] = w[a,b,c,d]*u[b,c,d]\n"
    program = tcgen.compile(text, extents={"v": 40}, target="numpy", objective="none")
    tensor = next(t for t in program.manifest.tensors if t.name == "w")
    whole = np.random.default_rng(0).standard_normal((40,) * 4)
    sign = -1 if antisymmetric else 1
    whole = whole + sign * whole.transpose(1, 0, 2, 3)
    whole = whole + sign * whole.transpose(0, 1, 3, 2)
    stored = tcgen.pack_pairs(whole, (0, 1), (2, 3), antisymmetric=antisymmetric)
    reads: list[int] = []

    class Source:
        def __getitem__(self, ranges: tuple[slice, ...]) -> np.ndarray:
            reads.append(stored[ranges].size)
            return stored[ranges]

    cases = [((0, 40), (0, 13)), ((20, 33), (0, 40)), ((7, 7), (0, 4)), ((5, 6), (5, 6))]
    for one, two in cases:
        ranges = (slice(*one), slice(*two), slice(0, 40), slice(3, 40))
        buffer = np.full([r.stop - r.start for r in ranges], np.nan)
        reads.clear()
        host_program.fetch_tile(tensor, Source(), ranges, buffer, (0, 1, 2, 3))
        np.testing.assert_array_equal(buffer, whole[ranges])
        assert len(reads) <= 60
        assert max(reads, default=0) <= 2**17
