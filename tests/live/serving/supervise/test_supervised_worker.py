"""One worker as its supervisor knows it: its line, its signs, and its lives."""

from __future__ import annotations

from typing import Any

from fairway.live.serving.supervise.supervised_worker import SupervisedWorker
from tests.live.serving.supervise.supervised import StandingLine


class _Lines:
    """Makes lines, or refuses to."""

    def __init__(self) -> None:
        self.made: list[StandingLine] = []
        self.refuses = False

    def connect(self, number: int) -> Any:
        if self.refuses:
            raise ConnectionRefusedError
        self.made.append(StandingLine())
        assert number == 3
        return self.made[-1]


def _worker() -> tuple[SupervisedWorker, _Lines]:
    lines = _Lines()
    return SupervisedWorker(3, "worker 3", lines.connect, has_row=True), lines


def test_one_that_was_never_started_is_in_no_life_and_owes_no_sign() -> None:
    worker, _ = _worker()
    assert (worker.number, worker.name, worker.has_row, worker.epoch) == (3, "worker 3", True, -1)
    assert (worker.is_there, worker.line, worker.wanted, worker.given) == (False, None, 0, 0)
    assert (worker.silent, worker.stopped, worker.last_sign_at, worker.reports) == (0.0, 0.0, 0.0, [])
    assert worker.silent_seconds(100.0) == 0.0
    worker.tell(1.0, ("x",))
    worker.take_signs(1.0)
    worker.close()


def test_a_life_has_an_epoch_of_its_own_and_begins_without_silence() -> None:
    worker, _ = _worker()
    worker.silent = worker.stopped = 7.0
    worker.begin_life(50.0)
    assert (worker.epoch, worker.silent, worker.stopped, worker.age(53.0)) == (0, 0.0, 0.0, 3.0)
    worker.end_life(60.0)
    worker.begin_life(61.0)
    assert worker.epoch == 1


def test_it_is_called_once_and_again_when_it_could_not_be_reached() -> None:
    worker, lines = _worker()
    lines.refuses = True
    assert worker.call() is False
    assert worker.line is None
    lines.refuses = False
    assert worker.call() is True
    assert worker.call() is True
    assert len(lines.made) == 1


def test_with_all_that_it_is_told_goes_a_wish_for_a_sign_with_the_next_number() -> None:
    worker, lines = _worker()
    worker.call()
    worker.tell(10.0, ("lost", 1, 0), ("joined", 2, 0))
    worker.tell(11.0)
    assert lines.made[0].told == [("lost", 1, 0), ("joined", 2, 0), ("ping", 1), ("ping", 2)]
    assert (worker.wanted, worker.given) == (2, 0)
    assert not worker.is_there
    assert worker.silent_seconds(14.0) == 4.0, "since the first sign was wanted that has not come"
    worker.silent = 3.0
    worker.take_signs(15.0)
    assert (worker.given, worker.last_sign_at, worker.is_there, worker.silent) == (2, 15.0, True, 0.0)
    assert worker.silent_seconds(20.0) == 0.0, "no sign is wanted"


def test_what_it_says_beside_its_signs_is_kept_for_the_supervisor() -> None:
    worker, lines = _worker()
    worker.call()
    lines.made[0].coming += [("loaded", 4), ("pong", 0, 3), ("cleared", b"mark")]
    worker.take_signs(1.0)
    assert worker.reports == [("loaded", 4), ("cleared", b"mark")]


def test_what_could_not_go_out_goes_out_when_it_can() -> None:
    worker, lines = _worker()
    worker.call()
    line = lines.made[0]
    line.unwritten = True
    worker.take_signs(1.0)
    assert not line.unwritten


def test_a_line_that_breaks_is_hung_up_and_nothing_is_wanted_over_it_any_more() -> None:
    for breaks_when in ("told", "asked for signs"):
        worker, lines = _worker()
        worker.call()
        worker.tell(1.0)
        lines.made[0].is_broken = True
        if breaks_when == "told":
            worker.tell(2.0, ("x",))
        else:
            worker.take_signs(2.0)
        assert worker.line is None
        assert lines.made[0].is_closed
        assert (worker.wanted, worker.given) == (0, 0)
        assert worker.silent_seconds(100.0) == 0.0
        assert worker.call()
        worker.tell(3.0)
        assert lines.made[1].told == [("ping", 1)], "numbers begin anew"


def test_one_that_lived_for_longer_than_five_seconds_starts_at_once_and_others_wait_longer_each_time() -> None:
    worker, lines = _worker()
    waits = []
    for _ in range(9):
        worker.begin_life(100.0)
        worker.call()
        worker.take_signs(100.0)
        waits.append(worker.end_life(105.0))
        assert not worker.is_there
        assert lines.made[-1].is_closed
    assert waits == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    worker.begin_life(100.0)
    assert worker.end_life(105.25) == 0.05
    worker.begin_life(100.0)
    assert worker.end_life(101.0) == 0.1
