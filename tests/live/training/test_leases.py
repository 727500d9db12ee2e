"""What a controller keeps of leases whose runs have not all ended, and of jobs that have not."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.engine.training.messages import Grant
from fairway.jobs.description import JobDescription, parse_job
from fairway.live.training.leases import Leases, LiveJob, LiveLease
from fairway.store.records import JobRecord
from fairway.store.states import JobState


def _grant(number: int, *jobs: str) -> Grant:
    return Grant(number, jobs, "v100", (0,), until=100.0)


def _lease(number: int, *jobs: str) -> LiveLease:
    return LiveLease(_grant(number, *jobs))


def _spec(**fields: object) -> JobDescription:
    return parse_job(
        "\n".join(["run: python train.py", *(f"{name}: {value}" for name, value in fields.items())]), "job"
    )


def _record(**fields: Any) -> JobRecord:
    of_job: dict[str, Any] = {"number": 1, "id": "job-1", "name": None, "team": "lab", "weight": 1.0, "spec": {}}
    times: dict[str, Any] = {"submitted_by": "ada", "submitted_at": 1.0, "changed_at": 1.0}
    counts = {"attempts": 4, "failures": 2, "array_id": "job-0"}
    return JobRecord(**of_job, state=JobState.QUEUED, **times, **counts, **fields)


def test_a_lease_is_over_when_all_of_its_runs_are() -> None:
    lease = _lease(3, "a", "b")
    assert {job: (run.known_as, run.state) for job, run in lease.runs.items()} == {
        "a": ((3,), "planned"), "b": ((3,), "planned"),
    }  # fmt: skip
    assert lease.number == 3
    assert not lease.over
    lease.runs["a"].state = "ended"
    assert lease.runs["a"].over
    assert not lease.over
    lease.runs["b"].state = "running"
    assert not lease.over
    lease.runs["b"].state = "ended"
    assert lease.over


def test_leases_of_a_job_are_found_oldest_first_while_its_run_goes_on() -> None:
    leases = Leases()
    first, second, other = _lease(1, "a", "b"), _lease(2, "a"), _lease(3, "c")
    for each in (first, second, other):
        leases.add(each)
    assert leases.of_job("a") == [first, second]
    assert leases.of_job("b") == [first]
    assert leases.of_job("nobody") == []
    assert list(leases) == [first, second, other]
    assert len(leases) == 3
    first.runs["a"].state = "ended"
    assert leases.of_job("a") == [second]
    assert leases.get(1) is first
    leases.drop(first)
    leases.drop(first)
    assert leases.get(1) is None
    assert leases.of_job("b") == []
    assert leases.of_job("a") == [second]
    leases.drop(second)
    assert leases.of_job("a") == []
    assert list(leases) == [other]


def test_the_lease_that_holds_a_run_is_found_by_every_number_that_the_backend_may_know() -> None:
    leases = Leases()
    lease = _lease(7, "a")
    lease.runs["a"].known_as = (4, 7)
    leases.add(lease)
    assert leases.holding(4, "a") is lease is leases.holding(7, "a")
    assert leases.holding(5, "a") is None
    assert leases.holding(7, "b") is None
    lease.runs["a"].state = "ended"
    assert leases.holding(7, "a") is None


def test_the_lease_that_takes_over_the_workers_of_another_is_found_by_that_one() -> None:
    leases = Leases()
    old, new, unrelated = _lease(1, "a", "b"), _lease(2, "b"), _lease(3, "a")
    new.follows = 1
    for each in (old, new, unrelated):
        leases.add(each)
    assert leases.following(1) is new
    assert leases.following(2) is None
    assert leases.following(9) is None


@pytest.mark.parametrize(("left", "saved"), [(None, 0.0), (100.0, 0.0), (25.0, 75.0), (0.0, 100.0), (130.0, 0.0)])
def test_a_job_from_the_store_has_done_what_its_last_checkpoint_says(left: float | None, saved: float) -> None:
    job = LiveJob.of(_record(checkpoint_steps_left=left), _spec(steps=100))
    assert job.steps_saved == saved
    assert (job.id, job.team, job.attempts, job.failures, job.array_id) == ("job-1", "lab", 4, 2, "job-0")
    assert (job.cancelled, job.reported, job.waiting) == (False, True, None)
    assert LiveJob.of(_record(checkpoint_steps_left=left), _spec()).steps_saved == 0.0, "it says no number of steps"


def test_what_is_left_of_a_job_is_never_less_than_nothing_and_unknown_without_its_steps() -> None:
    job = LiveJob("job-1", _spec(steps=100))
    assert [job.steps_left(done) for done in (0.0, 40.0, 100.0, 140.0, None)] == [100.0, 60.0, 0.0, 0.0, None]
    assert LiveJob("job-1", _spec()).steps_left(40.0) is None


def test_a_job_resumes_if_it_has_saved_a_checkpoint_or_says_that_it_does() -> None:
    assert not LiveJob.of(_record(), _spec()).resumes
    assert LiveJob.of(_record(checkpoint_at=5.0), _spec()).resumes
    assert LiveJob.of(_record(), _spec(checkpoint="{seconds: 5}")).resumes
