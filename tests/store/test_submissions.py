"""Taking jobs in: ids, idempotency keys, all or nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import pytest

from fairway.errors import InputError
from fairway.jobs.description import job_of
from fairway.store import Store
from fairway.store.database import schema
from fairway.store.errors import ConflictError
from fairway.store.job_changes import job_named
from fairway.store.queries import list_jobs
from fairway.store.records import Agent, Attempt, JobRecord, LeaseRecord, MeasuredRate, Worker
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit
from tests.store.making import SPEC, submitted


@pytest.mark.parametrize(
    ("record", "table"),
    [
        (JobRecord, schema.jobs), (Attempt, schema.attempts), (LeaseRecord, schema.leases),
        (MeasuredRate, schema.rates), (Agent, schema.agents), (Worker, schema.workers),
    ],
)  # fmt: skip
def test_a_record_has_the_columns_of_its_table(record: type, table: schema.Table) -> None:
    assert [field.name for field in fields(record)] == [column.name for column in table.columns]


def test_a_job_is_stored_as_it_was_submitted(store: Store) -> None:
    spec = {"run": "echo 'ä\0\ud800'", "envs": {"b": 1, "a": [1.5, None, True]}, "resources": {}}
    asked = Submission(
        spec=spec, id="resnet", name="ResNet · 50", team="vision", weight=2.5, steps=1e6, submitted_by="ann"
    )
    (record,) = store.write(submit, [asked], at=12.5)
    assert record == store.read(job_named, "resnet")
    assert record.spec == spec
    assert list(record.spec["envs"]) == ["b", "a"]
    assert (record.team, record.weight, record.steps_left, record.submitted_at) == ("vision", 2.5, 1e6, 12.5)
    assert (record.state, record.attempts, record.number) == (JobState.QUEUED, 0, 1)


def test_the_store_chooses_ids_in_order_and_ids_of_its_form_are_its_own(store: Store) -> None:
    assert submitted(store, 3) == ["job-1", "job-2", "job-3"]
    assert submitted(store, id="mine") == ["mine"]
    assert submitted(store) == ["job-5"]
    with pytest.raises(InputError, match="'job-7' given, but ids of this form are chosen by the store"):
        Submission(spec={}, id="job-7")


def test_an_id_is_given_once(store: Store) -> None:
    submitted(store, id="a")
    with pytest.raises(ConflictError, match="job 'a' exists already"):
        submitted(store, id="a")
    with pytest.raises(ConflictError, match="job 'b' exists already"):
        submitted(store, 2, id="b")
    assert [job.id for job in store.read(list_jobs).jobs] == ["a"]


def test_a_key_that_is_sent_again_finds_the_same_job(store: Store) -> None:
    asked = Submission(spec=SPEC, idempotency_key="k", submitted_by="ann", team="t")
    ((first,), (again,)) = (store.write(submit, [asked], at=at) for at in (1.0, 2.0))
    assert again == first
    other_order = dict(reversed(SPEC.items()))
    (reordered,) = store.write(
        submit, [Submission(spec=other_order, idempotency_key="k", submitted_by="ann", team="t")], at=3.0
    )
    assert reordered == first
    twice = store.write(submit, [Submission(spec=SPEC, idempotency_key="l")] * 2, at=4.0)
    assert twice[0] == twice[1]
    assert len(store.read(list_jobs).jobs) == 2


def test_a_key_from_before_descriptions_had_one_form_finds_the_same_job(store: Store) -> None:
    written = {"run": "x", "priority": 2, "slo": "1h", "resources": {"accelerators": ["V100:2"]}, "retries": None}
    old = Submission(spec=written, weight=2.0, submitted_by="ann", idempotency_key="k")
    (before,) = store.write(submit, [old], at=1.0)
    again = Submission.of(job_of(written, "job"), team=None, submitted_by="ann", idempotency_key="k")
    assert store.write(submit, [again], at=2.0) == [before]
    for other in ({"slo": "2h"}, {"name": "x"}, {"priority": 3}, {"run": "y"}):
        job = Submission.of(job_of(written | other, "job"), team=None, submitted_by="ann", idempotency_key="k")
        with pytest.raises(ConflictError, match="was used for job 'job-1' with other content"):
            store.write(submit, [job], at=3.0)


def test_a_submission_of_a_description_has_what_it_says(store: Store) -> None:
    job = job_of({"run": "x", "name": "resnet", "weight": 2, "steps": 50, "team": "speech"}, "job")
    submission = Submission.of(job, team="vision", submitted_by="ann")
    (record,) = store.write(submit, [submission], at=1.0)
    assert (record.name, record.team, record.weight, record.steps, record.steps_left) == ("resnet", "vision", 2, 50, 50)
    assert record.spec == job.document()
    assert record == submission.record(1, at=1.0)


@pytest.mark.parametrize("changed", [{"spec": {}}, {"weight": 2.0}, {"team": "u"}, {"steps": 5.0}, {"id": "x"}])
def test_a_key_with_other_content_is_a_conflict_and_nothing_of_the_call_is_stored(
    store: Store, changed: dict[str, object]
) -> None:
    same = {"spec": SPEC, "idempotency_key": "k", "team": "t"}
    store.write(submit, [Submission(**same)], at=1.0)  # type: ignore[arg-type]
    with pytest.raises(ConflictError, match="idempotency key 'k' was used for job 'job-1' with other content"):
        store.write(submit, [Submission(spec=SPEC), Submission(**same | changed)], at=2.0)  # type: ignore[arg-type]
    assert len(store.read(list_jobs).jobs) == 1


def test_keys_of_different_submitters_do_not_meet(store: Store) -> None:
    ids = [submitted(store, idempotency_key="k", submitted_by=who)[0] for who in ("ann", "bob")]
    assert len(set(ids)) == 2


def test_a_key_sent_by_many_at_once_makes_one_job(store: Store) -> None:
    asked = Submission(spec=SPEC, idempotency_key="k")
    with ThreadPoolExecutor(16) as pool:
        records = list(pool.map(lambda _: store.write(submit, [asked], at=1.0), range(64)))
    assert {record.id for (record,) in records} == {"job-1"}


def test_a_call_may_bring_thousands_of_jobs(store: Store) -> None:
    keyed = [Submission(spec=SPEC, idempotency_key=str(number), id=f"n{number}") for number in range(2500)]
    first = store.write(submit, keyed, at=1.0)
    assert store.write(submit, keyed, at=2.0) == first
    assert store.write(submit, [], at=3.0) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"id": "../etc"}, "id: '../etc' given, expected 1 to 128 letters"),
        ({"id": ""}, "id: '' given"),
        ({"id": "a\n"}, "id: "),
        ({"team": ""}, "team: '' given, expected 1 to 256 printable"),
        ({"team": "a\0b"}, "team: "),
        ({"name": "x" * 257}, "name: "),
        ({"idempotency_key": "\ud800"}, "idempotency_key: "),
        ({"submitted_by": "\t"}, "submitted_by: "),
        ({"weight": 0.0}, "weight: 0.0 given, expected a number above 0"),
        ({"weight": float("nan")}, "weight: nan given"),
        ({"steps": -1.0}, "steps: -1.0 given, expected a number of at least 0"),
        ({"steps": float("inf")}, "steps: inf given"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_it_reaches_the_store(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Submission(spec=SPEC, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", [{"x": float("nan")}, {"x": object()}, {1: {2: {3}}}])
def test_a_spec_that_is_no_json_is_refused(store: Store, spec: dict[str, object]) -> None:
    with pytest.raises(InputError, match="cannot be written as JSON"):
        store.write(submit, [Submission(spec=spec)], at=1.0)
    assert store.read(list_jobs).jobs == []
