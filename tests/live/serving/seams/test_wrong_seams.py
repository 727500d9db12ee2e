"""Every check of the kits for transports and values finds the mistake that it is there for."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from fairway.live.serving.seams import check_transport, check_values
from fairway.live.serving.seams.check_transport import PATIENCE_SECONDS, Trial
from fairway.live.serving.seams.conformance import SeamError
from fairway.live.serving.seams.transport import Address, Arrival, Message
from fairway.live.serving.seams.values import Opened, Parcel
from fairway.live.serving.simulated.machine import SimulatedMachine, SimulatedSeams
from fairway.live.serving.simulated.memory import SimulatedValues
from fairway.live.serving.simulated.network import SimulatedTransport


class Seams(SimulatedSeams):
    """A simulated machine with other transports or values."""

    def __init__(
        self, transport: type[SimulatedTransport] = SimulatedTransport, values: type[SimulatedValues] = SimulatedValues
    ):
        super().__init__(SimulatedMachine())
        self._transports, self._stores = transport, values

    def transport(self, number: int) -> SimulatedTransport:
        return self._transports(self._machine.network, number)

    def values(self, owner: str) -> SimulatedValues:
        return self._stores(self._machine.kept, owner)


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


class Present(SimulatedValues):
    def is_there(self, parcel: Parcel) -> bool:  # noqa: ARG002
        return True


class Absent(SimulatedValues):
    def is_there(self, parcel: Parcel) -> bool:  # noqa: ARG002
        return False


class Careless(SimulatedValues):
    """Lets all go with one."""

    def discard(self, parcel: Parcel) -> None:  # noqa: ARG002
        self._kept.clear()


class Lasting(SimulatedValues):
    """What is let go can still be opened."""

    lost: ClassVar[dict[str, bytes]] = {}

    def _let_go(self, name: str) -> None:
        self.lost[name] = self._kept.pop(name, b"")

    def _found(self, buffer: bytes | str) -> bytes:
        return self.lost[str(buffer)] if buffer in self.lost else super()._found(buffer)


class Nameless(SimulatedValues):
    """Names that two owners give alike."""

    def _keep(self, raw: memoryview) -> str:
        name = f"worker-{next(self._numbers)}"
        self._kept[name] = bytes(raw)
        return name


class InMessages(SimulatedValues):
    def pack(self, value: object) -> Parcel:
        return Parcel(pickle.dumps(value, protocol=5))


class Lenient(SimulatedValues):
    def pack(self, value: object) -> Parcel:
        try:
            return super().pack(value)
        except (pickle.PicklingError, TypeError, AttributeError):
            return super().pack(None)


class Offended(SimulatedValues):
    """After two values that it could not pack, another comes out for every one."""

    offended = 0

    def pack(self, value: object) -> Parcel:
        try:
            return super().pack(2 if self.offended > 1 else value)
        except (pickle.PicklingError, TypeError, AttributeError):
            self.offended += 1
            raise


class Rounding(SimulatedValues):
    """Floats come out as whole numbers, and nothing else changes."""

    def pack(self, value: object) -> Parcel:
        return super().pack(2 if value == 2.5 else value) if isinstance(value, float) else super().pack(value)


class Dropping(SimulatedValues):
    """Of a dictionary, one entry is lost."""

    def pack(self, value: object) -> Parcel:
        return super().pack(dict(itertools.islice(value.items(), 2)) if isinstance(value, dict) else value)


class ClearsNothing(SimulatedValues):
    def clear(self, owner: str) -> None: ...


class ClearsAll(SimulatedValues):
    def clear(self, owner: str) -> None:  # noqa: ARG002
        self._kept.clear()


class Shared(SimulatedValues):
    """What is open changes with what is kept."""

    def open(self, parcel: Parcel) -> Opened:
        super().open(parcel)
        store = self

        class Late(Opened):
            def value(self) -> Any:
                found = [
                    store._kept.get(str(each), bytes(8)) if isinstance(each, str) else each for each in parcel.buffers
                ]
                return np.full(1, -1.0) if any(len(each) == 8 for each in found) else Opened(parcel, found).value()

        return Late(parcel, [])


@pytest.mark.parametrize(
    ("check", "wrong", "found"),
    [
        ("values_come_out_as_they_were", Rounding, "2.5 became 2"),
        ("values_come_out_as_they_were", Dropping, "became"),
        ("large_arrays_are_read_only", InMessages, "can be written to"),
        ("large_buffers_are_not_in_the_message", InMessages, "a parcel has"),
        ("discarding_lets_go", Absent, "is not there at first"),
        ("discarding_lets_go", Present, "is still there"),
        ("discarding_lets_go", Lasting, "can still be opened"),
        ("discarding_lets_go", Careless, "raises|gone|not kept"),
        ("what_is_open_stays", Shared, "parcel 0 has changed"),
        ("clearing_up_is_for_one_owner", ClearsNothing, "can still be opened"),
        ("clearing_up_is_for_one_owner", ClearsAll, "is gone"),
        ("owners_do_not_get_in_each_others_way", Nameless, "another value came out|is not kept"),
        ("what_cannot_be_packed_raises", Lenient, "was packed"),
        ("what_cannot_be_packed_raises", Offended, "it cannot pack any more"),
    ],
)
def test_a_check_finds_the_values_that_it_is_there_for(check: str, wrong: type[SimulatedValues], found: str) -> None:
    run = getattr(check_values, check)
    with pytest.raises((SeamError, OSError), match=found):
        run(Seams(values=wrong))
    run(Seams())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2), (1, 1.0), (1, True), ("a", "b"), ([1], [1, 2]), ([1, 2], [1]), ([1, 3], [1, 2]), ((1,), [1]),
        ({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": 1, "b": 2}), ({"a": 1, "b": 2}, {"a": 1}),
        (np.zeros(2), np.ones(2)), (np.zeros(2), np.zeros(3)), (np.zeros(2), np.zeros(2, np.float32)),
        ([np.zeros(2)], [np.ones(2)]), (b"x", bytearray(b"x")), (None, 0),
    ],
)  # fmt: skip
def test_what_differs_is_not_equal_to_the_kit(one: object, other: object) -> None:
    assert not check_values._equal(one, other)
    assert not check_values._equal(other, one)
    assert check_values._equal(one, one)
    assert check_values._equal(other, other)
