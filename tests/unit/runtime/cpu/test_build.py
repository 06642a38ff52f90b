"""The compiler, its cache, and what happens where it is missing or fails."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from support.paths import ROOT
from tcgen.cache_files import write_bytes
from tcgen.errors import BuildError, UnavailableError
from tcgen.runtime.cpu import build, private_folder
from tcgen.runtime.cpu import object_cache as objects
from tcgen.runtime.cpu import toolchain as compiler

SOURCE = "int tcgen_answer(void) { return 42; }\n"


def built(text: str) -> ctypes.CDLL:
    """The library of one C source."""
    return build.build_libraries([build.Source(text)])[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_builds_once_and_then_takes_the_object(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert objects.cache_info() == {"folder": str(folder), "objects": 0, "bytes": 0}
    assert built(SOURCE).tcgen_answer() == 42
    monkeypatch.setattr(build, "compile_source", lambda *_: pytest.fail("compiled again"))
    assert built(SOURCE).tcgen_answer() == 42
    info = objects.cache_info()
    assert info["objects"] == 1
    assert info["bytes"] > 0
    assert sorted(p.name for p in (folder / "objects").iterdir() if p.name.startswith(".")) == []
    assert objects.cache_clear() == 1
    assert objects.cache_info()["objects"] == 0


def test_a_damaged_object_is_built_again(folder: Path) -> None:
    source = SOURCE.replace("42", "43")
    key = build._key(build.Source(source), compiler.probe_compiler())
    write_bytes(folder / "objects" / f"{key}-0.so", b"not an object")
    (damaged,) = (folder / "objects").glob("*.so")
    assert built(source).tcgen_answer() == 43  # right name, wrong content
    assert not damaged.exists()
    (good,) = (folder / "objects").glob("*.so")
    (folder / "objects" / f"{good.name.partition('-')[0]}-0.so").mkdir()  # cannot be removed
    assert built(source).tcgen_answer() == 43
    content = good.read_bytes()
    good.unlink()  # a new file: this process has the old one mapped
    good.write_bytes(content[:-100])
    code = (
        "from tcgen.runtime.cpu.build import Source, build_libraries\n"
        f"assert build_libraries([Source({source!r})])[0].tcgen_answer() == 43"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_two_processes_build_the_same(folder: Path) -> None:
    code = (
        "from tcgen.runtime.cpu.build import Source, build_libraries\n"
        f"assert build_libraries([Source({SOURCE!r})])[0].tcgen_answer() == 42"
    )
    root = ROOT
    workers = [subprocess.Popen([sys.executable, "-c", code], cwd=root) for _ in range(3)]
    assert [w.wait() for w in workers] == [0, 0, 0]
    assert objects.cache_info()["objects"] >= 1


def test_failure_keeps_the_log(folder: Path) -> None:
    with pytest.raises(BuildError, match=mentions("exit code 1")) as caught:
        built("int broken(void) { return nothing; }")
    assert "nothing" in str(caught.value)
    (log,) = (folder / "logs").glob("*.log")
    assert str(log) in str(caught.value)
    assert "nothing" in log.read_text()
    assert caught.value.exit_code == 3


def test_no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TCGEN_CC", "no-such-compiler -x")
    assert compiler.find_compiler() is None
    with pytest.raises(BuildError, match=mentions("'no-such-compiler -x' install gcc")):
        compiler.probe_compiler()
    monkeypatch.delenv("TCGEN_CC")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=mentions('cc gcc clang target="numpy"')):
        built(SOURCE)


def test_flags_that_a_compiler_refuses_are_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A compiler without OpenMP, as Apple's, still builds, with one warning."""
    script = tmp_path / "oldcc"
    script.write_text(
        '#!/bin/sh\nfor a in "$@"; do [ "$a" = -fopenmp ] && exit 1; done\nexec cc "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("TCGEN_CC", str(script))
    with pytest.warns(RuntimeWarning, match=mentions("OpenMP one thread gcc TCGEN_CC")):
        old = compiler.probe_compiler()
    assert not old.openmp
    assert "-ffp-contract=fast" in old.flags
    assert built(SOURCE).tcgen_answer() == 42


@pytest.mark.default_thresholds
@pytest.mark.filterwarnings("ignore:.*has no OpenMP:RuntimeWarning")
def test_programs_without_openmp_use_one_thread(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever number of threads is asked for, also in loops that have arrays for each thread."""
    script = tmp_path / "nocc"
    script.write_text(
        '#!/bin/sh\nfor a in "$@"; do [ "$a" = -fopenmp ] && exit 1; done\nexec cc "$@"\n'
    )
    script.chmod(0o755)
    text = """
    space o = 5
    space v = 9
    index i : o
    index a b c : v
    input x[o,v], y[v,v], z[v,v,v]
    output r, s
    t[i,a] = x[i,b]*y[b,a]
    q[i] = t[i,a]*t[i,a]
    r[i,a] = t[i,a]*q[i]
    s[i,c] = x[i,b]*z[a,b,c]*y[a,b]
    """
    program = tcgen.compile(text, target="cpu", objective="memory", optimize=False)
    alone = tcgen.compile(text, target="cpu", objective="memory", optimize=False)
    random = np.random.default_rng(0)
    arrays = {"x": random.random((5, 9)), "y": random.random((9, 9)), "z": random.random((9, 9, 9))}
    tcgen.set_threads(1)
    try:
        wanted, least = alone(**arrays), alone.peak_bytes()
        tcgen.set_threads(4)
        assert alone.peak_bytes() > least  # t for each thread
        monkeypatch.setenv("TCGEN_CC", str(script))
        for name, array in program(**arrays).items():
            np.testing.assert_allclose(array, wanted[name], rtol=1e-13)
        assert program.peak_bytes() == program.allocated_bytes == least
        assert tcgen.get_threads() == 4
    finally:
        tcgen.set_threads(None)


def test_several_sources_are_built_and_come_in_order(folder: Path) -> None:
    sources = [
        build.Source(SOURCE.replace("42", str(n)), "-O2" if n % 2 else "-O3") for n in (44, 45, 46)
    ]
    for _ in range(2):  # compiled, then from the cache
        found = build.build_libraries([*sources, sources[0]])
        assert [library.tcgen_answer() for library in found] == [44, 45, 46, 44]
    assert objects.cache_info()["objects"] == 3
    with pytest.raises(BuildError, match=mentions("exit code 1")):
        build.build_libraries([build.Source("int x = "), build.Source(SOURCE)])


def test_libraries_are_built_in_the_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = build.Source(SOURCE.replace("42", "47"))
    with build.building([source]):
        (job,) = (job for (place, _), job in build._jobs.items() if place == folder)
        job.join()
    with monkeypatch.context() as patch:
        patch.setattr(build, "compile_source", lambda *_: pytest.fail("compiled again"))
        assert built(source.text).tcgen_answer() == 47
    # A failure is told by the call that needs the library.
    broken = build.Source("int x = ")
    with build.building([broken]):
        pass
    with pytest.raises(BuildError, match=mentions("exit code 1")):
        built(broken.text)


def test_an_exception_ends_compilers_in_the_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hang, script = tmp_path / "hang", tmp_path / "waiting"
    script.write_text(f'#!/bin/sh\n[ -e "{hang}" ] && exec sleep 600\nexec cc "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("TCGEN_CC", str(script))
    compiler.probe_compiler()
    hang.touch()
    with pytest.raises(KeyError), build.building([build.Source(SOURCE)]):
        raise KeyError
    (job,) = (job for (place, _), job in build._jobs.items() if place == folder)
    job.join()
    with pytest.raises(BuildError, match=mentions("stopped")):
        job.result()
    hang.unlink()
    assert built(SOURCE).tcgen_answer() == 42


def test_a_compiler_is_tried_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler._probe.cache_clear()
    first = compiler.probe_compiler()
    (known,) = (folder / "compilers").glob("*.json")
    compiler._probe.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "_refusal", lambda *_: pytest.fail("tried again"))
        assert compiler.probe_compiler() == first
    for damaged in ("{}", '{"skipped": ["-no-such-flag"]}', "[" * 10_000):
        known.write_text(damaged)
        compiler._probe.cache_clear()
        assert compiler.probe_compiler() == first


def test_passes_are_skipped_only_by_compilers_that_know_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "othercc"
    script.write_text(
        '#!/bin/sh\nfor a in "$@"; do [ "$a" = -fno-gcse ] && exit 1; done\nexec cc "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("TCGEN_CC", str(script))
    assert compiler.probe_compiler().skipped == ()
    (library,) = build.build_libraries([build.Source(SOURCE, "-O2")])
    assert library.tcgen_answer() == 42


@pytest.mark.slow
def test_a_program_that_needs_neither_blas_nor_scipy_does_not_raise(folder: Path) -> None:
    code = (
        "import sys, numpy, tcgen\n"
        "program = tcgen.compile('abk,ckd->dbac', extents={c: 30 for c in 'abkcd'}, target='cpu')\n"
        "x = numpy.ones((30, 30, 30))\n"
        "(out,) = program(**{t.name: x for t in program.manifest.tensors if t.role == 'input'})"
        ".values()\n"
        "assert (out == 30).all()\n"
        "assert 'scipy.linalg' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_unwritable_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(blocked))
    with pytest.raises(UnavailableError, match=mentions("TCGEN_CACHE_DIR folder")):
        built(SOURCE)


@pytest.mark.usefixtures("folder")
def test_no_room_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:

    def refused(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(private_folder.tempfile, "mkdtemp", refused)
    with pytest.raises(UnavailableError, match=mentions("TMPDIR")):
        built("int tc_no_room(void) { return 0; }\n")


def test_flags_of_the_environment_win(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "int tcgen_answer(void) { return ANSWER; }"
    monkeypatch.setenv("TCGEN_CFLAGS", "-O1 -DANSWER=41")
    (library,) = build.build_libraries([build.Source(text)])
    assert library.tcgen_answer() == 41
    monkeypatch.setenv("TCGEN_CFLAGS", "-O1 '-DANSWER=(40 + 2)'")
    (library,) = build.build_libraries([build.Source(text)])
    assert library.tcgen_answer() == 42
    flags = build.Source(text).flags(compiler.probe_compiler())
    assert flags[0] == "-O3"
    assert flags[-2:] == ("-O1", "-DANSWER=(40 + 2)")
    monkeypatch.setenv("TCGEN_CFLAGS", "'")
    with pytest.raises(BuildError, match=mentions("TCGEN_CFLAGS quotation")):
        build.build_libraries([build.Source(text)])
