"""Programs as their users hold them: bound, limited, in threads and processes, their symmetry."""

from __future__ import annotations

import importlib
import multiprocessing
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support import hand_modules as hand
from support.hand_programs import O, V, made, rand, tiles_expected
from support.messages import mentions
from tcgen.emit import emit_artifact
from tcgen.errors import (
    ArgumentError,
    CheckError,
    DtypeError,
    ExtentError,
    MemoryLimitError,
    ShapeError,
)
from tcgen.runtime.program import Program
from tcgen.runtime.symmetry import check_symmetry


@pytest.fixture(scope="module", params=["cpu", "numpy"])
def tiles(request: pytest.FixtureRequest) -> Program:
    return made("tiles", request.param)


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_constants_are_bound_once(target: str) -> None:
    program = made("phases", target)
    c, x, start = rand(O, V), rand(O, O, seed=1), rand(O, O, seed=2)
    m = 2 * c @ c.T
    expected = {"m": m, "r": start + x - m, "y": x @ (2 * c)}
    whole = program(c=c, x=x, out={"r": start.copy()})
    bound = program.bind(c=c)
    assert bound.kept_bytes >= 2 * 64 + c.nbytes
    for _ in range(2):
        part = bound(x=x, out={"r": start.copy()})
        for name, value in expected.items():
            assert np.allclose(whole[name], value)
            assert np.allclose(part[name], value)
    again = pickle.loads(pickle.dumps(bound))
    assert np.allclose(again(x=x, out={"r": start.copy()})["y"], expected["y"])
    with pytest.raises(ArgumentError, match=mentions("bound missing input x")):
        bound(out={"r": start})
    with pytest.raises(ArgumentError, match=mentions("x call")):
        program.bind(c=c, x=x)
    with pytest.raises(ExtentError, match=mentions("axis 0 x[o,o] space o extent 6")):
        bound(x=rand(6, 6), out={"r": rand(6, 6)})
    with pytest.raises(ArgumentError, match=mentions("output r accumulates")):
        bound(x=x)


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_generated_inputs(target: str) -> None:
    # the extent of o is shown by no array where g is a callable
    program = made("generated", target, planning_extents=(("o", O), ("v", 2)))
    g, x = rand(O, V, V), rand(V, seed=1)
    expected = np.einsum("iab,b->ia", g, x)
    asked = []

    def produce(out: np.ndarray[Any, Any], ranges: tuple[slice, ...]) -> None:
        assert out.flags.c_contiguous
        assert out.shape == tuple(r.stop - r.start for r in ranges)
        asked.append(ranges)
        out[...] = g[ranges]

    class Slices:
        """As h5py: an array in stored order that gives what is sliced, and nothing else."""

        shape, dtype = (V, O, V), g.dtype

        def __getitem__(self, ranges: tuple[slice, ...]) -> np.ndarray[Any, Any]:
            return g.transpose(1, 0, 2)[ranges].copy()

    for source in (produce, Slices(), np.ascontiguousarray(g.transpose(1, 0, 2))):
        result = program(g=source, x=x)
        assert np.allclose(result["y"], expected)
        assert np.allclose(result["e"], np.sum(expected * x))
    assert len(asked) == O * 3
    assert asked[-1] == (slice(4, 5), slice(0, 7), slice(6, 7))

    def broken(out: np.ndarray[Any, Any], ranges: tuple[slice, ...]) -> None:
        raise RuntimeError("disk is gone")

    with pytest.raises(RuntimeError, match="disk is gone"):
        program(g=broken, x=x)
    with pytest.raises(DtypeError, match=mentions("g float64")):
        program(g=g.transpose(1, 0, 2).astype("f4"), x=x)


def test_memory_limit_and_peak() -> None:
    program = made("tiles", memory_limit=10_000)
    x, y = rand(O, V), rand(V, O)
    program(x=x, y=y)
    peak = program.peak_bytes({"o": O, "v": V})
    assert program.allocated_bytes == peak
    with pytest.raises(MemoryLimitError, match=mentions("o=50 v=70 limit 10,000 g 20,000")):
        program(x=rand(50, 70), y=rand(70, 50))
    # the least: the arena holds g, the outputs r and s
    assert peak >= 8 * (O * O + V * O + O * O)


def test_calls_from_threads_do_not_disturb_each_other() -> None:
    program = made("tiles")
    failures = []

    def work(seed: int) -> None:
        o, v = 20 + seed, 30 - seed
        x, y = rand(o, v, seed=seed), rand(v, o, seed=seed + 50)
        expected = tiles_expected(x, y)
        for _ in range(20):
            out = program(x=x, y=y)
            if not all(np.allclose(out[n], e) for n, e in expected.items()):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


_forked: Program | None = None


def _in_child(queue: Any) -> None:
    x, y = rand(60, 70), rand(70, 60)
    assert _forked is not None
    queue.put(np.allclose(_forked(x=x, y=y)["s"], x @ y))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_survives_fork() -> None:
    global _forked
    _forked = made("tiles")
    _forked(x=rand(60, 70), y=rand(70, 60))  # threads have run in the parent
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=600)
    child.join(timeout=600)
    assert child.exitcode == 0


def test_pickle_and_repr() -> None:
    program = made("tiles")
    again = pickle.loads(pickle.dumps(program))
    x, y = rand(O, V), rand(V, O)
    assert np.array_equal(again(x=x, y=y)["s"], program(x=x, y=y)["s"])
    assert repr(program) == "<tiled(x, y) -> r, s, cpu, float64>"
    assert "tcgen_tiled_1" in program.source


def test_broken_symmetry_is_noticed() -> None:
    from dataclasses import replace

    from tcgen.ir.tensor import Symmetry

    module = hand.transpose()
    promised = replace(module.tensors[0], symmetry=(Symmetry((2, 1, 0)),))
    buffers = (replace(module.buffers[0], tensor=promised), *module.buffers[1:])
    module = replace(module, tensors=(promised, *module.tensors[1:]), buffers=buffers)
    program = Program(emit_artifact(module, target="numpy"))
    x = rand(O, V, O)
    with pytest.raises(CheckError, match=mentions("x symmetry")):
        program(x=x)
    program(x=x + x.transpose(2, 1, 0))


def test_the_symmetry_of_an_array_is_checked_after_a_call_with_a_callable() -> None:
    text = """
    space v = 4
    index a b c : v
    input w[v,v] symmetric (0,1) generated, t[v,v]
    output r
    r[a,c] = w[a,b]*t[b,c]
    """
    program = tcgen.compile(text, target="numpy")
    w, t = rand(4, 4), rand(4, 4, seed=1)

    def fill(tile: np.ndarray, rectangle: tuple[slice, ...]) -> None:
        tile[...] = (w + w.T)[rectangle]

    program(w=fill, t=t)
    with pytest.raises(CheckError, match=mentions("w symmetry")):
        program(w=w, t=t)


def test_samples_of_a_symmetry_walk_through_all_axes() -> None:
    """An odd stride that shares a factor with the extents would see only part of the array."""
    n = 15
    x = np.zeros((n, n, n))
    x[:, :, 7] = 1.0  # 225 of 3375 elements break x[i,j,k] == x[i,k,j]
    with pytest.raises(CheckError, match=mentions("x symmetry")):
        check_symmetry("x", x, [((0, 2, 1), 1, False)], samples=225)


@pytest.mark.parametrize("sign", [1, -1])
def test_symmetry_between_packed_pairs_is_sampled(sign: int) -> None:
    kind = "symmetric" if sign > 0 else "antisymmetric"
    text = f"""
    space v = 4
    index a b c d : v
    input w[v,v,v,v] {kind} (0,1) (2,3) symmetry (0,1)<->(2,3) packed (0,1) (2,3)
    input t[v,v]
    output r
    r[a,c] = w[a,b,c,d]*t[b,d]
    """
    program = tcgen.compile(text, target="numpy")
    n = 10 if sign > 0 else 6
    w, t = rand(n, n), rand(4, 4, seed=1)
    with pytest.raises(CheckError, match=mentions("w symmetry")):
        program(w=w, t=t)
    assert program(w=w + w.T, t=t)["r"].shape == (4, 4)


@pytest.mark.parametrize("samples", [None, 9])
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_infinities_hide_no_broken_symmetry(odd: float, samples: int | None) -> None:
    whole, transposed = np.eye(3), [((1, 0), 1, False)]
    whole[2, 2] = odd
    check_symmetry("x", whole, transposed, samples=samples)
    whole[0, 1] = whole[1, 0] = odd
    check_symmetry("x", whole, transposed, samples=samples)
    broken = whole.copy()
    broken[1, 0] = 1.0
    near = whole.copy()
    near[0, 2] = 1e-3
    for array in (broken, near):
        with pytest.raises(CheckError, match=mentions("x symmetry")):
            check_symmetry("x", array, transposed, samples=samples)


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_an_output_of_constants_alone_is_computed_once(target: str) -> None:
    text = """
    space o = 3
    index i j k : o
    input f[o,o] generated constant
    input x[o,o]
    output g, d, r
    g[i,j] = f[i,k]*f[k,j]
    d[i,j] = delta[i,j]
    r[i,j] = f[i,k]*x[k,j] + d[i,j]
    """
    program = tcgen.compile(text, target=target)
    asked = []
    f, x = rand(3, 3), rand(3, 3, seed=1)

    def produce(out: np.ndarray[Any, Any], ranges: tuple[slice, ...]) -> None:
        asked.append(ranges)
        out[...] = f[ranges]

    bound = program.bind(f=f)
    assert bound.kept_bytes >= 2 * f.nbytes  # before any call, since f shows the extent
    bound(x=x)
    assert program.allocated_bytes >= 2 * f.nbytes + 3 * f.nbytes  # kept, and returned
    roomy = tcgen.compile(text, target=target, memory_limit="1 GB")
    limited = tcgen.compile(text, target=target, memory_limit=roomy.peak_bytes() + f.nbytes)
    limited(f=f, x=x)
    with pytest.raises(MemoryLimitError, match=mentions("spec")):
        limited.bind(f=f)
    bound = program.bind(f=produce)
    assert not asked
    calls = []
    for _ in range(3):
        out = bound(x=x)
        assert np.allclose(out["g"], f @ f)
        assert np.allclose(out["r"], f @ x + np.eye(3))
        out["g"][...] = 0.0  # the caller's copy
        calls.append(len(asked))
    assert calls[0] > calls[1] - calls[0] == calls[2] - calls[1]
    whole = program(f=produce, x=x)
    assert np.allclose(whole["g"], f @ f)
    assert np.array_equal(whole["d"], np.eye(3))


@pytest.mark.few(2)
@pytest.mark.parametrize("objective", ["none", "memory"])
@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_a_bound_program_allocates_what_it_predicts(target: str, objective: str) -> None:
    text = """
    space o = 3
    index i j k : o
    input f[o,o] constant, x[o,o]
    output g, d, r
    g[i,j] = f[i,k]*f[k,j]
    d[i,j] = delta[i,j]
    r[i,j] = f[i,k]*x[k,j] + d[i,j] + g[i,k]*g[k,j]
    """
    program = tcgen.compile(text, target=target, objective=objective)
    for n in (3, 5, 0, 1):
        f, x = rand(n, n), rand(n, n, seed=1)
        program(f=f, x=x)
        assert program.allocated_bytes == program.peak_bytes({"o": n})
        for constant in (f, f.T):  # in C order, and not
            bound = program.bind(f=constant)
            bound(x=x)
            assert bound.allocated_bytes == bound.peak_bytes({"o": n})
    with pytest.raises(ExtentError, match=mentions("w=3 o")):
        bound.peak_bytes({"w": 3})


def test_an_empty_packed_pair_does_not_show_its_extent() -> None:
    text = """
    space o = 3
    index i j : o
    input t[o,o] antisymmetric (0,1) packed (0,1), x
    output r[o,o] antisymmetric (0,1) packed (0,1)
    r[i,j] = t[i,j]*x
    """
    program = tcgen.compile(text, target="numpy")
    with pytest.raises(ExtentError, match=mentions("axis 0 t[(o,o)] o 0 1 extents")):
        program(t=np.zeros(0), x=1.0)
    program = tcgen.compile(text, target="numpy", extents={"o": 1})
    assert program(t=np.zeros(0), x=1.0)["r"].shape == (0,)


FILLED = """
space o = 3
index i j : o
input f[o,o] generated, x[o]
output r
r[i] = f[i,j]*x[j]
"""


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_a_callable_must_fill_its_tile(target: str, dtype: str, monkeypatch: Any) -> None:
    f, x = rand(3, 3).astype(dtype), rand(3, seed=1).astype(dtype)
    program = tcgen.compile(FILLED, target=target, dtype=dtype)

    def fill(out: Any, ranges: tuple[slice, ...]) -> Any:
        out[...] = f[ranges]
        return out

    def give(out: Any, ranges: tuple[slice, ...]) -> Any:
        return f[ranges]

    def forget(out: Any, ranges: tuple[slice, ...]) -> None:
        out[:, 1:] = f[ranges][:, 1:]  # nothing of a tile of one element

    np.testing.assert_allclose(program(f=fill, x=x)["r"], f @ x, rtol=1e-6)
    with pytest.raises(ArgumentError, match=mentions("f give returned ndarray out[...]")):
        program(f=give, x=x)
    with pytest.raises(ArgumentError, match=mentions("f forget left f[0, 0] unset out[...]")):
        program(f=forget, x=x)
    monkeypatch.setenv("TCGEN_VERIFY", "0")
    program(f=forget, x=x)


@pytest.mark.default_thresholds
def test_constants_on_joined_axes_are_bound_at_the_extents_of_the_call() -> None:
    text = """
    space o = 4
    space v = 5
    space p = o + v
    index i : o
    index a b : v
    input F[p,p] constant
    input t[o,v]
    output r
    w[a,b] = F[a,i]*F[i,b]
    r[i,a] = w[a,b]*t[i,b]
    """
    program = tcgen.compile(text, target="numpy")
    for o, v in ((1, 2), (4, 5)):
        full, t = rand(o + v, o + v), rand(o, v, seed=1)
        bound = program.bind(F=full)
        assert bound.kept_bytes == 0
        assert np.allclose(bound(t=t)["r"], t @ (full[o:, :o] @ full[:o, o:]).T)
        assert bound.kept_bytes >= 8 * v * v
        other = rand(v, o)  # the same sum of extents
        assert np.allclose(bound(t=other)["r"], other @ (full[v:, :v] @ full[:v, v:]).T)
    with pytest.raises(ShapeError, match=mentions("axis 0 F[p,p] length 7")):
        bound(t=rand(3, 4))


@pytest.mark.parametrize(("dtype", "noise"), [("float64", 1e-13), ("float32", 1e-5)])
def test_zeros_of_point_groups_may_be_rounded(dtype: str, noise: float) -> None:
    """Integrals of an atom are mostly zeros that rounding moves, and samples may meet no others."""
    wrong = rand(12, 12, 12, 12).astype(dtype)
    x = wrong * wrong.dtype.type(noise)
    x[0, 1, 0, 1] = x[0, 1, 1, 0] = 1.0
    for samples in (None, 64):
        check_symmetry("x", x, [((0, 1, 3, 2), 1, False)], samples=samples)
        with pytest.raises(CheckError, match=mentions("x symmetry")):
            check_symmetry("x", wrong, [((0, 1, 3, 2), 1, False)], samples=samples)


@pytest.mark.parametrize("samples", [None, 64])
def test_what_symmetry_leaves_no_element_may_be_rounded(samples: int | None) -> None:
    """Three spin orbitals are one more than two electrons have: T3 is zero but for rounding."""
    t3 = 1e-17 * rand(2, 2, 2)
    signs = [((1, 0, 2), -1, False), ((0, 2, 1), -1, False)]
    check_symmetry("t3", t3, signs, samples=samples)
    with pytest.raises(CheckError, match=mentions("t3 symmetry")):
        check_symmetry("t3", 1e9 * t3, signs, samples=samples)


SCALED = "space o = 3\nindex i j : o\ninput a[o,o] constant, x[o]\noutput y\ny[i] = a[i,j]*x[j]\n"


def test_arrays_that_are_no_inputs() -> None:
    program = tcgen.compile(SCALED, target="numpy")
    everything = {"a": 2 * np.eye(3), "x": np.arange(3.0), "other": np.ones(2)}
    with pytest.raises(ArgumentError, match=mentions("unknown input other")):
        program(**everything)
    expected = 2 * everything["x"]
    assert np.array_equal(program(**everything, strict=False)["y"], expected)
    bound = program.bind(**everything, strict=False)
    assert np.array_equal(bound(**everything, strict=False)["y"], expected)
    with pytest.raises(ArgumentError, match=mentions("missing input x")):
        program(a=everything["a"], strict=False)
    with pytest.raises(tcgen.TcgenError, match=mentions("strict rename")):
        tcgen.compile(SCALED.replace("x[", "strict["))


def test_what_a_bound_program_tells() -> None:
    program = tcgen.compile(SCALED, target="numpy")
    bound = program.bind(a=np.eye(3))
    assert bound.report == program.report
    assert bound.explain() == program.explain()
    for shown in (program._repr_html_(), bound._repr_html_()):
        assert "y_{i} &amp;= " in shown
        assert "<table>" in shown


def test_a_program_is_distributed_by_a_function_and_by_a_method() -> None:
    program = tcgen.compile("ij,jk->ik", extents={"i": 4, "j": 3, "k": 2}, target="numpy")
    x = {"x0": rand(4, 3), "x1": rand(3, 2)}
    with (
        ThreadPoolExecutor(1) as pool,
        tcgen.distribute(program, pool, along="i") as one,
        program.distribute(pool, along="i") as other,
    ):
        np.testing.assert_array_equal(one(**x)["y"], other(**x)["y"])


def test_a_program_imported_from_its_folder_does_not_distribute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made("phases", "numpy").save(tmp_path / "phases_by_import")
    monkeypatch.syspath_prepend(tmp_path)
    program = importlib.import_module("phases_by_import").program
    assert not isinstance(program, Program)
    with pytest.raises(Exception, match=mentions("tcgen.distribute tcgen.load")) as info:
        program.distribute(None)
    assert type(info.value).__name__ == "UnavailableError"
