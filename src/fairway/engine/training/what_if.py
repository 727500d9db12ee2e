"""Copies of the training engine to try things on: what is done to a copy happens to no job.

A copy shares what never changes with its original (jobs as described, the last decision, profiles) and has its own of
all the rest, so it takes a few milliseconds with ten thousand jobs. It handles events as the original does; here are
also the changes that no event stands for, since no owner of a job can make them, only try them.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from fairway.engine.protocol import Story
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.job_table import NONE
from fairway.engine.training.messages import JobArrived, RoundBegan, Undecided
from fairway.errors import InputError
from fairway.jobs import Job


def snapshot(engine: TrainingEngine, *, now: float | None = None) -> TrainingEngine:
    """The engine as it is, without the story of its past; another thread may use the copy.

    With `now`, as it is at that time if nothing has happened since the last event.
    """
    shared: list[Any] = [
        engine.policy,
        engine.options,
        engine.allocation,
        engine.cluster,
        engine._pair_rates._partners,
        engine._pair_rates._rates,
        engine.arrivals.demand,
    ]
    memo: dict[int, Any] = {id(value): value for value in shared}
    memo |= {
        id(engine._story): Story[Any](),
        id(engine._admission.described): dict(engine._admission.described),
    }
    copy = deepcopy(engine, memo)
    if now is not None:
        copy.advance(now)
    return copy


def turn_seconds(engine: TrainingEngine) -> float:
    """How much more a job must be owed to take the workers of another that runs."""
    return engine._rounds.turn_seconds


def team_of(engine: TrainingEngine, position: int) -> str | None:
    """The team of the job at a position."""
    team = int(engine.jobs.team[position])
    return None if team == NONE else list(engine._admission.entities)[team]


def holds(engine: TrainingEngine, job: str) -> bool:
    """Whether a job holds workers."""
    return bool(engine.jobs.on[engine.jobs.position(job)] >= 0)


def begin_next_round(engine: TrainingEngine) -> None:
    """Let the time pass until the round ends, with nothing else happening, and the next one begin."""
    if engine.round_end is not None:
        engine.handle(max(engine.round_end, engine.now), [RoundBegan()])


def refusal(engine: TrainingEngine, job: Job, deadline: float | None) -> str | None:
    """Why the policy of an engine that has no jobs cannot decide about this one; None if it can."""
    try:
        commands = engine.handle(max(engine.now, 0.0), [JobArrived(job, deadline), RoundBegan()])
    except InputError as error:
        return str(error)
    return next((command.reason for command in commands if isinstance(command, Undecided)), None)


def choose_next_round(engine: TrainingEngine) -> set[int]:
    """Positions of the jobs that would start as the next round begins under the shares as they are, undecided anew."""
    if engine.round_end is None:
        return set()
    engine.advance(max(engine.round_end, engine.now))
    chosen = engine.choose(engine.options.round_seconds, preempt=True)
    return {member for members in chosen.started for member in members}


def reweigh(engine: TrainingEngine, job: str, factor: float) -> None:
    """Multiply the weight of a job."""
    engine.jobs.weight[engine.jobs.position(job)] *= factor
    engine._changed = True


def resize(engine: TrainingEngine, job: str, workers: int) -> None:
    """Let a job that waits ask for another number of workers, at the same rate for each of them."""
    position, jobs, described = engine.jobs.position(job), engine.jobs, engine._admission.described[job]
    part = workers / int(jobs.scale[position])
    jobs.rates[position] *= part
    jobs.spread[position] *= part
    jobs.resize(position, workers)
    jobs.kind[position] = engine._admission.kind_of(described, workers)
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
