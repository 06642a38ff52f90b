"""Compilers that refuse, hang, print anything or meet a full disk; what is remembered of them."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.bad_folders import noexec
from support.command_line import invoke
from support.messages import mentions, says
from tcgen.errors import BuildError, UnavailableError
from tcgen.runtime.cpu import build, toolchain

Script = Callable[[str], Path]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path / "cache"))
    toolchain._probe.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def script(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """A C compiler that runs these lines of a shell, and then the real one."""

    def write(lines: str) -> Path:
        path = tmp_path / "strange-cc"
        path.write_text(f'#!/bin/sh\n{lines}\nexec cc "$@"\n')
        path.chmod(0o755)
        monkeypatch.setenv("TCGEN_CC", str(path))
        toolchain._probe.cache_clear()
        return path

    return write


def again() -> toolchain.Compiler:
    """What the next process finds."""
    toolchain._probe.cache_clear()
    return toolchain.probe_compiler()


def test_a_noexec_folder_for_temporary_files_costs_no_flag(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    noexec(monkeypatch, tmp_path / "tmp")
    compiler = toolchain.probe_compiler()
    assert compiler.flags == toolchain.OPTIONAL
    assert compiler.refused == ()
    assert len(list((cache / "compilers").iterdir())) == 1


def test_libraries_that_cannot_be_loaded_are_no_fault_of_a_flag(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        noexec(patch, Path("/"))
        with pytest.raises(UnavailableError, match=mentions("segment TCGEN_CACHE_DIR")):
            toolchain.probe_compiler()
    assert not (cache / "compilers").exists()
    assert again().flags == toolchain.OPTIONAL


@pytest.mark.parametrize("flag", ["-fopenmp", "-march=native"])
def test_a_refusal_is_not_kept(flag: str, script: Script, cache: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    missing.touch()
    script(
        f'[ -e {missing} ] && for a in "$@"; do [ "$a" = {flag} ] && '
        f'{{ echo "cannot find -lgomp: error" >&2; exit 1; }}; done'
    )
    with pytest.warns(RuntimeWarning) if flag == "-fopenmp" else _no_warning():
        compiler = toolchain.probe_compiler()
    assert flag not in compiler.flags
    assert compiler.refused == ((flag, "cannot find -lgomp: error"),)
    findings = json.loads(invoke("doctor", "--json").stdout)["findings"]
    (finding,) = (f for f in findings if f["what"] == "C compiler")
    assert says(finding["details"], f"{flag} (cannot find -lgomp: error)")
    missing.unlink()
    assert again().flags == toolchain.OPTIONAL
    assert len(list((cache / "compilers").iterdir())) == 1


def _no_warning() -> pytest.WarningsRecorder:
    return pytest.WarningsRecorder(_ispytest=True)


def test_another_compiler_of_the_same_name_is_tried(script: Script, cache: Path) -> None:
    script("")
    assert toolchain.probe_compiler().skipped == toolchain.SKIPPED
    script('for a in "$@"; do [ "$a" = -fno-gcse ] && exit 1; done')
    assert toolchain.probe_compiler().skipped == ()
    assert len(list((cache / "compilers").iterdir())) == 2


def test_what_a_compiler_finds_is_part_of_the_key(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain.probe_compiler()
    monkeypatch.setenv("LIBRARY_PATH", "/nowhere")
    again()
    assert len(list((cache / "compilers").iterdir())) == 2


def test_what_is_no_utf_8_is_replaced(script: Script, cache: Path) -> None:
    version = "case $* in *--version*) printf '\\377 1.0\\n'; exit;; esac"
    script(f"printf '\\377\\376 caf\\351\\n' >&2; {version}")
    assert toolchain.probe_compiler().version == "\N{REPLACEMENT CHARACTER} 1.0"
    with pytest.raises(BuildError, match=mentions("strange-cc exit code 1")):
        build.build_libraries([build.Source("int x = ")])
    (log,) = (cache / "logs").glob("*.log")
    assert "caf\N{REPLACEMENT CHARACTER}" in log.read_text(encoding="utf-8")


@pytest.mark.parametrize("lines", ["exec sleep 3", "sleep 3; exit 0"])
def test_a_compiler_that_hangs_is_ended(
    lines: str, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "SHORTEST", 0.1)
    path = script(lines)
    with pytest.raises(BuildError, match=mentions(f"{path} 0.1 s TCGEN_CC")) as caught:
        toolchain.probe_compiler()
    assert caught.value.exit_code == 3
    assert toolchain.no_compiler() == (str(caught.value), "install gcc or clang, or set TCGEN_CC")


def test_a_compilation_that_hangs_is_ended(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    script("")
    toolchain.probe_compiler()
    script("case $* in *kernels.c*) exec sleep 3;; esac")
    monkeypatch.setattr(toolchain, "LONGEST", 0.1)
    with pytest.raises(BuildError, match=mentions("strange-cc 0.1 s TCGEN_CC")):
        build.build_libraries([build.Source("int tc_slow(void) { return 0; }\n")])


@pytest.mark.parametrize("part", ["--version", "probe.c", "kernels.c"])
def test_a_compiler_on_a_full_disk_is_not_blamed(part: str, script: Script, cache: Path) -> None:
    script(
        f"case $* in *--version*) exec cc $*;; *{part}*) "
        f'echo "/tmp/ccX.s: fatal error: No space left on device" >&2; exit 1;; esac'
    )
    if part == "--version":
        assert toolchain.probe_compiler().flags == toolchain.OPTIONAL
        return
    with pytest.raises(UnavailableError, match=mentions("TMPDIR room")):
        build.build_libraries([build.Source("int tc_full(void) { return 0; }\n")])
    assert part == "kernels.c" or not (cache / "compilers").exists()


def test_what_is_no_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cc"
    path.write_bytes(b"\x7fELF and nothing else")
    path.chmod(0o755)
    monkeypatch.setenv("TCGEN_CC", str(path))
    with pytest.raises(BuildError, match=mentions(f"{path} run TCGEN_CC")):
        toolchain.probe_compiler()


def test_doctor_says_why_nothing_works(script: Script) -> None:
    path = script('case $* in *.c*) echo "kernels.c: error: no assembler" >&2; exit 4;; esac')
    findings = json.loads(invoke("doctor", "--json").stdout)["findings"]
    (finding,) = (f for f in findings if f["what"] == "C compiler")
    assert not finding["works"]
    assert says(finding["details"], f"{path} exit code 4 error: no assembler")


def test_trials_leave_nothing(cache: Path) -> None:
    toolchain.probe_compiler()
    assert toolchain.examine_cache() is None
    assert list((cache / "objects").iterdir()) == []
    assert ctypes.CDLL is not None
