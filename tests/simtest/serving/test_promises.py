from __future__ import annotations

import pytest

from fairway.simtest.serving.promises import MOST_SECONDS, Asked, Record, broken


def _record(**facts: object) -> Record:
    asked = Asked(1, "fork", 10.0, 42, ended_at=11.0, answer=42)
    for name, value in facts.items():
        setattr(asked, name, value)
    return Record(requests={1: asked})


def test_a_request_with_the_right_answer_breaks_nothing() -> None:
    assert list(broken(_record())) == []


def test_a_request_whose_client_has_left_may_have_no_outcome() -> None:
    assert list(broken(_record(ended_at=None, answer=None, left=True))) == []


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"answer": 41}, "was answered by 41, expected 42"),
        ({"ended_at": None}, "has no outcome"),
        ({"ended_at": 10.0 + MOST_SECONDS + 1}, "after the last fault"),
        ({"harm": "exit"}, "was answered"),
        ({"code": "failed"}, "without need"),
        ({"code": "busy"}, "without need"),
        ({"code": "late", "deadline": 2.0}, "without need"),
        ({"code": "unplaceable"}, "without need"),
        ({"code": "no-worker"}, "without need"),
    ],
)
def test_what_was_not_promised_is_found(facts: dict[str, object], words: str) -> None:
    (found,) = broken(_record(**facts))
    assert words in found


@pytest.mark.parametrize(
    ("deaths", "is_allowed"),
    [
        ([(10.5, 0, "-9"), (10.6, 1, "-9")], False),
        ([(10.5, 0, "-9"), (10.6, 1, "-9"), (10.7, 0, "-9")], True),
        ([(9.5, 0, "-9"), (10.6, 1, "-9"), (10.7, 0, "-9")], False),
        ([(10.5, 0, "7"), (10.6, 1, "7")], True),
        ([(10.5, 0, "7")], False),
    ],
)
def test_a_request_that_does_no_harm_fails_only_if_several_workers_died_meanwhile(
    deaths: list[tuple[float, int, str]], is_allowed: bool
) -> None:
    record = _record(code="failed", answer=None)
    record.deaths = deaths
    assert (list(broken(record)) == []) == is_allowed


def test_a_worker_ends_each_request_of_a_client_once() -> None:
    record = _record()
    record.heard("worker-0", "client-0", 7, ask=True)
    record.heard("worker-0", "client-0", 7, ask=False)
    assert list(broken(record)) == []
    record.heard("worker-0", "client-0", 7, ask=False)
    (found,) = broken(record)
    assert "has ended request 7 of client-0 2 times" in found
