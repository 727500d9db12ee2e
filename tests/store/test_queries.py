"""Questions: pages that neither repeat nor skip, counts, what a restarted controller needs."""

from __future__ import annotations

import pytest

from fairway.engine.training.messages import Grant, RoundBegan
from fairway.errors import InputError
from fairway.store import Store
from fairway.store.errors import UnknownError
from fairway.store.job_changes import change_job, record_rates
from fairway.store.journal import record_step
from fairway.store.leases import end_lease, plan_lease
from fairway.store.queries import count_jobs, job_history, list_jobs, snapshot
from fairway.store.states import JobState
from tests.store.making import running, submitted, with_workers


def pages(store: Store, limit: int, **filters: object) -> list[str]:
    found, after = [], None
    while True:
        page = store.read(list_jobs, limit=limit, after=after, **filters)  # type: ignore[arg-type]
        found += [job.id for job in page.jobs]
        submitted(store, team="a")  # comes in meanwhile, and shows on no page that follows
        after = page.after
        if after is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 1000])
def test_pages_together_are_the_list_whatever_comes_in_meanwhile(store: Store, limit: int) -> None:
    ids = [job for team in ("a", "b", "a", "b", "a", "a", "b") for job in submitted(store, team=team)]
    assert pages(store, limit) == ids[::-1]


def test_a_page_has_a_hundred_jobs_where_nothing_else_is_asked_for(store: Store) -> None:
    submitted(store, 100)
    assert (len(store.read(list_jobs).jobs), store.read(list_jobs).after) == (100, None)
    submitted(store)
    assert len(store.read(list_jobs).jobs) == 100
    assert store.read(list_jobs).after is not None


def test_jobs_are_found_by_state_team_and_submitter(store: Store) -> None:
    with_workers(store)
    first, second, third = (submitted(store, team=team, submitted_by=team * 2)[0] for team in ("a", "a", "b"))
    running(store, first)
    store.write(change_job, third, JobState.CANCELLED, at=3.0)

    def found(**filters: object) -> list[str]:
        return [job.id for job in store.read(list_jobs, newest_first=False, **filters).jobs]  # type: ignore[arg-type]

    assert found() == [first, second, third]
    assert found(states=[JobState.RUNNING]) == [first]
    assert found(states=[JobState.RUNNING, JobState.CANCELLED]) == [first, third]
    assert found(states=[]) == []
    assert found(team="a") == [first, second]
    assert found(team="a", states={JobState.QUEUED}) == [second]
    assert found(submitted_by="bb") == [third]
    assert found(team="\0\ud800") == []
    assert found(after=1) == [second, third]
    assert found(after=10**30) == []
    assert found(after=-(10**30)) == [first, second, third]
    assert store.read(count_jobs) == {
        ("a", JobState.RUNNING): 1,
        ("a", JobState.QUEUED): 1,
        ("b", JobState.CANCELLED): 1,
    }


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_page_has_a_sensible_size(store: Store, limit: int) -> None:
    with pytest.raises(InputError, match=f"limit: {limit} given, expected 1 to 1000"):
        store.read(list_jobs, limit=limit)


def test_a_job_that_is_not_there_is_unknown_whatever_it_is_called(store: Store) -> None:
    for name in ("x", "", "\0", "\ud800", "'; DROP TABLE jobs; --", "x" * 100_000):
        with pytest.raises(UnknownError, match="no job"):
            store.read(job_history, name)


def test_a_snapshot_holds_what_has_not_ended_and_no_more(store: Store) -> None:
    with_workers(store)
    waits, runs, over = submitted(store, 3)
    old = running(store, over)
    store.write(change_job, over, JobState.SUCCEEDED, at=3.0, lease=old)
    store.write(end_lease, old, at=3.0)
    held = running(store, runs)
    store.write(plan_lease, Grant(held + 5, (waits,), "v100", (0,), 9.0), at=4.0)
    for job in (over, runs):
        store.write(record_rates, [job], "v100", [2.0], at=4.0)
    store.write(record_step, 1.0, [RoundBegan()], [], at=4.0)
    found = store.read(snapshot)
    assert [(job.id, job.state) for job in found.jobs] == [(waits, JobState.QUEUED), (runs, JobState.RUNNING)]
    assert [(attempt.job, attempt.lease) for attempt in found.attempts] == [(runs, held)]
    assert [(lease.number, lease.held) for lease in found.leases] == [(held, True), (held + 5, False)]
    assert [rate.job for rate in found.rates] == [runs]
    assert [worker.number for worker in found.workers] == [0, 1, 2, 3]
    assert [agent.name for agent in found.agents] == ["here"]
    assert (found.last_lease, found.last_sequence) == (held + 5, 1)
