"""The conformance kits of the serving seams, on the local ones, on the simulated ones, and on some that are wrong."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairway import Fleet, Worker
from fairway.engine.serving.messages import PublishLoad
from fairway.live.serving.local.backend import LocalBackend, LocalMessagesBackend
from fairway.live.serving.local.worker_pool import ProcessPool
from fairway.live.serving.seams.check_state_board import check_state_board
from fairway.live.serving.seams.check_transport import check_transport
from fairway.live.serving.seams.check_values import check_values
from fairway.live.serving.seams.check_worker_pool import check_worker_pool
from fairway.live.serving.seams.conformance import SeamError
from fairway.live.serving.seams.message_board import MessageBoard
from fairway.live.serving.seams.transport import Address, Arrival, Message
from fairway.live.serving.seams.values import Opened, Parcel
from fairway.live.serving.simulated.machine import SimulatedMachine, SimulatedSeams
from fairway.live.serving.simulated.memory import SimulatedValues
from fairway.live.serving.simulated.network import SimulatedTransport
from fairway.live.serving.simulated.worker_pool import SimulatedPool
from fairway.live.serving.supervise.settings import ServingSettings

Make = Callable[[], Any]


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Makes backends on this machine, each in a directory of its own."""
    made: list[LocalBackend] = []

    def make(kind: type[LocalBackend] = LocalBackend) -> LocalBackend:
        place = tmp_path / str(len(made))
        settings = ServingSettings("app", place / "served", place / "memory", workers=3, has_planner=False)
        backend = kind(settings)
        backend.take()
        made.append(backend)
        return backend

    yield make
    for backend in made:
        backend.release()


def _simulated(*, rows_as_messages: bool = False) -> SimulatedSeams:
    return SimulatedSeams(SimulatedMachine(rows_as_messages=rows_as_messages))


def test_unix_sockets_are_a_transport(local: Make) -> None:
    check_transport(local)


def test_the_simulated_network_is_a_transport() -> None:
    check_transport(_simulated)


def test_shared_memory_keeps_values(local: Make) -> None:
    check_values(local)


def test_simulated_memory_keeps_values() -> None:
    check_values(_simulated)


@pytest.mark.parametrize("kind", [LocalBackend, LocalMessagesBackend])
def test_local_boards_show_rows(local: Callable[..., Any], kind: type[LocalBackend]) -> None:
    check_state_board(lambda: local(kind))


@pytest.mark.parametrize("rows_as_messages", [False, True])
def test_simulated_boards_show_rows(rows_as_messages: bool) -> None:
    check_state_board(lambda: _simulated(rows_as_messages=rows_as_messages))


def test_processes_are_a_worker_pool(tmp_path: Path) -> None:
    program = "import time; print('it sleeps', flush=True); time.sleep(600)"
    check_worker_pool(
        lambda: ProcessPool(
            lambda number, epoch: [sys.executable, "-c", program, str(number), str(epoch)],
            lambda number: {"NUMBER": str(number)},
            lambda number: tmp_path / f"{number}.log",
        ),
        time.monotonic,
    )


class _Idle:
    due = float("inf")

    def start(self) -> None: ...
    def turn(self, seconds: float | None) -> None: ...


def test_simulated_processes_are_a_worker_pool() -> None:
    machine = SimulatedMachine()
    check_worker_pool(lambda: SimulatedPool(machine, lambda *_: _Idle()), machine.time.now)


# The kits find what is wrong


class _Wrong(SimulatedSeams):
    """A simulated machine, one of whose parts is replaced by a wrong one."""

    def __init__(self, transport: type[SimulatedTransport] | None = None, values: type[SimulatedValues] | None = None):
        super().__init__(SimulatedMachine())
        self._wrong_transport, self._wrong_values = transport, values

    def transport(self, number: int) -> SimulatedTransport:
        kind = self._wrong_transport or SimulatedTransport
        return kind(self._machine.network, number)

    def values(self, owner: str) -> SimulatedValues:
        return (self._wrong_values or SimulatedValues)(self._machine.kept, owner)


class _Doubling(SimulatedTransport):
    def receive(self, seconds: float | None) -> list[Arrival]:
        return [arrival for arrival in super().receive(seconds) for _ in range(2)]


class _Reordering(SimulatedTransport):
    def receive(self, seconds: float | None) -> list[Arrival]:
        return super().receive(seconds)[::-1]


class _Deaf(SimulatedTransport):
    """Never hears that another end is gone."""

    def receive(self, seconds: float | None) -> list[Arrival]:
        return [arrival for arrival in super().receive(seconds) if arrival.message is not None]


class _Talkative(SimulatedTransport):
    """Sends to all of its callers what is for one."""

    def send(self, to: Address, message: Message) -> bool:
        if isinstance(to, int):
            return super().send(to, message)
        return min(super(_Talkative, self).send(end, message) for end in list(self._ends))


class _Sleepy(SimulatedTransport):
    def wake(self) -> None: ...


@pytest.mark.parametrize(
    ("transport", "check"),
    [
        (_Doubling, "messages_arrive_as_they_were_sent|order_is_kept"),
        (_Reordering, "order_is_kept_and_nothing_is_doubled"),
        (_Deaf, "a_caller_that_leaves_is_noticed_once"),
        (_Talkative, "an_answer_goes_to_its_caller_alone"),
        (_Sleepy, "waits_end"),
    ],
)
def test_a_wrong_transport_is_found_out(transport: type[SimulatedTransport], check: str) -> None:
    with pytest.raises(SeamError, match=check):
        check_transport(lambda: _Wrong(transport=transport))


class _Forgetful(SimulatedValues):
    """Lets what is open go with what is kept."""

    def open(self, parcel: Parcel) -> Opened:
        values = self

        class Lazy(Opened):
            def value(self) -> Any:
                return super(_Forgetful, values).open(parcel).value()

        super().open(parcel)
        return Lazy(parcel, [])


class _Keeping(SimulatedValues):
    def discard(self, parcel: Parcel) -> None: ...


class _Copying(SimulatedValues):
    def pack(self, value: object) -> Parcel:
        return Parcel(pickle.dumps(value, protocol=5))


class _Greedy(SimulatedValues):
    def clear(self, owner: str) -> None:
        super().clear(owner.rstrip("-0123456789"))


@pytest.mark.parametrize(
    ("values", "check"),
    [
        (_Forgetful, "what_is_open_stays"),
        (_Keeping, "discarding_lets_go"),
        (_Copying, "large_arrays_are_read_only"),
        (_Greedy, "clearing_up_is_for_one_owner"),
    ],
)
def test_wrong_values_are_found_out(values: type[SimulatedValues], check: str) -> None:
    with pytest.raises(SeamError, match=check):
        check_values(lambda: _Wrong(values=values))


@pytest.mark.parametrize(
    ("method", "wrong", "check"),
    [
        ("publish", lambda *_: None, "all_see_what_a_worker_writes"),
        ("peers_present", lambda *_: None, "workers_are_seen_once_they_are_there"),
        ("_load_message", lambda *_: ("row", ("load", 0, "first", 0.0, 0.0)), "expected a row of another worker"),
    ],
)
def test_a_wrong_board_is_found_out(monkeypatch: pytest.MonkeyPatch, method: str, wrong: Any, check: str) -> None:
    monkeypatch.setattr(MessageBoard, method, wrong)
    with pytest.raises(SeamError, match=check):
        check_state_board(lambda: _simulated(rows_as_messages=True))


def test_a_wrong_pool_is_found_out() -> None:
    machine = SimulatedMachine()

    class Immortal(SimulatedPool):
        def kill(self, number: int) -> None: ...

    with pytest.raises(SeamError, match="a_death_is_noticed_at_once"):
        check_worker_pool(lambda: Immortal(machine, lambda *_: _Idle()), machine.time.now)


def test_the_last_load_before_a_push_is_the_one_that_is_pushed() -> None:
    """Loads are published with every task, and pushed once in a period."""
    machine = SimulatedMachine(rows_as_messages=True)
    reader = machine.network.transport(0)
    reader.listen()
    seams = SimulatedSeams(machine)
    fleet = Fleet.of([Worker(f"w{number}", 10.0) for number in range(2)])
    board = seams.board(1, fleet, None, seams.transport(1))
    board.join()
    board.received(("wanted", 0))
    board.push(machine.time.now())
    for step in range(5):
        board.publish(PublishLoad(step, float(step), 0.0))
        assert board.due == machine.time.now() + 0.01
    machine.time.advance(0.01)
    board.push(machine.time.now())
    assert board.due == float("inf")
    machine.time.advance(0.01)
    (arrival,) = reader.receive(0.0)
    assert arrival.message == ("row", ("load", 1, 4, 4.0, 0.0))


def test_nothing_above_the_seams_knows_what_is_behind_them() -> None:
    """Importing the worker program, the clients and the supervisor brings in nothing local and nothing simulated."""
    program = """
import sys
import fairway.live.serving.clients.async_client, fairway.live.serving.clients.client
import fairway.live.serving.runtime.worker, fairway.live.serving.supervise.supervisor
print([name for name in sys.modules if ".serving.local" in name or ".serving.simulated" in name])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
