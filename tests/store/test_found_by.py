"""Jobs are found by name, by the name of their array, by labels and by team, together and apart."""

from __future__ import annotations

from typing import Any

from fairway.store import Store
from fairway.store.job_changes import request_cancel
from fairway.store.listing import listing
from fairway.store.states import ACTIVE
from fairway.store.submissions import Submission, submit
from tests.store.making import SPEC, running, submitted, with_workers


def found(store: Store, **asked: Any) -> list[str]:
    return [job["id"] for job in store.read(listing, **asked).jobs]


def test_jobs_are_found_by_name_labels_and_team(store: Store) -> None:
    submitted(store, name="train", team="a", labels={"sweep": "lr", "by": "me"})
    submitted(store, name="train", team="b", labels={"sweep": "lr"})
    submitted(store, name="other", team="a", labels={"sweep": "depth"})
    submitted(store)
    assert found(store, name="train") == ["job-2", "job-1"]
    assert found(store, name="train", team="a") == ["job-1"]
    assert found(store, labels={"sweep": "lr"}) == ["job-2", "job-1"]
    assert found(store, labels={"sweep": "lr", "by": "me"}) == ["job-1"]
    assert found(store, labels={"sweep": "lr"}, name="other") == []
    assert found(store, labels={"by": "lr"}) == []  # a value belongs to its label
    assert found(store, name="train", newest_first=False, limit=1) == ["job-1"]
    assert found(store, name="train\0' OR 1=1 --") == []


def test_an_array_is_found_by_its_own_name_and_its_jobs_by_theirs(store: Store) -> None:
    submitted(store)
    array = [
        Submission(spec=SPEC, name=f"train-{index}", array_name="train", array_position=index, together=3)
        for index in range(3)
    ]
    records = store.write(submit, array, at=1.0)
    assert [(one.id, one.array_id) for one in records] == [("job-2", "job-2"), ("job-3", "job-2"), ("job-4", "job-2")]
    assert found(store, name="train") == ["job-4", "job-3", "job-2"]
    assert found(store, name="train-1") == ["job-3"]


def test_jobs_that_are_to_be_stopped_already_are_not_found_to_be_cancelled(store: Store) -> None:
    with_workers(store)
    first, second = submitted(store, 2, team="a")
    running(store, first)
    running(store, second, workers=(1,))
    store.write(request_cancel, first, at=3.0)
    assert found(store, team="a", states=ACTIVE, to_cancel=True) == [second]
    assert found(store, team="a", states=ACTIVE) == [second, first]
