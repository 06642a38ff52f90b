"""``tcgen.einsum`` beside ``numpy.einsum``: values, shapes, element types, layouts, errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given

import tcgen.compiler.api
from support import einsum_calls
from support.campaigns import cases
from support.paths import ROOT


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated code for every call that it can run; NumPy target, which needs no compiler."""
    monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    tcgen.einsum_report(reset=True)


def compare(call: Any) -> None:
    found = call.run(tcgen.einsum, optimize=call.optimize)
    einsum_calls.assert_same(found, call.run(np.einsum), call)


@cases(200, 2000)
@given(einsum_calls.calls())
def test_random_calls(call: Any) -> None:
    compare(call)


@pytest.mark.slow
@cases(100, 2000)
@given(einsum_calls.calls())
def test_random_calls_by_their_size(call: Any) -> None:
    """Small calls go to NumPy, as they do for users."""
    with mock.patch.dict(os.environ):
        del os.environ["TCGEN_EINSUM_MIN_FLOPS"]
        compare(call)


def test_most_random_calls_reach_a_kernel() -> None:
    @cases(60)
    @given(einsum_calls.calls())
    def run(call: Any) -> None:
        call.run(tcgen.einsum, optimize=call.optimize)

    run()
    assert tcgen.einsum_report().kernel_calls > 20


def test_random_calls_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    if tcgen.compiler.target.default_target() != "cpu":
        pytest.skip("no C compiler")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")
    cases(20)(given(einsum_calls.calls())(compare))()
    assert {r.reason for r in tcgen.einsum_report().rows if r.route == "kernel"} == {"cpu"}


# What einsum users write: each line is one theme, extents are drawn for each letter.
EXPRESSIONS = """
a,a->a  ab,ab->ab  a,b->ab  a,ab,b->  ab,a->ab  abc,c->abc  a,a,a->a  ab,ab,ab->
ab,bc->ac  ab,cb->ac  ba,bc->ac  ab,bc->ca  ba,cb->ac  ab,bc,cd->ad  ab,bc,cd,de->ae
ab,bc,cd,da->  ab,bc,ca->  ab,ba->  ab,ab->  a,a->  abc,abc->  abc,cba->
abc,cd->abd  abc,bd->acd  abc,ad->bcd  abcd,cd->ab  abcd,ab->cd  abcd,bd->ac  abcd,cdef->abef
abcd,efcd->abef  abcd,ecfb->aefd  abij,abkl->ijkl  ijab,kjac->ikbc  ijab,jkbc->ikac
aab->b  aab,b->  aa->a  aa->  aaa->a  abab->ab  abba->  aab,bcc->ac  abb,bcd,d->ac
abcc,bd->ad  aabb->ab  iij,jk->ik  ab,b,b->a  ab,ac,ad->bcd  ab,ac,ad->abcd
xab,xbc->xac  xab,xbc->abc  xab,xcb->xac  xyab,xybc->xyac  xab,bc->xac  xab,ybc->xyac
xia,xjb->iajb  xac,xbd,cdij->abij  ap,bp,pq,cq,dq->abcd  ip,ap,pq,jq,bq->iajb
ab,cd->abcd  ab,cd,ef->abcdef  a,b,c,d->dcba  ,ab->ab  ,,ab->b  a,,b->ab  ,->
abc->cab  abcd->dcba  abc->b  abc->  abc->ca  ab->a  a->
ijkl,ip,jq,kr,ls->pqrs  ip,jq,ijkl,kr,ls->pqrs  ab,bc,cd,de,ef,fg,gh->ah
mjam,ikbkc,abi->jc  pqr,rsq,sqt,ptr->  xyz,wvz,uyz,yw->uvx  rst,ws,wt,r->
pqr,sqtr,upv->ut  pq,qrs,stupv,rt->  abcdef,bcd,efa->  ijab,ia,jb->  ijab,ia->jb
"""


@pytest.mark.slow
def test_the_strings_of_opt_einsums_own_tests() -> None:
    """Its list of contractions, which its package holds, with its own operands."""
    theirs = pytest.importorskip(
        "opt_einsum.tests.test_contract", reason="not with this opt_einsum"
    )
    build_views = pytest.importorskip("opt_einsum.testing").build_views
    assert len(theirs.tests) >= 70
    for text in theirs.tests:
        views = build_views(text)
        expected = np.einsum(text, *views, optimize=False)
        for optimize in (True, False):
            found = tcgen.einsum(text, *views, optimize=optimize)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10, err_msg=text)
            assert np.shape(found) == np.shape(expected)
    assert tcgen.einsum_report().kernel_calls >= 2 * (len(theirs.tests) - 10)


@pytest.mark.few(40)
@pytest.mark.parametrize("text", EXPRESSIONS.split())
def test_expression(text: str) -> None:
    random = np.random.default_rng(len(text))
    extents = {c: 2 + n % 3 for n, c in enumerate(dict.fromkeys(filter(str.isalpha, text)))}
    terms = text.partition("->")[0].split(",")
    arrays = [random.standard_normal([extents[c] for c in term]) for term in terms]
    expected = np.einsum(text, *arrays)
    for optimize in (True, False):
        found = tcgen.einsum(text, *arrays, optimize=optimize)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
        assert np.shape(found) == np.shape(expected)


# NumPy's own tests that are not about what einsum means, each with the reason.
EXCLUDED = {
    "test_einsum_0d_out": "casts float64 to an int64 out under casting='safe', which NumPy itself "
    "refuses unless optimize is given: tcgen keeps the rule",
    "test_einsum_chunking_precision": "counts on the chunks in which NumPy's iterator adds a "
    "million numbers; its docstring says that nobody promises this",
}
NUMPY_SUITE = """
import sys
import numpy as np
import pytest
import tcgen
np.einsum = tcgen.einsum
code = pytest.main(["--pyargs", "numpy._core.tests.test_einsum", "-q", "-p", "no:cacheprovider",
                    "-c", "/dev/null", "-k", {choice!r}])
report = tcgen.einsum_report()
print("kernels", report.kernel_calls, "numpy", report.numpy_calls)
raise SystemExit(code)
"""


@pytest.mark.slow
@pytest.mark.parametrize("forced", [True, False], ids=["kernels", "default"])
def test_numpys_own_tests(forced: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("numpy._core.tests.test_einsum", reason="NumPy 2's tests are not installed")
    if not forced:
        monkeypatch.delenv("TCGEN_EINSUM_MIN_FLOPS")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    choice = " and ".join(f"not {name}" for name in EXCLUDED)
    done = subprocess.run(
        [sys.executable, "-c", NUMPY_SUITE.format(choice=choice)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed, 2 deselected", done.stdout)
    assert passed is not None, done.stdout
    assert int(passed[1]) > 60
    ran = re.search(r"kernels (\d+) numpy (\d+)", done.stdout)
    assert ran is not None
    assert int(ran[1 if forced else 2]) > 3000  # by default these calls are all small


@pytest.mark.few(6)
@pytest.mark.parametrize("target", ["numpy", "cpu"])
@pytest.mark.parametrize(
    "subscripts", ["ij,j->j", "ij,j->", "ij,k->jk", "ij,k->k", "j,ij->i", "ij,j,jk->k", "ij,kj->"]
)
def test_without_optimize_nothing_is_summed_before_it_is_multiplied(
    subscripts: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 times infinity is NaN wherever the product of the two elements occurs in the sum."""
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", target)
    random = np.random.default_rng(0)
    extents = dict(zip("ijk", (3, 4, 5), strict=True))
    inputs, _, output = subscripts.partition("->")
    operands = []
    for number, labels in enumerate(inputs.split(",")):
        array = random.random([extents[label] for label in labels])
        array.reshape(-1)[0] = (0.0, np.inf, 1.0)[number]
        operands.append(array)
    labels = "".join(sorted({*inputs} - {","}))
    summed = tuple(n for n, label in enumerate(labels) if label not in output)
    with np.errstate(invalid="ignore"):
        wanted = np.einsum(f"{inputs}->{labels}", *operands).sum(axis=summed)
        found = tcgen.einsum(subscripts, *operands, optimize=False)
    assert np.isnan(found).any()
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("optimize", [True, "optimal", "greedy", ["einsum_path", (0, 1)], False])
@pytest.mark.parametrize("casting", ["safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("out", ["float32", "complex128", "int64", "float64"])
def test_out_of_another_type(out: str, casting: Any, optimize: Any) -> None:
    """As NumPy 2.4 without ``optimize``; with it NumPy casts what its BLAS computes."""
    a, b = np.arange(16.0).reshape(4, 4), np.eye(4) * 2.5
    for subscripts in ("ij,jk->ik", "ij,jk->ki", "ij,ij->i"):
        wanted: Any = None
        made, found = np.zeros((4, 4)[: subscripts.count("k") or 1], out), None
        found = made.copy()
        try:
            wanted = np.einsum(subscripts, a, b, out=made, casting=casting)
        except TypeError:
            with pytest.raises(TypeError):
                tcgen.einsum(subscripts, a, b, out=found, optimize=optimize, casting=casting)
            continue
        tcgen.einsum(subscripts, a, b, out=found, optimize=optimize, casting=casting)
        np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("path", [False, True])
def test_a_network_that_is_small_in_pairs_runs_without_a_program(
    path: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One loop nest over all labels of this lattice of 4 by 4 tensors would take 3e8 flops."""
    monkeypatch.delenv("TCGEN_EINSUM_MIN_FLOPS")
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    bonds: dict[tuple[complex, complex], str] = {}
    sites = [complex(x, y) for x in range(4) for y in range(4)]
    for site in sites:
        for step in (1, 1j):
            if site + step in sites:
                bonds[site, site + step] = next(letters)
    terms = ["".join(name for ends, name in bonds.items() if site in ends) for site in sites]
    rng = np.random.default_rng(0)
    arrays = [rng.random((2,) * len(term)) for term in terms]
    text = f"{','.join(terms)}->"
    chosen, _ = np.einsum_path(text, *arrays, optimize="greedy")
    found = tcgen.einsum(text, *arrays, optimize=chosen if path else True)
    np.testing.assert_allclose(found, np.einsum(text, *arrays, optimize=chosen), rtol=1e-12)
    assert tcgen.einsum_report().kernel_calls == 0


# opt_einsum 3.4: symbols after the letters of ASCII are characters from U+00C0 on, some no letters.
def test_symbols_of_opt_einsum_are_labels() -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    rng = np.random.default_rng(0)
    for first in (70, 100, 560, 20_000):
        names = [opt_einsum.get_symbol(n) for n in range(first, first + 10)]
        pairs = list(pairwise(names))
        text = f"{','.join(map(''.join, pairs))}->{names[0]}{names[-1]}"
        arrays = [rng.random((3, 3)) for _ in pairs]
        expected = opt_einsum.contract(text, *arrays)
        np.testing.assert_allclose(tcgen.einsum(text, *arrays), expected, rtol=1e-13)
        program = tcgen.compile(text, extents=dict.fromkeys(names, 3), target="numpy")
        (found,) = program(**{f"x{n}": x for n, x in enumerate(arrays)}).values()
        np.testing.assert_allclose(found, expected, rtol=1e-13)
