"""Writing in groups: everyone hears of their own success or failure, after the commit and not before."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, text

from fairway.store import Store, open_store
from fairway.store.errors import ConflictError, StoreError
from fairway.store.job_changes import job_named
from fairway.store.queries import list_jobs
from fairway.store.submissions import Submission, submit
from tests.store.making import SPEC, submitted


def test_one_that_fails_takes_nothing_with_it(store: Store) -> None:
    submitted(store, id="taken")

    def attempt(number: int) -> str:
        name = "taken" if number % 3 == 0 else f"n{number}"
        try:
            return store.write(submit, [Submission(spec=SPEC), Submission(spec=SPEC, id=name)], at=1.0)[1].id
        except ConflictError:
            return "refused"

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(attempt, range(96)))
    assert answers == ["refused" if number % 3 == 0 else f"n{number}" for number in range(96)]
    stored = [job.id for job in store.read(list_jobs, limit=1000).jobs]
    assert len(stored) == len(set(stored)) == 1 + 2 * 64


def test_what_queues_up_shares_a_commit(store: Store) -> None:
    commits: list[None] = []
    event.listen(store._writing, "commit", lambda _: commits.append(None))
    begun, go_on = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        begun.set()
        go_on.wait(10)

    with ThreadPoolExecutor(41) as pool:
        first = pool.submit(store.write, hold)
        begun.wait(10)
        others = [pool.submit(submitted, store) for _ in range(40)]
        while store._writer._queue.qsize() < 40:
            threading.Event().wait(0.01)
        assert store.read(list_jobs).jobs == []
        go_on.set()
        first.result(10)
        assert len({other.result(10)[0] for other in others}) == 40
    assert len(commits) == 2


def test_a_reader_sees_one_moment(store: Store) -> None:
    def count_twice(connection: Connection) -> tuple[int, int]:
        before = len(list_jobs(connection).jobs)
        submitted(store)
        return before, len(list_jobs(connection).jobs)

    assert store.read(count_twice) == (0, 0)
    assert len(store.read(list_jobs).jobs) == 1


def test_what_is_acknowledged_is_visible_at_once_to_every_thread_and_to_other_stores(url: str) -> None:
    with open_store(url) as writing, open_store(url) as reading:

        def check(_: int) -> None:
            (name,) = submitted(writing)
            assert writing.read(job_named, name).id == name
            assert reading.read(job_named, name).id == name

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(check, range(64)))


def test_two_stores_may_write_to_one_database(url: str) -> None:
    with open_store(url) as one, open_store(url) as other, ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda number: submitted((one, other)[number % 2])[0], range(100)))
        assert len(set(ids)) == 100
        numbers = [job.number for job in one.read(list_jobs, limit=1000, newest_first=False).jobs]
        assert numbers == list(range(1, 101))


def test_an_operation_cannot_wait_for_another_one(store: Store) -> None:
    with pytest.raises(RuntimeError, match="an operation cannot wait for another one"):
        store.write(lambda _: submitted(store))
    assert submitted(store) == ["job-1"]


def test_when_the_transaction_is_lost_everyone_hears_of_it_and_the_store_goes_on(store: Store) -> None:
    def lose(connection: Connection) -> None:
        submit(connection, [Submission(spec=SPEC)], at=1.0)
        connection.connection.rollback()

    with pytest.raises(StoreError, match="the store failed"):
        store.write(lose)
    assert store.read(list_jobs).jobs == []
    assert len(submitted(store)) == 1


def test_what_the_database_says_comes_on_one_line(store: Store) -> None:
    with pytest.raises(StoreError, match=r"the store failed: .*nowhere") as raised:
        store.write(lambda connection: connection.execute(text("SELECT *\nFROM nowhere")))
    assert "\n" not in str(raised.value)
    with pytest.raises(StoreError, match=r"the store failed: .*nowhere"):
        store.read(lambda connection: connection.execute(text("SELECT * FROM nowhere")))


def test_a_full_disk_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        submitted(store, 10)

        def no_more_room(connection: Connection) -> None:
            pages = connection.execute(text("PRAGMA page_count")).scalar_one()
            connection.execute(text(f"PRAGMA max_page_count={pages}"))

        store.write(no_more_room)
        with pytest.raises(StoreError, match="full"):
            submitted(store, 2000)
        assert len(store.read(list_jobs).jobs) == 10
        store.write(lambda connection: connection.execute(text("PRAGMA max_page_count=1000000")) and None)
        assert len(submitted(store, 2000)) == 2000


def test_closing_finishes_what_was_queued(url: str) -> None:
    store = open_store(url)
    with ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(submitted, store) for _ in range(64)]
        answers[0].result(10)
        store.close()
        done = sum(answer.exception() is None for answer in answers)
    assert all(isinstance(answer.exception(), StoreError | None) for answer in answers)
    with open_store(url) as reopened:
        assert len(reopened.read(list_jobs, limit=1000).jobs) == done
