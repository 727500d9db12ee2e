"""A worker's transport over Unix sockets, on one machine: each worker listens at a path of its own."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fairway.live.serving.local.unix_socket import accept, connect, listen
from fairway.live.serving.sockets.channel import Channel
from fairway.live.serving.sockets.connections import Connections

_LOG = logging.getLogger(__name__)


class UnixTransport(Connections):
    """All sockets of a worker; `socket_of` says where each worker listens."""

    def __init__(self, number: int, socket_of: Callable[[int], Path]) -> None:
        super().__init__()
        self._number, self._socket_of = number, socket_of
        self._listening: socket.socket | None = None
        self._inode: int | None = None

    def listen(self) -> None:
        """Let others connect."""
        path = self._socket_of(self._number)
        listening = self._listening = listen(path)
        self._inode = _inode(path)
        self._listen_at(listening, lambda: _accepted(listening))

    def stay_reachable(self) -> None:
        """Listen anew if the socket is not in its place any more."""
        path = self._socket_of(self._number)
        if self._listening is None or _inode(path) == self._inode:
            return
        _LOG.warning("%s was removed; it is made anew", path)
        self._drop(self._listening.fileno())
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        UnixTransport.listen(self)

    def _call(self, number: int) -> Channel:
        return Channel(connect(self._socket_of(number)), number)


def _accepted(listening: socket.socket) -> Channel | None:
    connection = accept(listening)
    return None if connection is None else Channel(connection)


def _inode(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_ino
    return None
