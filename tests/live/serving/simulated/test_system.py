"""Whole applications in virtual time: the worker program, the monitor and the client over simulated seams."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairway.configure.slices.parts import Slice
from fairway.engine.serving.messages import StageDone
from fairway.live.serving.clients.client_protocol import RequestFailedError
from fairway.live.serving.runtime import worker
from fairway.live.serving.runtime.message_codec import Coder
from fairway.live.serving.seams.run_record import NO_MARK
from fairway.live.serving.seams.transport import Arrival
from fairway.live.serving.simulated.network import SimulatedTransport
from fairway.live.serving.simulated.system import SimulatedSystem
from fairway.live.serving.supervise.settings import ServingSettings

BOTH = pytest.mark.parametrize("rows_as_messages", [False, True])


def _system(name: str, *, rows_as_messages: bool = False, **options: Any) -> SimulatedSystem:
    nowhere = Path("/nonexistent")
    settings = ServingSettings(f"tests.live.serving.served:{name}", nowhere, nowhere, has_planner=False, **options)
    system = SimulatedSystem(settings, rows_as_messages=rows_as_messages)
    system.start()
    return system


def _answers(system: SimulatedSystem, numbers: range) -> list[Any]:
    with system.client() as client:
        return [client.ask(x=number) for number in numbers]


@BOTH
@pytest.mark.parametrize("scheduler", ["compass", "jit", "hash", "fairway"])
def test_requests_are_answered(rows_as_messages: bool, scheduler: str) -> None:
    system = _system("fork", workers=3, memory_bytes=10e6, scheduler=scheduler, rows_as_messages=rows_as_messages)
    assert _answers(system, range(12)) == [3 * x + x * x for x in range(12)]
    assert sum(each.tally.replied for each in system.workers.values()) == 12
    assert sum(each.tally.hits + each.tally.misses for each in system.workers.values()) == 24
    assert system.time.now() < 5.0


@BOTH
def test_killed_workers_lose_no_request(rows_as_messages: bool) -> None:
    system = _system("fork", workers=3, memory_bytes=20e6, scheduler="hash", rows_as_messages=rows_as_messages)
    with system.client() as client:
        for number in range(60):
            system.time.after(0.013, lambda number=number: system.pool.kill(number % 3))
            assert client.ask(x=number) == 3 * number + number * number
            system.time.advance(0.7)
    assert system.monitor.restarts > 40
    system.time.advance(60.0)
    assert all(each.is_there for each in system.monitor.workers)
    assert all(len(each._values) == 0 for each in system.workers.values())
    assert system.machine.kept == {}


def test_the_same_run_is_the_same_to_the_last_message(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    arrived = SimulatedTransport.arrived

    def note(transport: SimulatedTransport, arrival: Arrival) -> None:
        word = None if arrival.message is None else (arrival.message[0], len(repr(arrival.message)))
        seen.append((transport._network.time.now(), transport._number, word))
        arrived(transport, arrival)

    monkeypatch.setattr(SimulatedTransport, "arrived", note)
    runs = []
    for _ in range(2):
        seen.clear()
        system = _system("fork", workers=3, memory_bytes=10e6, scheduler="hash", rows_as_messages=True)
        with system.client() as client:
            for number in range(10):
                if number == 5:
                    system.time.after(0.01, partial(system.pool.kill, 1))
                client.ask(x=number)
        system.time.advance(10.0)
        runs.append(list(seen))
    assert len(runs[0]) > 100
    assert runs[0] == runs[1]


@BOTH
def test_a_worker_that_hangs_counts_as_busy_until_it_goes_on(rows_as_messages: bool) -> None:
    system = _system("chain", workers=2, rows_as_messages=rows_as_messages)
    table = system.workers[1].engine._table
    system.pool.halt(0)
    system.time.advance(5.0)
    now = system.time.now()
    assert table.view(1, now).load(0, now) > 1.0
    system.pool.go_on(0)
    system.time.advance(20.0)
    now = system.time.now()
    assert table.view(1, now).load(0, now) == 0.0
    assert system.monitor.restarts == 0


def test_a_worker_is_replaced_when_all_others_know_or_have_been_silent_for_long() -> None:
    system = _system("chain", workers=3)
    system.pool.kill(0)
    system.time.advance(2.0)
    assert system.monitor.restarts == 1
    system.time.advance(20.0)
    system.pool.halt(2)
    system.pool.kill(0)
    system.time.advance(1.5)
    assert system.monitor.restarts == 1  # worker 2 may not know that the old one is gone
    system.time.advance(2.0)
    assert system.monitor.restarts == 2
    assert system.workers[0].number == 0


def test_one_that_dies_again_and_again_is_started_less_and_less_often() -> None:
    system = _system("chain", workers=2)
    started: list[float] = []
    begin = system.pool.start

    def start(number: int, epoch: int) -> None:
        started.append(system.time.now())
        begin(number, epoch)
        system.time.after(0.6, lambda: system.pool.kill(0))

    system.pool.start = start  # type: ignore[method-assign]
    system.pool.kill(0)
    system.time.advance(60.0)
    gaps = np.diff(started)
    assert (np.diff(gaps[:6]) > 0).all()
    assert gaps.max() < 6.5


def test_pieces_large_values_and_refusals() -> None:
    system = _system("TOGETHER", workers=2, scheduler="hash")
    with system.client() as client:
        assert "".join(client.stream("spelling", word="fairway")) == "fairway"
        total, backwards = client.ask("arrays", size=100_000)
        assert total == np.sum(backwards)
        outcomes = set()
        for number in range(10):
            try:
                outcomes.add(client.ask("unsendable", x=number) == number)
            except RequestFailedError as error:
                outcomes.add(error.code)
        assert outcomes == {True, "failed"}
        with pytest.raises(RequestFailedError, match="it would take"):
            client.ask("arrays", size=10, deadline_seconds=1e-3)
    system.time.advance(1.0)
    assert system.machine.kept == {}


def test_what_a_program_dies_of_is_known() -> None:
    nowhere = Path("/nonexistent")
    system = SimulatedSystem(ServingSettings("tests.live.serving.served:chain", nowhere, nowhere, workers=1))
    object.__setattr__(system.settings, "scheduler", "best")
    with pytest.raises(AssertionError, match=r"worker-0 did not start: InputError: scheduler 'best'"):
        system.start()


@BOTH
def test_nonsense_costs_its_sender_alone(rows_as_messages: bool) -> None:
    system = _system("chain", workers=2, rows_as_messages=rows_as_messages)
    before = [system.pool.pid(number) for number in range(2)]
    nonsense: list[Any] = [
        7, ("no", "such", "thing"), ({}, 1), ("ask", 1), ("ask", 1, 99, (b"", ()), None, None),
        ("ask", 1, 0, "parcel", None, None), ("lost", {}), ("joined", 2), ("event", (99,), {}, None, None, b""),
        ("event", "word", {}, None, None, b""), ("notice", 7),
        ("notice", (1, 2, 3)), ("row", ("load", 0, 1, 0.0, 0.0)), ("row", 7),
        ("row", ("models", 1, 1, (9,))),
    ]  # fmt: skip
    for said in nonsense:
        line = system.seams.connect(0)
        line.send(said)
        assert line.receive(1.0) is None, said
    with system.client() as client:
        assert [client.ask(x=number) for number in range(4)] == [3, 4, 5, 6]
    assert [system.pool.pid(number) for number in range(2)] == before


def test_an_engine_is_asked_in_one_place() -> None:
    """What a command leads to is an event of its own, so no other module of a worker calls `handle`."""
    runtime = Path(worker.__file__).parent
    own_engine = {"dispatcher.py"}
    calls = {
        path.name: path.read_text().count("engine.handle(")
        for path in runtime.glob("*.py")
        if path.name not in own_engine and "engine.handle(" in path.read_text()
    }
    assert calls == {"worker.py": 1}


def _late(system: SimulatedSystem, receiver: str, word: str, seconds: float) -> None:
    """Let what the supervisor says to a worker come late."""
    system.machine.network.on_send = lambda sender, to, message: (
        seconds if sender == "supervisor" and to == receiver and message is not None and message[0] == word else 0.0
    )


@BOTH
def test_what_a_worker_sends_before_the_others_know_that_it_is_back_is_not_lost(rows_as_messages: bool) -> None:
    system = _system("fork", workers=2, memory_bytes=10e6, scheduler="hash", rows_as_messages=rows_as_messages)
    _late(system, "worker-1", "joined", 3.0)
    system.pool.kill(0)
    system.time.advance(0.8)
    assert system.monitor.restarts == 1
    with system.client() as client:
        for number in range(4):
            assert client.ask(x=number, deadline_seconds=10.0) == 3 * number + number * number
    assert sum(each.tally.replied for each in system.workers.values()) == 4
    assert system.workers[0].tally.replied > 0


def test_a_worker_that_learns_late_of_a_death_does_not_take_the_successor_for_dead() -> None:
    system = _system("chain", workers=3)
    system.pool.halt(0)
    system.pool.kill(1)
    system.time.advance(3.0)
    assert system.monitor.restarts == 1
    system.pool.go_on(0)
    system.time.advance(5.0)
    assert all(each.engine.is_present(1) for each in system.workers.values())


def test_a_silent_worker_does_not_keep_the_others_busy_with_talk_about_it() -> None:
    system = _system("chain", workers=3, rows_as_messages=True)
    sent: list[Any] = []
    system.machine.network.on_send = lambda *message: sent.append(message) or 0.0  # type: ignore[func-returns-value]
    system.pool.halt(0)
    system.time.advance(4.5)
    assert len(sent) < 100


def test_a_planner_keeps_nothing_of_the_batches_of_a_lost_worker() -> None:
    nowhere = Path("/nonexistent")
    settings = ServingSettings(
        "tests.live.serving.served:fork", nowhere, nowhere, workers=2, scheduler="esg", slo_seconds=1.0
    )
    system = SimulatedSystem(settings)
    system.start()
    with system.client() as client:
        for number in range(6):
            system.time.after(0.005, partial(system.pool.kill, number % 2))
            assert client.ask(x=number) == 3 * number + number * number
            system.time.advance(1.0)
    system.time.advance(20.0)
    assert system.monitor.restarts > 3
    assert system.workers[2]._batch_messages._sent == {}


def test_a_worker_keeps_no_output_of_a_request_that_its_predecessor_had_received() -> None:
    system = _system("fork", workers=2)
    system.pool.kill(0)
    system.time.advance(3.0)
    values = system.seams.values("w1-0-test-")
    coded = Coder(list(system.workers[0]._stages._by_graph)).encode(StageDone(1, 2, 1, 0, 0.0))
    line = system.seams.connect(0)
    line.send(("event", coded, {2: tuple(values.pack(7))}, None, None, NO_MARK))
    system.time.advance(1.0)
    assert len(system.workers[0]._values) == 0


@BOTH
def test_a_planner_that_is_back_refuses_nothing_before_it_knows_the_workers(rows_as_messages: bool) -> None:
    nowhere = Path("/nonexistent")
    target = "tests.live.serving.served:fork"
    settings = ServingSettings(target, nowhere, nowhere, workers=2, scheduler="compass:centralised")
    system = SimulatedSystem(settings, rows_as_messages=rows_as_messages)
    system.start()
    _late(system, "worker-2", "row", 0.5)
    for number in range(3):
        system.pool.kill(2)
        with system.client() as client:
            assert client.ask(x=number) == 3 * number + number * number
        system.time.advance(6.0)


def test_models_with_slices_run_at_once_where_nothing_holds_them_to_those() -> None:
    """Copies share the worker's process then, and the worker says so."""
    slices = (("Double", Slice(250)), ("Square", Slice(750)))
    system = _system("fork", workers=1, slices=slices)
    with system.client() as client:
        for number in range(6):
            before = system.time.now()
            assert client.ask(x=number) == 3 * number + number * number
            if number > 1:  # 10 ms on a quarter, and beside that 10 ms on three quarters
                assert system.time.now() - before == pytest.approx(0.04, abs=0.005)
    (worker_here,) = system.workers.values()
    assert worker_here._slices.not_enforced[0].startswith("slices are counted, but not enforced")
    assert worker_here.tally.misses == 2, "each model was loaded once"


def test_copies_of_models_with_slices_are_let_go_for_others() -> None:
    slices = (("Double", Slice(500)), ("Square", Slice(500)))
    system = _system("fork", workers=1, memory_bytes=10e6, slices=slices)
    assert _answers(system, range(5)) == [3 * x + x * x for x in range(5)]
    (worker_here,) = system.workers.values()
    assert worker_here.tally.evictions >= 5, "there is room for one of the two"
    system.time.advance(5.0)
    assert len(worker_here._models.there) == 1


@pytest.mark.parametrize("scheduler", ["front", "esg", "fairway"])
def test_batches_of_a_configurator_have_the_slices_of_their_models(scheduler: str) -> None:
    nowhere = Path("/nonexistent")
    slices = (("small", Slice(250)), ("large", Slice(750)))
    settings = ServingSettings(
        "tests.live.serving.sliced:both", nowhere, nowhere, workers=1, scheduler=scheduler, slices=slices
    )
    system = SimulatedSystem(settings)
    system.start()
    with system.client() as client:
        for _ in range(4):
            answer = client.ask(seconds=0.0)
            assert (answer[0], answer[2]) == ("small", "large")
        before = system.time.now()
        client.ask(seconds=0.0)
    assert system.time.now() - before == pytest.approx(0.08, rel=0.2), "20 ms on a quarter, beside 20 ms on the rest"
