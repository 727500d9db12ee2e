"""Finds moves without gain: watches an engine run a workload, and judges every stop of a job by itself.

A move is judged by the rates of the jobs before and after it, and by nothing that the engine has computed. It is a gain
if the job ends sooner than it would have where it was, the restart included. Otherwise it has to be needed: if the job
could have stayed, with those that stayed where they are and all others at the rate that they got or a higher one, then
it was moved without gain.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Command, Event, Revoke
from fairway.engine.training.options import EngineOptions
from fairway.jobs import Job
from fairway.sim.submissions import Submission, TrainingOptions
from fairway.sim.training import TrainingRun

_CLOSE = 1e-9
ROUND = 360.0


@dataclass(slots=True)
class Watched:
    """What was seen: `gainless` moves in words, all `moves`, how many jobs `finished`, and `contended` moments.

    At those, jobs were stopped while others had to wait; who stops for whom is up to the policy, and is not judged.
    """

    gainless: list[str] = field(default_factory=list)
    moves: int = 0
    contended: int = 0
    finished: int = 0


class _WatchedEngine(TrainingEngine):
    seen: Watched

    def handle(self, now: float, events: Sequence[Event]) -> list[Command]:
        self.advance(now)
        before = _standing(self)
        commands = super().handle(now, events)
        stopped = [
            job for command in commands if isinstance(command, Revoke) and command.restart for job in command.jobs
        ]
        if stopped:
            self._judge(stopped, before)
        return commands

    def _judge(self, stopped: list[str], before: dict[str, tuple[int, float, int]]) -> None:
        after, seen = _standing(self), self.seen
        seen.moves += len(stopped)
        if any(column < 0 for column, _, _ in after.values()):
            seen.contended += 1
            return
        jobs = self.jobs
        for job in stopped:
            (here, left, beside), (there, _, now_beside) = before[job], after[job]
            rates = jobs.rates[jobs.position(job)]
            if beside >= 0 or now_beside >= 0:
                continue
            stay, go = left / rates[here], self.options.restart_seconds + left / rates[there]
            if go >= stay * (1 - _CLOSE) and self._could_stay(job, here, before, after):
                seen.gainless.append(
                    f"{self.now:g} s: {job} from {self.types[here]} ({stay:.1f} s to go) "
                    f"to {self.types[there]} ({go:.1f} s), among {before}"
                )

    def _could_stay(
        self, mover: str, here: int, before: dict[str, tuple[int, float, int]], after: dict[str, tuple[int, float, int]]
    ) -> bool:
        """Whether all jobs find room: one where it was, those that stayed as well, and the others at no lower rate."""
        jobs, options = self.jobs, []
        for name, (column, _, _) in after.items():
            position = jobs.position(name)
            rates, size = jobs.rates[position], int(jobs.scale[position])
            fine = np.flatnonzero(rates >= rates[column] * (1 - _CLOSE)).tolist()
            if name == mover:
                fine = [here]
            elif name in before and before[name][0] == column:
                fine = [column]
            options.append((tuple(fine), size))
        options.sort(key=lambda option: (len(option[0]), -option[1]))

        @cache
        def fits(index: int, room: tuple[int, ...]) -> bool:
            if index == len(options):
                return True
            columns, size = options[index]
            return any(
                room[column] >= size and fits(index + 1, (*room[:column], room[column] - size, *room[column + 1 :]))
                for column in columns
            )

        return fits(0, tuple(self.workers.present.tolist()))


def _standing(engine: TrainingEngine) -> dict[str, tuple[int, float, int]]:
    """The type that each job runs on, the steps that it has left, and the job that it shares with."""
    jobs = engine.jobs
    rows = zip(jobs.on.tolist(), jobs.left.tolist(), jobs.beside.tolist(), strict=True)
    return dict(zip(jobs.ids, rows, strict=True))


def watch(
    workload: Sequence[tuple[float, Job]], cluster: Cluster, policy: str, *, restart: float = 0.0, seed: int = 0
) -> Watched:
    """Run a workload in the simulator under a policy, and judge the moves."""
    options: dict[str, Any] = {"round_seconds": ROUND, "restart_seconds": restart, "seed": seed}
    engine = _WatchedEngine(cluster, policy_of(policy), EngineOptions(**options))
    engine.seen = Watched()
    submissions = [Submission(arrival, job, deadline=arrival + 1e6) for arrival, job in workload]
    run = TrainingRun(engine, submissions, cluster, TrainingOptions(**options))
    run.loop.run()
    engine.seen.finished = len(workload) - len(engine.jobs)
    return engine.seen


def underloaded(seed: int) -> tuple[list[tuple[float, Job]], Cluster, float]:
    """Random jobs that all fit at once, whichever of them runs where; their cluster, and what a restart costs."""
    draw = random.Random(seed)
    types = [f"type-{number}" for number in range(draw.choice((2, 2, 3)))]
    cluster = Cluster({name: draw.randint(1, 5) for name in types})
    gangs = draw.random() < 0.3
    room = min(cluster.workers.values()) if gangs else sum(cluster.workers.values())
    kind = draw.choice(("equal", "equal in part", "any"))
    workload: list[tuple[float, Job]] = []
    arrival = 0.0
    while room > 0 and len(workload) < 9:
        scale = draw.choice([size for size in (1, 2, 4) if size <= room]) if gangs else 1
        room -= scale
        rates = {name: 1.0 if kind == "equal" else draw.choice((1.0, 1.0, 1.5, 4.0)) for name in types}
        if kind == "equal in part" and draw.random() < 0.5:
            rates = dict.fromkeys(types, 2.0)
        steps = draw.uniform(0.2, 6.0) * ROUND
        arrival += draw.choice((0.0, 0.0, 100.0, ROUND, 2.5 * ROUND))
        workload.append(
            (arrival, Job(f"job-{len(workload)}", rates, scale, steps_left=steps, entity=draw.choice("xy")))
        )
    return workload, cluster, draw.choice((0.0, 30.0, 200.0))
