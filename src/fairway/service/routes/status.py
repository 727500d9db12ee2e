"""How the whole system stands, in one answer."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.responses import Response

from fairway.service.authentication import Caller
from fairway.service.context import ServiceOf, json_answer
from fairway.service.scheduler_view import SchedulerView
from fairway.service.worker_state import state_of
from fairway.store.leases import open_leases
from fairway.store.queries import count_jobs
from fairway.store.records import LeaseRecord, Worker
from fairway.store.states import JobState
from fairway.store.workers import all_workers

router = APIRouter(tags=["status"])


class WorkerCounts(BaseModel):
    """The workers of one type."""

    model_config = ConfigDict(title="WorkerCounts")

    total: int
    busy: int = 0
    drained: int = 0
    lost: int = 0


class StatusForm(BaseModel):
    """How the system stands."""

    model_config = ConfigDict(title="Status")

    version: str
    policy: str
    round_seconds: float = Field(description="On the clock that is `time_scale` times as fast as the wall's.")
    time_scale: float
    emulated: bool
    round_ends_at: float | None
    rounds: int
    solves: int
    jobs: dict[str, int] = Field(description="How many jobs are in each state.")
    workers: dict[str, WorkerCounts] = Field(description="By accelerator type.")
    healthy: bool
    trouble: str | None = Field(description="Why it is not healthy; null while it is.")
    started_at: float
    store: str
    caveats: list[str] = Field(description="What is not enforced or not protected on the machines, a sentence each.")


@router.get("/status", summary="See how the system stands", responses={200: {"model": StatusForm}})
async def get_status(service: ServiceOf, _: Caller) -> Response:
    """The policy, the round, and counts of jobs and workers."""
    return await service.run(lambda: json_answer(status_of(service.scheduler)))


def status_of(scheduler: SchedulerView) -> StatusForm:
    """How a scheduler's system stands."""
    settings = scheduler.settings
    statistics = scheduler.statistics()

    def all_three(connection: Connection) -> tuple[dict[str, int], list[Worker], list[LeaseRecord]]:
        counts = dict.fromkeys(JobState, 0)
        for (_, state), count in count_jobs(connection).items():
            counts[state] += count
        by_name = {state.value: count for state, count in counts.items()}
        return by_name, all_workers(connection), open_leases(connection)

    jobs, workers, leases = scheduler.store.read(all_three)
    ends = statistics.round_ends_at
    return StatusForm(
        version=version("fairway"),
        policy=settings.policy,
        round_seconds=settings.round_seconds,
        time_scale=settings.time_scale,
        emulated=scheduler.emulated,
        round_ends_at=None if ends is None else scheduler.wall(ends),
        rounds=statistics.rounds,
        solves=statistics.solves,
        jobs=jobs,
        workers=worker_counts(workers, leases),
        healthy=scheduler.healthy,
        trouble=scheduler.trouble,
        started_at=statistics.started_at,
        store=scheduler.store.address,
        caveats=list(scheduler.caveats),
    )


def worker_counts(workers: list[Worker], leases: list[LeaseRecord]) -> dict[str, WorkerCounts]:
    """How many workers of each type there are, and in which state."""
    held = {(lease.accelerator, number) for lease in leases if lease.held for number in lease.workers}
    counts: dict[str, WorkerCounts] = {}
    for worker in workers:
        of_type = counts.setdefault(worker.accelerator, WorkerCounts(total=0))
        state = state_of(worker, held=(worker.accelerator, worker.number) in held)
        of_type.total += 1
        of_type.busy += state == "busy"
        of_type.drained += state == "drained"
        of_type.lost += state == "lost"
    return counts
