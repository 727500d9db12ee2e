"""Small records, written out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairway.cluster import Cluster
from fairway.report.training.record import JobColumns, LeaseColumns, Outcome, Timeline, TrainingRecord

NAN = float("nan")


def jobs(**columns: Any) -> JobColumns:
    """Jobs by id; the columns that are not given have their usual values."""
    ids = tuple(columns.pop("ids"))
    number = len(ids)
    usual: dict[str, Any] = {
        "job_types": (None,) * number,
        "entities": (None,) * number,
        "arrival": np.zeros(number),
        "start": np.full(number, NAN),
        "finish": np.full(number, NAN),
        "scale_factor": np.ones(number, dtype=np.int64),
        "weight": np.ones(number),
        "isolated_seconds": np.full(number, NAN),
        "deadline": np.full(number, NAN),
        "cost_dollars": np.zeros(number),
        "preemptions": np.zeros(number, dtype=np.int64),
        "outcome": np.full(number, Outcome.COMPLETED, dtype=np.int64),
        "counted": np.ones(number, dtype=np.bool_),
    }
    for name, values in columns.items():
        usual[name] = tuple(values) if isinstance(usual[name], tuple) else np.array(values, dtype=usual[name].dtype)
    return JobColumns(ids=ids, **usual)


def leases(rows: Sequence[tuple[int, int, float, float, Sequence[int]]], partners: Sequence[int] = ()) -> LeaseColumns:
    """Leases as job, accelerator type, start, end and workers."""
    number = len(rows)
    return LeaseColumns(
        job=np.array([row[0] for row in rows], dtype=np.int64),
        partner=np.array(partners or [-1] * number, dtype=np.int64),
        accelerator=np.array([row[1] for row in rows], dtype=np.int64),
        start=np.array([row[2] for row in rows], dtype=np.float64),
        end=np.array([row[3] for row in rows], dtype=np.float64),
        steps=np.zeros(number),
        partner_steps=np.zeros(number),
        offset=np.cumsum([0] + [len(row[4]) for row in rows]),
        workers=np.array([worker for row in rows for worker in row[4]], dtype=np.int64),
    )


def timeline(
    time: Sequence[float], waiting: Sequence[int], running: Sequence[int], busy: Sequence[Sequence[int]]
) -> Timeline:
    return Timeline(
        np.array(time, dtype=np.float64),
        np.array(waiting, dtype=np.int64),
        np.array(running, dtype=np.int64),
        np.array(busy, dtype=np.int64),
    )


def record(
    columns: JobColumns,
    held: LeaseColumns | None = None,
    *,
    policy: str = "fifo",
    workers: Mapping[str, int] | None = None,
    prices: Mapping[str, float] | None = None,
    state: Timeline | None = None,
    makespan: float = 0.0,
    busy_seconds: Sequence[float] = (),
    settings: Mapping[str, Any] | None = None,
) -> TrainingRecord:
    cluster = Cluster(workers or {"v100": 2, "k80": 1}, prices or {})
    return TrainingRecord(
        policy=policy,
        cluster=cluster,
        settings={"seed": 0} if settings is None else settings,
        jobs=columns,
        leases=held or leases([]),
        timeline=state or timeline([], [], [], np.zeros((0, len(cluster.workers))).tolist()),
        makespan_seconds=makespan,
        busy_seconds=np.array(busy_seconds or [0.0] * len(cluster.workers), dtype=np.float64),
        rounds=7,
        solves=3,
        leases_granted=9,
        wall_seconds=0.5,
    )


def nothing_ran() -> TrainingRecord:
    """Two jobs, of which neither ever held a worker."""
    return record(jobs(ids="ab", outcome=[Outcome.UNFINISHED, Outcome.UNRUNNABLE]))


def four_jobs() -> TrainingRecord:
    """Two V100 and a K80 for 400 s: jobs a and b of two teams complete, c does not, d never can.

    a holds V100 0 from 0 to 100, b both V100 from 100 to 300 and the K80 from 300 to 350, c the K80 from 100 to 300.
    """
    return record(
        jobs(
            ids="abcd",
            job_types=["ResNet-18", "LM", "LM", "LM"],
            entities=["red", "blue", "red", "blue"],
            arrival=[0, 50, 100, 100],
            start=[0, 100, 100, NAN],
            finish=[100, 350, NAN, NAN],
            scale_factor=[1, 2, 1, 1],
            isolated_seconds=[200, 150, NAN, NAN],
            deadline=[100, 300, 400, 900],
            cost_dollars=[2.0, 8.5, 1.5, 0.0],
            preemptions=[0, 3, 1, 0],
            outcome=[Outcome.COMPLETED, Outcome.COMPLETED, Outcome.UNFINISHED, Outcome.UNRUNNABLE],
        ),
        leases(
            [
                (0, 0, 0, 100, [0]),
                (1, 0, 100, 200, [0, 1]),
                (2, 1, 100, 300, [0]),
                (1, 0, 200, 300, [0, 1]),
                (1, 1, 300, 350, [0]),
            ]
        ),
        prices={"v100": 2.0, "k80": 0.5},
        state=timeline([0, 100, 300, 350], [0, 0, 1, 1], [1, 2, 1, 0], [[1, 0], [2, 1], [0, 1], [0, 0]]),
        makespan=400.0,
        busy_seconds=[500.0, 250.0],
    )


def many_leases(number: int, workers: int = 36) -> TrainingRecord:
    """Three types on which jobs take turns by the round, so that no two leases merge."""
    lease = np.arange(number)
    per_round = 3 * workers
    count = 500
    start = (lease // per_round) * 360.0
    state = np.unique(start)
    end = float(start[-1] + 360.0)
    columns = jobs(
        ids=[f"job-{k}" for k in range(count)],
        finish=np.linspace(360.0, end, count),
        start=np.zeros(count),
        isolated_seconds=np.full(count, 1000.0),
    )
    held = replace(
        leases([]),
        job=(lease * 7 + lease // per_round) % count,
        partner=np.full(number, -1),
        accelerator=(lease % per_round) // workers,
        start=start,
        end=start + 360.0,
        steps=np.ones(number),
        partner_steps=np.zeros(number),
        offset=np.arange(number + 1),
        workers=lease % workers,
    )
    busy = [[workers] * 3] * len(state)
    return record(
        columns,
        held,
        workers={"v100": workers, "p100": workers, "k80": workers},
        state=timeline(state.tolist(), [5] * len(state), [per_round] * len(state), busy),
        makespan=end,
        busy_seconds=[end * workers] * 3,
    )
