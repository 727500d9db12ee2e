"""How fast the store is, with bounds so loose that only a mistake breaks them; the printed numbers are the point."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import text

from fairway.store import Store, open_store
from fairway.store.queries import list_jobs, snapshot
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit

SPEC = {"run": "python train.py --epochs 90", "envs": {"DATA": "/data/imagenet"}, "resources": {"accelerators": "v100"}}


@pytest.fixture
def durable(url: str) -> Iterator[Store]:
    """A store that waits for the disk, as every store does but those of the tests' server."""

    def wait_for_disk(setting: str) -> None:
        if url.startswith("postgresql"):
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"ALTER SYSTEM SET fsync = {setting}")  # type: ignore[call-overload]
                connection.execute("SELECT pg_reload_conf()")

    wait_for_disk("on")
    with open_store(url) as store:
        if url.startswith("postgresql"):
            assert store.read(lambda connection: connection.execute(text("SHOW fsync")).scalar()) == "on"
        yield store
    wait_for_disk("off")


def test_32_threads_submit_hundreds_of_jobs_per_second_durably(durable: Store) -> None:
    def client(number: int) -> None:
        for turn in range(20):
            key = f"{number}-{turn}"
            durable.write(submit, [Submission(spec=SPEC, team="a", idempotency_key=key)], at=1.0)

    begin = time.perf_counter()
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(client, range(32)))
    rate = 32 * 20 / (time.perf_counter() - begin)
    print(f"{rate:.0f} submissions per second")
    assert rate > 150


@pytest.fixture
def full(url: str) -> str:
    with open_store(url) as store:
        jobs = [Submission(spec=SPEC, team=f"team-{number % 7}", steps=1e6) for number in range(10_000)]
        store.write(submit, jobs, at=1.0)
    return url


def test_ten_thousand_jobs_are_loaded_and_listed_quickly(full: str) -> None:
    begin = time.perf_counter()
    with open_store(full) as store:
        assert len(store.read(snapshot).jobs) == 10_000
        loading = time.perf_counter() - begin
        times = []
        for number in range(100):
            begin = time.perf_counter()
            team = f"team-{number % 7}" if number % 2 else None
            page = store.read(list_jobs, team=team, states=[JobState.QUEUED], after=100 * number or None)
            times.append(time.perf_counter() - begin)
            assert page.jobs or number
    print(f"loaded in {loading:.2f} s, listed within {1000 * sorted(times)[98]:.1f} ms")
    assert loading < 4
    assert sorted(times)[98] < 0.2
