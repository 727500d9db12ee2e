"""What the queue asks of the machines: the jobs that the engine knows, and those for which too few workers are there.

Jobs that wait for something else, such as for another job, for their team's quota or for a moment after a failure, ask
for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairway.allocate.packing.requests import WHOLE
from fairway.engine.training.engine import TrainingEngine
from fairway.jobs import Job
from fairway.live.backend.demand import JobDemand


def demand_of(engine: TrainingEngine, refused: Mapping[str, Job]) -> tuple[JobDemand, ...]:
    """From the jobs of an engine, and those that it has `refused` for want of workers, which are not in it."""
    jobs, types = engine.jobs, engine.types
    running: list[JobDemand] = []
    waiting: list[JobDemand] = []
    for position in range(len(jobs)):
        on = int(jobs.on[position])
        able = [on] if on >= 0 else np.flatnonzero(jobs.rates[position] > 0).tolist()
        one = JobDemand(
            types=tuple(types[number] for number in able),
            workers=int(jobs.scale[position]),
            nodes=int(jobs.nodes[position]),
            part=float(jobs.part[position]) / WHOLE,
            cpus=float(jobs.cpus[position]),
            memory_bytes=float(jobs.memory[position]),
        )
        (waiting if on < 0 else running).append(one)
    return (*running, *waiting, *map(_of_job, refused.values()))


def _of_job(job: Job) -> JobDemand:
    return JobDemand(
        types=tuple(name for name, rate in job.throughputs.items() if rate > 0),
        workers=job.scale_factor,
        nodes=job.nodes or 0,
        part=job.part,
        cpus=job.cpus,
        memory_bytes=job.memory_bytes,
    )
