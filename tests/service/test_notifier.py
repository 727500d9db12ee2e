"""Those who want to know are told of the ends of jobs: once, again after failures, and at no cost to others."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fairway.back_off import BackOff
from fairway.service.notifier import Notifier
from fairway.service.representation import Terms
from fairway.store import Store, open_store
from fairway.store.job_changes import request_cancel
from fairway.store.notifications import load_notified
from fairway.store.submissions import Submission
from fairway.wall_clock import WallClock
from tests.service.running import until
from tests.store.making import SPEC, submit


class Receiver:
    """A web server that writes down what it is told; `answers` are the codes of its first answers."""

    def __init__(self, answers: list[int]) -> None:
        self.told: list[dict[str, Any]] = []
        self.paths: list[str] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.told.append(json.loads(body))
                receiver.paths.append(self.path)
                self.send_response(answers.pop(0) if answers else 204)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.address = f"http://{self.host}/hook"

    @property
    def jobs(self) -> list[str]:
        return [one["job"]["id"] for one in self.told]


@contextmanager
def receiving(*answers: int) -> Iterator[Receiver]:
    receiver = Receiver(list(answers))
    thread = Thread(target=receiver.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()
        thread.join()


@contextmanager
def notifying(store: Store, **options: Any) -> Iterator[Notifier]:
    notifier = Notifier(store, lambda: Terms(emulated=True), back_off=BackOff(0.01, 0.02), **options)
    notifier.start()
    try:
        yield notifier
    finally:
        notifier.stop()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def ended(store: Store) -> Callable[..., str]:
    """Lets a job come and end."""

    def end(**spec: Any) -> str:
        (job,) = store.write(submit, [Submission(spec={**SPEC, **spec})], at=time.time())
        store.write(request_cancel, job.id, at=time.time())
        return job.id

    return end


def test_an_end_is_told_until_it_is_taken_and_then_no_more(store: Store, ended: Callable[..., str]) -> None:
    with receiving(500, 302) as receiver, notifying(store, address=receiver.address):
        job = ended(envs={"SECRET": "x"})
        until(lambda: len(receiver.told) == 3)
        other = ended()
        until(lambda: len(receiver.told) == 4)
    assert receiver.jobs == [job] * 3 + [other]
    assert set(receiver.paths) == {"/hook"}, "nobody is led elsewhere"
    assert receiver.told[0]["event"] == "job.ended"
    assert receiver.told[0]["job"]["state"] == "cancelled"
    assert "SECRET" not in json.dumps(receiver.told)


def test_a_job_has_its_own_address_told_where_that_is_allowed(store: Store, ended: Callable[..., str]) -> None:
    with receiving() as allowed, receiving() as forbidden, notifying(store, hosts=[allowed.host]):
        ended()
        ended(notify=forbidden.address)
        ended(notify="file:///etc/passwd")
        job = ended(notify=allowed.address)
        until(lambda: allowed.jobs == [job])
    assert forbidden.told == []


def test_what_ended_while_nobody_told_it_is_told_after_the_next_start(store: Store, ended: Callable[..., str]) -> None:
    ended()  # before the first start: nobody asked for it then
    with receiving() as receiver:
        with notifying(store, address=receiver.address):
            first = ended()
            until(lambda: receiver.jobs == [first])
            until(lambda: store.read(load_notified))
        second = ended()
        with notifying(store, address=receiver.address):
            until(lambda: second in receiver.jobs)
    assert {first, second} <= set(receiver.jobs)


class SetClock:
    """A system clock that is set back while it runs."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def time(self) -> float:
        return time.time() + self.ahead

    def monotonic(self) -> float:
        return time.monotonic()


def test_an_end_is_told_also_after_the_system_clock_was_set_back(store: Store) -> None:
    machine = SetClock()
    with receiving() as receiver, notifying(store, address=receiver.address, clock=WallClock(machine)):
        for ahead in (0.0, -3600.0, -7200.0):
            machine.ahead = ahead
            (job,) = store.write(submit, [Submission(spec=SPEC)], at=machine.time())
            store.write(request_cancel, job.id, at=machine.time())
            until(lambda name=job.id: name in receiver.jobs)
    assert sorted(receiver.jobs) == sorted(set(receiver.jobs)), "and each of them once"


def test_a_host_that_never_answers_holds_up_no_other(store: Store, ended: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, receiving() as receiver:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        with notifying(store, hosts=[host, receiver.host], answer_seconds=300.0):
            for _ in range(40):
                ended(notify=f"http://{host}/")
            job = ended(notify=receiver.address)
            until(lambda: receiver.jobs == [job])
            began = time.monotonic()
        assert time.monotonic() - began < 30, "it ends although requests are under way"
