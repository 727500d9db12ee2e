"""Checkpoints at a URL: whatever is cut off at whichever moment, the last whole state that was sent is found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest

from fairway.live.job.checkpoint import Checkpoints
from fairway.live.job.stored_checkpoints import StoredCheckpoints, StoreProblemError

MEMORY = "memory://bucket/job"


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
    return MEMORY if request.param == "memory" else f"file://{tmp_path}/bucket/job"


def begun(url: str, directory: Path) -> StoredCheckpoints:
    """As a run that has brought its checkpoints."""
    StoredCheckpoints(url, directory).bring()
    return StoredCheckpoints(url, directory)


def files(directory: Path) -> dict[str, str]:
    found = (path for path in directory.rglob("*") if path.is_file() and not path.name.startswith(".fairway"))
    return {str(path.relative_to(directory)): path.read_text() for path in found}


def test_what_one_run_has_sent_the_next_one_finds_on_another_machine(url: str, tmp_path: Path) -> None:
    here = begun(url, tmp_path / "a")
    (tmp_path / "a" / "deep").mkdir()
    (tmp_path / "a" / "deep" / "model").write_text("weights")
    (tmp_path / "a" / "last").symlink_to("deep/model")
    assert here.send(at_rest=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "stale").write_text("of another time")
    assert "2 files were brought" in StoredCheckpoints(url, tmp_path / "b").bring()
    assert files(tmp_path / "b") == {"deep/model": "weights", "last": "weights"}
    assert (tmp_path / "b" / "last").is_symlink()


def test_what_goes_away_here_goes_away_there_and_nothing_else_is_kept(url: str, tmp_path: Path) -> None:
    here = begun(url, tmp_path / "a")
    for step in range(3):
        (tmp_path / "a" / f"step-{step}").write_text("x" * step)
        (tmp_path / "a" / f"step-{step - 1}").unlink(missing_ok=True)
        assert here.send(at_rest=True)
        assert not here.send(at_rest=True), "nothing has changed"
    begun(url, tmp_path / "b")
    assert files(tmp_path / "b") == {"step-2": "xx"}
    store, root = fsspec.core.url_to_fs(url)
    assert len(store.find(root)) == 2, "one object, and its manifest"


def test_a_directory_that_is_being_written_is_not_sent(url: str, tmp_path: Path) -> None:
    here = begun(url, tmp_path / "a")
    (tmp_path / "a" / "model").write_text("half")
    assert not here.send()
    (tmp_path / "a" / "model").write_text("half and half")
    assert not here.send()
    assert here.send(), "nothing has changed since the last look"


def test_a_file_that_changes_while_it_is_sent_is_not_sent_in_part(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = begun(url, tmp_path / "a")
    (tmp_path / "a" / "one").write_text("1")
    here.send(at_rest=True)
    (tmp_path / "a" / "two").write_text("2")
    send = here._files.put_file
    monkeypatch.setattr(
        here._files, "put_file", lambda *where: ((tmp_path / "a" / "three").write_text("3"), send(*where))
    )
    assert not here.send(at_rest=True)
    begun(url, tmp_path / "b")
    assert files(tmp_path / "b") == {"one": "1"}, "the state before is still there, whole"


class CutError(Exception):
    """The process is killed, or the network is gone."""


@pytest.mark.parametrize("cut_at", range(12))
def test_cut_off_at_any_call_the_state_is_that_before_or_that_after(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_at: int
) -> None:
    here = begun(url, tmp_path / "a")
    before = {f"old-{number}": str(number) for number in range(2)}
    after = {"old-0": "0", "new-1": "one", "new-2": "two"}
    for name, content in before.items():
        (tmp_path / "a" / name).write_text(content)
    here.send(at_rest=True)
    (tmp_path / "a" / "old-1").unlink()
    for name in ("new-1", "new-2"):
        (tmp_path / "a" / name).write_text(after[name])
    calls = []

    def counted(call: Callable[..., Any], torn: Callable[..., Any] | None = None) -> Callable[..., Any]:
        def made(*arguments: Any, **options: Any) -> Any:
            calls.append(call)
            if len(calls) > cut_at:
                if len(calls) == cut_at + 1 and torn is not None:
                    torn(*arguments)
                raise CutError
            return call(*arguments, **options)

        return made

    store = here._files
    pipe = store.pipe_file
    monkeypatch.setattr(store, "put_file", counted(store.put_file))
    monkeypatch.setattr(store, "pipe_file", counted(pipe, lambda path, content: pipe(path, content[:20])))
    monkeypatch.setattr(store, "rm_file", counted(store.rm_file))
    was_sent = True
    try:
        here.send(at_rest=True)
    except StoreProblemError:
        was_sent = False
    monkeypatch.undo()
    begun(url, tmp_path / "b")
    assert files(tmp_path / "b") in (before, after)
    if was_sent:
        assert files(tmp_path / "b") == after
    shutil.rmtree(tmp_path / "b")
    here.send(at_rest=True)
    begun(url, tmp_path / "b")
    assert files(tmp_path / "b") == after, "tried again, it is there"


def test_what_a_machine_could_not_send_it_still_has_when_the_job_comes_back(url: str, tmp_path: Path) -> None:
    here = begun(url, tmp_path / "a")
    (tmp_path / "a" / "model").write_text("1")
    here.send(at_rest=True)
    (tmp_path / "a" / "model").write_text("2, which was never sent")
    assert "the newest" in StoredCheckpoints(url, tmp_path / "a").bring()
    assert files(tmp_path / "a") == {"model": "2, which was never sent"}


def test_what_a_machine_has_is_old_once_another_has_sent_something(url: str, tmp_path: Path) -> None:
    begun(url, tmp_path / "a")
    (tmp_path / "a" / "model").write_text("of a")
    there = begun(url, tmp_path / "b")
    (tmp_path / "b" / "model").write_text("of b")
    there.send(at_rest=True)
    StoredCheckpoints(url, tmp_path / "a").bring()
    assert files(tmp_path / "a") == {"model": "of b"}


def test_a_late_run_does_not_write_over_a_newer_one(url: str, tmp_path: Path) -> None:
    late = begun(url, tmp_path / "a")
    (tmp_path / "a" / "model").write_text("late")
    newer = begun(url, tmp_path / "b")
    (tmp_path / "b" / "model").write_text("newer")
    newer.send(at_rest=True)
    with pytest.raises(StoreProblemError, match="another run has saved there since this one began"):
        late.send(at_rest=True)
    begun(url, tmp_path / "c")
    assert files(tmp_path / "c") == {"model": "newer"}


def test_checkpoints_of_the_library_go_on_elsewhere(url: str, tmp_path: Path) -> None:
    here = begun(url, tmp_path / "a")
    for step in (10, 20, 30):
        Checkpoints(tmp_path / "a").save(step, {"sum": step})
        here.send(at_rest=True)
    begun(url, tmp_path / "b")
    there = Checkpoints(tmp_path / "b")
    assert there.latest() == 30
    assert there.load(30) == {"sum": 30}


def test_a_store_that_cannot_be_read_is_said_in_one_line_and_leaves_what_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{tmp_path}/bucket"
    here = begun(url, tmp_path / "a")
    (tmp_path / "a" / "model").write_text("1")
    here.send(at_rest=True)
    (stored,) = (tmp_path / "bucket" / "objects").iterdir()
    stored.write_text("too long")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "kept").write_text("kept")
    with pytest.raises(StoreProblemError, match="model has 8 bytes, expected 1"):
        StoredCheckpoints(url, tmp_path / "b").bring()
    assert files(tmp_path / "b") == {"kept": "kept"}
    assert list((tmp_path / "b").iterdir()) == [tmp_path / "b" / "kept"]
    with pytest.raises(StoreProblemError, match="no-such"):
        StoredCheckpoints("no-such://bucket", tmp_path / "b")
