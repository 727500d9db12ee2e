"""Workflows served by real worker processes: answers, failures, deadlines, memory, and workers that are killed."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairway.errors import InputError
from fairway.live.serving.clients.async_client import AsyncServingClient
from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.clients.client_protocol import MOST_LOSSES, RequestFailedError
from fairway.live.serving.supervise.supervisor import Supervisor, tallies
from tests.live.serving.served import resident_bytes

_ROOT = Path(__file__).parents[4]
_APP = "tests.live.serving.served"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    monkeypatch.setenv("PYTHONPATH", str(_ROOT), prepend=os.pathsep)

    @contextmanager
    def serve(name: str, **options: Any) -> Iterator[tuple[Supervisor, ServingClient]]:
        supervisor = Supervisor.of(f"{_APP}:{name}", directory=tmp_path / "served", **options)
        with supervisor, ServingClient(supervisor.settings.directory) as client:
            yield supervisor, client

    return serve


def _until(condition: Callable[[], Any], patience: float = 30.0) -> Any:
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return value


def test_a_worker_sees_its_own_gpu_only(served: Callable[..., Any]) -> None:
    with served("device", workers=2, devices=("GPU-a", "GPU-b"), scheduler="hash") as (_, client):
        assert {client.ask(x=number) for number in range(40)} == {"GPU-a", "GPU-b"}
    with pytest.raises(InputError, match="devices: 1 given for 2 workers"), served("device", devices=("GPU-a",)):
        pass


def test_a_chain_and_many_clients(served: Callable[..., Any]) -> None:
    with served("chain", workers=3) as (supervisor, client):
        assert [client.ask(x=number) for number in range(50)] == list(range(3, 53))
        answers: list[int] = []
        threads = [
            threading.Thread(target=lambda: answers.extend(client.ask(x=number) for number in range(40)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == sorted([*range(3, 43)] * 8)
        counted = tallies(supervisor.settings)
        assert sum(tally["replied"] for tally in counted.values()) == 370
        memory = supervisor.settings.memory_directory
    assert not memory.exists()


@pytest.mark.parametrize("scheduler", ["compass", "jit", "heft", "hash", "compass:no-adjust", "fairway"])
def test_a_fork_and_a_join_under_every_scheduler(served: Callable[..., Any], scheduler: str) -> None:
    with served("fork", workers=2, memory_bytes=10e6, scheduler=scheduler) as (supervisor, client):
        assert [client.ask(x=number) for number in range(12)] == [3 * x + x * x for x in range(12)]
        counted = tallies(supervisor.settings).values()
        assert sum(tally["hits"] + tally["misses"] for tally in counted) == 24


def test_large_arrays_travel_through_shared_memory_and_leave_nothing_behind(served: Callable[..., Any]) -> None:
    with served("arrays", workers=2, scheduler="hash") as (supervisor, client):
        for size in (10, 100_000, 1_000_000):
            total, backwards = client.ask(size=size)
            assert total == size * (size - 1) / 2
            np.testing.assert_array_equal(backwards, np.arange(size)[::-1])
        memory = supervisor.settings.memory_directory
        del backwards
        _until(lambda: {path.name for path in memory.iterdir()} == {"table", "running"})


def test_a_stage_that_raises_fails_its_request_alone(served: Callable[..., Any]) -> None:
    with served("failing", workers=1) as (supervisor, client):
        before = supervisor.pids()
        for text in ("a", "b"):
            with pytest.raises(RequestFailedError, match=f"stage 'Fail' raised RuntimeError: no luck with {text} "):
                client.ask(text=text)
        assert supervisor.pids() == before
        log = (supervisor.settings.directory / "worker-0.log").read_text()
        assert "RuntimeError: no luck with a" in log


def test_a_model_that_cannot_be_loaded_is_tried_again_and_then_reported(served: Callable[..., Any]) -> None:
    with served("unloadable", workers=1) as (supervisor, client):
        for _ in range(2):
            with pytest.raises(RequestFailedError, match="model 'Stubborn' cannot be loaded: OSError: no such file"):
                client.ask(text="x")
        assert (supervisor.settings.directory / "worker-0.log").read_text().count("tried again") == 4


def test_pieces_come_one_by_one(served: Callable[..., Any]) -> None:
    with served("spelling", workers=2) as (_, client):
        began = time.monotonic()
        pieces = client.stream(word="fairway")
        assert next(pieces) == "f"
        first = time.monotonic() - began
        assert "".join(pieces) == "airway"
        assert first < (time.monotonic() - began) / 2


def test_pieces_that_nobody_took_do_not_hide_the_end_of_a_worker(served: Callable[..., Any]) -> None:
    with served("spelling", workers=1) as (supervisor, client):
        left_early = [client.stream(word="fairway") for _ in range(2 * MOST_LOSSES)]
        assert {next(pieces) for pieces in left_early} == {"f"}
        left_early.clear()  # their connections are free again, and the rest of the word is in them
        os.kill(supervisor.pids()[0], signal.SIGKILL)
        assert "".join(client.stream(word="fairway")) == "fairway"


def test_deadlines_and_back_pressure(served: Callable[..., Any]) -> None:
    with served("sleeping", workers=1, most_open=3) as (_, client):
        with pytest.raises(RequestFailedError, match="it would take") as impossible:
            client.ask(seconds=0.0, deadline_seconds=0.01)
        assert impossible.value.code == "impossible"
        with pytest.raises(InputError, match="not in the future"):
            client.ask(seconds=0.0, deadline_seconds=-1)
        outcomes: list[str] = []

        def ask() -> None:
            try:
                client.ask(seconds=1.0, deadline_seconds=0.6)
                outcomes.append("answered")
            except RequestFailedError as error:
                outcomes.append(error.code)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["busy", "late", "late", "late"]


def test_a_request_that_is_cancelled_runs_no_further(served: Callable[..., Any]) -> None:
    async def ask(directory: Path) -> None:
        client = AsyncServingClient(directory)
        first = asyncio.ensure_future(client.ask(seconds=0.6))
        others = [asyncio.ensure_future(client.ask(seconds=30.0)) for _ in range(3)]
        await asyncio.sleep(0.2)
        for other in others:
            other.cancel()
        assert await first > 0
        assert await asyncio.wait_for(client.ask(seconds=0.0), 10) > 0
        await client.close()

    with served("sleeping", workers=1) as (supervisor, _):
        asyncio.run(ask(supervisor.settings.directory))
        _until(lambda: tallies(supervisor.settings)[0]["open"] == 0)


def test_eviction_frees_memory(served: Callable[..., Any]) -> None:
    options = {"workers": 1, "memory_bytes": 70e6}
    with served("BOTH", **options) as (supervisor, client):
        (pid,) = supervisor.pids()
        before = resident_bytes(pid)
        assert client.ask("heavy", x=1) == 2.0
        with_one = resident_bytes(pid)
        assert with_one - before > 50e6
        assert client.ask("also-heavy", x=1) == 3.0
        _until(lambda: abs(resident_bytes(pid) - with_one) < 20e6)
        assert tallies(supervisor.settings)[0]["evictions"] == 1


def test_killed_workers_lose_no_request(served: Callable[..., Any]) -> None:
    with served("fork", workers=3) as (supervisor, client):
        over = threading.Event()
        wrong: list[Any] = []
        answered = [0]

        def ask() -> None:
            number = 0
            while not over.is_set():
                number += 1
                try:
                    if client.ask(x=number) != 3 * number + number * number:
                        wrong.append(number)
                except Exception as error:
                    wrong.append(error)
                answered[0] += 1

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for kill in range(5):
            before = answered[0]
            _until(lambda before=before: answered[0] > before + 10)
            os.kill(supervisor.pids()[kill % 3], signal.SIGKILL)
        before = answered[0]
        _until(lambda: answered[0] > before + 20)
        over.set()
        for thread in threads:
            thread.join()
        assert not wrong
        _until(lambda: supervisor.restarts == 5)
        _until(lambda: len(tallies(supervisor.settings)) == 3)
        assert client.ask(x=2) == 10


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("tests.live.serving.served:nothing", {}, "nothing"),
        ("no.such.module:chain", {}, "no.such.module"),
        (f"{_APP}:fork", {"memory_bytes": 5e6}, "fits in the memory of no worker"),
        (f"{_APP}:chain", {"scheduler": "best"}, "best"),
        (f"{_APP}:chain", {"workers": 0}, "workers: 0 given"),
    ],
)
def test_what_cannot_be_served_is_refused_and_leaves_nothing_behind(
    target: str, options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(_ROOT), prepend=os.pathsep)
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr("fairway.live.serving.supervise.supervisor._SHARED_MEMORY", memory)
    with pytest.raises(InputError, match=message):
        Supervisor.of(target, directory=tmp_path / "served", **options).start()
    assert list(memory.iterdir()) == []
