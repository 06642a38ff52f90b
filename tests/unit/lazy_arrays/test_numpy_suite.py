"""NumPy's own tests of ufuncs, einsum and overrides pass on lazy arrays, as on NumPy's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

MODULES = ("test_ufunc", "test_umath", "test_einsum", "test_overrides")
# What these tests ask for is not so of lazy arrays.
EXCEPT = {
    # The result's class is that of NumPy's arrays, or of the arrays of a subclass.
    *("test_out_subok", "test_out_wrap_subok", "test_priority", "test_array_wrap_array_priority"),
    "test_reduce_output_subclass_ok",
    # Classes of the tests that __array__ or out= gives lazy arrays to.
    *("test_out_wrap_no_leak", "test_wrap", "test_wrap_out", "test_failing_wrap"),
    *("test_failing_out_wrap", "test_none_wrap", "test_default_prepare"),
    *("test_ufunc_override_where", "test_ufunc_override_with_super"),
    # NumPy does not tell classes that override its functions that out is an ellipsis.
    "test_output_ellipsis[array]",
    # A function of the tests writes to its operand.
    "test_operand_flags",
    # The base of a view is asked for.
    "test_einsum_views",
    # These test NumPy's dispatcher on its own classes: which arguments it asks first, and what
    # like= does in functions that are replaced here.
    *("test_ndarray_subclass_and_duck_array", "test_nep35_functions_as_array_functions"),
    *("test_array_like", "test_array_like_fromfile", "test_array_like_not_implemented"),
    # The method of the protocol is called without NumPy's dispatcher.
    "test_wrong_arguments",
    # A function that returns its argument returns another lazy array of the same values.
    "test_not_implemented",
    # A class of the tests has an __array__ that gives a lazy array.
    "test_function_like",
}


def failures(folder: Path, *options: str) -> list[str]:
    """Names of the tests that fail, after their modules."""
    tests = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests.parent), str(tests)])}
    environment["TCGEN_EINSUM_TARGET"] = "numpy"
    given = [f"numpy._core.tests.{module}" for module in MODULES]
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "--tb=no", "--no-header"]
    run = subprocess.run(
        [*command, "-p", "no:cacheprovider", *options, "--pyargs", *given],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )
    assert " passed" in run.stdout, run.stdout[-2000:] + run.stderr[-2000:]
    return re.findall(r"^FAILED \S*?::(?:\w+::)?(\S+)", run.stdout, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.skipif(
    not (Path(np.__file__).parent / "_core" / "tests").is_dir(),
    reason="this NumPy was installed without its tests",
)
def test_lazy_arrays_pass_what_numpy_passes(tmp_path: Path) -> None:
    failed = {
        name
        for name in failures(tmp_path, "-p", "support.numpy_suite")
        if EXCEPT.isdisjoint((name, name.partition("[")[0]))
    }
    if failed:
        names = " or ".join(sorted({name.partition("[")[0] for name in failed}))
        failed -= set(failures(tmp_path, "-k", names))
    assert not failed
