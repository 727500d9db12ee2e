"""Copies of the training engine to try things on: what is done to a copy happens to nobody.

A copy shares what never changes with its original (jobs as described, the last decision, profiles) and has its own of
all the rest, so it takes a few milliseconds with ten thousand jobs. Anything can be told to it as to the original; here
are also the changes that no event stands for, since they are not offered to anyone but to be tried.
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from typing import Any

from fairway.cluster import Cluster
from fairway.engine.job_table import NONE
from fairway.engine.training import TrainingEngine
from fairway.engine.training_messages import RoundBegan


def snapshot(engine: TrainingEngine, *, now: float | None = None) -> TrainingEngine:
    """The engine as it is, without the story of its past; another thread may use the copy.

    With `now`, as it is at that time if nothing has happened since the last event.
    """
    jobs = engine.jobs
    shared: list[Any] = [
        engine.policy,
        engine.options,
        engine.allocation,
        engine._cluster,
        engine._pair_rates._partners,
    ]
    memo: dict[int, Any] = {id(value): value for value in shared}
    memo |= {
        id(engine._past): deque(maxlen=engine._past.maxlen),
        id(engine._described): dict(engine._described),
        id(jobs.ids): list(jobs.ids),
        id(jobs._number_of): dict(jobs._number_of),
    }
    copy = deepcopy(engine, memo)
    if now is not None:
        copy._advance(now)
    return copy


def cluster_of(engine: TrainingEngine) -> Cluster:
    """The cluster that the engine was made for."""
    return engine._cluster


def turn_seconds(engine: TrainingEngine) -> float:
    """How much more somebody must be owed to take the workers of a job that runs."""
    return engine._rounds._turn


def team_of(engine: TrainingEngine, position: int) -> str | None:
    """The team of the job at a position."""
    team = int(engine.jobs.team[position])
    return None if team == NONE else list(engine._entities)[team]


def holds(engine: TrainingEngine, job: str) -> bool:
    """Whether a job holds workers."""
    return bool(engine.jobs.on[engine.jobs.position(job)] >= 0)


def begin_next_round(engine: TrainingEngine) -> None:
    """Let the time pass until the round ends, with nothing else happening, and the next one begin."""
    if engine.round_end is not None:
        engine.handle(RoundBegan(max(engine.round_end, engine.now)))


def choose_next_round(engine: TrainingEngine) -> set[int]:
    """Positions of the jobs that would start as the next round begins under the shares as they are, undecided anew."""
    if engine.round_end is None:
        return set()
    engine._advance(max(engine.round_end, engine.now))
    seconds = engine.options.round_seconds
    chosen = engine._rounds.choose(engine.jobs, engine.workers.free, seconds=seconds, preempt=True)
    return {member for members in chosen.started for member in members}


def reweigh(engine: TrainingEngine, job: str, factor: float) -> None:
    """Multiply the weight of a job."""
    engine.jobs.weight[engine.jobs.position(job)] *= factor
    engine._changed = True


def resize(engine: TrainingEngine, job: str, workers: int) -> None:
    """Let a job that waits ask for another number of workers, at the same rate for each of them."""
    position, jobs, described = engine.jobs.position(job), engine.jobs, engine._described[job]
    part = workers / int(jobs.scale[position])
    jobs.rates[position] *= part
    jobs.spread[position] *= part
    jobs.scale[position] = workers
    jobs.kind[position] = engine._pair_rates.kind(described.job_type if described.preemptible else None, workers)
    _reconsider(engine, position)


def accept(engine: TrainingEngine, job: str, accelerator: str, rate: float) -> None:
    """Let a job run on one more accelerator type, at so many steps per second."""
    position, column = engine.jobs.position(job), engine.types.index(accelerator)
    engine.jobs.rates[position, column] = engine.jobs.spread[position, column] = rate
    _reconsider(engine, position)


def _reconsider(engine: TrainingEngine, position: int) -> None:
    engine.jobs.pooled[position] = engine.jobs.rates[position] @ engine.workers.present
    engine._changed = True
    engine._backfill()
