"""Objects in a cache that others can change, or that cannot be used."""

from __future__ import annotations

import ctypes
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from support.bad_folders import FAULTS, give_away, noexec
from support.messages import mentions
from tcgen.cache_files import write_bytes
from tcgen.errors import CacheWarning, TcgenError, UnavailableError
from tcgen.runtime.cpu import build, object_cache, private_folder, toolchain

SOURCE = "int tcgen_answer(void) { return 42; }\n"
PLANTED = "int tcgen_answer(void) { return 666; }\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path / "cache"))
    toolchain.probe_compiler()
    return tmp_path / "cache"


def answer(source: str = SOURCE) -> int:
    found: int = build.build_libraries([build.Source(source)])[0].tcgen_answer()
    return found


def plant(cache: Path) -> Path:
    """An object with the name that SOURCE has, and other contents."""
    compiler = toolchain.probe_compiler()
    key = build._key(build.Source(SOURCE), compiler)
    content = toolchain.compile_source(compiler.command, (), PLANTED, "planted")
    path = cache / "objects" / f"{key}-{object_cache._digest(content)}.so"
    write_bytes(path, content)
    return path


def test_an_object_of_the_user_is_loaded_by_its_name(cache: Path) -> None:
    plant(cache)  # so that the next tests show something
    assert answer() == 666


@pytest.mark.parametrize("bits", [0o620, 0o602])
def test_an_object_that_others_may_write_is_not_loaded(cache: Path, bits: int) -> None:
    plant(cache).chmod(bits)
    assert answer() == 42


def test_an_object_of_another_user_is_not_loaded(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_away(monkeypatch, plant(cache))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)  # without root, the folder is another's too
        assert answer() == 42


def test_a_link_to_an_object_is_not_loaded(cache: Path, tmp_path: Path) -> None:
    path = plant(cache)
    shutil.move(path, tmp_path / "elsewhere.so")
    path.symlink_to(tmp_path / "elsewhere.so")
    assert answer() == 42


@pytest.mark.parametrize("up", [0, 1])
def test_a_folder_that_others_may_write_is_left_alone(cache: Path, up: int) -> None:
    planted = plant(cache)
    folder = (cache / "objects", cache)[up]
    folder.chmod(0o777)
    with pytest.warns(CacheWarning, match=mentions(f"{cache} chmod go-w TCGEN_CACHE_DIR")):
        assert answer() == 42
    assert answer() == 42  # no second warning
    assert list((cache / "objects").glob("*.so")) == [planted]


@pytest.mark.parametrize("name", FAULTS)
def test_a_cache_that_cannot_be_used_costs_one_warning(
    name: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FAULTS[name](monkeypatch, cache)
    with pytest.warns(CacheWarning, match=mentions(f"{cache} temporary TCGEN_CACHE_DIR")) as caught:
        assert answer() == 42
    assert len(caught) == 1
    compiled = toolchain.compile_source
    monkeypatch.setattr(build, "compile_source", lambda *_: pytest.fail("compiled again"))
    assert answer() == 42
    monkeypatch.setattr(build, "compile_source", compiled)
    assert answer(SOURCE.replace("42", "43")) == 43


@pytest.mark.parametrize("name", FAULTS)
def test_a_cache_that_cannot_be_used_is_an_error_where_warnings_are(
    name: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FAULTS[name](monkeypatch, cache)
    with pytest.raises(UnavailableError, match=mentions(f"{cache} TCGEN_CACHE_DIR")) as caught:
        answer()
    assert caught.value.exit_code == 3


def test_where_no_folder_can_be_used_both_are_named(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noexec(monkeypatch, tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(private_folder._Process, "objects", None)
    with pytest.raises(UnavailableError, match=mentions(f"{cache} temporary segment")):
        answer()


def test_an_object_in_a_cache_that_is_only_read_is_loaded(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answer() == 42
    FAULTS["unwritable"](monkeypatch, cache)
    assert answer() == 42


def test_an_object_that_cannot_be_loaded_is_not_removed(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answer() == 42
    (path,) = (cache / "objects").glob("*.so")
    noexec(monkeypatch, cache)
    with pytest.warns(CacheWarning):
        assert answer() == 42
    assert path.is_file()


def test_clear_removes_answers_of_compilers_and_logs(cache: Path) -> None:
    toolchain._probe.cache_clear()
    toolchain.probe_compiler()
    answer()
    with pytest.raises(TcgenError):
        answer("int x = ")
    assert object_cache.cache_clear() == 1
    assert [p for p in cache.rglob("*") if p.is_file()] == []


@pytest.mark.usefixtures("cache")
def test_a_clear_between_storing_and_loading_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    load: Callable[[str], ctypes.CDLL] = ctypes.CDLL
    cleared: list[str] = []

    def first_cleared(name: str) -> ctypes.CDLL:
        if not cleared:
            cleared.append(name)
            Path(name).unlink()
        return load(name)

    monkeypatch.setattr(ctypes, "CDLL", first_cleared)
    assert answer() == 42
    assert len(cleared) == 1


def test_objects_are_the_users_alone(cache: Path) -> None:
    answer()
    (path,) = (cache / "objects").glob("*.so")
    modes = [p.stat().st_mode & 0o777 for p in (cache, cache / "objects", path)]
    assert modes == [0o700, 0o700, 0o600]
