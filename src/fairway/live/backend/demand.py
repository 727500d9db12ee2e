"""What the jobs that run or wait ask of the machines, for a backend whose machines come and go.

A backend with machines that are always the same has no use for it. One with an autoscaler behind it asks for machines
that would hold all of this, and no longer for those that would hold none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobDemand:
    """What one job asks for: `workers` accelerators, a `part` of each, of one of the `types`.

    Of a job that runs, that is the type that it runs on. A gang is on as few nodes as have room, on at most `nodes` (0
    for any number). `cpus` and `memory_bytes` are what all of its processes take together.
    """

    types: tuple[str, ...]
    workers: int = 1
    nodes: int = 1
    part: float = 1.0
    cpus: float = 0.0
    memory_bytes: float = 0.0


Demand = Sequence[JobDemand]
"""Of all jobs: first those that run, then those that wait, in the order in which they came."""
