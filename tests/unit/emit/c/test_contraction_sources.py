"""The C files of the contraction kernel: each compiles alone, and they run where no Python does."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.paths import ROOT
from tcgen.emit.c.contraction import contraction_library
from tcgen.emit.c.targets import TARGETS, sizes_header, target_header

KERNEL = ROOT / "templates" / "c" / "contract"
FILES = sorted(KERNEL.glob("*.[ch]"))
TYPES = {
    "s": ("-DTC_REAL=float",),
    "d": ("-DTC_REAL=double",),
    "z": ("-DTC_REAL=double", "-DTC_COMPLEX=1"),
}
WARNINGS = ("-Wall", "-Wextra", "-Werror")
X86_VECTORS = ("-mavx", "-mavx2 -mfma", "-mavx512f")


def on_x86() -> bool:
    """True if the compiler makes code for x86-64."""
    done = subprocess.run(["cc", "-dumpmachine"], capture_output=True, text=True)
    return done.stdout.startswith("x86_64")


@pytest.mark.few(3)
@pytest.mark.parametrize("vectors", ["", *X86_VECTORS])
@pytest.mark.parametrize("kind", TYPES)
def test_each_file_compiles_alone(kind: str, vectors: str) -> None:
    if vectors and not on_x86():
        pytest.skip(f"{vectors} is for x86")
    options = [*TYPES[kind], *WARNINGS, *vectors.split(), "-fsyntax-only", "-x", "c"]
    for path in FILES:
        subprocess.run(["cc", "-std=c11", *options, str(path)], check=True)


@pytest.mark.parametrize("part", ["blocks", "staged", "packed", "left", "right"])
def test_the_text_of_an_artifact_compiles(part: str, tmp_path: Path) -> None:
    """It includes no file of its own, and has no place of a template left."""
    text = contraction_library(part, "float64", "0")
    assert '#include "' not in text
    assert "$" not in text
    path = tmp_path / "part.c"
    path.write_text(text)
    subprocess.run(["cc", "-std=c11", *WARNINGS, "-fsyntax-only", str(path)], check=True)


def test_the_headers_of_the_table_are_up_to_date() -> None:
    """``python -m tcgen.emit.c.targets`` writes them."""
    assert (KERNEL / "target.h").read_text() == target_header()
    assert (KERNEL / "sizes.h").read_text() == sizes_header()


@pytest.mark.parametrize(
    ("cpu", "flags", "name"),
    [
        ((1, 6, 207), "-mavx512f", "Intel, AVX-512"),
        ((1, 6, 85), "-mavx512f", "Intel, AVX-512"),
        ((1, 6, 207), "-mavx", "Intel, AVX"),
        ((2, 25, 17), "-mavx512f", "Zen 4"),
        ((2, 25, 97), "-mavx", "Zen 4, AVX"),
        ((2, 25, 33), "-mavx", "generic, AVX"),
        ((2, 26, 2), "-mavx512f", "generic, AVX-512"),
        ((0, 0, 0), "-mavx512f", "generic, AVX-512"),
        ((0, 0, 0), "-mavx", "generic, AVX"),
        ((0, 0, 0), "-mno-avx", "generic"),
    ],
)
def test_a_processor_gets_its_row(
    cpu: tuple[int, int, int], flags: str, name: str, tmp_path: Path
) -> None:
    if not on_x86():
        pytest.skip("rows of x86 are for its compilers")
    path = tmp_path / "row.c"
    path.write_text('#include "target.h"\nrow TC_TARGET\n')
    given = zip(("VENDOR", "FAMILY", "MODEL"), cpu, strict=True)
    told = [f"-DTC_CPU_{field}={value}" for field, value in given]
    done = subprocess.run(
        ["cc", "-E", "-P", f"-I{KERNEL}", *told, flags, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert TARGETS[int(done.stdout.split()[-1])].name == name


def run_driver(compiler: list[str], kind: str, folder: Path, emulator: tuple[str, ...] = ()) -> str:
    """Build the random contractions of one element type, and run them."""
    command = [*compiler, "-std=c11", "-O1", *TYPES[kind], f"-I{KERNEL}", "-c"]
    calls = [str(ROOT / "tests/data/contraction_driver.c"), str(KERNEL / "driver.c")]
    made = f"-Dtc_made_{kind}=tc_made_"
    reads = {"packed": ("TC_PACKED", "TC_PACKED")}
    if kind != "z":
        calls.append(str(KERNEL / "staged.c"))
        reads |= {"left": ("TC_IN_PLACE", "TC_PACKED"), "right": ("TC_PACKED", "TC_IN_PLACE")}
    objects = []
    for source in calls:
        objects.append(folder / f"{Path(source).stem}.o")
        subprocess.run([*command, "-fcommon", source, "-o", str(objects[-1])], check=True)
    for name, (a, b) in reads.items():
        objects.append(folder / f"{name}.o")
        defined = [f"{made}{name}", f"-DTC_READ_A={a}", f"-DTC_READ_B={b}"]
        kernel = str(KERNEL / "ukernel.c")
        subprocess.run([*command, *defined, kernel, "-o", str(objects[-1])], check=True)
    program = folder / "contractions"
    subprocess.run([*compiler, *map(str, objects), "-o", str(program), "-lm"], check=True)
    done = subprocess.run([*emulator, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["d", "s", "z"])
def test_contractions_have_no_undefined_behaviour(kind: str, tmp_path: Path) -> None:
    checks = ["-fsanitize=undefined,address", "-fno-sanitize-recover=all", "-march=native"]
    printed = run_driver(["cc", *checks], kind, tmp_path)
    assert (kind == "z") == printed.endswith(" 0 staged\n")


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_contractions_of_aarch64(kind: str, tmp_path: Path) -> None:
    compiler = "aarch64-linux-gnu-gcc"
    emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if emulator is None or shutil.which(compiler) is None:
        pytest.skip("qemu-user and gcc-aarch64-linux-gnu are not installed")
    run_driver([compiler, "-static", *WARNINGS], kind, tmp_path, (emulator,))
