"""A service for tests: a real server on a free port, in a thread of its own, and clients with tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from fairway.service.http.server import ServiceServer
from fairway.service.scheduler_view import SchedulerView
from fairway.store import Store, open_store
from fairway.store.queries import list_jobs
from fairway.store.tokens import Role, create_token
from tests.service.standing_in import StandIn

PATIENCE = 30.0
"""Seconds until a test gives up; far more than anything takes, since the machine may be busy."""

JOB: dict[str, Any] = {"run": ["sleep", "1"]}


def until(condition: Callable[[], Any], what: str = "") -> Any:
    """Wait until a condition holds, and give its value."""
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain {what}"
        time.sleep(0.01)
    return value


class Served:
    """A service that runs, with its scheduler and its store."""

    def __init__(self, scheduler: StandIn, server: ServiceServer) -> None:
        self.scheduler = scheduler
        self.server = server
        self.address = server.address
        self.secret = self.new_token(Role.ADMIN)

    @property
    def store(self) -> Store:
        return self.scheduler.store

    def new_token(self, role: Role, team: str | None = None, name: str = "tester") -> str:
        secret, _ = self.store.write(create_token, role, at=time.time(), team=team, name=name)
        return secret

    def client(self, role: Role = Role.ADMIN, team: str | None = None) -> httpx.Client:
        secret = self.secret if role is Role.ADMIN else self.new_token(role, team)
        return self.client_with(secret)

    def client_with(self, secret: str | None) -> httpx.Client:
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=PATIENCE, trust_env=False)

    def stored(self) -> int:
        """How many jobs there are."""
        return len(self.store.read(list_jobs, limit=1000).jobs)


@contextmanager
def running_server(scheduler: SchedulerView, **options: Any) -> Iterator[ServiceServer]:
    """A server, as long as it is needed."""
    server = ServiceServer(scheduler, options.pop("host", "127.0.0.1"), options.pop("port", 0), **options)
    thread = Thread(target=server.run, name="service-under-test", daemon=True)
    thread.start()
    try:
        until(lambda: server.started, "for the server")
        yield server
    finally:
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the server does not stop"


@contextmanager
def served(directory: Path, url: str | None = None, **options: Any) -> Iterator[Served]:
    """A service with a scheduler that stands in."""
    with open_store(url or str(directory / "store")) as store:
        scheduler = StandIn(directory, store, **options)
        with running_server(scheduler) as server:
            yield Served(scheduler, server)
