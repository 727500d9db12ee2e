"""The files of a store are deleted, replaced or damaged: nothing that was acknowledged is lost without a word."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairway.errors import InputError
from fairway.store import Store, open_store
from fairway.store.errors import StoreError
from fairway.store.queries import list_jobs
from tests.store.making import submitted


def ids(store: Store) -> list[str]:
    return [job.id for job in store.read(list_jobs, newest_first=False).jobs]


def _delete(path: Path) -> None:
    path.unlink()


def _replace(path: Path) -> None:
    other = path.with_suffix(".other")
    shutil.copy(path, other)
    other.rename(path)


def _move_away(path: Path) -> None:
    path.rename(path.with_suffix(".away"))


@pytest.mark.parametrize("harm", [_delete, _replace, _move_away])
@pytest.mark.parametrize("name", ["fairway.db", "fairway.db-wal"])
def test_nothing_is_acknowledged_by_a_store_whose_files_are_gone(
    tmp_path: Path, name: str, harm: Callable[[Path], None]
) -> None:
    with open_store(tmp_path) as store:
        before = submitted(store, 3)
        store.check()
        harm(tmp_path / name)
        with pytest.raises(
            StoreError, match=rf"fairway\.db: '{name}' was .*; nothing more is accepted; all"
        ) as refused:
            submitted(store)
        assert "\n" not in str(refused.value)
        with pytest.raises(StoreError, match="nothing more is accepted"):
            store.check()
    copy = tmp_path / "fairway.db-rescued"
    for left in ("fairway.db", "fairway.db-wal", "fairway.db-shm"):
        (tmp_path / left).unlink(missing_ok=True)
    copy.rename(tmp_path / "fairway.db")
    with open_store(tmp_path) as store:
        assert ids(store) == before, "what the advice of the error leads to"
        submitted(store)


def test_a_directory_that_is_gone_leaves_nothing_to_save_to(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        submitted(store)
        shutil.rmtree(tmp_path / "store")
        with pytest.raises(StoreError, match="what it held could not be saved"):
            submitted(store)
    assert not (tmp_path / "store").exists()


def test_a_copy_that_was_saved_before_is_kept(tmp_path: Path) -> None:
    kept = tmp_path / "fairway.db-rescued"
    kept.write_text("of last time")
    with open_store(tmp_path) as store:
        submitted(store)
        (tmp_path / "fairway.db").unlink()
        with pytest.raises(StoreError, match=r"'fairway\.db-rescued-1'"):
            submitted(store)
    assert kept.read_text() == "of last time"


def test_an_older_content_in_the_same_file_is_noticed(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        submitted(store)
        with sqlite3.connect(tmp_path / "fairway.db") as old:
            submitted(store, 2)
            submitted(store)
            with sqlite3.connect(":memory:") as copy:
                old.backup(copy)
                copy.execute("UPDATE counters SET value = 1 WHERE name = 'commits'")
                copy.commit()
                copy.backup(old)  # as a tool does that restores a copy into the file that is there
        with pytest.raises(StoreError, match="an older copy was written over it while it was open"):
            submitted(store)


def test_a_reader_makes_no_empty_database_in_the_place_of_one_that_was_deleted(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        submitted(store)
        for path in tmp_path.iterdir():
            path.unlink()
        store._reading.dispose()
        with pytest.raises(StoreError, match="unable to open"):
            ids(store)
        assert not (tmp_path / "fairway.db").exists()


_KILLED = """
import os, sys
from fairway.store import open_store
from tests.store.making import submitted
store = open_store(sys.argv[1])
for _ in range(20):
    submitted(store)
os._exit(0)
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A store whose process was killed: what it acknowledged last is in its log."""
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=True, cwd=Path(__file__).parents[3])
    return tmp_path


def test_a_store_whose_process_was_killed_has_lost_nothing(killed: Path) -> None:
    with open_store(killed) as store:
        assert len(ids(store)) == 20


def _damage_the_log(directory: Path) -> None:
    log = directory / "fairway.db-wal"
    content = bytearray(log.read_bytes())
    content[len(content.rstrip(b"\0")) // 2] ^= 0xFF
    log.write_bytes(content)


def _cut_the_log(directory: Path) -> None:
    log = directory / "fairway.db-wal"
    content = log.read_bytes().rstrip(b"\0")
    log.write_bytes(content[: len(content) // 2])


def _remove_the_log(directory: Path) -> None:
    (directory / "fairway.db-wal").unlink()
    (directory / "fairway.db-shm").unlink()


@pytest.mark.parametrize("harm", [_damage_the_log, _cut_the_log])
def test_a_damaged_log_is_named_with_what_is_missing_and_stays_as_it_is(
    killed: Path, harm: Callable[[Path], None]
) -> None:
    harm(killed)
    found = (killed / "fairway.db-wal").read_bytes()
    for _ in range(2):
        with pytest.raises(
            InputError, match=r"acknowledged writes are missing .*-wal.* delete 'fairway.db-mark' to go on"
        ):
            open_store(killed)
        assert (killed / "fairway.db-wal").read_bytes() == found
    (killed / "fairway.db-mark").unlink()
    with open_store(killed) as store:
        assert 0 < len(ids(store)) < 20
        submitted(store)


def test_a_log_that_was_removed_is_missed(killed: Path) -> None:
    _remove_the_log(killed)
    with pytest.raises(InputError, match=r"acknowledged writes are missing|the file is damaged"):
        open_store(killed)


def test_a_database_that_was_removed_is_not_made_anew(killed: Path) -> None:
    (killed / "fairway.db").unlink()
    for left in ("fairway.db-mark", "fairway.db-wal"):
        with pytest.raises(InputError, match=f"the file is missing, but '{left}' of it is there; put the file back"):
            open_store(killed)
        assert not (killed / "fairway.db").exists()
        (killed / left).unlink()
    with open_store(killed) as store:
        assert ids(store) == []


def test_an_older_copy_is_recognised(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        submitted(store, 2)
    old = (tmp_path / "fairway.db").read_bytes()
    with open_store(tmp_path) as store:
        submitted(store)
    (tmp_path / "fairway.db").write_bytes(old)
    with pytest.raises(InputError, match=r"1 acknowledged writes are missing \(there were 2, there are 1\)"):
        open_store(tmp_path)


def test_a_database_whose_pages_are_damaged_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        submitted(store, 200)
    file = tmp_path / "fairway.db"
    content = bytearray(file.read_bytes())
    for start in range(4096, len(content), 4096):
        content[start : start + 64] = b"\xa5" * 64
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"the file is damaged \(.*\); put a copy of it in its place") as refused:
        open_store(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_store_of_before_there_were_marks_is_taken_as_it_is(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        submitted(store)
    (tmp_path / "fairway.db-mark").unlink()
    with sqlite3.connect(tmp_path / "fairway.db") as connection:
        connection.execute("DELETE FROM counters WHERE name = 'commits'")
    connection.close()
    with open_store(tmp_path) as store:
        submitted(store)
        submitted(store)
    assert int((tmp_path / "fairway.db-mark").read_text()) == 2
    with open_store(tmp_path) as store:
        assert len(ids(store)) == 3


def test_a_database_that_counts_nothing_is_behind_any_mark(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        submitted(store)
    with sqlite3.connect(tmp_path / "fairway.db") as connection:
        connection.execute("DELETE FROM counters WHERE name = 'commits'")
    connection.close()
    with pytest.raises(InputError, match=r"1 acknowledged writes are missing \(there were 1, there are 0\)"):
        open_store(tmp_path)


def test_a_mark_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        submitted(store)
    (tmp_path / "fairway.db-mark").write_text("rubbish")
    with open_store(tmp_path) as store:
        assert len(ids(store)) == 1


def test_a_path_with_signs_that_addresses_use_is_a_path(tmp_path: Path) -> None:
    odd = tmp_path / "a b?mode=ro#%20"
    with open_store(odd / "jobs.db") as store:
        submitted(store)
    with open_store(odd / "jobs.db") as store:
        assert len(ids(store)) == 1
