"""What a user may pass, what comes back, and what the messages say."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from typing import Any

import hand_modules as hand
import numpy as np
import pytest

import tcgen
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

O, V = 5, 7


def made(name: str, target: str = "cpu", **more: Any) -> Program:
    return Program(emit_artifact(hand.ALL[name](), target=target, **more))


def rand(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def energy_inputs() -> dict[str, Any]:
    return {"g": rand(O, V), "e_o": rand(O) - 2, "e_v": rand(V) + 2, "shift": 0.5}


def tiles_expected(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> dict[str, Any]:
    g = x @ y
    return {"r": (2 * x.T) @ g, "s": x @ y}


@pytest.fixture(scope="module", params=["cpu", "numpy"])
def energy(request: pytest.FixtureRequest) -> Program:
    return made("energy", request.param)


@pytest.fixture(scope="module", params=["cpu", "numpy"])
def tiles(request: pytest.FixtureRequest) -> Program:
    return made("tiles", request.param)


def test_unknown_and_missing_keywords(energy: Program) -> None:
    inputs = energy_inputs()
    del inputs["g"]
    with pytest.raises(ArgumentError, match=r"missing input g; unknown input gg \(the inputs here"):
        energy(**inputs, gg=1)


def test_default_of_a_scalar(energy: Program) -> None:
    inputs = energy_inputs()
    given = energy(**inputs)
    del inputs["shift"]
    assert np.array_equal(given["t"], energy(**inputs)["t"])


def test_rank_and_contradictory_extents(energy: Program) -> None:
    inputs = energy_inputs()
    with pytest.raises(ShapeError, match=r"g\[o,v\] has 2 axes, found an array of 3 axes"):
        energy(**{**inputs, "g": rand(O, V, 1)})
    message = (
        r"axis 0 of e_v\[v\] says that space v has extent 8, but axis 1 of g\[o,v\] says 7: "
        r"expected shape \(7,\), found shape \(8,\)"
    )
    with pytest.raises(ExtentError, match=message):
        energy(**{**inputs, "e_v": rand(8)})


def test_joined_extents(request: pytest.FixtureRequest) -> None:
    program = made("joined", planning_extents=(("o", 2), ("v", 3)))
    assert program(double=rand(5, 5))["ov"].shape == (2, 3)
    with pytest.raises(ShapeError, match=r"must have length 5 \(p: o=2 \+ v=3\), found 6"):
        program(double=rand(6, 6))
    products = made("gemm")
    inputs = {
        "a": rand(O, V),
        "at": rand(V, O),
        "b": rand(V, O + V),
        "bt": rand(O + V, V),
        "t": rand(O, V, O),
        "u": rand(O, O, V),
    }
    assert products.extents_for(**inputs) == {"o": O, "v": V}
    # a part that only a joined axis shows is what the other parts leave of it
    assert products.extents_for(b=rand(V, O + V)) == {"o": O, "v": V}
    with pytest.raises(ShapeError, match=r"axis 1 of b\[v,p\] must have length 12"):
        products(**{**inputs, "b": rand(V, O + V + 1)})
    with pytest.raises(ExtentError, match=r'extent of space o, v: compile with extents=\{"o": 10'):
        made("joined")(double=rand(5, 5))


def test_packed_lengths() -> None:
    program = made("packed")
    good = {"g": rand(15, 21), "n": rand(V, 10)}
    program(**good)
    with pytest.raises(ShapeError, match=r"packed pair: its length must be n\(n\+1\)/2, found 16"):
        program(**{**good, "g": rand(16, 21)})
    with pytest.raises(ShapeError, match=r"must be n\(n-1\)/2, found 11"):
        program(**{**good, "n": rand(V, 11)})


def test_element_types(energy: Program) -> None:
    inputs = energy_inputs()
    with pytest.raises(DtypeError, match=r'g must be float64, found float32: pass g.astype\("fl'):
        energy(**{**inputs, "g": inputs["g"].astype("float32")})
    with pytest.raises(DtypeError, match=r'pass g.real.astype\("float64"\)'):
        energy(**{**inputs, "g": inputs["g"] + 0j})
    with pytest.raises(DtypeError, match="float64"):
        energy(**{**inputs, "g": inputs["g"].astype(">f8")})
    with pytest.raises(DtypeError, match="shift must be float64"):
        energy(**{**inputs, "shift": 1j})
    for shift in (1, 0.5, np.float64(0.5), np.float32(0.5), np.array(0.5)):
        energy(**{**inputs, "shift": shift})


def test_foreign_and_strange_arrays(energy: Program) -> None:
    inputs = energy_inputs()

    class Elsewhere:
        __cuda_array_interface__ = ()

    Elsewhere.__module__ = "cupy"
    with pytest.raises(ArgumentError, match=r"g is a cupy array.*cupy.asnumpy\(g\)"):
        energy(**{**inputs, "g": Elsewhere()})
    with pytest.raises(ArgumentError, match="not a generated input"):
        energy(**{**inputs, "g": lambda out, ranges: None})
    for nothing in (None, "g", [None] * O):
        with pytest.raises(DtypeError, match=r"g must be float64, found .*: pass numbers"):
            energy(**{**inputs, "g": nothing})
    with pytest.raises(ArgumentError, match="masked"):
        energy(**{**inputs, "g": np.ma.masked_array(inputs["g"])})


def test_awkward_but_right_arrays(tiles: Program) -> None:
    x, y = rand(O, V), rand(V, O, seed=1)
    expected = tiles_expected(x, y)
    raw = np.zeros(x.nbytes + 1, np.uint8)
    misaligned = np.ndarray(x.shape, "f8", raw, 1)
    misaligned[...] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    wide = np.zeros((O, 2 * V))
    wide[:, ::2] = x
    for form in (
        np.asfortranarray(x),
        misaligned,
        frozen,
        wide[:, ::2],
        x[::-1][::-1],
        x.tolist(),
        x.view(type("Sub", (np.ndarray,), {})),
    ):
        out = tiles(x=form, y=y)
        for name, value in expected.items():
            assert np.allclose(out[name], value, rtol=0, atol=1e-13)
            assert type(out[name]) is np.ndarray


def test_out_is_filled_and_reused(tiles: Program) -> None:
    x, y = rand(O, V), rand(V, O, seed=1)
    expected = tiles_expected(x, y)
    out: dict[str, Any] = {}
    assert tiles(x=x, y=y, out=out) is out
    first = dict(out)
    tiles(x=x, y=2 * y, out=out)
    assert out["s"] is first["s"]
    assert np.allclose(out["s"], 2 * expected["s"])
    wide = np.zeros((V, 2 * O))
    tiles(x=x, y=y, out={"r": wide[:, ::2]})
    assert np.allclose(wide[:, ::2], expected["r"])
    assert not wide[:, 1::2].any()


def test_out_may_overlap_an_input_but_not_an_output(tiles: Program) -> None:
    memory = np.zeros((V + 1, O))
    memory[:V] = rand(V, O, seed=1)
    x, y = rand(O, V), memory[:V]
    expected = tiles_expected(x, y.copy())
    result = tiles(x=x, y=y, out={"r": memory[1:]})
    assert np.allclose(result["r"], expected["r"])
    assert np.allclose(result["s"], expected["s"])
    with pytest.raises(ArgumentError, match=r'out\["r"\] and out\["s"\] overlap'):
        tiles(x=x, y=rand(V, O), out={"r": memory[:V], "s": memory[:O]})


def test_wrong_out(tiles: Program) -> None:
    x, y = rand(O, V), rand(V, O)
    for out, error, message in (
        ({"q": x}, ArgumentError, "out has q, which is no output"),
        ([], ArgumentError, "out must be a dict"),
        ({"r": [1.0]}, ArgumentError, "must be a NumPy array"),
        ({"r": np.zeros((V, O + 1))}, ShapeError, r"must have shape \(7, 5\), found \(7, 6\)"),
        ({"r": np.zeros((V, O), "f4")}, DtypeError, "r must be float64"),
        ({"r": np.broadcast_to(0.0, (V, O))}, ArgumentError, "read-only"),
    ):
        with pytest.raises(error, match=message):
            tiles(x=x, y=y, out=out)  # type: ignore[arg-type]


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
    with pytest.raises(ArgumentError, match=r"bound: missing input x \(the inputs here are x\)"):
        bound(out={"r": start})
    with pytest.raises(ArgumentError, match="x may change at each call"):
        program.bind(c=c, x=x)
    with pytest.raises(
        ExtentError, match=r"axis 0 of x\[o,o\] says that space o has extent 6, but"
    ):
        bound(x=rand(6, 6), out={"r": rand(6, 6)})
    with pytest.raises(ArgumentError, match="output r accumulates: pass the array"):
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
    with pytest.raises(DtypeError, match="g must be float64"):
        program(g=g.transpose(1, 0, 2).astype("f4"), x=x)


def test_memory_limit_and_peak() -> None:
    program = made("tiles", memory_limit=10_000)
    x, y = rand(O, V), rand(V, O)
    program(x=x, y=y)
    peak = program.peak_bytes({"o": O, "v": V})
    assert program.allocated_bytes == peak
    with pytest.raises(MemoryLimitError, match=r"at o=50, v=70.*limit is 10,000.*g 20,000"):
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
    assert queue.get(timeout=60)
    child.join(timeout=60)
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
    with pytest.raises(CheckError, match="x breaks its declared symmetry"):
        program(x=x)
    program(x=x + x.transpose(2, 1, 0))


def test_samples_of_a_symmetry_walk_through_all_axes() -> None:
    """An odd stride that shares a factor with the extents would see only part of the array."""
    n = 15
    x = np.zeros((n, n, n))
    x[:, :, 7] = 1.0  # 225 of 3375 elements break x[i,j,k] == x[i,k,j]
    with pytest.raises(CheckError, match="x breaks its declared symmetry"):
        check_symmetry("x", x, [((0, 2, 1), 1, False)], samples=225)


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
    with pytest.raises(MemoryLimitError, match="spec needs"):
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
    with pytest.raises(ShapeError, match=r"axis 0 of F\[p,p\] must have length 7"):
        bound(t=rand(3, 4))


def test_any_name_may_be_an_input() -> None:
    text = """
    space o = 2
    index i : o
    input self[o] constant, name[o]
    output r
    r[i] = self[i]*name[i]
    """
    program = tcgen.compile(text, target="numpy")
    one, two = np.ones(2), np.arange(2.0)
    assert program.extents_for(**{"self": one}) == {"o": 2}
    assert program(**{"self": one, "name": two})["r"].tolist() == [0.0, 1.0]
    assert program.bind(**{"self": one})(name=two)["r"].tolist() == [0.0, 1.0]


def test_arrays_come_by_name() -> None:
    text = "space o = 2\nindex i : o\ninput c[o] constant\ninput x[o]\noutput e\ne = c[i]*x[i]\n"
    program = tcgen.compile(text, target="numpy")
    one = np.ones(2)
    with pytest.raises(ArgumentError, match=r"pass arrays by name: program\(c=\.\.\., x=\.\.\.\)"):
        program(one, one)
    with pytest.raises(ArgumentError, match=r"pass arrays by name: program\(x=\.\.\.\)"):
        program.bind(c=one)(one)
    assert repr(program.bind(c=one)) == "<spec, bound(x), numpy, float64>"
    with pytest.raises(ArgumentError, match=r"unknown input y \(there are no inputs here\)"):
        tcgen.compile("ij->ji", extents={"i": 1, "j": 1}, target="numpy").bind(y=one)
