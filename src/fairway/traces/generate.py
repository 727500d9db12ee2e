"""Generates jobs as Gavel's simulator does: the same seed gives the same draws, and so the same jobs (Gavel §7.1).

Job types are drawn evenly from the table; gangs have 1, 2, 4 or 8 workers with probabilities 0.70, 0.10, 0.15 and 0.05;
durations are 10^x minutes, with x uniform in [1.5, 3] for four jobs of five and in [3, 4] for the fifth; gaps between
arrivals are exponential. A job gets the steps that it would do in its duration on the reference accelerator. Three
generators seeded with seed + 2, seed + 3 and seed + 6 draw the jobs, the gaps and the SLOs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from random import Random

from fairway.errors import InputError
from fairway.profiles import ThroughputTable
from fairway.traces.gavel_table import JOB_TABLE, JobType
from fairway.traces.generate_options import GeneratorOptions
from fairway.traces.trace import TraceJob


def generate(options: GeneratorOptions, table: ThroughputTable) -> Iterator[TraceJob]:
    """The jobs one by one, in order of arrival, with rates from the table; they are drawn as they are asked for."""
    job_draws, gap_draws, slo_draws = (Random(options.seed + offset) for offset in (2, 3, 6))
    arrival = 0.0
    for number in count() if options.jobs is None else range(options.jobs):
        # The order of these draws is that of the original. The gang size is drawn even where it is not used.
        gang = _scale_factor(job_draws)
        scale_factor = gang if options.multi_gpu else 1
        duration = options.duration_seconds or _duration(job_draws)
        job_type = _job_type(job_draws, scale_factor)
        yield TraceJob(
            id=str(number),
            arrival=arrival,
            job_type=job_type.name,
            scale_factor=scale_factor,
            total_steps=_steps(duration, job_type.name, scale_factor, options.reference, table),
            duration_seconds=duration,
            weight=5.0 if options.multi_priority and job_draws.uniform(0, 1) <= 0.2 else 1.0,
            slo=_slo(slo_draws) if options.slos else None,
        )
        if options.mean_gap_seconds:
            arrival += -math.log(1.0 - gap_draws.random()) / (1.0 / options.mean_gap_seconds)


def _scale_factor(draws: Random) -> int:
    share = draws.uniform(0, 1)
    if share < 0.7:
        return 1
    if share <= 0.8:
        return 2
    return 4 if share <= 0.95 else 8


def _duration(draws: Random) -> float:
    long = draws.random() >= 0.8
    return 60.0 * 10 ** (draws.uniform(3, 4) if long else draws.uniform(1.5, 3))


def _job_type(draws: Random, scale_factor: int) -> JobType:
    while True:
        job_type = draws.choice(JOB_TABLE)
        if scale_factor == 1 or job_type.distributable:
            return job_type


def _slo(draws: Random) -> float:
    share = draws.uniform(0, 1)
    if share < 0.33:
        return 1.2
    return 2.0 if share < 0.67 else 10.0


def _steps(duration: float, job_type: str, scale_factor: int, reference: str, table: ThroughputTable) -> float:
    rate = table.rate(job_type, scale_factor, reference)
    if rate == 0:
        raise InputError(
            f"{job_type!r} cannot run on {scale_factor} × {reference!r} in the table ({table.source}), expected a rate "
            "above 0 to count its steps by; choose another reference accelerator"
        )
    return duration * rate
