"""What a test run needs: TCGEN_REQUIRE=cc,pyscf,ebcc makes skips for want of these failures."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Generator
from types import ModuleType
from typing import Any

import hypothesis
import pytest

from support.campaigns import CAMPAIGN

# The processes of ``pytest -n`` share the cores: threads that wait must not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# What a test sees of the planner must come from the planner, not from an earlier run.
os.environ.setdefault("TCGEN_PLAN_CACHE", "0")

# The same examples in every run, however long one takes on a busy machine.
hypothesis.settings.register_profile("tcgen", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("tcgen")

# How a skip's reason names each requirement.
_REASONS = {
    "cc": r"\b(cc|C compiler)\b",
    "pyscf": r"\bpyscf\b",
    "ebcc": r"\bebcc\b",
    "trexio": r"\btrexio\b",
    "wickd": r"\bwickd\b",
    "chromium": r"\bchromium\b",
    "clang": r"\bclang\b",
    "cmake": r"\bcmake\b",
    "gfortran": r"\bgfortran\b",
    "valgrind": r"\bvalgrind\b",
    "meson": r"\bmeson\b",
    "openblas": r"\bopenblas(64)?\b",
    "nbclient": r"\b(nbclient|ipykernel)\b",
    "nvrtc": r"\bnvrtc\b",
    "nvdisasm": r"\bnvdisasm\b",
    "hipcc": r"\bhipcc\b",
    "aarch64": r"\b(qemu|aarch64)\b",
}
_SKIPPED = pytest.StashKey[list[str]]()
_CACHE_KEY = "tcgen/skipped"


def _required() -> tuple[str, ...]:
    names = tuple(n for n in os.environ.get("TCGEN_REQUIRE", "").split(",") if n)
    unknown = [n for n in names if n not in _REASONS]
    if unknown:
        raise pytest.UsageError(
            f"TCGEN_REQUIRE={','.join(names)}: {unknown[0]} is not one of {', '.join(_REASONS)}"
        )
    return names


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config) -> None:
    """Fail a skipped report whose reason names something that must be present, note the others."""
    if report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    for name in _required():
        if re.search(_REASONS[name], reason, re.IGNORECASE):
            report.outcome = "failed"
            report.longrepr = f"TCGEN_REQUIRE asks for {name}, but: {reason}"
            return
    config.stash.setdefault(_SKIPPED, []).append(report.nodeid)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--last-skipped",
        action="store_true",
        help="run only the tests that the last run skipped (all, if there was no last run)",
    )
    parser.addoption(
        "--compile-cuda",
        choices=("some", "all"),
        default="some",
        help="compile a sample of the CUDA texts that tests generate, or all (-m slow: all)",
    )
    parser.addoption(
        "--thresholds",
        choices=("smallest", "largest"),
        help="compile with all thresholds at one end of their ranges: tests of values pass",
    )
    parser.addoption(
        "--campaign",
        type=float,
        metavar="SHARE",
        help="run the tests of random cases alone, with this share of their full counts (1: all)",
    )
    parser.addoption(
        "--campaign-seed",
        type=int,
        default=0,
        metavar="N",
        help="draw other cases of a campaign for each seed",
    )


def _compile_at_the_end(end: str) -> None:
    """Make records of thresholds at one end of their ranges the default of all compilations."""
    from tcgen import options, thresholds

    init = options.Options.__init__
    chosen = getattr(thresholds, end)(thresholds.Thresholds())
    init.__defaults__ = tuple(
        chosen if isinstance(value, thresholds.Thresholds) else value
        for value in init.__defaults__ or ()
    )


def pytest_configure(config: pytest.Config) -> None:
    if end := config.getoption("--thresholds"):
        _compile_at_the_end(end)
    CAMPAIGN.share, CAMPAIGN.seed = (config.getoption(f"--campaign{x}") for x in ("", "-seed"))
    if CAMPAIGN.share is not None:
        config.option.markexpr = "campaign and not gpu"
    marks = config.getoption("markexpr", "")
    slow = "slow" in marks and "not slow" not in marks
    many = slow or CAMPAIGN.share is not None
    if not many:
        # C compiles in 0.4 of the time (GCC 12). Slow tests and campaigns have the usual flags.
        os.environ.setdefault("TCGEN_CFLAGS", "-O1")
    if many or config.getoption("--compile-cuda") == "all":
        from support.cuda_device import Compiling

        Compiling.one_in = 1


def _mark_slow_cases(items: list[pytest.Item]) -> None:
    """Of each test that is marked ``few(n)``, leave n cases to the default list, spread evenly."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("slow"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        (count,) = cases[0].get_closest_marker("few").args
        chosen = {n * len(cases) // count for n in range(count)}
        for number, item in enumerate(cases):
            if number not in chosen:
                item.add_marker("slow")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _mark_slow_cases(items)
    if config.getoption("--thresholds"):
        plans = [item for item in items if item.get_closest_marker("default_thresholds")]
        config.hook.pytest_deselected(items=plans)
        items[:] = [item for item in items if item not in plans]
    if config.getoption("--last-skipped"):
        skipped = config.cache.get(_CACHE_KEY, None)
        # Without a last run nothing is known, so that every test is run.
        chosen = (
            items if skipped is None else [i for i in items if i.nodeid.startswith((*skipped,))]
        )
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


def pytest_collection_finish() -> None:
    """Collections of garbage pass over what stays: modules and thousands of tests."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--last-skipped"):
        return  # the list stays that of the run before
    skipped = session.config.stash.get(_SKIPPED, [])
    if hasattr(session.config, "workeroutput"):  # one of several processes (pytest -n)
        session.config.workeroutput["skipped"] = skipped
    elif session.config.pluginmanager.hasplugin("cacheprovider"):
        session.config.cache.set(_CACHE_KEY, sorted(set(skipped)))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a process of ``pytest -n`` skipped, told to the one that started it."""
    output = getattr(node, "workeroutput", {})
    node.config.stash.setdefault(_SKIPPED, []).extend(output.get("skipped", []))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    _refuse_skip(report, item.config)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    report = yield
    _refuse_skip(report, collector.config)
    return report


@pytest.fixture(scope="session")
def hand_plans() -> ModuleType:
    """The module of hand-written fusion plans; ``hand_plans.LEGAL`` holds its functions."""
    from support import hand_plans as plans

    return plans


@pytest.fixture
def generated_einsum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated code for every call of einsum that it can run, from an empty cache and report."""
    import tcgen
    from tcgen.contraction.programs import PROGRAMS

    PROGRAMS.clear()
    monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    tcgen.einsum_report(reset=True)


@pytest.fixture
def interruptible() -> Generator[None, None, None]:
    """Ctrl-C as at a terminal: a job in the background of a shell starts with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
