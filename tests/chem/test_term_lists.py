"""Term lists (JSON) through the same compiler, expanded and factored, and fused loops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.paths import DATA

LISTS = DATA / "equations"
Pick = Callable[[Any, dict[str, np.ndarray]], dict[str, np.ndarray]]


@pytest.fixture(scope="module")
def water(examples: SimpleNamespace) -> dict[str, np.ndarray]:
    """Water in 6-31G as shipped with the examples: no PySCF needed."""
    with np.load(examples.folder / "data" / "water_631g.npz") as file:
        return dict(file)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "numpy"])
@pytest.mark.parametrize("name", ["ccsd_cs_factorised", "ccsd_cs_expanded"])
def test_closed_shell_list(
    name: str, target: str, water: dict[str, np.ndarray], examples: SimpleNamespace, pick: Pick
) -> None:
    program = compiled(LISTS / f"{name}.json", target, {"o": 5, "v": 8})
    constants = pick(program, water)
    d1, d2 = examples.diis.denominators(water["e_o"], water["e_v"])
    step = examples.diis.updating(lambda **t: program(**constants, **t), d1, d2)
    start = {"t1": np.zeros(d1.shape), "t2": water["v_ovov"].transpose(0, 2, 1, 3) / d2}
    result = examples.diis.iterate(step, start)
    assert abs(result.energy - float(water["e_ccsd"])) < 1e-8


@pytest.mark.parametrize("target", ["cpu", "numpy"])
@pytest.mark.parametrize(
    ("name", "molecule", "key"),
    [
        ("ccsd_so_factorised", "lih_sto3g", "E_GCCSD_corr"),
        ("ccsd_so_expanded", "lih_sto3g", "E_GCCSD_corr"),
        ("ccsd_so_expanded", "ch3_rohf_631g", "E_GCCSD_corr"),
        ("ccd_so_expanded", "h2o_sto3g", "E_CCD_corr"),
    ],
)
def test_spin_orbital_list(
    name: str,
    molecule: str,
    key: str,
    target: str,
    chemistry: Callable[[str], Any],
    examples: SimpleNamespace,
    pick: Pick,
) -> None:
    case = chemistry(molecule)
    d1, d2 = examples.diis.denominators(case.spin["e_o"], case.spin["e_v"])
    program = compiled(LISTS / f"{name}.json", target, {"o": d1.shape[0], "v": d1.shape[1]})
    constants = pick(program, case.spin)
    step = examples.diis.updating(lambda **t: program(**constants, **t), d1, d2)
    start = {"t2": case.spin["v_oovv"] / d2}
    if name.startswith("ccsd"):
        start = {"t1": case.spin["f_ov"] / d1, **start}
    result = examples.diis.iterate(step, start)
    assert abs(result.energy - case.energies[key]) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_closed_shell_with_fused_loops(
    target: str, water: dict[str, np.ndarray], examples: SimpleNamespace
) -> None:
    import tcgen

    spec = tcgen.spec_path("ccsd_closed_shell")
    program = compiled(spec, target, {"o": 5, "v": 8}, objective="linear")
    constants = {n: a for n, a in water.items() if n not in ("e_ccsd", "e_hf")}
    constants["v_vvvv"] = tcgen.pack_pairs(water["v_vvvv"], (0, 1), (2, 3))
    step = program.bind(**constants)
    d1, d2 = examples.diis.denominators(water["e_o"], water["e_v"])
    start = {"t1": water["f_ov"] / d1, "t2": water["v_ovov"].transpose(0, 2, 1, 3) / d2}
    assert abs(examples.diis.iterate(step, start).energy - float(water["e_ccsd"])) < 1e-8
    memory = program.report["memory"]
    assert memory["intermediates_static_bytes"] <= memory["intermediates_unfused_bytes"]


def compiled(source: Path, target: str, extents: dict[str, int], objective: str = "none") -> Any:
    import tcgen
    from tcgen.compiler.target import default_target

    if target == "cpu" and default_target() != "cpu":
        pytest.skip("no C compiler")
    return tcgen.compile(source, extents=extents, target=target, objective=objective)
