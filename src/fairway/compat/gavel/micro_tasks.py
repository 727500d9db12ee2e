"""The world of the original simulator: what happens to jobs that run, round by round (Gavel §7, its implementation).

In a round, whoever was placed does as many whole steps as fit into it, or as it has left; the round is over when the
last of them is done, which is a bit before its time. Who is done earlier leaves its workers idle until then; two that
share are done together. The time that counts runs from the end of the round before, even where no job ran in between.
A gang splits its steps among its workers, and where one of them gets none, the round was in vain; a job that fails five
times in a row is dropped, with no completion time. Jobs that come during a round wait for its end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.compiled import FloatArray, FloatTable, IntArray, compiled

MOST_FAILURES = 5
"""So many failures in a row are the end of a job."""


@dataclass(frozen=True, slots=True)
class Played:
    """How a round went.

    `seconds[k]` is the time that counts for the k-th gang, 0 if it failed; `done` are the jobs that are finished or
    were dropped, and `failed` says whether any gang failed.
    """

    end: float
    seconds: FloatArray
    done: IntArray
    failed: bool


class MicroTasks:
    """Jobs by number: the steps that each has left and, once it is done, when that was (NaN: dropped, or not yet)."""

    def __init__(self, round_seconds: float = 360.0, jobs: int = 64) -> None:
        self._round_seconds = round_seconds
        self._round_end = 0.0
        self._jobs = 0
        self._steps_left, self._finish = np.zeros(jobs), np.full(jobs, np.nan)
        self._failures = np.zeros(jobs, dtype=np.int64)
        self.rounds = 0
        """Rounds in which a job ran."""
        self.worker_seconds = 0.0
        """The time that counts, of all workers together."""

    @property
    def steps_left(self) -> FloatArray:
        """The steps that each job has left."""
        return self._steps_left[: self._jobs]

    @property
    def finish(self) -> FloatArray:
        """When each job was done; NaN for those that are not, or were dropped."""
        return self._finish[: self._jobs]

    def add(self, steps: float) -> int:
        """Take in a job of so many steps; returns its number."""
        number = self._jobs
        if number == len(self._steps_left):
            self._steps_left = np.concatenate([self._steps_left, np.zeros(number)])
            self._finish = np.concatenate([self._finish, np.full(number, np.nan)])
            self._failures = np.concatenate([self._failures, np.zeros(number, dtype=np.int64)])
        self._steps_left[number] = steps
        self._jobs += 1
        return number

    def play(self, now: float, late: IntArray, early: IntArray, sizes: IntArray, rates: FloatArray) -> Played:
        """Let these gangs run from now until the last of them is done with the round.

        Gang k runs job `late[k]`, beside job `early[k]` unless that is -1, on `sizes[k]` workers, at `rates[k, 0]` and
        `rates[k, 1]` steps per second (the rate of the early job first, where there are two).
        """
        seconds = np.empty(len(late))
        end, busy, done, failed = _play(
            now, self._round_end, self._round_seconds, late, early, sizes, rates,
            self._steps_left, self._failures, self._finish, seconds,
        )  # fmt: skip
        self._round_end = end
        self.rounds += 1
        self.worker_seconds += busy
        return Played(end, seconds, done, failed)


@compiled(releases_gil=True, divides_as_numpy=True)
def _play(
    now: float,
    start: float,
    round_seconds: float,
    late: IntArray,
    early: IntArray,
    sizes: IntArray,
    rates: FloatTable,
    steps_left: FloatArray,
    failures: IntArray,
    finish: FloatArray,
    seconds: FloatArray,
) -> tuple[float, float, IntArray, bool]:
    end, busy, any_failed = now, 0.0, False
    done, count = np.empty(2 * len(late), dtype=np.int64), 0
    for k in range(len(late)):
        paired = early[k] >= 0
        over, works = now, True
        for member in range(2 if paired else 1):
            job = early[k] if paired and member == 0 else late[k]
            rate = rates[k, member]
            steps = min(float(int(rate * round_seconds)), steps_left[job])
            over = max(over, now + steps / rate)
            works = works and steps > 0.0 and (sizes[k] == 1 or steps >= sizes[k])
        works = works and over > start
        end = max(end, over)
        seconds[k] = over - start if works else 0.0
        busy += seconds[k] * sizes[k]
        any_failed = any_failed or not works
        for member in range(2 if paired else 1):
            job = early[k] if paired and member == 0 else late[k]
            if works:
                steps_left[job] -= min(float(int(rates[k, member] * round_seconds)), steps_left[job])
                if not paired:
                    failures[job] = 0
                if steps_left[job] <= 0.0:
                    finish[job] = over
                    done[count] = job
                    count += 1
            elif not paired:
                failures[job] += 1
                if failures[job] >= MOST_FAILURES:
                    done[count] = job
                    count += 1
    return end, busy, done[:count], any_failed
