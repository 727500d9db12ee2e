"""What is scheduled: training jobs as the allocation policies see them, pairs that may share, teams that own them.

Units: steps per second, steps, seconds. A job's rate is the sum over all workers of its gang; a rate of 0 says that the
job cannot run there (it does not fit in memory, for example). Jobs stand in order of arrival.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)

Name = Annotated[str, Field(min_length=1)]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, config=_STRICT)
class Job:
    """A training job: how fast it runs on each accelerator type and how much of it is left.

    `elapsed` is the time since arrival; `isolated_elapsed` the time that the work done so far would have taken on an
    equal share of the cluster (C_m of finish-time fairness, Gavel §4.2); `slo_seconds` the time left to the deadline,
    0 or less when it has passed. `spread_throughputs` are the rates of a gang that spans nodes, where they differ.
    `job_type` is the name under which a table of profiles knows it; which jobs may share is looked up by it. A job that
    is not `preemptible` keeps its workers from its start to its end, and shares them with no other job. On types that
    are `guessed` the rate is what jobs do on the whole: good enough to begin somewhere, no reason to move. A job that
    does not `resume` from a checkpoint begins from zero whenever it is started again. `cpus` and `memory_bytes` are
    what all of its processes together ask for of their machines, divided evenly among the workers of the gang.
    Jobs of a higher `priority` come before all of a lower one; one that `preempts` takes the workers of such jobs that
    run, too. A gang spans at most `nodes` machines; 0, as many as it takes. A job may ask for no more than a `part` of
    each of its workers, in thousandths of one: its rates are those that it has on such parts, and other jobs may have
    the rest of the workers.
    """

    id: Name
    throughputs: Mapping[Name, Rate]
    scale_factor: Annotated[int, Field(ge=1)] = 1
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    steps_left: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    elapsed: Seconds = 0.0
    isolated_elapsed: Seconds = 0.0
    slo_seconds: Annotated[float, Field(allow_inf_nan=False)] | None = None
    entity: Name | None = None
    spread_throughputs: Mapping[Name, Rate] | None = None
    job_type: Name | None = None
    preemptible: bool = True
    guessed: tuple[Name, ...] = ()
    resumes: bool = True
    cpus: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    memory_bytes: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    preempts: bool = True
    nodes: Annotated[int, Field(ge=0)] = 0
    part: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 1.0

    @property
    def thousandths(self) -> int:
        """How much it asks for of each of its workers, in thousandths: never less than it said."""
        return max(math.ceil(self.part * 1000 - 1e-6), 1)


@dataclass(frozen=True, slots=True, config=_STRICT)
class Pair:
    """Two jobs that can share the same workers, and the rate of each while they do (space sharing, Gavel §3.1)."""

    jobs: tuple[Name, Name]
    throughputs: Mapping[Name, tuple[Rate, Rate]]


@dataclass(frozen=True, slots=True, config=_STRICT)
class Entity:
    """A team: its weight among its siblings and the rule that divides its share among its members.

    Members are jobs and, through `parent`, other entities; `fifo` serves them in order of arrival (Gavel §4.3).
    """

    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    policy: Literal["fairness", "fifo"] = "fairness"
    parent: Name | None = None
