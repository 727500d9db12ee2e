"""Keeps connections from holding up a server: how long, how large and how many they may be, with a token or without.

A connection waits for a request, has one under way, or drops the rest of a body that was refused. While it waits it
costs nothing but a descriptor, so where there are too many, of one client or of all, the connection that has waited
longest makes room for the new one, those first that have never asked anything: a client that asks something is served
however many say nothing. The head of a request has to come within some seconds and some bytes. What happens to bodies
is up to `documents_in`.
"""

from __future__ import annotations

import asyncio
import json
import resource
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

_RESERVED_FILES = 256
"""Descriptors that a server needs for other things than connections: the store, logs, agents."""

_FEWEST_CONNECTIONS = 32
_SWEEP_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What connections may take.

    `most` is for all of them together, `most_per_client` for those of one address. `head_seconds` is how long a client
    may take until the head of its request is there, `head_bytes` how long the head may be. `rest_seconds` is how long
    the rest of a body is dropped after its request was answered, and how long a connection may take to close.
    `unread_seconds` is how long a client may leave an answer unread.
    """

    most: int = 10_000
    most_per_client: int = 4_000
    head_seconds: float = 10.0
    head_bytes: int = 64 * 1024
    rest_seconds: float = 5.0
    unread_seconds: float = 300.0

    @classmethod
    def of_this_process(cls) -> ConnectionLimits:
        """As many as the descriptors of this process allow."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        most = max(min(cls().most, files - _RESERVED_FILES), _FEWEST_CONNECTIONS)
        return cls(most=most, most_per_client=max(min(cls().most_per_client, most * 3 // 4), 1))


class _State(Enum):
    WAITING = auto()
    """No request, or only a part of its head, is there."""

    ASKING = auto()
    """A request is under way."""

    DROPPING = auto()
    """The request was answered, but its body still comes in."""


class Connections:
    """The connections of one server, in the order in which they began to wait; used on the event loop only."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._open: dict[LimitedConnection, None] = {}
        self._silent: dict[LimitedConnection, None] = {}
        self._resting: dict[LimitedConnection, None] = {}
        self._of_client: dict[str, int] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def admit(self, connection: LimitedConnection) -> bool:
        """Take in a new connection, if need be for one that waits; False if all are busy."""
        name, limits = connection.client_name, self.limits
        if self._of_client.get(name, 0) >= limits.most_per_client:
            waiting = chain(self._silent, self._resting)
            mine = next((other for other in waiting if other.client_name == name), None)
            if mine is None:
                return False
            mine.give_up()
        if len(self._open) >= limits.most:
            oldest = next(chain(self._silent, self._resting), None)
            if oldest is None:
                return False
            oldest.give_up()
        self._open[connection] = self._silent[connection] = None
        self._of_client[name] = self._of_client.get(name, 0) + 1
        if self._sweeping is None:
            self._sweeping = connection.loop.call_later(_SWEEP_SECONDS, self._sweep)
        return True

    def remove(self, connection: LimitedConnection) -> None:
        """A connection is gone, or will be."""
        self.begins(connection)
        if connection in self._open:
            del self._open[connection]
            name = connection.client_name
            self._of_client[name] -= 1
            if not self._of_client[name]:
                del self._of_client[name]

    def begins(self, connection: LimitedConnection) -> None:
        """A connection does not wait any more."""
        self._silent.pop(connection, None)
        self._resting.pop(connection, None)

    def rests(self, connection: LimitedConnection) -> None:
        """A connection waits for its next request."""
        if connection in self._open:
            self._resting[connection] = None

    def _sweep(self) -> None:
        """Let go of connections that take too long."""
        self._sweeping = None
        for connection in list(self._open):
            connection.check()
            self._sweeping = self._sweeping or connection.loop.call_later(_SWEEP_SECONDS, self._sweep)


class LimitedConnection(HttpToolsProtocol):
    """One connection of a server, within the limits of all."""

    def __init__(
        self,
        all_of_them: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = all_of_them
        self._state, self._since = _State.WAITING, self.loop.time()
        self._closing_since: float | None = None
        self._unread_since: float | None = None
        self._head_bytes = 0
        self._whole = True
        self.client_name = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection in, or refuse it."""
        super().connection_made(transport)
        self.client_name = self.client[0] if self.client else ""
        if not self._all.admit(self):
            self._refuse(
                "503 Service Unavailable", "too-many-connections", "too many requests are under way; try again"
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._all.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hand what comes in to the parser, as long as the head of a request is within its limit."""
        if self.transport.is_closing():
            return
        if self._state is _State.WAITING:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._state is not _State.WAITING or not self._head_bytes > self._all.limits.head_bytes:
            return
        most = self._all.limits.head_bytes // 1024
        self._refuse(
            "431 Request Header Fields Too Large", "too-large", f"the head of the request is larger than {most} KiB"
        )

    def on_message_begin(self) -> None:
        """A request begins to come in."""
        super().on_message_begin()
        self._whole = False
        if self._state is _State.WAITING:
            self._since = self.loop.time()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, or one of those that may follow a body, if there is room for it."""
        if self._state is not _State.WAITING:
            self._head_bytes += len(name) + len(value)
            if self._head_bytes > 2 * self._all.limits.head_bytes:
                self.transport.abort()
                return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The request is to be answered."""
        self._enter(_State.ASKING)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of the request has come in."""
        self._whole = True
        super().on_message_complete()
        if self._state is _State.DROPPING:
            self._enter(_State.WAITING)

    def on_response_complete(self) -> None:
        """The request is answered."""
        more = bool(self.pipeline)
        super().on_response_complete()
        if not more:
            self._enter(_State.WAITING if self._whole else _State.DROPPING)

    def pause_writing(self) -> None:
        """The client does not read."""
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._unread_since = None
        super().resume_writing()

    def check(self) -> None:
        """End the connection if it takes too long with what it does."""
        limits, now = self._all.limits, self.loop.time()
        if self.transport.is_closing():
            self._closing_since = now if self._closing_since is None else self._closing_since
            if now - self._closing_since > limits.rest_seconds:
                self.transport.abort()
        elif self._unread_since is not None and now - self._unread_since > limits.unread_seconds:
            self.transport.abort()
        elif self._state is _State.DROPPING and now - self._since > limits.rest_seconds:
            self.give_up()
        elif self._state is _State.WAITING and now - self._since > limits.head_seconds:
            if self._head_bytes:
                seconds = f"{limits.head_seconds:g}"
                self._refuse("408 Request Timeout", "too-slow", f"no whole request came within {seconds} s")
            else:
                self.give_up()

    def give_up(self) -> None:
        """End the connection, since it says nothing."""
        self._all.remove(self)
        self.transport.abort()

    def _enter(self, state: _State) -> None:
        self._state, self._since = state, self.loop.time()
        if state is _State.WAITING:
            self._head_bytes = 0
        self._all.begins(self)
        if state is _State.WAITING:
            self._all.rests(self)

    def _refuse(self, status: str, code: str, detail: str) -> None:
        """Answer with a problem, and close."""
        if self.transport.is_closing():
            return
        number, _, title = status.partition(" ")
        problem = {"type": "about:blank", "title": title, "status": int(number), "detail": detail, "code": code}
        body = json.dumps(problem).encode()
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
