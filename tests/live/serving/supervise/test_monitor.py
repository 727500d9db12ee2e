"""What the supervisor makes of its workers' signs, turn by turn: over a clock, processes and lines of the test's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from fairway.live.serving.seams.run_record import LaneKind, RunRecord
from fairway.live.serving.seams.transport import Line, Message
from fairway.live.serving.supervise.blame import Blame
from fairway.live.serving.supervise.monitor import Monitor
from fairway.live.serving.supervise.supervised_worker import SupervisedWorker

MARK = bytes(range(16))


class _Line:
    """The supervisor's end of a line to a worker that answers at once, unless it is silent."""

    def __init__(self) -> None:
        self.told: list[Message] = []
        self.coming: list[Message] = []
        self.is_silent = False
        self.is_broken = False
        self.is_closed = False
        self.unwritten = False

    def send(self, message: Message) -> bool:
        if self.is_broken:
            raise BrokenPipeError
        self.told.append(message)
        if message[0] == "ping" and not self.is_silent:
            self.coming.append(("pong", message[1]))
        return False

    def flush(self) -> bool:
        self.unwritten = False
        return False

    def receive(self, seconds: float | None = 0.0) -> Sequence[Message] | None:  # noqa: ARG002 - nothing is waited for
        if self.is_broken:
            return None
        came, self.coming = self.coming, []
        return came

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self.is_closed = True

    def words(self) -> list[Any]:
        """What the worker was told since the last call, without the wishes for signs."""
        told, self.told = self.told, []
        return [message for message in told if message[0] != "ping"]


class _Pool:
    """Processes that end when the test says so."""

    def __init__(self) -> None:
        self.started: list[tuple[int, int]] = []
        self.killed: list[int] = []
        self.status: dict[int, str | None] = {}
        self.stopped: set[int] = set()
        self.stands_by = False

    def start(self, number: int, epoch: int) -> None:
        self.started.append((number, epoch))
        self.status[number] = None

    def ended(self, number: int) -> str | None:
        return self.status[number]

    def pid(self, number: int) -> int:
        return number

    def last_words(self, number: int) -> str:
        return f"{number}"

    def wait(self, seconds: float, lines: Iterable[Line]) -> None: ...

    def wake(self) -> None: ...

    def is_stopped(self, number: int) -> bool:
        return number in self.stopped

    def stand_by(self) -> None:
        self.stands_by = True

    def kill(self, number: int) -> None:
        self.killed.append(number)
        self.status[number] = "-9"

    def stop(self, grace_seconds: float) -> None: ...

    def close(self) -> None: ...


class _Marks:
    def __init__(self) -> None:
        self.left: list[int] = []
        self.busy: list[tuple[int, float]] = []

    def leave(self, worker: int) -> None:
        self.left.append(worker)

    def call_busy(self, worker: int, until: float) -> None:
        self.busy.append((worker, until))

    def greeting(self, others: Sequence[int]) -> Sequence[Message]:
        return [("present", tuple(others))]


class _Supervised:
    """A monitor over three workers, and a planner that has no row."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.pool, self.marks = _Pool(), _Marks()
        self.lines: dict[int, _Line] = {}
        self.unreachable: set[int] = set()
        self.record = RunRecord(bytearray(RunRecord.size(4)))
        self.blame = Blame(["workflow"], ["model"])
        self.cleared: list[tuple[int, int]] = []
        self.cleared_clients = 0
        workers = [SupervisedWorker(n, f"worker {n}", self._connect, has_row=n < 3) for n in range(4)]
        self.monitor = Monitor(
            workers, self.pool, lambda _: self.marks, lambda: self.time, lambda *life: self.cleared.append(life),
            self._clear_clients, self.record, self.blame, doors=[1, 2],
        )  # fmt: skip
        self.monitor.start()

    def _clear_clients(self) -> None:
        self.cleared_clients += 1

    def _connect(self, number: int) -> Line:
        if number in self.unreachable:
            raise ConnectionRefusedError
        self.lines[number] = _Line()
        return self.lines[number]

    def turns(self, seconds: float, step: float = 0.25) -> None:
        """Turns for so long."""
        ends = self.time + seconds
        while self.time < ends - 1e-9:
            self.time += step
            self.monitor.turn()

    def serve(self) -> _Supervised:
        """Until all have started."""
        self.turns(1.0)
        assert self.monitor.is_complete
        for line in self.lines.values():
            line.words()
        return self

    def begin(self, worker: int, kind: LaneKind, limit: float, *marks: bytes) -> None:
        self.record.lanes(worker)[kind].begin(0, 0, self.time, self.time + limit, marks)

    def culprits(self) -> dict[Any, Any]:
        return self.blame.notice(0).culprits


@pytest.fixture
def served() -> _Supervised:
    return _Supervised().serve()


def test_workers_that_have_started_hear_of_each_other_and_doors_open_when_all_are_there() -> None:
    served = _Supervised()
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


def test_turns_come_quickly_while_workers_start_and_slowly_when_nothing_happens(served: _Supervised) -> None:
    assert _Supervised().monitor.patience == 0.02
    assert served.monitor.patience == 0.5
    served.pool.status[0] = "1"
    served.turns(0.25)
    assert served.monitor.patience == 0.02


def test_a_worker_is_asked_for_a_sign_a_second_after_its_last(served: _Supervised) -> None:
    asked = []
    for _ in range(40):
        served.lines[1].told.clear()
        served.turns(0.25)
        asked += [served.time] * len(served.lines[1].told)
    gaps = {round(later - sooner, 3) for sooner, later in pairwise(asked)}
    assert gaps == {1.25}, "its sign is heard in the next turn"


def test_a_death_is_told_to_the_others_who_have_to_take_it_in_before_the_worker_starts_again(
    served: _Supervised,
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
    assert [word[0] for word in words[:2]] == ["notice", "lost"], "its requests are judged before they are planned again"
    assert words[1] == ("lost", 0, 0)
    assert served.blame.notice(0).suspects == {MARK}
    served.turns(1.5)
    assert served.pool.started[4:] == [], "one of the others has not taken it in"
    served.lines[1].is_silent = False
    served.lines[1].coming.append(("pong", served.monitor.workers[1].wanted))
    served.turns(0.5)
    assert served.pool.started[4:] == [(0, 1)]
    assert served.monitor.restarts == 1
    served.turns(1.0)
    assert served.monitor.is_complete
    assert ("joined", 0, 1) in served.lines[2].words()


def test_one_that_gives_no_sign_is_not_waited_for_for_more_than_two_seconds(served: _Supervised) -> None:
    served.lines[1].is_silent = True
    served.pool.status[0] = "7"
    served.turns(2.25)
    assert served.pool.started[4:] == []
    served.turns(0.25)
    assert served.pool.started[4:] == [(0, 1)]


def test_a_planner_that_dies_has_no_row_to_leave(served: _Supervised) -> None:
    served.pool.status[3] = "1"
    served.turns(1.0)
    assert served.marks.left == []
    assert served.pool.started[4:] == [(3, 1)]


def test_nothing_is_replaced_before_all_have_started() -> None:
    served = _Supervised()
    served.unreachable = {2}
    served.turns(1.0)
    served.pool.status[0] = "1"
    served.turns(10.0)
    assert served.pool.started[4:] == []
    assert served.pool.killed == []


def test_a_worker_that_gives_no_sign_is_called_busy_after_a_second_and_lost_after_five(served: _Supervised) -> None:
    served.lines[1].is_silent = True
    served.turns(1.5)
    assert served.marks.busy == []
    served.turns(3.0)
    assert {worker for worker, _ in served.marks.busy} == {1}
    assert 4 <= len(served.marks.busy) <= 6, "each half a second"
    until = served.marks.busy[-1][1]
    assert served.time < until < served.time + 5.0, "for as long again as it has been silent"
    assert served.pool.killed == []
    served.turns(3.0)
    assert served.pool.killed == [1]
    served.turns(3.0)
    assert (1, 1) in served.pool.started
    assert served.culprits() == {}, "it did nothing"


def test_a_planner_that_is_silent_has_no_row_that_could_be_busy(served: _Supervised) -> None:
    served.lines[3].is_silent = True
    served.turns(4.0)
    assert served.marks.busy == []


def test_time_in_which_the_supervisor_itself_was_not_awake_says_nothing_of_a_worker(served: _Supervised) -> None:
    served.lines[1].is_silent = True
    served.pool.stopped.add(2)
    served.turns(1.0)
    served.pool.stopped.clear()
    served.time += 100.0
    served.monitor.turn()
    assert served.pool.killed == [], "a turn counts for a second at most"


def test_a_worker_whose_process_is_stopped_is_lost_after_a_second(served: _Supervised) -> None:
    served.pool.stopped.add(1)
    served.turns(1.0)
    assert served.pool.killed == []
    served.turns(0.25)
    assert served.pool.killed == [1]


def test_a_worker_that_was_stopped_for_moments_only_is_not_lost(served: _Supervised) -> None:
    for _ in range(10):
        served.pool.stopped.add(1)
        served.turns(0.75)
        served.pool.stopped.clear()
        served.turns(0.25)
    assert served.pool.killed == []


def test_one_that_does_not_start_in_two_minutes_is_lost(served: _Supervised) -> None:
    served.pool.status[1] = "1"
    served.unreachable = {1}
    served.turns(119.0)
    assert served.pool.killed == []
    served.turns(3.0)
    assert served.pool.killed == [1]


@pytest.mark.parametrize("kind", [LaneKind.STAGE, LaneKind.LOAD])
def test_what_takes_longer_than_it_may_ends_its_worker_and_is_named_for_it(served: _Supervised, kind: LaneKind) -> None:
    served.begin(1, kind, 3.0, MARK)
    served.turns(3.0)
    assert served.pool.killed == []
    served.turns(0.5)
    assert served.pool.killed == [1]
    served.turns(0.25)
    notice = served.blame.notice(0)
    if kind == LaneKind.STAGE:
        assert notice.refused == {MARK: "it took longer than 3 s, so it is not tried again"}
    assert (("model", 0) in notice.culprits) == (kind == LaneKind.LOAD)


def test_what_is_seen_late_once_may_have_been_read_while_it_was_written(served: _Supervised) -> None:
    for _ in range(10):
        served.begin(1, LaneKind.STAGE, -1.0, MARK)
        served.turns(0.25)
    assert served.pool.killed == []


def test_what_has_ended_can_take_no_longer(served: _Supervised) -> None:
    served.begin(1, LaneKind.STAGE, 1.0, MARK)
    served.record.lanes(1)[LaneKind.STAGE].end(served.time)
    served.turns(5.0)
    assert served.pool.killed == []


@pytest.mark.parametrize(("kind", "seconds"), [(LaneKind.STAGE, 10.0), (LaneKind.LOOP, 30.0), (LaneKind.LOAD, 30.0)])
def test_what_runs_may_keep_its_worker_silent_for_its_part_of_its_limit(
    served: _Supervised, kind: LaneKind, seconds: float
) -> None:
    served.begin(1, kind, 30.0, MARK)
    served.lines[1].is_silent = True
    served.turns(seconds)
    assert served.pool.killed == []
    served.turns(2.0)
    assert served.pool.killed == [1]
    served.turns(0.25)
    refused = served.blame.notice(0).refused
    if kind == LaneKind.STAGE:
        assert refused == {MARK: "it let no other code of its worker run, so it is not tried again"}


def test_a_stage_that_holds_its_process_while_a_model_loads_gets_no_model_set_aside(served: _Supervised) -> None:
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


def test_a_load_that_hangs_while_its_worker_gives_signs_is_named_also_if_a_stage_runs(served: _Supervised) -> None:
    served.begin(1, LaneKind.STAGE, 30.0, MARK)
    served.begin(1, LaneKind.LOAD, 3.0)
    served.turns(4.0)
    assert served.pool.killed == [1]
    assert ("model", 0) in served.culprits()
    assert served.blame.notice(0).suspects == frozenset()


def test_what_the_dead_have_left_is_cleared_when_no_one_can_be_about_to_open_it(served: _Supervised) -> None:
    served.pool.status[0] = "7"
    served.turns(9.0)
    assert served.cleared == []
    before = served.cleared_clients
    served.turns(12.0)
    assert served.cleared == [(0, 0)]
    assert served.cleared_clients > before
    served.turns(30.0)
    assert served.cleared == [(0, 0)], "once"


def test_a_worker_that_reports_an_answer_or_a_load_clears_who_was_suspected(served: _Supervised) -> None:
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


def test_a_line_that_ends_is_made_again(served: _Supervised) -> None:
    first = served.lines[1]
    first.is_broken = True
    served.turns(2.0)
    assert first.is_closed
    assert served.lines[1] is not first
    assert served.pool.killed == []
    assert served.lines[1].told, "it hears again what it may have missed"
    assert served.monitor.workers[1].is_there


def test_a_process_is_kept_in_readiness_once_all_have_been_there_for_a_while(served: _Supervised) -> None:
    served.turns(1.5)
    assert not served.pool.stands_by
    served.turns(2.0)
    assert served.pool.stands_by


def test_lines_end_with_the_monitor(served: _Supervised) -> None:
    served.monitor.close()
    assert all(line.is_closed for line in served.lines.values())
    assert served.monitor.lines == []
