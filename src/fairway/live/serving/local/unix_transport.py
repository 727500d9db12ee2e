"""A worker's transport over Unix sockets: its callers, the other workers that it calls, and the wait for all of them.

Each worker listens at a socket of its own. To send to another worker it calls that worker's socket once and keeps the
connection; what comes back over it has that worker's number. Nothing here waits for one of them: what a socket does not
take is kept and written when it can. A process that says what cannot be understood is let go, and no other one notices.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from fairway.live.serving.local.channel import Channel, accept, connect, listen
from fairway.live.serving.seams.transport import Address, Arrival, Message, WireError

_LOG = logging.getLogger(__name__)

_READ, _BOTH = selectors.EVENT_READ, selectors.EVENT_READ | selectors.EVENT_WRITE


class UnixTransport:
    """All sockets of a worker; `socket_of` says where each worker listens."""

    def __init__(self, number: int, socket_of: Callable[[int], Path]) -> None:
        self._number, self._socket_of = number, socket_of
        self._selector = selectors.DefaultSelector()
        self._peers: dict[int, Channel] = {}
        self._arrived: list[Arrival] = []
        self._wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._pid = os.getpid()
        self._listening: socket.socket | None = None
        self._inode: int | None = None
        self._when_readable(self._wakes, partial(os.eventfd_read, self._wakes))

    def listen(self) -> None:
        """Let others connect."""
        self._listen_at(self._socket_of(self._number))

    def stay_reachable(self) -> None:
        """Listen anew if the socket is not in its place any more."""
        path = self._socket_of(self._number)
        if self._listening is None or _inode(path) == self._inode:
            return
        _LOG.warning("%s was removed; it is made anew", path)
        self._selector.unregister(self._listening)
        self._listening.close()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.listen()

    def heed_signals(self) -> None:
        """Let a signal end a wait even if it came just before, or to another thread; for the main thread.

        The handler of a signal runs when this thread does something, and nothing else would make it do so.
        """
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self._when_readable(reading, partial(_empty, reading))

    def send(self, to: Address, message: Message) -> bool:
        """Send a message, now or when the socket can take it; False if no process is there."""
        channel = self._called(to) if isinstance(to, int) else to
        if channel is None:
            return False
        assert isinstance(channel, Channel)
        if channel.closed:
            return False
        try:
            if channel.send(message):
                self._wait_for(channel, _BOTH)
        except OSError:  # its end will be read, too, and is an arrival then
            return False
        return True

    def receive(self, seconds: float | None) -> list[Arrival]:
        """What has come over all sockets, after waiting for it no longer than this."""
        if self._pid != os.getpid():
            os._exit(0)  # a stage has forked, and this is its child, which has no part in serving
        for key, ready in self._selector.select(seconds):
            key.data(ready)
        arrived, self._arrived = self._arrived, []
        return arrived

    def wake(self) -> None:
        """Let `receive` return; from any thread."""
        if self._pid != os.getpid():
            os._exit(0)  # as in `receive`
        os.eventfd_write(self._wakes, 1)

    def hang_up(self, address: Address) -> None:
        """End the connection with a caller, or to a worker."""
        channel = self._peers.get(address) if isinstance(address, int) else address
        if isinstance(channel, Channel) and not channel.closed:
            self._close(channel)

    def close(self) -> None:
        """Close all sockets."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket | Channel):
                key.fileobj.close()
            else:
                os.close(key.fd)
        self._selector.close()
        self._peers.clear()

    def _listen_at(self, path: Path) -> None:
        listening = self._listening = listen(path)
        self._inode = _inode(path)
        self._selector.register(listening, _READ, partial(self._accept, listening))

    def _when_readable(self, descriptor: int, action: Callable[[], object]) -> None:
        self._selector.register(descriptor, _READ, lambda _: action())

    def _called(self, number: int) -> Channel | None:
        """The channel to another worker; None if that is not there."""
        channel = self._peers.get(number)
        if channel is None:
            try:
                channel = Channel(connect(self._socket_of(number)), number)
            except OSError:
                return None
            self._peers[number] = channel
            self._add(channel)
        return channel

    def _accept(self, listening: socket.socket, _: int) -> None:
        while (connection := accept(listening)) is not None:
            self._add(Channel(connection))

    def _add(self, channel: Channel) -> None:
        self._selector.register(channel, _READ, partial(self._ready, channel))

    def _wait_for(self, channel: Channel, events: int) -> None:
        key = self._selector.get_key(channel)
        if key.events != events:
            self._selector.modify(channel, events, key.data)

    def _ready(self, channel: Channel, ready: int) -> None:
        messages: list[Message] | None = []
        try:
            if ready & selectors.EVENT_WRITE and not channel.flush():
                self._wait_for(channel, _READ)
            if ready & selectors.EVENT_READ:
                messages = channel.receive()
        except OSError:
            messages = None
        except WireError as error:
            _LOG.warning("a connection is closed: %s", error)
            messages = None
        sender = self._address(channel)
        if messages is None:
            self._close(channel)
            self._arrived.append(Arrival(sender, None))
            return
        for message in messages:
            self._arrived.append(Arrival(sender, message))

    def _address(self, channel: Channel) -> Address:
        return channel if channel.peer is None else channel.peer

    def _close(self, channel: Channel) -> None:
        self._selector.unregister(channel)
        channel.close()
        if channel.peer is not None and self._peers.get(channel.peer) is channel:
            del self._peers[channel.peer]


def _inode(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_ino
    return None


def _empty(pipe: int) -> None:
    with suppress(BlockingIOError):
        os.read(pipe, 4096)
