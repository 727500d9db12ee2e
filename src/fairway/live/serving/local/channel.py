"""Messages over Unix sockets: a mark, a length, a pickled tuple.

Every process at these sockets belongs to the same user on the same machine, which both sides check, so pickle is as
safe here as the application's own code. Writing never waits: what a socket does not take at once is kept for later.
"""

from __future__ import annotations

import os
import pickle
import socket
import time
from collections import deque
from pathlib import Path
from select import POLLIN, POLLOUT, poll
from struct import Struct

from fairway.live.serving.seams.transport import Message, WireError

_HEAD = Struct("=4sI")
_MAGIC = b"Fwy1"
_CHUNK = 1 << 18
_BACKLOG = 4096
_CREDENTIALS = Struct("=iII")
_PATIENCE_SECONDS = 0.5
MOST = 1 << 30
"""Bytes in one message at most; the bytes of large values are not part of it."""


def encoded(message: Message) -> bytes:
    """A message as it goes over a socket."""
    content = pickle.dumps(message, protocol=5)
    return _HEAD.pack(_MAGIC, len(content)) + content


class Channel:
    """One end of a connection; it waits for nothing, unless `receive` is given a time, so its owner may poll it.

    `peer` is the number of the worker at the other end, if this end has called it.
    """

    __slots__ = ("_incoming", "_outgoing", "_polled", "_polls", "closed", "peer", "socket")

    def __init__(self, connection: socket.socket, peer: int | None = None) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.peer = peer
        self.closed = False
        self._incoming = bytearray()
        self._outgoing: deque[bytes] = deque()
        self._polls: poll | None = None
        self._polled = 0

    def fileno(self) -> int:
        """For a selector."""
        return self.socket.fileno()

    @property
    def unwritten(self) -> bool:
        """Whether something is kept that the socket has not taken yet."""
        return bool(self._outgoing)

    def send(self, message: Message) -> bool:
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

    def receive(self, seconds: float | None = 0.0) -> list[Message] | None:
        """The messages that have come; None when the other side has closed or is gone.

        With a time other than 0, wait so long at most for something to come, or for room to write what is kept.
        """
        if seconds != 0.0:
            try:
                if not self._is_ready(seconds):
                    return []
                if self._outgoing:
                    self.flush()
            except OSError:
                return None
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

    def _is_ready(self, seconds: float | None) -> bool:
        events = POLLIN | POLLOUT if self._outgoing else POLLIN
        polls = self._polls
        if polls is None:
            polls = self._polls = poll()
        if self._polled != events:
            polls.register(self.socket, events)
            self._polled = events
        return bool(polls.poll(None if seconds is None else seconds * 1000))


def _decoded(content: bytearray) -> Message:
    try:
        message = pickle.loads(content)
    except Exception as error:  # bytes that are no pickle raise whatever they happen to mean
        raise WireError(f"a message that cannot be read: {type(error).__name__}: {error}") from None
    if not isinstance(message, tuple) or not message:
        raise WireError(f"a {type(message).__name__} given, expected a message")
    return message


def listen(path: Path) -> socket.socket:
    """A socket that other processes of the same user connect to."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # never open to other users, not even for a moment
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
    """A connection to a socket; raises `OSError` if no process listens there, or one of another user does."""
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
