"""Runs jobs as the original simulator of Gavel does, so that published numbers can be compared (Gavel §7).

This is the original's loop over rounds: its mechanism (`rounds`), its answers (`policies`) and
its world (`micro_tasks`), with their gaps and defects. It shares nothing with the engine but what jobs, policies
and records are; the engine is what users run, and this is what it is measured against.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fairway.allocate.allocation import Allocation
from fairway.allocate.pairs import Pairs
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem
from fairway.cluster import Cluster
from fairway.compat.gavel.micro_tasks import MicroTasks, Played
from fairway.compat.gavel.policies import compat_policy, mechanism_of
from fairway.compat.gavel.rounds import GavelRounds, Placed
from fairway.compiled import compiled
from fairway.engine.training.pair_rates import PairRates
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.options import text_of
from fairway.profiles import ThroughputTable
from fairway.report.training.record import Outcome, TrainingRecord
from fairway.sim.submissions import Progress, Submission, TrainingOptions
from fairway.sim.training_recorder import JobRow, Recorder

_SERVED_FIRST = ("v100", "p100", "k80")
"""The order in which the original serves the types that it knows; others follow as they were given."""

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]


def simulate_gavel(
    submissions: Iterable[Submission],
    cluster: Cluster,
    policy: str | Policy,
    options: TrainingOptions,
    *,
    table: ThroughputTable | None = None,
    progress: Progress | None = None,
) -> TrainingRecord:
    """Run the submissions, which come in order of arrival, as the original would."""
    _refuse_what_the_original_lacks(options)
    start = time.perf_counter()
    run = _GavelRun(submissions, cluster, policy, options, table, progress)
    run.play()
    return run.recorder.record(
        policy=policy if isinstance(policy, str) else text_of(policy),
        cluster=replace(cluster, workers={name: cluster.workers[name] for name in run.types}),
        settings={},
        window=options.window,
        end=run.now,
        rounds=run.passes,
        solves=run.solves,
        wall_seconds=time.perf_counter() - start,
    )


def _refuse_what_the_original_lacks(options: TrainingOptions) -> None:
    for name, given in (
        ("restart_seconds", options.restart_seconds > 0),
        ("price_changes", bool(options.price_changes)),
        ("profiling", options.profiling is not None),
    ):
        if given:
            raise InputError(f"{name}: given, but runs as in the original know none; leave it out, or --compat")


class _Columns:
    """What is known of every job that ever came, by number."""

    def __init__(self, types: int) -> None:
        self.rates = np.zeros((64, types))
        self.arrival, self.weight, self.deadline = np.zeros(64), np.ones(64), np.full(64, np.nan)
        self.pooled, self.isolated, self.cost, self.start = (
            np.zeros(64),
            np.zeros(64),
            np.zeros(64),
            np.full(64, np.nan),
        )
        self.size, self.kind = np.ones(64, dtype=np.int64), np.zeros(64, dtype=np.int64)
        self.starts, self.last_round, self.last_type = (np.full(64, fill, dtype=np.int64) for fill in (0, -2, -1))

    def make_room(self, number: int) -> None:
        if number == len(self.arrival):
            for name, column in vars(self).items():
                empty = np.full_like(column, np.nan) if name in {"start", "deadline"} else np.zeros_like(column)
                if name == "last_round":
                    empty[:] = -2
                setattr(self, name, np.concatenate([column, empty]))


class _GavelRun:
    def __init__(
        self,
        submissions: Iterable[Submission],
        cluster: Cluster,
        policy: str | Policy,
        options: TrainingOptions,
        table: ThroughputTable | None,
        progress: Progress | None,
    ) -> None:
        self.types = tuple(sorted(name for name in cluster.types if cluster.workers[name]))
        self.recorder = Recorder(len(self.types), keep_leases=options.keep_leases)
        self.now, self.passes, self.solves = 0.0, 0, 0
        self._options, self._progress = options, progress
        self._policy, mechanism = compat_policy(policy), mechanism_of(policy)
        served = [name for name in (*_SERVED_FIRST, *cluster.types) if name in self.types]
        self._workers = np.array([cluster.workers[name] for name in self.types], dtype=float)
        self._prices = np.array([cluster.prices.get(name, 0.0) for name in self.types])
        self._rounds = GavelRounds(
            [cluster.workers[name] for name in self.types],
            order=[self.types.index(name) for name in dict.fromkeys(served)],
            round_seconds=options.round_seconds,
            shuffled=mechanism.shuffled,
            needs_priority=mechanism.needs_priority,
            seed=options.seed,
        )
        self._tasks = MicroTasks(options.round_seconds)
        self._pairs = mechanism.pairs
        self._pair_rates = PairRates(self.types, table if mechanism.pairs else None)
        self._jobs = _Columns(len(self.types))
        self._active = np.zeros(0, dtype=np.int64)
        self._coming: Iterator[Submission] = iter(submissions)
        self._next = next(self._coming, None)
        self._previous: Allocation | None = None
        self._open_leases: dict[int, tuple[int, tuple[int, ...], float, float]] = {}
        self._ids: list[str] = []

    def play(self) -> None:
        """One round after the other, until all jobs that count have ended."""
        placed: Placed | None = None
        played: Played | None = None
        ended, window = 0, self._options.window
        wanted = np.inf if window is None else window[1] - window[0]
        if self._next is not None and window is None:
            self.now = self._next.arrival
        while True:
            if placed is not None and played is not None:
                self.now = played.end
                self._rounds.ran(placed, played.seconds)
                if played.failed:
                    self._rounds.disturb()
                if len(played.done):
                    self._rounds.depart(played.done)
                    self._active = self._active[~np.isin(self._active, played.done)]
                    self._close_leases(played.done.tolist())
                    ended += _within(played.done, window)
                    if self._progress is not None:
                        self._progress(ended, self.now)
                    if ended >= wanted:
                        break
            elif self._next is not None:
                self.now = max(self.now, self._next.arrival)
            elif not len(self._active):
                break
            else:
                self._rounds.wake()
            ended += self._arrivals(window)
            if ended >= wanted or (self._next is None and not len(self._active)):
                break
            if self._rounds.due(self.now) and len(self._active):
                self._decide()
            placed = self._rounds.choose()
            self.passes += 1
            played = self._play_round(placed) if len(placed.rows) else None
        self._write_down()

    def _arrivals(self, window: tuple[int, int] | None) -> int:
        """Take in who has come by now; returns how many of those that count can never run, and are out again."""
        refused: list[int] = []
        fresh: list[int] = []
        while self._next is not None and self._next.arrival <= self.now:
            number = self._take_in(self._next)
            job = self._next.job
            runs = (self._jobs.rates[number] > 0) & (self._workers >= job.scale_factor)
            if runs.any():
                self._join(number, job, runs, fresh)
                fresh.append(number)
            else:
                self.recorder.jobs[number].outcome = Outcome.UNRUNNABLE
                refused.append(number)
            self._next = next(self._coming, None)
        if fresh:
            self._active = np.concatenate([self._active, np.array(fresh, dtype=np.int64)])
        return _within(np.array(refused, dtype=np.int64), window)

    def _take_in(self, submission: Submission) -> int:
        job, jobs = submission.job, self._jobs
        assert job.steps_left is not None, "the simulator is told how long every job is"
        number = self._tasks.add(job.steps_left)
        jobs.make_room(number)
        jobs.rates[number] = [job.throughputs.get(name, 0.0) for name in self.types]
        jobs.pooled[number] = jobs.rates[number] @ self._workers
        jobs.arrival[number], jobs.weight[number], jobs.size[number] = submission.arrival, job.weight, job.scale_factor
        jobs.deadline[number] = np.nan if submission.deadline is None else submission.deadline
        jobs.kind[number] = self._pair_rates.kind(job.job_type, job.scale_factor)
        self._ids.append(job.id)
        self.recorder.job(job, submission.arrival, submission.deadline)
        return number

    def _join(self, number: int, job: Job, runs: npt.NDArray[np.bool_], fresh: list[int]) -> None:
        if not self._pairs:
            self._rounds.arrive(number, job.scale_factor, runs)
            return
        here = np.concatenate([self._active, np.array(fresh, dtype=np.int64)])
        partners = here[self._jobs.size[here] == job.scale_factor]
        kind, kinds = int(self._jobs.kind[number]), self._jobs.kind[partners]
        together = np.array([(self._pair_rates.of(int(other), kind) > 0).all(axis=1) for other in kinds], dtype=bool)
        self._rounds.arrive(number, job.scale_factor, runs, partners, together.reshape(len(partners), len(self.types)))

    def _decide(self) -> None:
        jobs, active, pairs = self._jobs, self._active, None
        if self._pairs:
            two = self._rounds.early >= 0
            early, late = self._rounds.early[two], self._rounds.late[two]
            rates = self._pair_rates.between(jobs.kind[early], jobs.kind[late])
            pairs = Pairs(np.searchsorted(active, early), np.searchsorted(active, late), rates)
        problem = Problem(
            types=self.types,
            workers=self._workers,
            ids=tuple([self._ids[number] for number in active.tolist()]),
            throughputs=jobs.rates[active],
            scale_factors=jobs.size[active].astype(float),
            weights=jobs.weight[active],
            steps_left=self._tasks.steps_left[active],
            elapsed=self.now - jobs.arrival[active],
            isolated_elapsed=jobs.isolated[active],
            slo_seconds=jobs.deadline[active] - self.now,
            team=np.full(len(active), -1),
            dollars_per_hour=self._prices if self._prices.any() else None,
            pairs=pairs,
            previous=self._previous,
            seed=self._options.seed,
        )
        self._previous = answer = self._policy.allocate(problem)
        self.solves += 1
        if self._pairs:
            two = answer.second >= 0
            first, second = active[answer.first], active[np.where(two, answer.second, 0)]
            self._rounds.decide(self.now, answer.shares, np.where(two, second, first), np.where(two, first, -1))
        else:
            self._rounds.decide(self.now, answer.shares)

    def _play_round(self, placed: Placed) -> Played:
        jobs, tasks, late, early = self._jobs, self._tasks, placed.late, placed.early
        rates = jobs.rates[late, placed.types][:, None]
        if self._pairs:
            beside = self._pair_rates.between(jobs.kind[early], jobs.kind[late])[np.arange(len(late)), placed.types]
            rates = np.where((early >= 0)[:, None], beside, rates)
        before, before_early = tasks.steps_left[late], tasks.steps_left[early]
        played = tasks.play(self.now, late, early, placed.sizes, rates)
        busy = np.zeros(len(self.types))
        _book(
            self.now, self.passes, len(self._active), self._workers.sum(), self._prices,
            late, early, placed.types, placed.sizes, played.seconds, before, before_early, tasks.steps_left,
            jobs.pooled, jobs.isolated, jobs.cost, jobs.start, jobs.starts, jobs.last_round, jobs.last_type,
            busy, self.recorder.busy_seconds,
        )  # fmt: skip
        running = len(late) + int(np.count_nonzero(early >= 0)) if self._pairs else len(late)
        self.recorder.round(self.now, len(self._active) - running, running, busy.astype(np.int64).tolist())
        if self._options.keep_leases:
            self._keep_leases(placed, played)
        return played

    def _keep_leases(self, placed: Placed, played: Played) -> None:
        """Write down who held what; a lease goes on as long as its row keeps its workers from round to round."""
        held = {}
        firsts = np.concatenate([[0], np.cumsum(self._workers[:-1])]).astype(np.int64)
        for row, column, late, early, seconds in zip(
            placed.rows.tolist(), placed.types.tolist(), placed.late.tolist(), placed.early.tolist(),
            played.seconds.tolist(), strict=True,
        ):  # fmt: skip
            workers = tuple((self._rounds.workers_of(row) - firsts[column]).tolist())
            end = min(self.now + seconds, played.end)
            key = late if early < 0 else -(late * len(self._ids) + early) - 1
            last = self._open_leases.get(key)
            begin = last[2] if last is not None and last[:2] == (column, workers) else self.now
            held[key] = (column, workers, begin, end)
            if last is not None and last[:2] != (column, workers):
                self._close(key, last)
        for key in self._open_leases.keys() - held.keys():
            self._close(key, self._open_leases[key])
        self._open_leases = held

    def _close_leases(self, done: list[int]) -> None:
        gone = set(done)
        for key in [key for key in self._open_leases if set(self._members(key)) & gone]:
            self._close(key, self._open_leases.pop(key))

    def _members(self, key: int) -> tuple[int, ...]:
        return (key,) if key >= 0 else divmod(-key - 1, len(self._ids))[::-1]

    def _close(self, key: int, lease: tuple[int, tuple[int, ...], float, float]) -> None:
        column, workers, begin, end = lease
        rows = tuple(self.recorder.jobs[number] for number in self._members(key))
        self.recorder.keep_lease(rows, column, workers, begin, end, (0.0,) * len(rows))

    def _write_down(self) -> None:
        for key, lease in self._open_leases.items():
            self._close(key, lease)
        jobs, present = self._jobs, set(self._active.tolist())
        self.recorder.leases_granted = int(jobs.starts.sum())
        for number, row in enumerate(self.recorder.jobs):
            if row.outcome != Outcome.UNRUNNABLE:
                self._write_down_job(number, row, number in present)

    def _write_down_job(self, number: int, row: JobRow, present: bool) -> None:
        jobs = self._jobs
        row.start, row.finish = float(jobs.start[number]), float(self._tasks.finish[number])
        row.cost_dollars, row.preemptions = float(jobs.cost[number]), max(int(jobs.starts[number]) - 1, 0)
        if not present:
            row.isolated_seconds = float(jobs.isolated[number])
            row.outcome = Outcome.FAILED if np.isnan(row.finish) else Outcome.COMPLETED


def _within(numbers: _Ints, window: tuple[int, int] | None) -> int:
    if window is None:
        return len(numbers)
    return int(np.count_nonzero((numbers >= window[0]) & (numbers < window[1])))


@compiled()
def _book(
    now: float,
    this_round: int,
    active: int,
    workers: float,
    prices: _Floats,
    late: _Ints,
    early: _Ints,
    types: _Ints,
    sizes: _Ints,
    seconds: _Floats,
    before: _Floats,
    before_early: _Floats,
    steps_left: _Floats,
    pooled: _Floats,
    isolated: _Floats,
    cost: _Floats,
    start: _Floats,
    starts: _Ints,
    last_round: _Ints,
    last_type: _Ints,
    busy: _Floats,
    busy_seconds: _Floats,
) -> None:
    """Count for each job what a round gave it, what it cost, and whether it had to start for it."""
    for k in range(len(late)):
        column, share = types[k], 1.0 if early[k] < 0 else 0.5
        busy[column] += sizes[k]
        busy_seconds[column] += seconds[k] * sizes[k]
        for member in range(1 if early[k] < 0 else 2):
            job = late[k] if member == 0 else early[k]
            steps = (before[k] if member == 0 else before_early[k]) - steps_left[job]
            isolated[job] += steps * max(active * sizes[k], workers) / pooled[job]
            cost[job] += share * prices[column] * sizes[k] * seconds[k] / 3600.0
            if np.isnan(start[job]):
                start[job] = now
            if last_round[job] != this_round - 1 or last_type[job] != column:
                starts[job] += 1
            last_round[job], last_type[job] = this_round, column
