"""A worker's connections over sockets: its callers, the other workers that it calls, and the wait for all of them.

Each worker listens at sockets of its own. To send to another worker it calls that worker once and keeps the connection;
what comes back over it has that worker's number. Nothing here waits for one of them: what a socket does not take is
kept and written when it can. A process that says what cannot be understood is let go, and no other one notices. What
kind of sockets they are, and where each worker listens, a transport says: `local.unix_transport` or
`nodes.node_transport`.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from fairway.live.serving.seams.transport import Address, Arrival, Message, WireError
from fairway.live.serving.sockets.channel import Channel, encoded

_LOG = logging.getLogger(__name__)

_READ, _BOTH = select.EPOLLIN, select.EPOLLIN | select.EPOLLOUT
_MOST_STRANGERS = 64
_STRANGER_SECONDS = 5.0
"""So many connections may be open, and for so long, whose other end has not shown yet that it belongs here."""


class _Heeded(NamedTuple):
    """What to do when a descriptor is ready, and how to close it."""

    when_ready: Callable[[int], object]
    close: Callable[[], object]


class Connections(ABC):
    """All sockets of a worker; a transport adds how it listens, and how it calls another worker (`_call`)."""

    def __init__(self) -> None:
        self._polls = select.epoll()
        self._heeded: dict[int, _Heeded] = {}
        self._peers: dict[int, Channel] = {}
        self._strangers: dict[Channel, float] = {}
        self._arrived: list[Arrival] = []
        self._wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._pid = os.getpid()
        self._when_readable(self._wakes, partial(os.eventfd_read, self._wakes))

    @abstractmethod
    def _call(self, number: int) -> Channel:
        """A new connection to another worker; raises `OSError` if that is not there."""

    def heed_signals(self) -> None:
        """Let a signal end a wait even if it came just before, or to another thread; for the main thread.

        The handler of a signal runs when this thread does something, and nothing else would make it do so.
        """
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self._when_readable(reading, partial(_empty, reading))

    def send(self, to: Address, message: Message) -> bool:
        """Send a message, now or when the socket can take it; False if no process is there."""
        return self._sent(to, lambda channel: channel.send(message))

    def send_to_all(self, all_of_them: Iterable[Address], message: Message) -> None:
        """Send one message, in which no large values are spoken of, to several; it is encoded once."""
        content = encoded(message)
        for to in all_of_them:
            self._sent(to, lambda channel: channel.send_framed(content))

    def _sent(self, to: Address, send: Callable[[Channel], bool]) -> bool:
        channel = self._called(to) if isinstance(to, int) else to
        if channel is None:
            return False
        assert isinstance(channel, Channel)
        if channel.closed:
            return False
        try:
            if send(channel):
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
            found = heeded.get(descriptor)
            if found is not None:  # a stranger may have been closed meanwhile, for another one that came
                found.when_ready(ready)
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

    def _listen_at(self, listening: socket.socket, accepted: Callable[[], Channel | None]) -> None:
        """Take in whoever connects; `accepted` makes a channel of the next one that waits."""
        self._heed(listening.fileno(), partial(self._accept, accepted), listening.close)

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
                channel = self._call(number)
            except OSError:
                return None
            self._peers[number] = channel
            self._add(channel)
        return channel

    def _accept(self, accepted: Callable[[], Channel | None], _: int) -> None:
        while (channel := accepted()) is not None:
            self._add(channel)
            if not channel.is_trusted:
                self._strangers[channel] = time.monotonic() + _STRANGER_SECONDS
                self._let_strangers_go()

    def _let_strangers_go(self) -> None:
        """Close what has been open for too long without showing that it belongs here, and the oldest if many are."""
        self._strangers = {channel: end for channel, end in self._strangers.items() if not channel.is_trusted}
        too_many = len(self._strangers) - _MOST_STRANGERS
        for position, (channel, end) in enumerate(list(self._strangers.items())):
            if position < too_many or end <= time.monotonic():
                self._close(channel)

    def _add(self, channel: Channel) -> None:
        self._heed(channel.fileno(), partial(self._ready, channel), channel.close)

    def _ready(self, channel: Channel, ready: int) -> None:
        messages: list[Message] | None = []
        try:
            if ready & select.EPOLLOUT and not channel.flush():
                self._polls.modify(channel.fileno(), _READ)
            if ready & ~select.EPOLLOUT:  # something to read, or the end of it
                messages = channel.receive()
                if channel.unwritten:
                    self._polls.modify(channel.fileno(), _BOTH)
        except OSError:
            messages = None
        except WireError as error:
            _LOG.warning("a connection is closed: %s", error)
            messages = None
        sender = self._address(channel)
        if messages is None:
            # A caller that was no part of the application has said nothing, so that its end is no news either.
            is_known = channel.is_trusted or channel.peer is not None
            self._close(channel)
            if is_known:
                self._arrived.append(Arrival(sender, None))
            return
        for message in messages:
            self._arrived.append(Arrival(sender, message))

    def _address(self, channel: Channel) -> Address:
        return channel if channel.peer is None else channel.peer

    def _close(self, channel: Channel) -> None:
        self._drop(channel.fileno())
        self._strangers.pop(channel, None)
        if channel.peer is not None and self._peers.get(channel.peer) is channel:
            del self._peers[channel.peer]


def _empty(pipe: int) -> None:
    with suppress(BlockingIOError):
        os.read(pipe, 4096)
