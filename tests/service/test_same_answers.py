"""An answer that is asked for by many at once is made once, and is never older than a second."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from fairway.service.same_answers import KEPT_SECONDS, SameAnswers


def test_it_is_made_again_when_it_is_old() -> None:
    now, made = [100.0], []

    def make() -> bytes:
        made.append(now[0])
        return str(len(made)).encode()

    answers = SameAnswers(lambda: now[0])
    assert answers.text("a", make) == b"1"
    assert answers.text("a", make) == b"1"
    assert answers.text("b", make) == b"2"
    now[0] += KEPT_SECONDS
    assert answers.text("a", make) == b"3"


def test_who_asks_while_it_is_made_waits_for_it() -> None:
    begun, go, made = Event(), Event(), []

    def make() -> bytes:
        begun.set()
        assert go.wait(30)
        made.append(1)
        return b"x"

    answers = SameAnswers()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(answers.text, "a", make)
        assert begun.wait(30)
        second = threads.submit(answers.text, "a", make)
        go.set()
        assert first.result(30) == second.result(30) == b"x"
    assert made == [1]


def test_one_that_cannot_be_made_is_tried_again() -> None:
    def fail() -> bytes:
        raise ValueError

    answers = SameAnswers()
    for _ in range(2):
        try:
            answers.text("a", fail)
        except ValueError:
            continue
        raise AssertionError("it was made")
    assert answers.text("a", lambda: b"x") == b"x"
