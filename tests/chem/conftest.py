"""Molecules of tests/data/energies.json, their integrals, and programs compiled once a session."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.paths import TESTS

EXAMPLES = TESTS.parent / "examples"
RECORDS = {c["id"]: c for c in json.loads((TESTS / "data" / "energies.json").read_text())["cases"]}

# Planning extents; each program then runs at the extents of its arrays, as a user's does.
PLANNING = {"o": 5, "v": 8, "O": 4, "V": 9, "x": 30, "q": 12}

Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="session")
def examples() -> SimpleNamespace:
    """The modules of examples/ that need no PySCF, imported as their scripts import them."""
    sys.path.insert(0, str(EXAMPLES))
    import diis
    import term_loop

    return SimpleNamespace(folder=EXAMPLES, diis=diis, term_loop=term_loop)


@pytest.fixture
def wickd() -> None:
    """Skips where wickd is missing."""
    pytest.importorskip("wickd", reason="wickd is not installed")


@pytest.fixture(scope="session")
def blocks(examples: SimpleNamespace) -> Any:
    """The module examples/pyscf_blocks.py; skips where PySCF is missing."""
    lib = pytest.importorskip("pyscf.lib")
    lib.num_threads(2)
    import pyscf_blocks

    return pyscf_blocks


class Case:
    """A molecule with its reference energies; everything is computed once, when first asked for."""

    def __init__(self, record: dict[str, Any], blocks: Any) -> None:
        self.id: str = record["id"]
        self.record, self.blocks = record, blocks
        self.energies: dict[str, float] = record["energies"]
        self.frozen: int = record["frozen"]

    @cached_property
    def reference(self) -> Any:
        mol = self.blocks.molecule(
            self.record["geometry"],
            self.record["basis"],
            self.record["charge"],
            self.record["spin_2S"],
        )
        reference = self.blocks.mean_field(mol, self.record["reference"])
        assert abs(reference.e_tot - self.energies["E_HF"]) < 1e-9
        return reference

    @cached_property
    def _closed_problem(self) -> Any:
        from pyscf import cc

        return self._problem(cc.rccsd.RCCSD(self.reference, frozen=self.frozen or None))

    @cached_property
    def _spin_problem(self) -> Any:
        return self._problem(self.blocks.general_solver(self.reference, self.frozen))

    def _problem(self, solver: Any) -> Any:
        solver = self.blocks.tight(solver)
        solver.eris = solver.ao2mo()
        return solver

    @cached_property
    def closed_solver(self) -> Any:
        """PySCF's converged RCCSD, with ``eris``."""
        return self._solved(self._closed_problem)

    @cached_property
    def spin_solver(self) -> Any:
        """PySCF's converged GCCSD, with ``eris``."""
        return self._solved(self._spin_problem)

    def _solved(self, solver: Any) -> Any:
        solver.kernel(eris=solver.eris)
        assert solver.converged
        return solver

    @cached_property
    def closed(self) -> Arrays:
        return self.blocks.closed_shell(self._closed_problem, self._closed_problem.eris)

    @cached_property
    def spin(self) -> Arrays:
        return self.blocks.spin_orbital(self._spin_problem, self._spin_problem.eris)

    @cached_property
    def fitted(self) -> Arrays:
        return self.blocks.density_fitted(
            self.reference, self.record.get("auxbasis", "cc-pvdz-ri"), self.frozen
        )


@pytest.fixture(scope="session")
def chemistry(blocks: Any) -> Callable[[str], Case]:
    """``chemistry("h2o_631g")`` is that molecule."""
    made: dict[str, Case] = {}

    def get(name: str) -> Case:
        if name not in made:
            made[name] = Case(RECORDS[name], blocks)
        return made[name]

    return get


@pytest.fixture(scope="session", params=["cpu", "numpy"])
def compiled(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """``compiled("mp2_df")`` is the program of that shipped spec, on each target in turn."""
    import tcgen
    from tcgen.compiler.target import default_target

    if request.param == "cpu" and default_target() != "cpu":
        pytest.skip("no C compiler")
    made: dict[str, Any] = {}

    def get(spec: str) -> Any:
        if spec not in made:
            path = tcgen.spec_path(spec)
            spaces = re.findall(r"^space (\w+)", path.read_text(), re.MULTILINE)
            extents = {name: PLANNING[name] for name in spaces}
            made[spec] = tcgen.compile(path, extents=extents, target=request.param)
        return made[spec]

    return get


@pytest.fixture(scope="session")
def pick() -> Callable[[Any, Arrays], Arrays]:
    """``pick(program, arrays)``: of these arrays, those that the program reads."""

    def choose(program: Any, arrays: Arrays) -> Arrays:
        names = [a["name"] for a in program.report["arrays"] if a["kind"] == "input"]
        return {name: arrays[name] for name in names if name in arrays}

    return choose
