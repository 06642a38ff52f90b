"""The interpreter of programs against NumPy written by hand, operation by operation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from support.messages import mentions
from tcgen.errors import ArgumentError, ShapeError
from tcgen.interp import evaluate_program
from tcgen.ir.expr import Call, Const, Delta, Quot, Sum
from tcgen.ir.program import Add, Contract, FormulaSequence, Map, Operation, Produce, Step
from tcgen.ir.tensor import Index, Packing, Ref, Role, Space, Storage, Tensor

O, V = Space("o"), Space("v")
P = Space("p", parts=(O, V))
SPACES = {"o": O, "v": V, "p": P}
LETTERS = dict.fromkeys("ijkl", O) | dict.fromkeys("abcd", V) | dict.fromkeys("pqr", P)
EXTENTS = {"o": 3, "v": 2}


def idx(letters: str) -> tuple[Index, ...]:
    return tuple(Index(letter, LETTERS[letter]) for letter in letters)


def tensor(name: str, spaces: str, role: Role = Role.INPUT, **fields) -> Tensor:
    return Tensor(name, tuple(SPACES[s] for s in spaces), role, **fields)


def ref(t: Tensor, letters: str = "") -> Ref:
    return Ref(t, idx(letters))


def program(*lines: tuple[Ref, Operation, str, str]) -> FormulaSequence:
    """Lines are (out, operation, coefficient, summed letters); a later producer accumulates."""
    steps, written, tensors = [], set(), {}
    for n, (out, op, coeff, sums) in enumerate(lines):
        accumulate = out.tensor in written or out.tensor.accumulate
        step = Step(n, out, op, Fraction(coeff), accumulate, idx(sums))
        steps.append(step)
        written.add(out.tensor)
        tensors |= dict.fromkeys((*(r.tensor for r in step.operands), out.tensor))
    ordered = sorted(tensors, key=lambda t: not t.is_input)
    result = FormulaSequence("test", (O, V, P), tuple(ordered), tuple(steps))
    result.verify()
    return result


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape)


def test_contractions_accumulate_and_permute() -> None:
    x, y = tensor("x", "oo"), tensor("y", "ov")
    w, r = tensor("w", "vo", Role.TEMP), tensor("r", "ov", Role.OUTPUT)
    p = program(
        (ref(w, "ai"), Contract(ref(x, "ij"), ref(y, "ja")), "1/2", "j"),
        (ref(w, "ai"), Add(ref(y, "ia")), "-1", ""),
        (ref(r, "ia"), Add(ref(w, "ai")), "1", ""),
        (ref(r, "ia"), Contract(ref(x, "ii"), ref(w, "ai")), "3", ""),
        (ref(r, "ia"), Contract(ref(x, "kk"), ref(y, "ia")), "1", "k"),
    )
    a, b = array(3, 3), array(3, 2)
    inner = a @ b / 2 - b
    expected = inner + 3 * np.diag(a)[:, None] * inner + np.trace(a) * b
    value = evaluate_program(p, {"x": a, "y": b}, EXTENTS)["r"]
    np.testing.assert_allclose(value, expected, rtol=1e-13)


def test_broadcast_diagonal_and_scalar() -> None:
    x, r, e = tensor("x", "oo"), tensor("r", "ov", Role.OUTPUT), tensor("e", "", Role.OUTPUT)
    p = program(
        (ref(r, "ia"), Add(ref(x, "ii")), "2", ""),
        (ref(e), Contract(ref(x, "ij"), ref(x, "ji")), "1", "ij"),
        (ref(e), Add(ref(x, "kk")), "1", "k"),
    )
    a = array(3, 3)
    out = evaluate_program(p, {"x": a}, EXTENTS)
    np.testing.assert_allclose(out["r"], 2 * np.diag(a)[:, None] * np.ones((1, 2)))
    np.testing.assert_allclose(out["e"], (a * a.T).sum() + np.trace(a))
    assert out["e"].shape == ()


def test_maps_with_sums_and_division_by_zero() -> None:
    x, d = tensor("x", "oo"), tensor("d", "v")
    r, s = tensor("r", "oo", Role.OUTPUT), tensor("s", "v", Role.OUTPUT)
    expr = Quot(Call("exp", ref(x, "ij")), Sum((ref(d, "a"), Const(Fraction(1)))))
    p = program(
        (ref(r, "ji"), Map(expr), "1/2", "a"),
        (ref(r, "ji"), Map(Delta(*idx("ij"))), "5", ""),
        (ref(s, "a"), Map(Quot(Const(Fraction(1)), ref(d, "a"))), "1", ""),
    )
    a, b = array(3, 3), np.array([0.0, 3.0])
    out = evaluate_program(p, {"x": a, "d": b}, EXTENTS)
    np.testing.assert_allclose(out["r"], np.exp(a).T / 2 * 1.25 + 5 * np.eye(3))
    assert out["s"].tolist() == [np.inf, 1 / 3]


def test_slices_of_joined_axes_are_read_and_written() -> None:
    w, r = tensor("w", "pp"), tensor("r", "pp", Role.OUTPUT)
    p = program(
        (ref(r, "ia"), Add(ref(w, "ai")), "1", ""),
        (ref(r, "pa"), Contract(ref(w, "pi"), ref(w, "ia")), "1", "i"),
    )
    a = array(5, 5)
    expected = np.zeros((5, 5))
    expected[:3, 3:] = a[3:, :3].T
    expected[:, 3:] += a[:, :3] @ a[:3, 3:]
    np.testing.assert_allclose(evaluate_program(p, {"w": a}, EXTENTS)["r"], expected)


def test_generated_input_is_fetched_by_its_step() -> None:
    g, r = tensor("g", "vpo", Role.GENERATED), tensor("r", "v", Role.OUTPUT)
    p = program(
        (ref(g, "api"), Produce(g), "1", ""),
        (ref(r, "a"), Contract(ref(g, "abi"), ref(g, "bai")), "1", "bi"),
    )
    a = array(2, 5, 3)

    def produce(out: np.ndarray, ranges: tuple[slice, ...]) -> None:
        out[...] = a[ranges]

    expected = np.einsum("abi,bai->a", a[:, 3:], a[:, 3:])
    np.testing.assert_allclose(evaluate_program(p, {"g": produce}, EXTENTS)["r"], expected)
    np.testing.assert_allclose(evaluate_program(p, {"g": a}, EXTENTS)["r"], expected)


def test_accumulating_packed_output_in_stored_order() -> None:
    y = tensor("y", "ov")
    layout = Storage((2, 0, 1), (Packing(0),))
    r = tensor("r", "oov", Role.OUTPUT, storage=layout, accumulate=True)
    p = program((ref(r, "ija"), Contract(ref(y, "ia"), ref(y, "ja")), "1", ""))
    b, start = array(3, 2), np.ones((2, 6))
    dense = np.einsum("ia,ja->aij", b, b)
    expected = 1 + dense[(slice(None), *np.tril_indices(3))]
    np.testing.assert_allclose(
        evaluate_program(p, {"y": b}, EXTENTS, out={"r": start})["r"], expected
    )
    assert (start == 1).all()
    with pytest.raises(ArgumentError, match=mentions("output r accumulates")):
        evaluate_program(p, {"y": b}, EXTENTS)
    with pytest.raises(ShapeError, match=mentions("shape (2, 6)")):
        evaluate_program(p, {"y": b}, EXTENTS, out={"r": np.ones((6, 2))})


def test_element_types_and_empty_extents() -> None:
    y, r = tensor("y", "ov"), tensor("r", "oo", Role.OUTPUT)
    p = program((ref(r, "ij"), Contract(ref(y, "ia"), ref(y, "ja")), "1", "a"))
    single = evaluate_program(p, {"y": array(3, 2).astype("f4")}, EXTENTS)["r"]
    assert single.dtype == np.float32
    b = array(3, 2) * 1j
    np.testing.assert_allclose(evaluate_program(p, {"y": b}, EXTENTS)["r"], b @ b.T)
    empty = evaluate_program(p, {"y": np.zeros((3, 0))}, {"o": 3, "v": 0})["r"]
    assert empty.tolist() == np.zeros((3, 3)).tolist()
