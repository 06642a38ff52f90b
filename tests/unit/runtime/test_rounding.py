"""Loops of lazy arrays round each real operation, as NumPy; specs may round two at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcgen
from tcgen.artifact.kernel_abi import rounds_each
from tcgen.compiler.driver import compile_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.options import Options
from tcgen.runtime.cpu.build import Source
from tcgen.runtime.cpu.toolchain import probe_compiler

SYSTEM = read_spec(
    "space n\nindex i : n\ninput x[n]\ninput y[n]\noutput z\nz[i] = x[i]*y[i] + y[i]\n"
)


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything goes to kernels in C."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_difference_of_equal_products_is_zero(dtype: Any) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, 1001).astype(dtype)
    lazy = tcgen.lazy(x)
    np.testing.assert_array_equal(np.asarray(lazy * lazy - tcgen.lazy(x.copy()) * x.copy()), 0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_real_arithmetic_is_numpys_to_the_last_bit(dtype: Any) -> None:
    random = np.random.default_rng(2)
    x, y, z = random.uniform(-1, 1, (3, 37, 41)).astype(dtype)

    def work(x: Any, y: Any, z: Any) -> Any:
        return (x * y + z) * x - y / 3 + np.sqrt(x * x + y * y + 1e-3)

    np.testing.assert_array_equal(np.asarray(work(*map(tcgen.lazy, (x, y, z)))), work(x, y, z))


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_the_source_says_how_it_is_compiled(target: str) -> None:
    texts = {}
    for round_each in (True, False):
        options = Options(extents=(("n", 9),), target=target, round_each=round_each)
        artifact = compile_system(SYSTEM, options).artifact
        texts[round_each] = artifact.text({"cpu": "kernels.c", "cuda": "kernels.cu"}[target])
    assert rounds_each(texts[True])
    assert not rounds_each(texts[False])
    assert texts[True].endswith(texts[False])
    compiler = probe_compiler()
    flags = {r: Source(text).flags(compiler) for r, text in texts.items()}
    assert flags[True] == (*flags[False], "-ffp-contract=off")
