"""What happened in a run of training jobs, in columns: every job, every lease, and the state at each round.

The simulator and the live system write the same record; numbers, tables and pages are made of it and of nothing else.
Times are seconds since the start of the run, NaN where something did not happen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from fairway.cluster import Cluster
from fairway.report.tables import Tabular

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Outcome(IntEnum):
    """How a job ended, or that it did not."""

    COMPLETED = 0
    UNFINISHED = 1
    UNRUNNABLE = 2
    FAILED = 3
    CANCELLED = 4


@dataclass(frozen=True, eq=False)
class JobColumns(Tabular):
    """One entry per job, in order of arrival; `to_polars`, `to_pandas` and `to_csv` make a table of them.

    `isolated_seconds` is the time that the work done takes on an equal share of the cluster, with as many jobs present
    as there were at each moment (C_m of finish-time fairness); `counted` marks the jobs that the averages are over.
    `run_seconds` is how long each held workers, and `held_seconds` has a row of accelerator seconds for each job, by
    the `types` of the cluster, where two jobs that share count half each; None where that was not written down. Where
    jobs have parts of workers, `scale_factor` counts them as such.
    """

    ids: tuple[str, ...]
    job_types: tuple[str | None, ...]
    entities: tuple[str | None, ...]
    arrival: FloatArray
    start: FloatArray
    finish: FloatArray
    scale_factor: IntArray | FloatArray
    weight: FloatArray
    isolated_seconds: FloatArray
    deadline: FloatArray
    cost_dollars: FloatArray
    preemptions: IntArray
    outcome: IntArray
    counted: BoolArray
    types: tuple[str, ...] = ()
    run_seconds: FloatArray | None = None
    held_seconds: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def table(self) -> dict[str, Sequence[Any]]:
        """One row per job; times are seconds, and empty where a job has not completed."""
        done = self.outcome == Outcome.COMPLETED
        jct = np.where(done, self.finish - self.arrival, np.nan)
        run = np.full(len(self), np.nan) if self.run_seconds is None else self.run_seconds
        isolated = np.where(self.isolated_seconds > 0, self.isolated_seconds, np.nan)
        columns: dict[str, Sequence[Any]] = {
            "id": self.ids,
            "team": self.entities,
            "type": self.job_types,
            "workers": self.scale_factor.tolist(),
            "weight": self.weight.tolist(),
            "outcome": [Outcome(each).name.lower() for each in self.outcome.tolist()],
            "counted": self.counted.tolist(),
            "arrival": self.arrival.tolist(),
            "start": self.start.tolist(),
            "finish": np.where(done, self.finish, np.nan).tolist(),
            "deadline": self.deadline.tolist(),
            "jct": jct.tolist(),
            "wait": np.where(done, jct - run, np.nan).tolist(),
            "run": run.tolist(),
            "preemptions": self.preemptions.tolist(),
            "rho": (jct / isolated).tolist(),
            "cost_dollars": self.cost_dollars.tolist(),
        }
        for column, name in enumerate(self.types if self.held_seconds is not None else ()):
            columns[f"{name}_seconds"] = self.held_seconds[:, column].tolist()  # type: ignore[index]
        return columns


@dataclass(frozen=True, eq=False)
class LeaseColumns:
    """One entry per lease: job `job[k]`, beside `partner[k]` unless that is -1, held some workers of one type.

    They are `workers[offset[k]:offset[k + 1]]`, numbered from 0 within their type. A pair has one lease, not two.
    Without `workers_kept`, only the counts of leases are known and all columns are empty.
    """

    job: IntArray
    partner: IntArray
    accelerator: IntArray
    start: FloatArray
    end: FloatArray
    steps: FloatArray
    partner_steps: FloatArray
    offset: IntArray
    workers: IntArray

    def __len__(self) -> int:
        return len(self.job)


@dataclass(frozen=True, eq=False)
class Timeline:
    """The state after the decision of each round: jobs that wait and run, busy workers by accelerator type."""

    time: FloatArray
    waiting: IntArray
    running: IntArray
    busy: IntArray | FloatArray


@dataclass(frozen=True, eq=False)
class TrainingRecord:
    """A whole run. `settings` are what is needed to repeat it, by the names of the command's options.

    `decisions` are those of its `solves` that were kept: the number of each, its time, and all of it as a JSON object.
    """

    policy: str
    cluster: Cluster
    settings: Mapping[str, Any]
    jobs: JobColumns
    leases: LeaseColumns
    timeline: Timeline
    makespan_seconds: float
    busy_seconds: FloatArray
    rounds: int
    solves: int
    leases_granted: int
    wall_seconds: float
    skipped_rows: int = 0
    unreadable_rows: int = 0
    decisions: tuple[tuple[int, float, Mapping[str, Any]], ...] = ()
