"""What the controller writes down of runs: how a job stands afterwards, and that its owner's word is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.engine.training.messages import Grant
from fairway.live.training import ledger
from fairway.live.training.verdict import Verdict
from fairway.store import Store, open_store
from fairway.store.job_changes import job_named, request_cancel
from fairway.store.leases import lease_numbered, plan_leases
from fairway.store.queries import job_history
from fairway.store.records import JobRecord, Reason
from fairway.store.states import JobState
from tests.store.making import granted, running, submitted, with_workers

WHY = Reason("Because", "of this")
AGAIN = Verdict(JobState.QUEUED, WHY, 2.0, failed=True)
LOST = Verdict(JobState.QUEUED, WHY)
OVER = Verdict(JobState.FAILED, WHY, failed=True)
DONE = Verdict(JobState.SUCCEEDED, WHY)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store")) as opened:
        with_workers(opened)
        yield opened


def stands(store: Store, job: str) -> JobRecord:
    return store.read(job_named, job)


def test_a_job_runs_from_the_first_note_on_and_a_second_note_changes_nothing(store: Store) -> None:
    (job,) = submitted(store)
    store.write(plan_leases, [Grant(1, (job,), "v100", (0,), until=100.0)], at=2.0)
    for at in (4.0, 9.0):
        store.write(ledger.note_running, job, 1, started_at=3.0, at=at)
    record = stands(store, job)
    assert (record.state, record.attempts, record.started_at, record.changed_at) == (JobState.RUNNING, 1, 3.0, 4.0)
    assert store.read(lease_numbered, 1).granted_at == 3.0, "its history goes by when it happened"


def test_leases_are_planned_and_those_whose_jobs_need_none_are_told(store: Store) -> None:
    waits, ended = submitted(store, 2)
    store.write(request_cancel, ended, at=1.5)
    grants = [Grant(1, (waits,), "v100", (0,), until=9.0), Grant(2, (ended,), "v100", (1,), until=9.0)]
    assert set(store.write(ledger.note_granted, grants, at=2.0).jobs) == {ended}


@pytest.mark.parametrize(
    ("verdict", "code", "state", "failures", "written"),
    [
        (DONE, 0, JobState.SUCCEEDED, 0, 0),
        (OVER, 3, JobState.FAILED, 1, 3),
        (OVER, None, JobState.FAILED, 1, -1),
        (AGAIN, 3, JobState.QUEUED, 1, None),
        (LOST, 3, JobState.QUEUED, 0, None),
    ],
)
def test_the_end_of_a_run_is_what_was_judged(
    store: Store, verdict: Verdict, code: int | None, state: JobState, failures: int, written: int | None
) -> None:
    (job,) = submitted(store)
    running(store, job)
    assert store.write(ledger.note_end, job, verdict, code, ended_at=6.0, at=8.0).jobs == ()
    record = stands(store, job)
    assert (record.state, record.failures, record.reason, record.changed_at) == (state, failures, "of this", 8.0)
    (attempt,) = store.read(job_history, job).attempts
    assert attempt.ended_at == 6.0
    assert attempt.exit_code == (code if state is JobState.SUCCEEDED else (code or -1) if verdict.failed else None)
    if state is not JobState.QUEUED:
        assert record.exit_code == written
        assert record.ended_at == 6.0


def test_a_job_that_was_to_go_on_but_was_taken_back_is_cancelled_and_the_engine_is_told(store: Store) -> None:
    (job,) = submitted(store)
    running(store, job)
    store.write(request_cancel, job, at=5.0)
    assert store.write(ledger.note_end, job, LOST, None, ended_at=6.0, at=8.0).jobs == (job,)
    assert (stands(store, job).state, stands(store, job).reason) == (JobState.CANCELLED, "cancelled while it ran")
    assert store.write(ledger.note_end, job, LOST, None, ended_at=6.0, at=9.0).jobs == (job,), "told again"
    assert store.write(ledger.note_end, job, DONE, 0, ended_at=6.0, at=9.0).jobs == ()
    assert stands(store, job).state is JobState.CANCELLED


def test_a_job_that_never_ran_waits_on_with_the_failure_or_the_reason(store: Store) -> None:
    failed, declined, silent, over = submitted(store, 4)
    store.write(ledger.note_end, failed, AGAIN, 1, ended_at=6.0, at=8.0)
    store.write(ledger.note_end, declined, Verdict(JobState.QUEUED, WHY, 5.0), None, ended_at=6.0, at=8.0)
    store.write(ledger.note_end, silent, LOST, None, ended_at=6.0, at=8.0)
    store.write(ledger.note_end, over, OVER, 2, ended_at=6.0, at=8.0)
    found = {job: (stands(store, job).state, stands(store, job).failures, stands(store, job).reason)
             for job in (failed, declined, silent, over)}  # fmt: skip
    assert found[failed] == (JobState.QUEUED, 1, "of this")
    assert found[declined] == (JobState.QUEUED, 0, "of this")
    assert found[silent][:2] == (JobState.QUEUED, 0)
    assert found[silent][2] != "of this"
    assert found[over] == (JobState.FAILED, 1, "of this")


def test_only_a_running_job_is_asked_to_stop_only_a_waiting_one_is_cancelled_at_once(store: Store) -> None:
    runs, waits = submitted(store, 2)
    running(store, runs)
    store.write(ledger.note_preempting, [runs, waits], at=5.0)
    assert (stands(store, runs).state, stands(store, waits).state) == (JobState.PREEMPTING, JobState.QUEUED)
    for job in (runs, waits):
        store.write(ledger.note_cancelled, job, at=6.0)
        store.write(ledger.note_hopeless, job, "in vain", at=7.0)
    assert stands(store, runs).state is JobState.PREEMPTING
    assert (stands(store, waits).state, stands(store, waits).reason) == (
        JobState.CANCELLED,
        "cancelled while it waited",
    )


def test_a_job_that_waits_in_vain_is_cancelled_and_one_that_cannot_run_has_failed(store: Store) -> None:
    vain, large = submitted(store, 2)
    store.write(ledger.note_hopeless, vain, "job-9 has failed", at=7.0)
    store.write(ledger.note_unrunnable, large, "no machine is so large", at=7.0)
    store.write(ledger.note_unrunnable, vain, "no machine is so large", at=8.0)
    assert (stands(store, vain).state, stands(store, vain).reason) == (JobState.CANCELLED, "job-9 has failed")
    assert (stands(store, large).state, stands(store, large).reason) == (JobState.FAILED, "no machine is so large")


def test_what_is_set_aside_waits_whether_it_ran_or_not_unless_it_was_taken_back(store: Store) -> None:
    runs, waits, taken_back = submitted(store, 3)
    running(store, runs)
    running(store, taken_back, workers=(1,))
    store.write(request_cancel, taken_back, at=4.0)
    for job in (runs, waits, taken_back):
        store.write(ledger.note_set_aside, job, "as things are", at=5.0)
    for job in (runs, waits):
        assert (stands(store, job).state, stands(store, job).reason) == (JobState.QUEUED, "as things are")
    assert [attempt.outcome for attempt in store.read(job_history, runs).attempts] == ["preempted"]
    assert stands(store, taken_back).state is JobState.CANCELLED
    store.write(ledger.note_set_aside, taken_back, "as things are", at=6.0)
    assert stands(store, taken_back).reason == "cancelled while it ran"


def test_a_job_goes_on_under_its_new_lease_which_has_the_workers_if_the_old_one_had(store: Store) -> None:
    job, other = submitted(store, 2)
    old = running(store, job)
    store.write(plan_leases, [Grant(old + 1, (job,), "v100", (0,), until=100.0)], at=4.0)
    store.write(ledger.note_continued, job, old, old + 1, at=5.0)
    assert store.read(lease_numbered, old).ended_at == 5.0
    assert store.read(lease_numbered, old).reason == "one of its jobs goes on alone"
    assert store.read(lease_numbered, old + 1).held
    assert [attempt.lease for attempt in store.read(job_history, job).attempts] == [old + 1]
    store.write(plan_leases, [Grant(5, (other,), "v100", (1,), until=9.0)], at=6.0)
    store.write(plan_leases, [Grant(6, (other,), "v100", (2,), until=9.0)], at=6.0)
    store.write(ledger.note_continued, other, 5, 6, at=7.0)
    assert not store.read(lease_numbered, 6).held, "it is planned still"


def test_progress_a_checkpoint_and_the_end_of_leases_are_written_down(store: Store) -> None:
    (job,) = submitted(store, steps=100.0)
    lease = granted(store, job)
    store.write(ledger.note_running, job, lease, started_at=3.0, at=3.0)
    store.write(ledger.note_progress, {job: 60.0})
    store.write(ledger.note_checkpoint, job, 70.0, at=5.0)
    record = stands(store, job)
    assert (record.steps_left, record.checkpoint_steps_left, record.checkpoint_at) == (60.0, 70.0, 5.0)
    store.write(ledger.note_leases_over, [lease], at=6.0, reason="a reason")
    assert (store.read(lease_numbered, lease).ended_at, store.read(lease_numbered, lease).reason) == (6.0, "a reason")
