"""Rows as messages, where a line ends although both of its workers are there."""

from __future__ import annotations

from fairway.engine.serving.messages import PublishLoad, PublishModels
from fairway.live.serving.seams.message_board import MessageBoard
from fairway.live.serving.seams.state_board import RowTable
from fairway.live.serving.seams.transport import Address, Arrival, Message
from fairway.place.fleet import Fleet, Worker
from fairway.workflows import Model

FLEET = Fleet.of([Worker(f"w{number}", 10.0) for number in range(3)], [Model("a", 4)])


class Wire:
    """A transport that takes down what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Address, Message]] = []

    def send(self, to: Address, message: Message) -> bool:
        self.sent.append((to, message))
        return True

    def receive(self, seconds: float | None) -> list[Arrival]:  # noqa: ARG002 (its protocol)
        raise AssertionError("a board receives nothing by itself")

    def listen(self) -> None: ...

    def stay_reachable(self) -> None: ...

    def wake(self) -> None: ...

    def hang_up(self, address: Address) -> None: ...

    def close(self) -> None: ...


def _board(wire: Wire) -> MessageBoard:
    board = MessageBoard(RowTable(FLEET), 0, wire)
    board.join()
    board.received(("wanted", 1))
    board.publish(PublishLoad(1, 0.5, 2.0))
    board.publish(PublishModels(2, (0,)))
    board.push(1.0)
    return board


def test_the_whole_row_is_pushed_again_when_a_line_has_ended_since_what_was_under_way_may_be_lost() -> None:
    wire = Wire()
    board = _board(wire)
    pushed, wire.sent = wire.sent, []
    board.push(2.0)
    assert wire.sent == [], "nothing has changed"
    board.line_ended(1)
    assert board.due < float("inf")
    board.push(board.due)
    assert wire.sent == pushed
    assert pushed == [(1, ("row", ("load", 0, 1, 0.5, 2.0))), (1, ("row", ("models", 0, 2, (0,))))]


def test_a_reader_whose_line_could_not_be_used_is_a_reader_again() -> None:
    wire = Wire()
    board = _board(wire)
    board.peer_lost(1)
    wire.sent.clear()
    board.line_ended(1)
    board.push(3.0)
    assert [to for to, _ in wire.sent] == [1, 1]
