"""Schedulers that choose configurations, live: a planner and workers as real processes."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairway.back_off import BackOff
from fairway.errors import InputError
from fairway.live.serving.clients.async_client import AsyncServingClient
from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.clients.client_protocol import RequestFailedError
from fairway.live.serving.local.unix_socket import connect
from fairway.live.serving.sockets.channel import encoded
from fairway.live.serving.supervise.supervisor import Supervisor, tallies

_ROOT = Path(__file__).parents[4]
_APP = "tests.live.serving.configured"
_WORKERS = 2

Serving = tuple[Supervisor, ServingClient]


@contextmanager
def _serve(directory: Path, name: str, **options: Any) -> Iterator[Serving]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_ROOT), prepend=os.pathsep)
        supervisor = Supervisor.of(f"{_APP}:{name}", directory=directory, **options)
        with supervisor, ServingClient(directory) as client:
            yield supervisor, client


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """All workflows under ESG, which most tests share."""
    directory = tmp_path_factory.mktemp("esg") / "served"
    with _serve(directory, "ALL", workers=_WORKERS, scheduler="esg", most_open=20) as served:
        memory = served[0].settings.memory_directory
        yield served
    assert not memory.exists()
    assert sorted(path.name for path in directory.iterdir()) == ["planner.log", "worker-0.log", "worker-1.log"]


def _until(condition: Callable[[], Any], patience: float = 60.0) -> Any:
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return value


def _at_once(ask: Callable[[int], Any], numbers: range) -> dict[int, Any]:
    """The answers, or errors, of many threads that ask at the same time."""
    answers: dict[int, Any] = {}
    begin = threading.Barrier(len(numbers))

    def one(number: int) -> None:
        begin.wait()
        try:
            answers[number] = ask(number)
        except RequestFailedError as error:
            answers[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _nothing_is_left(supervisor: Supervisor) -> None:
    """Nobody holds anything of a request, and there are no files but those that all share."""
    settings = supervisor.settings
    _until(lambda: len(tallies(settings)) == settings.workers + 1)
    _until(lambda: tallies(settings)[settings.workers]["held"] == 0)
    _until(lambda: {path.name for path in settings.memory_directory.iterdir()} == {"table", "running"})


def test_requests_that_come_together_run_in_batches(serving: Serving) -> None:
    supervisor, client = serving
    assert client.ask("fork", x=3)["sum"] == 18
    answers = _at_once(lambda number: client.ask("fork", x=number), range(20, 52))
    assert {number: answer["sum"] for number, answer in answers.items()} == {x: 3 * x + x * x for x in range(20, 52)}
    assert max(answer["batch"] for answer in answers.values()) > 1
    counted = tallies(supervisor.settings)
    planner = counted.pop(_WORKERS)
    assert planner["replied"] >= 33
    assert sum(planner["planning"]["counts"]) >= 33
    sizes = [size for tally in counted.values() for size in tally["batch"]]
    assert max(sizes) == max(answer["batch"] for answer in answers.values())
    ran = sum(count for tally in counted.values() for count in tally["batch"].values())
    waits = sum(sum(each["counts"]) for tally in counted.values() for each in tally["wait"].values())
    assert ran < waits == 3 * 33
    assert sum(tally["hits"] + tally["misses"] for tally in counted.values()) < ran
    assert {name for tally in counted.values() for name in tally["resident"]} >= {"Double", "Square"}


def test_a_request_that_raises_in_a_batch_fails_alone(serving: Serving) -> None:
    supervisor, client = serving
    before = supervisor.pids()
    answers = _at_once(lambda number: client.ask("fork", x=number), range(5, 25))
    guilty = answers.pop(13)
    assert isinstance(guilty, RequestFailedError)
    assert guilty.code == "failed"
    assert "stage 'Double' raised ValueError: thirteen (trace " in str(guilty)
    assert {number: answer["sum"] for number, answer in answers.items()} == {x: 3 * x + x * x for x in answers}
    assert supervisor.pids() == before


def test_large_arrays_travel_through_shared_memory_and_leave_nothing_behind(serving: Serving) -> None:
    supervisor, client = serving
    for size in (10, 100_000, 1_000_000):
        total, backwards = client.ask("arrays", size=size)
        assert total == size * (size - 1) / 2
        np.testing.assert_array_equal(backwards, np.arange(size)[::-1])
    del backwards
    _nothing_is_left(supervisor)


def test_pieces_come_one_by_one_and_stop_when_nobody_listens(serving: Serving) -> None:
    supervisor, client = serving
    word = 4 * "fairway"  # so long that a busy machine, on which the first letter takes its time, makes no difference
    began = time.monotonic()
    pieces = client.stream("spelling", word=word)
    assert next(pieces) == "f"
    first = time.monotonic() - began
    assert "".join(pieces) == word[1:]
    assert first < (time.monotonic() - began) / 2
    endless = client.stream("spelling", word="a" * 10_000)
    assert next(endless) == "a"
    endless.close()  # type: ignore[attr-defined]
    assert client.ask("fork", x=1)["sum"] == 4  # both workers are needed, unless the one that spells is free again
    _nothing_is_left(supervisor)


def test_a_model_that_cannot_be_loaded_fails_its_requests_alone(serving: Serving) -> None:
    _, client = serving
    answers = _at_once(lambda number: client.ask("unloadable", text=str(number)), range(3))
    assert {str(answer) for answer in answers.values()} == {"model 'Stubborn' cannot be loaded: OSError: no such file"}
    assert client.ask("fork", x=2)["sum"] == 10


def test_what_cannot_be_sent_is_said_in_one_line(serving: Serving) -> None:
    _, client = serving
    with pytest.raises(RequestFailedError, match="cannot be sent: pickling raised AttributeError") as failed:
        client.ask("unsendable", x=1)
    assert failed.value.code == "failed"


def test_deadlines_and_back_pressure(serving: Serving) -> None:
    _, client = serving
    with pytest.raises(RequestFailedError, match="it would take 100 s at least, but has") as impossible:
        client.ask("endless", text="", deadline_seconds=30)
    assert impossible.value.code == "impossible"
    assert client.ask("endless", text="no matter") == "no matter"
    answers = _at_once(lambda _: client.ask("sleeping", seconds=1.5, deadline_seconds=1.0), range(50))
    codes = sorted(answer.code for answer in answers.values())
    assert codes == ["busy"] * 10 + ["late"] * 40
    assert client.ask("sleeping", seconds=0.0) > 0


def test_requests_that_are_cancelled_run_no_further(serving: Serving) -> None:
    supervisor, _ = serving

    async def ask(directory: Path) -> None:
        client = AsyncServingClient(directory)
        first = [asyncio.ensure_future(client.ask("sleeping", seconds=0.6)) for _ in range(_WORKERS)]
        others = [asyncio.ensure_future(client.ask("sleeping", seconds=60.0)) for _ in range(5)]
        await asyncio.sleep(0.2)
        for other in others:
            other.cancel()
        assert all([await each > 0 for each in first])
        assert await asyncio.wait_for(client.ask("sleeping", seconds=0.0), 30) > 0
        await client.close()

    asyncio.run(ask(supervisor.settings.directory))
    _until(lambda: tallies(supervisor.settings)[_WORKERS]["open"] == 0)


def test_nonsense_hurts_nobody(serving: Serving) -> None:
    supervisor, client = serving
    before = supervisor.pids()
    for number in range(_WORKERS + 1):
        for said in (b"GET / HTTP/1.1\r\n\r\n", encoded(("no", 1)), encoded(("ask", 1)), encoded(("done", 1, 2, 3))):
            with connect(supervisor.settings.socket(number)) as connection:
                connection.sendall(said)
                connection.settimeout(30)
                assert connection.recv(1) == b""
    with connect(supervisor.settings.socket(_WORKERS)) as connection:
        connection.sendall(encoded(("ask", 1, 0, (pickle.dumps(1), ("nothing",)), None, None)))
        connection.settimeout(30)
        assert b"its input is not there" in connection.recv(4096)
    assert client.ask("fork", x=2)["sum"] == 10
    assert supervisor.pids() == before


def test_killed_processes_lose_no_request(serving: Serving) -> None:
    supervisor, client = serving
    over = threading.Event()
    wrong: list[Any] = []
    answered = [0]

    def ask(worker: int) -> None:
        number = 20 + worker
        while not over.is_set():
            number += 4
            try:
                if worker == 0:
                    total, backwards = client.ask("arrays", size=50_000)
                    right = total == np.sum(backwards)
                else:
                    right = client.ask("fork", x=number)["sum"] == 3 * number + number * number
                if not right:
                    wrong.append(number)
            except Exception as error:
                wrong.append(error)
            answered[0] += 1

    restarts = supervisor.restarts
    threads = [threading.Thread(target=ask, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    victims = (0, _WORKERS, 1, _WORKERS)  # the planner's number comes after those of the workers
    for victim in victims:
        before = answered[0]
        _until(lambda before=before: answered[0] > before + 8)
        os.kill(supervisor.pids()[victim], signal.SIGKILL)
    before = answered[0]
    _until(lambda: answered[0] > before + 12)
    over.set()
    for thread in threads:
        thread.join()
    assert not wrong
    _until(lambda: supervisor.restarts == restarts + len(victims))
    _nothing_is_left(supervisor)
    assert client.ask("fork", x=2)["sum"] == 10


def test_another_planner_takes_over_what_is_loaded(serving: Serving) -> None:
    supervisor, client = serving
    assert client.ask("fork", x=2)["sum"] == 10

    def facts() -> list[tuple[int, int]]:
        counted = _until(lambda: len(found := tallies(supervisor.settings)) == _WORKERS + 1 and found)
        return [(counted[worker]["misses"], counted[worker]["evictions"]) for worker in range(_WORKERS)]

    before, restarts = facts(), supervisor.restarts
    os.kill(supervisor.pids()[_WORKERS], signal.SIGKILL)
    _until(lambda: supervisor.restarts == restarts + 1)
    assert client.ask("fork", x=3)["sum"] == 18
    assert facts() == before


def test_a_request_that_kills_its_workers_is_given_up_and_takes_nobody_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.live.serving.supervise.supervised_worker._BACK_OFF", BackOff(0.05, 0.05))
    with _serve(tmp_path / "served", "deadly", workers=1, scheduler="esg") as (_, client):
        asked = ["harmless", "poison", "harmless", "harmless"]
        answers = _at_once(lambda number: client.ask(text=asked[number]), range(4))
        poison = answers.pop(1)
        assert isinstance(poison, RequestFailedError)
        assert "ended workers (status -9) each time that it was tried, so it is not tried again" in str(poison)
        assert set(answers.values()) == {"harmless"}


@pytest.mark.parametrize("scheduler", ["infless", "fast-gshare", "orion", "aquatope:bootstrap=10,rounds=2", "front"])
def test_every_configurator_serves(tmp_path: Path, scheduler: str) -> None:
    options = {"workers": 1, "memory_bytes": 20e6, "pinned": ("Double",), "slo_seconds": 3.0}
    with _serve(tmp_path / "served", "unhurried", scheduler=scheduler, **options) as (supervisor, client):
        _until(lambda: tallies(supervisor.settings)[0]["resident"] == ["Double"])
        assert client.ask(x=4)[0] == 8


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("unhurried", {"scheduler": "esg"}, "workflow 'unhurried' has no SLO; give one"),
        ("fork", {"scheduler": "esg:fast"}, "configurator 'esg' has no option 'fast'"),
        ("fork", {"scheduler": "best"}, "'best' is not known; known: compass, jit, heft, hash, fairway, esg, "),
        ("fork", {"scheduler": "esg", "memory_bytes": 5e6}, "fits in the memory of no worker"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_started(
    name: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        Supervisor.of(f"{_APP}:{name}", directory=tmp_path / "served", **options).start()
    assert not (tmp_path / "served").exists()
