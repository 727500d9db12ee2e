"""A worker's transport on several nodes: Unix sockets to the workers of its own node, TCP to all others.

It listens at both. Which worker is where, the address book says; a worker whose socket is here is on this node.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

from fairway.live.serving.local.unix_socket import connect
from fairway.live.serving.local.unix_transport import UnixTransport
from fairway.live.serving.nodes.address_book import AddressBook
from fairway.live.serving.nodes.guarded_channel import Credentials, Pickled, accepted, called, listen_at
from fairway.live.serving.sockets.channel import Channel

_SILENT_SECONDS = 1.0
"""So long a machine that did not answer is not called again: each call waits for it for a while."""


class Callers:
    """Calls workers on any node, for a process on one of them; raises `OSError` for one that is not there."""

    def __init__(
        self, socket_of: Callable[[int], Path], book: AddressBook, credentials: Credentials, pickled: Pickled
    ) -> None:
        self._socket_of, self._book = socket_of, book
        self._credentials, self._pickled = credentials, pickled
        self._silent: dict[str, float] = {}

    def call(self, number: int, peer: int | None = None) -> Channel:
        """A connection to a worker; `peer` is its number if what comes back should have it."""
        path = self._socket_of(number)
        if path.exists():
            try:
                return Channel(connect(path), peer)
            except OSError:  # it was here before, and may be elsewhere now
                pass
        host, port, _ = self._book.find(number)
        if time.monotonic() < self._silent.get(host, 0.0):
            raise TimeoutError(f"{host} has just not answered")
        try:
            return called(host, port, self._credentials, peer, self._pickled)
        except TimeoutError:
            self._silent[host] = time.monotonic() + _SILENT_SECONDS
            raise


class NodeTransport(UnixTransport):
    """All sockets of a worker on one of several nodes; `announce` gets the port at which other nodes reach it."""

    def __init__(
        self,
        number: int,
        socket_of: Callable[[int], Path],
        host: str,
        credentials: Credentials,
        callers: Callers,
        pickled: Pickled,
        announce: Callable[[int], None],
    ) -> None:
        super().__init__(number, socket_of)
        self._host, self._credentials, self._callers, self._pickled = host, credentials, callers, pickled
        self._announce = announce

    def listen(self) -> None:
        """Let others connect, from this node and from others."""
        super().listen()
        listening = listen_at(self._host)
        self._listen_at(listening, lambda: self._accepted(listening))
        self._announce(listening.getsockname()[1])

    def announce_to(self, announce: Callable[[int], None]) -> None:
        """Let this get the port instead, before it listens."""
        self._announce = announce

    def stay_reachable(self) -> None:
        """Listen anew if the socket is not in its place any more; let strangers go."""
        super().stay_reachable()
        self._let_strangers_go()

    def _accepted(self, listening: socket.socket) -> Channel | None:
        return accepted(listening, self._credentials, self._pickled)

    def _call(self, number: int) -> Channel:
        return self._callers.call(number, peer=number)
