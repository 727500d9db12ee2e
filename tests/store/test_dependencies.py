"""Jobs that wait for others: which jobs a name means, whether a need is met, and what is refused."""

from __future__ import annotations

import pytest

from fairway.errors import InputError
from fairway.store import Store
from fairway.store import dependencies as under_test
from fairway.store.dependencies import MOST_AT_ONCE, Named, Need, jobs_ended, needs_of
from fairway.store.job_changes import change_job, job_named
from fairway.store.queries import list_jobs
from fairway.store.states import ACTIVE, JobState
from fairway.store.submissions import Submission, submit
from tests.store.making import SPEC, running, submitted, with_workers


def waiting(store: Store, *after: str, afterok: tuple[str, ...] = (), team: str | None = None) -> str:
    spec = {**SPEC, **({"after": list(after)} if after else {}), **({"afterok": list(afterok)} if afterok else {})}
    (record,) = store.write(submit, [Submission(spec=spec, needs=Named(after, afterok, team))], at=1.0)
    return record.id


def needs(store: Store, job: str) -> list[tuple[str, bool]]:
    found = store.read(lambda connection: needs_of(connection, [job_named(connection, job)]))
    return [(need.job, need.succeeded) for need in found.get(job, [])]


def array(store: Store, name: str, count: int, **fields: object) -> list[str]:
    members = [
        Submission(spec=SPEC, name=f"{name}-{place}", array_name=name, array_position=place, together=count, **fields)  # type: ignore[arg-type]
        for place in range(count)
    ]
    return [record.id for record in store.write(submit, members, at=1.0)]


@pytest.mark.parametrize("state", list(JobState))
def test_a_need_is_met_when_the_job_has_ended_and_for_afterok_only_if_it_ended_well(state: JobState) -> None:
    ended = state not in ACTIVE
    assert Need("job-1", state, succeeded=False).met is ended
    assert Need("job-1", state, succeeded=False).hopeless is False
    assert Need("job-1", state, succeeded=True).met is (state is JobState.SUCCEEDED)
    assert Need("job-1", state, succeeded=True).hopeless is (ended and state is not JobState.SUCCEEDED)


def test_an_id_means_its_job_and_a_name_the_newest_job_so_called(store: Store) -> None:
    first, second = submitted(store, name="prepare")[0], submitted(store, name="prepare")[0]
    assert needs(store, waiting(store, first)) == [(first, False)]
    assert needs(store, waiting(store, "prepare")) == [(second, False)]
    assert needs(store, waiting(store, afterok=("prepare", first))) == [(first, True), (second, True)]
    assert needs(store, waiting(store, first, afterok=(first,))) == [(first, True)], "it has to end well"
    assert needs(store, first) == []


def test_the_name_of_an_array_means_all_of_the_newest_and_that_of_a_member_this_one(store: Store) -> None:
    array(store, "sweep", 2)
    newest = array(store, "sweep", 3)
    assert needs(store, waiting(store, "sweep")) == [(job, False) for job in newest]
    assert needs(store, waiting(store, "sweep-1")) == [(newest[1], False)]


def test_of_an_array_none_waits_for_another_of_it(store: Store) -> None:
    (before,) = submitted(store, name="sweep")
    spec = {**SPEC, "after": ["sweep"]}
    members = [
        Submission(spec=spec, array_name="sweep", array_position=place, together=2, needs=Named(("sweep",)))
        for place in range(2)
    ]
    for record in store.write(submit, members, at=1.0):
        assert needs(store, record.id) == [(before, False)]


def test_a_job_may_wait_for_one_before_it_in_the_same_submission_and_for_none_after_it(store: Store) -> None:
    first = Submission(spec=SPEC, name="first")
    second = Submission(spec={**SPEC, "after": ["first"]}, needs=Named(("first",)))
    one, two = store.write(submit, [first, second], at=1.0)
    assert needs(store, two.id) == [(one.id, False)]
    with pytest.raises(InputError, match='after: no job "last"; only jobs that exist can be waited for, by id or name'):
        store.write(submit, [Submission(spec=SPEC, needs=Named(("last",))), Submission(spec=SPEC, name="last")], at=1.0)
    assert len(store.read(list_jobs).jobs) == 2, "nothing of a refused call is taken in"


def test_who_sees_one_team_waits_for_its_jobs_only(store: Store) -> None:
    (ours,), (theirs,) = submitted(store, name="data", team="red"), submitted(store, name="data", team="blue")
    assert needs(store, waiting(store, "data", team="red")) == [(ours, False)]
    assert needs(store, waiting(store, "data")) == [(theirs, False)]
    with pytest.raises(InputError, match=f'afterok: no job "{theirs}"'):
        waiting(store, afterok=(theirs,), team="red")


def test_so_many_needs_are_taken_and_not_one_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_AT_ONCE == 10_000, "docs: jobs that those of one submission may wait for"
    monkeypatch.setattr(under_test, "MOST_AT_ONCE", 3)
    jobs = submitted(store, 4)
    assert len(needs(store, waiting(store, *jobs[:3]))) == 3
    with pytest.raises(InputError, match="after: more than 3 jobs to wait for in one submission; wait for fewer"):
        waiting(store, *jobs)


def test_jobs_that_have_ended_since_a_moment_are_told_with_how(store: Store) -> None:
    with_workers(store)
    jobs = submitted(store, 3)
    for worker, (job, state, at) in enumerate(
        zip(jobs, (JobState.SUCCEEDED, JobState.FAILED, None), (5.0, 7.0, 0.0), strict=True)
    ):
        lease = running(store, job, workers=(worker,))
        if state is not None:
            store.write(change_job, job, state, at=at, lease=lease)
    both = {jobs[0]: JobState.SUCCEEDED, jobs[1]: JobState.FAILED}
    assert store.read(lambda connection: jobs_ended(connection, since=5.0)) == both
    assert store.read(lambda connection: jobs_ended(connection, since=5.1)) == {jobs[1]: JobState.FAILED}
