"""A plan: what comes of changes against what comes of leaving things as they are, each under several seeds.

Runs under the same seed have the same jobs, so they are paired: a difference is the mean over seeds of the difference
of two runs, with the 95 % interval of Student's t. The jobs that gain and lose most are told by the mean change of
their completion times; teams likewise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np

from fairway.errors import InputError
from fairway.experiments.analysis import Estimate, estimate
from fairway.experiments.planning.change import AS_IT_IS, Change
from fairway.experiments.planning.outlook import METRICS, Outlook
from fairway.experiments.planning.world import World, changed
from fairway.sim.comparison import Pool, Watcher
from fairway.sim.submissions import Progress

SEEDS = 5
MOST_SEEDS = 100
_NOTICEABLE = 1e-6
"""Seconds by which a job's completion time must differ to count as a gain or a loss."""


@dataclass(frozen=True, slots=True)
class ForwardRun:
    """One simulation forward, which any process can do."""

    world: World
    seed: int

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it reads."""
        return self.world.files

    def __call__(self, progress: Progress | None = None) -> Outlook:
        """Do it, here and now."""
        return self.world.run(self.seed, progress)


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change comes to: each metric by itself and against leaving things as they are.

    `gains` and `losses` are seconds by which jobs finish earlier or later, in the mean over seeds, the largest first;
    `teams` is the mean change of the completion time of each team's jobs.
    """

    change: Change
    numbers: Mapping[str, Estimate]
    against: Mapping[str, Estimate]
    gains: Mapping[str, float] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)
    teams: Mapping[str, float] = field(default_factory=dict)

    @property
    def changes_nothing(self) -> bool:
        """Whether every run came out as without the change."""
        return all(one.mean == 0 or math.isnan(one.mean) for one in self.against.values()) and not (
            self.gains or self.losses
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What comes of things as they are (`base`), and of each change; `jobs` is how many were simulated."""

    base: Mapping[str, Estimate]
    differences: tuple[Difference, ...]
    seeds: int
    jobs: int


def plan(
    world: World,
    changes: Sequence[Change],
    *,
    seeds: int = SEEDS,
    prices: Mapping[str, float] | None = None,
    pool: Pool | None = None,
    watcher: Watcher | None = None,
) -> Plan:
    """Simulate a world as it is and with each change, under so many seeds, several at once (in `pool`, if given)."""
    if not 1 <= seeds <= MOST_SEEDS:
        raise InputError(f"seeds: {seeds} given, expected a whole number from 1 to {MOST_SEEDS}")
    worlds = [world, *(changed(world, change, prices or {}) for change in changes)]
    with nullcontext(pool) if pool is not None else Pool() as several:
        found = forward(worlds, seeds, several, watcher)
    base, jobs = found[0], max(len(one.jobs) + len(one.refused) for one in found[0])
    differences = tuple(
        _difference(change, base, outlooks) for change, outlooks in zip(changes, found[1:], strict=True)
    )
    return Plan(_numbers(base), differences, seeds, jobs)


def forward(worlds: Sequence[World], seeds: int, pool: Pool, watcher: Watcher | None = None) -> list[list[Outlook]]:
    """Simulate each world under seeds 0, 1, …; the outlooks of each, in their order."""
    runs = [ForwardRun(one, seed) for one in worlds for seed in range(seeds)]
    outlooks = pool.compare(runs, watcher=watcher)
    return [outlooks[first : first + seeds] for first in range(0, len(outlooks), seeds)]


def labels_of(changes: Sequence[Change], seeds: int) -> list[str]:
    """What the runs of a plan are, in the order in which a watcher hears of them."""
    return [f"{change}, seed {seed}" for change in (AS_IT_IS, *changes) for seed in range(seeds)]


def _numbers(outlooks: Sequence[Outlook]) -> dict[str, Estimate]:
    numbers = [outlook.numbers() for outlook in outlooks]
    return {name: estimate([one[name] for one in numbers]) for name in METRICS}


def _difference(change: Change, base: Sequence[Outlook], outlooks: Sequence[Outlook]) -> Difference:
    before, after = [one.numbers() for one in base], [one.numbers() for one in outlooks]
    against = {
        name: estimate([mine[name] - theirs[name] for mine, theirs in zip(after, before, strict=True)])
        for name in METRICS
    }
    by_job: dict[str, list[float]] = {}
    by_team: dict[str, list[float]] = {}
    for mine, theirs in zip(outlooks, base, strict=True):
        was = {job.job: job.jct for job in theirs.jobs}
        for job in mine.jobs:
            change_of = job.jct - was.get(job.job, math.nan)
            if not math.isnan(change_of):
                by_job.setdefault(job.job, []).append(change_of)
                if job.team is not None:
                    by_team.setdefault(job.team, []).append(change_of)
    means = {name: float(np.mean(values)) for name, values in by_job.items()}
    ordered = sorted(means.items(), key=lambda item: (item[1], item[0]))
    return Difference(
        change,
        _numbers(outlooks),
        against,
        gains={name: -value for name, value in ordered if value < -_NOTICEABLE},
        losses={name: value for name, value in reversed(ordered) if value > _NOTICEABLE},
        teams={name: float(np.mean(values)) for name, values in sorted(by_team.items())},
    )
