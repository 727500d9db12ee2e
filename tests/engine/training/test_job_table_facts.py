"""The table of jobs: copies stay as they were, and what is worked out once follows the jobs."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairway.allocate.packing.requests import WHOLE
from fairway.engine.training.job_table import JobTable


def table_of(*sizes: int) -> JobTable:
    jobs = JobTable(2)
    for number, size in enumerate(sizes):
        add(jobs, f"j{number}", scale=size)
    return jobs


def add(jobs: JobTable, name: str, **fields: Any) -> None:
    rates = np.array([1.0, 2.0])
    usual = {"time": 0.0, "scale": 1, "weight": 1.0, "steps": 10.0, "deadline": np.nan, "team": -1, "kind": 0}
    jobs.add(name, rates=rates, spread=rates, **(usual | fields))


def test_a_copy_stays_as_it_was() -> None:
    for count in (3, 64):  # fewer than there is room for, and as many
        jobs = table_of(*[1] * count)
        copy = jobs.copied()
        jobs.left[0], jobs.on[1] = 5.0, 1
        jobs.rates[2] = 0.0
        jobs.remove(0)
        assert copy.left.tolist() == [10.0] * count
        assert copy.on.tolist() == [-1] * count
        assert copy.rates.tolist() == [[1.0, 2.0]] * count


def test_sizes_follow_jobs_that_come_go_and_change() -> None:
    jobs = table_of(1, 2)
    assert jobs.held.tolist() == [WHOLE, 2 * WHOLE]
    jobs.resize(0, 4)
    assert jobs.sizes.tolist() == [4.0, 2.0]
    jobs.remove(1)
    assert jobs.sizes.tolist() == [4.0]


def test_whether_all_are_of_one_class_and_ask_for_whole_workers_alone() -> None:
    jobs = table_of(1, 1)
    assert jobs.of_one_class
    assert jobs.plain
    for field in ({"priority": 1}, {"part": 500}, {"cpus": 1.0}, {"memory": 1.0}, {"nodes": 1, "scale": 2}):
        more = table_of(1)
        add(more, "other", **field)
        assert more.of_one_class == ("priority" not in field)
        assert more.plain == ("priority" in field)
        more.remove(1)
        assert more.of_one_class
        assert more.plain
    assert JobTable(2).of_one_class
