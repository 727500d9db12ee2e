"""Workers whose rows travel as messages, as between machines, as real processes."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairway.errors import InputError
from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.local.unix_socket import connect
from fairway.live.serving.sockets.channel import Channel
from fairway.live.serving.supervise.supervisor import Supervisor, tallies

_ROOT = Path(__file__).parents[4]

Serve = Callable[..., Any]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Serve:
    monkeypatch.setenv("PYTHONPATH", str(_ROOT), prepend=os.pathsep)

    @contextmanager
    def serve(name: str, **options: Any) -> Iterator[tuple[Supervisor, ServingClient]]:
        target, directory = f"tests.live.serving.served:{name}", tmp_path / "served"
        supervisor = Supervisor.of(target, directory=directory, backend="local-messages", **options)
        with supervisor, ServingClient(directory) as client:
            assert not supervisor.settings.table.exists()  # no row is in shared memory
            yield supervisor, client

    return serve


def _until(condition: Callable[[], Any], patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def _at_once(ask: Callable[[int], Any], threads: int, each: int) -> list[Any]:
    answers: list[Any] = []
    running = [
        threading.Thread(target=lambda: answers.extend([ask(number) for number in range(each)])) for _ in range(threads)
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return answers


def test_requests_are_answered_and_work_is_spread(served: Serve) -> None:
    with served("fork", workers=3, memory_bytes=20e6) as (supervisor, client):
        answers = _at_once(lambda number: client.ask(x=number), 6, 15)
        assert sorted(answers) == sorted([3 * x + x * x for x in range(15)] * 6)
        counted = tallies(supervisor.settings)
        assert all(tally["hits"] + tally["misses"] > 0 for tally in counted.values())


def test_a_slow_worker_is_avoided(served: Serve) -> None:
    """Only its row tells the others that it is."""
    with served("uneven", workers=2) as (_, client):
        ran = Counter(_at_once(lambda number: client.ask(x=number), 3, 20))
        assert ran["1"] > 4 * ran["0"]
        assert ran["0"] > 0


def test_killed_workers_lose_no_request(served: Serve) -> None:
    with served("fork", workers=3) as (supervisor, client):
        for kill in range(4):
            killed = threading.Timer(0.1, os.kill, (supervisor.pids()[kill % 3], signal.SIGKILL))
            killed.start()
            answers = _at_once(lambda number: client.ask(x=number), 4, 15)
            assert sorted(answers) == sorted([3 * x + x * x for x in range(15)] * 4)
            killed.join()
            _until(lambda kill=kill: supervisor.restarts == kill + 1)
        _until(lambda: len(tallies(supervisor.settings)) == 3)


def test_a_worker_that_is_stopped_is_replaced(served: Serve) -> None:
    """More requests than one worker can run at once; those that went to the one that is stopped run elsewhere."""
    with served("sleeping", workers=2) as (supervisor, _):
        os.kill(supervisor.pids()[0], signal.SIGSTOP)
        line = Channel(connect(supervisor.settings.socket(1)))
        for number in range(8):
            line.send(("ask", number, 0, (pickle.dumps({"seconds": 0.1}), ()), None, None))
        replied: list[Any] = []
        _until(lambda: replied.extend(line.receive(0.1) or []) or len(replied) == 8, 30.0)
        assert {message[0] for message in replied} == {"reply"}
        line.close()
        _until(lambda: supervisor.restarts == 1)


def test_a_backend_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"backend: 'locale' is not known, did you mean 'local'\?"):
        Supervisor.of("tests.live.serving.served:chain", directory=tmp_path / "served", backend="locale")
    assert not (tmp_path / "served").exists()
