"""Normal forms and symmetries are computed once in a compilation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.marks import slow
from tcgen.algebra import form_sequence
from tcgen.algebra.equations import normal_form, proven_symmetry
from tcgen.algebra.equations.normal_form import NormalForms
from tcgen.algebra.equations.proven_symmetry import normalised
from tcgen.frontend import read_spec, read_spec_file
from tcgen.options import Options

SPECS = Path(__file__).parents[4] / "specs"


def counted(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, key: Callable[..., Any]
) -> Counter[Any]:
    """Count the calls of a function by a key of their arguments."""
    calls: Counter[Any] = Counter()
    original = getattr(module, name)

    def counting(*args: Any) -> Any:
        calls[key(*args)] += 1
        return original(*args)

    monkeypatch.setattr(module, name, counting)
    return calls


@pytest.mark.parametrize("name", [*slow("ccsd_closed_shell"), "mp2_df"])
def test_each_form_is_computed_once_in_a_compilation(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    products = counted(
        monkeypatch, normal_form, "canonical_product", lambda atoms, free: (atoms, frozenset(free))
    )
    symmetries = counted(monkeypatch, proven_symmetry, "_derive", lambda e, tensor, _: (e, tensor))
    system = read_spec_file(SPECS / f"{name}.spec")
    spaces = tuple((s.name, 4 + 3 * n) for n, s in enumerate(system.spaces) if not s.parts)
    form_sequence(system, Options(extents=spaces, optimize=True))
    assert max(products.values()) == 1
    assert max(symmetries.values()) == 1


def test_a_normalised_system_stores_its_forms() -> None:
    system = read_spec("space o\nindex i j : o\ninput f[o,o]\noutput e\ne = f[i,j]*f[j,i]\n")
    with pytest.raises(ValueError, match="not normalised"):
        NormalForms.of(system)
    forms = NormalForms.of(normalised(system))
    product = forms.product(system.equations[0].terms[0].factors, ())
    assert forms.vector(system.equations[0]).terms[0].key == product.key
