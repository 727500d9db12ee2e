"""Small things of the store that are written and read again, or shown, at their limits."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from fairway.allocate.allocation import Allocation
from fairway.allocate.decision_document import decision_document, problem_of
from fairway.allocate.problem import Problem
from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.jobs import Job, Pair
from fairway.store import Store
from fairway.store.database.columns import json_text
from fairway.store.job_changes import job_named
from fairway.store.messages import _plain
from fairway.store.names import checked_name
from fairway.store.states import ACTIVE, JobState
from tests.store.making import submitted


def test_the_decision_before_comes_back_with_its_pairs_and_without_empty_rows() -> None:
    jobs = [Job(name, {"v100": 2.0, "k80": 1.0}) for name in ("a", "b", "c")]
    problem = Problem.of(Cluster({"v100": 2, "k80": 1}), jobs, [Pair(("a", "c"), {"v100": (1.5, 1.0)})])
    shares = np.array([[0.0, 0.0], [0.25, 0.5], [0.5, 0.0]])
    before = Allocation(
        "mine",
        problem,
        np.array([0, 1, 0]),
        np.array([-1, -1, 2]),
        shares,
        math.nan,
        "max",
        prices=np.array([3.0, 1.0]),
    )
    told = json.loads(json_text(decision_document("mine", problem, before, {}, before)))
    found = problem_of(told).previous
    assert found is not None
    rows = {
        tuple(found.ids[job] for job in (one, other) if job >= 0): row
        for one, other, row in zip(found.first.tolist(), found.second.tolist(), found.shares.tolist(), strict=True)
    }
    assert rows == {("b",): [0.25, 0.5], ("a", "c"): [0.5, 0.0]}
    assert (found.policy, found.sense, found.types) == ("mine", "max", ("v100", "k80"))
    assert math.isnan(found.objective)
    assert found.prices is not None
    assert found.prices.tolist() == [3.0, 1.0]
    assert problem_of(told).seed == 0


def test_a_job_is_active_until_it_has_ended(store: Store) -> None:
    (job,) = submitted(store)
    record = store.read(job_named, job)
    assert record.active
    assert {state for state in JobState if state in ACTIVE} == {
        JobState.QUEUED, JobState.RUNNING, JobState.PREEMPTING
    }  # fmt: skip


@pytest.mark.parametrize(("length", "shown"), [(39, "x" * 39), (40, "x" * 40), (41, "x" * 39 + "…")])
def test_a_name_that_is_refused_is_shown_as_far_as_it_fits(length: int, shown: str) -> None:
    with pytest.raises(InputError, match=f"^name: '{shown}' given" if length > 40 else "^name: "):
        checked_name("x" * 1000 if length > 40 else "\n" + "x" * (length - 1), "name")
    with pytest.raises(InputError) as raised:
        checked_name("\n" + "x" * (length - 1), "name")
    assert ("…" in str(raised.value)) is (length > 40)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (1.5, 1.5), (math.inf, "inf"), (-math.inf, "-inf"), (np.float64(2.5), 2.5), (np.float32("inf"), "inf"),
        (np.int64(3), 3), (np.bool_(True), True), (True, True), (None, None), ("x", "x"), (7, 7),
    ],
)  # fmt: skip
def test_numbers_are_written_as_json_can_say_them(value: object, plain: object) -> None:
    found = _plain(value)
    assert found == plain
    assert type(found) is type(plain)
