"""The disk of a store is full: what is vital is written all the same, and what is refused has changed nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.store import open_store
from fairway.store.database.sqlite_files import RESERVE_BYTES
from fairway.store.errors import StoreError
from fairway.store.job_changes import job_named, request_cancel
from fairway.store.states import JobState
from tests.full_disk import fill, free_bytes, small_disk
from tests.store.making import submitted


def test_jobs_can_be_taken_back_on_a_full_disk_and_nothing_else_is_accepted(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 24) as disk, open_store(disk) as store:
        jobs = submitted(store, 300)
        fill(disk / "rubbish")
        assert free_bytes(disk) == 0
        assert store.short_of_room
        with pytest.raises(
            StoreError, match=r"the disk is full: less than 2 MiB are free on the disk of .*fairway\.db"
        ):
            submitted(store)
        with pytest.raises(StoreError, match="the disk is full"):
            store.begin_write(request_cancel, jobs[0], at=5.0).result()
        assert store.begin_vital_write(request_cancel, jobs[0], at=5.0).result() is JobState.CANCELLED
        for job in jobs[1:]:
            assert store.write_vital(request_cancel, job, at=5.0) is JobState.CANCELLED
        (disk / "rubbish").unlink()
        assert not store.short_of_room
        submitted(store)
        store.close()
        with open_store(disk) as again:
            assert {again.read(job_named, job).state for job in jobs} == {JobState.CANCELLED}


def test_the_log_has_its_blocks_before_it_needs_them(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        submitted(store)
        assert (tmp_path / "fairway.db-wal").stat().st_blocks * 512 >= RESERVE_BYTES


def test_a_disk_that_has_no_room_to_put_aside_gives_it_later(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 16) as disk, open_store(disk) as store:
        (disk / "rubbish").write_bytes(b"\0" * 8 * 2**20)
        submitted(store)
        assert (disk / "fairway.db-wal").stat().st_size < RESERVE_BYTES
        (disk / "rubbish").unlink()
        submitted(store)
        assert (disk / "fairway.db-wal").stat().st_size >= RESERVE_BYTES
