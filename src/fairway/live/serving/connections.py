"""A worker's sockets: those who come to it, the other workers that it goes to, and the loop that waits for all of them.

Nothing here waits for one of them: what a socket does not take is kept and written when it can. Whoever says what
cannot be understood is let go, and nobody else notices.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from fairway.live.serving.data import Parcel, SharedBuffers
from fairway.live.serving.wire import Channel, WireError, accept, connect, listen

_LOG = logging.getLogger(__name__)

_MANY_FILES = 64

Understood = Mapping[str, tuple[Callable[..., None], int]]
"""What can be said to a process: by its first word, who hears it, and how many parts follow."""


def hear(process: object, understood: Understood, channel: Channel, message: tuple[Any, ...]) -> None:
    """Let a process hear a message that it understands; refuse any other, by a `WireError`."""
    kind, *content = message
    known = understood.get(kind) if isinstance(kind, str) else None
    if known is None or len(content) != known[1]:
        raise WireError(f"a message {str(kind)[:40]!r} with {len(content)} parts given, which means nothing here")
    known[0](process, channel, *content)


def _empty(pipe: int) -> None:
    with suppress(BlockingIOError):
        os.read(pipe, 4096)


class Connections:
    """All channels of a worker; `take` gets each message, and `left` each channel whose other side is gone."""

    def __init__(
        self,
        sockets: Callable[[int], Path],
        buffers: SharedBuffers,
        take: Callable[[Channel, tuple[Any, ...]], None],
        left: Callable[[Channel], None],
    ) -> None:
        self._socket_of = sockets
        self._buffers = buffers
        self._take, self._left = take, left
        self._selector = selectors.DefaultSelector()
        self._peers: dict[int, Channel] = {}
        self._handed_over: dict[Channel, list[Parcel]] = {}

    def listen(self, path: Path) -> None:
        """Let others come."""
        listening = listen(path)
        self._selector.register(listening, selectors.EVENT_READ, partial(self._accept, listening))

    def heed_signals(self) -> None:
        """Let a signal end a wait even if it came just before, or to another thread; for the main thread.

        Its handler runs when this thread does something, and otherwise nobody would tell it to.
        """
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self.watch(reading, lambda: _empty(reading))

    def watch(self, descriptor: int, action: Callable[[], None]) -> None:
        """Call a function whenever there is something to read."""
        self._selector.register(descriptor, selectors.EVENT_READ, lambda _: action())

    def wait(self, seconds: float | None) -> None:
        """Wait until something comes, but not longer than this, and see to it."""
        for key, ready in self._selector.select(seconds):
            key.data(ready)

    def hear_others(self, but: Channel) -> None:
        """See to what has come over all channels but this one."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, Channel) and key.fileobj is not but:
                self._ready(key.fileobj, selectors.EVENT_READ)

    def write(self, channel: Channel, message: tuple[Any, ...]) -> bool:
        """Send a message, now or when the socket can take it; False if nobody is there."""
        if channel.closed:
            return False
        try:
            if channel.send(message):
                self._watch_for(channel, selectors.EVENT_READ | selectors.EVENT_WRITE)
        except OSError:  # its end will be read, too, and seen to then
            return False
        return True

    def hand_over(self, channel: Channel, message: tuple[Any, ...], parcel: Parcel) -> None:
        """Send a message with a parcel to a client, who removes its files, unless it is gone before it can."""
        if not self.write(channel, (*message, tuple(parcel))):
            self._buffers.discard(parcel)
        elif parcel.files:
            handed_over = self._handed_over.setdefault(channel, [])
            handed_over.append(parcel)
            if len(handed_over) > _MANY_FILES:
                handed_over[:] = [each for each in handed_over if self._buffers.are_there(each)]

    def peer(self, number: int) -> Channel | None:
        """The channel to another worker; None if that is not there."""
        channel = self._peers.get(number)
        if channel is None:
            try:
                channel = Channel(connect(self._socket_of(number)), number)
            except OSError:
                return None
            self._peers[number] = channel
            self._welcome(channel)
        return channel

    def leave_peer(self, number: int) -> None:
        """End the channel to another worker."""
        channel = self._peers.get(number)
        if channel is not None:
            self._close(channel)

    def _accept(self, listening: socket.socket, _: int) -> None:
        while (connection := accept(listening)) is not None:
            self._welcome(Channel(connection))

    def _welcome(self, channel: Channel) -> None:
        self._selector.register(channel, selectors.EVENT_READ, partial(self._ready, channel))

    def _watch_for(self, channel: Channel, events: int) -> None:
        key = self._selector.get_key(channel)
        if key.events != events:
            self._selector.modify(channel, events, key.data)

    def _ready(self, channel: Channel, ready: int) -> None:
        if channel.closed:  # by what another one said, a moment ago
            return
        messages: list[tuple[Any, ...]] | None = []
        try:
            if ready & selectors.EVENT_WRITE and not channel.flush():
                self._watch_for(channel, selectors.EVENT_READ)
            if ready & selectors.EVENT_READ:
                messages = channel.receive()
        except OSError:
            messages = None
        except WireError as error:
            self._refuse(channel, error)
            return
        if messages is None:
            self._close(channel)
            return
        try:
            for message in messages:
                self._take(channel, message)
        except WireError as error:
            self._refuse(channel, error)

    def _refuse(self, channel: Channel, error: WireError) -> None:
        _LOG.warning("a connection is closed: %s", error)
        self._close(channel)

    def _close(self, channel: Channel) -> None:
        if channel.closed:
            return
        self._selector.unregister(channel)
        channel.close()
        if isinstance(channel.peer, int) and self._peers.get(channel.peer) is channel:
            del self._peers[channel.peer]
        for parcel in self._handed_over.pop(channel, ()):
            with suppress(OSError):
                self._buffers.discard(parcel)
        self._left(channel)
