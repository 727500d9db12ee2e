"""A worker's transport over Unix sockets: its callers, the other workers that it calls, and the wait for all of them.

Each worker listens at a socket of its own. To send to another worker it calls that worker's socket once and keeps the
connection; what comes back over it has that worker's number. Nothing here waits for one of them: what a socket does not
take is kept and written when it can. A process that says what cannot be understood is let go, and no other one notices.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fairway.live.serving.local.channel import Channel, accept, connect, listen
from fairway.live.serving.seams.transport import Address, Arrival, Message, WireError

_LOG = logging.getLogger(__name__)

_READ, _BOTH = select.EPOLLIN, select.EPOLLIN | select.EPOLLOUT


class _Heeded(NamedTuple):
    """What to do when a descriptor is ready, and how to close it."""

    when_ready: Callable[[int], object]
    close: Callable[[], object]


class UnixTransport:
    """All sockets of a worker; `socket_of` says where each worker listens."""

    def __init__(self, number: int, socket_of: Callable[[int], Path]) -> None:
        self._number, self._socket_of = number, socket_of
        self._polls = select.epoll()
        self._heeded: dict[int, _Heeded] = {}
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
        self._drop(self._listening.fileno())
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
                self._polls.modify(channel.fileno(), _BOTH)
        except OSError:  # its end will be read, too, and is an arrival then
            return False
        return True

    def receive(self, seconds: float | None) -> list[Arrival]:
        """What has come over all sockets, after waiting for it no longer than this."""
        if self._pid != os.getpid():
            os._exit(0)  # a stage has forked, and this is its child, which has no part in serving
        heeded = self._heeded
        for descriptor, ready in self._polls.poll(seconds):
            heeded[descriptor].when_ready(ready)
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
        self._polls.close()
        for heeded in self._heeded.values():
            heeded.close()
        self._heeded.clear()
        self._peers.clear()

    def _listen_at(self, path: Path) -> None:
        listening = self._listening = listen(path)
        self._inode = _inode(path)
        self._heed(listening.fileno(), partial(self._accept, listening), listening.close)

    def _when_readable(self, descriptor: int, action: Callable[[], object]) -> None:
        self._heed(descriptor, lambda _: action(), partial(os.close, descriptor))

    def _heed(self, descriptor: int, when_ready: Callable[[int], object], close: Callable[[], object]) -> None:
        self._heeded[descriptor] = _Heeded(when_ready, close)
        self._polls.register(descriptor, _READ)

    def _drop(self, descriptor: int) -> None:
        """Close what belongs to a descriptor."""
        self._polls.unregister(descriptor)
        self._heeded.pop(descriptor).close()

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
        self._heed(channel.fileno(), partial(self._ready, channel), channel.close)

    def _ready(self, channel: Channel, ready: int) -> None:
        messages: list[Message] | None = []
        try:
            if ready & select.EPOLLOUT and not channel.flush():
                self._polls.modify(channel.fileno(), _READ)
            if ready & ~select.EPOLLOUT:  # something to read, or the end of it
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
        self._drop(channel.fileno())
        if channel.peer is not None and self._peers.get(channel.peer) is channel:
            del self._peers[channel.peer]


def _inode(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_ino
    return None


def _empty(pipe: int) -> None:
    with suppress(BlockingIOError):
        os.read(pipe, 4096)
