"""What the training simulator is given: the jobs that will come, and how to run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fairway.allocate.packing.packer import Rule
from fairway.jobs import Entity, Job
from fairway.sim.profiling import Profiling


@dataclass(frozen=True, slots=True)
class Submission:
    """A job that will arrive: its rates are the true ones, `job.steps_left` is all of its work."""

    arrival: float
    job: Job
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class PriceChange:
    """From a time on, workers cost so much (dollars per hour, every type)."""

    time: float
    prices: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How to run.

    `restart_seconds` is charged each time a job starts on workers that it did not just hold. `window` are the numbers
    of the jobs, in order of arrival from 0, that the averages count; the run ends when all of them have ended, and
    without a window when all jobs have. `keep_leases` records every lease, which a report needs and a sweep does not.
    With `profiling`, how fast jobs run while they share is not known to the scheduler but estimated and then measured;
    with `hide_lengths`, it is not told how many steps a job takes, and with `wrong_lengths` a number that is too high
    or too low by a factor of up to this, drawn for each job. Jobs that ask for parts of workers are put where the rule
    of `packing` says.
    """

    round_seconds: float = 360.0
    restart_seconds: float = 0.0
    compat: Literal["gavel"] | None = None
    window: tuple[int, int] | None = None
    seed: int = 0
    keep_leases: bool = False
    entities: Mapping[str, Entity] = field(default_factory=dict)
    price_changes: tuple[PriceChange, ...] = ()
    profiling: Profiling | None = None
    hide_lengths: bool = False
    wrong_lengths: float = 1.0
    packing: Rule = "fgd"


Progress = Callable[[int, float], None]
"""Called now and then with the number of jobs that have ended and the virtual time."""
