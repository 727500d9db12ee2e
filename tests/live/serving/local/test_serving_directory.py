"""The directory that an application is served from: whose it is, what is in it, and what is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairway.errors import InputError
from fairway.live.serving.local.serving_directory import ServingDirectory
from fairway.live.serving.supervise.settings import ServingSettings


def _settings(place: Path, memory: Path, workers: int = 2) -> ServingSettings:
    return ServingSettings("app", place, memory, workers=workers, has_planner=False)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _open_files() -> int:
    here = Path("/proc/self/fd")
    return len(list(here.iterdir())) if here.exists() else 0


def test_taking_it_makes_both_directories_for_the_user_alone(tmp_path: Path) -> None:
    settings = _settings(tmp_path / "deep" / "served", tmp_path / "fairway-memory")
    directory = ServingDirectory(settings)
    directory.take()
    assert _mode(settings.directory) == 0o700
    assert _mode(settings.memory_directory) == 0o700
    assert _mode(settings.directory / "lock") == 0o600
    directory.release()
    assert not settings.memory_directory.exists()


def test_one_supervisor_at_a_time_has_it(tmp_path: Path) -> None:
    first, second = (
        ServingDirectory(_settings(tmp_path / "served", tmp_path / f"fairway-{number}")) for number in range(2)
    )
    before = _open_files()
    first.take()
    for _ in range(3):
        with pytest.raises(InputError, match="in use by another 'fairway serve'"):
            second.take()
    assert not (tmp_path / "fairway-1").exists()
    first.release()
    second.take()
    second.release()
    second.release()  # once is enough
    assert _open_files() == before


def test_a_directory_that_was_not_taken_is_not_cleared(tmp_path: Path) -> None:
    settings = _settings(tmp_path / "served", tmp_path / "fairway-memory")
    settings.memory_directory.mkdir()
    ServingDirectory(settings).release()
    assert settings.memory_directory.exists()


def test_releasing_it_leaves_nothing_but_logs(tmp_path: Path) -> None:
    settings = _settings(tmp_path / "served", tmp_path / "fairway-memory")
    directory = ServingDirectory(settings)
    directory.take()
    for name in ("0.sock", "1.sock", "settings.json", "workflows.json", "worker-0.log"):
        (settings.directory / name).touch()
    directory.release()
    assert [path.name for path in settings.directory.iterdir()] == ["worker-0.log"]


@pytest.mark.parametrize(("name", "goes"), [("fairway-before", True), ("precious", False)])
def test_the_memory_of_one_that_died_is_removed_but_nothing_of_another_name(
    tmp_path: Path, name: str, goes: bool
) -> None:
    before = _settings(tmp_path / "served", tmp_path / name)
    before.directory.mkdir()
    before.memory_directory.mkdir()
    (before.memory_directory / "rows").touch()
    before.save(before.directory / "settings.json")
    directory = ServingDirectory(_settings(tmp_path / "served", tmp_path / "fairway-now"))
    directory.take()
    assert before.memory_directory.exists() is not goes
    directory.release()


def test_settings_that_cannot_be_read_do_not_matter(tmp_path: Path) -> None:
    settings = _settings(tmp_path / "served", tmp_path / "fairway-memory")
    settings.directory.mkdir()
    (settings.directory / "settings.json").write_text("{")
    directory = ServingDirectory(settings)
    directory.take()
    directory.release()


def test_names_of_sockets_may_have_107_bytes_and_no_more(tmp_path: Path) -> None:
    def longest(place: Path) -> int:
        settings = _settings(place, tmp_path / "fairway-memory", workers=11)
        return max(len(os.fsencode(settings.socket(number))) for number in settings.processes)

    short = Path("/" + "x")
    fits = Path("/" + "x" * (107 - longest(short) + 1))
    assert longest(fits) == 107
    ServingDirectory(_settings(fits, tmp_path / "fairway-memory", workers=11)).check()
    with pytest.raises(InputError, match="names of 108 bytes, at most 107 are possible"):
        ServingDirectory(_settings(Path(f"{fits}x"), tmp_path / "fairway-memory", workers=11)).check()
