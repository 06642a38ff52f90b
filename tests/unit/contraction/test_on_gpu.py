"""``tcgen.einsum`` and its relatives on arrays of a GPU: routes, values, whose arrays come back.

CuPy is a stand-in whose streams run when they are waited for; torch is one whose tensors hand their
memory over by DLPack.
"""

from __future__ import annotations

import shutil
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcgen
from support import cupy_stand_in
from support.cupy_stand_in import Array, Stream
from support.marks import slow
from support.messages import mentions
from tcgen.compiler.program_cache import LeastRecentlyUsed
from tcgen.contraction.libraries import CuPy
from tcgen.errors import ArgumentError, DtypeError, ShapeError
from tcgen.runtime.fork_safe_lock import Once
from tcgen.runtime.gpu.cupy_device import CupyDevice

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
)
CUPY = cupy_stand_in.module


class Tensor:
    """A tensor of torch on the GPU; taking it makes the taker's stream wait for torch's."""

    streams: tuple[Any, ...] = ()

    def __init__(self, array: Any, *, requires_grad: bool = False) -> None:
        self.array, self.requires_grad = array, requires_grad

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.array.__array_interface__

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient")
        Tensor.streams += (stream,)
        return self.array.view(np.ndarray)


Tensor.__module__ = "torch"


@pytest.fixture(autouse=True)
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for CuPy and one for torch, but in tests of a real GPU."""
    if request.node.get_closest_marker("gpu"):
        return
    Stream.reset()
    Tensor.streams = ()
    device = CupyDevice(CUPY)
    monkeypatch.setattr("tcgen.contraction.libraries.CUPY", Once(lambda: CuPy(device)))
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_dlpack=Tensor))
    monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", "0")
    tcgen.einsum_report(reset=True)


def random(*shape: int, dtype: str = "float64") -> Any:
    return np.random.default_rng(sum(shape)).random(shape).astype(dtype)


def routes() -> list[tuple[str, str]]:
    return [(row.route, row.reason) for row in tcgen.einsum_report().rows]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("text", "shapes", "route"),
    [
        ("ij,jk->ik", ((3, 4), (4, 5)), "kernel"),
        ("ijk,lkj->li", ((3, 4, 5), (2, 5, 4)), "kernel"),
        ("...ij,jk", ((2, 3, 4), (4, 5)), "kernel"),
        ("ij,ij->", ((3, 4), (3, 4)), "kernel"),
        ("ij,jk,kl->il", ((3, 4), (4, 5), (5, 2)), "kernel"),
        ("ij->ji", ((3, 4),), "cupy"),
    ],
)
def test_values_and_routes(text: str, shapes: Any, route: str) -> None:
    arrays = [random(*shape) for shape in shapes]
    found = tcgen.einsum(text, *map(CUPY.asarray, arrays))
    assert isinstance(found, Array)
    np.testing.assert_allclose(found.get(), np.einsum(text, *arrays), rtol=1e-12)
    assert [r for r, _ in routes()] == [route]


def test_small_calls_go_to_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TCGEN_EINSUM_MIN_FLOPS")
    a, b = random(3, 4), random(4, 5)
    out = CUPY.empty((3, 5))
    assert tcgen.einsum("ij,jk->ik", CUPY.asarray(a), CUPY.asarray(b), out=out) is out
    np.testing.assert_allclose(out.get(), a @ b)
    whole = random(3, 4).astype("int64")
    found = tcgen.einsum("ij,ij->j", CUPY.asarray(whole), CUPY.asarray(whole))
    np.testing.assert_array_equal(found.get(), (whole * whole).sum(0))
    assert sorted(routes()) == [("cupy", "no kernels for int64"), ("cupy", "tiny")]


def test_contract_updates_in_place() -> None:
    a, b, c = random(3, 4), random(4, 5), random(3, 5)
    there = [CUPY.asarray(x) for x in (a, b)]
    for alpha, beta in ((0.5, 1), (2.0, 0), (1, 0), (0.1, 1), (1, 0.25)):
        out = CUPY.asarray(c)
        assert tcgen.contract("ij,jk->ik", *there, alpha, beta, out) is out
        np.testing.assert_allclose(out.get(), alpha * (a @ b) + beta * c, rtol=1e-12)
    found = tcgen.tensordot(*there, axes=1)
    np.testing.assert_allclose(found.get(), a @ b, rtol=1e-12)
    with pytest.raises(ShapeError, match=mentions("(5, 3) (3, 5)")):
        tcgen.contract("ij,jk->ik", *there, 0.1, 0.5, CUPY.asarray(c.T.copy()))


def test_tensors_of_torch_in_and_out() -> None:
    """On the current stream of CuPy, which waits for torch's as DLPack says."""
    a, b = random(3, 4), random(4, 5)
    given = [Tensor(CUPY.asarray(x)) for x in (a, b)]
    Stream.current.synchronize()
    with Stream() as stream:
        found = tcgen.einsum("ij,jk->ik", *given)
        assert Tensor.streams == (stream.ptr, stream.ptr)
        assert isinstance(found, Tensor)
        np.testing.assert_allclose(found.array.get(), a @ b, rtol=1e-12)
        out = Tensor(CUPY.empty((3, 5)))
        assert tcgen.einsum("ij,jk->ik", *given, out=out) is out
        np.testing.assert_allclose(out.array.get(), a @ b, rtol=1e-12)


def test_programs_take_tensors_of_torch() -> None:
    program = tcgen.compile(
        "space s\nindex i j k : s\ninput a[s,s], b[s,s] constant\noutput c, e\n"
        "c[i,j] = a[i,k]*b[k,j]\ne = c[i,i]",
        extents={"s": 4},
        target="cuda",
    )
    a, b = random(4, 4), random(4, 4) + 1
    given = {"a": Tensor(CUPY.asarray(a)), "b": Tensor(CUPY.asarray(b))}
    Stream.current.synchronize()
    bound = program.bind(b=given["b"])
    out: dict[str, Any] = {"c": Tensor(CUPY.empty((4, 4)))}
    c = out["c"]
    for found in (program(**given), bound(a=given["a"]), program(**given, out=out)):
        assert all(isinstance(x, Tensor) for x in found.values())
        np.testing.assert_allclose(found["c"].array.get(), a @ b, rtol=1e-12)
        np.testing.assert_allclose(found["e"].array.get(), np.trace(a @ b), rtol=1e-12)
    assert out["c"] is c
    assert isinstance(program(a=CUPY.asarray(a), b=b)["c"], Array)
    with pytest.raises(DtypeError, match=mentions("a float64 float32")):
        program(a=Tensor(CUPY.asarray(a.astype("float32"))), b=b)


def test_what_cannot_be_taken() -> None:
    a = random(3, 3)
    there = CUPY.asarray(a)
    with pytest.raises(ArgumentError, match=mentions("operand 1 numpy.ndarray cupy.asarray")):
        tcgen.einsum("ij,jk", there, a)
    with pytest.raises(ArgumentError, match=mentions("operand 0 torch gradient detach()")):
        tcgen.einsum("ij,jk", Tensor(there, requires_grad=True), there)
    with pytest.raises(ShapeError):
        tcgen.einsum("ij,jk", there, CUPY.asarray(random(4, 3)))
    with pytest.raises(DtypeError):
        tcgen.einsum("ij,jk", there, there, dtype="float32")


@pytest.mark.few(1)
@pytest.mark.parametrize("text", ["kij,kab->kiajb", "ij,kj->ik", "ij,jk->k"])
def test_results_are_in_the_order_of_numpy(text: str) -> None:
    """Also of arrays so large that their elements may not be read to find the order."""
    extents = dict(zip("abijk", (19, 18, 17, 16, 15), strict=True))
    terms = text.split("->")[0].split(",")
    arrays = [random(*(extents[c] for c in reversed(labels))).T for labels in terms]
    expected = np.einsum(text, *arrays)
    found = tcgen.einsum(text, *(CUPY.asarray(a.T).T for a in arrays))
    assert found.strides == expected.strides
    np.testing.assert_allclose(found.get(), expected, rtol=1e-12)


def test_elements_that_repeat() -> None:
    a, b = random(3, 1), random(4, 5)
    wide = np.lib.stride_tricks.as_strided(CUPY.asarray(a), (3, 4), (8, 0), subok=True)
    assert isinstance(wide, Array)
    for text, operands in (("ij,jk->ik", (wide, CUPY.asarray(b))), ("ij->ji", (wide,))):
        expected = np.einsum(text, *(x.get() for x in operands))
        np.testing.assert_allclose(tcgen.einsum(text, *operands).get(), expected, rtol=1e-12)
    found = tcgen.einsum("ij->i", wide)
    assert isinstance(found, Array)
    np.testing.assert_allclose(found.get(), 4 * a[:, 0], rtol=1e-12)


@pytest.mark.gpu
def test_a_real_gpu() -> None:
    cupy = pytest.importorskip("cupy")
    a, b = random(64, 32), random(32, 48)
    found = tcgen.einsum("ij,jk->ik", cupy.asarray(a), cupy.asarray(b))
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_allclose(cupy.asnumpy(found), a @ b, rtol=1e-12)


CONTRACTIONS = (
    "abcd,ijcd->ijab",
    "ab,bc->ac",
    "kij,kab->kiajb",
    "ijab,ijab->",
    "abc,bc->a",
    "abcd,cdab->",
    "ia,jb->iajb",
)


@pytest.mark.few(1)
@pytest.mark.parametrize("text", [*CONTRACTIONS[:2], *slow(*CONTRACTIONS[2:])])
def test_slices_are_read_and_written_where_they_are(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elements beside them are not a number, and stay what they are."""
    monkeypatch.setattr("tcgen.contraction.kernel_route._MIN_STRIDED_ELEMENTS", 0)
    monkeypatch.setattr("tcgen.contraction.routes._routes", LeastRecentlyUsed(lambda: 100))
    # The kernels are tested: there is no cuBLAS, to which some thresholds leave products.
    monkeypatch.setattr("tcgen.lower.gpu.library.bind_library", lambda *_: None)
    copied: list[Any] = []
    copy = CupyDevice.contiguous
    monkeypatch.setattr(
        CupyDevice, "contiguous", lambda own, array: copied.append(array) or copy(own, array)
    )
    extents = dict(zip("abcdijk", (19, 18, 17, 6, 5, 7, 3), strict=True))

    def inside(values: Any) -> Any:
        whole = np.full([n + 3 for n in values.shape], np.nan)
        place = (slice(1, -2),) * values.ndim
        whole[place] = values
        return CUPY.asarray(whole)[place]

    terms, output = text.split("->")[0].split(","), text.split("->")[1]
    operands = [random(*(extents[c] for c in labels)) for labels in terms]
    wanted = np.einsum(text, *operands)
    parts = [inside(operand) for operand in operands]
    np.testing.assert_allclose(tcgen.einsum(text, *parts).get(), wanted, rtol=1e-12)
    if output:
        out = inside(np.zeros_like(wanted))
        assert tcgen.einsum(text, *parts, out=out) is out
        np.testing.assert_allclose(out.get(), wanted, rtol=1e-12)
        whole = out.base.get()
        assert np.count_nonzero(np.isnan(whole)) == whole.size - wanted.size
    assert all(array.flags.c_contiguous for array in copied)
