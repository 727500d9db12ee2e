"""Each kind of job is tried once on an engine of its own, and a refusal is said at the door."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.engine.training.options import EngineOptions
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.live.training.decision import acceptance as module
from fairway.live.training.decision.acceptance import Acceptance
from fairway.live.training.decision.process import BusyError

JOB = Job("a", {"v100": 4.0, "k80": 0.0}, scale_factor=1, steps_left=100.0, job_type="x")


class Trials:
    """What was tried, and what comes of it."""

    def __init__(self) -> None:
        self.deadlines: list[float | None] = []
        self.result: str | Exception | None = None

    def refusal(self, _: object, __: Job, deadline: float | None) -> str | None:
        self.deadlines.append(deadline)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Trials:
    found = Trials()
    monkeypatch.setattr(module, "refusal", found.refusal)
    return found


@pytest.fixture
def acceptance() -> Acceptance:
    return Acceptance(Cluster({"v100": 2, "k80": 2}), policy_of("max-min-fairness"), EngineOptions(60.0, 0.0), None)


def test_a_kind_is_tried_once(trials: Trials, acceptance: Acceptance) -> None:
    for job in (JOB, replace(JOB, id="b", steps_left=5.0, throughputs={"v100": 1.0}), replace(JOB, weight=2.0)):
        acceptance.check(job, None)
    assert len(trials.deadlines) == 1


CHANGES: list[Callable[[], tuple[Job, float | None]]] = [
    lambda: (replace(JOB, throughputs={"v100": 4.0, "k80": 1.0}), None),
    lambda: (replace(JOB, scale_factor=2), None),
    lambda: (replace(JOB, job_type="y"), None),
    lambda: (replace(JOB, preemptible=False), None),
    lambda: (replace(JOB, entity="team"), None),
    lambda: (replace(JOB, steps_left=None), None),
    lambda: (JOB, 5.0),
]


@pytest.mark.parametrize("other", CHANGES)
def test_another_kind_is_tried_too(
    trials: Trials, acceptance: Acceptance, other: Callable[[], tuple[Job, float | None]]
) -> None:
    acceptance.check(JOB, None)
    acceptance.check(*other())
    acceptance.check(*other())
    assert len(trials.deadlines) == 2


def test_a_deadline_that_has_passed_is_tried_as_one_that_is_near(trials: Trials, acceptance: Acceptance) -> None:
    for name, deadline in (("p", None), ("q", 9.0), ("r", 0.0), ("s", -50.0)):
        acceptance.check(replace(JOB, job_type=name), deadline)
    assert trials.deadlines == [None, 10.0, 1.0, 1.0]


def test_a_job_that_cannot_be_decided_about_is_refused_each_time(trials: Trials, acceptance: Acceptance) -> None:
    trials.result = "it has no length"
    for _ in range(2):
        with pytest.raises(InputError, match="policy 'max-min-fairness' cannot decide about it: it has no length"):
            acceptance.check(JOB, None)
    assert len(trials.deadlines) == 2


def test_where_the_policy_is_busy_a_job_is_let_in_and_tried_the_next_time(
    trials: Trials, acceptance: Acceptance
) -> None:
    trials.result = BusyError("another question")
    acceptance.check(JOB, None)
    trials.result = None
    acceptance.check(JOB, None)
    acceptance.check(JOB, None)
    assert len(trials.deadlines) == 2


def test_so_many_kinds_are_remembered_at_a_time(
    trials: Trials, acceptance: Acceptance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_KINDS", 2)
    kinds: list[Any] = [replace(JOB, job_type=name) for name in "pq"]
    for job in [*kinds, *kinds]:
        acceptance.check(job, None)
    assert len(trials.deadlines) == 2
    acceptance.check(replace(JOB, job_type="r"), None)
    acceptance.check(kinds[0], None)
    assert len(trials.deadlines) == 4, "all were forgotten to make room"
    acceptance.check(kinds[0], None)
    assert len(trials.deadlines) == 4
