"""The notebooks of the documentation run and print their stored output; pictures are small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.paths import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SECONDS = 600  # ends a notebook that hangs
# In a process of its own: packages of Jupyter warn, and warnings are errors here.
RUN = (
    "import nbclient, nbformat, sys; book = nbformat.read(sys.argv[1], as_version=4);"
    "nbclient.NotebookClient(book, kernel_name='python3').execute();"
    "nbformat.write(book, sys.argv[2])"
)


def printed(path: Path) -> list[str]:
    """Standard output of each cell of code."""
    cells: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return [
        "".join(
            "".join(output["text"])
            for output in cell["outputs"]
            if output["output_type"] == "stream" and output["name"] == "stdout"
        )
        for cell in cells
        if cell["cell_type"] == "code"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_its_stored_output(notebook: Path, tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    if "pyscf" in notebook.read_text():
        pytest.importorskip("pyscf")
    made = tmp_path / notebook.name
    command = [sys.executable, "-c", RUN, str(notebook), str(made)]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=SECONDS
    )
    assert result.returncode == 0, result.stderr
    assert printed(made) == printed(notebook)


def test_pictures_are_small() -> None:
    sizes = [path.stat().st_size for path in (ROOT / "docs" / "pictures").iterdir()]
    assert sizes
    assert max(sizes) < 150_000
    assert sum(sizes) < 1_000_000
