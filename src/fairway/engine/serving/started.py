"""The batches that workers have, as the engine that plans knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from fairway.configure.configuration import Configuration
from fairway.configure.queues import Running
from fairway.engine.serving.stage_queues import Job


class Started(NamedTuple):
    """A batch that a worker has: the number of its queue, its jobs, and when it should have ended.

    `place` is where its instance lies, where accelerators are cut by MIG.
    """

    queue: int
    jobs: tuple[Job, ...]
    configuration: Configuration
    worker: int
    seconds: float
    until: float
    place: int = 0


def running_at(batches: Mapping[int, Started], workers: int, now: float) -> list[Running | None]:
    """By worker, the batch that has it to itself."""
    found: list[Running | None] = [None] * workers
    shared = set()
    for number, started in batches.items():
        worker = started.worker
        if found[worker] is not None:
            shared.add(worker)
        found[worker] = Running(number, len(started.jobs), started.until - now)
    return [None if worker in shared else each for worker, each in enumerate(found)]


def together(jobs: Iterable[Job], count: int) -> int:
    """How many of the oldest jobs may share a batch: one that was on a worker when that was lost runs alone."""
    for position, job in enumerate(islice(jobs, count)):
        if job.request.losses:
            return max(position, 1)
    return count
