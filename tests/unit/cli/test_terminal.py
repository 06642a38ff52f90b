"""Output on terminals: numbers stay whole, and options stand before or after the command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import invoke
from support.marks import slow
from support.paths import ROOT

if sys.platform != "win32":
    import fcntl
    import pty
    import struct
    import termios

SPEC = """space o = 30
space v = 300
index i j : o
index a b c d : v
input v_vvvv[v,v,v,v], t2[o,o,v,v], long_name_of_an_array[o,o,v,v]
output r2, e
r2[i,j,a,b] = v_vvvv[a,c,b,d]*t2[i,j,c,d] + long_name_of_an_array[i,j,a,b]
e = r2[i,j,a,b]*t2[i,j,a,b]
"""
NUMBER = re.compile(r"[0-9]{1,3}(?:,[0-9]+)+")


def shown(width: int, *arguments: object) -> str:
    """The output of a command in a terminal of a width, without colours."""
    return _on_terminal(width, "stdout", *arguments)[0]


def _on_terminal(width: int, stream: str, *arguments: object) -> tuple[str, str]:
    """Output of a command to a stream that is a terminal, and to the other one, a pipe."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    streams: dict[str, int] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: theirs}
    with subprocess.Popen(
        [sys.executable, "-m", "tcgen", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
        env={**environment, "TERM": "xterm"},
        **streams,
    ) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                parts.append(os.read(ours, 65536))
            except OSError:  # the command has ended
                break
            if not parts[-1]:
                break
        pipe = process.stderr if stream == "stdout" else process.stdout
        assert pipe is not None
        other = pipe.read().decode()
    os.close(ours)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(parts).decode()).replace("\r", "")
    return plain, other


@pytest.mark.few(2)
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_number_is_cut(width: int, tmp_path: Path) -> None:
    spec = tmp_path / "ladder.spec"
    spec.write_text(SPEC)
    invoke("compile", spec, "--target", "numpy", "-o", tmp_path / "out")
    report = json.loads(invoke("report", tmp_path / "out", "--json").output)
    text = shown(width, "report", tmp_path / "out")
    assert all(len(line) <= width for line in text.splitlines())
    numbers = {*report["operations"].values(), *report["memory"].values()}
    numbers |= {
        row[k] for row in report["arrays"] for k in ("elements", "elements_unfused", "bytes")
    }
    whole = {f"{n:,}" for n in numbers if isinstance(n, int)}
    for number in NUMBER.findall(text):
        assert number in whole, text
    for row in report["arrays"]:
        assert row["name"] in text
        assert f"{row['bytes']:,}" in text
    for key in ("naive", "sequence"):
        assert f"{report['operations'][key]:,}" in text


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("width", [60, *slow(80, 120)])
def test_lines_are_broken_between_words(width: int, tmp_path: Path) -> None:
    """A pipe gets whole lines; a terminal gets the same words in lines that fit."""
    spec = tmp_path / "ladder.spec"
    spec.write_text(SPEC)
    for command in (("explain", spec, "--target", "numpy"), ("list",)):
        piped = invoke(*command).stdout
        text = shown(width, *command)
        assert text.split() == piped.split()
        longest = max(len(word) for word in piped.split())
        assert all(len(line) <= max(width, longest + 8) for line in text.splitlines())
        for number in NUMBER.findall(piped):
            assert number in text


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("width", [60, *slow(80, 120)])
def test_compile_and_doctor_fit_the_terminal(width: int, tmp_path: Path) -> None:
    spec = tmp_path / "ladder.spec"
    spec.write_text(SPEC)
    text = shown(width, "compile", spec, "--target", "numpy", "-o", tmp_path / "out")
    table, _, wrote = text.partition("wrote ")
    assert wrote.strip() == f"{tmp_path / 'out'}/"
    assert all(len(line) <= width for line in table.splitlines())
    naive = json.loads(invoke("report", tmp_path / "out", "--json").output)["operations"]["naive"]
    assert f"{naive:,}" in text
    assert all(len(line) <= width for line in shown(width, "doctor").splitlines())


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("width", [60, 80, 120])
def test_solve_shows_whole_energies(width: int) -> None:
    """Columns are left out where they do not fit; no energy loses a digit or is broken."""
    pytest.importorskip("pyscf")
    command = ["solve", "lccsd_spin_orbital", "--atom", "Li 0 0 0; H 0 0 1.5957"]
    command += ["--basis", "sto-3g", "--target", "numpy", "--no-optimize"]
    text = shown(width, *command)
    assert all(len(line) <= width for line in text.splitlines()), text
    header, *rows = re.findall(r"^ *(?:cycle|[0-9]+) .*$", text, re.MULTILINE)
    columns = header.split()
    assert columns[:2] == ["cycle", "E(corr)"]
    assert ("seconds" in columns) == (width >= 80)
    assert len(rows) > 3
    for row in rows:
        cells = row.split()
        assert len(cells) == len(columns), row
        assert re.fullmatch(r"-?[0-9]+\.[0-9]{12}", cells[1]), row
    energies = dict(re.findall(r"^(E\([a-zA-Z]+\)) += +(-[0-9]+\.[0-9]{12})$", text, re.MULTILINE))
    assert list(energies) == ["E(HF)", "E(corr)", "E(total)"]
    assert rows[-1].split()[1] == energies["E(corr)"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("command", "doing", "printed"),
    [
        (
            ["solve", "mp2_closed_shell", "--atom", "H 0 0 0; H 0 0 1.4", "--basis", "sto-3g"],
            ["running the mean field", "making integrals"],
            "E(total)",
        ),
        (["run", "mp2_closed_shell", "-e", "o=2", "-e", "v=3"], ["compiling"], "time "),
    ],
)
def test_a_terminal_shows_what_is_done(command: list[str], doing: list[str], printed: str) -> None:
    """Texts on standard error; standard output, which may be a file, gets the results alone."""
    if command[0] == "solve":
        pytest.importorskip("pyscf")
    texts, results = _on_terminal(80, "stderr", *command, "--target", "numpy")
    assert all(text in texts for text in doing), texts
    assert printed in results
    assert not any(text in results for text in doing)
    assert "\x1b" not in results


def test_compile_shows_the_largest_arrays(tmp_path: Path) -> None:
    spec = tmp_path / "many.spec"
    names = [f"a{n}" for n in range(20)]
    inputs = ", ".join(f"{name}[o]" for name in names)
    terms = " + ".join(f"{name}[i]" for name in names)
    spec.write_text(f"space o = 3\nindex i : o\ninput {inputs}\noutput r\nr[i] = {terms}\n")
    text = invoke("compile", spec, "--target", "numpy", "-o", tmp_path / "out").output
    assert "and 11 smaller arrays" in text
    assert len([line for line in text.splitlines() if re.match(r"(a[0-9]+|r) ", line)]) == 10
    assert "a19" in invoke("report", tmp_path / "out").output


@pytest.mark.parametrize("where", ["before", "after"])
def test_quiet_and_verbose_stand_before_or_after_the_command(where: str, tmp_path: Path) -> None:
    spec = tmp_path / "ladder.spec"
    spec.write_text(SPEC)
    command = ["compile", spec, "--target", "numpy", "-o", tmp_path / "out"]
    for option, says in (("-q", False), ("--verbose", True)):
        result = invoke(*([option, *command] if where == "before" else [*command, option]))
        assert result.exit_code == 0
        assert ("wrote" in result.stdout) == says
        assert ("program" in result.stderr) == says
    assert invoke("cache", "info", "-q").exit_code == 0
