"""What those ask who watch jobs, and sums over all of them."""

from __future__ import annotations

import pytest

from fairway.store import Store
from fairway.store.changes import change_of, changes_since, jobs_named, jobs_numbered, whereabouts
from fairway.store.job_changes import change_job, job_named, record_rates
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit
from fairway.store.summary import Spread, durations, failure_count, waits
from tests.store.making import granted, running, submitted, with_workers


def test_changes_come_in_the_order_of_their_times(store: Store) -> None:
    submitted(store, at=3.0)
    submitted(store, 2, at=1.0)
    submitted(store, at=2.0)
    assert [change.number for change in store.read(changes_since, 0.0)] == [2, 3, 4, 1]
    assert [change.number for change in store.read(changes_since, 2.0)] == [4, 1]
    assert [change.number for change in store.read(changes_since, 0.0, limit=2)] == [2, 3]


def test_two_changes_of_a_job_differ_also_at_the_same_time(store: Store) -> None:
    with_workers(store)
    submitted(store, at=1.0)
    seen = [store.read(changes_since, 0.0)[0]]
    lease = running(store, "job-1", at=1.0)
    seen.append(store.read(changes_since, 0.0)[0])
    store.write(change_job, "job-1", JobState.QUEUED, at=1.0, lease=lease)
    seen.append(store.read(changes_since, 0.0)[0])
    assert len(set(seen)) == 3
    assert change_of(store.read(job_named, "job-1")) == seen[-1]


def test_jobs_are_found_by_number_and_by_name(store: Store) -> None:
    submitted(store, 3)
    assert [job.id for job in store.read(jobs_numbered, [3, 1, 99])] == ["job-1", "job-3"]
    assert set(store.read(jobs_named, ["job-2", "none"])) == {"job-2"}
    assert store.read(jobs_numbered, []) == []


def test_where_jobs_run_and_how_fast(store: Store) -> None:
    with_workers(store)
    submitted(store, 4)
    running(store, "job-1", workers=(0, 1))
    lease = granted(store, "job-2", "job-3", workers=(2,))
    store.write(record_rates, ["job-1"], "v100", [2.5], at=1.0)
    store.write(record_rates, ["job-2"], "v100", [9.0], at=1.0)
    store.write(record_rates, ["job-2", "job-3"], "v100", [1.5, 0.5], at=1.0)
    places = store.read(whereabouts, ["job-1", "job-2", "job-3", "job-4", "none"])
    assert set(places) == {"job-1", "job-2", "job-3"}
    assert (places["job-1"].accelerator, places["job-1"].workers) == ("v100", (0, 1))
    assert [places[job].steps_per_second for job in ("job-1", "job-2", "job-3")] == [2.5, 1.5, 0.5]
    assert places["job-3"].lease == lease


def test_sums_over_all_jobs(store: Store) -> None:
    assert store.read(waits, [1.0]) == Spread(0, 0.0, (0,))
    assert store.read(durations, [1.0]) == {}
    assert store.read(failure_count) == 0
    with_workers(store)
    submitted(store, 4, at=10.0)
    for number, start in ((1, 11.0), (2, 13.0), (3, 20.0)):
        running(store, f"job-{number}", workers=(number,), at=start)
    store.write(change_job, "job-1", JobState.SUCCEEDED, at=15.0)
    store.write(change_job, "job-2", JobState.FAILED, at=16.0, exit_code=1)
    store.write(change_job, "job-4", JobState.CANCELLED, at=12.0)
    assert store.read(waits, [1.0, 5.0]) == Spread(3, 14.0, (1, 2))
    found = store.read(durations, [5.0])
    assert found == {
        JobState.SUCCEEDED: Spread(1, 5.0, (1,)),
        JobState.FAILED: Spread(1, 6.0, (0,)),
        JobState.CANCELLED: Spread(1, 2.0, (1,)),
    }
    assert store.read(failure_count) == 1


def test_a_job_that_seems_to_have_started_before_it_came_has_not_waited(store: Store) -> None:
    """The clock was set back in between."""
    with_workers(store)
    submitted(store, 2, at=3600.0)
    running(store, "job-1", at=5.0)
    running(store, "job-2", workers=(1,), at=3602.0)
    store.write(change_job, "job-1", JobState.SUCCEEDED, at=6.0)
    assert store.read(waits, [1.0, 5.0]) == Spread(2, 2.0, (1, 2))
    assert store.read(durations, [1.0]) == {JobState.SUCCEEDED: Spread(1, 0.0, (1,))}


def test_a_write_that_nobody_waits_for_becomes_durable_all_the_same(store: Store) -> None:
    asked = store.begin_write(change_job, "none", JobState.FAILED, at=1.0)
    with pytest.raises(Exception, match="no job 'none'"):
        asked.result(30)
    pending = store.begin_write(submit, [Submission(spec={})], at=1.0)
    assert not pending.cancel(), "what was begun cannot be taken back"
    assert [job.id for job in pending.result(30)] == ["job-1"]
    assert store.read(job_named, "job-1").state is JobState.QUEUED
