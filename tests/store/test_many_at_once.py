"""What a controller writes about many jobs at once, and about what happened before it could write it down."""

from __future__ import annotations

from fairway.engine.training.messages import BeginRound, Grant, JobFinished, RoundBegan
from fairway.store import Store
from fairway.store.job_changes import (
    change_job,
    job_named,
    record_checkpoint,
    record_progress_of_many,
    replace_rates,
    request_cancel,
    run_jobs,
)
from fairway.store.journal import Step, read_journal, record_decision, record_step, record_steps, trim_decisions
from fairway.store.leases import lease_numbered, plan_leases
from fairway.store.queries import job_history, jobs_taken_back, snapshot
from fairway.store.records import MeasuredRate
from fairway.store.states import JobState
from tests.store.making import granted, running, submitted, with_workers


def test_progress_of_many_jobs_never_goes_back_beyond_their_checkpoints(store: Store) -> None:
    with_workers(store)
    jobs = submitted(store, 3, steps=100)
    for number, job in enumerate(jobs[:2]):
        running(store, job, workers=(number,))
    store.write(record_checkpoint, jobs[0], 60.0, at=3.0)
    store.write(record_progress_of_many, {jobs[0]: 80.0, jobs[1]: 80.0, jobs[2]: 1.0})
    assert [store.read(job_named, job).steps_left for job in jobs] == [60.0, 80.0, 100.0]
    store.write(record_progress_of_many, {jobs[0]: 50.0})
    assert store.read(job_named, jobs[0]).steps_left == 50.0
    store.write(record_progress_of_many, {})


def test_measured_rates_take_the_place_of_those_before(store: Store) -> None:
    one, two = submitted(store, 2)
    alone = MeasuredRate(one, "v100", "", 3.0, 1.0)
    beside = MeasuredRate(one, "v100", two, 2.0, 1.0)
    other = MeasuredRate(two, "v100", one, 1.0, 1.0)
    store.write(replace_rates, [alone, beside, other])
    newer = MeasuredRate(one, "v100", "", 3.5, 2.0)
    store.write(replace_rates, [newer])
    store.write(replace_rates, [])
    assert store.read(job_history, one).rates == [newer, beside]
    assert store.read(job_history, two).rates == [other]


def test_what_happened_earlier_stands_in_the_history_as_it_was(store: Store) -> None:
    with_workers(store)
    (job,) = submitted(store)
    lease = granted(store, job)
    store.write(run_jobs, {job: lease}, at=20.0, started_at=12.0)
    assert (store.read(job_named, job).changed_at, store.read(job_named, job).started_at) == (20.0, 12.0)
    store.write(change_job, job, JobState.SUCCEEDED, at=40.0, exit_code=0, ended_at=33.0)
    ended = store.read(job_named, job)
    assert (ended.changed_at, ended.ended_at) == (40.0, 33.0)
    (attempt,) = store.read(job_history, job).attempts
    assert (attempt.started_at, attempt.ended_at) == (12.0, 33.0)


def test_who_grants_without_knowing_is_told_which_jobs_have_ended(store: Store) -> None:
    with_workers(store)
    gone, here = submitted(store, 2)
    store.write(request_cancel, gone, at=2.0)
    grants = [Grant(1, (gone, here), "v100", (0,), 9.0), Grant(2, (here,), "v100", (1,), 9.0)]
    assert store.write(plan_leases, grants, at=3.0, to_ended=True) == {gone}
    assert store.read(lease_numbered, 1).jobs == (gone, here)
    assert store.write(plan_leases, [], at=3.0) == frozenset()


def test_jobs_that_were_taken_back_are_found(store: Store) -> None:
    with_workers(store)
    runs, waits, earlier, _ = submitted(store, 4)
    running(store, runs)
    store.write(request_cancel, earlier, at=5.0)
    store.write(request_cancel, runs, at=6.0)
    store.write(request_cancel, waits, at=8.0)
    assert store.read(jobs_taken_back, since=7.0) == [runs, waits]
    assert store.read(jobs_taken_back, since=5.0) == [runs, earlier, waits]
    assert store.read(snapshot).last_job == 4


def test_many_steps_are_written_as_if_one_by_one(store: Store) -> None:
    steps = [
        Step(1.0, [RoundBegan()], [BeginRound(2.0), BeginRound(3.0)]),
        Step(2.0, [JobFinished("a"), JobFinished("b"), RoundBegan()], [BeginRound(4.0)]),
        Step(3.0, [RoundBegan()], []),
    ]
    store.write(record_step, 0.0, [RoundBegan()], [BeginRound(1.0)], at=1.0)
    assert store.write(record_steps, steps, at=2.0) == 3
    store.write(record_steps, [], at=2.0)
    entries = store.read(read_journal)
    assert [(entry.sequence, entry.kind, entry.cause) for entry in entries] == [
        (1, "event", None),
        (2, "command", 1),
        (3, "event", None),
        (4, "command", 3),
        (5, "command", 3),
        (6, "event", None),
        (7, "event", None),
        (8, "event", None),
        (9, "command", 8),
        (10, "event", None),
    ]
    assert [entry.message for entry in entries[2:5]] == [RoundBegan(), BeginRound(2.0), BeginRound(3.0)]
    happened = [entry.happened for entry in entries if entry.kind == "event"]
    assert [now for now, _ in happened] == [0.0, 1.0, 2.0, 2.0, 2.0, 3.0]


def test_only_the_newest_decisions_are_kept(store: Store) -> None:
    for number in range(5):
        store.write(record_decision, {"policy": f"p{number}"}, at=1.0)
        store.write(record_step, float(number), [RoundBegan()], [], at=1.0)
    assert store.write(trim_decisions, keep=9) == 0
    assert store.write(trim_decisions, keep=2) == 3
    assert [entry.name for entry in store.read(read_journal, kinds=["decision"])] == ["p3", "p4"]
    assert len(store.read(read_journal, kinds=["event"])) == 5
