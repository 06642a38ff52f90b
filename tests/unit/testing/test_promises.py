"""Promises of tcgen.testing: symmetry, denominators, comparison and valid random systems."""

from __future__ import annotations

import importlib
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, find, given, note, settings
from hypothesis import strategies as st

from support.campaigns import cases
from support.messages import mentions
from tcgen.errors import ArgumentError, ExtentError, UnavailableError
from tcgen.interp import evaluate_system
from tcgen.interp.storage import caller_shape, to_logical
from tcgen.ir.expr import Call, Const, Delta, Expr, Pow, Prod, Quot, Sum, refs
from tcgen.ir.system import Apply, Equation, System, Term
from tcgen.ir.tensor import (
    Index,
    Packing,
    Ref,
    Role,
    Space,
    Storage,
    Symmetry,
    Tensor,
    symmetry_group,
)
from tcgen.testing import (
    assert_same_values,
    extents_for,
    random_arrays,
    split_starts,
    systems,
)

O, V = Space("o"), Space("v")
P = Space("p", parts=(O, V))
I, J, A, B = Index("i", O), Index("j", O), Index("a", V), Index("b", V)
EXTENTS = {"o": 5, "v": 7}
MINUS = Const(Fraction(-1))

EXCHANGE = (Symmetry((2, 3, 0, 1)),)
EIGHTFOLD = (Symmetry((1, 0, 2, 3)), Symmetry((0, 1, 3, 2)), *EXCHANGE)
ANTI = (Symmetry((1, 0, 2, 3), -1), Symmetry((0, 1, 3, 2), -1), *EXCHANGE)
HERMITIAN = (Symmetry((1, 0), 1, conj=True),)
TRIANGLES = Storage((2, 3, 0, 1), (Packing(0), Packing(2)))
LAYOUTS = [
    Tensor("g", (V, V, V, V), Role.INPUT, symmetry=EIGHTFOLD, storage=TRIANGLES),
    Tensor("w", (V, V, V, V), Role.INPUT, symmetry=ANTI),
    Tensor("n", (O, O, V, V), Role.INPUT, symmetry=ANTI[:2], storage=Storage((3, 2, 1, 0))),
    Tensor("t", (O, O, O), Role.INPUT, symmetry=(Symmetry((1, 0, 2), -1), Symmetry((0, 2, 1), -1))),
    Tensor("h", (P, P), Role.INPUT, symmetry=HERMITIAN),
    Tensor("k", (O, O), Role.INPUT, symmetry=(Symmetry((1, 0), -1, conj=True),)),
    Tensor("q", (O, O), Role.INPUT, symmetry=HERMITIAN, real=True),
    Tensor("c", (), Role.INPUT),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("tensor", LAYOUTS, ids=lambda t: t.name)
def test_declared_symmetry_holds_to_the_last_bit(tensor: Tensor, dtype: str) -> None:
    array = random_arrays((tensor,), EXTENTS, dtype=dtype)[tensor.name]
    assert array.dtype == ("float64" if tensor.real and dtype == "complex128" else dtype)
    assert array.shape == caller_shape(tensor, EXTENTS)
    value = to_logical(tensor, array, EXTENTS)
    assert np.count_nonzero(value) or dtype != "complex128"
    for s in symmetry_group(tensor):
        image = np.transpose(value, np.argsort(s.perm)) if tensor.rank else value
        assert (image == s.sign * (value.conj() if s.conj else value)).all()


def test_equal_seeds_give_equal_arrays_whatever_the_other_tensors() -> None:
    both = random_arrays(LAYOUTS, EXTENTS, seed=3)
    alone = random_arrays(LAYOUTS[1:2], EXTENTS, seed=3)
    assert (both["w"] == alone["w"]).all()
    assert (random_arrays(LAYOUTS[1:2], EXTENTS, seed=4)["w"] != alone["w"]).any()


def one_equation(expr: Expr, *more: Equation, spaces: tuple[Space, ...] = (O, V, P)) -> System:
    """``r = sum of expr`` over all its indices, after the equations in ``more``."""
    indices = tuple(dict.fromkeys(i for r in refs(expr) for i in r.indices))
    r = Tensor("r", (), Role.OUTPUT)
    equations = (*more, Equation(Ref(r), (Term(Fraction(1), (Apply(expr),), indices),)))
    found = dict.fromkeys(x.tensor for e in equations for t in e.terms for x in t.refs)
    inputs = tuple(t for t in found if t.is_input)
    system = System("s", spaces, (*inputs, *(e.lhs.tensor for e in equations)), equations)
    system.verify()
    return system


def energy(name: str, space: Space, index: Index) -> Ref:
    return Ref(Tensor(name, (space,), Role.INPUT), (index,))


def test_denominators_of_energies_keep_their_sign() -> None:
    gap = Sum((energy("eo", O, I), energy("eo", O, J), Prod((MINUS, energy("ev", V, A)))))
    arrays = random_arrays(one_equation(Quot(Const(Fraction(1)), gap)), EXTENTS)
    assert arrays["eo"].max() <= -1
    assert arrays["ev"].min() >= 1


def test_one_vector_over_a_joined_space_has_a_sign_for_each_part() -> None:
    gap = Sum((energy("e", P, I), Prod((MINUS, energy("e", P, A)))))
    value = random_arrays(one_equation(Quot(Const(Fraction(1)), gap)), EXTENTS)["e"]
    assert value[:5].max() <= -1
    assert value[5:].min() >= 1


def test_denominators_are_seen_through_intermediates() -> None:
    d = Tensor("d", (O, V), Role.TEMP)
    terms = (
        Term(Fraction(2), (energy("eo", O, I),)),
        Term(Fraction(-1, 2), (energy("ev", V, A),)),
    )
    system = one_equation(Pow(Ref(d, (I, A)), -1), Equation(Ref(d, (I, A)), terms))
    arrays = random_arrays(system, EXTENTS, dtype="complex128")
    gap = 2 * arrays["eo"][:, None] - arrays["ev"] / 2
    assert gap.real.max() < -2
    assert abs(gap.imag).max() > 0


def test_roots_and_logarithms_get_positive_arguments() -> None:
    x, y = energy("x", O, I), energy("y", O, I)
    system = one_equation(Sum((Call("sqrt", x), Call("log", Prod((MINUS, y))))))
    arrays = random_arrays(system, EXTENTS)
    assert arrays["x"].min() >= 1
    assert arrays["y"].max() <= -1
    assert np.isfinite(evaluate_system(system, arrays, EXTENTS)["r"])


def test_symmetric_tensor_in_a_denominator_stays_symmetric() -> None:
    f = Tensor("f", (P, P), Role.INPUT, symmetry=(Symmetry((1, 0)),))
    expr = Quot(Const(Fraction(1)), Sum((Ref(f, (I, A)), Prod((MINUS, Ref(f, (I, J)))))))
    value = random_arrays(one_equation(expr), EXTENTS)["f"]
    assert (value == value.T).all()
    assert value[:5, 5:].max() <= -1
    assert value[:5, :5].min() >= 1
    assert abs(value[5:, 5:]).max() != abs(value[5:, 5:]).min()


def test_denominator_without_a_sign_is_kept_away_from_zero() -> None:
    gap = Sum((energy("e", O, I), Prod((MINUS, energy("e", O, J))), Delta(I, J)))
    system = one_equation(Quot(Const(Fraction(1)), gap))
    e = random_arrays(system, EXTENTS)["e"]
    assert abs(e[:, None] - e + np.eye(5)).min() >= 0.1
    never = Sum((energy("e", O, I), Prod((MINUS, energy("e", O, I)))))
    with pytest.raises(ArgumentError, match=mentions("e[i] - e[i] zero")):
        random_arrays(one_equation(Quot(Const(Fraction(1)), never)), EXTENTS)


def test_defaults_starts_and_missing_extents() -> None:
    c = Tensor("c", (), Role.INPUT, default=Fraction(1, 4))
    r = Tensor("r", (O,), Role.OUTPUT, accumulate=True)
    system = System("s", (O,), (c, r), (Equation(Ref(r, (I,)), (Term(Fraction(1), (Ref(c),)),)),))
    arrays = random_arrays(system, EXTENTS)
    assert arrays["c"] == 0.25
    inputs, starts = split_starts(system, arrays)
    assert list(inputs) == ["c"]
    assert list(starts) == ["r"]
    value = evaluate_system(system, inputs, EXTENTS, out=starts)["r"]
    assert (value == starts["r"] + 0.25).all()
    with pytest.raises(ExtentError, match=mentions("extent o")):
        random_arrays(system, {"v": 2})


def test_comparison_names_array_deviation_and_place() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert_same_values({"r": x, "e": 1.0}, {"r": x * (1 + 1e-12), "e": 1.0})
    assert_same_values(np.zeros((0, 3)), np.zeros((0, 3)))
    assert_same_values([np.nan, np.inf, 1.0], [np.nan, np.inf, 1.0])
    y = x.copy()
    y[1, 0] += 1e-3
    with pytest.raises(AssertionError, match=mentions("r 1.000e-03 r[1,0]")):
        assert_same_values({"r": y}, {"r": x})
    with pytest.raises(AssertionError, match=mentions("r shape (3, 2) (2, 3)")):
        assert_same_values({"r": x.T}, {"r": x})
    with pytest.raises(AssertionError, match=mentions("arrays e r")):
        assert_same_values({"e": x}, {"r": x})
    y[1, 0] = np.nan
    with pytest.raises(AssertionError, match=mentions("r[1,0]")):
        assert_same_values({"r": y}, {"r": x})
    with pytest.raises(AssertionError, match=mentions("r[1,0] 3.0 nan")):
        assert_same_values({"r": x}, {"r": y})


def slices_agree(data: st.DataObject) -> None:
    """A drawn system is valid, finite, and evaluates alike whole, in slices and in pieces."""
    system = data.draw(systems())
    note(system.pretty())
    system.verify()
    extents = data.draw(extents_for(system))
    dtype = data.draw(st.sampled_from(("float64", "complex128")))
    inputs, starts = split_starts(system, random_arrays(system, extents, dtype=dtype))
    whole = evaluate_system(system, inputs, extents, out=starts)
    assert list(whole) == [t.name for t in system.outputs]
    for tensor in system.outputs:
        value = whole[tensor.name]
        assert value.shape == caller_shape(tensor, extents)
        assert np.isfinite(value).all()
        dense = to_logical(tensor, value, extents)
        for s in symmetry_group(tensor):
            image = np.transpose(dense, np.argsort(s.perm)) if tensor.rank else dense
            assert_same_values(image, s.sign * dense)
    sliced = evaluate_system(system, inputs, extents, out=starts, budget_bytes=300)
    assert_same_values(sliced, whole)


@cases(60, 1500)
@given(st.data())
def test_random_systems_are_valid_and_slices_agree(data: st.DataObject) -> None:
    slices_agree(data)


@cases(60)
@given(st.data())
def test_elementwise_slices_of_small_systems_agree(data: st.DataObject) -> None:
    system = data.draw(systems(max_equations=2, max_terms=2, max_rank=2, max_indices=3))
    extents = data.draw(extents_for(system, max_extent=2))
    inputs, starts = split_starts(system, random_arrays(system, extents))
    whole = evaluate_system(system, inputs, extents, out=starts)
    assert_same_values(evaluate_system(system, inputs, extents, out=starts, budget_bytes=1), whole)


def features(system: System) -> set[str]:
    found: set[str] = set()
    reads: dict[Tensor, set[tuple[Index, ...]]] = {}
    for equation in system.equations:
        for term in equation.terms:
            every = [i for r in term.refs for i in r.indices]
            found |= {"accumulation"} if len(equation.terms) > 1 else set()
            found |= {"hyper-index"} if any(every.count(i) > 2 for i in every) else set()
            found |= {"permutation"} if term.perms else set()
            found |= {"broadcast"} if set(equation.lhs.indices) - set(every) else set()
            found |= {"delta"} if any(isinstance(f, Delta) for f in term.factors) else set()
            found |= {"apply"} if any(isinstance(f, Apply) for f in term.factors) else set()
            found |= {"constant term"} if not term.factors else set()
            for ref in term.refs:
                reads.setdefault(ref.tensor, set()).add(ref.indices)
                repeated = {i for i in ref.indices if ref.indices.count(i) > 1}
                found |= {"diagonal"} if repeated & set(equation.lhs.indices) else set()
                found |= {"trace"} if repeated & set(term.sums) else set()
                pairs = zip(ref.indices, ref.tensor.spaces, strict=True)
                found |= {"slice"} if any(i.space != s for i, s in pairs) else set()
    for tensor in system.tensors:
        used = len(reads.get(tensor, ()))
        found |= {"shared intermediate"} if tensor.role is Role.TEMP and used > 1 else set()
        found |= {"generated"} if tensor.role is Role.GENERATED else set()
        found |= {"constant"} if tensor.is_input and not tensor.volatile else set()
        found |= {f"{tensor.role.value} symmetry"} if tensor.symmetry else set()
        found |= {f"{tensor.role.value} packed"} if tensor.storage.packed else set()
        found |= {f"{tensor.role.value} order"} if tensor.storage.order else set()
        found |= {"accumulate"} if tensor.accumulate else set()
        found |= {f"scalar {tensor.role.value}"} if not tensor.spaces else set()
        found |= {"several outputs"} if len(system.outputs) > 1 else set()
    return found


FEATURES = (
    "accumulation, hyper-index, permutation, broadcast, delta, apply, diagonal, trace, slice, "
    "shared intermediate, generated, constant, input symmetry, input packed, input order, "
    "output symmetry, output packed, output order, accumulate, scalar input, scalar output, "
    "several outputs"
)


@pytest.mark.few(6)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("feature", FEATURES.split(", "))
def test_random_systems_show_every_feature(feature: str) -> None:
    """A search, not a sample: it ends at the first system that has the feature."""
    searched = settings(max_examples=10_000, phases=[Phase.generate], deadline=None, database=None)
    found = find(systems(), lambda system: feature in features(system), settings=searched)
    assert feature in features(found)


def test_options_leave_features_out() -> None:
    found: set[str] = set()

    @cases(60)
    @given(systems(functions=False, joined=False, generated=False, accumulate=False))
    def collect(system: System) -> None:
        found.update(features(system))

    collect()
    assert not found & {"apply", "slice", "generated", "accumulate"}


def test_without_hypothesis_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UnavailableError, match="pip install hypothesis"):
        systems()


def test_importing_it_does_not_import_hypothesis() -> None:
    code = "import sys, tcgen.testing; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
