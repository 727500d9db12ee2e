"""Messages between the processes of an application, over Unix sockets: a mark, a length, a pickled tuple.

Everybody at these sockets is the same user on the same machine, which both sides check, so pickle is as safe here as
the application's own code. Writing never waits: what a socket does not take at once is kept for later.
"""

from __future__ import annotations

import os
import pickle
import socket
import time
from collections import deque
from pathlib import Path
from struct import Struct
from typing import Any

from fairway.errors import FairwayError

_HEAD = Struct("=4sI")
_MAGIC = b"Fwy1"
_CHUNK = 1 << 18
_BACKLOG = 4096
_CREDENTIALS = Struct("=iII")
_PATIENCE_SECONDS = 0.5
MOST = 1 << 30
"""Bytes in one message at most; the bytes of large values are not part of it."""


class WireError(FairwayError):
    """The other side does not speak as it should."""


def encoded(message: tuple[Any, ...]) -> bytes:
    """A message as it goes over a socket."""
    content = pickle.dumps(message, protocol=5)
    return _HEAD.pack(_MAGIC, len(content)) + content


class Channel:
    """One end of a connection that never waits; its owner watches the socket."""

    __slots__ = ("_incoming", "_outgoing", "closed", "peer", "socket")

    def __init__(self, connection: socket.socket, peer: object = None) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.peer = peer
        self.closed = False
        self._incoming = bytearray()
        self._outgoing: deque[bytes] = deque()

    def fileno(self) -> int:
        """For a selector."""
        return self.socket.fileno()

    @property
    def unwritten(self) -> bool:
        """Whether something is kept that the socket has not taken yet."""
        return bool(self._outgoing)

    def send(self, message: tuple[Any, ...]) -> bool:
        """Send a message, or keep it; True if something is left to be written when the socket is ready for it."""
        self._outgoing.append(encoded(message))
        return self.flush()

    def flush(self) -> bool:
        """Write what is kept; True if something is left. Raises `OSError` if the other side is gone."""
        outgoing = self._outgoing
        while outgoing:
            content = outgoing[0]
            try:
                written = self.socket.send(content)
            except BlockingIOError:
                return True
            if written < len(content):
                outgoing[0] = content[written:]
            else:
                outgoing.popleft()
        return False

    def receive(self) -> list[tuple[Any, ...]] | None:
        """The messages that have come; None when the other side has closed or is gone."""
        incoming = self._incoming
        try:
            content = self.socket.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not content:
            return None
        incoming += content
        messages = []
        start = 0
        while len(incoming) - start >= _HEAD.size:
            magic, length = _HEAD.unpack_from(incoming, start)
            if magic != _MAGIC or length > MOST:
                raise WireError(f"{bytes(incoming[start : start + 16])!r} given, expected a message")
            end = start + _HEAD.size + length
            if len(incoming) < end:
                break
            messages.append(_decoded(incoming[start + _HEAD.size : end]))
            start = end
        if start:
            del incoming[:start]
        return messages

    def close(self) -> None:
        """End the connection."""
        self.closed = True
        self.socket.close()


def _decoded(content: bytearray) -> tuple[Any, ...]:
    try:
        message = pickle.loads(content)
    except Exception as error:  # bytes that are no pickle raise whatever they happen to mean
        raise WireError(f"a message that cannot be read: {type(error).__name__}: {error}") from None
    if not isinstance(message, tuple) or not message:
        raise WireError(f"a {type(message).__name__} given, expected a message")
    return message


def listen(path: Path) -> socket.socket:
    """A socket that others of the same user connect to."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # never open to others, not even for a moment
    try:
        listening.bind(str(path))
    finally:
        os.umask(before)
    listening.listen(_BACKLOG)
    listening.setblocking(False)
    return listening


def accept(listening: socket.socket) -> socket.socket | None:
    """The next connection that waits, if there is one; those of other users are closed at once."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return None
        if is_same_user(connection):
            return connection
        connection.close()


def connect(path: Path) -> socket.socket:
    """A connection to a socket; raises `OSError` if nobody listens, or somebody else does."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_PATIENCE_SECONDS)
            connection.connect(str(path))
            if not is_same_user(connection):
                raise PermissionError(f"{path}: another user listens there")
            return connection
        except BlockingIOError:  # too many want to connect at this moment
            connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(1e-3)
        except OSError:
            connection.close()
            raise


def is_same_user(connection: socket.socket) -> bool:
    """Whether this user, or the administrator, is at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(credentials)
    return user in {os.geteuid(), 0}
