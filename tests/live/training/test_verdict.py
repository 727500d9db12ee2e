"""How a run ended decides what becomes of its job."""

from __future__ import annotations

import pytest

from fairway.live.backend.status import OutcomeKind
from fairway.live.training.verdict import BACK_OFF, judged, lost_work
from fairway.store.states import JobState


def verdict(
    kind: OutcomeKind, *, cancelled: bool = False, failures: int = 0, retries: int = 2
) -> tuple[JobState, str, float]:
    found = judged(kind, why="it broke", cancelled=cancelled, failures=failures, retries=retries)
    return found.state, found.reason.code, found.wait_seconds


@pytest.mark.parametrize(
    ("kind", "cancelled", "expected"),
    [
        (OutcomeKind.FINISHED, False, (JobState.SUCCEEDED, "Succeeded", 0.0)),
        (OutcomeKind.FINISHED, True, (JobState.SUCCEEDED, "Succeeded", 0.0)),
        (OutcomeKind.STOPPED, False, (JobState.QUEUED, "Preempted", 0.0)),
        (OutcomeKind.STOPPED, True, (JobState.CANCELLED, "Cancelled", 0.0)),
        (OutcomeKind.FAILED, True, (JobState.CANCELLED, "Cancelled", 0.0)),
        (OutcomeKind.LOST, False, (JobState.QUEUED, "WorkersLost", 0.0)),
        (OutcomeKind.LOST, True, (JobState.CANCELLED, "Cancelled", 0.0)),
        (OutcomeKind.DECLINED, False, (JobState.QUEUED, "BackOff", 5.0)),
        (OutcomeKind.FAILED, False, (JobState.QUEUED, "BackOff", 1.0)),
        (OutcomeKind.FAILED_TO_START, False, (JobState.QUEUED, "BackOff", 1.0)),
    ],
)
def test_what_becomes_of_a_job(kind: OutcomeKind, cancelled: bool, expected: tuple[JobState, str, float]) -> None:
    assert verdict(kind, cancelled=cancelled) == expected


def test_only_failures_of_its_own_count_against_a_job() -> None:
    for kind in (OutcomeKind.FINISHED, OutcomeKind.STOPPED, OutcomeKind.LOST, OutcomeKind.DECLINED):
        assert not judged(kind, why="", cancelled=False, failures=9, retries=0).failed
    for kind in (OutcomeKind.FAILED, OutcomeKind.FAILED_TO_START):
        assert judged(kind, why="", cancelled=False, failures=0, retries=5).failed


def test_retries_are_counted_and_then_it_has_failed() -> None:
    assert [verdict(OutcomeKind.FAILED, failures=failures)[0] for failures in range(3)] == [
        JobState.QUEUED,
        JobState.QUEUED,
        JobState.FAILED,
    ]
    last = judged(OutcomeKind.FAILED, why="it broke", cancelled=False, failures=1, retries=1)
    assert last.reason.sentence == "it broke, after 1 retry"
    assert (
        judged(OutcomeKind.FAILED, why="it broke", cancelled=False, failures=0, retries=0).reason.sentence == "it broke"
    )
    first = judged(OutcomeKind.FAILED, why="it broke", cancelled=False, failures=0, retries=1)
    assert first.reason.sentence == "it broke; failure 1 of at most 2, tried again after 1 s"


def test_waits_double_up_to_five_minutes() -> None:
    assert [BACK_OFF.seconds(failures) for failures in range(6)] == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0]
    assert BACK_OFF.seconds(9) == 256.0
    assert BACK_OFF.seconds(10) == BACK_OFF.seconds(10_000) == 300.0


def test_a_job_that_was_stopped_says_what_it_lost() -> None:
    plain = lost_work(resumes=False, steps_done=None, steps_saved=0.0, ran_for=1234.4)
    assert plain == "it reported no checkpoint, so 1,234 s of work are lost and it begins from zero"
    some = lost_work(resumes=True, steps_done=120.0, steps_saved=100.0, ran_for=60.0)
    assert some == "20 steps since its last checkpoint are lost"
    for nothing in (
        lost_work(resumes=True, steps_done=100.0, steps_saved=100.0, ran_for=60.0),
        lost_work(resumes=True, steps_done=None, steps_saved=100.0, ran_for=60.0),
        lost_work(resumes=False, steps_done=None, steps_saved=0.0, ran_for=None),
    ):
        assert nothing is None
    for kind in (OutcomeKind.STOPPED, OutcomeKind.LOST):
        found = judged(kind, why="terminated", cancelled=False, failures=0, retries=0, loss=plain)
        assert found.reason.sentence == f"terminated; {plain}"


def test_a_job_that_lost_nothing_goes_on_where_it_was() -> None:
    stopped = judged(OutcomeKind.STOPPED, why="others are owed more", cancelled=False, failures=0, retries=0)
    assert stopped.reason.sentence == "others are owed more; it goes on from there when it is its turn"
    lost = judged(OutcomeKind.LOST, why="its node is gone", cancelled=False, failures=0, retries=0)
    assert lost.reason.sentence == "its node is gone; it goes on from its last checkpoint"
    declined = judged(OutcomeKind.DECLINED, why="no room", cancelled=False, failures=0, retries=0)
    assert declined.reason.sentence == "no room; tried again after 5 s"
    many = judged(OutcomeKind.FAILED, why="it broke", cancelled=False, failures=2, retries=2)
    assert many.reason.sentence == "it broke, after 2 retries"


def test_one_step_is_lost_in_the_singular() -> None:
    assert lost_work(resumes=True, steps_done=1.0, steps_saved=0.0, ran_for=None) == (
        "1 step since its last checkpoint are lost"
    )
