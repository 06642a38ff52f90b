"""Slices of larger arrays: ``tcgen.einsum`` reads and writes them where they are."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tcgen
import tcgen.compiler.api
from support.campaigns import cases
from support.marks import slow_where
from support.messages import mentions
from tcgen.compiler.program_cache import LeastRecentlyUsed
from tcgen.contraction import kernel_route
from tcgen.contraction import programs as einsum_kernels
from tcgen.errors import TcgenError
from tcgen.frontend.einsum import LabelPattern, einsum_system
from tcgen.frontend.spec.writer import spec_text
from tcgen.runtime.arguments import left_out
from tcgen.runtime.call.results import Results
from tcgen.runtime.memory import Ledger

TARGETS = ["numpy", *(["cpu"] if tcgen.compiler.target.default_target() == "cpu" else [])]
DTYPES = ("float64", "float32", "complex128")
OUTSIDE = 777.0  # what stands beside a result


@pytest.fixture(autouse=True)
def every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays are treated as large ones are, and no call is left to NumPy."""
    monkeypatch.setattr(kernel_route, "_MIN_STRIDED_ELEMENTS", 0)
    monkeypatch.setattr("tcgen.contraction.routes._routes", LeastRecentlyUsed(lambda: 100))
    monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", "0")


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Arrays that calls copy: operands, and results that come from elsewhere."""
    found: list[str] = []
    copy, finish = Ledger.copy, Results.finish

    def noted(own: Ledger, array: Any) -> Any:
        found.append(f"operand {array.shape}")
        return copy(own, array)

    def finished(own: Results, out: Any, **place: Any) -> Any:
        found.extend(own.copied)
        return finish(own, out, **place)

    monkeypatch.setattr(Ledger, "copy", noted)
    monkeypatch.setattr(Results, "finish", finished)
    return found


def inside(array: np.ndarray, places: list[tuple[int, int]], filling: Any) -> np.ndarray:
    """The array as a part of a larger one: elements before and behind it on each axis."""
    shape = [a + n + b for n, (a, b) in zip(array.shape, places, strict=True)]
    whole = np.full(shape, filling, array.dtype)
    part = whole[(..., *(slice(a, a + n) for n, (a, _) in zip(array.shape, places, strict=True)))]
    part[...] = array
    return part


@st.composite
def parts(draw: Any) -> tuple[str, list[np.ndarray], np.ndarray]:
    """Subscripts, operands and an array for the result, all of them parts of larger arrays."""
    letters = "abcdef"[: draw(st.integers(2, 6))]
    sizes = (1, 2, 3, 5, 8, 13, 24)
    extents = {c: draw(st.sampled_from(sizes)) for c in letters}
    dtype = draw(st.sampled_from(DTYPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    terms = [
        "".join(draw(st.lists(st.sampled_from(letters), min_size=1, max_size=4)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    used = list(dict.fromkeys("".join(terms)))
    output = draw(st.permutations([c for c in used if draw(st.booleans())]))
    places = st.tuples(st.integers(0, 2), st.integers(0, 3))

    def part(labels: str, filling: Any) -> np.ndarray:
        order = draw(st.permutations(range(len(labels))))
        shape = [extents[labels[k]] for k in order]
        values = np.asarray(rng.integers(-3, 4, shape))
        if dtype == "complex128":
            values = values + 1j * rng.integers(-3, 4, shape)
        view = inside(values.astype(dtype), [draw(places) for _ in labels], filling)
        return view.transpose(np.argsort(order))

    operands = [part(labels, np.nan) for labels in terms]
    return f"{','.join(terms)}->{''.join(output)}", operands, part("".join(output), OUTSIDE)


def compare(text: str, operands: list[np.ndarray], out: np.ndarray) -> None:
    whole = out if out.base is None else out.base
    expected = np.einsum(text, *[np.ascontiguousarray(x) for x in operands])
    np.testing.assert_array_equal(tcgen.einsum(text, *operands), expected)
    assert tcgen.einsum(text, *operands, out=out) is out
    np.testing.assert_array_equal(out, expected)
    assert np.count_nonzero(whole == OUTSIDE) >= whole.size - out.size
    out[...] = OUTSIDE
    assert (whole == OUTSIDE).all()


@pytest.mark.parametrize("target", slow_where(lambda target: target == "cpu", TARGETS))
def test_random_parts(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", target)

    @cases(60)
    @given(parts())
    def check(case: Any) -> None:
        compare(*case)

    check()


CONTRACTIONS = (  # products, with large operands in every way the kernel reads them
    "abcd,ijcd->ijab",
    "ijab,cbij->ac",
    "mbej,imae->ijab",
    "abef,efc->cba",
    "bafe,fc->ecba",
    "kij,kab->kiajb",
    "ab,b->a",
    "ab,a->b",
    "abc,bc->a",
    "ijab,ijab->",
    "abcd,cdab->",
    "ia,jb->iajb",
)


@pytest.mark.few(4)
@pytest.mark.skipif("cpu" not in TARGETS, reason="no C compiler")
@pytest.mark.parametrize("dtype", slow_where(lambda dtype: dtype != "float64", DTYPES))
@pytest.mark.parametrize("text", CONTRACTIONS)
def test_contractions_of_slices(text: str, dtype: str, copied: list[str]) -> None:
    extents = dict(zip("abcdefijkm", (29, 24, 17, 16, 25, 23, 9, 7, 5, 8), strict=True))
    rng = np.random.default_rng(7)
    terms, output = text.split("->")[0].split(","), text.split("->")[1]

    def part(labels: str, filling: Any) -> np.ndarray:
        values = rng.integers(-2, 3, [extents[c] for c in labels]).astype(dtype)
        return inside(values, [(n % 3, 2 + n % 2) for n in range(len(labels))], filling)

    operands = [part(labels, np.nan) for labels in terms]
    compare(text, operands, part(output, OUTSIDE))
    assert not copied


@pytest.mark.parametrize("target", TARGETS)
def test_slices_are_not_copied(
    target: str, copied: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", target)
    eri, o, v = np.random.default_rng(0).random((15,) * 4), slice(0, 4), slice(4, None)
    x, t2, r2 = eri[v, v, v, v], np.ones((4, 4, 11, 11)), np.zeros((15,) * 4)[o, o, v, v]
    tcgen.einsum("abcd,ijcd->ijab", x, t2, out=r2)
    assert not copied
    np.testing.assert_allclose(r2, np.einsum("abcd,ijcd->ijab", x, t2))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ("ij,jk->ik", (0,)),
        ("ij,jk->ik", (1,)),
        ("ij,ij->i", (0, 1)),
        ("ijk,kj->ik", (0, 2)),
        ("ij,ji->", (1,)),
        ("ii,ij->ji", (0,)),
        ("ij->i", (1,)),
        ("ij,jk->k", (0, 1)),
    ],
)
def test_repeated_elements(text: str, repeated: tuple[int, ...], copied: list[str]) -> None:
    """Along some axes the same elements lie at every place: those are not made first."""
    terms = text.split("->")[0].split(",")
    rng = np.random.default_rng(5)
    x, *others = (rng.integers(-3, 4, (6,) * len(term)).astype(float) for term in terms)
    few = x[tuple(slice(0, 1) if k in repeated else slice(None) for k in range(x.ndim))]
    repeats = np.broadcast_to(few, x.shape)
    expected = np.einsum(text, repeats.copy(), *others)
    np.testing.assert_array_equal(tcgen.einsum(text, repeats, *others), expected)
    assert f"operand {x.shape}" not in copied


def test_results_over_operands_are_copied(copied: list[str]) -> None:
    """Blocks of one array lie between each other's elements: the result is made beside them."""
    x = np.arange(144.0).reshape(12, 12)
    expected = x[:6, 6:] @ x[6:, 6:]
    tcgen.einsum("ij,jk->ik", x[:6, 6:], x[6:, 6:], out=x[:6, :6])
    assert copied == ["y"]
    np.testing.assert_array_equal(x[:6, :6], expected)
    np.testing.assert_array_equal(x[6:], np.arange(72.0, 144).reshape(6, 12))


def test_arrays_between_lines_of_elements() -> None:
    """What kernels cannot read where it is is copied: steps, reversed axes, misaligned bytes."""
    raw = np.arange(8 * 12 * 12 + 3, dtype=np.uint8)[3:].view(np.float64).reshape(12, 12)
    raw[...] = np.arange(144).reshape(12, 12)
    assert not raw.flags.aligned
    steps = np.arange(144.0).reshape(12, 12)
    for x in (raw[:5, :7], steps[:5, :7:2], steps[::-1, :7], steps[::2, ::-1], steps[::2, 3:]):
        y = np.zeros((x.shape[1] + 2, x.shape[0]))[:-2]
        tcgen.einsum("ij->ji", x, out=y)
        np.testing.assert_array_equal(tcgen.einsum("ij,ij->i", x, x), (x * x).sum(1))
        np.testing.assert_array_equal(y, x.T)


def test_one_program_for_slices_of_all_sizes() -> None:
    einsum_kernels.PROGRAMS.clear()
    before = tcgen.einsum_report().programs
    for more in range(4):
        x = np.random.default_rng(more).random((9, 8 + more))
        np.testing.assert_allclose(
            tcgen.einsum("ij,kj->ik", x[:, :7], x[:, :7]), x[:, :7] @ x[:, :7].T
        )
    assert tcgen.einsum_report().programs - before <= 2  # one of whole rows, if it is the first


def test_slices_of_several_threads() -> None:
    whole = np.random.default_rng(3).random((4, 40, 40))
    found = np.zeros((4, 20, 20))

    def work(n: int) -> None:
        for _ in range(20):
            tcgen.einsum("ij,jk->ik", whole[n, :20, 20:], whole[n, 20:, n : n + 20], out=found[n])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(4):
        np.testing.assert_allclose(found[n], whole[n, :20, 20:] @ whole[n, 20:, n : n + 20])


def test_a_program_over_parts() -> None:
    """A system whose arrays are parts takes whole arrays, parts and anything else."""
    system = einsum_system(LabelPattern(((0, 1), (1, 2)), (0, 2), ((1,), (1,), (1,))))
    program = tcgen.compile(system, target=TARGETS[-1], extents={"i": 4, "j": 5, "k": 6})
    program = pickle.loads(pickle.dumps(program))
    rng = np.random.default_rng(1)
    x, z, y = rng.random((4, 9)), rng.random((5, 8)), np.full((4, 11), OUTSIDE)
    for left, right in (
        (x[:, 2:7], z[:, 1:7]),
        (x[:, :9:2], z[::-1, :6]),
        (x[:, 3:8].copy(), z[:, 2:]),
    ):
        for out in (None, {"y": y[:, 3:9]}, {"y": np.zeros((4, 6))}, {"y": np.zeros((6, 4)).T}):
            np.testing.assert_allclose(program(x0=left, x1=right, out=out)["y"], left @ right)
    assert (y[:, :3] == OUTSIDE).all()
    assert (y[:, 9:] == OUTSIDE).all()


def test_bound_parts() -> None:
    """Constants that are parts are copied when they are bound; later arrays lie as they like."""
    system = einsum_system(LabelPattern(((0, 1), (1, 2)), (0, 2), ((1,), (1,), (1,))))
    constant, *others = system.tensors
    tensors = (replace(constant, volatile=False), *others)
    (equation,) = system.equations
    (term,) = equation.terms
    refs = (replace(term.factors[0], tensor=tensors[0]), *term.factors[1:])
    system = replace(
        system,
        tensors=tensors,
        equations=(replace(equation, terms=(replace(term, factors=refs),)),),
    )
    program = tcgen.compile(system, target=TARGETS[-1], extents={"i": 4, "j": 5, "k": 6})
    rng = np.random.default_rng(1)
    x, z, y = rng.random((4, 9)), rng.random((5, 8)), np.zeros((4, 11))
    bound = program.bind(x0=x[:, 2:7])
    for out in (None, {"y": y[:, 3:9]}):
        np.testing.assert_allclose(bound(x1=z[:, 1:7], out=out)["y"], x[:, 2:7] @ z[:, 1:7])


def test_a_spec_has_no_parts() -> None:
    with pytest.raises(TcgenError, match=mentions("x0 slice")):
        spec_text(einsum_system(LabelPattern(((0, 1),), (0,), ((1,), ()))))


@pytest.mark.default_thresholds
@pytest.mark.parametrize("target", TARGETS)
def test_zeroes_stay_inside_the_part(target: str) -> None:
    """A result that loops add to is zeroed first, and what stands beside it is not."""
    kernel = LabelPattern(((0, 1), (1, 2), (2, 3)), (0, 3), ((), (), (), (1,)))
    sizes = dict.fromkeys("ijkl", 12)
    system = einsum_system(kernel, ((0, 1), (0, 1)))
    program = tcgen.compile(
        system, target=target, extents=sizes, memory_limit=12 * 12 * 8 + 8, objective="time"
    )
    zeroes = "y[:N_i, :N_l] = 0.0" if target == "numpy" else "y[z0*(N_l + N_y_gap1) + z1] = 0.0;"
    texts = dict(program.artifact.files).values()
    assert any(zeroes in text and "i l written" in text for text in texts)
    x = [np.random.default_rng(n).random((12, 12)) for n in range(3)]
    whole = np.full((12, 20), OUTSIDE)
    program(**{f"x{n}": array for n, array in enumerate(x)}, out={"y": whole[:, 3:15]})
    np.testing.assert_allclose(whole[:, 3:15], x[0] @ x[1] @ x[2])
    assert (whole[:, :3] == OUTSIDE).all()
    assert (whole[:, 15:] == OUTSIDE).all()


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(0, 2)), max_size=4),
)
@example([(1, 0, 2), (3, 0, 0)])
@example([(3, 0, 0), (1, 1, 1)])
@cases(200)
def test_what_is_left_out(axes: list[tuple[int, int, int]]) -> None:
    """Strides come back from what is left out, whatever those of single elements say."""
    part = inside(np.zeros([n for n, _, _ in axes]), [(a, b) for _, a, b in axes], 0.0)
    gaps = left_out(part)
    assert gaps is not None
    assert len(gaps) == part.ndim
    assert not any(gaps[:1])
    step = part.itemsize
    for axis in range(part.ndim - 1, -1, -1):
        assert part.shape[axis] == 1 or part.strides[axis] == step
        step *= part.shape[axis] + gaps[axis]
