"""Reads server-sent events in a thread, as they come."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import httpx

from tests.service.running import until


@dataclass
class Heard:
    """What was heard so far."""

    events: list[tuple[str, dict[str, Any], str | None]] = field(default_factory=list)
    connected: bool = False
    over: bool = False

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [data for name, data, _ in self.events if name == kind]

    def states(self, job: str) -> list[str]:
        return [data["state"] for data in self.of("job") if data["id"] == job]

    def ids(self) -> list[int]:
        return [int(number) for _, _, number in self.events if number is not None]


@contextmanager
def listening(client: httpx.Client, path: str, **options: Any) -> Iterator[Heard]:
    """Listen until the end of the block, or of the stream."""
    heard = Heard()
    with client.stream("GET", path, **options) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        heard.connected = True

        def listen() -> None:
            fields: dict[str, str] = {}
            try:
                for line in response.iter_lines():
                    if line == "" and "event" in fields:
                        heard.events.append((fields["event"], json.loads(fields["data"]), fields.get("id")))
                    if line == "":
                        fields = {}
                    elif not line.startswith(":"):
                        name, _, value = line.partition(": ")
                        fields[name] = value
            except (httpx.StreamError, httpx.TransportError):
                pass  # the test has heard enough
            heard.over = True

        thread = Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield heard
        finally:
            if not heard.over:
                _hang_up(response)
            thread.join(10)
            assert not thread.is_alive()


def _hang_up(response: httpx.Response) -> None:
    stream = response.extensions["network_stream"]
    stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


def heard_of(heard: Heard, job: str, state: str) -> None:
    """Wait until a job is heard to be in a state."""
    until(lambda: state in heard.states(job), f"for {job} to be {state}; heard {heard.events}")
