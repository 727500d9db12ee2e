"""A program to be killed: works on a store in a loop and prints what was acknowledged. Run with a store's address."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import count
from threading import Thread

from sqlalchemy import Connection

from fairway.engine.training.messages import Grant, JobFinished, RoundBegan
from fairway.store import Store, open_store
from fairway.store.job_changes import change_job, record_checkpoint
from fairway.store.journal import record_step
from fairway.store.leases import end_lease, grant_lease, last_lease
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit


def say(*words: object) -> None:
    # One call that writes it whole: nothing is half said when the end comes.
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def submit_for_ever(store: Store) -> None:
    while True:
        records = store.write(submit, [Submission(spec={}, steps=100.0)] * 2, at=1.0)
        say("submitted", *[record.id for record in records])


def start(connection: Connection, job: str, workers: Sequence[int]) -> int:
    number = last_lease(connection) + 1
    grant = Grant(number, (job,), "v100", tuple(workers), until=9.0)
    grant_lease(connection, grant, at=2.0)
    change_job(connection, job, JobState.RUNNING, at=2.0, lease=number)
    record_step(connection, 2.0, [RoundBegan()], [grant, grant], at=2.0)
    return number


def finish(connection: Connection, job: str, lease: int) -> None:
    change_job(connection, job, JobState.SUCCEEDED, at=3.0, lease=lease)
    end_lease(connection, lease, at=3.0)
    record_step(connection, 3.0, [JobFinished(job)], [], at=3.0)


def train_for_ever(store: Store, worker: int) -> None:
    for _ in count():
        (job,) = store.write(submit, [Submission(spec={}, steps=100.0)], at=1.0)
        lease = store.write(start, job.id, (2 * worker, 2 * worker + 1))
        say("leased", lease)
        store.write(record_checkpoint, job.id, 40.0, at=2.5, lease=lease)
        say("saved", job.id, 40.0)
        store.write(finish, job.id, lease)
        say("finished", job.id)


if __name__ == "__main__":
    opened = open_store(sys.argv[1])
    threads = [Thread(target=submit_for_ever, args=(opened,), daemon=True) for _ in range(4)]
    threads += [Thread(target=train_for_ever, args=(opened, number), daemon=True) for number in map(int, sys.argv[2:])]
    for thread in threads:
        thread.start()
    threads[0].join()
