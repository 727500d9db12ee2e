"""Whatever a job leaves behind is removed, and what cannot be removed holds up nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairway.live.local.agent import disposal
from fairway.live.local.agent.disposal import Disposal, remove_tree


def _nested(directory: Path, depth: int) -> None:
    directory.mkdir()
    here = os.open(directory, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d" * 40, dir_fd=here)
        inner = os.open("d" * 40, os.O_RDONLY, dir_fd=here)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=inner))
        os.close(here)
        here = inner
    os.close(here)


def test_directories_nested_deeper_than_a_path_can_name_are_removed(tmp_path: Path) -> None:
    _nested(tmp_path / "deep", 1500)
    remove_tree(tmp_path / "deep")
    assert list(tmp_path.iterdir()) == []


def test_links_are_removed_and_what_they_lead_to_is_not(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("precious")
    gone = tmp_path / "gone"
    (gone / "inner").mkdir(parents=True)
    for directory in (gone, gone / "inner"):
        (directory / "link").symlink_to(kept)
        (directory / "to-file").symlink_to(kept / "file")
        os.link(kept / "file", directory / "hard")
        os.mkfifo(directory / "fifo")
    (gone / "inner").chmod(0)
    remove_tree(gone)
    (tmp_path / "itself").symlink_to(kept)
    remove_tree(tmp_path / "itself")
    remove_tree(tmp_path / "none")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").read_text() == "precious"


def test_one_that_cannot_be_removed_is_no_reason_to_keep_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def remove(directory: Path) -> None:
        if "first" in directory.name:
            raise RecursionError
        remove_tree(directory)

    monkeypatch.setattr(disposal, "remove_tree", remove)
    bin_ = Disposal()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        bin_.remove(tmp_path / name)
    bin_.finish(30.0)
    assert [path.name.partition("-")[0] for path in tmp_path.iterdir()] == [".gone"]
    assert "cannot be removed" in caplog.text
