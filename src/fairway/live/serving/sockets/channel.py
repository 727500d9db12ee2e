"""Messages over a socket of any kind: a mark, a length, a pickled tuple.

What is pickled may do anything when it is read, so a channel reads only what a process of the same application has
sent: whoever makes the socket sees to that (`local.unix_socket` by the user at the other end, `nodes.guarded_channel`
by a secret). Writing never waits: what a socket does not take at once is kept for later.
"""

from __future__ import annotations

import pickle
import socket
import threading
from collections import deque
from select import POLLIN, POLLOUT, poll
from struct import Struct

from fairway.live.serving.seams.transport import Message, WireError

_HEAD = Struct("=4sI")
_MAGIC = b"Fwy1"
CHUNK = 1 << 18
MOST = 1 << 30
"""Bytes in one message at most; the bytes of large values are not part of it."""


class _Room(threading.local):
    """Where a thread reads to: a new piece of memory of this size for each reading would take longer than reading."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(CHUNK))


_ROOM = _Room()


def encoded(message: Message) -> bytes:
    """A message as it goes over a socket."""
    return framed(pickle.dumps(message, protocol=5))


def framed(content: bytes) -> bytes:
    """A pickled message with what goes before it."""
    return _HEAD.pack(_MAGIC, len(content)) + content


class Channel:
    """One end of a connection; it waits for nothing, unless `receive` is given a time, so its owner may poll it.

    `peer` is the number of the worker at the other end, if this end has called it. `is_trusted` says whether the other
    end has shown that it belongs to the application.
    """

    is_trusted = True

    __slots__ = ("_incoming", "_outgoing", "_polled", "_polls", "closed", "peer", "socket")

    def __init__(self, connection: socket.socket, peer: int | None = None) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.peer = peer
        self.closed = False
        self._incoming = bytearray()
        self._outgoing: deque[bytes | memoryview] = deque()
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
        return self.send_framed(self._encoded(message))

    def send_framed(self, content: bytes) -> bool:
        """Send a message that is encoded already, such as for several channels (`encoded`)."""
        self._outgoing.append(content)
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
                outgoing[0] = memoryview(content)[written:]
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
        try:
            content = self._read()
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self._taken(content) if content else None

    def _read(self) -> bytes:
        """What has come; nothing at the end."""
        room = _ROOM.view
        return room[: self.socket.recv_into(room)].tobytes()

    @property
    def _wants_to_write(self) -> bool:
        """Whether to wait for room to write."""
        return bool(self._outgoing)

    def _encoded(self, message: Message) -> bytes:
        return encoded(message)

    def _taken(self, content: bytes) -> list[Message] | None:
        """The messages that are complete with these bytes."""
        incoming = self._incoming
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
        events = POLLIN | POLLOUT if self._wants_to_write else POLLIN
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
