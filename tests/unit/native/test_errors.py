"""Each status of a call, provoked in C, C++ and Fortran; what cannot be in a library, and why."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import tcgen
from support.native_library import (
    NAME,
    built,
    compiled,
    needs_cmake,
    needs_fortran,
    run,
    write_library,
)
from support.paths import ROOT
from tcgen.errors import ArgumentError, ExtentError, TcgenError
from tcgen.options import Options
from tcgen.resources import template_text

CALLERS = Path(__file__).parent / "callers"
GUARDED = """
space o = 3
space v = 4
index i : o
index a b c : v
input t[o,v], g[v,v] symmetric (0,1) constant, h[v,v] constant
input b[v,v] generated
output y, z
k[a,b] = g[a,c]*h[c,b]
z[i,a] = t[i,b]*k[b,a] + t[i,b]*b[b,a]
y = z[i,a]*t[i,a]
"""
LIMIT = 100_000  # bytes of workspace of the program guarded
ONE = "space o = 3\nindex i : o\ninput x[o]\noutput y\ny = x[i]*x[i]\n"


def read(text: str, folder: Path, name: str) -> Any:
    (folder / f"{name}.spec").write_text(text)
    return tcgen.read_spec_file(folder / f"{name}.spec")


def written(folder: Path, **more: Any) -> Any:
    system = read(GUARDED, folder, "guarded")
    found = [compiled(system, Options(memory_limit=LIMIT))]
    return write_library(folder / "source", found, **more)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("errors")
    written(folder)
    fortran = "ON" if shutil.which("gfortran") else "OFF"
    return built(folder / "source", f"-D{NAME}_FORTRAN={fortran}", install=True)


def call(language: str, source: Path, prefix: Path, folder: Path, *arguments: str) -> list[str]:
    """The lines that a caller in one language prints."""
    run(
        *("cmake", "-S", CALLERS, "-B", folder, f"-DLANGUAGE={language}", f"-DSOURCE={source}"),
        *(f"-DLIBRARY={NAME}", f"-DCMAKE_PREFIX_PATH={prefix}"),
    )
    run("cmake", "--build", folder)
    return run(folder / "caller", *arguments).splitlines()


STATUSES = {
    "NULL": (1, "b is null"),
    "EXTENT": (2, "the extent o = -1 is negative"),
    "WORKSPACE": (3, "the workspace has 8 bytes and needs"),
    "ALIGNMENT": (4, "the workspace is not aligned to 16 bytes"),
    "OVERLAP": (5, "output z shares memory with t"),
    "SYMMETRY": (6, "input g breaks its declared symmetry"),
    "PART": (7, "the parts 0 to 1000 are not among its"),
    "SOURCE": (8, "the source of b returned 5"),
    "THREADS": (9, "-1 threads: give 1 to 4096"),
    "LIMIT": (10, f"the memory limit is {LIMIT}"),
    "PLAN": (11, "the plan is of another program"),
    "STOPPED": (12, "stopped"),
}


def compare(lines: list[str], changed: dict[str, str | None], last: list[str]) -> None:
    wanted = {name: f"{number} guarded: {text}" for name, (number, text) in STATUSES.items()}
    wanted |= changed
    texts = [*(text for text in wanted.values() if text is not None), *last]
    assert len(lines) == len(texts), "\n".join(lines)
    for line, text in zip(lines, texts, strict=True):
        number, _, words = text.partition(" ")
        assert line.startswith(f"{number} ") or line == number, (line, text)
        assert words.removeprefix("guarded: ") in line, (line, text)


def test_each_status_is_provoked_and_documented() -> None:
    """Those of the header, but two that need a library of another processor or build."""
    header = dict(re.findall(r"TCGEN_(\w+) = (\d+)", template_text("c/runtime/tcgen.h")))
    provoked = {"OK": "0", "PROCESSOR": "13", "MODULE": "14"}
    assert header == {name: str(number) for name, (number, _) in STATUSES.items()} | provoked
    page = (ROOT / "docs" / "native_interface.md").read_text()
    rows = re.findall(r"^\| `TCGEN_(\w+)` = (\d+) \| `(\w+)` \|", page, re.M)
    assert {name: number for name, number, _ in rows} == header
    module = dict(re.findall(r"\b(tcgen_\w+) = (\d+)\b", template_text("native/module.f90")))
    assert {name: number for _, number, name in rows} == module


@needs_cmake
@pytest.mark.slow
def test_statuses_in_c(installed: Path, tmp_path: Path) -> None:
    lines = call("C", CALLERS / "errors.c", installed, tmp_path)
    bound = ["3 the state has 0 bytes and needs", "1 the state is null"]
    compare(lines, {"NULL": "1 guarded: in is null"}, bound)


@needs_cmake
@pytest.mark.slow
def test_statuses_in_cpp(installed: Path, tmp_path: Path) -> None:
    lines = call("CXX", CALLERS / "errors.cpp", installed, tmp_path)
    size = "2 guarded: t has 5 elements, not 12"
    assert lines.pop(1) == size
    compare(lines, {"SOURCE": "8 no tile"}, [])


@needs_cmake
@needs_fortran
@pytest.mark.slow
def test_statuses_in_fortran(installed: Path, tmp_path: Path) -> None:
    lines = call("Fortran", CALLERS / "errors.f90", installed, tmp_path)
    assert lines.pop(0).strip() == "0"
    compare([line.strip() for line in lines], {}, ["0", "0"])


@needs_cmake
@pytest.mark.slow
def test_a_processor_without_kernels(tmp_path: Path) -> None:
    written(tmp_path)
    source = tmp_path / "source" / "src" / f"{NAME}.c"
    head = "static int tcr_processor(void)\n{\n"
    assert head in source.read_text()
    source.write_text(source.read_text().replace(head, f"{head}    return -1;\n"))
    fortran = shutil.which("gfortran") is not None
    settings = f"-D{NAME}_FORTRAN={'ON' if fortran else 'OFF'}"
    prefix = built(tmp_path / "source", settings, install=True)
    for language, end in (("C", "c"), ("CXX", "cpp"), *([("Fortran", "f90")] if fortran else [])):
        (line,) = call(language, CALLERS / f"errors.{end}", prefix, tmp_path / language, "one")
        assert line.startswith("13 guarded: the library was built for other processors")


@needs_cmake
@needs_fortran
@pytest.mark.slow
def test_a_module_of_another_build(tmp_path: Path) -> None:
    written(tmp_path)
    module = tmp_path / "source" / "fortran" / f"{NAME}.f90"
    text, count = re.subn(r"(parameter :: build = )\d+", r"\g<1>1", module.read_text())
    assert count == 1
    module.write_text(text)
    prefix = built(tmp_path / "source", f"-D{NAME}_FORTRAN=ON", install=True)
    lines = call("Fortran", CALLERS / "errors.f90", prefix, tmp_path / "caller")
    assert {line.split()[0] for line in lines} == {"14"}
    assert all("different builds" in line for line in lines)


@needs_cmake
@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["compiler", "arch", "openmp", "blas", "integers"])
def test_a_compiler_that_cannot_build_it(wrong: str, tmp_path: Path) -> None:
    """The configuration fails and says why."""
    written(tmp_path, archs=("no-such-cpu",) if wrong == "arch" else ("native",))
    source = tmp_path / "source"
    settings = {
        "compiler": ["-Dlib_COMPILES=0"],
        "arch": [],
        "openmp": ["-DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON"],
        "blas": ["-Dlib_BLAS=ILP64", "-DCMAKE_DISABLE_FIND_PACKAGE_BLAS=ON"],
        "integers": ["-Dlib_BLAS=ON"],
    }[wrong]
    words = {
        "compiler": "set CMAKE_C_COMPILER to gcc or clang",
        "arch": "does not take -march=no-such-cpu",
        "openmp": "set -Dlib_OPENMP=OFF",
        "blas": "no BLAS of ILP64 is found",
        "integers": "set it to OFF, LP64 or ILP64",
    }[wrong]
    with pytest.raises(AssertionError) as failed:
        built(source, *settings)
    assert words in " ".join(str(failed.value).split())


@pytest.mark.parametrize(
    ("sources", "options", "words"),
    [
        (["mp2_df"], {"name": "1x"}, "name='1x'"),
        (["mp2_df"], {"prefix": "a-b"}, "prefix='a-b'"),
        (["mp2_df"], {"name": "class"}, "word of C"),
        (["mp2_df"], {"name": 3}, "name=3"),
        *[(["mp2_df"], {"name": n}, f"name={n!r} is that of") for n in ("math", "m", "all")],
        (["mp2_df"], {"name": "mp2_df"}, "give the library another"),
        (["mp2_df", "mp2_df"], {}, "two programs have the name mp2_df"),
        (["mp2_df"], {"archs": "native,x86-64-v3"}, "make one library of native"),
        (["mp2_df"], {"archs": ["x86-64-v3", "armv8-a"]}, "make one library of armv8-a"),
        (
            ["mp2_df"],
            {"archs": "bogus"},
            "there are native, x86-64-v4, x86-64-v3, x86-64-v2, x86-64",
        ),
        (["mp2_df"], {"archs": "-O3"}, "archs='-O3'"),
        (["mp2_df"], {"archs": ()}, "archs=''"),
        (["mp2_df"], {"archs": 3}, "archs='3'"),
        ([], {}, "needs a program"),
        ("mp2_df", {}, "write ['mp2_df']"),
        (3, {}, "sources=3 is not a list"),
        ([3], {}, "cannot read equations from a int"),
        (["mp2_df"], {"dtype": "float16"}, "float16"),
        (["mp2_df"], {"fortran_order": "no"}, "fortran_order='no' is neither True nor False"),
    ],
)
def test_names_and_options_are_checked(
    sources: Any, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    extents = {"o": 2, "v": 3, "x": 4}
    with pytest.raises(TcgenError) as raised:
        tcgen.library(sources, tmp_path / "made", extents=extents, objective="none", **options)
    assert words in str(raised.value)
    assert not (tmp_path / "made").exists()


def test_programs_that_cannot_be_in_a_library(tmp_path: Path) -> None:
    folder = tcgen.compile(ONE, target="numpy").save(tmp_path / "one")
    for sources, kind, words in (
        ([folder], ArgumentError, "compile it for the target cpu"),
        ([ONE.replace("y", "y" * 41)], ArgumentError, "more than 40 characters"),
    ):
        with pytest.raises(kind, match=words):
            tcgen.library(sources, tmp_path / "made")
    with pytest.raises(ExtentError, match="no spec has a base space q"):
        tcgen.library([ONE], tmp_path / "made", extents={"q": 2})
    with pytest.raises(ArgumentError, match="path=3 is not a path"):
        tcgen.library([ONE], 3)  # type: ignore[arg-type]
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "mine").write_text("")
    with pytest.raises(ArgumentError, match="not replaced"):
        tcgen.library([ONE], tmp_path / "made")
