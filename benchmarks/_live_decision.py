"""How long a round's decision takes with very many jobs: in the engine alone, and until the store has all of it.

Every job has a rate of its own on each type, so that no two can be treated as one. Between two rounds some jobs finish
and others come, so that every round decides anew.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from benchmarks._instances import TYPES, distinct_jobs
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobArrived, JobFinished, RoundBegan
from fairway.engine.training.options import EngineOptions
from fairway.jobs import Job
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import CommandAnswer
from fairway.live.backend.commands import JobProgram, RunCommand
from fairway.live.backend.demand import Demand
from fairway.live.backend.logs import LogBlock
from fairway.live.backend.reports import BackendReport, Connected
from fairway.live.backend.status import BackendStatus
from fairway.live.training.controller import Controller
from fairway.live.training.settings import ControllerSettings
from fairway.store import open_store
from fairway.store.database.schema import leases
from fairway.store.submissions import Submission, submit

POLICY = "max-min-fairness"
ROUND_SECONDS = 60.0


def engine_rounds(jobs: int, workers: int, changes: int, rounds: int, seed: int) -> list[float]:
    """The seconds of each round's decision; the first begins with nothing, and before each of the others some change.

    Another engine has decided a small round before, so that the kernels are compiled.
    """
    if jobs > 100:
        engine_rounds(100, 9, 1, 2, seed)
    engine = TrainingEngine(_cluster(workers), policy_of(POLICY), EngineOptions(ROUND_SECONDS, 5.0))
    coming = iter(_jobs(jobs + changes * rounds, workers, seed))
    engine.handle(0.0, [JobArrived(job) for job in islice(coming, jobs)])
    draws = np.random.default_rng(seed)
    taken = []
    for number in range(rounds):
        now = number * ROUND_SECONDS
        began = time.perf_counter()
        engine.handle(now, [RoundBegan()])
        taken.append(time.perf_counter() - began)
        for name in draws.choice(list(engine.jobs.ids), changes, replace=False):
            engine.handle(now + 1.0, [JobFinished(str(name)), JobArrived(next(coming))])
    assert engine.solves == rounds, f"{engine.solves} decisions in {rounds} rounds"
    assert len(engine.jobs) == jobs
    return taken


def controller_round(jobs: int, workers: int, seed: int) -> dict[str, float]:
    """The first round of a controller that finds all jobs in its store: the seconds that the decision takes, and those
    until its leases, a reason for each job that waits and the journal are in the store."""
    with tempfile.TemporaryDirectory(prefix="fairway-") as name, open_store(Path(name)) as store:
        given = [Submission(spec=_document(job), steps=job.steps_left) for job in _jobs(jobs, workers, seed)]
        store.write(submit, given, at=time.time())
        settings = ControllerSettings(Path(name), policy=POLICY, round_seconds=600.0)
        controller = Controller(settings, store, backend=SilentBackend(_cluster(workers)))
        began = time.time()
        controller.start()
        started = time.time()
        try:
            while store.read(_planned)[0] < workers:
                time.sleep(0.005)
            durable = time.time()
            decided = controller.statistics().decision_seconds[0]
            return {
                "start": started - began,
                "decided": decided,
                "durable": durable - store.read(_planned)[1] + decided,
            }
        finally:
            controller.stop()


class SilentBackend:
    """Says yes to everything, and runs nothing."""

    def __init__(self, cluster: Cluster) -> None:
        accelerators = [Accelerator(name, number) for name, count in cluster.workers.items() for number in range(count)]
        self._status = BackendStatus("silent", 0, tuple(accelerators))

    async def run(self, _: int, report: Callable[[BackendReport], None]) -> None:
        report(Connected(self._status))
        await asyncio.Event().wait()

    async def give(self, command: RunCommand) -> CommandAnswer:  # noqa: ARG002
        return CommandAnswer("accepted")

    async def status(self) -> BackendStatus:
        return self._status

    async def need(self, demand: Demand) -> None:
        """Its accelerators are always the same."""

    def check(self, program: JobProgram) -> None:  # noqa: ARG002
        return

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:  # noqa: ARG002
        return LogBlock(b"", 0)

    async def shut_down(self) -> None:
        return


def _planned(connection: Connection) -> tuple[int, float]:
    """How many leases there are, and when the first was planned."""
    count, first = connection.execute(select(func.count(), func.min(leases.c.planned_at)).select_from(leases)).one()
    return count, first or 0.0


def _cluster(workers: int) -> Cluster:
    return Cluster({name: workers // 3 + (place < workers % 3) for place, name in enumerate(TYPES)})


def _jobs(count: int, workers: int, seed: int) -> list[Job]:
    instance = distinct_jobs(count, workers // 3, seed=seed)
    return [
        Job(id=f"job{number}", throughputs=dict(zip(TYPES, rates, strict=True)), steps_left=float(round(steps)))
        for number, (rates, steps) in enumerate(zip(instance.rates.tolist(), instance.steps_left, strict=True))
    ]


def _document(job: Job) -> dict[str, Any]:
    return {"run": "python train.py", "steps": int(job.steps_left or 1), "throughputs": dict(job.throughputs)}


if __name__ == "__main__":
    print(engine_rounds(10_000, 1_000, 20, 7, 0))
    print(controller_round(10_000, 1_000, 0))
