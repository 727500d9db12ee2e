"""kill -9 at any moment: whatever was acknowledged is there, and nothing is half there."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from sqlalchemy import select

from fairway.store import Store, open_store
from fairway.store.database import schema
from fairway.store.job_changes import change_job
from fairway.store.journal import last_sequence, read_journal
from fairway.store.leases import end_lease
from fairway.store.queries import list_jobs, snapshot
from fairway.store.states import HOLDING, JobState
from tests.store.making import with_workers

_REPOSITORY = Path(__file__).parents[2]


def run_and_kill(url: str, seconds: float) -> list[list[str]]:
    """What a program said that worked on the store until it was killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.crashing", url, "0", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=_REPOSITORY,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    rest, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL, errors
    return [line.split() for line in (first + rest).splitlines()]


def check(store: Store, said: list[list[str]]) -> None:
    records = {}
    page = store.read(list_jobs, limit=1000)
    while True:
        records |= {job.id: job for job in page.jobs}
        if page.after is None:
            break
        page = store.read(list_jobs, limit=1000, after=page.after)
    leases = set(store.read(lambda connection: connection.execute(select(schema.leases.c.number)).scalars().all()))
    for what, *names in said:
        if what == "submitted":
            assert set(names) <= records.keys()
        elif what == "leased":
            assert int(names[0]) in leases
        elif what == "saved":
            assert records[names[0]].checkpoint_steps_left == float(names[1])
        elif what == "finished":
            assert records[names[0]].state is JobState.SUCCEEDED
    now = store.read(snapshot)
    runs = {job.id for job in now.jobs if job.state in HOLDING}
    held = [worker for lease in now.leases if lease.held for worker in lease.workers]
    assert len(held) == len(set(held))
    assert {job for lease in now.leases for job in lease.jobs} == runs
    assert {attempt.job for attempt in now.attempts} == runs
    check_journal(store)


def check_journal(store: Store) -> None:
    last = store.read(last_sequence)
    entries = store.read(read_journal, after=max(0, last - 3000), limit=10_000)
    assert [entry.sequence for entry in entries] == list(range(max(0, last - 3000) + 1, last + 1))
    whole = {entry.sequence: 0 for entry in entries if entry.name == "RoundBegan"}
    for entry in entries:
        if entry.cause in whole:
            whole[entry.cause] += 1
    assert set(whole.values()) <= {2}, "an event is stored with all of its commands"


def let_go(store: Store) -> None:
    """What a controller does that finds the processes of its jobs gone."""
    for lease in store.read(snapshot).leases:
        for job in lease.jobs:
            assert store.write(change_job, job, JobState.QUEUED, at=4.0, lease=lease.number)
        assert store.write(end_lease, lease.number, at=4.0, reason="lost")


def test_nothing_acknowledged_is_lost_by_kill_9(url: str) -> None:
    draw = random.Random(6)
    with open_store(url) as store:
        with_workers(store, 4)
    acknowledged: list[list[str]] = []
    times, rounds = 0, 3 if url.startswith("postgresql") else 10
    # Enough rounds, and on a busy machine, where a program gets less far, more of them, each a little longer.
    while times < rounds or {what for what, *_ in acknowledged} != {"submitted", "leased", "saved", "finished"}:
        assert times < 100
        acknowledged += run_and_kill(url, draw.uniform(0.0, 0.25) * max(1.0, times / rounds))
        times += 1
        with open_store(url) as store:
            check(store, acknowledged)
            let_go(store)


def test_a_store_whose_making_was_cut_off_is_made_by_the_next(tmp_path: Path) -> None:
    draw = random.Random(7)
    for number in range(3):
        url = str(tmp_path / str(number))
        process = subprocess.Popen([sys.executable, "-m", "tests.store.crashing", url], cwd=_REPOSITORY)
        while not (Path(url) / "fairway.db").exists():
            time.sleep(0.001)
        time.sleep(draw.uniform(0.0, 0.05))
        process.kill()
        process.wait(30)
        with open_store(url) as store:
            store.read(snapshot)
