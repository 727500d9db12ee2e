"""What happens to jobs: only legal changes, attempts, progress that is kept, late messages that change nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from fairway.engine.training.messages import Grant
from fairway.errors import InputError
from fairway.store import Store, open_store
from fairway.store.errors import HeldError, IllegalChangeError, StoreError, UnknownError
from fairway.store.job_changes import (
    change_job,
    continue_job,
    explain_jobs,
    job_named,
    record_checkpoint,
    record_progress,
    record_rates,
    request_cancel,
)
from fairway.store.leases import end_lease, grant_lease
from fairway.store.queries import job_history
from fairway.store.records import Attempt, MeasuredRate, Reason
from fairway.store.states import ACTIVE, FOLLOWING, HOLDING, JobState
from tests.store.making import granted, running, submitted, with_workers

PATHS = {
    JobState.QUEUED: [],
    JobState.RUNNING: [JobState.RUNNING],
    JobState.PREEMPTING: [JobState.RUNNING, JobState.PREEMPTING],
    JobState.SUCCEEDED: [JobState.RUNNING, JobState.SUCCEEDED],
    JobState.FAILED: [JobState.RUNNING, JobState.FAILED],
    JobState.CANCELLED: [JobState.RUNNING, JobState.CANCELLED],
}


def test_only_legal_changes_are_made(store: Store) -> None:
    with_workers(store)
    for start, path in PATHS.items():
        for state in JobState:
            (job,) = submitted(store)
            lease = granted(store, job)
            for step in path:
                store.write(change_job, job, step, at=3.0, lease=lease)
            given_lease = lease if state is JobState.RUNNING or start in HOLDING else None
            if state in FOLLOWING[start]:
                assert store.write(change_job, job, state, at=4.0, lease=given_lease)
                assert store.read(job_named, job).state is state
            else:
                following = " or ".join(sorted(FOLLOWING[start])) if start in ACTIVE else "nothing"
                message = f"job '{job}' is {start} and cannot become {state}; after {start} comes {following}$"
                with pytest.raises(IllegalChangeError, match=message):
                    store.write(change_job, job, state, at=4.0, lease=given_lease)
                assert store.read(job_named, job).state is start
            store.write(end_lease, lease, at=5.0)


def test_attempts_follow_the_job_from_lease_to_lease(store: Store) -> None:
    with_workers(store)
    (job,) = submitted(store, steps=100.0)
    expected = []
    for number, (states, exit_code, outcome) in enumerate(
        [
            ([JobState.QUEUED], 1, "failed"),
            ([JobState.QUEUED], None, "lost"),
            ([JobState.PREEMPTING, JobState.QUEUED], 0, "preempted"),
            ([JobState.SUCCEEDED], 0, "succeeded"),
        ],
        start=1,
    ):
        lease = running(store, job, at=10.0 * number)
        for state in states:
            reason = Reason("c", f"because {number}")
            store.write(change_job, job, state, at=10.0 * number + 5, lease=lease, exit_code=exit_code, reason=reason)
        store.write(end_lease, lease, at=10.0 * number + 5)
        expected.append(
            Attempt(job, number, lease, 10.0 * number, 10.0 * number + 5, outcome, exit_code, f"because {number}")
        )
    history = store.read(job_history, job)
    assert history.attempts == expected
    assert [lease.number for lease in history.leases] == [attempt.lease for attempt in expected]
    record = history.job
    assert (record.attempts, record.failures, record.exit_code) == (4, 1, 0)
    assert (record.started_at, record.ended_at, record.changed_at) == (10.0, 45.0, 45.0)
    assert (record.steps_left, record.reason_code, record.reason) == (0.0, "c", "because 4")


def test_a_job_runs_only_under_a_lease_that_is_held_for_it(store: Store) -> None:
    with_workers(store)
    mine, other = submitted(store, 2)
    lease = granted(store, other)
    with pytest.raises(StoreError, match="cannot run without a lease"):
        store.write(change_job, mine, JobState.RUNNING, at=3.0)
    with pytest.raises(HeldError, match=f"lease {lease} is not held for job '{mine}'"):
        store.write(change_job, mine, JobState.RUNNING, at=3.0, lease=lease)
    store.write(end_lease, lease, at=3.0)
    with pytest.raises(HeldError):
        store.write(change_job, other, JobState.RUNNING, at=3.0, lease=lease)
    with pytest.raises(UnknownError, match="no job 'nobody'"):
        store.write(change_job, "nobody", JobState.RUNNING, at=3.0, lease=lease)


def test_a_late_message_of_a_former_holder_changes_nothing(store: Store) -> None:
    with_workers(store)
    (job,) = submitted(store, steps=100.0)
    old = running(store, job)
    store.write(change_job, job, JobState.QUEUED, at=3.0, lease=old)
    store.write(end_lease, old, at=3.0)
    waiting = store.read(job_named, job)
    assert not store.write(change_job, job, JobState.SUCCEEDED, at=4.0, lease=old)
    assert not store.write(record_progress, job, 5.0, lease=old)
    assert not store.write(record_checkpoint, job, 5.0, at=4.0, lease=old)
    assert store.read(job_named, job) == waiting
    new = running(store, job, workers=(1,))
    before = store.read(job_named, job)
    assert not store.write(change_job, job, JobState.FAILED, at=6.0, lease=old, exit_code=9)
    assert not store.write(record_checkpoint, job, 5.0, at=6.0, lease=old)
    assert store.read(job_named, job) == before
    assert store.write(change_job, job, JobState.SUCCEEDED, at=7.0, lease=new)
    assert not store.write(change_job, job, JobState.SUCCEEDED, at=8.0, lease=new)


def test_a_job_goes_on_under_a_new_lease_in_the_same_attempt(store: Store) -> None:
    with_workers(store)
    stays, leaves = submitted(store, 2)
    old = granted(store, stays, leaves)
    for job in (stays, leaves):
        store.write(change_job, job, JobState.RUNNING, at=3.0, lease=old)

    def part(connection: Connection) -> None:
        change_job(connection, leaves, JobState.SUCCEEDED, at=4.0, lease=old)
        end_lease(connection, old, at=4.0)
        grant_lease(connection, Grant(old + 1, (stays,), "v100", (0,), 9.0, restart=False), at=4.0)
        continue_job(connection, stays, old + 1)

    store.write(part)
    (attempt,) = store.read(job_history, stays).attempts
    assert (attempt.lease, attempt.ended_at) == (old + 1, None)
    assert not store.write(record_progress, stays, 1.0, lease=old)
    with pytest.raises(IllegalChangeError, match="is succeeded and cannot go on"):
        store.write(continue_job, leaves, old + 1)
    with pytest.raises(HeldError):
        store.write(continue_job, stays, old)


def test_progress_goes_back_to_the_last_checkpoint_and_no_further(store: Store) -> None:
    with_workers(store)
    (job,) = submitted(store, steps=100.0)

    def left() -> float | None:
        return store.read(job_named, job).steps_left

    lease = running(store, job)
    assert store.write(record_progress, job, 60.0, lease=lease)
    assert left() == 60.0
    store.write(change_job, job, JobState.QUEUED, at=3.0, lease=lease)
    store.write(end_lease, lease, at=3.0)
    assert left() == 100.0
    lease = running(store, job)
    assert store.write(record_checkpoint, job, 70.0, at=4.0, lease=lease, path="step-30")
    assert store.write(record_progress, job, 90.0, lease=lease)
    assert left() == 70.0
    assert store.write(record_progress, job, 40.0, lease=lease)
    assert not store.write(record_checkpoint, job, 75.0, at=5.0, lease=lease, path="older")
    assert left() == 40.0
    store.write(change_job, job, JobState.QUEUED, at=6.0, lease=lease, exit_code=1)
    record = store.read(job_named, job)
    assert (record.steps_left, record.checkpoint_steps_left, record.checkpoint) == (70.0, 70.0, "step-30")
    assert store.write(record_checkpoint, job, 50.0, at=7.0), "one that is found on the disk counts while the job waits"
    assert left() == 50.0
    assert not store.write(record_progress, job, 10.0), "a job that waits makes no progress"
    store.write(change_job, job, JobState.CANCELLED, at=8.0)
    assert not store.write(record_checkpoint, job, 1.0, at=9.0)
    for amount in (float("nan"), -1.0, float("inf")):
        with pytest.raises(InputError, match="expected a finite number of at least 0"):
            store.write(record_checkpoint, job, amount, at=9.0)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(["progress", "checkpoint", "stop"]), st.floats(0, 100)), max_size=20))
def test_whatever_is_reported_steps_left_never_exceed_those_of_any_checkpoint(
    tmp_path_factory: pytest.TempPathFactory, reports: list[tuple[str, float]]
) -> None:
    with open_store(tmp_path_factory.mktemp("store")) as store:
        with_workers(store)
        (job,) = submitted(store, steps=100.0)
        lease = running(store, job)
        best = 100.0
        for kind, amount in reports:
            if kind == "progress":
                store.write(record_progress, job, amount, lease=lease)
            elif kind == "checkpoint":
                store.write(record_checkpoint, job, amount, at=3.0, lease=lease)
                best = min(best, amount)
            else:
                store.write(change_job, job, JobState.QUEUED, at=3.0, lease=lease)
                store.write(end_lease, lease, at=3.0)
                assert store.read(job_named, job).steps_left == best
                lease = running(store, job)
            left = store.read(job_named, job).steps_left
            assert left is not None
            assert left <= best


def test_a_cancelled_job_ends_at_once_if_it_waits_and_is_remembered_if_it_runs(store: Store) -> None:
    with_workers(store)
    waits, runs = submitted(store, 2)
    lease = running(store, runs)
    assert store.write(request_cancel, waits, at=3.0, reason=Reason("cancelled", "by ann")) is JobState.CANCELLED
    assert store.write(request_cancel, waits, at=4.0) is JobState.CANCELLED
    assert store.read(job_named, waits).reason == "by ann"
    assert store.write(request_cancel, runs, at=3.0) is JobState.RUNNING
    assert store.write(request_cancel, runs, at=4.0) is JobState.RUNNING
    assert store.read(job_named, runs).cancel_requested_at == 3.0
    assert store.write(change_job, runs, JobState.CANCELLED, at=5.0, lease=lease)
    assert store.write(request_cancel, runs, at=6.0) is JobState.CANCELLED


def test_reasons_are_for_jobs_that_wait(store: Store) -> None:
    with_workers(store)
    waits, runs = submitted(store, 2)
    running(store, runs)
    store.write(explain_jobs, {job: Reason("no-free-worker", "all 4 v100 are taken\0") for job in (waits, runs, "x")})
    store.write(explain_jobs, {})
    record = store.read(job_named, waits)
    assert (record.reason_code, record.reason) == ("no-free-worker", "all 4 v100 are taken\ufffd")
    assert store.read(job_named, runs).reason is None
    running(store, waits, workers=(1,))
    assert store.read(job_named, waits).reason_code is None


def test_the_last_measured_rate_counts_alone_and_beside_others(store: Store) -> None:
    a, b = submitted(store, 2)
    store.write(record_rates, [a], "v100", [3.0], at=1.0)
    store.write(record_rates, [a], "v100", [4.0], at=2.0)
    store.write(record_rates, [a, b], "v100", [2.0, 1.0], at=3.0)
    assert store.read(job_history, a).rates == [
        MeasuredRate(a, "v100", "", 4.0, 2.0),
        MeasuredRate(a, "v100", b, 2.0, 3.0),
    ]
    assert store.read(job_history, b).rates == [MeasuredRate(b, "v100", a, 1.0, 3.0)]
    with pytest.raises(InputError, match="1 given for 2 jobs"):
        store.write(record_rates, [a, b], "v100", [2.0], at=3.0)
    with pytest.raises(UnknownError):
        store.write(record_rates, ["x"], "v100", [2.0], at=3.0)
