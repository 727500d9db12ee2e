"""Small files that are there whole or not at all: what is written, who sees it, and what waits for the disk."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from fairway.live import durable_file
from fairway.live.durable_file import create_json, read_json, replacing, write_json


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files and directories that were waited for until the disk had them."""
    names: list[str] = []
    monkeypatch.setattr(durable_file, "_sync", lambda path: names.append(path.name))
    return names


def test_a_file_takes_the_place_of_another_at_once_and_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_json(path, {"secret": 1})
    write_json(path, {"secret": "ä"})
    assert read_json(path) == {"secret": "ä"}
    assert json.loads(path.read_text(encoding="utf-8")) == {"secret": "ä"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


def test_the_content_and_then_the_name_wait_for_the_disk_unless_only_processes_are_to_see_it(
    tmp_path: Path, synced: list[str]
) -> None:
    write_json(tmp_path / "a.json", {})
    content, name = synced
    assert content.startswith(".a.json.")
    assert name == tmp_path.name
    synced.clear()
    assert create_json(tmp_path / "b.json", {})
    assert [each.startswith(".b.json.") for each in synced] == [True, False]
    assert synced[1] == tmp_path.name
    synced.clear()
    write_json(tmp_path / "a.json", {}, durable=False)
    assert create_json(tmp_path / "c.json", {}, durable=False)
    assert synced == []


def test_a_file_is_really_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[int] = []
    monkeypatch.setattr(durable_file.os, "fsync", waited.append)
    write_json(tmp_path / "a.json", {})
    assert len(waited) == 2


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_json(path, {"old": 1})

    def fail() -> None:
        with replacing(path) as part:
            part.write_text("half")
            assert read_json(path) == {"old": 1}, "not there before it is whole"
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        fail()
    assert read_json(path) == {"old": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


def test_of_several_that_make_a_file_the_first_one_does(tmp_path: Path) -> None:
    path = tmp_path / "claim.json"
    assert create_json(path, {"pid": 1}) is True
    assert create_json(path, {"pid": 2}) is False
    assert read_json(path) == {"pid": 1}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["claim.json"]
    (tmp_path / f".other.json.{durable_file.os.getpid()}.part").touch()
    assert create_json(tmp_path / "other.json", {"pid": 3}), "what a process left that died before does no harm"


@pytest.mark.parametrize("content", ["", "{", "[1]", '"x"', "nonsense", "[" * 200_000, "{}\0"])
def test_what_is_not_an_object_is_none(content: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    assert read_json(path) is None
    assert read_json(tmp_path / "nowhere.json") is None
