"""What a built library is: its symbols, what it needs, how it is found, and how it behaves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.native_library import (
    NAME,
    SMALL,
    built,
    compiled,
    load,
    needs_cmake,
    needs_fortran,
    run,
    write_library,
)
from tcgen.compiler.driver import read_system
from tcgen.options import Options
from tcgen.resources import shipped_specs
from tcgen.runtime.cpu.blas import ROUTINES
from tcgen.testing import random_arrays, split_starts

pytestmark = [needs_cmake, pytest.mark.slow]

CALLERS = Path(__file__).parent / "callers"
EXTENTS = {"o": 4, "v": 9}
CONSUMER = """
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES {language})
{find}
add_executable(consumer {source})
target_link_libraries(consumer PRIVATE {target})
"""
MAINS = {
    "C": ("main.c", "#include <lib.h>\nint main(void) { return lib_build() < 0; }\n"),
    "CXX": (
        "main.cpp",
        "#include <lib.hpp>\nint main() { return lib::small({1, 1}).parts() != 1; }\n",
    ),
    "Fortran": (
        "main.f90",
        "program main\nuse lib\nif (small_parts(small_extents(1, 1)) /= 1) stop 1\nend program\n",
    ),
}


def small(folder: Path, name: str = NAME, **more: Any) -> Any:
    """Write the library of the program small."""
    spec = folder / "small.spec"
    folder.mkdir(exist_ok=True)
    spec.write_text(SMALL)
    found = [compiled(tcgen.read_spec_file(spec), Options(extents=tuple(EXTENTS.items())))]
    return write_library(folder / name, found, name=name, **more)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    small(folder)
    fortran = "ON" if shutil.which("gfortran") else "OFF"
    return built(folder / NAME, f"-D{NAME}_FORTRAN={fortran}", install=True)


def test_symbols_and_needed_libraries(shared: Path) -> None:
    file = shared / "lib" / f"lib{NAME}.so"
    ends = ["_bind", "_call", "_parts", "_plan", "_plan_bytes", "_state_bytes", "_workspace_bytes"]
    interface = {f"{NAME}_small{end}" for end in ("", *ends)} | {f"{NAME}_build", f"{NAME}_message"}
    defined = run("nm", "-D", "--defined-only", file).split()[2::3]
    assert set(defined) == interface
    needed = set(re.findall(r"NEEDED.*\[(\w+)", run("readelf", "-d", file)))
    assert needed <= {"libm", "libgomp", "libomp", "libc", "ld"}  # ld: of thread-local data


def test_symbols_of_a_static_library_have_the_prefix(tmp_path: Path) -> None:
    """So two libraries can be linked, though an archive has no hidden symbols."""
    small(tmp_path)
    build = built(tmp_path / NAME, "-DBUILD_SHARED_LIBS=OFF")
    text = run("nm", "-g", "--defined-only", build / f"lib{NAME}.a")
    symbols = re.findall(r"^[0-9a-f]+ \w (\w+)$", text, re.MULTILINE)
    assert symbols
    assert {s for s in symbols if not s.startswith(f"{NAME}_")} == set()


@pytest.mark.parametrize("kind", ["shared", "static"])
@pytest.mark.parametrize("language", ["C", "CXX", pytest.param("Fortran", marks=needs_fortran)])
def test_a_project_of_one_language_finds_it(language: str, kind: str, tmp_path: Path) -> None:
    """By find_package, by add_subdirectory, and, but in Fortran, by pkg-config."""
    small(tmp_path)
    fortran = language == "Fortran"
    settings = [f"-D{NAME}_FORTRAN={'ON' if fortran else 'OFF'}"]
    settings.append(f"-DBUILD_SHARED_LIBS={'ON' if kind == 'shared' else 'OFF'}")
    prefix = built(tmp_path / NAME, *settings, install=True)
    file, text = MAINS[language]
    target = f"{NAME}::{NAME}{'_fortran' if fortran else ''}"
    finds = {"found": f"find_package({NAME} REQUIRED)", "inside": f"add_subdirectory(../{NAME} in)"}
    for name, find in finds.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / file).write_text(text)
        if language == "CXX":
            find = f"set(CMAKE_CXX_STANDARD 20)\n{find}"
        values = {"language": language, "find": find, "source": file, "target": target}
        (folder / "CMakeLists.txt").write_text(CONSUMER.format(**values))
        build = folder / "build"
        run("cmake", "-S", folder, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", *settings)
        run("cmake", "--build", build, "-j2")
        run(build / "consumer")
    if fortran or shutil.which("pkg-config") is None:
        return
    flags = run("pkg-config", "--cflags", "--libs", prefix / "lib" / "pkgconfig" / f"{NAME}.pc")
    compiler = ["gcc", "-std=c99"] if language == "C" else ["g++", "-std=c++20"]
    rpath = f"-Wl,-rpath,{prefix / 'lib'}"
    program = tmp_path / "program"
    run(*compiler, tmp_path / "found" / file, *flags.split(), rpath, "-o", program)
    run(program)
    if language == "CXX":
        older = [
            "g++",
            "-std=c++17",
            "-Wfatal-errors",
            "-c",
            tmp_path / "found" / file,
            *flags.split(),
        ]
        with pytest.raises(AssertionError, match=f"{NAME}.hpp needs C\\+\\+20"):
            run(*older, "-o", tmp_path / "older.o")


@needs_fortran
@pytest.mark.skipif(shutil.which("meson") is None, reason="meson is not installed")
@pytest.mark.parametrize("kind", ["shared", "static"])
def test_meson_finds_it(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By pkg-config, in three languages; the module is compiled from the source beside it."""
    small(tmp_path)
    shared = "ON" if kind == "shared" else "OFF"
    prefix = built(tmp_path / NAME, f"-DBUILD_SHARED_LIBS={shared}", install=True)
    lines = [
        "project('consumer', 'c', 'cpp', 'fortran', default_options: ['cpp_std=c++20'])",
        f"found = dependency('{NAME}')",
    ]
    for language, (file, text) in MAINS.items():
        (tmp_path / file).write_text(text)
        module = ", found.get_variable('fortran_source')" if language == "Fortran" else ""
        lines.append(f"executable('{language}', '{file}'{module}, dependencies: found)")
    (tmp_path / "meson.build").write_text("\n".join([*lines, ""]))
    monkeypatch.setenv("PKG_CONFIG_PATH", str(prefix / "lib" / "pkgconfig"))
    run("meson", "setup", tmp_path / "build", tmp_path)
    run("meson", "compile", "-C", tmp_path / "build")
    for language in MAINS:
        run(tmp_path / "build" / language)


@pytest.mark.parametrize("tool", ["plain", "sanitizers", "valgrind"])
def test_calls_of_two_libraries(tool: str, tmp_path: Path) -> None:
    """One executable, four host threads on one state, no growth of the heap, no finding."""
    if tool == "valgrind" and shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    # valgrind 3.19 has no AVX-512.
    archs = ("x86-64-v3",) if tool == "valgrind" else ("native",)
    flags = "-O1 -g"
    if tool == "sanitizers":
        flags += " -fsanitize=address,undefined -fno-sanitize-recover=all"
    files = []
    for name in (NAME, "twin"):
        small(tmp_path, name, archs=archs)
        settings = ["-DBUILD_SHARED_LIBS=OFF", f"-D{name}_CFLAGS={flags}"]
        # libgomp's own threads leave memory that valgrind counts: one thread there.
        settings.append(f"-D{name}_OPENMP={'OFF' if tool == 'valgrind' else 'ON'}")
        build = built(tmp_path / name, *settings, name=name)
        files += [f"-I{tmp_path / name / 'include'}", build / f"lib{name}.a"]
    program = tmp_path / "program"
    source, libraries = CALLERS / "many_calls.c", ["-fopenmp", "-lm", "-pthread"]
    run("gcc", *flags.split(), "-D_GNU_SOURCE", source, *files, *libraries, "-o", program)
    if tool == "valgrind":
        run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", program)
    else:
        printed = run(program)
        assert tool == "sanitizers" or printed == "0 bytes\n"


CONTRACTION = """
space o = 9
space v = 21
index i j k : o
index a b c : v
input x[o,v,o,v], y[v,o,o,v]
output r
r[a,i,b,j] = x[i,a,k,c]*y[c,j,k,b]
"""


def test_levels_of_processors_agree(tmp_path: Path) -> None:
    """A library for two levels chooses one that runs here; products are equal to the bit."""
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("the processor has no AVX2")
    (tmp_path / "product.spec").write_text(CONTRACTION)
    product = tcgen.read_spec_file(tmp_path / "product.spec")
    extents = {"mp2_df": {"o": 4, "v": 30, "x": 70}, "product": {"o": 9, "v": 21}}
    systems = {"mp2_df": read_system(shipped_specs()["mp2_df"]), "product": product}
    found = [
        compiled(system, Options(extents=tuple(extents[name].items())))
        for name, system in systems.items()
    ]
    assert any(k.contractions for k in found[1][0].manifest.kernels)
    results: list[dict[str, Any]] = []
    for number, archs in enumerate((("native",), ("x86-64-v3",), ("x86-64-v4", "x86-64-v3"))):
        folder = tmp_path / str(number)
        results.append({})
        for name, called in load(folder, write_library(folder, found, archs=archs)).items():
            arrays = random_arrays(systems[name], extents[name], seed=1)
            status, made = called.call(extents[name], arrays, blas=None)
            assert status == 0, called.text()
            results[-1][name] = made
    native, *others = results
    for other in others:
        np.testing.assert_array_equal(other["product"]["r"], native["product"]["r"])
        for name, array in native["mp2_df"].items():
            np.testing.assert_allclose(other["mp2_df"][name], array, rtol=1e-14)


def test_natural_order_of_fortran(tmp_path: Path) -> None:
    """t2(i,j,a,b): arrays with reversed axes give the results of C order."""
    system = read_system(shipped_specs()["mp2_closed_shell"])
    extents = {"o": 3, "v": 5}
    options = Options(extents=tuple(extents.items()))
    inputs, _ = split_starts(system, random_arrays(system, extents, seed=1))
    expected = tcgen.compile(system, extents=extents)(**inputs)
    found = [compiled(system, options, fortran_order=True)]
    (called,) = load(tmp_path / "one", write_library(tmp_path / "one", found)).values()
    reversed_ = {name: np.ascontiguousarray(a.transpose()) for name, a in inputs.items()}
    status, made = called.call(extents, reversed_)
    assert status == 0, called.text()
    np.testing.assert_allclose(made["e"], expected["e"], rtol=1e-14)
    assert "g(n%o, n%v, n%o, n%v)" in (tmp_path / "one" / "fortran" / f"{NAME}.f90").read_text()


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
def test_clang_builds_it(tmp_path: Path) -> None:
    programs = small(tmp_path)
    (called,) = load(tmp_path / NAME, programs, "-DCMAKE_C_COMPILER=clang").values()
    system = tcgen.read_spec(SMALL)
    inputs, starts = split_starts(system, random_arrays(system, EXTENTS, seed=1))
    expected = called.python(**inputs, out={n: a.copy() for n, a in starts.items()})
    status, made = called.call(EXTENTS, inputs, starts, threads=2)
    assert status == 0, called.text()
    for name, array in expected.items():
        np.testing.assert_allclose(made[name], array, rtol=1e-12, atol=1e-12)


PRODUCTS = """
space o = 90
space v = 110
index i j : o
index a : v
input x[o,v], y[v,o], w[v]
output m, s
m[i,j] = x[i,a]*y[a,j]
s[i] = x[i,a]*w[a]
"""
"""Products that a BLAS computes: of two matrices, and of a matrix and a vector."""


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize(("integers", "library"), [("LP64", "openblas"), ("ILP64", "openblas64")])
def test_a_linked_blas(integers: str, library: str, dtype: str, tmp_path: Path) -> None:
    """Both kinds of integers give NumPy's products, in other bits than loops of the program."""
    probe = ["cc", "-shared", f"-l{library}", "-o", tmp_path / "probe.so", "-xc", os.devnull]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip(f"{library} is not installed")
    system, extents = tcgen.read_spec(PRODUCTS), {"o": 90, "v": 110}
    found = [compiled(system, Options(extents=tuple(extents.items()), dtype=dtype))]
    programs = write_library(tmp_path / "one", found)
    (called,) = load(tmp_path / "one", programs, f"-D{NAME}_BLAS={integers}").values()
    linked = run("readelf", "-d", tmp_path / "one-build" / f"lib{NAME}.so")
    assert f"[lib{library}.so" in linked
    arrays = random_arrays(system, extents, dtype=dtype, seed=1)
    x, y, w = (arrays[name] for name in "xyw")
    (status, made), (no_status, loops) = (
        called.call(extents, arrays, blas=blas) for blas in (None, [None] * len(ROUTINES))
    )
    assert status == no_status == 0, called.text()
    tolerance = 100 * np.finfo(dtype).eps
    for name, array in (("m", x @ y), ("s", x @ w)):
        np.testing.assert_allclose(made[name], array, atol=tolerance * abs(array).max())
    assert any(not np.array_equal(made[name], loops[name]) for name in made)


def test_equal_sources_give_equal_files(tmp_path: Path) -> None:
    code = "import sys, tcgen; tcgen.library(['mp2_df'], sys.argv[1], name='mp')"
    texts = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        run("env", f"PYTHONHASHSEED={seed}", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}",
            sys.executable, "-c", code, folder)  # fmt: skip
        files = sorted(p for p in folder.rglob("*") if p.is_file())
        texts.append({p.relative_to(folder): p.read_bytes() for p in files})
    assert texts[0] == texts[1]
