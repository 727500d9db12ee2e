"""The smallest change that would start a job that waits, found by trying: each is made to a copy of the engine.

Tried are, as far as they make sense: to accept one more accelerator type, to ask for fewer workers, more weight,
drained workers back, more workers of a type, and to cancel a job that holds workers. A change that does not start the
job at once, on workers that are then free, may start it as the next round begins, if nothing else happens until then.

Changes of different kinds are compared by how much of a thing they change: the part of the workers that the job asks
for, the part of the new weight that is added, the part of the cluster that is added; one more type is nothing, and to
cancel a job is more than all of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import JobCancelled, WorkersJoined, WorkersReturned
from fairway.engine.training.reasons import Room
from fairway.engine.training.what_if import accept, begin_next_round, holds, resize, reweigh, snapshot, team_of

_WEIGHTS = (1.5, 2.0, 4.0)
_MOST_WORKERS = 64
_MOST_CANCELS = 3

Apply = Callable[[TrainingEngine], object]


@dataclass(frozen=True, slots=True)
class Change:
    """What would start the job, in words: `at_once`, or as the next round begins. `size` is for comparing."""

    text: str
    size: float
    at_once: bool


class Trials:
    """Tries changes, at most so many; `enough` is asked before each and ends it too."""

    def __init__(
        self, engine: TrainingEngine, job: str, *, most: int, at_once_only: bool, enough: Callable[[], bool]
    ) -> None:
        self._engine, self._job = engine, job
        self._left, self._at_once_only, self._enough = most, at_once_only, enough

    def starts(self, apply: Apply) -> bool | None:
        """Whether the job starts at once (True), as the next round begins (False), or not (None) with a change."""
        if self._left <= 0 or self._enough():
            self._left = 0
            return None
        self._left -= 1
        trial = snapshot(self._engine)
        apply(trial)
        if holds(trial, self._job):
            return True
        if self._at_once_only:
            return None
        begin_next_round(trial)
        return False if holds(trial, self._job) else None

    def least(self, most: int, apply: Callable[[TrainingEngine, int], object]) -> tuple[int, bool] | None:
        """The least of 1 to `most` with which the job starts, and whether at once; assumes that more helps more."""
        found = self.starts(partial(_with_count, apply, most)) if most >= 1 else None
        if found is None:
            return None
        fails, works = 0, most
        while works - fails > 1:
            middle = (fails + works) // 2
            tried = self.starts(partial(_with_count, apply, middle))
            if tried is None:
                fails = middle
            else:
                works, found = middle, tried
        return works, found


def _with_count(apply: Callable[[TrainingEngine, int], object], count: int, trial: TrainingEngine) -> None:
    apply(trial, count)


def smallest_changes(
    engine: TrainingEngine,
    job: str,
    room: Room,
    *,
    other_rates: Mapping[str, float],
    trials: Trials,
) -> tuple[Change, ...]:
    """The smallest change of each kind that starts the job, the smallest of all first.

    `other_rates` are the steps per second that it would make on types that it does not accept.
    """
    found = [
        *_other_types(engine, job, other_rates, trials),
        *_fewer_workers(engine, job, trials),
        *_more_weight(job, trials),
        *_more_workers(engine, job, room, trials),
        *_cancelled(engine, job, trials),
    ]
    return tuple(sorted(found, key=lambda change: (change.size, not change.at_once)))


def _other_types(
    engine: TrainingEngine, job: str, other_rates: Mapping[str, float], trials: Trials
) -> Iterator[Change]:
    rates = engine.jobs.rates[engine.jobs.position(job)]
    for name, rate in other_rates.items():
        if name in engine.types and rate > 0 and rates[engine.types.index(name)] == 0:
            at_once = trials.starts(partial(accept, job=job, accelerator=name, rate=rate))
            if at_once is not None:
                yield Change(f"accept {name} too", 0.0, at_once)


def _fewer_workers(engine: TrainingEngine, job: str, trials: Trials) -> Iterator[Change]:
    scale = int(engine.jobs.scale[engine.jobs.position(job)])
    fewer = trials.least(scale - 1, lambda trial, less: resize(trial, job, scale - less))
    if fewer is not None:
        yield Change(f"ask for {scale - fewer[0]} instead of {_workers(scale)}", fewer[0] / scale, fewer[1])


def _more_weight(job: str, trials: Trials) -> Iterator[Change]:
    found = trials.least(len(_WEIGHTS), lambda trial, step: reweigh(trial, job, _WEIGHTS[step - 1]))
    if found is not None:
        factor = _WEIGHTS[found[0] - 1]
        yield Change(f"{factor:g} times the weight", 1 - 1 / factor, found[1])


def _more_workers(engine: TrainingEngine, job: str, room: Room, trials: Trials) -> Iterator[Change]:
    position = engine.jobs.position(job)
    most = max(_MOST_WORKERS, 2 * int(engine.jobs.scale[position]))
    every = max(int(room.present.sum()), 1)
    for column in np.flatnonzero(engine.jobs.rates[position] > 0).tolist():
        found = _drained_back(engine, room, column, most, trials)
        name = room.types[column]
        if found is not None:
            yield Change(f"{found[0]} drained {name} back", found[0] / every, found[1])
            continue
        found = trials.least(most, partial(_join, accelerator=name))
        if found is not None:
            yield Change(f"{found[0]} more {name}", found[0] / every, found[1])


def _join(trial: TrainingEngine, count: int, *, accelerator: str) -> None:
    trial.handle(trial.now, [WorkersJoined(accelerator, count)])


def _drained_back(
    engine: TrainingEngine, room: Room, column: int, most: int, trials: Trials
) -> tuple[int, bool] | None:
    workers = engine.workers
    absent = tuple(worker for worker in workers.gone(column) if not workers.holders(column, (worker,)))
    return trials.least(
        min(int(room.drained[column]), most),
        lambda trial, count: trial.handle(trial.now, [WorkersReturned(room.types[column], absent[:count])]),
    )


def _cancelled(engine: TrainingEngine, job: str, trials: Trials) -> Iterator[Change]:
    """One that holds workers this job could use: of its own team if possible, and as small as possible."""
    jobs = engine.jobs
    position = jobs.position(job)
    usable = np.flatnonzero(jobs.rates[position] > 0)
    room = engine.workers.room[jobs.on] + jobs.held
    holders = np.flatnonzero(np.isin(jobs.on, usable) & (room >= jobs.held[position]))
    order = np.lexsort((jobs.scale[holders], jobs.team[holders] != jobs.team[position]))
    for holder in holders[order][:_MOST_CANCELS].tolist():
        other = jobs.ids[holder]
        at_once = trials.starts(partial(TrainingEngine.handle, now=engine.now, events=[JobCancelled(other)]))
        if at_once is not None:
            team = team_of(engine, holder)
            size = 1 + int(jobs.scale[holder]) / max(int(engine.workers.present.sum()), 1)
            yield Change(f"cancel job '{other}'{f' of team {team}' if team else ''}", size, at_once)
            return


def _workers(count: int) -> str:
    return f"{count} worker{'' if count == 1 else 's'}"
