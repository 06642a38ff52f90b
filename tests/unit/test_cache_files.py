"""Files of the cache: for this user alone, whole, and read only where nobody else could write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from support.bad_folders import give_away, unsearchable, unwritable
from support.messages import mentions
from tcgen.cache_files import (
    cache_folder,
    list_files,
    read_bytes,
    read_text,
    remove_files,
    write_bytes,
    write_text,
)
from tcgen.environment import cache_dir
from tcgen.errors import UnavailableError


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path / "cache"))
    return cache_folder("plans") / "a.json"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_folders_are_for_the_user_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        write_text(path, "text")
    finally:
        os.umask(before)
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o700, 0o700)
    assert read_text(path) == "text"
    assert list_files(path.parent, ".json") == (path,)
    assert list_files(path.parent, ".so") == list_files(cache_folder("times"), ".json") == ()
    remove_files((path, path))
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("bits", [stat.S_IWGRP, stat.S_IWOTH])
@pytest.mark.parametrize("up", [0, 1, 2])
def test_what_others_may_write_is_not_read(path: Path, bits: int, up: int) -> None:
    write_bytes(path, b"x")
    changed = (path, path.parent, path.parent.parent)[up]
    changed.chmod(mode(changed) | bits)
    with pytest.raises(PermissionError, match=mentions("other users write chmod go-w")):
        read_bytes(path)
    if up:
        with pytest.raises(PermissionError):
            write_bytes(path, b"y")


def test_a_cache_in_a_folder_like_tmp_is_read(path: Path) -> None:
    write_bytes(path, b"x")
    path.parent.parent.chmod(0o1777)
    assert read_bytes(path) == b"x"


@pytest.mark.parametrize("up", [0, 1, 2])
def test_what_belongs_to_others_is_not_read(
    path: Path, up: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bytes(path, b"x")
    give_away(monkeypatch, (path, path.parent, path.parent.parent)[up])
    with pytest.raises(PermissionError, match=mentions("belongs another user")):
        read_bytes(path)


def test_links_and_pipes_are_not_read(path: Path, tmp_path: Path) -> None:
    write_bytes(path, b"x")
    (tmp_path / "other").write_bytes(b"planted")
    link, pipe = path.with_name("b.json"), path.with_name("c.json")
    link.symlink_to(tmp_path / "other")
    os.mkfifo(pipe, 0o600)
    for planted in (link, pipe):
        with pytest.raises(OSError, match=r".") as caught:
            read_bytes(planted)
        assert not isinstance(caught.value, FileNotFoundError)


def test_folders_that_cannot_be_used_are_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bytes(path, b"x")
    unwritable(monkeypatch, path.parent.parent)
    write_text(path, "not written, and no error")
    with pytest.raises(UnavailableError, match=mentions(f"{path.parent} changed TCGEN_CACHE_DIR")):
        remove_files((path,))
    unsearchable(monkeypatch, path.parent.parent)
    with pytest.raises(UnavailableError, match=mentions(f"{path.parent} read TCGEN_CACHE_DIR")):
        list_files(path.parent, ".json")


def test_a_user_without_a_home_has_a_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TCGEN_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def homeless(_: object = None) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_dir() == tmp_path / f"tcgen-cache-{os.getuid()}"
