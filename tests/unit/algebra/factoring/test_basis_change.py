"""Linear changes of basis and completed products: few contractions, the same values."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from support.paths import DATA
from tcgen.algebra import form_sequence
from tcgen.algebra.equations.normal_form import NormalForms
from tcgen.algebra.factoring.factor import factored
from tcgen.algebra.rational_matrices import (
    Vector,
    coordinates,
    decomposed,
    kernel,
    reduced,
    remainder,
)
from tcgen.compiler.driver import read_system
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_program, evaluate_system
from tcgen.ir.program import Contract, FormulaSequence
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.testing import assert_same_values, random_arrays, split_starts
from tcgen.thresholds import AlgebraThresholds

EQS = DATA / "eqs"
HEAD = "space o occupied\nspace v virtual\nindex i j k l m n : o\nindex a b c d : v\n"
LARGE = {"o": 20, "v": 100}


def sequence(system: System, extents: dict[str, int]) -> FormulaSequence:
    program = form_sequence(system, Options(byte_weight=0.0, extents=tuple(extents.items())))
    program.verify()
    return program


def multiply_adds(program: FormulaSequence, extents: dict[str, int]) -> int:
    contractions = [s for s in program.steps if isinstance(s.op, Contract)]
    return sum(s.flops.value(extents) // 2 for s in contractions)


def same_values(system: System, other: System | FormulaSequence, extents: dict[str, int]) -> None:
    inputs, starts = split_starts(system, random_arrays(system, extents, dtype="float64", seed=3))
    expected = evaluate_system(system, inputs, extents, out=starts)
    evaluate = evaluate_program if isinstance(other, FormulaSequence) else evaluate_system
    actual = evaluate(other, inputs, extents, out=starts)  # type: ignore[operator]
    assert_same_values(actual, expected, rtol=1e-12, atol=1e-12)


WHOLE = st.integers(-3, 3).map(Fraction)


def vectors(width: int) -> st.SearchStrategy[Vector]:
    return st.lists(WHOLE, min_size=width, max_size=width).map(tuple)


@pytest.mark.slow
@cases(60)
@given(st.data(), st.integers(1, 3), st.integers(1, 4), st.integers(1, 5))
def test_decomposition_gives_the_matrices_back(
    data: st.DataObject, rows: int, columns: int, count: int
) -> None:
    shape = vectors(rows * columns)
    matrices = data.draw(st.lists(shape, min_size=count, max_size=count))
    pairs, weights = decomposed(tuple(matrices), rows)
    assert len(pairs) <= rows * columns
    assert len(pairs) >= len(reduced(matrices))
    for matrix, weight in zip(matrices, weights, strict=True):
        flats = [p.flat for p in pairs]
        assert matrix == tuple(
            sum((w * f[n] for w, f in zip(weight, flats, strict=True)), Fraction(0))
            for n in range(rows * columns)
        )


@cases(40)
@given(st.data(), st.integers(1, 2))
def test_two_by_two_tensors_of_known_rank_are_found(data: st.DataObject, rank: int) -> None:
    """Sums of ``rank`` outer products of three independent vectors have that rank."""
    independent = st.lists(vectors(2), min_size=rank, max_size=rank).filter(
        lambda found: len(reduced(found)) == rank
    )
    outs, lefts = data.draw(independent), data.draw(independent)
    rights = data.draw(
        st.lists(vectors(rank), min_size=3, max_size=3).filter(lambda x: len(reduced(x)) == rank)
    )
    matrices = [
        tuple(
            sum((r[n] * outs[n][i] * lefts[n][j] for n in range(rank)), Fraction(0))
            for i in range(2)
            for j in range(2)
        )
        for r in rights
    ]
    assert len(decomposed(tuple(matrices), 2)[0]) == rank


def test_matrices_without_enough_of_rank_one_are_covered_by_elements() -> None:
    rotation = tuple(map(Fraction, (1, 0, 0, 1))), tuple(map(Fraction, (0, 1, -1, 0)))
    pairs, _ = decomposed(rotation, 2)  # the roots of this pencil are not real
    assert len(pairs) == 4


@cases(60)
@given(st.lists(vectors(4), min_size=1, max_size=4), vectors(4))
def test_kernel_and_remainder(rows: list[Vector], extra: Vector) -> None:
    basis = reduced(rows)
    for vector, row in product(kernel(basis, 4), basis):
        assert not sum(x * y for x, y in zip(vector, row, strict=True))
    assert len(kernel(basis, 4)) + len(basis) == 4
    inside = not any(remainder(extra, basis))
    assert inside == (len(reduced([*basis, extra])) == len(basis))
    if inside and basis:
        numbers = coordinates(extra, basis)
        assert extra == tuple(
            sum((c * b[n] for c, b in zip(numbers, basis, strict=True)), Fraction(0))
            for n in range(4)
        )


RING = {
    "direct": ("x[a,c,i,k]", "x[c,a,i,k]", "y[k,b,c,j]", "z[k,b,j,c]"),
    "crossed": ("x[a,c,j,k]", "x[c,a,j,k]", "y[k,b,c,i]", "z[k,b,i,c]"),
}


def ring(coefficients: dict[tuple[str, int, int], int], extra: str = "") -> str:
    """Equations whose left, right and output orders have the given coefficients."""
    terms = [
        f"{'+' if c > 0 else '-'} {abs(c)}*{RING[out][left]}*{RING[out][2 + right]}"
        for (out, left, right), c in coefficients.items()
        if c
    ]
    head = HEAD + "input x[v,v,o,o], y[o,v,v,o], z[o,v,o,v], u[v,o]\noutput r\n"
    return head + f"r[a,b,i,j] = 0*x[a,b,i,j] {' '.join(terms)} {extra}\n"


def test_a_spin_like_sum_takes_two_products_instead_of_three() -> None:
    found = ring(
        {
            ("direct", 0, 0): 6,
            ("direct", 0, 1): -3,
            ("direct", 1, 0): -3,
            ("crossed", 1, 1): -5,
        }
    )
    system = read_spec(found)
    program = sequence(system, LARGE)
    assert multiply_adds(program, LARGE) == 2 * 20**3 * 100**3
    same_values(system, program, {"o": 2, "v": 3})


def test_dependent_rows_take_as_many_products_as_their_rank() -> None:
    """Left factors p, q and p + q: three rows of rank two."""
    system = read_spec(
        HEAD + "input p[o,v], x[v,o], y[v,o], z[v,o]\noutput r\n"
        "r[i,j] = p[i,a]*x[a,j] + 2*p[i,a]*y[a,j] + p[j,a]*x[a,i] + 2*p[j,a]*y[a,i]\n"
    )
    program = sequence(system, LARGE)
    assert multiply_adds(program, LARGE) == 20 * 20 * 100
    same_values(system, program, {"o": 3, "v": 4})


@cases(4, 200)
@given(st.lists(st.integers(-3, 3), min_size=8, max_size=8), st.booleans())
def test_any_coefficients_keep_the_values(numbers: list[int], cubic: bool) -> None:
    places = list(product(RING, range(2), range(2)))
    extra = ""
    if cubic:  # a product with the left tensor twice stands in two places
        extra = " ".join(
            f"{'+' if n > 0 else '-'} {abs(n)}*{one}*{two}*y[k,d,c,l]"
            for n, (one, two) in zip(
                numbers,
                combinations_with_replacement(("x[a,c,i,k]", "x[d,b,l,j]", "x[b,d,l,j]"), 2),
                strict=False,
            )
            if n and one != two and one == "x[a,c,i,k]"
        )
    system = read_spec(ring(dict(zip(places, numbers, strict=True)), extra))
    if not system.equations[0].terms:
        return
    (found,) = factored(system, LARGE, NormalForms(False), 1, AlgebraThresholds())
    same_values(system, found, {"o": 2, "v": 3})


def test_a_product_is_completed_where_the_rest_is_cheap() -> None:
    """v*t + v*u*u + (p*w)*t as (v + p*w)*(t + u*u) - p*w*u*u, the last one being cheap."""
    system = read_spec(
        HEAD + "input v[v,v,v,v], w[o,v,v,v], t[v,v,o,o], u[v,o], p[v,o]\noutput r\n"
        "r[a,b,i,j] = v[a,b,c,d]*t[c,d,i,j] + v[a,b,c,d]*u[c,i]*u[d,j]"
        " + p[a,k]*w[k,b,c,d]*t[c,d,i,j]\n"
    )
    program = sequence(system, LARGE)
    plain = 20**2 * 100**4 + 20 * 100**4  # (v + p*w)*t and p*w
    assert multiply_adds(program, LARGE) < plain + 20 * 100**4  # without the product v*u
    same_values(system, program, {"o": 2, "v": 3})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("o", "v", "most"),
    [
        (10, 50, 1.3406e9),
        (20, 100, 8.0458e10),
        (20, 200, 9.6348e11),
        (10, 100, 1.5916e10),
        (40, 160, 2.3343e12),
        (10, 500, 1.4 * 6.9589e12),
    ],
)
def test_closed_shell_at_other_extents(o: int, v: int, most: float) -> None:
    extents = {"o": o, "v": v}
    program = sequence(read_system(EQS / "rccsd_sa.json"), extents)
    assert multiply_adds(program, extents) <= most
