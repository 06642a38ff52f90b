"""Mixed precision: float32 at first, the energies of float64 at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions

Chemistry = Callable[[str], Any]


def solved(spec: Any, reference: Any, **options: Any) -> Any:
    lines: list[str] = []
    found = tcgen.chem.solve(
        spec, reference, target="numpy", optimize=False, show=lines.append, **options
    )
    return found, lines


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[np.dtype]:
    """The element types of the amplitudes of each call of a program, bound or not."""
    from tcgen.runtime.bound import BoundProgram

    types: list[np.dtype] = []
    call = BoundProgram.__call__

    def noted(self: Any, **arrays: Any) -> Any:
        types.append(next(a.dtype for n, a in arrays.items() if n in ("t2", "r2")))
        return call(self, **arrays)

    monkeypatch.setattr(BoundProgram, "__call__", noted)
    return types


@pytest.mark.parametrize("spec", ["ccsd_closed_shell", "ccsd_spin_orbital"])
def test_the_energy_is_that_of_double_precision(
    spec: str, chemistry: Chemistry, called: list[np.dtype]
) -> None:
    reference = chemistry("h2o_sto3g").reference
    double, _ = solved(spec, reference)
    called.clear()
    mixed, lines = solved(spec, reference, precision="mixed")
    assert mixed.converged
    assert abs(mixed.e_corr - double.e_corr) < 1e-9
    assert mixed.iterations <= double.iterations + 1
    first = sum(kind == np.float32 for kind in called)
    assert called == [np.dtype("f4")] * first + [np.dtype("f8")] * (mixed.iterations - first)
    assert 0 < first < mixed.iterations
    assert lines[2] == "in single precision:"
    assert lines[first + 3] == "in double precision:"
    norms = [max(map(float, line.split()[3:5])) for line in lines[3 : first + 3]]
    # The table rounds to two digits.
    assert norms[-1] < 1.06e-5
    assert min(norms[:-1]) > 0.94e-5


def test_a_loose_tolerance_is_met_in_double_precision(
    chemistry: Chemistry, called: list[np.dtype]
) -> None:
    found, _ = solved(
        "ccsd_closed_shell", chemistry("h2o_sto3g").reference, precision="mixed", tolerance=1e-3
    )
    assert found.converged
    assert called[-2:] == [np.dtype("f4"), np.dtype("f8")]
    assert len(called) == found.iterations


def test_roots_in_mixed_precision(blocks: Any, called: list[np.dtype]) -> None:
    reference = blocks.mean_field(blocks.molecule("O 0 0 0; H 0.3 0.7 0.5", "6-31g", charge=-1))
    ground, _ = solved("ccsd_closed_shell", reference)
    ccsd = tcgen.read_spec_file(tcgen.spec_path("ccsd_closed_shell"))
    names = {"r1": "s1", "r2": "s2"}
    sigma = tcgen.jvp(ccsd, {"t1": "r1", "t2": "r2"}, of=["r1", "r2"], names=names)
    options = {"amplitudes": ground, "nroots": 2, "tolerance": 1e-6}
    double, _ = solved(sigma, reference, **options)
    called.clear()
    mixed, _ = solved(sigma, reference, precision="mixed", **options)
    assert mixed.converged
    np.testing.assert_allclose(mixed.roots, double.roots, rtol=0, atol=1e-9)
    single = called.count(np.dtype("f4"))
    assert called == [np.dtype("f4")] * single + [np.dtype("f8")] * (len(called) - single)
    assert 0 < len(called) - single < single
    assert mixed.iterations == len(called)


def test_integrals_on_disk_have_one_type(chemistry: Chemistry) -> None:
    reference = chemistry("lih_sto3g").reference.copy()
    reference.max_memory = 1e-3
    with pytest.raises(tcgen.ArgumentError, match=mentions("mixed v_vvvv max_memory")):
        solved("ccsd_closed_shell", reference, precision="mixed")


@pytest.mark.parametrize(
    "options", [{"precision": "single"}, {"precision": "mixed", "dtype": "complex128"}]
)
def test_other_precisions_are_refused(options: dict[str, str], chemistry: Chemistry) -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions("precision 'mixed'")):
        solved("ccsd_closed_shell", chemistry("lih_sto3g").reference, **options)
