"""What the supervisor makes of its workers' signs, turn by turn, over a clock, processes and lines of a test."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fairway.live.serving.seams.run_record import LaneKind
from tests.live.serving.supervise.supervised import MARK, Supervised


@pytest.fixture
def served() -> Supervised:
    return Supervised().serve()


def test_workers_that_have_started_hear_of_each_other_and_doors_open_when_all_are_there() -> None:
    served = Supervised()
    served.unreachable = {2}
    assert served.pool.started == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert not served.monitor.is_complete
    served.turns(2.0)
    assert not served.monitor.is_complete
    assert ("joined", 1, 0) in served.lines[0].told
    assert not any(word[0] == "notice" for line in served.lines.values() for word in line.told)
    assert len(served.monitor.lines) == 3
    served.unreachable.clear()
    served.turns(1.0)
    assert served.monitor.is_complete
    assert ("lives", ((0, 0), (1, 0), (3, 0))) in served.lines[2].told, "it hears of those that were there before"
    assert ("present", (0, 1, 3)) in served.lines[2].told
    notices = [[word for word in line.told if word[0] == "notice"] for line in served.lines.values()]
    assert all(len(each) == 1 for each in notices)
    assert notices[0][0][1][-1] == 1, "the first door that is there lets those on trial in"


def test_turns_come_quickly_while_workers_start_and_slowly_when_nothing_happens(served: Supervised) -> None:
    assert Supervised().monitor.patience == 0.02
    assert served.monitor.patience == 0.5
    served.pool.status[0] = "1"
    served.turns(0.25)
    assert served.monitor.patience == 0.02


def test_a_worker_is_asked_for_a_sign_a_second_after_its_last(served: Supervised) -> None:
    asked = []
    for _ in range(40):
        served.lines[1].told.clear()
        served.turns(0.25)
        asked += [served.time] * len(served.lines[1].told)
    gaps = {round(later - sooner, 3) for sooner, later in pairwise(asked)}
    assert gaps == {1.25}, "its sign is heard in the next turn"


def test_a_death_is_told_to_the_others_who_have_to_take_it_in_before_the_worker_starts_again(
    served: Supervised,
) -> None:
    before = served.lines[0]
    served.begin(0, LaneKind.STAGE, 10.0, MARK)
    served.lines[1].is_silent = True
    served.pool.status[0] = "7"
    served.turns(0.25)
    assert served.marks.left == [0]
    assert before.is_closed
    assert served.pool.started[4:] == []
    words = served.lines[2].words()
    assert [word[0] for word in words[:2]] == ["notice", "lost"], (
        "its requests are judged before they are planned again"
    )
    assert words[1] == ("lost", 0, 0)
    assert served.blame.notice(0).suspects == {MARK}
    served.turns(1.5)
    assert served.pool.started[4:] == [], "one of the others has not taken it in"
    served.lines[1].is_silent = False
    served.lines[1].coming.append(("pong", served.monitor.workers[1].wanted, 0))
    served.turns(0.5)
    assert served.pool.started[4:] == [(0, 1)]
    assert served.monitor.restarts == 1
    served.turns(1.0)
    assert served.monitor.is_complete
    assert ("joined", 0, 1) in served.lines[2].words()


def test_one_that_gives_no_sign_is_not_waited_for_for_more_than_two_seconds(served: Supervised) -> None:
    served.lines[1].is_silent = True
    served.pool.status[0] = "7"
    served.turns(2.25)
    assert served.pool.started[4:] == []
    served.turns(0.25)
    assert served.pool.started[4:] == [(0, 1)]


def test_a_planner_that_dies_has_no_row_to_leave(served: Supervised) -> None:
    served.pool.status[3] = "1"
    served.turns(1.0)
    assert served.marks.left == []
    assert served.pool.started[4:] == [(3, 1)]


def test_nothing_is_replaced_before_all_have_started() -> None:
    served = Supervised()
    served.unreachable = {2}
    served.turns(1.0)
    served.pool.status[0] = "1"
    served.turns(10.0)
    assert served.pool.started[4:] == []
    assert served.pool.killed == []


def test_a_worker_that_gives_no_sign_is_called_busy_after_a_second_and_lost_after_five(served: Supervised) -> None:
    served.fall_silent(1)
    asked = served.time
    served.turns(0.75)
    assert served.marks.busy == []
    served.turns(4.25)
    ages = [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0]
    assert served.marks.busy == [(1, asked + 2 * age) for age in ages], "for as long again as it has been silent"
    assert served.pool.killed == []
    served.turns(0.25)
    assert served.pool.killed == [1]
    served.turns(3.0)
    assert (1, 1) in served.pool.started
    assert served.culprits() == {}, "it did nothing"


def test_a_planner_that_is_silent_has_no_row_that_could_be_busy(served: Supervised) -> None:
    served.lines[3].is_silent = True
    served.turns(4.0)
    assert served.marks.busy == []


def test_a_worker_that_is_back_is_met_before_all_are_called_complete(served: Supervised) -> None:
    served.pool.status[0] = "7"
    served.turns(0.25)
    assert not served.monitor.is_complete
    while (0, 1) not in served.pool.started:
        served.turns(0.25)
    served.unreachable = {0}
    served.turns(3.0)
    assert not served.monitor.is_complete, "the others are there, and have taken everything in"
    served.unreachable.clear()
    while not served.monitor.is_complete:
        served.turns(0.25)
    served.fall_silent(1)
    assert not served.monitor.is_complete, "it has not taken in what it was told last"


def test_doors_are_told_at_once_what_has_changed_and_nothing_while_nothing_has(served: Supervised) -> None:
    served.turns(3.0)
    assert served.lines[1].words() == []
    served.begin(0, LaneKind.LOAD, 10.0)
    served.pool.status[0] = "7"
    served.turns(3.0)
    notices = [word[1] for word in served.lines[1].words() if word[0] == "notice"]
    assert ("model", 0) in notices[-1][4]
    served.turns(10.0)
    notices = [word[1] for word in served.lines[1].words() if word[0] == "notice"]
    assert notices[-1][4] == {}, "time has passed, and all were there"


def test_suspects_run_again_when_two_workers_with_rows_are_there_or_all(served: Supervised) -> None:
    for worker in (0, 1):
        served.begin(worker, LaneKind.STAGE, 10.0, MARK)
        served.pool.status[worker] = "7"
    served.unreachable = {0, 1}
    served.turns(5.0)
    assert not served.blame.notice(0).suspects_run, "one runs stages; the planner does not"
    served.unreachable = {0}
    served.turns(3.0)
    assert served.blame.notice(0).suspects_run


def test_a_worker_that_dies_at_once_each_time_is_started_less_and_less_often(served: Supervised) -> None:
    served.unreachable = {0}
    gaps = []
    for _ in range(4):
        served.pool.status[0] = "7"
        before, died_at = len(served.pool.started), served.time
        while len(served.pool.started) == before:
            served.turns(0.03125, step=0.03125)
        gaps.append(served.time - died_at)
    assert gaps == sorted(gaps)
    assert gaps[-1] > 2 * gaps[1]


def test_time_in_which_the_supervisor_itself_was_not_awake_says_nothing_of_a_worker(served: Supervised) -> None:
    served.pool.stopped.add(2)
    served.time += 100.0
    served.monitor.turn()
    assert served.pool.killed == [], "a turn counts for a second at most"
    served.turns(0.25)
    assert served.pool.killed == [2], "but for a second"


def test_a_worker_whose_process_is_stopped_is_lost_after_a_second(served: Supervised) -> None:
    served.pool.stopped.add(1)
    served.turns(1.0)
    assert served.pool.killed == []
    served.turns(0.25)
    assert served.pool.killed == [1]


def test_a_worker_that_was_stopped_for_moments_only_is_not_lost(served: Supervised) -> None:
    for _ in range(10):
        served.pool.stopped.add(1)
        served.turns(0.75)
        served.pool.stopped.clear()
        served.turns(0.25)
    assert served.pool.killed == []


def test_one_that_does_not_start_in_two_minutes_is_lost(served: Supervised) -> None:
    served.pool.status[1] = "1"
    served.unreachable = {1}
    while (1, 1) not in served.pool.started:
        served.turns(0.25)
    served.turns(120.0)
    assert served.pool.killed == []
    served.turns(0.25)
    assert served.pool.killed == [1]


@pytest.mark.parametrize("kind", [LaneKind.STAGE, LaneKind.LOAD])
def test_what_takes_longer_than_it_may_ends_its_worker_and_is_named_for_it(served: Supervised, kind: LaneKind) -> None:
    served.begin(1, kind, 3.0, MARK)
    served.turns(3.25)
    assert served.pool.killed == [], "it was seen to be late in one turn only"
    served.turns(0.25)
    assert served.pool.killed == [1]
    served.turns(0.25)
    notice = served.blame.notice(0)
    if kind == LaneKind.STAGE:
        assert notice.refused == {MARK: "it took longer than 3 s, so it is not tried again"}
    assert (("model", 0) in notice.culprits) == (kind == LaneKind.LOAD)


def test_what_is_seen_late_once_may_have_been_read_while_it_was_written(served: Supervised) -> None:
    for _ in range(10):
        served.begin(1, LaneKind.STAGE, -1.0, MARK)
        served.turns(0.25)
    assert served.pool.killed == []


def test_what_has_ended_can_take_no_longer(served: Supervised) -> None:
    served.begin(1, LaneKind.STAGE, 1.0, MARK)
    served.record.lanes(1)[LaneKind.STAGE].end(served.time)
    served.turns(5.0)
    assert served.pool.killed == []


@pytest.mark.parametrize(("kind", "seconds"), [(LaneKind.STAGE, 10.0), (LaneKind.LOOP, 30.0), (LaneKind.LOAD, 30.0)])
def test_what_runs_may_keep_its_worker_silent_for_its_part_of_its_limit(
    served: Supervised, kind: LaneKind, seconds: float
) -> None:
    served.begin(1, kind, 30.0, MARK)
    served.fall_silent(1)
    began = served.time
    while not served.pool.killed:
        served.turns(0.25)
    assert served.time - began == pytest.approx(seconds + 0.25, abs=0.01 if seconds == 10.0 else 2.0)
    assert served.pool.killed == [1]
    served.turns(0.25)
    refused = served.blame.notice(0).refused
    if kind == LaneKind.STAGE:
        assert refused == {MARK: "it let no other code of its worker run, so it is not tried again"}


def test_a_stage_that_holds_its_process_while_a_model_loads_gets_no_model_set_aside(served: Supervised) -> None:
    for _ in range(2):
        served.begin(1, LaneKind.STAGE, 30.0, MARK)
        served.begin(1, LaneKind.LOAD, 3.0)
        served.lines[1].is_silent = True
        served.turns(4.0)
        assert served.pool.killed.pop() == 1
        served.turns(0.25)
        assert served.culprits()["model", 0][0] == "tried", "it is not set aside, though it was late twice"
        assert served.blame.notice(0).suspects == {MARK}, "the request runs alone when it is tried again"
        served.turns(1.0)


def test_a_load_that_hangs_while_its_worker_gives_signs_is_named_also_if_a_stage_runs(served: Supervised) -> None:
    served.begin(1, LaneKind.STAGE, 30.0, MARK)
    served.begin(1, LaneKind.LOAD, 3.0)
    served.turns(4.0)
    assert served.pool.killed == [1]
    assert ("model", 0) in served.culprits()
    assert served.blame.notice(0).suspects == frozenset()


def test_what_the_dead_have_left_is_cleared_when_no_one_can_be_about_to_open_it(served: Supervised) -> None:
    served.turns(8.75)
    assert served.cleared_clients == 0
    served.turns(0.25)
    assert served.cleared_clients == 1, "10 s have passed"
    served.pool.status[0] = "7"
    served.turns(10.0)
    assert served.cleared_clients == 2
    assert served.cleared == [], "it was dead for less than 10 s"
    served.turns(10.0)
    assert served.cleared == [(0, 0)]
    served.turns(30.0)
    assert served.cleared == [(0, 0)], "once"
    assert served.cleared_clients == 6


def test_a_worker_that_reports_an_answer_or_a_load_clears_who_was_suspected(served: Supervised) -> None:
    served.begin(0, LaneKind.STAGE, 10.0, MARK)
    served.pool.status[0] = "7"
    served.begin(1, LaneKind.LOAD, 10.0)
    served.pool.status[1] = "7"
    served.turns(1.0)
    assert served.blame.notice(0).suspects == {MARK}
    assert ("model", 0) in served.culprits()
    served.lines[2].coming += [("cleared", MARK), ("loaded", 0)]
    served.turns(0.25)
    assert served.blame.notice(0).suspects == frozenset()
    assert ("model", 0) not in served.culprits()


def test_a_line_that_ends_is_made_again(served: Supervised) -> None:
    first = served.lines[1]
    first.is_broken = True
    served.turns(2.0)
    assert first.is_closed
    assert served.lines[1] is not first
    assert served.pool.killed == []
    assert served.lines[1].told, "it hears again what it may have missed"
    assert served.monitor.workers[1].is_there


def test_a_process_is_kept_in_readiness_once_all_have_been_there_for_a_while(served: Supervised) -> None:
    served.turns(2.0)
    assert not served.pool.stands_by, "3 s have passed"
    served.turns(0.25)
    assert served.pool.stands_by


def test_lines_end_with_the_monitor(served: Supervised) -> None:
    served.monitor.close()
    assert all(line.is_closed for line in served.lines.values())
    assert served.monitor.lines == []


def _overdue(served: Supervised, worker: int, mark: bytes = MARK) -> None:
    """A run that may take a minute, and usually takes less than a second."""
    lane = served.record.lanes(worker)[LaneKind.STAGE]
    lane.begin(0, 0, served.time, served.time + 60.0, (mark,), overdue=served.time + 1.0)


def test_a_run_that_takes_longer_than_usual_is_left_alone_while_nothing_waits(served: Supervised) -> None:
    _overdue(served, 0)
    served.turns(30.0)
    assert served.pool.killed == []


def test_a_run_that_takes_longer_than_usual_is_put_aside_when_others_wait_and_then_has_twice_the_time(
    served: Supervised,
) -> None:
    for times, seconds in enumerate((1.0, 2.0, 4.0)):
        _overdue(served, 0)
        served.lines[0].waiting = 1
        served.turns(seconds)
        assert len(served.pool.killed) == times
        served.turns(2.0)
        assert served.pool.killed == [0] * (times + 1)
        served.lines[0].waiting = 0
        served.turns(3.0)
    refused = served.blame.notice(0).refused
    assert "took longer than usual while others waited each time that it was tried" in refused[MARK]


def test_runs_in_all_workers_that_take_longer_than_usual_are_put_aside_when_the_planner_has_more(
    served: Supervised,
) -> None:
    served.lines[3].waiting = 1
    _overdue(served, 0)
    _overdue(served, 1)
    served.turns(5.0)
    assert served.pool.killed == [], "worker 2 is free"
    _overdue(served, 2)
    served.turns(3.0)
    assert served.pool.killed


def test_of_two_runs_of_one_request_the_older_one_has_no_more_time_than_usual(served: Supervised) -> None:
    _overdue(served, 0)
    served.lines[0].waiting = 1
    served.turns(2.0)
    assert served.pool.killed == [0]
    served.turns(1.0)
    _overdue(served, 1)
    served.turns(0.5)
    _overdue(served, 2)
    served.lines[1].waiting = served.lines[2].waiting = 1
    served.turns(1.5)
    assert served.pool.killed == [0, 1]
