"""What a test run needs: TCGEN_REQUIRE=cc,pyscf turns skips for want of these into failures."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

# How a skip's reason names each requirement.
_REASONS = {"cc": r"\b(cc|C compiler)\b", "pyscf": r"\bpyscf\b", "sphinx": r"\bsphinx\b"}


def _required() -> tuple[str, ...]:
    names = tuple(n for n in os.environ.get("TCGEN_REQUIRE", "").split(",") if n)
    unknown = [n for n in names if n not in _REASONS]
    if unknown:
        raise pytest.UsageError(
            f"TCGEN_REQUIRE={','.join(names)}: {unknown[0]} is not one of {', '.join(_REASONS)}"
        )
    return names


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Fail a skipped report whose reason names something that must be present."""
    if report.outcome != "skipped":
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    for name in _required():
        if re.search(_REASONS[name], reason, re.IGNORECASE):
            report.outcome = "failed"
            report.longrepr = f"TCGEN_REQUIRE asks for {name}, but: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.fixture(scope="session")
def hand_plans() -> ModuleType:
    """The module of hand-written fusion plans; ``hand_plans.LEGAL`` holds its functions."""
    path = Path(__file__).with_name("hand_plans.py")
    spec = importlib.util.spec_from_file_location("hand_plans", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
