"""Every check of the kit for state boards finds the mistake that it is there for, and the kit leaves nothing open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fairway.engine.serving.messages import PeerLoad, PeerModels, PublishLoad, PublishModels
from fairway.live.serving.seams import check_state_board
from fairway.live.serving.seams.check_state_board import Trial
from fairway.live.serving.seams.conformance import SeamError
from fairway.live.serving.seams.message_board import MessageBoard, MessageMarks
from fairway.live.serving.seams.state_board import RowTable
from fairway.live.serving.seams.transport import Message, Transport
from fairway.live.serving.simulated.machine import SimulatedMachine, SimulatedSeams
from fairway.place.arrays import BoolArray
from fairway.place.fleet import Fleet
from fairway.place.state import View

PLANNER = 3


class Board(MessageBoard):
    """A board over messages, whose table can be another one."""

    tables: type[RowTable] = RowTable

    def __init__(self, fleet: Fleet, homes: BoolArray | None, number: int, transport: Transport) -> None:
        super().__init__(self.tables(fleet, homes=homes), number, transport)


class Seams(SimulatedSeams):
    """A simulated machine with other boards or marks."""

    def __init__(self, boards: type[Board] = Board, marks: type[MessageMarks] = MessageMarks) -> None:
        super().__init__(SimulatedMachine(rows_as_messages=True))
        self._boards, self._marks = boards, marks

    def board(self, number: int, fleet: Fleet, homes: BoolArray | None, transport: Transport) -> Board:
        return self._boards(fleet, homes, number, transport)

    def marks(self, fleet: Fleet, tell_others: Callable[[int, Message], None]) -> MessageMarks:  # noqa: ARG002
        return self._marks(tell_others)


class Crowded(Board):
    """Sees all workers before any of them is there."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        for worker in range(PLANNER):
            self.table.join(worker)


class CrowdedLater(Board):
    """Sees all workers as soon as one is there."""

    def peers_present(self, workers: Sequence[int]) -> None:
        super().peers_present([1, 2] if self._number == 0 and workers else workers)


class BlindPlanner(Board):
    def peers_present(self, workers: Sequence[int]) -> None:
        if self._number != PLANNER:
            super().peers_present(workers)


class Forgetful(Board):
    """The first worker does not see those that were there before it was told of the last."""

    def peers_present(self, workers: Sequence[int]) -> None:
        super().peers_present(workers)
        if self._number == 0 and 2 in workers:
            self.table.leave(1)


class SilentOnModels(Board):
    def publish(self, row: PublishLoad | PublishModels) -> None:
        if isinstance(row, PublishLoad):
            super().publish(row)


class SilentOnLoads(Board):
    def publish(self, row: PublishLoad | PublishModels) -> None:
        if isinstance(row, PublishModels):
            super().publish(row)


class SaysAllOnce(Board):
    """What it has said once it does not say again."""

    def publish(self, row: PublishLoad | PublishModels) -> None:
        if (self._load if isinstance(row, PublishLoad) else self._models) is None:
            super().publish(row)


class FirstOfAPeriod(Board):
    """Of several loads in one period it pushes the first."""

    def publish(self, row: PublishLoad | PublishModels) -> None:
        if not isinstance(row, PublishLoad) or self._load is self._pushed[0]:
            super().publish(row)


class Spreading(Board):
    """Takes the load of one worker for that of another one, too."""

    to = 0

    def received(self, content: Sequence[Any]) -> PeerLoad | PeerModels | None:
        event = super().received(content)
        if isinstance(event, PeerLoad):
            self.table.receive_load(self.to, event.sequence, 3.0, event.busy_until)
        return event


class SpreadingToTheLast(Spreading):
    to = 2


class Unanswering(Board):
    """Gives nobody the row of before."""

    def received(self, content: Sequence[Any]) -> PeerLoad | PeerModels | None:
        if content[0] == "wanted":
            self._readers[content[1]] = None
            return None
        return super().received(content)


class UnansweringThePlanner(Board):
    def received(self, content: Sequence[Any]) -> PeerLoad | PeerModels | None:
        return None if content == ("wanted", PLANNER) else super().received(content)


class AnsweringWithLoads(Board):
    """Gives of the row of before the load alone."""

    def received(self, content: Sequence[Any]) -> PeerLoad | PeerModels | None:
        if content[0] == "wanted":
            self._readers[content[1]] = None
            self._send([content[1]], self._load_message())
            return None
        return super().received(content)


class Table(RowTable):
    """A table that can be wrong."""


class NeverLeaving(Table):
    """Once seen, a worker stays."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.left = 0

    def leave(self, worker: int) -> None:
        self.left += 1
        if self.left <= PLANNER:  # at first nobody is there
            super().leave(worker)


class LeavingToo(Table):
    """With one worker, another one leaves."""

    other = 0

    def leave(self, worker: int) -> None:
        super().leave(worker)
        super().leave(self.other)


class LeavingTooTheSecond(LeavingToo):
    other = 1


class Remembering(Table):
    """A worker that is back has the load and the models of before."""

    def leave(self, worker: int) -> None:
        row = float(self._queued[worker]), self._cached[:, worker].copy()
        super().leave(worker)
        self.before: dict[int, Any] = {**getattr(self, "before", {}), worker: row}

    def join(self, worker: int) -> None:
        super().join(worker)
        load, models = self.before[worker]
        if models.any():
            self._queued[worker], self._cached[:, worker] = load, models


class Boundless(Table):
    """Its memory is free, whatever is in it."""

    def view(self, me: int, now: float) -> View:
        seen = super().view(me, now)
        return seen._replace(free=self.fleet.memory, own_free=float(self.fleet.memory[0]))


class CallsUpTheDead(Table):
    """One that is called busy counts as present."""

    def call_busy(self, worker: int, until: float) -> None:
        if not self.is_seen(worker):
            self.join(worker)
        super().call_busy(worker, until)


class Obstinate(Table):
    """One that was called busy stays busy, whatever it says."""

    called: float | None = None

    def call_busy(self, worker: int, until: float) -> None:
        super().call_busy(worker, until)
        self.called = until

    def receive_load(self, worker: int, sequence: int, queued: float, busy_until: float) -> None:
        super().receive_load(worker, sequence, queued, max(busy_until, self.called or busy_until))


class Unconcerned(MessageMarks):
    def call_busy(self, worker: int, until: float) -> None: ...


class Exaggerating(MessageMarks):
    """Says that a worker is busy for longer than it was told."""

    def call_busy(self, worker: int, until: float) -> None:
        super().call_busy(worker, until + 2.0)


def with_table(tables: type[RowTable]) -> type[Board]:
    """A board with a table that is wrong."""
    return type(f"With{tables.__name__}", (Board,), {"tables": tables})


@pytest.mark.parametrize(
    ("check", "wrong", "found"),
    [
        ("workers_are_seen_once_they_are_there", Crowded, r"worker 0 sees: \[0, 1, 2\], expected \[\]"),
        ("workers_are_seen_once_they_are_there", CrowdedLater, r"worker 0 sees: .*expected \[0, 1\]"),
        ("workers_are_seen_once_they_are_there", BlindPlanner, r"process 3 sees: \[\], expected \[0, 1, 2\]"),
        ("workers_are_seen_once_they_are_there", Forgetful, r"process 0 sees: \[0, 2\]"),
        ("all_see_what_a_worker_writes", SilentOnModels, r"worker 1: .*False.* expected .*True"),
        ("all_see_what_a_worker_writes", SilentOnLoads, "a load of 0.0 s, expected 101.5 s"),
        ("all_see_what_a_worker_writes", SaysAllOnce, "expected 0.5 s"),
        ("all_see_what_a_worker_writes", Spreading, "worker 0 a load of .* expected 0.0 s"),
        ("all_see_what_a_worker_writes", SpreadingToTheLast, "worker 2 a load of .* expected 0.0 s"),
        ("all_see_what_a_worker_writes", with_table(Boundless), "worker 1: .*10.0.*expected.*7.0"),
        ("a_worker_that_comes_later_sees_the_rows", Unanswering, "process 1 sees"),
        ("a_worker_that_comes_later_sees_the_rows", UnansweringThePlanner, "process 3 sees"),
        ("a_worker_that_comes_later_sees_the_rows", AnsweringWithLoads, r"process 1 sees: \(2.0, False\)"),
        ("a_dead_worker_is_absent_at_once", with_table(NeverLeaving), "process 0 sees worker 2"),
        ("a_dead_worker_is_absent_at_once", with_table(LeavingToo), "another worker is absent"),
        ("a_dead_worker_is_absent_at_once", with_table(LeavingTooTheSecond), "another worker is absent"),
        ("a_dead_worker_is_absent_at_once", with_table(Remembering), "expected"),
        ("a_silent_worker_counts_as_busy", Unconcerned, "worker 1 sees a load of 0.0 s"),
        ("a_silent_worker_counts_as_busy", Exaggerating, "worker 1 sees a load of"),
        ("a_silent_worker_counts_as_busy", with_table(CallsUpTheDead), "a worker that is absent is seen"),
        ("a_silent_worker_counts_as_busy", with_table(Obstinate), "after its own word"),
        ("the_last_word_counts", FirstOfAPeriod, "expected 199.0 s"),
    ],
)  # fmt: skip
def test_a_check_finds_the_board_that_it_is_there_for(check: str, wrong: type[Any], found: str) -> None:
    seams = Seams(marks=wrong) if issubclass(wrong, MessageMarks) else Seams(wrong)
    run: Callable[[Trial], None] = getattr(check_state_board, check)
    with pytest.raises(SeamError, match=f"(?s){check}.*{found}"):
        run(Trial(seams))
    with pytest.raises(SeamError):
        check_state_board.check_state_board(
            lambda: Seams(marks=wrong) if issubclass(wrong, MessageMarks) else Seams(wrong)
        )
    run(Trial(Seams()))


def test_what_a_board_raises_is_said_with_the_check() -> None:
    class Broken(Board):
        def push(self, now: float) -> None:  # noqa: ARG002
            raise RuntimeError("cannot push")

    with pytest.raises(SeamError, match=r"all_see_what_a_worker_writes.*RuntimeError: cannot push"):
        check_state_board.check_state_board(lambda: Seams(Broken))


def test_the_kit_does_with_a_board_what_a_worker_program_does() -> None:
    """It tells every board who is there and who is gone, pushes what is due, and ends all that it has opened."""
    told: list[tuple[int, str, Any]] = []

    class Listening(Board):
        def join(self) -> None:
            told.append((self._number, "joins", None))
            super().join()

        def peers_present(self, workers: Sequence[int]) -> None:
            told.append((self._number, "present", list(workers)))
            super().peers_present(workers)

        def peer_lost(self, worker: int) -> None:
            told.append((self._number, "lost", worker))
            super().peer_lost(worker)

        def push(self, now: float) -> None:
            assert now >= self.due
            super().push(now)

    class Leaving(MessageMarks):
        def leave(self, worker: int) -> None:
            told.append((-1, "leaves", worker))

    seams = Seams(Listening, Leaving)
    trial = Trial(seams)
    for number in (0, 1, PLANNER):
        trial.joins(number)
    assert [each for each in told if each[0] == 0] == [(0, "joins", None), (0, "present", []), (0, "present", [1])]
    assert [each for each in told if each[0] == PLANNER][-1] == (PLANNER, "present", [0, 1])
    told.clear()
    trial.dies(0)
    assert told == [(-1, "leaves", 0), (1, "lost", 0), (PLANNER, "lost", 0)]
    trial.joins(0)
    assert (0, "present", [1]) in told
    trial.close()
    assert all(line.closed for line in seams.lines)
    assert not seams._machine.network.listening


def test_a_lost_connection_is_an_error() -> None:
    trial = Trial(Seams())
    trial._lines[1].close()
    with pytest.raises(SeamError, match="process 1 has lost a connection"):
        trial.settle()
