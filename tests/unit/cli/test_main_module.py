"""``python -m tcgen``: the same command, and quiet when it is interrupted before it has begun."""

from __future__ import annotations

import subprocess
import sys

import tcgen

_INTERRUPTED_WHILE_LOADING = """
import builtins, sys
load = builtins.__import__
def interrupted(name, *rest):
    if name.startswith("cli"):
        raise KeyboardInterrupt
    return load(name, *rest)
import tcgen.__main__
builtins.__import__ = interrupted
tcgen.__main__.main()
"""


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "tcgen", "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == f"tcgen, version {tcgen.__version__}\n"


def test_ctrl_c_while_loading_leaves_no_traceback() -> None:
    command = [sys.executable, "-c", _INTERRUPTED_WHILE_LOADING]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "Aborted!\n"
