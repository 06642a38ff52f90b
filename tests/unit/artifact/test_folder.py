"""Artifacts on disk: complete, checked, deterministic, importable alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support import hand_modules as hand
from support.messages import mentions, says
from support.paths import ROOT
from tcgen.artifact.folder import Artifact
from tcgen.emit import emit_artifact
from tcgen.errors import ArgumentError, ArtifactError, UnavailableError, VerifyError
from tcgen.records.arena import Block, aligned, place
from tcgen.runtime.program import Program, load

EXTRA = (("report.json", '{"answer": 42}\n'), ("explain.txt", "all of it\n"))


def artifact(name: str = "energy", target: str = "cpu") -> Artifact:
    made = emit_artifact(hand.ALL[name](), target=target, planning_extents=(("o", 5), ("v", 7)))
    return made.with_files(EXTRA)


@pytest.mark.parametrize("name", hand.ALL)
@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_round_trip(name: str, target: str, tmp_path: Path) -> None:
    made = artifact(name, target)
    made.save(tmp_path / "a_tcgen")
    again = Artifact.load(tmp_path / "a_tcgen")
    assert again == made
    again.save(tmp_path / "a_tcgen")  # an artifact may be replaced
    assert Artifact.load(tmp_path / "a_tcgen") == made
    assert [p.name for p in tmp_path.iterdir()] == ["a_tcgen"]
    program = load(tmp_path / "a_tcgen")
    assert program.report == {"answer": 42}
    assert program.explain() == "all of it\n"


def test_with_files_and_limit() -> None:
    made = artifact().with_files((("explain.txt", "new"), ("a.txt", "b"))).with_memory_limit(5)
    assert made.text("explain.txt") == "new"
    assert made.manifest.memory_limit == 5
    with pytest.raises(ArtifactError, match=mentions("nothing.txt")):
        made.text("nothing.txt")


def test_saving_where_it_must_not_or_cannot(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("...")
    with pytest.raises(ArtifactError, match=mentions("tcgen artifact replaced")):
        artifact().save(precious)
    assert (precious / "thesis.tex").read_text() == "..."
    with pytest.raises(UnavailableError, match=mentions("folder write")) as caught:
        artifact().save(precious / "thesis.tex" / "a_tcgen")
    assert caught.value.exit_code == 3


def test_what_else_lies_in_the_folder_stays(tmp_path: Path) -> None:
    folder = artifact().save(tmp_path / "a_tcgen")
    (folder / "results" / "day").mkdir(parents=True)
    (folder / "results" / "day" / "energies.txt").write_text("-76.2")
    old = [path for path, _ in artifact().files]
    inside = next(folder / path for path in old if "/" in path).parent
    (inside / "notes.txt").write_text("mine")
    renamed = replace(artifact(), files=(("other.c", "int x;\n"),))
    renamed.save(folder)
    assert (folder / "results" / "day" / "energies.txt").read_text() == "-76.2"
    assert (inside / "notes.txt").read_text() == "mine"
    assert not any((folder / path).exists() for path in old)
    assert Artifact.load(folder) == renamed


def test_a_link_to_the_folder_stays_one(tmp_path: Path) -> None:
    made = artifact().save(tmp_path / "a_tcgen")
    (tmp_path / "link").symlink_to(made)
    artifact("phases").save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert Artifact.load(made) == artifact("phases")


def test_processes_may_save_the_same_folder_at_once(tmp_path: Path) -> None:
    artifact().save(tmp_path / "a_tcgen")
    code = (
        "from tcgen.artifact.folder import Artifact\n"
        f"made = Artifact.load({str(tmp_path / 'a_tcgen')!r})\n"
        "for _ in range(60):\n"
        f"    made.save({str(tmp_path / 'b_tcgen')!r})\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [w.communicate()[1] for w in workers] == [b"", b"", b""]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a_tcgen", "b_tcgen"]
    assert Artifact.load(tmp_path / "b_tcgen") == artifact()


def test_an_interrupted_save_keeps_the_older_artifact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact().save(tmp_path / "a_tcgen")
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise KeyboardInterrupt
        return rename(self, target)

    newer = artifact("phases")
    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        newer.save(tmp_path / "a_tcgen")
    monkeypatch.undo()
    assert Artifact.load(tmp_path / "a_tcgen") == artifact()
    assert [p.name for p in tmp_path.iterdir()] == ["a_tcgen"]


def test_damage_is_found(tmp_path: Path) -> None:
    folder = artifact().save(tmp_path / "a")
    manifest = folder / "manifest.json"
    text = manifest.read_text()

    def refused(match: str) -> None:
        with pytest.raises(ArtifactError, match=mentions(match)):
            Artifact.load(folder)

    source = (folder / "kernels.c").read_text()
    (folder / "kernels.c").write_text(source.replace("2.0", "3.0"))
    refused("kernels.c changed compile")
    (folder / "kernels.c").unlink()
    refused("kernels.c read")
    (folder / "kernels.c").write_text(source)
    for damage in (
        "",
        "{",
        "[]",
        "null",
        text[: len(text) // 2],
        text.replace("float64", "float32"),
    ):
        manifest.write_text(damage)
        refused("corrupted")
    data = json.loads(text)
    for schema, age in ((0, "older"), (99, "newer")):
        manifest.write_text(json.dumps({**data, "schema": schema}))
        refused(f"schema {schema} {age}")
    manifest.unlink()
    refused("artifact manifest.json")
    refused("folder compile")
    manifest.write_text(text)
    assert Artifact.load(folder) == artifact()


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_a_manifest_edited_by_hand_is_found_by_its_checksum(target: str, tmp_path: Path) -> None:
    """Every row and every header: one changed character is enough."""
    folder = artifact("generated", target).save(tmp_path / "a")
    manifest = folder / "manifest.json"
    lines = manifest.read_text().splitlines(keepends=True)
    rows = [n for n, line in enumerate(lines) if re.search("[0-9]", line)]
    for number in rows:
        changed = re.sub("[0-9]", lambda d: str(9 - int(d[0])), lines[number], count=1)
        manifest.write_text("".join([*lines[:number], changed, *lines[number + 1 :]]))
        with pytest.raises(ArtifactError, match=mentions("manifest.json compile")):
            Artifact.load(folder)
    assert len(rows) > 20
    data = json.loads("".join(lines))
    manifest.write_text(json.dumps(data, indent=3))  # only its layout differs
    assert Artifact.load(folder) == artifact("generated", target)


def test_an_artifact_of_an_older_version_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """Schema 7 wrote trees: its manifest does not have to be read to refuse it."""
    folder = artifact().save(tmp_path / "a")
    body = {"schema": 7, "files": {}, "manifest": {"name": "energy", "tensors": []}}
    (folder / "manifest.json").write_text(json.dumps({"tcgen": "0" * 64, **body}))
    with pytest.raises(ArtifactError) as caught:
        Artifact.load(folder)
    assert says(str(caught.value), "schema 7 older tcgen reads schema 8 compile the program again")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_an_artifact_alone_does_not_raise(target: str, tmp_path: Path) -> None:
    """NumPy and a compiler are enough: neither tcgen nor SciPy can be imported."""
    artifact("phases", target).save(tmp_path / "bound_tcgen")
    code = """
import sys
for name in ("tcgen", "scipy", "ortools", "lark", "sympy", "opt_einsum"):
    sys.modules[name] = None
import pickle
import numpy as np
import bound_tcgen
assert bound_tcgen.bound.__doc__ and "c(o, v) float64, constant" in bound_tcgen.__doc__
c, x = np.arange(6.0).reshape(2, 3), np.eye(2)
out = bound_tcgen.bound(c=c, x=x, out={"r": np.zeros((2, 2))})
assert np.allclose(out["y"], 2*c), out
assert np.allclose(out["m"], 2*c @ c.T)
again = pickle.loads(pickle.dumps(bound_tcgen.program.bind(c=c)))
assert np.allclose(again(x=x, out={"r": np.zeros((2, 2))})["y"], 2*c)
"""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, env=environment, check=True
    )


def test_a_reserved_name_as_an_argument_does_not_raise(tmp_path: Path) -> None:
    artifact("joined", "numpy").save(tmp_path / "joined_tcgen")
    code = (
        "import numpy as np, joined_tcgen\n"
        "assert joined_tcgen.joined(double=np.eye(12))['I'].sum() == 15.0"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_an_input_named_out_is_refused() -> None:
    module = hand.module(
        "m", (hand.tensor("out", hand.O), hand.output("y", hand.O)), (hand.Zero("y"),)
    )
    with pytest.raises(ArgumentError, match=mentions("rename input")):
        emit_artifact(module, target="cpu")
    with pytest.raises(ArgumentError, match=mentions("target 'gpu' cpu cuda numpy")):
        emit_artifact(hand.energy(), target="gpu")


def test_accumulation_in_the_constant_phase_is_refused() -> None:
    from dataclasses import replace

    module = hand.phases()
    wrong = replace(
        module,
        host_constant=(*module.host_constant, *module.host_volatile),
        host_volatile=(),
    )
    with pytest.raises(VerifyError, match=mentions("add r constant phase")):
        emit_artifact(wrong, target="numpy")


@pytest.mark.slow
def test_same_bytes_under_any_hash_seed(tmp_path: Path) -> None:
    code = (
        "import sys, hashlib\n"
        "sys.path.append('tests')\n"
        "from support import hand_modules as h\n"
        "from tcgen.emit import emit_artifact\n"
        "for f in h.ALL.values():\n"
        "    for t in ('cpu', 'numpy'):\n"
        "        a = emit_artifact(f(), target=t)\n"
        "        print(hashlib.sha256(repr((a.files, a.manifest_text())).encode()).hexdigest())\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(texts) == 1


def test_arena_never_overlaps_and_reuses() -> None:
    random = np.random.default_rng(3)
    for _ in range(200):
        blocks = []
        for n in range(int(random.integers(0, 9))):
            first, last = sorted(int(k) for k in random.integers(0, 6, 2))
            blocks.append(Block(f"b{n}", int(random.integers(0, 400)), first, last))
        layout = place(tuple(blocks))
        assert layout == place(tuple(blocks))
        starts = dict(layout.offsets)
        for n, one in enumerate(blocks):
            assert starts[one.name] % 64 == 0
            assert starts[one.name] + one.bytes <= layout.total
            for two in blocks[:n]:
                if one.first <= two.last and two.first <= one.last:
                    low, high = sorted((one, two), key=lambda b: starts[b.name])
                    apart = starts[low.name] + aligned(low.bytes) <= starts[high.name]
                    assert apart or 0 in (one.bytes, two.bytes)
        need = max(
            (sum(aligned(b.bytes) for b in blocks if b.first <= t <= b.last) for t in range(6)),
            default=0,
        )
        assert need <= layout.extent <= sum(aligned(b.bytes) for b in blocks)
        assert layout.total == layout.extent + (48 if layout.extent else 0)


def test_program_from_artifact_is_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_CC", "no-such-compiler")
    program = Program(artifact())
    assert "energy" in repr(program)
