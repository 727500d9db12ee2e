"""Every check of the kit for transports finds the mistake that it is there for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from fairway.live.serving.seams import check_transport
from fairway.live.serving.seams.check_transport import PATIENCE_SECONDS, Trial
from fairway.live.serving.seams.conformance import SeamError
from fairway.live.serving.seams.transport import Address, Arrival, Message
from fairway.live.serving.simulated.machine import SimulatedMachine, SimulatedSeams
from fairway.live.serving.simulated.network import SimulatedTransport


class Seams(SimulatedSeams):
    """A simulated machine with other transports."""

    def __init__(self, transport: type[SimulatedTransport] = SimulatedTransport) -> None:
        super().__init__(SimulatedMachine())
        self._machine.time.advance(1000.0)  # clocks begin anywhere
        self._transports = transport

    def transport(self, number: int) -> SimulatedTransport:
        return self._transports(self._machine.network, number)


class Changed(SimulatedTransport):
    """What has arrived is changed before it is received."""

    def changed(self, arrived: list[Arrival]) -> list[Arrival]:
        return arrived

    def receive(self, seconds: float | None) -> list[Arrival]:
        return self.changed(super().receive(seconds))


class Shortening(Changed):
    def changed(self, arrived: list[Arrival]) -> list[Arrival]:
        return [each._replace(message=each.message and each.message[:-1]) for each in arrived]


class ShorteningAnswers(SimulatedTransport):
    def send(self, to: Address, message: Message) -> bool:
        return super().send(to, message if isinstance(to, int) else message[:-1])


class Corrupting(Changed):
    def changed(self, arrived: list[Arrival]) -> list[Arrival]:
        wrong = [
            each.message and tuple(p[:-1] + b"?" if isinstance(p, bytes) and p else p for p in each.message)
            for each in arrived
        ]
        return [each._replace(message=message) for each, message in zip(arrived, wrong, strict=True)]


class OneSender(Changed):
    """Takes all that arrives for that of whoever came first."""

    first: Address | None = None

    def changed(self, arrived: list[Arrival]) -> list[Arrival]:
        for each in arrived:
            self.first = each.sender if self.first is None else self.first
        return [each._replace(sender=self.first) for each in arrived]


class Overtaking(Changed):
    """Small messages come before large ones."""

    def changed(self, arrived: list[Arrival]) -> list[Arrival]:
        return sorted(arrived, key=lambda each: len(str(each.message)))


class Echoing(Changed):
    """The last message comes once more, later."""

    last: Arrival | None = None
    silent = 0

    def changed(self, arrived: list[Arrival]) -> list[Arrival]:
        if arrived:
            self.last, self.silent = arrived[-1], 0
            return arrived
        self.silent += 1
        return [self.last] if self.last is not None and self.silent == 3 else []


class LateEnds(Changed):
    """Says once more, later, that another end is gone."""

    gone: Arrival | None = None

    def changed(self, arrived: list[Arrival]) -> list[Arrival]:
        if arrived:
            ends = [each for each in arrived if each.message is None]
            self.gone = ends[-1] if ends else self.gone
            return arrived
        gone, self.gone = self.gone, None
        return [gone] if gone is not None else []


class NoEnds(Changed):
    def changed(self, arrived: list[Arrival]) -> list[Arrival]:
        return [each for each in arrived if each.message is not None]


class Doubtful(SimulatedTransport):
    """Sends, and says that it did not."""

    def send(self, to: Address, message: Message) -> bool:
        super().send(to, message)
        return False


class Hopeful(SimulatedTransport):
    """Says that all was sent."""

    def send(self, to: Address, message: Message) -> bool:
        super().send(to, message)
        return True


class Blocking(SimulatedTransport):
    """Waits for the other end while it sends."""

    def send(self, to: Address, message: Message) -> bool:
        self._network.time.advance(PATIENCE_SECONDS * 0.6)
        return super().send(to, message)


class Clinging(SimulatedTransport):
    def hang_up(self, address: Address) -> None: ...


class Reporting(SimulatedTransport):
    """Tells itself that an end is gone that it has let go."""

    def hang_up(self, address: Address) -> None:
        super().hang_up(address)
        self.arrived(Arrival(address, None))


class Hasty(SimulatedTransport):
    def receive(self, seconds: float | None) -> list[Arrival]:  # noqa: ARG002
        return super().receive(0.0)


class Slow(SimulatedTransport):
    """A wait takes as long as it may, whatever comes."""

    def receive(self, seconds: float | None) -> list[Arrival]:
        if seconds:
            self._network.time.advance(seconds)
        self._is_woken = True
        return super().receive(0.0)


class Early(SimulatedTransport):
    """Can be called before it listens."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.listen()


class Inheriting(SimulatedTransport):
    """A worker gets what was sent to the one before it."""

    sent: ClassVar[dict[int, Message]] = {}

    def send(self, to: Address, message: Message) -> bool:
        if isinstance(to, int):
            self.sent[to] = message
        return super().send(to, message)

    def listen(self) -> None:
        super().listen()
        if self._number in self.sent:
            self.arrived(Arrival(0, self.sent.pop(self._number)))


class Undead(SimulatedTransport):
    """Stays where it can be called after its end."""

    def close(self) -> None:
        super().close()
        self.listen()


@pytest.mark.parametrize(
    ("check", "wrong", "found"),
    [
        ("messages_arrive_as_they_were_sent", Shortening, "from a worker came"),
        ("messages_arrive_as_they_were_sent", ShorteningAnswers, "as an answer came"),
        ("messages_arrive_as_they_were_sent", Doubtful, "a worker that listens is taken for gone"),
        ("order_is_kept_and_nothing_is_doubled", Overtaking, "by sender came"),
        ("order_is_kept_and_nothing_is_doubled", Echoing, "more came"),
        ("large_messages_arrive_and_hold_nothing_up", Blocking, "sending waited for the other end"),
        ("large_messages_arrive_and_hold_nothing_up", Corrupting, "bytes have changed"),
        ("large_messages_arrive_and_hold_nothing_up", OneSender, "senders"),
        ("large_messages_arrive_and_hold_nothing_up", Overtaking, "from one sender came"),
        ("large_messages_arrive_and_hold_nothing_up", ShorteningAnswers, "back came"),
        ("an_answer_goes_to_its_caller_alone", OneSender, "caller 0 heard|caller 1 heard"),
        ("a_caller_that_leaves_is_noticed_once", NoEnds, "came"),
        ("a_caller_that_leaves_is_noticed_once", Hopeful, "counts as sent"),
        ("a_caller_that_leaves_is_noticed_once", LateEnds, "more came"),
        ("a_worker_that_dies_is_noticed", NoEnds, "at another worker came"),
        ("a_worker_that_dies_is_noticed", Hopeful, "counts as sent"),
        ("a_worker_that_dies_is_noticed", LateEnds, "at another worker came more"),
        ("a_worker_that_dies_is_noticed", Undead, "counts as sent|a dead worker can be called"),
        ("a_new_worker_takes_its_place", Doubtful, "the new worker is taken for gone"),
        ("a_new_worker_takes_its_place", Shortening, "at the new worker came"),
        ("a_new_worker_takes_its_place", Inheriting, "at the new worker came.*lost"),
        ("nonsense_costs_its_sender_alone", NoEnds, "of 7 came"),
        ("hanging_up_ends_a_connection", Clinging, "counts as sent|over the line came"),
        ("hanging_up_ends_a_connection", Reporting, "at the worker came"),
        ("hanging_up_ends_a_connection", Hopeful, "counts as sent"),
        ("waits_end", Hasty, "0.05 s took"),
        ("waits_end", Slow, "a wait did not end when the worker was woken"),
        ("a_worker_that_is_not_there_cannot_be_reached", Hopeful, "counts as sent"),
        ("a_worker_that_is_not_there_cannot_be_reached", Early, "worker 2 can be called"),
    ],
)
def test_a_check_finds_the_transport_that_it_is_there_for(
    check: str, wrong: type[SimulatedTransport], found: str
) -> None:
    trial = Trial(Seams(wrong))
    run: Callable[[Trial], None] = getattr(check_transport, check)
    with pytest.raises(SeamError, match=f"(?s){check}.*({found})"):
        run(trial)
    good = Trial(Seams())
    run(good)
    good.close()


class LateSeams(Seams):
    """Lines that look at a message only when they are flushed."""

    def connect(self, number: int) -> Any:
        line: Any = super().connect(number)
        waiting: list[Message] = []

        def flush() -> bool:
            while waiting:
                line.transmit(waiting.pop(0))
            return False

        line.send, line.flush = waiting.append, flush
        return line


def test_a_message_that_changes_after_it_was_sent_is_found() -> None:
    with pytest.raises(SeamError, match=r"what_arrives_is_a_copy.*after"):
        check_transport.what_arrives_is_a_copy(Trial(LateSeams()))
    check_transport.messages_arrive_as_they_were_sent(Trial(LateSeams()))


def test_the_kit_of_transports_leaves_nothing_open() -> None:
    made: list[Seams] = []

    def make() -> Seams:
        made.append(Seams())
        return made[-1]

    check_transport.check_transport(make)
    assert len(made) == len(check_transport.CHECKS)
    assert sum(len(each.lines) for each in made) > 10
    assert all(line.closed for each in made for line in each.lines)
    assert not any(each._machine.network.listening for each in made)
