"""Predicts when a job of the live system will start and finish: runs the simulator forward from the present state.

The first run takes what every job has left as it is known or assumed (`lengths`). The others are samples of what may
come instead. The interval spans all runs. Jobs that will come and workers that will fail are not in it, and the basis
says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.what_if import holds, snapshot
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.profiles import ThroughputTable
from fairway.report.training.record import Outcome
from fairway.sim.lengths import SPREAD, Lengths
from fairway.sim.submissions import Submission, TrainingOptions
from fairway.sim.training import TrainingRun
from fairway.sim.training_recorder import JobRow

_MOST_ROUNDS = 100_000

_PART_FOR_SAMPLES = 0.7
"""Of the time that there is; the rest is for finding the finish."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """When a job starts, and when it finishes, in seconds on the engine's clock.

    `earliest` and `latest` span the start over all samples. What could not be found is None, and `basis` says why, as
    well as what the rest was found from. The start of a job that runs is now.
    """

    start: float | None
    earliest: float | None
    latest: float | None
    finish: float | None
    basis: str


def predict(
    engine: TrainingEngine,
    job: str | Job,
    *,
    table: ThroughputTable | None = None,
    samples: int = 7,
    seconds: float = 1.0,
    seed: int = 0,
    span: Callable[[float], str] = "{:.0f} s".format,
) -> Prediction:
    """Predict the next start and the finish of a job that the engine has, or of one as if it were submitted now.

    The engine is left as it is; to predict beside a live one, hand in a `snapshot` of it. `table` says how fast jobs
    share, where the policy lets them. It takes about `seconds` at most: what comes after that is left out, samples
    when most of it is over, the finish, or everything if the start is too far away. `span` puts durations into words.
    """
    if isinstance(job, str) and job not in engine.jobs:
        raise InputError(f"job '{job}' neither waits nor runs here; there is nothing to predict")
    if isinstance(job, Job) and job.id in engine.jobs:
        raise InputError(f"job '{job.id}' is here already; predict it by its id")
    begin = time.perf_counter()
    world = _World(engine, job, table)
    first = world.run(None)
    row = first.to_start(begin + seconds)
    if row is None:
        return _nothing(f"it does not start within what can be simulated in {seconds:g} s")
    if row.outcome is Outcome.UNRUNNABLE:
        return _nothing("no accelerator type of this cluster has as many workers as it asks for now")
    starts, now = [row.start], engine.now
    if not (isinstance(job, str) and holds(engine, job)):
        draws = np.random.default_rng(seed)
        for _ in range(samples):
            other = world.run(draws).to_start(begin + _PART_FOR_SAMPLES * seconds)
            if other is None:
                break
            starts.append(other.start)
    finish = first.to_finish(begin + seconds) if world.says_steps else None
    basis = world.basis(len(starts) - 1, span)
    if row.start <= now and len(starts) == 1:
        basis = f"it runs already; {basis}"
    if finish is None:
        why = "its end is too far away to simulate" if world.says_steps else "it does not say how many steps it takes"
        basis = f"{basis}; no finish: {why}"
    return Prediction(row.start, min(starts), max(starts), finish, basis)


def _nothing(why: str) -> Prediction:
    return Prediction(None, None, None, None, f"no prediction: {why}")


class _World:
    """The present state, from which runs begin, and what is assumed of jobs that do not say how long they are."""

    def __init__(self, engine: TrainingEngine, job: str | Job, table: ThroughputTable | None) -> None:
        self._engine, self._table = engine, table
        self._name = job if isinstance(job, str) else job.id
        self._new = None if isinstance(job, str) else job
        self._lengths = Lengths(engine)
        if self._new is not None:
            self.says_steps = self._new.steps_left is not None
        else:
            self.says_steps = bool(self._lengths.known[engine.jobs.position(self._name)])

    def run(self, draws: np.random.Generator | None) -> _Forward:
        """A run from the present state; with `draws`, of a sample."""
        engine = snapshot(self._engine)
        now = engine.now
        steps = self._lengths.left(draws, certain=None if self._new is not None else self._name)
        if draws is not None:  # the engine learns the drawn lengths of jobs that say how long they are, too
            engine.handle(now, self._lengths.news(steps))
        coming = []
        if self._new is not None:
            deadline = None if self._new.slo_seconds is None else now + self._new.slo_seconds
            coming.append(Submission(max(now, 0.0), self._new, deadline))
            if not self.says_steps:
                steps[self._name] = self._lengths.of_new(self._new)
        return _Forward(engine, coming, self._table, steps, self._name)

    def basis(self, samples: int, span: Callable[[float], str]) -> str:
        """What the prediction was made from, in words."""
        lengths = self._lengths
        unknown = np.count_nonzero(~lengths.known)
        parts = [f"simulated from the present state of {len(lengths.known)} jobs"]
        if samples:
            runs = "1 more run" if samples == 1 else f"{samples} more runs"
            parts.append(f"the interval from {runs} in which other jobs take about {SPREAD:.0%} more or less")
        if unknown:
            run = f"{unknown} that do not say how long they are taken to run {span(lengths.typical)}"
            parts.append(f"{run} ({lengths.source})")
        return "; ".join([*parts, "jobs that will come and workers that will fail are not known"])


class _Forward:
    """One run, as far as it is needed."""

    def __init__(
        self,
        engine: TrainingEngine,
        coming: list[Submission],
        table: ThroughputTable | None,
        steps: Mapping[str, float],
        job: str,
    ) -> None:
        options = TrainingOptions(engine.options.round_seconds, engine.options.restart_seconds)
        self._run = TrainingRun(engine, coming, engine.cluster, options, table=table, steps_left=steps)
        self._run.loop.run(until=self._run.loop.now)
        self._row = next(row for row in reversed(self._run.recorder.jobs) if row.job.id == job)

    def to_start(self, deadline: float) -> JobRow | None:
        """Run until the job starts, or will not; None if that takes too long."""
        row = self._row
        known = self._run_until(lambda: not math.isnan(row.start) or row.outcome is Outcome.UNRUNNABLE, deadline)
        return row if known else None

    def to_finish(self, deadline: float) -> float | None:
        """Run until the job finishes, and say when; None if that takes too long."""
        return self._row.finish if self._run_until(lambda: not math.isnan(self._row.finish), deadline) else None

    def _run_until(self, reached: Callable[[], bool], deadline: float) -> bool:
        """A round at a time, so that not much is simulated in vain."""
        loop, step = self._run.loop, self._run.engine.options.round_seconds
        for _ in range(_MOST_ROUNDS):
            if reached():
                return True
            if time.perf_counter() > deadline:
                return False
            loop.run(until=loop.now + step)
        return False
